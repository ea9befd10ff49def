"""Schedules for a machine whose programs have many lanes that each hold single elements."""

from math import gcd, prod

from codegen.schedules.host import STEPS, transposed_axis
from codegen.schedules.schedule import Problem, Schedule, Strategy, power_of_two_from, power_of_two_to
from codegen.target import Target

_LANES = 256
_ACCESS_BYTES = 16
_LONGEST_RUN = 8

# Rows up to this size stay in the registers of one program: half of what a lane has if a block has 1024 of them.
_WHOLE_ROW_BYTES_PER_LANE = 128
# What a lane should have under way at a time: 2048 lanes of a multiprocessor then wait for 64 to 128 KiB, more than the
# 48 KiB that keep an H200's memory busy.
_BYTES_UNDER_WAY = 64
_SHORT_ROW_ELEMENTS = 8
# A multiprocessor has to be given several programs before one more of them hides the latency of the others.
_PROGRAMS_PER_CORE = 4


def schedule_for_lanes(problem: Problem, target: Target) -> Schedule:
    """Sizes for one program of many lanes."""
    if not problem.reduced_axes:
        return _elementwise(problem, target)
    if not problem.reduced[-1]:
        return _columns(problem, target)
    if prod(problem.whole_tile()) <= _longest_whole_row(problem, target) and not any(problem.pieces):
        return _whole_rows(problem, target)
    return _long_rows(problem, target)


def _longest_whole_row(problem: Problem, target: Target) -> int:
    """Elements of a row that the registers of one program can hold.

    A cluster of thread blocks takes part where a row is read again to write it: it is read once then. What only reads goes
    over a longer row as fast, and waits for nobody.
    """
    held = _held_elements(problem)
    if not _rewrites(problem):
        return held * _LANES
    if len(problem.reduced_axes) > 1 or problem.running:
        return held * target.max_lanes_per_program
    return held * max(target.max_lanes_per_program, target.clustered_lanes)


def _rewrites(problem: Problem) -> bool:
    """Whether a row is needed again, to write it, when its folds are known; running folds write as they go."""
    written = any(access.written and access.strides[-1] for access in problem.accesses)
    return problem.running or (problem.passes > 1 and written)


def _held_elements(problem: Problem) -> int:
    """Elements of a row that a lane holds in registers at most: fewer where several arrays are read, or work takes registers."""
    arrays = sum(not access.written and all(access.strides) for access in problem.accesses)
    is_lean = arrays < 2 and problem.element_bits <= 32
    held_bytes = _WHOLE_ROW_BYTES_PER_LANE if is_lean else _WHOLE_ROW_BYTES_PER_LANE // 2
    return min(32, held_bytes * 8 // problem.element_bits)


def longest_run(problem: Problem) -> int:
    """Neighbours along the last axis that a lane can move at once, in every access that is contiguous there."""
    contiguous = [access for access in problem.accesses if access.strides[-1] == 1]
    if not contiguous:
        return 1
    run = min(_LONGEST_RUN, max(1, _ACCESS_BYTES // min(access.itemsize for access in contiguous)))
    for access in contiguous:
        outer = (stride for stride, extent in zip(access.strides[:-1], problem.extents[:-1], strict=True) if extent > 1)
        run = gcd(run, access.offset, *outer)
    if problem.rank > 1 or problem.reduced[-1]:
        run = gcd(run, problem.extents[-1])
    return run


def _spread(tile: list[int], run: int, lanes: int) -> tuple[int, ...]:
    """Lanes along each axis: as many as the last axis has runs, what is left along the axes before it."""
    spread = [1] * len(tile)
    for axis in reversed(range(len(tile))):
        held = run if axis == len(tile) - 1 else 1
        spread[axis] = max(1, min(lanes, tile[axis] // held))
        lanes //= spread[axis]
    return tuple(spread)


def _with_lanes(
    strategy: Strategy,
    tile: list[int],
    lanes: tuple[int, ...],
    run: int,
    reasons: list[str],
    blocked: int = -1,
    steps: int = 1,
    windows: int = 1,
) -> Schedule:
    runs = (*(1,) * (len(tile) - 1), min(run, tile[-1]))
    return Schedule(
        strategy=strategy,
        tile=tuple(tile),
        tail=tuple(tile),
        lanes=lanes,
        run=runs,
        blocked=blocked,
        steps=steps,
        windows=windows,
        reasons=tuple(reasons),
    )


def _fill(tile: list[int], problem: Problem, axes: tuple[int, ...], room: int) -> None:
    """Widen the tile along `axes`, innermost first, until it has `room` times as many elements."""
    for axis in reversed(axes):
        tile[axis] = max(1, min(room, power_of_two_from(problem.extents[axis])))
        room //= tile[axis]


def _elementwise(problem: Problem, target: Target) -> Schedule:
    run = longest_run(problem)
    read_bytes = sum(access.itemsize for access in problem.accesses if not access.written)
    repeats = max(1, min(8, power_of_two_to(max(1, _BYTES_UNDER_WAY // max(1, run * read_bytes)))))
    lanes = min(_LANES, target.max_lanes_per_program)
    enough = target.cores * _PROGRAMS_PER_CORE
    while repeats > 1 and problem.points < enough * lanes * run * repeats:
        repeats //= 2
    while run > 1 and problem.points < target.cores * lanes * run:
        run //= 2
    across = transposed_axis(problem)
    tile = [1] * problem.rank
    if across is not None:
        # A warp covers 8 elements along both axes: each side then moves whole sectors of 32 bytes.
        patch = [1] * problem.rank
        patch[across], patch[-1] = lanes // 4, 4
        tile[across], tile[-1] = lanes // 4, 32
        return _with_lanes("whole", tile, tuple(patch), 4, [f"axis {across} is contiguous in one operand"])
    tile[-1] = min(lanes * run * repeats, power_of_two_from(problem.extents[-1]))
    tile[-1] = max(tile[-1], run)
    _fill(tile, problem, tuple(range(problem.rank - 1)), lanes * run * repeats // tile[-1])
    if prod(tile) < target.lanes * run:
        tile[-1] *= target.lanes * run // prod(tile)
    spread = _spread(tile, run, lanes)
    return _with_lanes("whole", tile, spread, run, [f"{run} neighbours and {repeats} accesses a lane"])


def _row_lanes(row: int, run: int, problem: Problem, target: Target) -> int:
    """Lanes that share one row.

    Shares of the copy bandwidth on an H200, softmax and layer norm: 1024 elements 1.02 with 64 lanes; 4096 0.97 with 256;
    8192 0.99 and 0.97 with 256, 0.97 and 0.99 with 512; 16384 0.84 and 0.91 with 512, 0.78 and 0.83 with 1024; 32768 0.98 with 1024. Argmax and sums
    of exponentials, which only read: 4096 1.10 with 128 and 0.96 with 256.
    """
    held = _held_elements(problem)
    if row <= 256:
        wanted = target.lanes
    elif row <= 1024:
        wanted = 64
    elif row <= 2048:
        wanted = 128
    elif not _rewrites(problem):
        wanted = power_of_two_from(row) // held
    elif row <= 4096:
        wanted = power_of_two_from(row) // 16
    else:
        wanted = power_of_two_from(row) // held
    return max(1, min(wanted, row // run, max(target.max_lanes_per_program, target.clustered_lanes)))


def _whole_rows(problem: Problem, target: Target) -> Schedule:
    run = longest_run(problem)
    tile = problem.whole_tile()
    row = prod(tile)
    run = min(run, tile[-1])
    if problem.running:
        run = min(run, 4)
    sharing = _row_lanes(row, run, problem, target)
    spread = list(_spread(tile, run, sharing))
    lane_rows = max(1, min(128, target.max_lanes_per_program) // prod(spread)) if row <= 256 else 1
    repeats = max(1, _SHORT_ROW_ELEMENTS * prod(spread) // row)
    while repeats > 1 and problem.kept_points < repeats * lane_rows * target.cores * _PROGRAMS_PER_CORE:
        repeats //= 2
    _fill(tile, problem, problem.kept_axes, lane_rows * repeats)
    for axis in reversed(problem.kept_axes):
        spread[axis] = min(lane_rows, tile[axis])
        lane_rows //= spread[axis]
    missing = target.lanes // prod(spread)
    if missing > 1:
        # A program has at least one warp: lanes without work of their own hold copies.
        spread[0] *= missing
        tile[0] *= missing
    return _with_lanes("whole", tile, tuple(spread), run, [f"rows of at most {row} stay in registers"])


def _long_rows(problem: Problem, target: Target) -> Schedule:
    blocked = problem.rank - 1
    run = longest_run(problem)
    lanes = min(_LANES, target.max_lanes_per_program)
    repeats, windows = _side_by_side(problem)
    if problem.running:
        run, repeats, windows = min(run, 4), 2, 1
    reach = power_of_two_from(problem.reach(blocked))
    while lanes > target.lanes and lanes * run * repeats > reach:
        lanes //= 2
    # A tile never reaches beyond a piece that is cut off: there the next program works.
    repeats = max(1, min(repeats, reach // (lanes * run)))
    run = max(1, min(run, reach // lanes))
    tile = [1] * problem.rank
    tile[blocked] = lanes * run * repeats
    spread = _spread(tile, run, lanes)
    windows = power_of_two_to(max(1, min(windows, problem.reach(blocked) // tile[blocked])))
    long = problem.reach(blocked) >= 2 * STEPS * windows * tile[blocked]
    steps = STEPS if problem.sums and long else 1
    reason = f"rows of {problem.reach(blocked)} stream through, {windows * tile[blocked]} elements at a time"
    return _with_lanes("streaming", tile, spread, run, [reason], blocked, steps, windows)


def _side_by_side(problem: Problem) -> tuple[int, int]:
    """Accesses of a lane to one tile, and tiles that are loaded side by side.

    Measured on an H200 with 256 lanes: variance 1.00 with 4 tiles, 1.05 with 8; logarithm of a sum of exponentials 1.03 and
    1.01; argmax 0.80 with tiles by themselves, 1.08 with 4 of two accesses.
    """
    if problem.gathers:
        return 1, 8 if problem.cost <= 32 else 4
    if problem.cost > 64:
        return 1, 2
    return (1 if problem.folds > 2 else 2), 4


def _running_columns(problem: Problem, target: Target) -> Schedule:
    """A column for each lane, several rows at a time so that several loads are under way."""
    (blocked,) = problem.reduced_axes
    lanes = min(_LANES, target.max_lanes_per_program)
    while lanes > target.lanes and lanes * target.cores > problem.kept_points:
        lanes //= 2
    tile, spread = [1] * problem.rank, [1] * problem.rank
    tile[-1] = spread[-1] = lanes
    tile[blocked] = max(1, min(8 if problem.cost <= 16 else 2, power_of_two_to(problem.reach(blocked))))
    return _with_lanes("streaming", tile, tuple(spread), 1, [f"{lanes} columns run side by side"], blocked)


def _columns(problem: Problem, target: Target) -> Schedule:
    if problem.running:
        return _running_columns(problem, target)
    blocked = problem.reduced_axes[-1]
    run = min(longest_run(problem), power_of_two_from(problem.extents[-1]))
    if problem.gathers:
        # Several accumulators for each column, and several rows at a time: more columns a lane would leave registers for
        # one block on a multiprocessor.
        run = min(run, 2)
    lanes = min(_LANES, target.max_lanes_per_program)
    rows = power_of_two_from(problem.reach(blocked))
    columns = max(1, min(target.lanes, power_of_two_from(problem.extents[-1]) // run))
    row_lanes = min(lanes // columns, rows)
    columns = min(lanes // row_lanes, max(1, power_of_two_from(problem.extents[-1]) // run))
    if columns * row_lanes < target.lanes:
        columns = target.lanes // row_lanes
    repeats = 1 if problem.cost > 64 or problem.folds > 2 else 4
    if run >= 4:
        repeats = min(repeats, 2)
    windows = 1
    if problem.gathers:
        repeats, windows = _side_by_side(problem)
    tile = [1] * problem.rank
    tile[-1] = columns * run
    tile[blocked] = min(row_lanes * repeats, max(rows, row_lanes))
    windows = power_of_two_to(max(1, min(windows, problem.reach(blocked) // tile[blocked])))
    spread = [1] * problem.rank
    spread[-1], spread[blocked] = columns, row_lanes
    reason = f"{tile[-1]} columns and {windows * tile[blocked]} rows at a time"
    return _with_lanes("streaming", tile, tuple(spread), run, [reason], blocked, windows=windows)
