"""A launch with its slots: what stays is filled in; addresses and numbers are new each time."""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blockarray.execution.constants import NumberSlots, SetNumber
from blockarray.execution.memory import new_buffer
from blockarray.execution.statistics import run as statistics
from blockarray.graph.nodes import Source
from blockarray.language.calling import Call, number_for
from blockarray.language.operands import Operand, borrowed, memory_of
from blockarray.language.outputs import Outputs
from blockarray.ndarray import ndarray, wrap_array
from codegen.compiler import Executable
from codegen.frontend.parameters import ExtentSlot, PointerSlot, ScalarSlot, StrideSlot
from codegen.frontend.signature import ScalarKind
from codegen.frontend.translator import Translation

# Bytes below which one thread of the host is done before others are awake, unless blocks are multiplied.
_PARALLEL_BYTES = 1 << 18


@dataclass(frozen=True)
class Compiled:
    """A kernel that is loaded, and the numbers that it takes."""

    translation: Translation
    executable: Executable
    scalars: Mapping[str, ScalarKind]


class Launch:
    """A kernel with the slots that it reads, for calls that differ in addresses and numbers only.

    Attributes
    ----------
    compiled : Compiled
    can_repeat : bool
        Whether `again` may be called: no argument had to be copied.
    """

    def __init__(self, compiled: Compiled, call: Call, operands: Mapping[str, Operand]) -> None:
        self.compiled = compiled
        self._declaration = call.declaration
        self._device = call.device
        self._written = compiled.translation.stored
        self._operands = tuple(operand.without_memory() for operand in operands.values())
        self.can_repeat = all(operand.is_where_it_was for operand in operands.values())
        self._programs = call.programs(compiled.translation.kernel)
        nbytes = sum(operand.extent_bytes[1] for operand in operands.values())
        is_heavy = compiled.translation.has_dot or nbytes >= _PARALLEL_BYTES
        self._parallel = self._programs > 1 and is_heavy
        slots = compiled.translation.slots
        count = max(len(slots), 1)
        self._values = (ctypes.c_int64 * count)()
        numbers = NumberSlots(self._values, count)
        self._pointers: list[tuple[int, str]] = []
        self._numbers: list[tuple[SetNumber, int, str]] = []
        lengths = call.lengths()
        for position, slot in enumerate(slots):
            match slot:
                case ExtentSlot(name=name):
                    self._values[position] = lengths[name]
                case PointerSlot(parameter=name):
                    self._pointers.append((position, name))
                case StrideSlot(parameter=name, axis=axis):
                    self._values[position] = operands[name].strides[axis]
                case ScalarSlot(parameter=name):
                    self._numbers.append((*numbers.setter(compiled.scalars[name].dtype, position), name))
        self._run = compiled.executable.bind(ctypes.addressof(self._values))

    def again(self, arguments: Mapping[str, Any]) -> Any:
        """Launch with other arguments of the same kind, evaluated and by parameter. The call's result."""
        operands: dict[str, Operand] = {}
        for known in self._operands:
            array = arguments.get(known.name)
            if array is None:
                buffer = new_buffer(known.dtype, known.shape, self._device)
                array = wrap_array(Source(known.shape, known.dtype, self._device, buffer))
            memory = memory_of(array) if isinstance(array, ndarray) else borrowed(array)
            operands[known.name] = known.with_memory(array, memory)
        defaults, kinds = self._declaration.parameters, self.compiled.scalars
        numbers = {
            name: number_for(self._declaration.name, name, arguments.get(name, defaults[name].default), kind)
            for name, kind in kinds.items()
        }
        outputs = tuple(operands[name].array for name in self._declaration.outputs)
        result = None if not outputs else outputs[0] if len(outputs) == 1 else outputs
        return self.run(operands, numbers, result)

    def run(self, operands: Mapping[str, Operand], numbers: Mapping[str, Any], result: Any) -> Any:
        """Launch on these operands; `result`, which is then true."""
        outputs = Outputs(self._device, operands.values(), self._written)
        outputs.prepare()
        if self._programs:
            for position, name in self._pointers:
                self._values[position] = operands[name].address
            for put, place, name in self._numbers:
                put(place, numbers[name])
            self._run(self._programs, self._parallel)
            statistics.kernels += 1
        outputs.deliver()
        return result
