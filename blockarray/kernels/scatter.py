"""Elements written at positions, one after the other, whatever positions are equal.

On the host one program walks through the positions. On a machine with many lanes every lane owns elements: it walks through all positions
and takes part in those of its own, so that no two lanes ever write one element and the order is kept.
"""

from dataclasses import dataclass

from blockarray.fusion.lower_parameters import (
    Argument,
    SlotConstant,
    SlotNumber,
    SlotPointer,
    index_parameter,
)
from blockarray.fusion.plan import Scattering
from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import BufferParameter, GridAxis, IndexParameter, Kernel, Parameter, ScalarParameter, Value
from codegen.ir.layout import Layout
from codegen.ir.types import BufferType
from codegen.target import Target

# Lanes of a program on a machine that has many: four warps.
_LANES = 128


@dataclass(frozen=True)
class LoweredScatter:
    """A scatter's kernel and how to launch it; see `LoweredKernel`."""

    kernel: Kernel
    arguments: tuple[Argument, ...]
    programs: int
    parallel: bool


def lower_scatter(step: Scattering, target: Target) -> LoweredScatter:
    """The kernel of a scatter for a machine."""
    kernel = _Scatter(step)
    return kernel.in_turn() if target.kind == "cpu" else kernel.by_owner()


class _Scatter:
    def __init__(self, step: Scattering) -> None:
        self.step = step
        self.builder = Builder()
        self.count = index_parameter("count", step.count)
        self.elements = IndexParameter("elements")
        self.parameters: list[Parameter] = [self.count, self.elements]
        self.arguments: list[Argument] = [SlotNumber(step.count), SlotNumber(step.elements)]
        self.places = self._buffer("places", step.places, dtypes.int64, "count")
        self.value = self._value()
        self.target = self._buffer("target", step.target, step.dtype, "elements", written=True)

    def _buffer(self, name: str, number: int, dtype: DType, extent: str | int, written: bool = False) -> Value:
        # Elements are read and written one by one, so nothing is to be gained by more than their own alignment.
        parameter = BufferParameter(name, BufferType(dtype, (extent,), (1,), dtype.itemsize), written)
        self.parameters.append(parameter)
        self.arguments.append(SlotPointer(number, 0))
        return parameter.value

    def _value(self) -> Value | None:
        step = self.step
        if step.value is None:
            return None
        if not step.constant:
            return self._buffer("value", step.value, step.value_dtype, 1 if step.single else "count")
        parameter = ScalarParameter("value", step.value_dtype)
        self.parameters.append(parameter)
        self.arguments.append(SlotConstant(step.value))
        return parameter.value

    def _given(self, turn: Value, shape: tuple[int, ...]) -> Value | None:
        """The value of a turn, repeated to `shape`."""
        if self.value is None:
            return None
        if self.step.constant:
            return self.builder.broadcast(self.value, shape)
        place = self.builder.index(0) if self.step.single else turn
        return self.builder.broadcast(self._at(self.value, place), shape)

    def _at(self, buffer: Value, turn: Value) -> Value:
        return self.builder.reshape(self.builder.load(buffer, (turn,), (1,), (False,)), ())

    def _changed(self, old: Value, given: Value | None) -> Value:
        """What an element becomes."""
        builder, step = self.builder, self.step
        if step.function is None:
            assert given is not None
            return given
        operands = [builder.cast(old, step.working)]
        if given is not None:
            operands.append(given)
        return builder.cast(builder.map(step.function, *operands), step.dtype)

    def _finished(self, grid: GridAxis, layout: Layout, programs: int) -> LoweredScatter:
        name = "scatter" if self.step.function is None else f"scatter_{self.step.function}"
        kernel = self.builder.kernel(name, self.parameters, (grid,), layout)
        return LoweredScatter(kernel, tuple(self.arguments), programs, programs > 1)

    def in_turn(self) -> LoweredScatter:
        """One program, a position a turn."""
        builder = self.builder

        def turn(number: Value) -> tuple[Value, ...]:
            place = self._at(self.places, number)
            old = builder.load(self.target, (place,), (1,), (False,))
            builder.store(self.target, (place,), self._changed(old, self._given(number, (1,))), (False,))
            return ()

        builder.loop(builder.index(0), self.count.value, 1, (), turn, "turn")
        return self._finished(GridAxis(1), Layout((1,), (1,)), 1)

    def by_owner(self) -> LoweredScatter:
        """A lane for each element, all positions for each lane."""
        builder = self.builder
        first = builder.map("multiply", builder.program_index(0, "block"), builder.index(_LANES))
        shape = (_LANES,)
        mine = builder.map("add", builder.iota(shape, 0), builder.broadcast(first, shape))
        held = builder.load(self.target, (first,), shape, (True,))

        def turn(number: Value, held: Value) -> tuple[Value, ...]:
            place = builder.broadcast(self._at(self.places, number), shape)
            changed = self._changed(held, self._given(number, shape))
            return (builder.map("where", builder.map("equal", mine, place), changed, held),)

        (held,) = builder.loop(builder.index(0), self.count.value, 1, (held,), turn, "turn")
        builder.store(self.target, (first,), held, (True,))
        programs = -(-self.step.elements // _LANES)
        return self._finished(GridAxis("elements", _LANES), Layout((_LANES,), (1,)), programs)
