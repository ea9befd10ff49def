"""ufunc.at, ufunc.reduceat and assignment at positions that repeat: NumPy's results, in NumPy's order."""

import numpy
import pytest
from hypothesis import given, settings, strategies

import blockarray as np
from blockarray.testing import assert_equal_arrays

DTYPES = ["int8", "uint8", "int64", "float32", "float64", "bool"]
FUNCTIONS = ["add", "subtract", "multiply", "maximum", "bitwise_xor", "less", "floor_divide", "copysign"]


@pytest.fixture(autouse=True)
def _native():
    np.set_fallback_policy("error")
    yield
    np.set_fallback_policy("warn")


@strategies.composite
def keys(draw, shape):
    """Indices with repetitions, slices and masks for some axes."""
    length = draw(strategies.integers(1, 6))
    items = []
    for extent in shape:
        kind = draw(strategies.sampled_from(["list", "list", "column", "slice", "integer", "mask"]))
        listed = draw(strategies.lists(strategies.integers(-extent, extent - 1), min_size=length, max_size=length))
        if kind == "list":
            items.append(numpy.array(listed))
        elif kind == "column":
            items.append(numpy.array(listed)[:, None])
        elif kind == "slice":
            items.append(draw(strategies.sampled_from([slice(None), slice(None, None, -2), slice(1, None)])))
        elif kind == "integer":
            items.append(listed[0])
        else:
            mask = numpy.zeros(extent, bool)
            mask[listed[0]] = True
            items.append(mask)
    if draw(strategies.booleans()):
        items.insert(draw(strategies.integers(0, len(items))), None)
    return tuple(items)


def outcome(function, *arguments):
    """The error, or None."""
    try:
        with numpy.errstate(all="ignore"):
            function(*arguments)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        return type(error), str(error)
    return None


@settings(max_examples=150, deadline=None)
@given(
    strategies.sampled_from(FUNCTIONS),
    strategies.sampled_from(DTYPES),
    strategies.sampled_from(DTYPES),
    strategies.sampled_from([(7,), (4, 5), (3, 2, 4)]),
    strategies.data(),
)
def test_at(name, dtype, other, shape, data):
    theirs = (numpy.arange(numpy.prod(shape)) % 9 - 3).astype(dtype).reshape(shape)
    ours = np.array(theirs)
    key = data.draw(keys(shape))
    turned = data.draw(strategies.booleans())
    targets = [(ours.T, theirs.T) if turned else (ours, theirs)][0]
    if turned:
        key = data.draw(keys(shape[::-1]))
    values = (numpy.arange(targets[1][key].size) % 5 + 1).astype(other).reshape(targets[1][key].shape)
    value = data.draw(
        strategies.sampled_from([values, values[..., :1] if values.ndim else values, 2, 1.5, numpy.float32(3)])
    )
    kept = np.maximum(ours, ours)
    before = theirs.copy()
    errors = []
    for xp, target in zip((np, numpy), targets, strict=True):
        errors.append(outcome(getattr(xp, name).at, target, key, value))
    assert errors[0] == errors[1] or (errors[0] and errors[1] and errors[0][0] is errors[1][0])
    assert_equal_arrays(ours, theirs)
    assert_equal_arrays(kept, before)


@settings(max_examples=100, deadline=None)
@given(strategies.sampled_from([(7,), (4, 5), (3, 2, 4)]), strategies.booleans(), strategies.data())
def test_the_last_of_equal_positions_wins(shape, view, data):
    theirs = numpy.arange(numpy.prod(shape)).reshape(shape)
    ours = np.array(theirs)
    ours, theirs = (ours[::-1], theirs[::-1]) if view else (ours, theirs)
    key = data.draw(keys(shape))
    values = numpy.arange(100, 100 + theirs[key].size).reshape(theirs[key].shape)
    ours[key] = values
    theirs[key] = values
    assert_equal_arrays(ours, theirs)


@settings(max_examples=100, deadline=None)
@given(
    strategies.sampled_from(["add", "multiply", "maximum", "bitwise_or", "logical_and"]),
    strategies.sampled_from(["int8", "uint8", "int64", "bool"]),
    strategies.lists(strategies.integers(0, 6), min_size=1, max_size=6),
    strategies.booleans(),
    strategies.sampled_from([0, 1, -1]),
)
def test_reduceat(name, dtype, indices, ascending, axis):
    theirs = (numpy.arange(49) % 5 - 1).astype(dtype).reshape(7, 7)
    if ascending:
        indices = sorted(set(indices))
    found = getattr(np, name).reduceat(np.array(theirs), indices, axis)
    assert_equal_arrays(found, getattr(numpy, name).reduceat(theirs, indices, axis))


def test_reduceat_in_full():
    x = np.arange(8.0)
    out = np.zeros(2)
    assert np.add.reduceat(x, [0, 4], out=out) is out and out.tolist() == [6.0, 22.0]
    assert np.add.reduceat(x, [0, 4], dtype="float32").dtype == numpy.float32
    with pytest.raises(IndexError, match=r"index 8 out-of-bounds in add.reduceat \[0, 8\)"):
        np.add.reduceat(x, [0, 8])


def test_at_says_what_is_wrong_before_it_writes():
    x = np.arange(3)
    for key, value, error in (([0, 3], 1, IndexError), ([0, 1], [1, 2, 3], ValueError)):
        with pytest.raises(error) as ours:
            np.add.at(x, key, value)
        with pytest.raises(error) as theirs:
            numpy.add.at(numpy.arange(3), key, value)
        assert str(ours.value) == str(theirs.value)
    assert x.tolist() == [0, 1, 2]
    view = np.broadcast_to(x, (2, 3))
    with pytest.raises(ValueError, match="read-only"):
        np.add.at(view, 0, 1)


def test_at_is_recorded_and_takes_over_memory():
    x = np.zeros(1000)
    places = numpy.random.default_rng(0).integers(0, 1000, 5000)
    values = np.array(numpy.random.default_rng(1).random(5000))
    np.add.at(x, places, values * 2)
    assert not x._cell.node.is_leaf
    expected = numpy.zeros(1000)
    numpy.add.at(expected, places, values.asnumpy() * 2)
    assert_equal_arrays(x, expected)
    address = x._cell.node.buffer.address
    np.add.at(x, places, 1)
    np.evaluate(x)
    assert x._cell.node.buffer.address == address
    kept = x * 2
    np.add.at(x, places, x[places])
    numpy.add.at(expected, places, 1)
    assert_equal_arrays(kept, expected * 2)
    numpy.add.at(expected, places, expected[places])
    assert_equal_arrays(x, expected)


def test_at_through_a_view_of_another_dtype():
    x = np.arange(4, dtype="int64")
    np.add.at(x.view("uint8"), [0, 8, 8, 9], 1)
    assert x.tolist() == [1, 259, 2, 3]


def test_explaining_at():
    x = np.zeros(4) + 1
    np.add.at(x, numpy.array([1, 1]), np.arange(2.0) * 3)
    text = str(x.explain())
    assert "scatter_add  [2]" in text and "elements are written at positions" in text


def test_what_kernels_cannot_do_goes_through_numpy():
    with pytest.raises(np.HostFallbackError, match="add.at"):
        np.add.at(np.zeros(2), [0], 1j)
