"""Products on the host, from panels of widened operands.

Slices of both operands are widened into panels on the stack, which stay in the cache of the core while a tile of registers goes
over them.

Sums of halves are exact in each product, so that one instruction may multiply and add: it rounds as two would.
"""

from dataclasses import dataclass

from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import InternalCompilerError
from codegen.ir.kernel import Value
from codegen.ir.operations import Allocate, DotLoop, Load, Store
from codegen.ir.types import INDEX, BufferType
from codegen.llvm.context import EmissionContext
from codegen.llvm.core import Register
from codegen.llvm.hooks import Access, Memory
from codegen.llvm.index import Index, add, multiply, subtract
from codegen.llvm.memory import emit_allocate, emit_load, emit_store, private_memory
from codegen.llvm.products import Side, Tile, accumulate, counted_loop, element_place, read_side
from codegen.llvm.spelling import shuffle_mask
from codegen.target import MatmulInstruction

MACHINE_REGISTERS = 4
"""Machine registers that are worked on as one; a tile is as wide."""

_ALIGNMENT = 64
_FLOAT_BITS = 32
# Rows that are accumulated at a time: with four registers each they fill half of the 32 that 512-bit machines have, and of 16.
_ROWS = {512: 4, 256: 2, 128: 2}


def panel_instruction(register_bits: int) -> MatmulInstruction:
    """The row of a host with registers of this width."""
    elements = register_bits // _FLOAT_BITS
    return MatmulInstruction(
        name="panels",
        operands=("float16", "bfloat16"),
        accumulator="float32",
        rows=(16, 64),
        columns=(MACHINE_REGISTERS * elements,),
        inner=(256,),
        lanes=1,
        copies="panels",
        operations_per_cycle=4 * elements,
        bytes_per_cycle=16,
    )


def emit_panel_product(context: EmissionContext, product: DotLoop) -> None:
    """A dot loop on the host's registers."""
    writer = context.writer
    begin, end = context.scalar(product.operands[0]), context.scalar(product.operands[1])
    dtype = product.accumulator.block.dtype
    m, n = product.accumulator.block.shape
    zero = Value(INDEX)
    context.define(zero, ["0"])
    context.facts.state(zero, 0, from_zero=True)
    total = _allocated(context, dtype, (m, n))
    emit_store(context, Store(operands=(total, zero, zero, product.accumulator), checked=(False, False)))
    a_turned = (
        context.memory(product.a).strides[product.a_axes[1]]
        != 1
        == context.memory(product.a).strides[product.a_axes[0]]
    )
    a_shape = (product.step, m) if a_turned else (m, product.step)
    left = _panel(context, dtype, a_shape)
    right = _panel(context, dtype, (product.step, n))
    guard, turn, leave = writer.block, writer.new_label("slice"), writer.new_label("product")
    writer.branch(writer.value(f"icmp slt i64 {begin}, {end}"), turn, leave)
    writer.start(turn)
    inner = writer.phi("i64")
    inner.add(begin, guard)
    _pack(context, product, "a", inner.name, left, a_turned)
    _pack(context, product, "b", inner.name, right, True)
    _multiply(context, product, context.memory(total), left, right, a_turned)
    following = writer.value(f"add nsw i64 {inner.name}, {product.step}")
    inner.add(following, writer.block)
    writer.branch(writer.value(f"icmp slt i64 {following}, {end}"), turn, leave)
    writer.start(leave)
    result = Load(operands=(total, zero, zero), results=(product.result,), shape=(m, n), checked=(False, False))
    emit_load(context, result)


def _allocated(context: EmissionContext, dtype: DType, shape: tuple[int, ...]) -> Value:
    allocation = Allocate(dtype=dtype, shape=shape)
    (type_,) = allocation.infer()
    value = Value(type_)
    emit_allocate(context, Allocate(dtype=dtype, shape=shape, results=(value,)))
    return value


def _panel(context: EmissionContext, dtype: DType, shape: tuple[int, int]) -> Memory:
    """Memory for a slice, row by row."""
    pointer, space = context.hooks.allocate(context, dtype, shape[0] * shape[1])
    return private_memory(Value(BufferType(dtype, shape, (shape[1], 1), _ALIGNMENT)), pointer, space)


@dataclass(frozen=True)
class _Slice:
    """A slice of an operand on its way into a panel.

    Attributes
    ----------
    memory, panel : Memory
    start : str
        Address of the slice's first element.
    along, across : int
        Axes of the buffer: the one that is read along, on which neighbours lie side by side, and the other.
    places : list of Index
        Where the slice begins on each axis.
    shape : tuple of int
        Extents of the slice.
    along_pitch, across_pitch : int
        Elements of the panel from one place to the next on these axes.
    """

    memory: Memory
    panel: Memory
    start: str
    along: int
    across: int
    places: list[Index]
    shape: tuple[int, ...]
    along_pitch: int
    across_pitch: int


def _pack(context: EmissionContext, product: DotLoop, side: str, inner: str, panel: Memory, inner_first: bool) -> None:
    """Widen a slice of an operand into its panel, where the summed axis comes first or last."""
    is_left = side == "a"
    buffer, offsets, shape = (
        (product.a, product.a_offsets, product.a_shape) if is_left else (product.b, product.b_offsets, product.b_shape)
    )
    inner_axis, outer_axis = product.a_axes[::-1] if is_left else product.b_axes
    writer, memory = context.writer, context.memory(buffer)
    places: list[Index] = [inner if offset is None else context.scalar(offset) for offset in offsets]
    along, across = (inner_axis, outer_axis) if memory.strides[inner_axis] == 1 else (outer_axis, inner_axis)
    base: Index = 0
    for axis, place in enumerate(places):
        base = add(writer, base, multiply(writer, place, memory.strides[axis]))
    pitch = (
        {inner_axis: shape[outer_axis], outer_axis: 1}
        if inner_first
        else {inner_axis: 1, outer_axis: shape[inner_axis]}
    )
    start = element_place(context, memory, memory.pointer, base)
    slice_ = _Slice(memory, panel, start, along, across, places, shape, pitch[along], pitch[across])
    if slice_.along_pitch == 1 or memory.strides[along] != 1:
        _pack_lines(context, slice_)
    else:
        _pack_turned(context, slice_)


def _widened(context: EmissionContext, slice_: _Slice, number: Index, first: Index, width: int) -> str:
    """`width` elements of line `number` from `first` on, widened; zeros outside of the buffer."""
    writer, memory = context.writer, slice_.memory
    line = add(writer, slice_.places[slice_.across], number)
    at = add(writer, slice_.places[slice_.along], first)
    stride = memory.strides[slice_.along]
    place = add(writer, multiply(writer, number, memory.strides[slice_.across]), multiply(writer, first, stride))
    access = Access(
        memory,
        element_place(context, memory, slice_.start, place),
        width,
        stride,
        memory.dtype.itemsize,
        writer.value(f"icmp ult i64 {line}, {memory.extents[slice_.across]}"),
        subtract(writer, 0, at),
        subtract(writer, memory.extents[slice_.along], at),
    )
    (loaded,) = context.hooks.load(context, access, 0)
    wide = context.core.cast(Register(context.core, loaded, memory.dtype, width), slice_.panel.dtype)
    if not isinstance(wide, Register):
        raise InternalCompilerError(f"dot_loop: a cast to {slice_.panel.dtype} gave a {type(wide).__name__}")
    return wide.name


def _pack_lines(context: EmissionContext, slice_: _Slice) -> None:
    """Line after line, as they lie in the panel too (or element after element, where nothing lies side by side)."""
    panel, extent = slice_.panel, slice_.shape[slice_.along]
    width = min(extent, MACHINE_REGISTERS * context.target.register_bits // _FLOAT_BITS)

    def line(number: str, _tile: Tile) -> Tile:
        for first in range(0, extent, width):
            name = _widened(context, slice_, number, first, width)
            place = multiply(context.writer, number, slice_.across_pitch)
            target = element_place(
                context, panel, panel.pointer, add(context.writer, place, first * slice_.along_pitch)
            )
            out = Access(panel, target, width, slice_.along_pitch, panel.dtype.itemsize)
            context.hooks.store(context, out, [name], None)
        return []

    counted_loop(context, slice_.shape[slice_.across], 1, [], line)


def _pack_turned(context: EmissionContext, slice_: _Slice) -> None:
    """Squares of as many lines as a machine register has elements, transposed in registers."""
    writer, panel = context.writer, slice_.panel
    size = context.target.register_bits // _FLOAT_BITS

    def lines(number: str, _outer: Tile) -> Tile:
        def square(first: str, _tile: Tile) -> Tile:
            rows = [_widened(context, slice_, add(writer, number, row), first, size) for row in range(size)]
            place = add(
                writer, multiply(writer, first, slice_.along_pitch), multiply(writer, number, slice_.across_pitch)
            )
            corner = element_place(context, panel, panel.pointer, place)
            for position, name in enumerate(_transposed(context, rows)):
                target = element_place(context, panel, corner, position * slice_.along_pitch)
                out = Access(panel, target, size, 1, panel.dtype.itemsize)
                context.hooks.store(context, out, [name], None)
            return []

        counted_loop(context, slice_.shape[slice_.along], size, [], square)
        return []

    counted_loop(context, slice_.shape[slice_.across], size, [], lines)


def _transposed(context: EmissionContext, rows: list[str]) -> list[str]:
    """A square of registers transposed: blocks beside the diagonal change places, then blocks of half their size, and so on."""
    size = len(rows)
    type_ = f"<{size} x float>"
    rows = list(rows)
    distance = 1
    while distance < size:
        low = [place if not place & distance else size + place - distance for place in range(size)]
        high = [place + distance if not place & distance else size + place for place in range(size)]
        for row in range(size):
            if row & distance:
                continue
            pair = f"{type_} {rows[row]}, {type_} {rows[row + distance]}"
            rows[row], rows[row + distance] = (
                context.writer.value(f"shufflevector {pair}, {shuffle_mask(mask)}") for mask in (low, high)
            )
        distance *= 2
    return rows


def _multiply(
    context: EmissionContext, product: DotLoop, total: Memory, left: Memory, right: Memory, a_turned: bool
) -> None:
    """Add a slice's products to the accumulators, some rows at a time, which stay in registers meanwhile."""
    m, n = product.accumulator.block.shape
    rows = _ROWS[context.target.register_bits]
    row_step, inner_step = (1, m) if a_turned else (product.step, 1)

    def some_rows(row: str, _tile: Tile) -> Tile:
        start = element_place(context, total, total.pointer, multiply(context.writer, row, n))
        tile = [read_side(context, Side(total, start, n, [0], 1, n), offset) for offset in range(rows)]
        start_a = element_place(context, left, left.pointer, multiply(context.writer, row, row_step))
        side_a = Side(left, start_a, inner_step, [offset * row_step for offset in range(rows)], 1, 1)
        side_b = Side(right, right.pointer, n, [0], 1, n)
        tile = accumulate(context, side_a, side_b, product.step, tile, exact=True)
        for offset, (register,) in enumerate(tile):
            place = element_place(context, total, start, offset * n)
            context.hooks.store(context, Access(total, place, n, 1, dtypes.float32.itemsize), [register.name], None)
        return []

    counted_loop(context, m, rows, [], some_rows)
