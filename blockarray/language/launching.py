"""Kernels compiled and launched: one executable for each kind of call, and a short way for calls like an earlier one."""

from collections import OrderedDict
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from blockarray.execution.evaluate import lock
from blockarray.execution.memory import FULL_ALIGNMENT
from blockarray.language.calling import Call
from blockarray.language.declaration import Declaration
from blockarray.language.operands import Operand, operand_of
from blockarray.language.prepared import Compiled, Launch
from blockarray.language.words import word_of
from blockarray.ndarray import Array, Scalar, evaluate_nodes
from codegen.compiler import Executable, compile_kernel
from codegen.frontend.signature import ScalarKind, Specialisation
from codegen.frontend.translator import translate

_KEPT = 256
_NUMBERS = (int, float, bool)


class _NotAlikeError(Exception):
    """An argument of which nothing short says what a kernel is compiled for."""


class Launches:
    """Launches of one kernel.

    Parameters
    ----------
    function : function
    declaration : Declaration
    """

    def __init__(self, function: FunctionType, declaration: Declaration) -> None:
        self._function = function
        self._declaration = declaration
        self._arrays = {*declaration.inputs, *declaration.outputs}
        self._compiled: OrderedDict[Any, Compiled] = OrderedDict()
        self._prepared: OrderedDict[Any, Launch] = OrderedDict()

    def run(self, positional: tuple[Any, ...], named: Mapping[str, Any], grid: Any, dtype: Any) -> Any:
        """Launch the kernel; on the host it is done on return, on a GPU it is queued. What the call returns."""
        with lock:
            key = self._key(positional, named, grid, dtype)
            known = None if key is None else self._prepared.get(key)
            if known is not None and known.compiled.translation.captured.holds:
                found = dict(zip(self._declaration.positional, positional, strict=False))
                found.update(named)
                return known.again(found)
            call = Call(self._declaration, positional, named, grid, dtype)
            launch, operands = self._prepare(call)
            result = launch.run(operands, call.numbers, call.result())
            if key is not None and launch.can_repeat:
                self._prepared[key] = launch
                while len(self._prepared) > _KEPT:
                    self._prepared.popitem(last=False)
            return result

    def executable(self, call: Call) -> Executable:
        """What a call runs."""
        with lock:
            call.evaluate()
            return self._find(call, self._operands(call, frozenset())).executable

    def _key(self, positional: tuple[Any, ...], named: Mapping[str, Any], grid: Any, dtype: Any) -> Any:
        """Equal for calls that differ in addresses and numbers only; None if that cannot be told in short."""
        names = self._declaration.positional
        if callable(grid) or len(positional) > len(names):
            return None
        try:
            marks = [self._mark(name, value) for name, value in zip(names, positional, strict=False)]
            marks += [(name, self._mark(name, value)) for name, value in named.items()]
            key = (tuple(marks), grid, dtype)
            hash(key)
        except (_NotAlikeError, TypeError):
            return None
        return key

    def _mark(self, name: str, value: Any) -> Any:
        kind = type(value)
        if name in self._declaration.statics:
            return (kind, value)
        if kind is Array:
            node = value._cell.node
            if node.buffer is None:
                evaluate_nodes(node)
                node = value._cell.node
                if node.buffer is None:
                    raise _NotAlikeError
            return (value._shape, value._view, value._row, node.token, value._writeable)
        if kind is np.ndarray:
            address, _ = value.__array_interface__["data"]
            return (kind, value.shape, value.strides, value.dtype, address % FULL_ALIGNMENT, value.flags.writeable)
        if kind in _NUMBERS or isinstance(value, np.generic):
            return kind
        if isinstance(value, Scalar) and name not in self._arrays:
            return (kind, value._row)
        raise _NotAlikeError

    def _prepare(self, call: Call) -> tuple[Launch, dict[str, Operand]]:
        call.evaluate()
        operands = self._operands(call, frozenset(self._declaration.outputs))
        compiled = self._find(call, operands)
        written = compiled.translation.stored
        if not written <= set(self._declaration.outputs):
            operands = self._operands(call, written)
        return Launch(compiled, call, operands), operands

    def _operands(self, call: Call, written: frozenset[str]) -> dict[str, Operand]:
        return {name: operand_of(name, array, call.device, name in written) for name, array in call.arrays.items()}

    def _find(self, call: Call, operands: dict[str, Operand]) -> Compiled:
        specialisation = call.specialisation(operands)
        key = (call.device.device, specialisation, call.static_types())
        found = self._compiled.get(key)
        if found is not None and found.translation.captured.holds:
            self._compiled.move_to_end(key)
            return found
        found = self._compile(call, specialisation)
        self._compiled[key] = found
        while len(self._compiled) > _KEPT:
            self._compiled.popitem(last=False)
        return found

    def _compile(self, call: Call, specialisation: Specialisation) -> Compiled:
        translation = translate(self._function, specialisation, call.device.target, word_of)
        executable = compile_kernel(translation.kernel, call.device)
        scalars = {name: kind for name, kind in specialisation.arguments if isinstance(kind, ScalarKind)}
        return Compiled(translation, executable, scalars)
