"""Choices, and writes at chosen places, against NumPy."""

import numpy
import pytest
from hypothesis import strategies
from hypothesis.extra import numpy as drawn_arrays

import blockarray as np
from blockarray.testing import (
    Arguments,
    arrays,
    assert_equal_arrays,
    assert_matches_numpy,
    broadcastable_arrays,
)

DTYPES = strategies.sampled_from(
    [numpy.dtype(name) for name in ("bool", "int8", "uint16", "int64", "float16", "float32", "float64")]
)
SMALL = {"max_side": 4, "max_dims": 4}
WRITABLE = ["contiguous", "strided", "reversed", "transposed"]


def with_strides(found):
    """What was found with the strides that mean something."""
    return found, [s if n > 1 and found.size else None for n, s in zip(found.shape, found.strides, strict=True)]


CLIP_BOUNDS = strategies.none() | strategies.sampled_from([0, 1, -2, 2.5, 100])


def test_clip():
    def program(xp, x, low, high):
        return xp.clip(x, low, high), x.clip(low, high)

    # Of 0.0 and -0.0, equal numbers, NumPy's loops give the first or the second by dtype and by lane.
    assert_matches_numpy(
        program, arrays(DTYPES), CLIP_BOUNDS, CLIP_BOUNDS, examples=100, check_messages=True, signed_zeros=False
    )
    assert_matches_numpy(
        lambda xp, x, low, high: xp.clip(x, low, high),
        *[broadcastable_arrays(3, DTYPES)],
        examples=60,
        signed_zeros=False,
    )


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_choose(mode):
    for index in ([[1, 0], [2, 1]], [[1, -1], [4, 1]], [0, 1], 2, [True, False], []):
        found = []
        for xp in (np, numpy):
            choices = [
                xp.zeros((2, 2), "float32") if numpy.ndim(index) == 2 else xp.arange(3.0)[:0].sum(),
                5,
                xp.float32(2),
            ]
            given = xp.array(index, None if numpy.size(index) else int)
            try:
                value = xp.choose(given, choices, mode=mode)
            except ValueError as error:
                found.append(str(error))
            else:
                host = numpy.asarray(value)
                found.append((host.tolist(), host.dtype, host.shape))
        assert found[0] == found[1]


def test_clip_keywords():
    x = np.arange(6, dtype="int8")
    assert np.clip(x, min=2).tolist() == [2, 2, 2, 3, 4, 5]
    assert np.clip(x, max=2).tolist() == [0, 1, 2, 2, 2, 2]
    assert x.clip(min=1, max=3).dtype == numpy.int8
    assert np.clip(x, 4, 2).tolist() == numpy.clip(numpy.arange(6), 4, 2).tolist()
    with pytest.raises(OverflowError):
        np.clip(x, 300, None)
    assert np.clip(x, -300, 300).tolist() == [0, 1, 2, 3, 4, 5]
    out = np.zeros(6, "int8")
    assert np.clip(x, 1, 2, out=out) is out and out.tolist() == [1, 1, 2, 2, 2, 2]
    x.clip(2, 3, out=x)
    assert x.tolist() == [2, 2, 2, 3, 3, 3]
    for call in (lambda xp, a: xp.clip(a, 1, min=2), lambda xp, a: xp.clip(a, 0, 1, min=0, max=1)):
        with pytest.raises((TypeError, ValueError)) as expected:
            call(numpy, numpy.arange(3))
        with pytest.raises(type(expected.value)):
            call(np, np.arange(3))
    nan = numpy.array([numpy.nan, 1.0, 5.0])
    assert_equal_arrays(np.clip(np.array(nan), 2, numpy.nan), numpy.clip(nan, 2, numpy.nan))


def test_where():
    three = broadcastable_arrays(3, DTYPES)
    assert_matches_numpy("where", three, examples=50)
    numbers = strategies.sampled_from([0, 1, 2.5, True, numpy.float32(1.5), numpy.int8(3), -1])
    assert_matches_numpy(
        lambda xp, m, x, n: (xp.where(m, x, n), xp.where(m, n, x), xp.where(m, 1, n)),
        broadcastable_arrays(2, DTYPES),
        numbers,
        examples=40,
    )
    assert_matches_numpy(lambda xp, x: xp.where(x), arrays(DTYPES, min_dims=1), examples=30)
    with pytest.raises(ValueError, match="either both or neither of x and y should be given"):
        np.where(np.ones(3), 1)
    assert np.where(np.zeros(2, bool), np.ones(2, "int8"), 300).tolist() == [44, 44]
    assert_matches_numpy(
        lambda xp, m, x, y: with_strides(xp.where(m, x, y)),
        arrays("bool", (2, 3)),
        arrays("float32", (2, 3)),
        arrays("float32", (2, 3)),
        examples=40,
    )


@strategies.composite
def arrays_with_indices(draw, least=0):
    source = draw(arrays(DTYPES, min_side=least, **SMALL))
    axis = draw(strategies.none() | strategies.integers(-source.ndim - 1, source.ndim))
    extent = source.size if axis is None or not -source.ndim <= axis < source.ndim else source.shape[axis]
    shape = draw(strategies.sampled_from([(), (3,), (2, 2), (0,)]))
    low, high = -extent - draw(strategies.sampled_from([0, 0, 2])), max(extent, 1)
    index = draw(drawn_arrays.arrays("int64", shape, elements=strategies.integers(low, max(high - 1, low))))
    return Arguments((source, index, axis))


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_take(mode):
    def program(xp, x, index, axis):
        return xp.take(x, index, axis=axis, mode=mode), x.take(index, axis, mode=mode)

    # NumPy never ends when it wraps indices of an empty axis.
    assert_matches_numpy(program, arrays_with_indices(int(mode == "wrap")), examples=150)


def test_take_with_out_and_other_indices():
    def program(xp, x):
        out = xp.zeros((2, 2), x.dtype)
        found = xp.take(x, [[0, 1], [2, -1]], out=out, mode="clip")
        return found, out, xp.take(x, 1), xp.take(x, [True, False]), xp.take(x, numpy.uint8(2)), xp.take([4, 5], [1])

    assert_matches_numpy(program, arrays(DTYPES, 4), examples=10)
    with pytest.raises(TypeError, match="Cannot cast array data"):
        np.take(np.arange(3), [0.5])
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
        np.take(np.arange(3), [7])


def test_along_axis():
    def program(xp, x, axis):
        order = xp.argsort(x, axis=axis)
        return xp.take_along_axis(x, order, axis=axis)

    assert_matches_numpy(program, arrays("int64", (2, 3, 4)), strategies.sampled_from([0, 1, 2, -1, None]), examples=20)
    x = np.arange(6).reshape(2, 3)
    np.put_along_axis(x, np.array([[0], [2]]), 9, 1)
    assert x.tolist() == [[9, 1, 2], [3, 4, 9]]
    with pytest.raises(IndexError):
        np.take_along_axis(x, np.array([[0.5]]), 1)


def test_writes_at_chosen_places():
    def program(xp, x):
        xp.put(x, [0, -2, 5], [1, 2])
        y = x * 1
        xp.put(x, [50, -1], 3, mode="clip")
        xp.putmask(x, x > 2, xp.asarray([7, 8, 9]))
        xp.place(x, x == 8, [1])
        z = x * 1
        xp.copyto(x, xp.asarray([1, 0, 1, 0]), where=xp.asarray([True, False, True, False]))
        return x, y, z

    assert_matches_numpy(
        program, arrays(DTYPES, (3, 4), values="moderate", layouts=WRITABLE), examples=60, check_messages=True
    )


def test_copyto_obeys_casting():
    x = np.zeros(3, "int8")
    np.copyto(x, 5)
    np.copyto(x, np.arange(3), where=np.array([True, False, True]))
    assert x.tolist() == [0, 5, 2]
    for source in (np.ones(3), 2.5, numpy.float64(1)):
        with pytest.raises(TypeError, match="Cannot cast"):
            np.copyto(x, source)
    with pytest.raises(ValueError, match="could not broadcast input array from shape"):
        np.copyto(x, np.arange(2))
    with pytest.raises(OverflowError):
        np.copyto(x, 300)


def test_choices():
    def program(xp, x, m):
        return (
            xp.choose(m.astype(int), [x, x * 2]),
            xp.compress([True, False, True], x, axis=0),
            xp.extract(m, x),
            xp.select([x > 1, m], [x, -x], 3),
            xp.nonzero(x),
            xp.flatnonzero(x),
            xp.argwhere(x),
        )

    assert_matches_numpy(program, arrays("int32", (3, 2), minimum=-3, maximum=3), arrays("bool", (3, 2)), examples=30)


def test_select():
    def program(xp, c1, c2, x, y):
        return xp.select([c1, c2], [x, y]), xp.select([c1, c2], [x, 2.5], default=-1), xp.select([c1], [3], y)

    both = {"shape": (2, 3)}
    assert_matches_numpy(
        program, arrays("bool", **both), arrays("bool", 3), arrays(DTYPES, **both), arrays(DTYPES, (2, 1)), examples=60
    )
    for conditions, choices in (([np.ones(2)], [1]), ([np.ones(2, bool)], [1, 2]), ([], [])):
        with pytest.raises((ValueError, TypeError)):
            np.select(conditions, choices)


OFFSETS = strategies.integers(-4, 4)


def test_diagonals():
    matrices = arrays(DTYPES, min_dims=2, max_dims=4, max_side=4)
    places = strategies.sampled_from([(0, 1), (1, 0), (-1, 0), (0, 0), (-2, -1)])
    assert_matches_numpy(
        lambda xp, x, k, axes: with_strides(xp.diagonal(x, k, *axes)), matrices, OFFSETS, places, examples=100,
        check_messages=True,
    )  # fmt: skip
    assert_matches_numpy(
        lambda xp, x, k: (xp.diag(x, k), xp.tril(x, k), xp.triu(x, k)),
        arrays(DTYPES, min_dims=1, max_dims=2),
        OFFSETS,
        examples=80,
    )
    assert_matches_numpy(
        lambda xp, x, k: (xp.tril(x, k), xp.triu(x, k), xp.trace(x, k)),
        arrays(DTYPES, (2, 3, 4), values="moderate"),
        OFFSETS,
        max_ulp=16,
        examples=40,
    )
    for name in ("diagonal", "trace", "diag"):
        with pytest.raises(ValueError) as expected:
            getattr(numpy, name)(numpy.ones(()) if name == "diag" else numpy.ones(3))
        with pytest.raises(ValueError) as found:
            getattr(np, name)(np.ones(()) if name == "diag" else np.ones(3))
        assert str(found.value) == str(expected.value)


def test_a_diagonal_sees_writes_and_is_read_only():
    x = np.zeros((3, 3)) * 1
    line = np.diagonal(x)
    x[1, 1] = 5
    assert line.tolist() == [0.0, 5.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        line[0] = 1
    np.fill_diagonal(x, [1, 2, 3])
    assert line.tolist() == [1.0, 2.0, 3.0]
    np.fill_diagonal(x[1:], 7)
    assert x.tolist() == [[1.0, 0.0, 0.0], [7.0, 2.0, 0.0], [0.0, 7.0, 3.0]]


def test_fill_diagonal():
    def program(xp, x, value):
        xp.fill_diagonal(x, value)
        return x

    cubes = strategies.sampled_from([(3, 3), (2, 4), (5, 2), (2, 2, 2), (3,), (2, 3, 2)])
    assert_matches_numpy(
        program, arrays(DTYPES, cubes, layouts=WRITABLE), strategies.sampled_from([1, [4, 5]]), examples=60
    )
    ours, theirs = np.zeros((7, 3)), numpy.zeros((7, 3))
    np.fill_diagonal(ours, 4, wrap=True)
    numpy.fill_diagonal(theirs, 4, wrap=True)
    assert_equal_arrays(ours, theirs)
