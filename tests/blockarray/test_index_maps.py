"""Index maps against the elements that NumPy's index arithmetic gives."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from blockarray.fusion.index_maps import (
    broadcast_strides,
    covers,
    indices_along_axes,
    is_row_major,
    span,
    split_extents,
    split_strides,
    surely_apart,
    useful_split,
)

SMALL_SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


def elements(offset: int, strides: tuple[int, ...], extents: tuple[int, ...]) -> np.ndarray:
    """The element at every point."""
    total = np.full(extents, offset)
    for axis, stride in enumerate(strides):
        total = total + stride * np.arange(extents[axis]).reshape((-1,) + (1,) * (len(extents) - axis - 1))
    return total


@st.composite
def maps(draw: st.DrawFn, most_rank: int = 2) -> tuple[tuple[int, ...], int, tuple[int, ...], tuple[int, ...]]:
    """Shape of an array, and offset, strides and extents of a map that stays inside it."""
    shape = draw(SMALL_SHAPES)
    size = int(np.prod(shape))
    offset = draw(st.integers(0, size - 1))
    low = high = offset
    strides, extents = [], []
    for _ in range(draw(st.integers(1, most_rank))):
        stride = draw(st.integers(-size, size))
        room = (size - 1 - high) // stride if stride > 0 else low // -stride if stride else 4
        extent = draw(st.integers(1, min(room, 6) + 1))
        low, high = low + min(stride, 0) * (extent - 1), high + max(stride, 0) * (extent - 1)
        strides.append(stride)
        extents.append(extent)
    return shape, offset, tuple(strides), tuple(extents)


def is_affine(index: np.ndarray) -> bool:
    """Whether an index that is known at every point changes by the same step along each axis."""
    for axis in range(index.ndim):
        if index.shape[axis] > 1:
            steps = np.diff(index, axis=axis)
            if (steps != steps.reshape(-1)[0]).any():
                return False
    return True


@settings(max_examples=500, deadline=None)
@given(maps())
def test_indices_along_axes_are_found_exactly_when_they_are_affine(
    case: tuple[tuple[int, ...], int, tuple[int, ...], tuple[int, ...]],
) -> None:
    shape, offset, strides, extents = case
    wanted = np.unravel_index(elements(offset, strides, extents), shape)
    found = indices_along_axes(shape, offset, strides, extents)
    assert (found is not None) == all(is_affine(index) for index in wanted)
    if found is not None:
        for axis, index in enumerate(wanted):
            steps = tuple(column[axis] for column in found.columns)
            np.testing.assert_array_equal(elements(found.offsets[axis], steps, extents), index)


def test_indices_of_known_views() -> None:
    # The diagonal, the other diagonal, and a reversed axis of a 3 by 4 array.
    assert indices_along_axes((3, 4), 0, (5,), (3,)).columns == ((1, 1),)
    assert indices_along_axes((3, 4), 3, (3,), (3,)).columns == ((1, -1),)
    assert indices_along_axes((3, 4), 11, (-4, -1), (3, 4)).offsets == (2, 3)
    # All twelve elements in a row wrap around the columns.
    assert indices_along_axes((3, 4), 0, (1,), (12,)) is None
    # One past the last column: the last point is in the next row.
    assert indices_along_axes((3, 4), 1, (1,), (4,)) is None
    assert indices_along_axes((3, 0), 0, (1,), (0,)).columns == ((0, 0),)
    # What does not vary along an axis without points is still used.
    assert indices_along_axes((3, 4), 6, (0, 4), (0, 2)).offsets == (1, 2)


@settings(max_examples=300, deadline=None)
@given(maps())
def test_useful_split_keeps_the_elements(
    case: tuple[tuple[int, ...], int, tuple[int, ...], tuple[int, ...]],
) -> None:
    shape, offset, strides, extents = case
    split = useful_split(shape, offset, strides, extents)
    if split is None:
        return
    axis, inner = split
    finer = split_extents(extents, axis, inner)
    assert finer[axis] > 1 and finer[axis + 1] == inner > 1
    again = elements(offset, split_strides(strides, axis, inner), finer).reshape(extents)
    np.testing.assert_array_equal(again, elements(offset, strides, extents))


def test_useful_split_separates_rows() -> None:
    assert useful_split((3, 4), 0, (1,), (12,)) == (0, 4)
    assert useful_split((3, 4), 11, (-1,), (12,)) == (0, 4)
    assert useful_split((6, 4), 0, (3, 1), (8, 3)) is None
    assert indices_along_axes((3, 4), 0, split_strides((1,), 0, 4), (3, 4)).columns == ((1, 0), (0, 1))


@settings(max_examples=300, deadline=None)
@given(maps(), st.integers(-3, 3), st.data())
def test_maps_said_to_be_apart_are(
    case: tuple[tuple[int, ...], int, tuple[int, ...], tuple[int, ...]], shift: int, data: st.DataObject
) -> None:
    shape, offset, strides, extents = case
    size = int(np.prod(shape))
    other = tuple(data.draw(st.sampled_from((stride, -stride, 0, 1))) for stride in strides)
    low, high = span(offset + shift, other, extents)
    if low < 0 or high >= size:
        return
    mine = set(elements(offset, strides, extents).reshape(-1).tolist())
    theirs = set(elements(offset + shift, other, extents).reshape(-1).tolist())
    if surely_apart(shape, (offset, strides), (offset + shift, other), extents):
        assert not mine & theirs


def test_windows_that_interleave_are_known_to_be_apart() -> None:
    extents = (4, 2)
    assert surely_apart((4, 5), (0, (5, 2)), (1, (5, 2)), extents)
    assert surely_apart((4, 4), (0, (4, 1)), (2, (4, 1)), extents)
    assert not surely_apart((4, 5), (0, (5, 1)), (1, (5, 1)), extents)
    # The last element of one is the first of the other.
    assert not surely_apart((8,), (0, (1,)), (3, (1,)), (4,))
    assert surely_apart((8,), (0, (1,)), (4, (1,)), (4,))


def test_covers_means_each_element_once() -> None:
    for shape in ((2, 3), (4,), (1, 3)):
        size = int(np.prod(shape))
        for strides in itertools.product((0, 1, 2, 3), repeat=len(shape)):
            varying = tuple(extent if stride else 1 for extent, stride in zip(shape, strides, strict=True))
            seen = elements(0, strides, varying).reshape(-1)
            wanted = sorted(seen.tolist()) == list(range(size))
            assert covers(size, 0, strides, shape) == wanted, (shape, strides)
    assert not covers(4, 1, (1,), (4,))


def test_strides_of_shapes() -> None:
    assert is_row_major((3, 1, 4), (4, 77, 1))
    assert not is_row_major((3, 4), (1, 3))
    assert broadcast_strides((3, 1), (2, 3, 4)) == (0, 1, 0)
    assert broadcast_strides((), (2,)) == (0,)
