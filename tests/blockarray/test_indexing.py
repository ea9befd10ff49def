"""Reading and writing through every kind of key, against NumPy."""

import operator

import numpy
import pytest
from hypothesis import strategies
from hypothesis.extra import numpy as drawn_arrays

import blockarray as np
from blockarray.testing import Arguments, arrays, assert_equal_arrays, assert_matches_numpy

DTYPES = strategies.sampled_from(
    [numpy.dtype(name) for name in ("bool", "int8", "uint16", "int64", "float16", "float32", "float64")]
)
INDEX_DTYPES = ["int64", "int8", "uint8", "int32", "uint64"]


@strategies.composite
def integers_for(draw, extent, outside=0.05):
    """An index of an axis, now and then one that is outside."""
    if extent == 0 or draw(strategies.floats(0, 1)) < outside:
        return draw(strategies.sampled_from([extent, -extent - 1, extent + 3]))
    return draw(strategies.integers(-extent, extent - 1))


@strategies.composite
def slices_for(draw, extent):
    bounds = strategies.none() | strategies.integers(-extent - 2, extent + 2)
    step = draw(strategies.sampled_from([None, 1, 2, -1, -2, 3]))
    return slice(draw(bounds), draw(bounds), step)


@strategies.composite
def basic_keys(draw, shape):
    """Integers, slices, ellipses and new axes, in any order."""
    items = []
    for extent in shape[: draw(strategies.integers(0, len(shape)))]:
        items.append(draw(slices_for(extent) | integers_for(extent)))
    for _ in range(draw(strategies.integers(0, 2))):
        items.insert(draw(strategies.integers(0, len(items))), None)
    if draw(strategies.booleans()):
        place = draw(strategies.integers(0, len(items)))
        taken = sum(1 for one in items if one is not None)
        before = sum(1 for one in items[:place] if one is not None)
        items.insert(place, ...)
        # What follows the ellipsis counts from the last axis.
        for position in range(place + 1, len(items)):
            if items[position] is not None:
                extent = shape[len(shape) - taken + before]
                items[position] = draw(slices_for(extent) | integers_for(extent))
                before += 1
    return items[0] if len(items) == 1 and draw(strategies.booleans()) else tuple(items)


@strategies.composite
def index_arrays(draw, extent, shapes):
    shape = draw(strategies.sampled_from(shapes))
    dtype = numpy.dtype(draw(strategies.sampled_from(INDEX_DTYPES)))
    low = -extent if dtype.kind == "i" else 0
    high = max(extent - 1, low)
    if draw(strategies.floats(0, 1)) < 0.03:
        high = extent + 1
    found = draw(drawn_arrays.arrays(dtype, shape, elements=strategies.integers(low, high)))
    return found.tolist() if draw(strategies.integers(0, 3)) == 0 else found


@strategies.composite
def mixed_keys(draw, shape):
    """Index arrays, lists, masks and booleans among basic items."""
    kinds = ["array", "array", "slice", "integer", "mask", "new", "boolean", "ellipsis"]
    common = draw(strategies.sampled_from([[(3,), (1,)], [(2, 3), (3,), (1,), (2, 1)], [(0,), (1,)], [(2,)]]))
    items, axis, has_ellipsis = [], 0, False
    while axis < len(shape):
        kind = draw(strategies.sampled_from(kinds))
        extent = shape[axis]
        if kind == "ellipsis" and not has_ellipsis:
            items.append(...)
            has_ellipsis = True
            axis += draw(strategies.integers(0, len(shape) - axis))
        elif kind == "new" and len(items) < 5:
            items.append(None)
        elif kind == "boolean" and draw(strategies.integers(0, 5)) == 0:
            items.append(draw(strategies.booleans()))
        elif kind == "slice":
            items.append(draw(slices_for(extent)))
            axis += 1
        elif kind == "integer":
            items.append(draw(integers_for(extent, 0.02)))
            axis += 1
        elif kind == "array":
            items.append(draw(index_arrays(extent, common)))
            axis += 1
        elif kind == "mask":
            count = draw(strategies.integers(1, len(shape) - axis))
            extents = list(shape[axis : axis + count])
            if draw(strategies.integers(0, 30)) == 0:
                extents[0] += 1
            items.append(draw(drawn_arrays.arrays("bool", tuple(extents))))
            axis += count
        if kind != "array" and draw(strategies.integers(0, 6)) == 0:
            break
    return items[0] if len(items) == 1 and draw(strategies.booleans()) else tuple(items)


@strategies.composite
def arrays_with_keys(draw, keys, **options):
    source = draw(arrays(DTYPES, max_side=5, **options))
    return Arguments((source, draw(keys(source.shape))))


@strategies.composite
def assignments(draw, keys):
    """An array, a key and a value, which broadcasts to what the key selects more often than not."""
    source, key = draw(arrays_with_keys(keys, layouts=["contiguous", "strided", "reversed", "transposed"]))
    try:
        shape = source[key].shape
    except IndexError:
        shape = ()
    kind = draw(strategies.sampled_from(["number", "array", "row", "list", "wrong", "scalar", "other dtype"]))
    values = "moderate"
    dtype = source.dtype.name
    if kind == "number":
        value = draw(strategies.sampled_from([0, 1, 2.5, True, -3, 300, 1 << 40]))
    elif kind == "scalar":
        value = draw(arrays(dtype, (), values=values))[()]
    elif kind == "array":
        value = draw(arrays(dtype, shape, values=values))
    elif kind == "row":
        value = draw(arrays(dtype, (1, *shape[1:]) if shape else (1, 1), values=values))
    elif kind == "list":
        value = draw(arrays(dtype, shape[-1:], values=values)).tolist()
    elif kind == "wrong":
        value = draw(arrays(dtype, (*shape[:-1], 7), values=values))
    else:
        value = draw(arrays("int8", shape, values=values))
    return Arguments((source, key, value))


def read(x, key):
    found = x[key]
    # The strides of axes that nothing is found along mean nothing.
    strides = [s if n > 1 and found.size else None for n, s in zip(found.shape, found.strides, strict=True)]
    return found, strides


def test_basic_keys():
    assert_matches_numpy(read, arrays_with_keys(basic_keys), examples=300, check_messages=True)


def test_views_see_writes_and_writes_go_through_views():
    def exchange(x, key):
        view = x[key]
        if view.ndim == 0:
            return None
        kept = view * 1
        x[...] = 3
        seen = view * 1
        view[...] = 5
        return kept, seen

    assert_matches_numpy(
        exchange, arrays_with_keys(basic_keys, layouts=["contiguous", "strided", "reversed"]), examples=80
    )


def test_mixed_keys():
    assert_matches_numpy(operator.getitem, arrays_with_keys(mixed_keys), examples=500)


@pytest.mark.parametrize(
    "key",
    [
        ([0, 9],),
        ([-6], 0),
        (0, [1, 3]),
        ([0, 1], [0, 1, 2]),
        (numpy.ones(4, bool),),
        (slice(None), numpy.ones(2, bool)),
        (numpy.ones((5, 2), bool),),
        (numpy.ones((5, 3), bool), 0),
        (numpy.ones(5, bool), [0, 1]),
        (0, 0, 0),
        (9,),
        (0, -4),
        ([[0, 1], [2]],),
        (numpy.array([], float),),
    ],
)
def test_keys_that_do_not_fit(key):
    ours, theirs = np.arange(15).reshape(5, 3), numpy.arange(15).reshape(5, 3)
    with pytest.raises((IndexError, ValueError)) as expected:
        theirs[key]
    for attempt in (lambda: ours[key], lambda: ours.__setitem__(key, 0)):
        with pytest.raises(type(expected.value)) as found:
            attempt()
        assert str(found.value) == str(expected.value)
    assert_equal_arrays(ours, theirs)


def test_keys_on_a_value_that_is_not_computed_yet():
    def later(x, key):
        return (x + x)[key] * 2

    assert_matches_numpy(later, arrays_with_keys(basic_keys, values="moderate"), examples=60)
    assert_matches_numpy(later, arrays_with_keys(mixed_keys, values="moderate"), examples=60)


def test_assignment_through_basic_keys():
    assert_matches_numpy(operator.setitem, assignments(basic_keys), examples=300, check_messages=True)


def test_assignment_through_mixed_keys():
    assert_matches_numpy(operator.setitem, assignments(mixed_keys), examples=300)


def test_assignment_after_which_older_expressions_keep_their_value():
    def program(x, key, value):
        before = x + x
        x[key] = value
        return before, x + x

    assert_matches_numpy(program, assignments(basic_keys), examples=80)
    assert_matches_numpy(program, assignments(mixed_keys), examples=60)


def test_assignment_to_large_arrays_is_recorded():
    values = numpy.arange(60000.0).reshape(200, 300)

    def program(xp, x):
        y = x * 2
        x[10:, ::2] = y[10:, 1::2]
        x[:, 5] = x[:, 6] + 1
        x[x > 50000] = -1
        x[::-1][:3] = x[:3]
        x[..., 0] = xp.arange(200)
        x[0] = 7
        return x, y

    assert_matches_numpy(program, values, examples=1)


def test_elements_of_evaluated_arrays_are_scalars():
    x = np.array(numpy.arange(6, dtype="float32").reshape(2, 3))
    for value in (x[1, 2], x[-1, -1], x.T[2, 1], x[numpy.int64(1), 2], x[1][2], x[(np.asarray(1), 2)]):
        assert value == 5 and value.dtype == numpy.float32
    assert x.device != "cpu" or isinstance(x[0, 0], numpy.float32)  # on a GPU it stays there until it is looked at
    lazy = (x + 1)[1, 2]
    assert lazy.shape == () and hash(lazy) == hash(6.0)


def test_an_element_is_a_value_and_a_view_is_not():
    x = np.arange(5) * 1
    lazy, view = x[1], x[1:2]
    x[1] = 9
    assert int(lazy) == 1 and view.tolist() == [9]


def test_float_keys_are_refused():
    x = np.arange(4)
    for bad in (numpy.array([2.5]), np.array([2.5]), np.array(1.5)):
        with pytest.raises(IndexError, match="arrays used as indices must be of integer"):
            x[bad]
    for bad in (1.0, "a", b"a", object(), [2.5], ([[2.5]],), slice):
        with pytest.raises(IndexError, match="only integers, slices"):
            x[bad]
    with pytest.raises(TypeError, match="slice indices must be integers"):
        x[1.0:]
    with pytest.raises(IndexError, match="single ellipsis"):
        x[..., ...]


def test_lists_with_arrays_of_ours_within():
    x = np.arange(10)
    assert x[[np.asarray(1), x[3]]].tolist() == [1, 3]
    x[1:3] = [x[5], np.asarray(7)]
    assert x.tolist() == [0, 5, 7, 3, 4, 5, 6, 7, 8, 9]
    assert x[x[2] : x[8]].tolist() == [7]


def test_lazy_indices():
    x = np.arange(20) * 3
    index = np.arange(5) * 2 - 3
    assert x[index].tolist() == [51, 57, 3, 9, 15]
    mask = x % 2 == 0
    assert x[mask].tolist() == list(range(0, 60, 6))
    with pytest.raises(IndexError, match="index 20 is out of bounds for axis 0 with size 20"):
        x[index + 17]
    x[index] = index
    expected = numpy.arange(20) * 3
    expected[numpy.arange(5) * 2 - 3] = numpy.arange(5) * 2 - 3
    assert_equal_arrays(x, expected)


def test_last_of_repeated_indices_wins():
    x = np.zeros(4)
    x[[1, 1, 2, 1]] = np.arange(4)
    assert x.tolist() == [0.0, 3.0, 2.0, 0.0]
    x[np.array([1, 1])] += 1
    assert x.tolist() == [0.0, 4.0, 2.0, 0.0]


def test_index_array_that_is_the_array_itself():
    x = np.array([2, 0, 1])
    x[x] = x
    expected = numpy.array([2, 0, 1])
    expected[expected.copy()] = expected.copy()
    assert_equal_arrays(x, expected)


@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [
        ("uint8", 256, OverflowError),
        ("int8", -129, OverflowError),
        ("int32", float("nan"), ValueError),
        ("int64", float("inf"), OverflowError),
        ("float64", "a", ValueError),
        ("float32", 1j, TypeError),
        ("float64", None, None),
        ("float64", [[1.0], [1.0, 2.0]], ValueError),
    ],
)
def test_values_that_do_not_fit(dtype, value, error):
    for key in (2, slice(1, 3), ..., [0, 2]):
        ours, theirs = np.zeros(4, dtype) + np.ones(4, dtype), numpy.ones(4, dtype)
        if error is None:
            ours[key] = value
            theirs[key] = value
        else:
            with pytest.raises(error) as expected:
                theirs[key] = value
            with pytest.raises(error) as found:
                ours[key] = value
            # A ragged list is found out in another place if it is to be an element.
            assert str(found.value).startswith(str(expected.value)[:40])
        assert_equal_arrays(ours, theirs)


def test_read_only_arrays_are_not_written():
    wide = np.broadcast_to(np.arange(3), (2, 3))
    for target in (wide, wide[0], wide[:, 1:], wide.T):
        for key in (0, ..., slice(None), [0]):
            with pytest.raises(ValueError, match="read-only"):
                target[key] = 1
    assert wide.tolist() == [[0, 1, 2], [0, 1, 2]]
    scalar = np.arange(3).sum()
    with pytest.raises(TypeError, match="does not support item assignment"):
        scalar[()] = 1


def test_keys_of_scalars():
    scalar = np.arange(4).sum()
    assert scalar[()] == 6 and scalar[...].shape == () and scalar[None].tolist() == [6]
    copy = scalar[None]
    copy[0] = 1
    assert int(scalar) == 6
    with pytest.raises(IndexError, match="invalid index to scalar variable"):
        scalar[0]


def test_shared_memory_is_not_written():
    theirs = numpy.arange(4.0)
    ours = np.asarray(theirs)
    before = theirs.copy()
    ours[1] = 9
    ours[2:] = 7
    assert_equal_arrays(ours, numpy.array([0.0, 9.0, 7.0, 7.0]))
    assert_equal_arrays(theirs, before)


def test_exchange_through_views_of_one_array():
    for lay in (lambda a: a, lambda a: a[::-1]):
        ours, theirs = np.arange(40) * 1, numpy.arange(40)
        for x in (ours, theirs):
            y = lay(x)
            y[1:] = y[:-1]
            y[:-1], y[1:] = y[1:], y[:-1]
            y[::2] = y[20:][::-1]
        assert_equal_arrays(ours, theirs)


def test_lists_of_views_of_what_is_written():
    x = np.arange(9).reshape(3, 3) * 1
    np.evaluate(x)
    x[:2] = [x[1], x[0]]
    assert x.tolist() == [[3, 4, 5], [0, 1, 2], [6, 7, 8]]
    x[0] = [x[2, 0], 300, x[1][1]]
    assert x[0].tolist() == [6, 300, 1]


def test_writes_at_once_copy_what_others_still_read():
    x = np.array(numpy.arange(6.0))
    later, window = x * 2, x[2:4] + 0
    x[2] = 50
    x[3:] = 7
    x[[0, 1]] = 9
    assert later.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0] and window.tolist() == [2.0, 3.0]
    assert x.tolist() == [9.0, 9.0, 50.0, 7.0, 7.0, 7.0]
