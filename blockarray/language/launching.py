"""Kernels compiled and launched: one executable for each kind of call, outputs written with the meaning that arrays have."""

import ctypes
import sys
from collections import OrderedDict
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from blockarray.execution.constants import NumberSlots
from blockarray.execution.evaluate import lock
from blockarray.execution.memory import Buffer, buffer_token
from blockarray.execution.statistics import run as statistics
from blockarray.graph.nodes import Source
from blockarray.language.calling import Call
from blockarray.language.declaration import Declaration
from blockarray.language.operands import Operand, check_output, evaluated_node, operand_of, overlap
from blockarray.language.words import ALIASES
from blockarray.ndarray import Cell, ndarray
from codegen.compiler import Executable, compile_kernel
from codegen.frontend.parameters import ExtentSlot, PointerSlot, ScalarSlot, StrideSlot
from codegen.frontend.signature import ScalarKind, Specialisation
from codegen.frontend.translator import Translation, translate
from codegen.targets.backend import Memory

_KEPT = 256
# Bytes below which one thread of the host is done before others are awake, unless blocks are multiplied.
_PARALLEL_BYTES = 1 << 18

# References to a node, or to its buffer, that nobody but its cell reads: the cell's (the node's), a name here, and the count's own.
_REFERENCES = 3


@dataclass
class _Compiled:
    translation: Translation
    executable: Executable
    scalars: dict[str, ScalarKind]
    is_heavy: bool


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
        self._compiled: OrderedDict[Any, _Compiled] = OrderedDict()

    def run(self, call: Call) -> None:
        """Launch the kernel; on the host it is done on return, on a GPU it is queued."""
        with lock:
            operands = self._operands(call, frozenset(self._declaration.outputs))
            compiled = self._find(call, operands)
            written = compiled.translation.stored
            if not written <= set(self._declaration.outputs):
                operands = self._operands(call, written)
            outputs = _Outputs(call, operands, written)
            outputs.prepare()
            self._launch(call, compiled, operands)
            outputs.deliver()

    def executable(self, call: Call) -> Executable:
        """What a call runs."""
        with lock:
            return self._find(call, self._operands(call, frozenset())).executable

    def _operands(self, call: Call, written: frozenset[str]) -> dict[str, Operand]:
        return {name: operand_of(name, array, call.device, name in written) for name, array in call.arrays.items()}

    def _find(self, call: Call, operands: dict[str, Operand]) -> _Compiled:
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

    def _compile(self, call: Call, specialisation: Specialisation) -> _Compiled:
        translation = translate(self._function, specialisation, call.device.target, ALIASES)
        executable = compile_kernel(translation.kernel, call.device)
        scalars = {name: kind for name, kind in specialisation.arguments if isinstance(kind, ScalarKind)}
        return _Compiled(translation, executable, scalars, translation.has_dot)

    def _launch(self, call: Call, compiled: _Compiled, operands: dict[str, Operand]) -> None:
        programs = call.programs(compiled.translation.kernel)
        if programs == 0:
            return
        slots = compiled.translation.slots
        count = max(len(slots), 1)
        values = (ctypes.c_int64 * count)()
        numbers = NumberSlots(values, count)
        lengths = call.lengths()
        for position, slot in enumerate(slots):
            match slot:
                case ExtentSlot(name=name):
                    values[position] = lengths[name]
                case PointerSlot(parameter=name):
                    values[position] = operands[name].address
                case StrideSlot(parameter=name, axis=axis):
                    values[position] = operands[name].strides[axis]
                case ScalarSlot(parameter=name):
                    put, place = numbers.setter(compiled.scalars[name].dtype, position)
                    put(place, call.numbers[name])
        nbytes = sum(operand.extent_bytes[1] for operand in operands.values())
        parallel = programs > 1 and (compiled.is_heavy or nbytes >= _PARALLEL_BYTES)
        compiled.executable.launch(ctypes.addressof(values), programs, parallel)
        statistics.kernels += 1


class _Outputs:
    """The written arguments of a launch.

    A kernel reads its inputs as they were before. An array of ours that is written keeps its memory if nothing else can read that,
    and gets a copy to write into otherwise, so that what was recorded on its old value stays true. A NumPy array is written where it
    lies.
    """

    def __init__(self, call: Call, operands: dict[str, Operand], written: frozenset[str]) -> None:
        self._device = call.device
        self._outputs = [operand for name, operand in operands.items() if name in written]
        self._inputs = [operand for name, operand in operands.items() if name not in written]
        self._new: dict[int, tuple[Cell, Memory]] = {}

    def prepare(self) -> None:
        """Check the outputs, and give them memory that they may write."""
        for position, output in enumerate(self._outputs):
            check_output(output)
            for other in self._outputs[:position]:
                if overlap(output, other):
                    raise ValueError(
                        f"{other.name} and {output.name} are both written and share memory; expected separate arrays"
                    )
        for output in self._outputs:
            if isinstance(output.array, ndarray):
                self._own(output)
        for given in self._inputs:
            if any(not isinstance(output.array, ndarray) and overlap(given, output) for output in self._outputs):
                self._copy(given)

    def _own(self, output: Operand) -> None:
        cell = output.array._cell
        known = self._new.get(id(cell))
        if known is None:
            known = self._new[id(cell)] = (cell, self._memory_for(cell))
        output.memory = known[1]

    def _memory_for(self, cell: Cell) -> Memory:
        node = evaluated_node(cell)
        buffer = node.buffer
        assert buffer is not None
        is_read = any(given.memory is buffer.memory for given in self._inputs)
        alone = sys.getrefcount(node) <= _REFERENCES and sys.getrefcount(buffer) <= _REFERENCES
        if alone and not (is_read or buffer.shared or buffer.is_watched):
            return buffer.memory
        memory = self._device.allocate(max(buffer.memory.nbytes, 1))
        if node.nbytes:
            self._device.copy(buffer.memory, 0, memory, 0, node.nbytes)
        return memory

    def _copy(self, given: Operand) -> None:
        """Move an input away from memory that is written."""
        low, high = given.extent_bytes
        memory = self._device.allocate(max(high - low, 1))
        source = self._device.borrow(given.address + low, high - low, given.memory)
        self._device.copy(source, 0, memory, 0, high - low)
        given.memory, given.offset_bytes = memory, -low

    def deliver(self) -> None:
        """Let arrays of ours have their new values."""
        for cell, memory in self._new.values():
            node = cell.node
            buffer = Buffer(memory, buffer_token(node.dtype, node.shape, node.device))
            cell.node = Source(node.shape, node.dtype, node.device, buffer)
