"""Products by ``mma.sync``: lanes copy slices of both operands into shared memory, several stages ahead of the warps that multiply."""

from dataclasses import dataclass

from codegen.ir.kernel import Value
from codegen.ir.operations import DotLoop
from codegen.llvm.context import EmissionContext
from codegen.llvm.hooks import Memory
from codegen.llvm.index import Index, add, multiply
from codegen.llvm.writer import Phi
from codegen.targets.nvptx import assembly
from codegen.targets.nvptx.lanes import lane_bits
from codegen.targets.nvptx.launch_plan import WarpSide, warp_sides, warp_stages
from codegen.targets.nvptx.shared import dynamic_base

_STEP = 16
"""Summed elements of one instruction."""

_ROWS = 16
_COLUMNS = 8
_WIDEST_COPY = 16
_NARROWEST_COPY = 4
_ITEM = 2
_PTX_TYPE = {"float16": "f16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class _Copies:
    """How lanes copy one operand of a stage.

    Attributes
    ----------
    side : WarpSide
    memory : Memory
    start : str
        Address of the window's first element where the summed axis is 0.
    line_axis, length_axis : int
        Axes of the buffer along which lines follow one another and run.
    line_offset, length_offset : Index or None
        Where the window begins on these axes; None on the summed one.
    nbytes : int
        Of one copy.
    """

    side: WarpSide
    memory: Memory
    start: str
    line_axis: int
    length_axis: int
    line_offset: Index | None
    length_offset: Index | None
    nbytes: int


def emit_warp_product(context: EmissionContext, product: DotLoop) -> None:
    """A dot loop on ``mma.sync``."""
    writer = context.writer
    begin, end = context.scalar(product.operands[0]), context.scalar(product.operands[1])
    names = context.fragment(product.accumulator).force()
    a_side, b_side = warp_sides(product)
    stages = warp_stages(product)
    stage_bytes = a_side.nbytes + b_side.nbytes
    base = dynamic_base(context)
    copies = (
        _copies(context, product, a_side, product.a, product.a_axes, product.a_offsets, 1),
        _copies(context, product, b_side, product.b, product.b_axes, product.b_offsets, 0),
    )

    def fetch(inner: str, stage: str) -> None:
        """Start the copies of one stage unless the loop ends before it; a group in any case, so that counts agree."""
        then, join = writer.new_label("fetch"), writer.new_label("fetched")
        writer.branch(writer.value(f"icmp slt i64 {inner}, {end}"), then, join)
        writer.start(then)
        for copy in copies:
            _emit_copies(context, copy, inner, stage)
        writer.jump(join)
        writer.start(join)
        assembly.run(context, "cp.async.commit_group;")

    inner = begin
    for number in range(stages - 1):
        fetch(inner, writer.value(f"add i32 {base}, {number * stage_bytes}"))
        inner = writer.value(f"add nsw i64 {inner}, {product.step}")
    readers = (_reader(context, a_side, True), _reader(context, b_side, False))
    guard, turn, leave = writer.block, writer.new_label("slice"), writer.new_label("product")
    writer.branch(writer.value(f"icmp slt i64 {begin}, {end}"), turn, leave)
    writer.start(turn)
    counter, ahead = writer.phi("i64"), writer.phi("i64")
    read_at, write_at = writer.phi("i32"), writer.phi("i32")
    totals = [writer.phi("float") for _ in names]
    assembly.run(context, f"cp.async.wait_group {stages - 2};")
    context.hooks.barrier(context)
    fetch(ahead.name, writer.value(f"add i32 {base}, {write_at.name}"))
    place = writer.value(f"add i32 {base}, {read_at.name}")
    following = _multiply(context, product, (a_side, b_side), readers, place, [total.name for total in totals])
    advanced = writer.value(f"add nsw i64 {counter.name}, {product.step}")
    ahead_next = writer.value(f"add nsw i64 {ahead.name}, {product.step}")
    read_next, write_next = (
        _next_stage(context, phi, stages * stage_bytes, stage_bytes) for phi in (read_at, write_at)
    )
    latch = writer.block
    for phi, first, again in (
        (counter, begin, advanced),
        (ahead, inner, ahead_next),
        (read_at, "0", read_next),
        (write_at, str((stages - 1) * stage_bytes), write_next),
        *zip(totals, names, following, strict=True),
    ):
        phi.add(first, guard)
        phi.add(again, latch)
    writer.branch(writer.value(f"icmp slt i64 {advanced}, {end}"), turn, leave)
    writer.start(leave)
    results = []
    for first, again in zip(names, following, strict=True):
        phi = writer.phi("float")
        phi.add(first, guard)
        phi.add(again, latch)
        results.append(phi.name)
    # Nothing is under way, and nobody reads any more, when the memory is used again.
    assembly.run(context, "cp.async.wait_group 0;")
    context.hooks.barrier(context)
    context.define(product.result, results)


def _next_stage(context: EmissionContext, phi: Phi, end: int, step: int) -> str:
    moved = context.writer.value(f"add i32 {phi.name}, {step}")
    is_end = context.writer.value(f"icmp eq i32 {moved}, {end}")
    return context.writer.value(f"select i1 {is_end}, i32 0, i32 {moved}")


def _copies(
    context: EmissionContext,
    product: DotLoop,
    side: WarpSide,
    buffer: Value,
    axes: tuple[int, int],
    offsets: tuple[Value | None, ...],
    inner: int,
) -> _Copies:
    memory = context.memory(buffer)
    writer = context.writer
    inner_axis, outer_axis = axes[inner], axes[1 - inner]
    place: Index = 0
    for axis, offset in enumerate(offsets):
        if offset is not None:
            place = add(writer, place, multiply(writer, context.scalar(offset), memory.strides[axis]))
    start = (
        memory.pointer
        if place == 0
        else writer.value(f"getelementptr i16, ptr{memory.space} {memory.pointer}, i64 {place}")
    )
    line_axis, length_axis = (outer_axis, inner_axis) if side.is_inner else (inner_axis, outer_axis)
    whole = [None if offset is None else context.scalar(offset) for offset in offsets]
    length_offset = offsets[length_axis]
    divisor = (
        context.facts.divisor(product.operands[0]) if length_offset is None else context.facts.divisor(length_offset)
    )
    nbytes = _ITEM
    if memory.strides[length_axis] == 1:
        width = min(_WIDEST_COPY, memory.alignment, side.length * _ITEM)
        while width > _ITEM and divisor % (width // _ITEM):
            width //= 2
        nbytes = width
    return _Copies(
        side,
        memory,
        start,
        line_axis,
        length_axis,
        whole[line_axis],
        whole[length_axis],
        nbytes if nbytes >= _NARROWEST_COPY else _ITEM,
    )


def _emit_copies(context: EmissionContext, copy: _Copies, inner: str, stage: str) -> None:
    """All copies of this lane for one stage, whose summed axis begins at `inner`."""
    writer, memory, side = context.writer, copy.memory, copy.side
    lanes = context.kernel.layout.lane_count
    per_line = side.length * _ITEM // copy.nbytes
    elements = copy.nbytes // _ITEM
    first_line = lane_bits(context, per_line, lanes // per_line) if per_line < lanes else "0"
    piece = lane_bits(context, 1, per_line)
    column = context.once(f"mul i32 {piece}, {elements}")
    column64, line64 = context.once(f"zext i32 {column} to i64"), context.once(f"zext i32 {first_line} to i64")
    line_step = max(1, lanes // per_line)
    line_base = inner if copy.line_offset is None else copy.line_offset
    length_base = inner if copy.length_offset is None else copy.length_offset
    position = add(writer, length_base, column64)
    line_at = add(writer, line_base, line64)
    line_stride, length_stride = memory.strides[copy.line_axis], memory.strides[copy.length_axis]
    # `start` has the offset of the axis that is not summed.
    lines_from = add(writer, inner, line64) if copy.line_offset is None else line64
    columns_from = add(writer, inner, column64) if copy.length_offset is None else column64
    place = add(writer, multiply(writer, lines_from, line_stride), multiply(writer, columns_from, length_stride))
    source = writer.value(f"getelementptr i16, ptr{memory.space} {copy.start}, i64 {place}")
    line_bytes = context.once(f"mul i32 {first_line}, {side.pitch}")
    target = context.once(f"add i32 {line_bytes}, {context.once(f'mul i32 {piece}, {copy.nbytes}')}")
    target = writer.value(f"add i32 {stage}, {target}")
    valid = _valid_bytes(context, position, memory.extents[copy.length_axis], elements)
    step = multiply(writer, line_step, line_stride)
    count = max(1, side.lines // line_step)
    idle = side.lines < line_step
    pending: list[tuple[str, str, str]] = []
    for number in range(count):
        line = add(writer, line_at, number * line_step)
        inside = writer.value(f"icmp ult i64 {line}, {memory.extents[copy.line_axis]}")
        address = source
        if number:
            address = writer.value(
                f"getelementptr i16, ptr{memory.space} {source}, i64 {multiply(writer, number, step)}"
            )
        destination = writer.value(f"add i32 {target}, {side.start + number * line_step * side.pitch}")
        works = context.once(f"icmp ult i32 {first_line}, {side.lines}") if idle else None
        if copy.nbytes == _ITEM:
            has_value = writer.value(f"icmp ne i32 {valid}, 0")
            reads = writer.value(f"and i1 {inside}, {has_value}")
            (loaded,) = assembly.compute(
                context,
                "{ mov.b16 $0, 0; @$1 ld.global.b16 $0, [$2]; }",
                ["i16"],
                [("i1", reads), (f"ptr{memory.space}", address)],
                effect=True,
            )
            pending.append((destination, loaded, works or "true"))
            continue
        size = writer.value(f"select i1 {inside}, i32 {valid}, i32 0")
        way = "cg" if copy.nbytes == _WIDEST_COPY else "ca"
        predicate = "@$3 " if works else ""
        assembly.run(
            context,
            f"{predicate}cp.async.{way}.shared.global [$0], [$1], {copy.nbytes}, $2;",
            [("i32", destination), (f"ptr{memory.space}", address), ("i32", size), *([("i1", works)] if works else [])],
        )
    for destination, loaded, works in pending:
        assembly.run(context, "@$2 st.shared.b16 [$0], $1;", [("i32", destination), ("i16", loaded), ("i1", works)])


def _valid_bytes(context: EmissionContext, position: Index, extent: Index, elements: int) -> str:
    """Bytes of a copy at `position` that are inside of an axis; none if it begins outside."""
    writer = context.writer
    left = writer.value(f"sub nsw i64 {extent}, {position}")
    fewer = writer.value(f"icmp slt i64 {left}, {elements}")
    count = writer.value(f"select i1 {fewer}, i64 {left}, i64 {elements}")
    nbytes = writer.value(f"trunc i64 {writer.value(f'mul nsw i64 {count}, {_ITEM}')} to i32")
    begins = writer.value(f"icmp ult i64 {position}, {extent}")
    return writer.value(f"select i1 {begins}, i32 {nbytes}, i32 0")


def _reader(context: EmissionContext, side: WarpSide, is_left: bool) -> str:
    """Where this lane's row of the 8 x 8 matrices begins that ``ldmatrix`` reads, in bytes from the operand's start.

    Four matrices make a 16 x 16 piece. The left operand wants them in the order of its rows first, the right one summed
    axis first; matrices whose lines run the other way are transposed on the way.
    """
    in_matrix = lane_bits(context, 1, 8)
    first, second = lane_bits(context, 8, 2), lane_bits(context, 16, 2)
    if not is_left:
        first, second = second, first
    # `first` counts matrices along rows (columns) of the result, `second` along the summed axis.
    along_lines, along_length = (first, second) if side.is_inner else (second, first)
    eight = context.once(f"mul i32 {along_lines}, 8")
    line = context.once(f"add i32 {in_matrix}, {eight}")
    place = context.once(f"mul i32 {line}, {side.pitch}")
    column = context.once(f"mul i32 {along_length}, {8 * _ITEM}")
    start = context.once(f"add i32 {place}, {column}")
    if not is_left:
        return start
    warps = context.kernel.layout.lane_count // 32
    rows = (side.lines if side.is_inner else side.length) // warps
    warp = lane_bits(context, 32, warps)
    own = context.once(f"mul i32 {warp}, {rows * (side.pitch if side.is_inner else _ITEM)}")
    return context.once(f"add i32 {start}, {own}")


def _multiply(
    context: EmissionContext,
    product: DotLoop,
    sides: tuple[WarpSide, WarpSide],
    readers: tuple[str, str],
    stage: str,
    totals: list[str],
) -> list[str]:
    """The accumulators after one stage."""
    writer = context.writer
    a_side, b_side = sides
    m, n = product.accumulator.block.shape
    warps = context.kernel.layout.lane_count // 32
    row_tiles, column_tiles = m // warps // _ROWS, n // _COLUMNS
    a_at, b_at = (
        writer.value(f"add i32 {writer.value(f'add i32 {stage}, {reader}')}, {side.start}")
        for side, reader in zip(sides, readers, strict=True)
    )
    kind = _PTX_TYPE[product.a.buffer.dtype.name]
    text = f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 {{$0, $1, $2, $3}}, {{$8, $9, $10, $11}}, {{$12, $13}}, {{$0, $1, $2, $3}};"
    totals = list(totals)
    for step in range(0, product.step, _STEP):
        left = [_matrices(context, a_side, a_at, _ROWS * tile, step) for tile in range(row_tiles)]
        right: list[list[str]] = []
        for tile in range(0, column_tiles, 2):
            four = _matrices(context, b_side, b_at, _COLUMNS * tile, step)
            right += [four[:2], four[2:]]
        for row in range(row_tiles):
            for column in range(column_tiles):
                places = [
                    (2 * row + half) * 2 * column_tiles + 2 * column + position
                    for half in (0, 1)
                    for position in (0, 1)
                ]
                tied = [("float", totals[place]) for place in places]
                operands = [("i32", name) for name in (*left[row], *right[column])]
                for place, name in zip(
                    places, assembly.compute(context, text, ["float"] * 4, operands, tied), strict=True
                ):
                    totals[place] = name
    return totals


def _matrices(context: EmissionContext, side: WarpSide, start: str, outer: int, inner: int) -> list[str]:
    """The four matrices of a 16 x 16 piece, at compile-time places along both axes."""
    line, column = (outer, inner) if side.is_inner else (inner, outer)
    place = line * side.pitch + column * _ITEM
    way = "" if side.is_inner else ".trans"
    text = f"ldmatrix.sync.aligned.m8n8.x4{way}.shared.b16 {{$0, $1, $2, $3}}, [$4 + {place}];"
    return assembly.compute(context, text, ["i32"] * 4, [("i32", start)], effect=True)
