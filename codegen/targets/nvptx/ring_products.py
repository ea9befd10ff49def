"""Products by ``wgmma``: one warp brings operands through the copy engine, two groups of warps multiply and finish tiles.

The thread blocks of such a kernel stay and take tile after tile. Stages of shared memory go round as a ring: a stage's *full*
barrier opens when both operands have arrived, its *empty* barrier when both groups have multiplied them. So the next tile's
operands are on their way while this tile is finished.
"""

from dataclasses import dataclass, field

from codegen.ir.kernel import Kernel, Value
from codegen.ir.operations import DotLoop, Operation
from codegen.llvm.context import EmissionContext
from codegen.llvm.index import Index
from codegen.llvm.writer import Phi
from codegen.targets.nvptx import assembly
from codegen.targets.nvptx.lanes import special_register
from codegen.targets.nvptx.launch_plan import (
    ACCUMULATOR_BYTES,
    BARRIER_BYTES,
    CONSUMER_REGISTERS,
    GROUP_ROWS,
    GROUP_THREADS,
    PANEL,
    PANEL_BYTES,
    PRODUCER_REGISTERS,
    Ring,
)
from codegen.targets.nvptx.shared import dynamic_base

_CONSUMER_GROUPS = 2
_STEP = 16
"""Summed elements of one instruction."""

_FOUR = 4
"""Accumulators in 16 bytes."""

_PTX_TYPE = {"float16": "f16", "bfloat16": "bf16"}
_GROUP_OF_ROWS = 16
_TALL_ROWS, _TALL_GROUP = 64, 8
"""Tiles below one another that are worked on at a time: what they read of the right operand stays in the shared cache."""

# Fields of a matrix descriptor in units of 16 bytes: eight rows of 128 bytes, and the pattern of 128 bytes.
_EIGHT_ROWS = 1024 >> 4
_PATTERN_128 = 1 << 62

CONSUMERS_BARRIER = 3
"""The named barrier of all lanes that hold accumulators; those before it belong to one group each."""


@dataclass
class RingState:
    """What one emission keeps of the ring: addresses, and where a group is in it.

    Attributes
    ----------
    ring : Ring
    base, full, empty : str
        Shared addresses: of all, of the first full barrier, of the first empty one.
    is_first : str
        An i1: the first lane of its group.
    group : str
        Number of the consumer group.
    stage, parity : str
        Where this group is now.
    tile, labels : list of Phi, tuple of str
        The loop over tiles while it is open: tile, stage and parity; where it begins, ends, and where the function ends.
    total, blocks : str
        Tiles (of a cluster), and how many are worked on at a time.
    rank : str
        This block's number in its cluster; empty if it has none.
    """

    ring: Ring
    base: str
    full: str
    empty: str
    is_first: str
    group: str
    stage: str = ""
    parity: str = ""
    tile: list[Phi] = field(default_factory=list)
    labels: tuple[str, str, str] = ("", "", "")
    total: str = ""
    blocks: str = ""
    rank: str = ""


def open_ring(context: EmissionContext, ring: Ring, counts: list[Index]) -> RingState:
    """Barriers, the producer's whole program, and the head of the consumers' loop over tiles."""
    writer = context.writer
    thread = special_register(context, "tid.x")
    base = dynamic_base(context)
    group = context.once(f"lshr i32 {thread}, {GROUP_THREADS.bit_length() - 1}")
    in_group = context.once(f"and i32 {thread}, {GROUP_THREADS - 1}")
    state = RingState(
        ring,
        base,
        context.once(f"add i32 {base}, {ring.barriers_start}"),
        context.once(f"add i32 {base}, {ring.barriers_start + ring.stages * BARRIER_BYTES}"),
        context.once(f"icmp eq i32 {in_group}, 0"),
        group,
    )
    parts = [_as_i32(context, count) for count in counts]
    state.blocks = special_register(context, "nctaid.x")
    first = special_register(context, "ctaid.x")
    if ring.cluster > 1:
        shift = ring.cluster.bit_length() - 1
        state.rank = special_register(context, "cluster.ctarank")
        state.blocks, first = (context.once(f"lshr i32 {name}, {shift}") for name in (state.blocks, first))
    if ring.together > 1:
        shift = ring.together.bit_length() - 1
        raised = writer.value(f"add i32 {parts[-2]}, {ring.together - 1}")
        parts[-2] = writer.value(f"lshr i32 {raised}, {shift}")
    total = "1"
    for part in parts:
        total = writer.value(f"mul i32 {total}, {part}")
    state.total = total
    _start_barriers(context, state, thread)
    producer, consumer, leave = (writer.new_label(name) for name in ("producer", "consumer", "finished"))
    is_producer = writer.value(f"icmp eq i32 {group}, {_CONSUMER_GROUPS}")
    writer.branch(is_producer, producer, consumer)
    writer.start(producer)
    _emit_producer(context, state, parts, first, leave)
    writer.start(consumer)
    assembly.run(context, f"setmaxnreg.inc.sync.aligned.u32 {CONSUMER_REGISTERS};")
    more = writer.value(f"icmp ult i32 {first}, {state.total}")
    tile_label, done, before = writer.new_label("tile"), writer.new_label("stored"), writer.block
    writer.branch(more, tile_label, done)
    writer.start(tile_label)
    tile, stage, parity = (writer.phi("i32") for _ in range(3))
    for phi, name in ((tile, first), (stage, "0"), (parity, "0")):
        phi.add(name, before)
    state.tile, state.labels = [tile, stage, parity], (tile_label, done, leave)
    state.stage, state.parity = stage.name, parity.name
    context.programs = _programs_of(context, state, tile.name, parts)
    return state


def close_ring(context: EmissionContext, state: RingState) -> None:
    """The end of the consumers' loop, and of the function."""
    writer = context.writer
    tile_label, done, leave = state.labels
    following = writer.value(f"add i32 {state.tile[0].name}, {state.blocks}")
    for phi, name in zip(state.tile, (following, state.stage, state.parity), strict=True):
        phi.add(name, writer.block)
    writer.branch(writer.value(f"icmp ult i32 {following}, {state.total}"), tile_label, done)
    writer.start(done)
    if state.ring.stores:
        # Shared memory must live until the copy engine has read it.
        assembly.run(context, "cp.async.bulk.wait_group 0;")
    writer.jump(leave)
    writer.start(leave)
    if state.ring.cluster > 1:
        # A block's memory must live until nobody of its cluster writes to it or arrives at its barriers.
        assembly.run(context, "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;")
    writer.line("ret void")


def _start_barriers(context: EmissionContext, state: RingState, thread: str) -> None:
    writer, ring = context.writer, state.ring
    then, join = writer.new_label("start"), writer.new_label("roles")
    writer.branch(writer.value(f"icmp eq i32 {thread}, 0"), then, join)
    writer.start(then)
    for number in range(len(ring.maps)):
        assembly.run(context, "prefetch.tensormap [$0];", [("i64", _map_address(context, number))])
    for stage in range(ring.stages):
        for first, arrivals in ((state.full, 1), (state.empty, _CONSUMER_GROUPS * ring.together)):
            place = writer.value(f"add i32 {first}, {stage * BARRIER_BYTES}")
            assembly.run(context, f"mbarrier.init.shared::cta.b64 [$0], {arrivals};", [("i32", place)])
    if ring.sharers > 1:
        arrivals = (ring.sharers - 1) * _CONSUMER_GROUPS * GROUP_THREADS
        place = writer.value(f"add i32 {state.base}, {ring.arrived}")
        assembly.run(context, f"mbarrier.init.shared::cta.b64 [$0], {arrivals};", [("i32", place)])
    assembly.run(context, "fence.mbarrier_init.release.cluster;")
    assembly.run(context, "fence.proxy.async.shared::cta;")
    writer.jump(join)
    writer.start(join)
    if ring.cluster > 1:
        # Blocks of a cluster arrive at each other's barriers.
        assembly.run(context, "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;")
    else:
        assembly.run(context, "bar.sync 0;")


def _as_i32(context: EmissionContext, count: Index) -> str:
    return str(count) if isinstance(count, int) else context.writer.value(f"trunc i64 {count} to i32")


def _programs_of(context: EmissionContext, state: RingState, tile: str, counts: list[str]) -> list[str]:
    """Program numbers of a tile. Along the last two axes tiles go down a group of rows before they go to the next column."""
    writer = context.writer

    def op(text: str) -> str:
        return writer.value(text)

    numbers: list[str] = []
    if len(counts) < 2:
        numbers = [tile] if counts else []
    else:
        rows, columns = counts[-2:]
        per_matrix = op(f"mul i32 {rows}, {columns}")
        outer, inside = op(f"udiv i32 {tile}, {per_matrix}"), op(f"urem i32 {tile}, {per_matrix}")
        # Many rows of tiles read more than the cache holds: fewer of them at a time then.
        is_tall = op(f"icmp ugt i32 {rows}, {_TALL_ROWS // state.ring.together}")
        most = op(
            f"select i1 {is_tall}, i32 {_TALL_GROUP // state.ring.together}, i32 {_GROUP_OF_ROWS // state.ring.together}"
        )
        per_group = op(f"mul i32 {columns}, {most}")
        group, rest = op(f"udiv i32 {inside}, {per_group}"), op(f"urem i32 {inside}, {per_group}")
        first_row = op(f"mul i32 {group}, {most}")
        left = op(f"sub i32 {rows}, {first_row}")
        height = op(f"select i1 {op(f'icmp ult i32 {left}, {most}')}, i32 {left}, i32 {most}")
        row = op(f"add i32 {first_row}, {op(f'urem i32 {rest}, {height}')}")
        column = op(f"udiv i32 {rest}, {height}")
        if state.ring.together > 1:
            row = op(f"add i32 {op(f'mul i32 {row}, {state.ring.together}')}, {state.rank}")
        numbers = [row, column]
        for count in reversed(counts[1:-2]):
            numbers.insert(0, op(f"urem i32 {outer}, {count}"))
            outer = op(f"udiv i32 {outer}, {count}")
        if len(counts) > 2:
            numbers.insert(0, outer)
    return [op(f"zext i32 {number} to i64") for number in numbers]


def _emit_producer(context: EmissionContext, state: RingState, counts: list[str], first: str, leave: str) -> None:
    """One thread goes through the same tiles, and fills stages as they become empty."""
    writer, ring = context.writer, state.ring
    product = ring.product
    assembly.run(context, f"setmaxnreg.dec.sync.aligned.u32 {PRODUCER_REGISTERS};")
    more = writer.value(f"icmp ult i32 {first}, {state.total}")
    works = writer.value(f"and i1 {state.is_first}, {more}")
    tile_label, fill, following = (writer.new_label(name) for name in ("fill_tile", "fill", "filled"))
    before = writer.block
    writer.branch(works, tile_label, leave)
    writer.start(tile_label)
    tile, tile_stage, tile_parity = (writer.phi("i32") for _ in range(3))
    # An empty barrier that nobody has arrived at is waited for with the other parity, and lets the first round pass.
    for phi, name in ((tile, first), (tile_stage, "0"), (tile_parity, "1")):
        phi.add(name, before)
    context.programs = _programs_of(context, state, tile.name, counts)
    for operation in _scalars_of(context.kernel, product):
        context.emit_operation(operation)
    skipped, turns = _turns(context, state)
    moves = [
        (ring.a_map, 0, 0, _places(context, product.a_offsets), product.a_axes[1]),
        (ring.b_map, 1, ring.a_bytes, _places(context, product.b_offsets), product.b_axes[0]),
    ]
    begin = writer.value(f"trunc i64 {context.scalar(product.operands[0])} to i32")
    begin = writer.value(f"add i32 {begin}, {writer.value(f'mul i32 {skipped}, {product.step}')}")
    guard = writer.block
    writer.branch(writer.value(f"icmp sgt i32 {turns}, 0"), fill, following)
    writer.start(fill)
    turn, stage, parity = (writer.phi("i32") for _ in range(3))
    full, empty = _barriers(context, state, stage.name)
    _wait(context, empty, parity.name)
    assembly.run(context, f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {ring.stage_bytes};", [("i32", full)])
    start = writer.value(f"mul i32 {stage.name}, {ring.stage_bytes}")
    start = writer.value(f"add i32 {state.base}, {start}")
    inner = writer.value(f"mul i32 {turn.name}, {product.step}")
    inner = writer.value(f"add i32 {begin}, {inner}")
    for map_, number, offset, places, inner_axis in moves:
        where = {axis: (inner if axis == inner_axis else places[axis]) for axis in map_.axes}
        _load_boxes(context, state, number, writer.value(f"add i32 {start}, {offset}"), full, where, inner_axis)
    next_stage, next_parity = _advance(context, ring, stage.name, parity.name)
    next_turn = writer.value(f"add i32 {turn.name}, 1")
    latch = writer.block
    for phi, initial, again in (
        (turn, "0", next_turn),
        (stage, tile_stage.name, next_stage),
        (parity, tile_parity.name, next_parity),
    ):
        phi.add(initial, guard)
        phi.add(again, latch)
    writer.branch(writer.value(f"icmp slt i32 {next_turn}, {turns}"), fill, following)
    writer.start(following)
    ends = []
    for name, again in ((tile_stage.name, next_stage), (tile_parity.name, next_parity)):
        phi = writer.phi("i32")
        phi.add(name, guard)
        phi.add(again, latch)
        ends.append(phi.name)
    next_tile = writer.value(f"add i32 {tile.name}, {state.blocks}")
    for phi, name in zip((tile, tile_stage, tile_parity), (next_tile, *ends), strict=True):
        phi.add(name, writer.block)
    writer.branch(writer.value(f"icmp ult i32 {next_tile}, {state.total}"), tile_label, leave)


def _scalars_of(kernel: Kernel, product: DotLoop) -> list[Operation]:
    """The operations in front of a product that its bounds and windows depend on, in order."""
    needed = {value for value in product.operands if value is not product.accumulator}
    found: list[Operation] = []
    before = kernel.body.operations[: kernel.body.operations.index(product)]
    for operation in reversed(before):
        if needed.intersection(operation.results):
            found.append(operation)
            needed.update(operation.operands)
    return found[::-1]


def _places(context: EmissionContext, offsets: tuple[Value | None, ...]) -> list[str]:
    return ["" if one is None else context.writer.value(f"trunc i64 {context.scalar(one)} to i32") for one in offsets]


def _turns(context: EmissionContext, state: RingState) -> tuple[str, str]:
    """Turns of the product's loop that others do before this block, and its own, as i32; 0 or less if there are none."""
    writer, product, sharers = context.writer, state.ring.product, state.ring.sharers
    begin, end = (context.scalar(value) for value in product.operands[:2])
    distance = writer.value(f"sub nsw i64 {end}, {begin}")
    raised = writer.value(f"add nsw i64 {distance}, {product.step - 1}")
    turns = writer.value(f"trunc i64 {writer.value(f'sdiv i64 {raised}, {product.step}')} to i32")
    if sharers == 1:
        return "0", turns
    share = writer.value(f"lshr i32 {writer.value(f'add i32 {turns}, {sharers - 1}')}, {sharers.bit_length() - 1}")
    skipped = writer.value(f"mul i32 {share}, {state.rank}")
    left = writer.value(f"sub i32 {turns}, {skipped}")
    is_less = writer.value(f"icmp slt i32 {left}, {share}")
    return skipped, writer.value(f"select i1 {is_less}, i32 {left}, i32 {share}")


def _barriers(context: EmissionContext, state: RingState, stage: str) -> tuple[str, str]:
    offset = context.writer.value(f"mul i32 {stage}, {BARRIER_BYTES}")
    return (
        context.writer.value(f"add i32 {state.full}, {offset}"),
        context.writer.value(f"add i32 {state.empty}, {offset}"),
    )


def _advance(context: EmissionContext, ring: Ring, stage: str, parity: str) -> tuple[str, str]:
    writer = context.writer
    moved = writer.value(f"add i32 {stage}, 1")
    is_end = writer.value(f"icmp eq i32 {moved}, {ring.stages}")
    turned = writer.value(f"xor i32 {parity}, 1")
    return (
        writer.value(f"select i1 {is_end}, i32 0, i32 {moved}"),
        writer.value(f"select i1 {is_end}, i32 {turned}, i32 {parity}"),
    )


def _wait(context: EmissionContext, barrier: str, parity: str, order: str = "") -> None:
    """Until the phase with this parity is over; the hardware suspends a lane that waits."""
    text = (
        f"{{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity{order}.shared::cta.b64 done, [$0], $1;\n"
        "@done bra OVER;\nbra AGAIN;\nOVER:\n}"
    )
    assembly.run(context, text, [("i32", barrier), ("i32", parity)])


def _release(context: EmissionContext, ring: Ring, barrier: str, condition: str) -> None:
    """One arrival in each block of the cluster where the condition holds: under a predicate, since a branch would part the lanes."""
    operands = [("i32", barrier), ("i1", condition)]
    if ring.together == 1:
        assembly.run(context, "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];", operands)
        return
    text = "{\n.reg .b32 there;\n"
    for rank in range(ring.together):
        text += f"mapa.shared::cluster.u32 there, $0, {rank};\n"
        # Not `.release.cluster`: the group has only read, and that would wait for all it ever wrote.
        text += "@$1 mbarrier.arrive.shared::cluster.b64 _, [there];\n"
    assembly.run(context, text + "}", operands)


def map_parameter(number: int) -> str:
    """The entry function's parameter that holds a tensor map."""
    return f"%map{number}"


def _map_address(context: EmissionContext, number: int) -> str:
    return context.once(f"ptrtoint ptr {map_parameter(number)} to i64")


def _load_boxes(
    context: EmissionContext,
    state: RingState,
    number: int,
    target: str,
    barrier: str,
    where: dict[int, str],
    inner_axis: int,
) -> None:
    """One operand of one stage: one box, or a box for each panel where it is contiguous along rows or columns.

    In a cluster each block brings its share of the right operand, and all of them get it.
    """
    writer, ring, product = context.writer, state.ring, state.ring.product
    map_ = ring.maps[number]
    shape = product.b_shape if number else product.a_shape
    together = ring.together if number else 1
    outer_axis = next(axis for axis in map_.axes[:2] if axis != inner_axis)
    extent = shape[outer_axis] // together
    panels = 1 if map_.axes[0] == inner_axis else extent // PANEL
    rank = len(map_.axes)
    numbers = ", ".join(f"${3 + axis}" for axis in range(rank))
    ending = f".multicast::cluster [$0], [$1, {{{numbers}}}], [$2], ${3 + rank};"
    if together == 1:
        ending = f" [$0], [$1, {{{numbers}}}], [$2];"
    text = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{ending}"
    if together > 1:
        share = context.once(f"mul i32 {state.rank}, {extent}")
        where = {**where, outer_axis: writer.value(f"add i32 {where[outer_axis]}, {share}")}
        skipped = context.once(f"mul i32 {state.rank}, {extent * product.step * 2}")
        target = writer.value(f"add i32 {target}, {skipped}")
    for panel in range(panels):
        places = [where[axis] for axis in map_.axes]
        if panel:
            places[0] = writer.value(f"add i32 {places[0]}, {panel * PANEL}")
        box = writer.value(f"add i32 {target}, {panel * PANEL * product.step * 2}")
        operands = [("i32", box), ("i64", _map_address(context, number)), ("i32", barrier)]
        operands += [("i32", place) for place in places]
        if together > 1:
            operands.append(("i16", str((1 << together) - 1)))
        assembly.run(context, text, operands)


def emit_ring_product(context: EmissionContext, state: RingState, product: DotLoop) -> None:
    """The consumers' part of a product: wait for a stage, multiply it, release the one before."""
    writer, ring = context.writer, state.ring
    m, n = product.accumulator.block.shape
    names = _by_instruction(context.fragment(product.accumulator).force(), n)
    _, turns = _turns(context, state)
    if ring.sharers > 1:
        # What is there before is added once.
        is_root = context.once(f"icmp eq i32 {state.rank}, 0")
        names = [writer.value(f"select i1 {is_root}, float {name}, float 0.0") for name in names]
    guard, turn_label, leave = writer.block, writer.new_label("slice"), writer.new_label("product")
    writer.branch(writer.value(f"icmp sgt i32 {turns}, 0"), turn_label, leave)
    writer.start(turn_label)
    turn, stage, parity, previous = (writer.phi("i32") for _ in range(4))
    totals = [writer.phi("float") for _ in names]
    full, _ = _barriers(context, state, stage.name)
    _wait(context, full, parity.name)
    left, right = _descriptors(context, state, product, stage.name)
    following = _multiply_stage(context, ring, product, [total.name for total in totals], left, right)
    is_later = writer.value(f"icmp ne i32 {turn.name}, 0")
    _, released = _barriers(context, state, previous.name)
    _release(context, ring, released, writer.value(f"and i1 {state.is_first}, {is_later}"))
    next_stage, next_parity = _advance(context, ring, stage.name, parity.name)
    next_turn = writer.value(f"add i32 {turn.name}, 1")
    latch = writer.block
    for phi, first, again in (
        (turn, "0", next_turn),
        (stage, state.stage, next_stage),
        (parity, state.parity, next_parity),
        (previous, "0", stage.name),
        *zip(totals, names, following, strict=True),
    ):
        phi.add(first, guard)
        phi.add(again, latch)
    last = writer.new_label("last")
    writer.branch(writer.value(f"icmp slt i32 {next_turn}, {turns}"), turn_label, last)
    writer.start(last)
    finished = assembly.compute(
        context,
        "wgmma.wait_group.sync.aligned 0;",
        ["float"] * len(names),
        (),
        [("float", one) for one in following],
        True,
    )
    _, released = _barriers(context, state, stage.name)
    _release(context, ring, released, state.is_first)
    writer.jump(leave)
    writer.start(leave)
    results = []
    for first, again in zip(names, finished, strict=True):
        phi = writer.phi("float")
        phi.add(first, guard)
        phi.add(again, last)
        results.append(phi.name)
    ends = []
    for name, again in ((state.stage, next_stage), (state.parity, next_parity)):
        phi = writer.phi("i32")
        phi.add(name, guard)
        phi.add(again, last)
        ends.append(phi.name)
    state.stage, state.parity = ends
    if ring.sharers > 1:
        results = _gathered(context, state, results)
    context.define(product.result, _by_row(results, n))


def _gathered(context: EmissionContext, state: RingState, parts: list[str]) -> list[str]:
    """The sum over the blocks that share it, in the first of them; the others hand their parts over and are done.

    Each lane of the first block gets the accumulators of the same lane of every other block, four at a time, and adds them
    in the order of the blocks. There is one tile for each cluster, so that this memory is used once.
    """
    writer, ring = context.writer, state.ring
    thread = special_register(context, "tid.x")
    own = context.once(f"mul i32 {thread}, {_FOUR * ACCUMULATOR_BYTES}")
    start = context.once(f"add i32 {state.base}, {ring.parts_start}")
    arrived = context.once(f"add i32 {state.base}, {ring.arrived}")
    four_bytes = _CONSUMER_GROUPS * GROUP_THREADS * _FOUR * ACCUMULATOR_BYTES
    root, other = writer.new_label("root"), writer.new_label("other")
    writer.branch(context.once(f"icmp eq i32 {state.rank}, 0"), root, other)
    writer.start(other)
    place = writer.value(f"mul i32 {state.rank}, {ring.part_bytes}")
    place = writer.value(f"add i32 {start}, {writer.value(f'add i32 {place}, {own}')}")
    place = writer.value(f"sub i32 {place}, {ring.part_bytes}")
    there, barrier = (
        assembly.compute(context, "mapa.shared::cluster.u32 $0, $1, 0;", ["i32"], [("i32", one)])[0]
        for one in (place, arrived)
    )
    for first in range(0, len(parts), _FOUR):
        offset = first // _FOUR * four_bytes
        text = f"st.shared::cluster.v4.f32 [$0 + {offset}], {{$1, $2, $3, $4}};"
        assembly.run(context, text, [("i32", there), *(("float", one) for one in parts[first : first + _FOUR])])
    assembly.run(context, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", [("i32", barrier)])
    writer.jump(state.labels[1])
    writer.start(root)
    _wait(context, arrived, "0", ".acquire.cluster")
    mine = writer.value(f"add i32 {start}, {own}")
    for block in range(ring.sharers - 1):
        summed: list[str] = []
        for first in range(0, len(parts), _FOUR):
            offset = block * ring.part_bytes + first // _FOUR * four_bytes
            text = f"ld.shared.v4.f32 {{$0, $1, $2, $3}}, [$4 + {offset}];"
            found = assembly.compute(context, text, ["float"] * _FOUR, [("i32", mine)], effect=True)
            pairs = zip(parts[first : first + _FOUR], found, strict=True)
            summed += [writer.value(f"fadd float {total}, {part}") for total, part in pairs]
        parts = summed
    return parts


def _by_instruction(names: list[str], columns: int) -> list[str]:
    """Accumulators in the order of `wgmma`: pairs of columns, the row eight below in between."""
    held = columns // 4
    return [names[row * held + 2 * pair + place] for pair in range(held // 2) for row in (0, 1) for place in (0, 1)]


def _by_row(names: list[str], columns: int) -> list[str]:
    """Accumulators in the order of a fragment: row by row."""
    held = columns // 4
    return [names[4 * (place // 2) + 2 * row + place % 2] for row in (0, 1) for place in range(held)]


def _descriptors(context: EmissionContext, state: RingState, product: DotLoop, stage: str) -> tuple[str, str]:
    """What says where this group's rows of the left operand and all of the right one lie in a stage."""
    writer, ring = context.writer, state.ring
    panel = PANEL * product.step * 2
    start = writer.value(f"add i32 {state.base}, {writer.value(f'mul i32 {stage}, {ring.stage_bytes}')}")
    own = context.once(f"mul i32 {state.group}, {GROUP_ROWS * product.step * 2}")
    a = writer.value(f"add i32 {start}, {own}")
    b = writer.value(f"add i32 {start}, {ring.a_bytes}")

    def descriptor(address: str) -> str:
        units = writer.value(f"and i32 {writer.value(f'lshr i32 {address}, 4')}, 16383")
        fields = ((panel >> 4) << 16) | (_EIGHT_ROWS << 32) | _PATTERN_128
        return writer.value(f"or i64 {writer.value(f'zext i32 {units} to i64')}, {fields}")

    return descriptor(a), descriptor(b)


def _multiply_stage(
    context: EmissionContext, ring: Ring, product: DotLoop, totals: list[str], left: str, right: str
) -> list[str]:
    """All instructions of a stage as one group, and a wait for the group before: one piece of assembly, which LLVM reads faster."""
    n = product.accumulator.block.shape[1]
    count = len(totals)
    kind = _PTX_TYPE[product.a.buffer.dtype.name]
    registers = ", ".join(f"${number}" for number in range(count))
    a, b = f"${2 * count}", f"${2 * count + 1}"
    a_step = 2 * _STEP >> 4 if ring.a_inner else _STEP * PANEL * 2 >> 4
    b_step = 2 * _STEP >> 4 if ring.b_inner else _STEP * PANEL * 2 >> 4
    text = "{\n.reg .b64 da, db;\nwgmma.fence.sync.aligned;\n"
    for step in range(product.step // _STEP):
        text += f"add.s64 da, {a}, {step * a_step};\nadd.s64 db, {b}, {step * b_step};\n"
        text += (
            f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{kind}.{kind} {{{registers}}}, da, db, 1, 1, 1, "
            f"{int(not ring.a_inner)}, {int(not ring.b_inner)};\n"
        )
    text += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n}"
    tied = [("float", total) for total in totals]
    return assembly.compute(context, text, ["float"] * count, [("i64", left), ("i64", right)], tied, effect=True)


def store_through_shared(
    context: EmissionContext, state: RingState, number: int, values: list[str], places: list[str]
) -> None:
    """A tile of 2-byte elements, panel by panel: registers to shared memory by ``stmatrix``, from there by the copy engine.

    `values` are the registers row by row, `places` the coordinates of the tile, contiguous axis first.
    """
    writer = context.writer
    thread = special_register(context, "tid.x")
    held = len(values) // 2
    panels = 4 * held // PANEL
    in_group = context.once(f"and i32 {thread}, {GROUP_THREADS - 1}")
    warp = context.once(f"lshr i32 {in_group}, 5")
    lane = context.once(f"and i32 {in_group}, 31")
    matrix, in_matrix = context.once(f"lshr i32 {lane}, 3"), context.once(f"and i32 {lane}, 7")
    low, high = context.once(f"and i32 {matrix}, 1"), context.once(f"lshr i32 {matrix}, 1")
    row = context.once(f"mul i32 {warp}, 16")
    row = context.once(f"add i32 {row}, {context.once(f'mul i32 {low}, 8')}")
    row = context.once(f"add i32 {row}, {in_matrix}")
    row_start = context.once(f"mul i32 {row}, {PANEL * 2}")
    own = context.once(f"mul i32 {state.group}, {STAGING_BYTES_OF_GROUP}")
    staging = context.once(f"add i32 {state.base}, {state.ring.staging_start}")
    staging = context.once(f"add i32 {staging}, {own}")
    barrier = context.once(f"add i32 {state.group}, 1")
    group_row = context.once(f"mul i32 {state.group}, {GROUP_ROWS}")
    tile_row = writer.value(f"add i32 {places[1]}, {group_row}")
    # With an odd number of panels two tiles follow one another in the same buffer.
    outstanding = 1 - panels % 2
    for panel in range(panels):
        buffer = writer.value(f"add i32 {staging}, {(panel & 1) * PANEL_BYTES}")
        # What was stored from this buffer before must have been read.
        assembly.run(context, f"@$0 cp.async.bulk.wait_group.read {outstanding};", [("i1", state.is_first)])
        _group_barrier(context, barrier)
        for pair in range(0, PANEL // 8, 2):
            chunk = context.once(f"xor i32 {context.once(f'add i32 {high}, {pair}')}, {in_matrix}")
            place = context.once(f"add i32 {context.once(f'mul i32 {chunk}, 16')}, {row_start}")
            address = writer.value(f"add i32 {buffer}, {place}")
            first = panel * (PANEL // 4) + 2 * pair
            starts = [half * held + first + 2 * side for side in (0, 1) for half in (0, 1)]
            words = [_packed(context, values[at], values[at + 1]) for at in starts]
            assembly.run(
                context,
                "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};",
                [("i32", address), *(("i32", word) for word in words)],
            )
        assembly.run(context, "fence.proxy.async.shared::cta;")
        _group_barrier(context, barrier)
        column = writer.value(f"add i32 {places[0]}, {panel * PANEL}")
        rank = len(places)
        numbers = ", ".join(f"${3 + axis}" for axis in range(rank))
        operands = [("i1", state.is_first), ("i64", _map_address(context, number)), ("i32", buffer)]
        operands += [("i32", place) for place in (column, tile_row, *places[2:])]
        text = (
            f"@$0 cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [$1, {{{numbers}}}], [$2];\n"
            "@$0 cp.async.bulk.commit_group;"
        )
        assembly.run(context, text, operands)


STAGING_BYTES_OF_GROUP = 2 * PANEL_BYTES


def _group_barrier(context: EmissionContext, barrier: str) -> None:
    assembly.run(context, f"bar.sync $0, {GROUP_THREADS};", [("i32", barrier)])


def _packed(context: EmissionContext, low: str, high: str) -> str:
    writer = context.writer
    pair = writer.value(f"insertelement <2 x i16> poison, i16 {low}, i64 0")
    pair = writer.value(f"insertelement <2 x i16> {pair}, i16 {high}, i64 1")
    return writer.value(f"bitcast <2 x i16> {pair} to i32")


def consumers_barrier(context: EmissionContext) -> None:
    """All lanes that hold accumulators arrive before any goes on; the producer does not take part."""
    assembly.run(context, f"bar.sync {CONSUMERS_BARRIER}, {_CONSUMER_GROUPS * GROUP_THREADS};")
