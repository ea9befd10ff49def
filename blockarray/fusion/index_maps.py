"""Affine index maps: which element of an array a point of an iteration domain stands for.

An access is a flat map ``offset + sum(point[j] * strides[j])`` into row-major memory. To push it through an operation its index along
each axis of the array is needed: `indices_along_axes` finds it, or says that there is none (the point wraps around an axis).
"""

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from blockarray.graph.nodes import Shape, row_major_strides

Strides = tuple[int, ...]
Extents = tuple[int, ...]


@dataclass(frozen=True)
class AxisIndices:
    """Index along each axis of an array: ``offsets[k] + sum(point[j] * columns[j][k])``."""

    offsets: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]

    def through(self, offset: int, strides: Strides) -> tuple[int, Strides]:
        """The flat map ``offset + sum(index[k] * strides[k])`` over the domain."""
        for index, stride in zip(self.offsets, strides, strict=True):
            offset += index * stride
        found = []
        for column in self.columns:
            total = 0
            for index, stride in zip(column, strides, strict=True):
                if index:
                    total += index * stride
            found.append(total)
        return offset, tuple(found)


@lru_cache(maxsize=16384)
def cached_strides(shape: Shape) -> Strides:
    """Strides, in elements, of a row-major array."""
    return row_major_strides(shape)


def _digits(position: int, strides: Strides) -> list[int]:
    found = []
    for stride in strides:
        index, position = divmod(position, stride)
        found.append(index)
    return found


def _inside(first: int, step: int, extent: int, limit: int) -> bool:
    return 0 <= first + step * (extent - 1) < limit


@lru_cache(maxsize=16384)
def indices_along_axes(shape: Shape, offset: int, strides: Strides, extents: Extents) -> AxisIndices | None:
    """Index along each axis of a row-major array for a flat map, or None if no affine indices describe it.

    If there are any, they are the digits of the element at the origin, and of its neighbours along each axis of the domain: so those
    are taken and then checked over the whole domain.
    """
    rank = len(shape)
    nothing = (0,) * rank
    if 0 in shape:
        return AxisIndices(nothing, (nothing,) * len(extents))
    # An axis without points does not move the map; what does not vary along it is still used.
    weights = cached_strides(shape)
    origin = _digits(offset, weights)
    columns = []
    lowest = list(origin)
    highest = list(origin)
    for stride, extent in zip(strides, extents, strict=True):
        if stride == 0 or extent <= 1:
            columns.append(nothing)
            continue
        neighbour = _digits(offset + stride, weights)
        column = tuple(there - here for there, here in zip(neighbour, origin, strict=True))
        columns.append(column)
        for axis, step in enumerate(column):
            if step > 0:
                highest[axis] += step * (extent - 1)
            elif step < 0:
                lowest[axis] += step * (extent - 1)
    for low, high, limit in zip(lowest, highest, shape, strict=True):
        if low < 0 or high >= limit:
            return None
    return AxisIndices(tuple(origin), tuple(columns))


def useful_split(shape: Shape, offset: int, strides: Strides, extents: Extents) -> tuple[int, int] | None:
    """A domain axis, and the factor of its inner part, whose split lets the flat map have indices along the axes of `shape`.

    That is an axis that walks through whole rows of the array and goes on in the next ones.
    """
    weights = cached_strides(shape)
    if 0 in extents or 0 in shape:
        return None
    origin = _digits(offset, weights)
    for axis, (stride, extent) in enumerate(zip(strides, extents, strict=True)):
        if stride == 0 or extent == 1:
            continue
        neighbour = _digits(offset + stride, weights)
        if all(
            _inside(here, there - here, extent, limit)
            for here, there, limit in zip(origin, neighbour, shape, strict=True)
        ):
            continue
        step = abs(stride)
        for weight in reversed(weights):
            if weight <= step or weight % step:
                continue
            inner = weight // step
            if 1 < inner < extent and extent % inner == 0:
                return axis, inner
    return None


def split_strides(strides: Strides, axis: int, inner: int) -> Strides:
    """Strides after domain axis `axis` was split into an outer axis and an inner one of extent `inner`."""
    stride = strides[axis]
    return (*strides[:axis], stride * inner, *strides[axis:])


def split_extents(extents: Extents, axis: int, inner: int) -> Extents:
    """Extents after domain axis `axis` was split into an outer axis and an inner one of extent `inner`."""
    return (*extents[:axis], extents[axis] // inner, inner, *extents[axis + 1 :])


def is_row_major(shape: Shape, strides: Strides) -> bool:
    """Whether the strides of all axes of extent above 1 are those of a row-major array of this shape."""
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent == 1:
            continue
        if stride != expected:
            return False
        expected *= extent
    return True


def broadcast_strides(shape: Shape, wanted: Shape) -> Strides:
    """Strides of a row-major array of `shape` seen as one of shape `wanted`, to which it broadcasts."""
    missing = len(wanted) - len(shape)
    own = tuple(0 if extent == 1 else stride for extent, stride in zip(shape, cached_strides(shape), strict=True))
    return (0,) * missing + own


def covers(size: int, offset: int, strides: Strides, extents: Extents) -> bool:
    """Whether the map meets each of `size` elements exactly once over the axes of stride other than 0."""
    if offset != 0:
        return False
    expected = 1
    for stride, extent in sorted(zip(strides, extents, strict=True)):
        if stride == 0 or extent == 1:
            continue
        if stride != expected:
            return False
        expected *= extent
    return expected == size


def points(strides: Strides, extents: Extents) -> int:
    """Number of points that can differ: the product of the extents along which the map varies."""
    total = 1
    for stride, extent in zip(strides, extents, strict=True):
        if stride:
            total *= extent
    return total


def span(offset: int, strides: Strides, extents: Extents) -> tuple[int, int]:
    """Lowest and highest element of the map."""
    low = high = offset
    for stride, extent in zip(strides, extents, strict=True):
        if extent == 0:
            continue
        if stride > 0:
            high += stride * (extent - 1)
        else:
            low += stride * (extent - 1)
    return low, high


def _apart(first: int, steps: tuple[int, ...], other: int, other_steps: tuple[int, ...], extents: Extents) -> bool:
    """Whether two maps into one axis can never give one index, whatever the two points are."""
    low, high = span(first, steps, extents)
    other_low, other_high = span(other, other_steps, extents)
    if high < other_low or other_high < low:
        return True
    common = gcd(*steps, *other_steps)
    return common > 1 and (first - other) % common != 0


def surely_apart(shape: Shape, first: tuple[int, Strides], other: tuple[int, Strides], extents: Extents) -> bool:
    """Whether two flat maps into a row-major array of `shape` are known to have no element in common."""
    if 0 in extents or _apart(first[0], first[1], other[0], other[1], extents):
        return True
    mine = indices_along_axes(shape, first[0], first[1], extents)
    theirs = indices_along_axes(shape, other[0], other[1], extents)
    if mine is None or theirs is None:
        return False
    for axis in range(len(shape)):
        steps = tuple(column[axis] for column in mine.columns)
        other_steps = tuple(column[axis] for column in theirs.columns)
        if _apart(mine.offsets[axis], steps, theirs.offsets[axis], other_steps, extents):
            return True
    return False
