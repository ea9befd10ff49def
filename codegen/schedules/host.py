"""Schedules for a machine whose programs have one lane and wide registers."""

from math import prod

from codegen.schedules.schedule import Problem, Schedule, Strategy, power_of_two_from, power_of_two_to
from codegen.target import Target

# Tiles that go into a fresh accumulator before it is added to the total. A sum of n then has chains of about
# n / (16 * tile) and 16 additions, short for the lengths that one program sums; NumPy's own leaves are chains of 16.
STEPS = 16

# A row this many registers long is held as a whole; beyond, the code for it would grow without getting faster.
_WHOLE_REGISTERS = 4
_REGISTERS_IN_FLIGHT = 8
# Of elementwise work, costly or not: the emitter takes them as one register (decision 8), which hides latencies.
_ELEMENTWISE_REGISTERS = 4

# Accumulators of a program that sums columns: they stay in the first cache beside the rows that stream through.
_COLUMN_BYTES = 8192
_ROWS_AT_A_TIME = 8
# So many registers of columns and more go that way; fewer stay in registers.
_COLUMN_REGISTERS = 16

# Rows of a tile that reads along one axis and writes along another. Registers are put together element by element there;
# measured on transposed copies, half registers in tiles of 8 x 8 are faster than whole ones in tiles of 16 x 16.
_TRANSPOSED_ROWS = 8


def schedule_for_host(problem: Problem, target: Target) -> Schedule:
    """Sizes for one program, in registers of the host."""
    width = max(1, target.register_bits // problem.element_bits)
    if not problem.reduced_axes:
        return _elementwise(problem, width)
    if not problem.reduced[-1]:
        return _columns(problem, width)
    if prod(problem.whole_tile()) <= _WHOLE_REGISTERS * width and not any(problem.pieces):
        return _short_rows(problem, width)
    return _long_rows(problem, width, target)


def _host(
    strategy: Strategy,
    tile: list[int],
    width: int,
    reasons: list[str],
    tail: list[int] | None = None,
    blocked: int = -1,
    deferred: bool = True,
    steps: int = 1,
    windows: int = 1,
    columns: int = 0,
    kept_elements: int = 0,
) -> Schedule:
    ones = (1,) * len(tile)
    return Schedule(
        strategy=strategy,
        tile=tuple(tile),
        tail=tuple(tile if tail is None else tail),
        lanes=ones,
        run=ones,
        register=width,
        blocked=blocked,
        deferred=deferred,
        steps=steps,
        windows=windows,
        width=columns,
        kept_elements=kept_elements,
        reasons=tuple(reasons),
    )


def _registers(cost: float) -> int:
    """Registers of a tile: enough independent work to hide latencies, little enough code to compile soon."""
    if cost <= 16:
        return 4
    return 2 if cost <= 64 else 1


def _elementwise(problem: Problem, width: int) -> Schedule:
    extents = problem.extents
    registers = _ELEMENTWISE_REGISTERS
    tile = [1] * problem.rank
    across = transposed_axis(problem)
    if across is not None and extents[-1] > 1:
        width = max(1, width // 2)
        tile[-1] = min(width, power_of_two_from(extents[-1]))
        tile[across] = min(_TRANSPOSED_ROWS, 2 * registers, power_of_two_from(extents[across]))
        return _host("whole", tile, width, [f"axis {across} is contiguous in one operand, the last axis in others"])
    tile[-1] = min(registers * width, power_of_two_from(extents[-1]))
    room = registers * width // tile[-1]
    for axis in reversed(range(problem.rank - 1)):
        tile[axis] = min(room, power_of_two_to(extents[axis]))
        room //= tile[axis]
    reason = f"{registers} registers of {width}, for work of {problem.cost:g} additions a point"
    return _host("whole", tile, width, [reason])


def transposed_axis(problem: Problem) -> int | None:
    """An outer axis along which an access is contiguous that is not along the last axis, by bytes; None if none is."""
    weights: dict[int, int] = {}
    for access in problem.accesses:
        if abs(access.strides[-1]) <= 1:
            continue
        for axis, stride in enumerate(access.strides[:-1]):
            if abs(stride) == 1 and problem.extents[axis] > 1:
                weights[axis] = weights.get(axis, 0) + access.itemsize
    return max(weights, key=lambda axis: weights[axis]) if weights else None


def _short_rows(problem: Problem, width: int) -> Schedule:
    tile = problem.whole_tile()
    held = prod(tile[:-1]) * max(1, tile[-1] // width)
    room = power_of_two_to(max(1, min(_REGISTERS_IN_FLIGHT, 2 * _registers(problem.cost)) // held))
    for axis in reversed(problem.kept_axes):
        tile[axis] = min(room, power_of_two_to(problem.extents[axis]))
        room //= tile[axis]
    return _host("whole", tile, width, ["a row fits a few registers, several rows go together"])


def _long_rows(problem: Problem, width: int, target: Target) -> Schedule:
    blocked = problem.rank - 1
    reach = problem.reach(blocked)
    registers = _registers(problem.cost)
    if registers == 4 and problem.folds == 1 and problem.passes == 1 and not problem.running:
        registers = 8
    while registers > 1 and registers * width > reach:
        registers //= 2
    tile, tail = [1] * problem.rank, [1] * problem.rank
    tile[blocked] = registers * width
    tail[blocked] = min(width, tile[blocked])
    if problem.gathers:
        # Registers side by side are the tiles that a combiner takes at a time.
        tile[blocked] = tail[blocked] = min(width, power_of_two_to(reach))
        windows = power_of_two_to(max(1, min(_REGISTERS_IN_FLIGHT, reach // tile[blocked])))
        reason = f"rows of {reach}, {windows} registers of {width} at a time"
        steps = STEPS if reach >= 2 * STEPS * windows * tile[blocked] else 1
        return _host("streaming", tile, width, [reason], tail=tail, blocked=blocked, steps=steps, windows=windows)
    long = reach >= 2 * STEPS * tile[blocked]
    reasons = [f"rows of {reach}, {registers} registers of {width} at a time"]
    kept = 0
    if problem.kept_bytes and len(problem.reduced_axes) == 1:
        kept = _capacity(-(-reach // tail[blocked]) * tail[blocked])
        if kept * problem.kept_bytes > target.shared_bytes:
            kept = 0
            reasons.append("rows are too long to keep what is needed again")
        else:
            reasons.append("costly values of a row are kept between passes")
    return _host(
        "streaming",
        tile,
        width,
        reasons,
        tail=tail,
        blocked=blocked,
        steps=STEPS if problem.sums and long else 1,
        kept_elements=kept,
    )


def _capacity(elements: int) -> int:
    """Few sizes, so that rows of many lengths share code."""
    capacity = 1024
    while capacity < elements:
        capacity *= 4
    return capacity


def _running_columns(problem: Problem, width: int) -> Schedule:
    """Rows one after the other, as many columns at a time as registers can carry."""
    (blocked,) = problem.reduced_axes
    tile = [1] * problem.rank
    tile[-1] = min(4 * _registers(problem.cost) * width, power_of_two_from(problem.extents[-1]))
    return _host("streaming", tile, width, [f"{tile[-1]} columns run side by side"], blocked=blocked, deferred=False)


def _columns(problem: Problem, width: int) -> Schedule:
    if problem.running:
        return _running_columns(problem, width)
    blocked = problem.reduced_axes[-1]
    inner = problem.extents[-1]
    rows = min(_ROWS_AT_A_TIME, power_of_two_to(problem.reach(blocked)))
    if problem.cost > 16:
        rows = min(rows, 2)
    tile, tail = [1] * problem.rank, [1] * problem.rank
    if inner >= _COLUMN_REGISTERS * width:
        accumulators = max(1, problem.folds) * problem.element_bits // 8
        columns = min(power_of_two_to(_COLUMN_BYTES // accumulators), power_of_two_from(inner))
        tile[-1] = 2 * width if problem.cost <= 32 else width
        tail[-1] = width if tile[-1] > width else width // 2
        tile[blocked] = rows
        reason = f"{columns} accumulators in memory, {rows} rows at a time, each read in order"
        return _host("columns", tile, width, [reason], tail, blocked, deferred=False, columns=columns)
    tile[-1] = min(4 * width if problem.cost <= 64 else width, power_of_two_from(inner))
    tail[-1] = tile[-1]
    held = max(1, tile[-1] // width)
    tile[blocked] = max(1, min(rows, 2 * _REGISTERS_IN_FLIGHT // held))
    reason = f"{tile[-1]} columns in registers, {tile[blocked]} rows at a time"
    return _host("streaming", tile, width, [reason], tail, blocked, deferred=False)
