"""Products of blocks: both operands go through memory of the program, each lane multiplies a tile of registers."""

from collections.abc import Callable
from dataclasses import dataclass

from codegen.errors import InternalCompilerError
from codegen.ir.kernel import Value
from codegen.ir.operations import Allocate, Cast, Dot, DotLoop, Load, Store
from codegen.ir.types import INDEX, BlockType, BufferType
from codegen.llvm.context import EmissionContext
from codegen.llvm.core import Register
from codegen.llvm.elementwise import emit_cast
from codegen.llvm.fragments import AxisSplit
from codegen.llvm.hooks import Access, Memory
from codegen.llvm.index import Index, add, multiply
from codegen.llvm.memory import emit_allocate, emit_load, emit_store, private_memory
from codegen.llvm.spelling import element_type, memory_type

_ROWS_PER_TURN = 4
_STEPS_PER_TURN = 4
_PADDING_BYTES = 16

Tile = list[list[Register]]


@dataclass(frozen=True)
class Side:
    """An operand in memory: `count` registers of neighbours at each step of the product's inner axis."""

    memory: Memory
    start: str
    step_stride: int
    offsets: list[int]
    per_access: int
    width: int


def emit_dot(context: EmissionContext, operation: Dot) -> None:
    """``a @ b + accumulator``, one step of the inner axis after the other."""
    if context.kernel.layout.group:
        raise InternalCompilerError(
            f"kernel {context.kernel.name}: a dot in the layout of a matrix instruction; expected a loop of windows and a dot, which the instruction takes"
        )
    a, b, accumulator = operation.operands
    dtype = accumulator.block.dtype
    a, b = _converted(context, a, accumulator), _converted(context, b, accumulator)
    rows, columns = context.distribution(accumulator.block.shape).axes
    inner = a.block.shape[1]
    if rows.all_lanes == columns.all_lanes == 1:
        _by_rows(context, operation, a, b)
        return
    m, n = accumulator.block.shape
    # The lanes of a column read neighbouring rows of `a`, so it lies transposed; the padding spreads its columns.
    pitch = m + _PADDING_BYTES // dtype.itemsize
    memory_a = _stage(context, a, (1, pitch), pitch * inner)
    memory_b = _stage(context, b, (n, 1), n * inner)
    for memory in (memory_a, memory_b):
        context.order.before_read(memory, operation)
    side_a = _side(context, memory_a, rows, pitch)
    side_b = _side(context, memory_b, columns, n)
    fragment = context.fragment(accumulator)
    names = fragment.force()
    per_row = columns.registers
    tile = [
        [Register(context.core, name, dtype, 1) for name in names[row * per_row : (row + 1) * per_row]]
        for row in range(rows.registers)
    ]
    tile = accumulate(context, side_a, side_b, inner, tile)
    context.define(operation.result, [register.name for line in tile for register in line])


def emit_dot_loop(context: EmissionContext, operation: DotLoop) -> None:
    """Products of windows by an instruction of the target."""
    for buffer in (operation.a, operation.b):
        context.order.before_read(context.memory(buffer), operation)
    context.hooks.multiply_windows(context, operation)


def _converted(context: EmissionContext, value: Value, accumulator: Value) -> Value:
    """An operand in the accumulator's dtype."""
    dtype = accumulator.block.dtype
    if value.block.dtype is dtype:
        return value
    result = Value(BlockType(dtype, value.block.shape))
    emit_cast(context, Cast(operands=(value,), results=(result,), dtype=dtype))
    return result


def _stage(context: EmissionContext, value: Value, strides: tuple[int, int], count: int) -> Memory:
    """A block written to memory of the program."""
    block = value.block
    pointer, space = context.hooks.allocate(context, block.dtype, count)
    view = Value(BufferType(block.dtype, block.shape, strides, _PADDING_BYTES))
    context.values[view] = private_memory(view, pointer, space)
    zero = _zero(context)
    emit_store(context, Store(operands=(view, zero, zero, value), checked=(False, False)))
    return context.memory(view)


def _zero(context: EmissionContext) -> Value:
    zero = Value(INDEX)
    context.define(zero, ["0"])
    context.facts.state(zero, 0, from_zero=True)
    return zero


def _side(context: EmissionContext, memory: Memory, axis: AxisSplit, step_stride: int) -> Side:
    """What one lane reads of an operand: the registers of its tile along one axis."""
    lane = multiply(context.writer, context.hooks.lane(context, axis), axis.run if axis.lanes > 1 else 0)
    alignment = min(_PADDING_BYTES, axis.run * memory.dtype.itemsize)
    return Side(
        memory,
        element_place(context, memory, memory.pointer, lane),
        step_stride,
        [axis.first(register) for register in range(axis.registers)],
        context.hooks.accesses_per_load(memory, axis.run, alignment),
        axis.width,
    )


def element_place(context: EmissionContext, memory: Memory, pointer: str, elements: Index) -> str:
    """The address so many elements behind a pointer."""
    if elements == 0:
        return pointer
    type_ = memory_type(memory.dtype)
    return context.writer.value(f"getelementptr {type_}, ptr{memory.space} {pointer}, i64 {elements}")


def read_side(context: EmissionContext, side: Side, step: Index) -> list[Register]:
    """The registers of an operand at one step of the inner axis."""
    memory = side.memory
    start = element_place(context, memory, side.start, multiply(context.writer, step, side.step_stride))
    registers = []
    for first in side.offsets[:: side.per_access]:
        count = side.per_access * side.width
        alignment = side.per_access * memory.dtype.itemsize
        access = Access(memory, element_place(context, memory, start, first), count, 1, alignment)
        for name in context.hooks.load(context, access, 0):
            registers.append(Register(context.core, name, memory.dtype, side.width))
    return registers


def accumulate(
    context: EmissionContext, side_a: Side, side_b: Side, inner: int, tile: Tile, exact: bool = False
) -> Tile:
    """Add the products of all steps of the inner axis to a tile of registers; `exact` products round in no dtype."""
    steps = _STEPS_PER_TURN if inner % _STEPS_PER_TURN == 0 else 1

    def turn(step: str, current: Tile) -> Tile:
        for offset in range(steps):
            at = add(context.writer, step, offset)
            left, right = read_side(context, side_a, at), read_side(context, side_b, at)
            current = [
                [_multiply_add(context, a, b, total, exact) for b, total in zip(right, line, strict=True)]
                for a, line in zip(left, current, strict=True)
            ]
        return current

    return counted_loop(context, inner, steps, tile, turn)


def counted_loop(context: EmissionContext, end: int, step: int, tile: Tile, turn: Callable[[str, Tile], Tile]) -> Tile:
    """A loop from 0 to `end` that carries a tile of registers."""
    writer = context.writer
    body, leave = writer.new_label("step"), writer.new_label("product")
    before = writer.block
    writer.jump(body)
    writer.start(body)
    counter = writer.phi("i64")
    counter.add("0", before)
    nodes = [[(writer.phi(register.type), register) for register in line] for line in tile]
    current = [
        [Register(context.core, node.name, register.dtype, register.width) for node, register in line] for line in nodes
    ]
    following = turn(counter.name, current)
    advanced = writer.value(f"add nsw i64 {counter.name}, {step}")
    counter.add(advanced, writer.block)
    for line, new_line in zip(nodes, following, strict=True):
        for (node, first), again in zip(line, new_line, strict=True):
            node.add(first.name, before)
            node.add(again.name, writer.block)
    writer.branch(writer.value(f"icmp slt i64 {advanced}, {end}"), body, leave)
    writer.start(leave)
    return following


def _multiply_add(context: EmissionContext, a: Register, b: Register, total: Register, exact: bool) -> Register:
    """``a * b + total``; one rounding where the target has it as an instruction."""
    core, dtype = context.core, total.dtype
    if a.width != b.width:
        a = Register(core, context.splat(element_type(a.dtype), a.name, b.width), a.dtype, b.width)
    fuses = context.hooks.fuses_products or (exact and context.target.has("fma"))
    if dtype.kind == "float" and not dtype.is_half and fuses:
        return core.intrinsic("llvm.fma", a, b, total)
    product = core.apply("multiply", a, b)
    result = core.apply("add", product, total)
    if not isinstance(result, Register):
        raise TypeError(f"dot: a sum is a {type(result).__name__}, expected a register")
    return result


def _by_rows(context: EmissionContext, operation: Dot, a: Value, b: Value) -> None:
    """On the host: a few rows at a time over the whole width, which stay in registers while the inner axis passes."""
    accumulator = operation.operands[2]
    dtype = accumulator.block.dtype
    m, n = accumulator.block.shape
    inner = a.block.shape[1]
    columns = context.distribution(accumulator.block.shape).axes[1]
    memory_a = _stage(context, a, (inner, 1), m * inner)
    memory_b = _stage(context, b, (n, 1), n * inner)
    zero = _zero(context)
    allocation = Allocate(dtype=dtype, shape=(m, n))
    (type_,) = allocation.infer()
    total = Value(type_)
    emit_allocate(context, Allocate(dtype=dtype, shape=(m, n), results=(total,)))
    emit_store(context, Store(operands=(total, zero, zero, accumulator), checked=(False, False)))
    memory = context.memory(total)
    places = [columns.first(register) for register in range(columns.registers)]
    rows = _ROWS_PER_TURN if m % _ROWS_PER_TURN == 0 else 1

    def some_rows(row: str, _tile: Tile) -> Tile:
        start = element_place(context, memory, memory.pointer, multiply(context.writer, row, n))
        tile = [read_side(context, Side(memory, start, n, places, 1, columns.width), offset) for offset in range(rows)]
        start_a = element_place(context, memory_a, memory_a.pointer, multiply(context.writer, row, inner))
        side_a = Side(memory_a, start_a, 1, [offset * inner for offset in range(rows)], 1, 1)
        side_b = Side(memory_b, memory_b.pointer, n, places, 1, columns.width)
        tile = accumulate(context, side_a, side_b, inner, tile)
        for offset, line in enumerate(tile):
            for first, register in zip(places, line, strict=True):
                place = element_place(context, memory, start, offset * n + first)
                access = Access(memory, place, columns.width, 1, dtype.itemsize)
                context.hooks.store(context, access, [register.name], None)
        return []

    counted_loop(context, m, rows, [], some_rows)
    shape = accumulator.block.shape
    emit_load(
        context,
        Load(operands=(total, zero, zero), results=(operation.result,), shape=shape, checked=(False, False)),
    )
