"""Windows of buffers: load and store."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import gcd, prod

from codegen.ir.kernel import Value
from codegen.ir.operations import Allocate, Load, Store
from codegen.ir.types import INDEX
from codegen.llvm import spelling
from codegen.llvm.context import EmissionContext
from codegen.llvm.fragments import AxisSplit, Distribution, Fragment
from codegen.llvm.hooks import Access, Memory
from codegen.llvm.index import Index, add, below, both, multiply, subtract


@dataclass(frozen=True)
class _Axis:
    """One axis of a window.

    Attributes
    ----------
    split : AxisSplit
    base : Index
        Position in the buffer of the first element that this lane holds.
    stride, extent : Index
    checked : bool
    from_zero : bool
        The position cannot be negative.
    divisor : int
        A number that divides the base; 0 if the base is 0.
    """

    split: AxisSplit
    base: Index
    stride: Index
    extent: Index
    checked: bool
    from_zero: bool
    divisor: int


class Window:
    """A window of a buffer, seen by one lane."""

    def __init__(
        self,
        context: EmissionContext,
        buffer: Value,
        offsets: tuple[Value, ...],
        shape: tuple[int, ...],
        checked: tuple[bool, ...],
    ) -> None:
        self._context = context
        self.memory: Memory = context.memory(buffer)
        self.distribution: Distribution = context.distribution(shape)
        self._axes = [
            self._axis(axis, split, offsets[axis], checked[axis]) for axis, split in enumerate(self.distribution.axes)
        ]
        self._start = self._pointer(self.memory.pointer, self._sum(axis.base for axis in self._axes))
        self._insides: dict[tuple[int, int], str] = {}
        self._outer_steps: dict[tuple[int, int], Index] = {}
        self._extent_divisor = _extent_divisor(context, buffer)
        self.per_access = self._elements_per_access()

    def _axis(self, axis: int, split: AxisSplit, offset: Value, checked: bool) -> _Axis:
        context = self._context
        base: Index = context.scalar(offset)
        divisor = context.facts.divisor(offset)
        if split.lanes > 1:
            base = add(context.writer, base, context.hooks.lane_start(context, split))
            divisor = gcd(divisor, split.run)
        return _Axis(
            split,
            base,
            self.memory.strides[axis],
            self.memory.extents[axis],
            checked,
            context.facts.is_from_zero(offset),
            divisor,
        )

    def _sum(self, positions: Iterable[Index]) -> Index:
        total: Index = 0
        for position, axis in zip(positions, self._axes, strict=True):
            total = add(self._context.writer, total, multiply(self._context.writer, position, axis.stride))
        return total

    def _pointer(self, pointer: str, elements: Index) -> str:
        if elements == 0:
            return pointer
        type_ = spelling.memory_type(self.memory.dtype)
        return self._context.writer.value(f"getelementptr {type_}, ptr{self.memory.space} {pointer}, i64 {elements}")

    def _elements_per_access(self) -> int:
        """Registers moved by one access: a GPU's lane moves its run of neighbours at once."""
        if not self._axes:
            return 1
        last = self._axes[-1]
        if last.stride != 1 or last.split.width > 1:
            return 1
        run = gcd(last.split.run, last.split.registers)
        several = self._context.hooks.accesses_per_load(self.memory, run, self.alignment(run))
        if last.checked and several > 1 and self._extent_divisor % several:
            return 1
        return several

    def alignment(self, elements: int) -> int:
        """Bytes that divide the address of every access to `elements` neighbours."""
        itemsize = self.memory.dtype.itemsize
        if not self._axes or self._axes[-1].stride != 1:
            return itemsize
        last = self._axes[-1]
        return gcd(self.memory.alignment, gcd(last.divisor, elements) * itemsize)

    def access(self, coordinate: tuple[int, ...]) -> Access:
        """What is moved for the registers from `coordinate` on."""
        if not self._axes:
            return Access(self.memory, self._start, 1, 1, self.memory.dtype.itemsize)
        writer = self._context.writer
        elements: Index = 0
        inside: str | None = None
        for axis, number in enumerate(coordinate[:-1]):
            elements = add(writer, elements, self._outer_step(axis, number))
            if self._axes[axis].checked:
                inside = both(writer, inside, self._inside(axis, number))
        last = self._axes[-1]
        first = last.split.first(coordinate[-1])
        elements = add(writer, elements, multiply(writer, first, last.stride))
        count = last.split.width * self.per_access
        pointer = self._pointer(self._start, elements)
        stride = last.stride if count > 1 else 1
        alignment = self.alignment(count)
        if not last.checked:
            return Access(self.memory, pointer, count, stride, alignment, inside)
        if last.split.width == 1:
            inside = both(writer, inside, self._inside(len(self._axes) - 1, coordinate[-1]))
            return Access(self.memory, pointer, count, stride, alignment, inside)
        position = add(writer, last.base, first)
        end = subtract(writer, last.extent, position)
        begin: Index = 0 if last.from_zero else subtract(writer, 0, position)
        return Access(self.memory, pointer, count, stride, alignment, inside, begin, end)

    def _outer_step(self, axis: int, number: int) -> Index:
        key = (axis, number)
        if key not in self._outer_steps:
            row = self._axes[axis]
            self._outer_steps[key] = multiply(self._context.writer, row.split.first(number), row.stride)
        return self._outer_steps[key]

    def _inside(self, axis: int, number: int) -> str:
        key = (axis, number)
        if key not in self._insides:
            row = self._axes[axis]
            position = add(self._context.writer, row.base, row.split.first(number))
            self._insides[key] = below(self._context.writer, position, row.extent)
        return self._insides[key]


def _extent_divisor(context: EmissionContext, buffer: Value) -> int:
    """A number that divides the last extent of a buffer."""
    extents = buffer.buffer.extents
    if not extents:
        return 0
    if isinstance(extents[-1], int):
        return extents[-1]
    return context.facts.divisor(context.kernel.parameter(extents[-1]).value)


def _place(context: EmissionContext, window: Window, operation: Load | Store, offsets: tuple[Value, ...]) -> Hashable:
    """What tells whether two accesses give each lane the same elements; copies are read by lanes that do not write."""
    if context.hooks.owner(context, window.distribution.axes) is not None:
        return operation
    return window.distribution, offsets


def emit_load(context: EmissionContext, operation: Load) -> None:
    """A window into registers."""
    buffer, *offsets = operation.operands
    window = Window(context, buffer, tuple(offsets), operation.shape, operation.checked)
    coordinates = window.distribution.coordinates()
    several = window.per_access
    context.order.before_read(window.memory, _place(context, window, operation, tuple(offsets)))

    def make(number: int) -> str:
        first = number - number % several
        names = context.hooks.load(context, window.access(coordinates[first]), operation.fill)
        for position, name in enumerate(names):
            fragment.provide(first + position, name)
        return names[number - first]

    fragment = Fragment(operation.result.block, window.distribution, None, make)
    context.values[operation.result] = fragment
    if context.hooks.loads_early(context, window.memory) or not operation.shape:
        fragment.force()
    else:
        context.order.wait(window.memory, fragment)


def emit_store(context: EmissionContext, operation: Store) -> None:
    """Registers into a window."""
    if context.hooks.store_tile(context, operation):
        return
    buffer, *offsets, value = operation.operands
    fragment = context.fragment(value)
    shape = value.block.shape
    window = Window(context, buffer, tuple(offsets), shape, operation.checked)
    context.order.before_write(window.memory, _place(context, window, operation, tuple(offsets)))
    owner = context.hooks.owner(context, window.distribution.axes)
    coordinates = window.distribution.coordinates()
    several = window.per_access
    for first in range(0, len(coordinates), several):
        registers = [fragment.register(first + position) for position in range(several)]
        context.hooks.store(context, window.access(coordinates[first]), registers, owner)


def emit_allocate(context: EmissionContext, operation: Allocate) -> None:
    """Memory of the program."""
    pointer, space = context.hooks.allocate(context, operation.dtype, prod(operation.shape))
    context.values[operation.result] = private_memory(operation.result, pointer, space)


def private_memory(buffer: Value, pointer: str, space: str) -> Memory:
    type_ = buffer.buffer
    alignment = type_.alignment
    for stride in type_.strides[:-1]:
        alignment = gcd(alignment, (stride or 0) * type_.dtype.itemsize)
    return Memory(
        pointer=pointer,
        space=space,
        dtype=type_.dtype,
        extents=[extent for extent in type_.extents if isinstance(extent, int)],
        strides=[stride for stride in type_.strides if stride is not None],
        alignment=alignment,
        private=True,
    )


def move_through_memory(context: EmissionContext, value: Value, result: Value) -> None:
    """Define `result` as the elements of `value` in another shape, which lie in other lanes or registers."""
    block = value.block
    pointer, space = context.hooks.allocate(context, block.dtype, prod(block.shape))
    zero = Value(INDEX)
    context.define(zero, ["0"])
    context.facts.state(zero, 0, from_zero=True)
    views = []
    for shape in (block.shape, result.block.shape):
        (type_,) = Allocate(dtype=block.dtype, shape=shape).infer()
        view = Value(type_)
        context.values[view] = private_memory(view, pointer, space)
        views.append(view)
    source, target = views
    zeros = (zero,) * block.rank
    emit_store(context, Store(operands=(source, *zeros, value), checked=(False,) * block.rank))
    context.order.meet()
    shape = result.block.shape
    zeros = (zero,) * len(shape)
    load = Load(operands=(target, *zeros), results=(result,), shape=shape, checked=(False,) * len(shape))
    emit_load(context, load)
    context.force([result])
    context.order.before_write(context.memory(source), result)
