"""The choice of a schedule, and of how far a reduction is cut over programs."""

from math import prod

from codegen.schedules.host import schedule_for_host
from codegen.schedules.lanes import schedule_for_lanes
from codegen.schedules.schedule import Problem, Schedule, power_of_two_from
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


# A piece of a reduction on the host: large against the cost of starting a program, small against the work of a core,
# and short enough that sums of it have short chains.
_HOST_PIECE_BYTES = 256 * 1024
_HOST_LEAST_BYTES = 128 * 1024
_LANES_PIECE_BYTES = 64 * 1024
_PROGRAMS_PER_HOST_CORE = 4
_PROGRAMS_PER_MULTIPROCESSOR = 8
_SHORTEST_COLUMN_PIECE = 64


def piece_of(problem: Problem, axis: int, target: Target) -> int:
    """Elements of a piece of a reduced axis, so that enough programs work on it; 0 if it should not be cut.

    Pieces are powers of two, so that few of them occur and arrays of many lengths share code.
    """
    extent = problem.extents[axis]
    others = max(1, problem.points // max(1, extent))
    itemsize = max((access.itemsize for access in problem.accesses if not access.written), default=8)
    nbytes = problem.points * itemsize
    on_host = target.lanes == 1
    if nbytes < 2 * (_HOST_LEAST_BYTES if on_host else _LANES_PIECE_BYTES):
        return 0
    programs = _programs_of_kept(problem, target)
    wanted = target.cores * (_PROGRAMS_PER_HOST_CORE if on_host else _PROGRAMS_PER_MULTIPROCESSOR)
    if programs >= wanted // 2:
        return 0
    least = (_HOST_PIECE_BYTES if on_host else _LANES_PIECE_BYTES) // itemsize
    per_row = others if not problem.reduced[-1] else 1
    piece = power_of_two_from(max(1, least // per_row))
    pieces_for_all = max(1, -(-wanted // programs))
    share = extent // pieces_for_all
    if on_host:
        smallest = power_of_two_from(max(1, _HOST_LEAST_BYTES // 2 // (itemsize * per_row)))
        while piece > smallest and piece > share:
            piece //= 2
        while -(-extent // piece) > 4096:
            piece *= 2
    else:
        while piece * 2 <= share:
            piece *= 2
    if not problem.reduced[-1] or axis != problem.rank - 1:
        piece = max(piece, _SHORTEST_COLUMN_PIECE if problem.reduced[-1] is False else 1)
    return piece if extent >= 2 * piece else 0


def _programs_of_kept(problem: Problem, target: Target) -> int:
    """Programs if no reduced axis is cut."""
    schedule = choose(problem, target)
    counts = []
    for axis in problem.kept_axes:
        block = schedule.tile[axis]
        if schedule.width and axis == problem.rank - 1:
            block = schedule.width
        counts.append(-(-problem.extents[axis] // block))
    return max(1, prod(counts))
