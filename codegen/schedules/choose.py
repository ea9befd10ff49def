"""The choice of a schedule, and of how far a reduction is cut over programs."""

from math import prod

from codegen.schedules.host import schedule_for_host
from codegen.schedules.lanes import schedule_for_lanes
from codegen.schedules.schedule import Problem, Schedule, power_of_two_from, power_of_two_to
from codegen.target import Target


def choose(problem: Problem, target: Target) -> Schedule:
    """The sizes with which a kernel is lowered for a target.

    Parameters
    ----------
    problem : Problem
        The kernel: extents, accesses, work.
    target : Target
        Facts about the machine.

    Returns
    -------
    Schedule
    """
    if target.lanes == 1:
        return schedule_for_host(problem, target)
    return schedule_for_lanes(problem, target)


# What one program reads of a piece: enough that its start and its partial result cost nothing beside it. The host's
# upper bound keeps the chains of additions in one piece short, and lets threads share the work evenly.
_HOST_LEAST_BYTES = 64 * 1024
_HOST_MOST_BYTES = 256 * 1024
_LANES_LEAST_BYTES = 64 * 1024

# Work, see `work_of`, that one thread of the host does in 5 to 10 microseconds: less is done before others take part.
PARALLEL_WORK = 1 << 20
# A cut costs another kernel, and reductions get through more work in a microsecond: they write next to nothing.
_HOST_CUT_WORK = 4 << 20

# Outputs as large as so many of the caches that one core has to itself are written past the caches.
_STREAMED_CACHES = 8

# Programs that a cut aims at, and how many are enough to do without one: a cut costs another kernel, and another walk
# over the data where folds depend on one another.
_PROGRAMS_PER_HOST_CORE = 4
_PROGRAMS_PER_MULTIPROCESSOR = 8
_ENOUGH_PER_MULTIPROCESSOR = 2

# Pieces are multiples of the tiles of all schedules along an axis that is not the last one.
_SHORTEST_PIECE = 64
_MOST_PIECES = 4096


def piece_of(problem: Problem, axis: int, target: Target) -> int:
    """Elements of a piece of a reduced axis, so that enough programs work on it; 0 if it should not be cut.

    Pieces are powers of two, so that few of them occur and arrays of many lengths share code.
    """
    on_host = target.lanes == 1
    extent = problem.extents[axis]
    itemsize = max((access.itemsize for access in problem.accesses if not access.written), default=8)
    least_bytes = _HOST_LEAST_BYTES if on_host else _LANES_LEAST_BYTES
    programs = _programs_of_kept(problem, target)
    wanted = target.cores * (_PROGRAMS_PER_HOST_CORE if on_host else _PROGRAMS_PER_MULTIPROCESSOR)
    enough = wanted if on_host else target.cores * _ENOUGH_PER_MULTIPROCESSOR
    if on_host and work_of(problem) < _HOST_CUT_WORK:
        return 0
    if programs >= enough or problem.points * itemsize < 4 * least_bytes:
        return 0
    bytes_per_index = max(1, problem.points * itemsize // (extent * programs))
    least = power_of_two_from(-(-least_bytes // bytes_per_index))
    piece = max(least, power_of_two_to(max(1, extent * programs // wanted)))
    if on_host:
        piece = min(piece, max(least, power_of_two_to(max(1, _HOST_MOST_BYTES // bytes_per_index))))
    piece = max(piece, _SHORTEST_PIECE, power_of_two_from(-(-extent // _MOST_PIECES)))
    return piece if extent >= 2 * piece else 0


def streams(problem: Problem, target: Target) -> bool:
    """Whether what a host kernel writes will have left the caches before it is read, so that it can as well go past them.

    A line that is written past the caches is not read first: a third less traffic for a kernel with one operand. Measured on
    ``a*x+b`` of float32 that is 1.6 times as fast from 4 MiB on; but a small result may be read again at once from a cache.
    """
    if target.lanes > 1:
        return False
    written = 0
    for access in problem.accesses:
        if access.written:
            points = prod(extent for extent, stride in zip(problem.extents, access.strides, strict=True) if stride)
            written += points * access.itemsize
    return written >= _STREAMED_CACHES * target.cache_bytes


def work_of(problem: Problem) -> float:
    """Bytes that a kernel moves plus its additions, those of wide elements counting more: some 100 take a nanosecond of one
    core, if data come from a cache."""
    moved = sum(access.itemsize for access in problem.accesses)
    return problem.points * (moved + problem.cost * problem.element_bits / 32)


def _programs_of_kept(problem: Problem, target: Target) -> int:
    """Programs if no reduced axis is cut; one of more lanes than a thread block has counts as several."""
    schedule = choose(problem, target)
    counts = []
    for axis in problem.kept_axes:
        block = schedule.tile[axis]
        if schedule.width and axis == problem.rank - 1:
            block = schedule.width
        counts.append(-(-problem.extents[axis] // block))
    return max(1, prod(counts)) * max(1, schedule.layout.lane_count // target.max_lanes_per_program)
