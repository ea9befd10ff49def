"""Lanes of a program: their numbers, and what they tell each other through shuffles and shared memory."""

from dataclasses import dataclass

from codegen.dtypes import DType
from codegen.errors import InternalCompilerError
from codegen.llvm import spelling
from codegen.llvm.context import EmissionContext
from codegen.llvm.core import Register
from codegen.llvm.fragments import AxisSplit
from codegen.llvm.hooks import Combine, Partial
from codegen.targets.nvptx.description import blocks_of_program
from codegen.targets.nvptx.shared import CLUSTER_SPACE, SPACE, Scratch, SharedMemory, element_address

WARP = 32
_VECTOR_BYTES = 16


def special_register(context: EmissionContext, name: str, end: int = 0) -> str:
    """A special register of PTX (``tid.x``), read once; below `end`, if that is known."""
    full = f"@llvm.nvvm.read.ptx.sreg.{name}"
    context.module.declare(full, f"i32 {full}()")
    if name == "tid.x":
        end = context.threads
    known = f"range(i32 0, {end}) " if end else ""
    return context.once(f"call {known}i32 {full}()")


def block_count(context: EmissionContext) -> int:
    """Thread blocks of a program."""
    return blocks_of_program(context.kernel.layout.lane_count)


def lane_number(context: EmissionContext) -> str:
    """The lane's number in its program, as an i32: blocks of a cluster follow one another."""
    blocks = block_count(context)
    lane = special_register(context, "tid.x")
    if blocks == 1:
        return lane
    rank = special_register(context, "cluster.ctarank", blocks)
    return context.once(f"or disjoint i32 {context.once(f'mul i32 {rank}, {context.threads}')}, {lane}")


def lane_bits(context: EmissionContext, stride: int, count: int) -> str:
    """``(lane // stride) % count`` for powers of two, as an i32."""
    lane = lane_number(context)
    if stride > 1:
        lane = context.once(f"lshr i32 {lane}, {stride.bit_length() - 1}")
    if stride * count >= context.kernel.layout.lane_count:
        return lane
    return context.once(f"and i32 {lane}, {count - 1}")


def both_on_entry(context: EmissionContext, condition: str | None, must_be_zero: str) -> str:
    """A condition and ``must_be_zero == 0``."""
    zero = context.once(f"icmp eq i32 {must_be_zero}, 0")
    return zero if condition is None else context.once(f"and i1 {condition}, {zero}")


@dataclass(frozen=True)
class _Part:
    """An axis' lanes, split by warps.

    Attributes
    ----------
    stride : int
        Difference in lane number between neighbours.
    inside : int
        Lanes of the axis within one warp.
    across : int
        Groups of them in different warps.
    """

    stride: int
    inside: int
    across: int


def _part(axis: AxisSplit) -> _Part:
    inside = max(1, min(axis.lanes, WARP // axis.lane_stride))
    return _Part(axis.lane_stride, inside, axis.lanes // inside)


def reduce_lanes(
    context: EmissionContext, shared: SharedMemory, axis: AxisSplit, partials: list[Partial], combine: Combine
) -> list[Partial]:
    """Fold over the lanes of an axis, the same tree in every lane."""
    part = _part(axis)
    distance = 1
    while distance < part.inside:
        partials = [_butterfly(context, part.stride * distance, partial, combine) for partial in partials]
        distance *= 2
    if part.across == 1:
        return partials
    if block_count(context) > 1:
        return _reduce_cluster(context, shared, axis, part, partials, combine)
    return [_tree(row, combine) for row in _share(context, shared, axis, part, partials)]


def _reduce_cluster(
    context: EmissionContext,
    shared: SharedMemory,
    axis: AxisSplit,
    part: _Part,
    partials: list[Partial],
    combine: Combine,
) -> list[Partial]:
    """Fold the partial results of all warps of a cluster. Each warp writes its own into the memory of every block, from where
    the lanes of a warp read a share each."""
    blocks = block_count(context)
    if axis.lanes != context.kernel.layout.lane_count:
        raise InternalCompilerError("layout: the lanes of a cluster of blocks lie along one axis")
    several = max(1, part.across // WARP)
    sizes = [part.across * register.dtype.itemsize for register in partials[0]]
    padded = [-(-size // _VECTOR_BYTES) * _VECTOR_BYTES for size in sizes]
    area = shared.scratch(context, sum(padded) * len(partials))
    lane = _lane_in_warp(context)
    rank = context.once(f"and i32 {lane}, {blocks - 1}")
    context.order.before_write(area.memory, partials[0][0])
    bases: list[int] = []
    base = 0
    for partial in partials:
        for register, size in zip(partial, padded, strict=True):
            _store(context, area, register, base, lane_bits(context, WARP, part.across), rank)
            bases.append(base)
            base += size
    context.order.before_read(area.memory, area)
    remaining = iter(bases)
    first = context.once(f"and i32 {lane}, {part.across // several - 1}")
    if several > 1:
        first = context.once(f"mul i32 {first}, {several}")
    result = []
    for partial in partials:
        columns = [_load(context, area, register, next(remaining), first, several) for register in partial]
        own = _tree([tuple(column[position] for column in columns) for position in range(several)], combine)
        distance = 1
        while distance < part.across // several:
            own = _butterfly(context, distance, own, combine)
            distance *= 2
        result.append(own)
    return result


def _butterfly(context: EmissionContext, stride: int, partial: Partial, combine: Combine) -> Partial:
    other = tuple(_shuffle(context, "bfly", register, stride, WARP - 1) for register in partial)
    if combine.symmetric:
        return combine.merge(partial, other)
    is_later = context.once(f"icmp ne i32 {lane_bits(context, stride, 2)}, 0")
    left = tuple(_select(context, is_later, theirs, mine) for mine, theirs in zip(partial, other, strict=True))
    right = tuple(_select(context, is_later, mine, theirs) for mine, theirs in zip(partial, other, strict=True))
    return combine.merge(left, right)


def _tree(parts: list[Partial], combine: Combine) -> Partial:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return combine.merge(_tree(parts[:middle], combine), _tree(parts[middle:], combine))


def scan_lanes(
    context: EmissionContext, shared: SharedMemory, axis: AxisSplit, partials: list[Partial], combine: Combine
) -> tuple[list[Partial], list[Partial]]:
    """For each partial result: the fold of those of earlier lanes of the axis, and that of all lanes."""
    part = _part(axis)
    if block_count(context) > 1:
        raise InternalCompilerError("layout: a running fold over the lanes of a cluster of blocks")
    earlier = [combine.identity(partial) for partial in partials]
    totals = partials
    if part.inside > 1:
        earlier, totals = _scan_inside_warp(context, part, partials, combine)
    if part.across == 1:
        return earlier, totals
    return _scan_warps(context, shared, axis, part, earlier, totals, combine)


def _scan_inside_warp(
    context: EmissionContext, part: _Part, partials: list[Partial], combine: Combine
) -> tuple[list[Partial], list[Partial]]:
    lane = lane_bits(context, part.stride, part.inside)
    is_first = context.once(f"icmp eq i32 {lane}, 0")
    last = context.once(f"or i32 {_lane_in_warp(context)}, {(part.inside - 1) * part.stride}")
    earlier = []
    totals = []
    for start in partials:
        partial = _scan_warp(context, part, lane, start, combine)
        before = tuple(_shuffle(context, "up", register, part.stride, 0) for register in partial)
        neutral = combine.identity(partial)
        earlier.append(tuple(_select(context, is_first, n, b) for n, b in zip(neutral, before, strict=True)))
        totals.append(tuple(_shuffle(context, "idx", register, last, WARP - 1) for register in partial))
    return earlier, totals


def _scan_warp(context: EmissionContext, part: _Part, lane: str, partial: Partial, combine: Combine) -> Partial:
    distance = 1
    while distance < part.inside:
        before = tuple(_shuffle(context, "up", register, part.stride * distance, 0) for register in partial)
        merged = combine.merge(before, partial)
        has_before = context.once(f"icmp uge i32 {lane}, {distance}")
        partial = tuple(_select(context, has_before, new, old) for new, old in zip(merged, partial, strict=True))
        distance *= 2
    return partial


def _scan_warps(
    context: EmissionContext,
    shared: SharedMemory,
    axis: AxisSplit,
    part: _Part,
    earlier: list[Partial],
    totals: list[Partial],
    combine: Combine,
) -> tuple[list[Partial], list[Partial]]:
    own = lane_bits(context, part.stride * part.inside, part.across)
    ends = []
    for number, row in enumerate(_share(context, shared, axis, part, totals)):
        before = combine.identity(row[0])
        chosen = before
        for position, total in enumerate(row):
            is_own = context.once(f"icmp eq i32 {own}, {position}")
            chosen = tuple(_select(context, is_own, new, old) for new, old in zip(before, chosen, strict=True))
            before = combine.merge(before, total)
        earlier[number] = combine.merge(chosen, earlier[number])
        ends.append(before)
    return earlier, ends


def _share(
    context: EmissionContext, shared: SharedMemory, axis: AxisSplit, part: _Part, partials: list[Partial]
) -> list[list[Partial]]:
    """Let every lane see the partial results of all warps along the axis.

    A partial result has an array with one row for each position on the other axes and one column for each warp.
    """
    rows = context.kernel.layout.lane_count // axis.lanes
    sizes = [rows * part.across * register.dtype.itemsize for register in partials[0]]
    padded = [-(-size // _VECTOR_BYTES) * _VECTOR_BYTES for size in sizes]
    area = shared.scratch(context, sum(padded) * len(partials))
    row = _row(context, axis)
    column = lane_bits(context, part.stride * part.inside, part.across)
    start = context.once(f"mul i32 {row}, {part.across}")
    own = context.once(f"add i32 {start}, {column}")
    context.order.before_write(area.memory, partials[0][0])
    base = 0
    bases = []
    for partial in partials:
        for register, size in zip(partial, padded, strict=True):
            _store(context, area, register, base, own)
            bases.append(base)
            base += size
    context.order.before_read(area.memory, area)
    remaining = iter(bases)
    result = []
    for partial in partials:
        columns = [_load(context, area, register, next(remaining), start, part.across) for register in partial]
        result.append([tuple(column[position] for column in columns) for position in range(part.across)])
    return result


def _row(context: EmissionContext, axis: AxisSplit) -> str:
    """The lane's number without the bits of the axis."""
    above = lane_bits(context, axis.lane_stride * axis.lanes, context.kernel.layout.lane_count)
    if axis.lane_stride == 1:
        return above
    below = lane_bits(context, 1, axis.lane_stride)
    shifted = context.once(f"mul i32 {above}, {axis.lane_stride}")
    return context.once(f"add i32 {shifted}, {below}")


def _memory_name(context: EmissionContext, register: Register) -> str:
    if register.dtype.kind != "boolean":
        return register.name
    return context.writer.value(f"zext i1 {register.name} to i8")


def _store(
    context: EmissionContext, area: Scratch, register: Register, base: int, element: str, rank: str | None = None
) -> None:
    """Store into the scratch area of this block, or of the cluster's block number `rank`."""
    address, space = element_address(context, area, register.dtype, base, element), SPACE
    if rank is not None:
        mapped = f"ptr{CLUSTER_SPACE} @llvm.nvvm.mapa.shared.cluster"
        context.module.declare("@llvm.nvvm.mapa.shared.cluster", f"{mapped}(ptr{SPACE}, i32)")
        address = context.writer.value(f"call {mapped}(ptr{SPACE} {address}, i32 {rank})")
        space = CLUSTER_SPACE
    type_ = spelling.memory_type(register.dtype)
    name = _memory_name(context, register)
    context.writer.line(f"store {type_} {name}, ptr{space} {address}, align {register.dtype.itemsize}")


def _load(context: EmissionContext, area: Scratch, like: Register, base: int, start: str, count: int) -> list[Register]:
    """A row of the array, 16 bytes at a time."""
    dtype = like.dtype
    several = min(count, _VECTOR_BYTES // dtype.itemsize)
    address = element_address(context, area, dtype, base, start)
    element = spelling.memory_type(dtype)
    type_ = spelling.vector(element, several)
    names: list[str] = []
    for first in range(0, count, several):
        place = (
            context.writer.value(f"getelementptr {element}, ptr{SPACE} {address}, i32 {first}") if first else address
        )
        loaded = context.writer.value(f"load {type_}, ptr{SPACE} {place}, align {several * dtype.itemsize}")
        if several == 1:
            names.append(loaded)
            continue
        names += [context.writer.value(f"extractelement {type_} {loaded}, i64 {at}") for at in range(several)]
    if dtype.kind == "boolean":
        names = [context.writer.value(f"icmp ne i8 {name}, 0") for name in names]
    return [Register(context.core, name, dtype, 1) for name in names]


def _lane_in_warp(context: EmissionContext) -> str:
    return context.once(f"and i32 {lane_number(context)}, {WARP - 1}")


def _select(context: EmissionContext, condition: str, a: Register, b: Register) -> Register:
    name = context.writer.value(f"select i1 {condition}, {a.typed}, {b.typed}")
    return Register(context.core, name, a.dtype, 1)


def _shuffle(context: EmissionContext, mode: str, register: Register, lane: int | str, clamp: int) -> Register:
    """A register of another lane of the warp, moved as 32-bit words."""
    writer, dtype = context.writer, register.dtype
    words = _to_words(context, register)
    members = 2 ** min(WARP, context.kernel.layout.lane_count) - 1
    name = f"@llvm.nvvm.shfl.sync.{mode}.i32"
    context.module.declare(name, f"i32 {name}(i32, i32, i32, i32)")
    moved = [writer.value(f"call i32 {name}(i32 {members}, i32 {word}, i32 {lane}, i32 {clamp})") for word in words]
    return Register(context.core, _from_words(context, dtype, moved), dtype, 1)


def _to_words(context: EmissionContext, register: Register) -> list[str]:
    writer, dtype = context.writer, register.dtype
    bits = 1 if dtype.kind == "boolean" else dtype.bits
    name = register.name
    if dtype.kind == "float" and not dtype.is_half:
        name = writer.value(f"bitcast {register.typed} to i{bits}")
    if bits == 32:
        return [name]
    if bits < 32:
        return [writer.value(f"zext i{bits} {name} to i32")]
    upper = writer.value(f"lshr i64 {name}, 32")
    return [writer.value(f"trunc i64 {name} to i32"), writer.value(f"trunc i64 {upper} to i32")]


def _from_words(context: EmissionContext, dtype: DType, words: list[str]) -> str:
    writer = context.writer
    bits = 1 if dtype.kind == "boolean" else dtype.bits
    if bits < 32:
        return writer.value(f"trunc i32 {words[0]} to i{bits}")
    name = words[0]
    if bits == 64:
        lower, upper = (writer.value(f"zext i32 {word} to i64") for word in words)
        shifted = writer.value(f"shl i64 {upper}, 32")
        name = writer.value(f"or i64 {shifted}, {lower}")
    if dtype.kind != "float" or dtype.is_half:
        return name
    return writer.value(f"bitcast i{bits} {name} to {spelling.element_type(dtype)}")
