"""Arrays that no memory holds are refused at the call, with NumPy's exception."""

import numpy
import pytest

import blockarray

HUGE = 2**46


def spread(xp, extent=HUGE):
    return xp.broadcast_to(xp.ones(1), extent)


TOO_BIG = {
    "zeros": lambda xp: xp.zeros(HUGE),
    "ones": lambda xp: xp.ones((HUGE, 2), "i1"),
    "empty": lambda xp: xp.empty(HUGE, order="F"),
    "full": lambda xp: xp.full(HUGE, 3),
    "zeros_like": lambda xp: xp.zeros_like(spread(xp)),
    "more bytes than 64 bits count": lambda xp: xp.zeros(2**60),
    "and an axis without extent": lambda xp: xp.zeros((2**62, 4, 0)),
    "arange": lambda xp: xp.arange(HUGE),
    "arange of floats": lambda xp: xp.arange(0.0, HUGE),
    "eye": lambda xp: xp.eye(2**23),
    "repeat": lambda xp: xp.repeat(xp.ones(2), HUGE),
    "repeat along an axis": lambda xp: xp.repeat(xp.ones((2, 3)), HUGE, axis=0),
    "tile": lambda xp: xp.tile(xp.ones(2), HUGE),
    "copy": lambda xp: spread(xp).copy(),
    "array": lambda xp: xp.array(spread(xp)),
    "flatten": lambda xp: spread(xp).flatten(),
    "reshape": lambda xp: xp.broadcast_to(xp.ones((1, 2**10)), (2**36, 2**10)).T.reshape(-1),
    "astype": lambda xp: spread(xp).astype("f4"),
    "concatenate": lambda xp: xp.concatenate([spread(xp), spread(xp)]),
    "stack": lambda xp: xp.stack([spread(xp), spread(xp)]),
    "append": lambda xp: xp.append(spread(xp), 1),
    "unary": lambda xp: -spread(xp),
    "with a number": lambda xp: spread(xp) + 1,
    "broadcast together": lambda xp: spread(xp, (2**23, 1)) * spread(xp, 2**23),
    "outer": lambda xp: xp.multiply.outer(spread(xp, 2**23), spread(xp, 2**23)),
}


@pytest.mark.parametrize("case", TOO_BIG)
def test_arrays_too_big_for_memory_are_refused(case):
    with pytest.raises((MemoryError, ValueError)) as expected:
        TOO_BIG[case](numpy)
    with pytest.raises(type(expected.value)) as found:
        TOO_BIG[case](blockarray)
    # The array that NumPy allocates first may have another shape on the way.
    assert str(found.value).split(" for an array")[0] == str(expected.value).split(" for an array")[0]


def test_what_takes_no_memory_is_not_refused():
    assert spread(blockarray).shape == (HUGE,)
    assert blockarray.zeros((2**40, 0)).shape == (2**40, 0)
    assert spread(blockarray)[:3].copy().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("count", [-1, 0, 3, True, numpy.uint64(2), [2], [-1]])
@pytest.mark.parametrize("extent", [0, 1, 2])
def test_repeats_of_one_count(count, extent):
    try:
        expected = numpy.repeat(numpy.arange(extent), count)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)):
            blockarray.repeat(blockarray.arange(extent), count)
        return
    numpy.testing.assert_array_equal(numpy.asarray(blockarray.repeat(blockarray.arange(extent), count)), expected)
