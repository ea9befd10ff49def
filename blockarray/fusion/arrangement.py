"""The order of a kernel's axes: the innermost is contiguous in most of the memory traffic, and axes that belong together are one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from blockarray.fusion.index_maps import Extents, Strides
from blockarray.fusion.plan import DomainAxis, Position, Read, RunningFold, Statement, Take, Write

# A strided store takes a whole line of cache to read and to write back, a strided load only to read.
_STORE_WEIGHT = 1.5


def arranged(
    extents: Extents,
    folded: frozenset[int],
    statements: Sequence[Statement],
    writes: Sequence[Write],
    itemsizes: Sequence[int],
) -> tuple[tuple[DomainAxis, ...], tuple[Statement, ...], tuple[Write, ...]]:
    """Order, turn round and merge the axes of a domain.

    Parameters
    ----------
    extents : tuple of int
        In row-major order of what is written.
    folded : frozenset of int
        Axes that are folded over.
    statements, writes
        With strides along `extents`.
    itemsizes : sequence of int
        Bytes of an element of each write.

    Returns
    -------
    axes, statements, writes
    """
    running = any(isinstance(statement, RunningFold) for statement in statements)
    traffic = _traffic(extents, statements, writes, itemsizes)
    order = _order(extents, folded, traffic, running)
    backwards = [] if running else [axis for axis in order if _runs_backwards(axis, traffic)]
    maps = [_strides(statement) for statement in statements] + [write.strides for write in writes]
    groups = _merged(order, extents, folded, [map for map in maps if map is not None], set(backwards))

    def change(offset: int, strides: Strides) -> tuple[int, Strides]:
        own = list(strides)
        for axis in backwards:
            offset += own[axis] * (extents[axis] - 1)
            own[axis] = -own[axis]
        return offset, tuple(own[group[-1]] for group in groups)

    axes = tuple(DomainAxis(prod(extents[axis] for axis in group), group[0] in folded) for group in groups)
    return (
        axes,
        tuple(_changed(statement, change) for statement in statements),
        tuple(_changed_write(write, change) for write in writes),
    )


def _strides(statement: Statement) -> Strides | None:
    match statement:
        case Read(strides=strides) | Position(strides=strides) | Take(rest=strides):
            return strides
    return None


def _changed(statement: Statement, change: Callable[[int, Strides], tuple[int, Strides]]) -> Statement:
    match statement:
        case Read(source=source, dtype=dtype):
            offset, strides = change(statement.offset, statement.strides)
            return Read(source, dtype, offset, strides)
        case Position():
            return Position(*change(statement.offset, statement.strides))
        case Take():
            offset, rest = change(statement.offset, statement.rest)
            return replace(statement, offset=offset, rest=rest)
    return statement


def _changed_write(write: Write, change: Callable[[int, Strides], tuple[int, Strides]]) -> Write:
    offset, strides = change(write.offset, write.strides)
    return Write(write.target, write.value, offset, strides)


# Bytes that an access moves, and its strides.
Traffic = tuple[float, Strides]


def _traffic(
    extents: Extents, statements: Sequence[Statement], writes: Sequence[Write], itemsizes: Sequence[int]
) -> list[Traffic]:
    found: list[Traffic] = []
    for statement in statements:
        if isinstance(statement, Read):
            found.append((float(statement.dtype.itemsize * _touched(statement.strides, extents)), statement.strides))
        elif isinstance(statement, Take):
            found.append((float(statement.dtype.itemsize * _touched(statement.rest, extents)), statement.rest))
    for write, itemsize in zip(writes, itemsizes, strict=True):
        found.append((_STORE_WEIGHT * itemsize * _touched(write.strides, extents), write.strides))
    return found


def _touched(strides: Strides, extents: Extents) -> int:
    return prod(max(extent, 1) for stride, extent in zip(strides, extents, strict=True) if stride)


def _order(extents: Extents, folded: frozenset[int], traffic: list[Traffic], running: bool) -> list[int]:
    rank = len(extents)
    if rank < 2:
        return list(range(rank))
    contiguous = [0.0] * rank
    steps = [0.0] * rank
    for moved, strides in traffic:
        for axis, stride in enumerate(strides):
            if stride:
                steps[axis] += moved * abs(stride)
                if abs(stride) == 1:
                    contiguous[axis] += moved
    if running:
        (innermost,) = folded
    else:
        innermost = max(range(rank), key=lambda axis: (contiguous[axis], -steps[axis], axis))
    rest = [axis for axis in range(rank) if axis != innermost]
    rest.sort(key=lambda axis: -steps[axis])
    return [*rest, innermost]


def _runs_backwards(axis: int, traffic: list[Traffic]) -> bool:
    directions = {strides[axis] > 0 for _, strides in traffic if strides[axis]}
    return directions == {False}


def _merged(
    order: list[int], extents: Extents, folded: frozenset[int], maps: list[Strides], backwards: set[int]
) -> list[list[int]]:
    """Runs of axes, outer to inner, along which every map goes on where the inner axis ends."""
    groups: list[list[int]] = []
    for axis in order:
        if groups:
            outer = groups[-1][-1]
            extent = extents[axis]
            same = (outer in folded) == (axis in folded) and (outer in backwards) == (axis in backwards)
            if same and all(map[outer] == map[axis] * extent for map in maps):
                groups[-1].append(axis)
                continue
        groups.append([axis])
    return groups
