"""Shapes, joins, repetitions, choices and writes at chosen places, against NumPy."""

import warnings

import numpy
import pytest
from hypothesis import strategies

import blockarray as np
from blockarray.testing import (
    Arguments,
    arrays,
    arrays_with_axes,
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


@strategies.composite
def shapes_of_size(draw, size):
    """Shapes of about this many elements: mostly right, with -1 now and then."""
    rest, shape = size, []
    for _ in range(draw(strategies.integers(0, 3))):
        factor = draw(strategies.sampled_from([k for k in range(1, 7) if rest % k == 0] or [1]))
        shape.append(factor)
        rest //= factor
    shape.insert(draw(strategies.integers(0, len(shape))), rest)
    if draw(strategies.booleans()):
        shape[draw(strategies.integers(0, len(shape) - 1))] = draw(strategies.sampled_from([-1, -1, 5, -2]))
    return tuple(shape)


@strategies.composite
def arrays_to_reshape(draw):
    source = draw(arrays(DTYPES, **SMALL))
    return Arguments((source, draw(shapes_of_size(source.size)), draw(strategies.sampled_from("CFA"))))


def test_reshape():
    def program(xp, x, shape, order):
        return with_strides(xp.reshape(x, shape, order=order))

    assert_matches_numpy(program, arrays_to_reshape(), examples=300, check_messages=True)


def test_reshape_is_a_view_where_numpys_is():
    def program(x, shape, order):
        y = x.reshape(shape, order=order)
        x[...] = 1
        return y * 1

    assert_matches_numpy(program, arrays_to_reshape(), examples=100)


def test_reshape_with_and_without_copies():
    x = np.arange(6).reshape(2, 3)
    assert x.reshape(3, 2, copy=True)._cell is not x._cell
    copied = np.reshape(x, (6,), copy=True)
    copied[0] = 9
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="Unable to avoid creating a copy while reshaping"):
        np.reshape(x.T, (6,), copy=False)
    with pytest.raises(ValueError, match="can only specify one unknown dimension"):
        x.reshape(-1, -1)
    assert x.reshape([3, 2]).shape == x.reshape((3, -1)).shape == x.reshape(3, 2).shape == (3, 2)
    x.shape = (3, 2)
    assert x.tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("name", ["ravel", "flatten"])
def test_flat_orders(name):
    def program(x, order):
        y = getattr(x, name)(order)
        x[...] = 1
        return y

    assert_matches_numpy(
        program, arrays(DTYPES, layouts=WRITABLE, **SMALL), strategies.sampled_from("CFAK"), examples=80
    )


@strategies.composite
def permutations(draw):
    source = draw(arrays(DTYPES, **SMALL))
    order = draw(strategies.permutations(range(source.ndim)))
    return Arguments((source, [k - source.ndim if draw(strategies.booleans()) else k for k in order]))


def test_transpose():
    assert_matches_numpy(lambda x, axes: with_strides(x.transpose(axes)), permutations(), examples=80)
    assert_matches_numpy(lambda x: (x.T, x.transpose()), arrays(DTYPES, **SMALL), examples=30)
    for bad in ((0, 0), (0,), (0, 2), (0, 1, 2)):
        with pytest.raises(ValueError) as expected:
            numpy.ones((2, 3)).transpose(bad)
        with pytest.raises(type(expected.value)) as found:
            np.ones((2, 3)).transpose(bad)
        assert str(found.value) == str(expected.value)


AXIS = strategies.integers(-4, 4)


@pytest.mark.parametrize("name", ["swapaxes", "moveaxis", "rollaxis"])
def test_moved_axes(name):
    assert_matches_numpy(name, arrays(DTYPES, **SMALL), AXIS, AXIS, examples=120, check_messages=True)


def test_moveaxis_of_several():
    def program(xp, x):
        return xp.moveaxis(x, (0, -1), (1, 0)), xp.moveaxis(x, [2, 0, 1], [0, 1, 2])

    assert_matches_numpy(program, arrays(DTYPES, (2, 3, 4)), examples=10)
    for a, b in (((0, 0), (1, 2)), ((0, 1), (1,)), ((0, 1), (1, 1))):
        with pytest.raises(ValueError) as expected:
            numpy.moveaxis(numpy.ones((2, 3, 4)), a, b)
        with pytest.raises(ValueError) as found:
            np.moveaxis(np.ones((2, 3, 4)), a, b)
        assert str(found.value) == str(expected.value)


def test_squeeze_and_expand_dims():
    def program(xp, x, axis):
        return with_strides(xp.squeeze(x, axis))

    sides = {"max_side": 2, "min_side": 1, "max_dims": 4}
    axes = strategies.none() | AXIS | strategies.tuples(AXIS, AXIS)
    assert_matches_numpy(program, arrays(DTYPES, **sides), axes, examples=120, check_messages=True)
    assert_matches_numpy(
        "expand_dims", arrays(DTYPES, **SMALL), AXIS | strategies.tuples(AXIS, AXIS), examples=80, check_messages=True
    )


@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
def test_atleast(name):
    assert_matches_numpy(name, arrays(DTYPES, **SMALL), examples=30)
    assert_matches_numpy(name, arrays(DTYPES, **SMALL), 3, [1.5, 2], examples=10)


def test_broadcast():
    shapes = strategies.lists(strategies.integers(0, 3), max_size=4).map(tuple)
    assert_matches_numpy("broadcast_to", arrays(DTYPES, max_side=3), shapes, examples=200, check_messages=True)
    assert_matches_numpy("broadcast_arrays", broadcastable_arrays(3, DTYPES), examples=40)
    with pytest.raises(ValueError, match="read-only"):
        np.broadcast_to(np.arange(3), (2, 3))[0] = 1
    assert_matches_numpy(
        lambda xp, x: xp.broadcast_to(x, (4, 3)).sum(0) + x, arrays("float32", 3, values="moderate"), examples=10
    )


def test_flips():
    assert_matches_numpy("flip", arrays_with_axes(DTYPES, min_dims=0), examples=80)
    for name in ("fliplr", "flipud"):
        assert_matches_numpy(name, arrays(DTYPES, **SMALL), examples=30, check_messages=True)
    assert_matches_numpy(
        "rot90",
        arrays(DTYPES, min_dims=2),
        strategies.integers(-5, 5),
        strategies.sampled_from([(0, 1), (1, 0), (-1, -2), (0, 0), (0, 2), (1, 2), (0, -2)]),
        examples=120,
        check_messages=True,
    )


def test_flip_is_a_view():
    x = np.arange(4) * 1
    y = np.flip(x)
    x[0] = 9
    assert y.tolist() == [3, 2, 1, 9]


# --- other dtypes


def test_astype():
    def program(xp, x, dtype, order):
        return with_strides(x.astype(dtype, order=order))

    targets = strategies.sampled_from(["bool", "int8", "uint8", "int64", "float16", "float32", "float64", float, int])
    assert_matches_numpy(
        program, arrays(DTYPES, values="moderate", **SMALL), targets, strategies.sampled_from("KCFA"), examples=200
    )


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_astype_obeys_casting(casting):
    targets = strategies.sampled_from(["int8", "uint16", "int64", "float32", "float64"])
    assert_matches_numpy(
        lambda x, dtype: x.astype(dtype, casting=casting),
        arrays(DTYPES, 3, values="moderate"),
        targets,
        examples=60,
        check_messages=True,
    )


def test_astype_without_copy():
    x = np.arange(3)
    assert x.astype("int64", copy=False) is x
    assert x.astype("int64") is not x
    y = x.astype("int64")
    x[0] = 7
    assert y.tolist() == [0, 1, 2]
    assert np.arange(6.0).reshape(2, 3).T.astype("float64", order="C", copy=False).strides == (16, 8)
    assert x.astype("complex128").tolist() == [7 + 0j, 1 + 0j, 2 + 0j]
    assert_equal_arrays(np.astype(x, "float32"), numpy.array([7, 1, 2], "float32"))


def test_view_of_bytes():
    x = np.array([1.0, -2.0], dtype="float32")
    assert_equal_arrays(x.view("int32"), numpy.array([1.0, -2.0], "float32").view("int32"))
    assert x.view("uint8").shape == (8,) and x.view("float64").shape == (1,)
    same = x.view()
    same[0] = 5
    assert x.tolist() == [5.0, -2.0] and x.view(x.dtype).base is x
    with pytest.raises(ValueError):
        np.arange(6, dtype="uint8").reshape(2, 3)[:, ::2].view("uint16")


# --- joining


@strategies.composite
def parts_to_join(draw):
    """Arrays that fit along an axis, more often than not."""
    rank = draw(strategies.integers(1, 3))
    shape = [draw(strategies.integers(0, 3)) for _ in range(rank)]
    axis = draw(strategies.integers(-rank, rank))
    parts = []
    for _ in range(draw(strategies.integers(1, 4))):
        own = list(shape)
        if -rank <= axis < rank:
            own[axis] = draw(strategies.integers(0, 3))
        if draw(strategies.integers(0, 20)) == 0:
            own[0] += 1
        parts.append(draw(arrays(DTYPES, tuple(own))))
    return Arguments((parts, draw(strategies.none() | strategies.just(axis))))


def test_concatenate():
    def program(xp, parts, axis):
        found = xp.concatenate(parts, axis=axis)
        return with_strides(found) if all(one.size for one in parts) else found

    assert_matches_numpy(program, parts_to_join(), examples=200, check_messages=True)


def test_concatenate_keywords():
    def program(xp, parts, axis, dtype, casting):
        return xp.concatenate(parts, axis=axis, dtype=dtype, casting=casting)

    assert_matches_numpy(
        program,
        parts_to_join(),
        strategies.sampled_from(["float64", "int32", "float32"]),
        strategies.sampled_from(["same_kind", "unsafe", "safe"]),
        examples=60,
        check_messages=True,
    )
    out = np.zeros(5, "float32")
    assert np.concatenate([np.arange(2), np.arange(3)], out=out) is out
    assert out.tolist() == [0.0, 1.0, 0.0, 1.0, 2.0]
    for keywords in ({"out": np.zeros(4)}, {"out": np.zeros((5, 1))}, {"out": np.zeros(5), "dtype": "float64"}):
        with pytest.raises((ValueError, TypeError)) as expected:
            theirs = {k: v.asnumpy() if isinstance(v, np.ndarray) else v for k, v in keywords.items()}
            numpy.concatenate([numpy.arange(2), numpy.arange(3)], **theirs)
        with pytest.raises(type(expected.value)) as found:
            np.concatenate([np.arange(2), np.arange(3)], **keywords)
        assert str(found.value) == str(expected.value)
    with pytest.raises(ValueError, match="need at least one array to concatenate"):
        np.concatenate([])
    with pytest.raises(ValueError, match="zero-dimensional arrays cannot be concatenated"):
        np.concatenate([np.ones(()), np.ones(())])


def test_concatenate_reads_before_it_writes():
    x = np.arange(6) * 1
    np.concatenate([x[3:], x[:3]], out=x)
    assert x.tolist() == [3, 4, 5, 0, 1, 2]


@pytest.mark.parametrize("name", ["stack", "vstack", "hstack", "dstack", "column_stack", "concat"])
def test_stacks(name):
    equal = strategies.lists(strategies.integers(0, 3), max_size=3).map(tuple).flatmap(
        lambda shape: strategies.lists(arrays(DTYPES, shape), min_size=1, max_size=3)
    )  # fmt: skip
    assert_matches_numpy(name, equal, examples=60, check_messages=True)


def test_stack_axes():
    pair = strategies.lists(arrays(DTYPES, (2, 3)), min_size=2, max_size=2)
    assert_matches_numpy("stack", pair, strategies.integers(-4, 3), examples=40, check_messages=True)
    for bad in ([], [np.ones(2), np.ones(3)]):
        with pytest.raises(ValueError):
            np.stack(bad)


def test_append_and_block():
    def program(xp, x, y):
        return xp.append(x, y), xp.append(x, y, axis=0), xp.block([[x, y], [y, x]]), xp.block([x, 1, 2]) if 0 else None

    assert_matches_numpy(program, arrays(DTYPES, (2, 3)), arrays(DTYPES, (2, 3)), examples=20)
    nested = [[np.ones((2, 2)), np.zeros((2, 1))], [np.arange(3)]]
    hosted = [[numpy.ones((2, 2)), numpy.zeros((2, 1))], [numpy.arange(3)]]
    assert_equal_arrays(np.block(nested), numpy.block(hosted))
    assert_equal_arrays(np.block([1, np.arange(2), 3.5]), numpy.block([1, numpy.arange(2), 3.5]))
    for bad in (
        [[np.ones(2)], np.ones(2)],
        [[np.ones(2), []]],
        [],
        [[np.ones((2, 2)), np.ones((3, 1))]],
        (np.ones(2),),
    ):
        with pytest.raises((ValueError, TypeError)) as found:
            np.block(bad)
        with pytest.raises(type(found.value)):
            numpy.block(_hosted(bad))


def _hosted(value):
    if isinstance(value, list | tuple):
        return type(value)(_hosted(one) for one in value)
    return value.asnumpy() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", ["split", "array_split", "hsplit", "vsplit", "dsplit"])
def test_splits(name):
    cuts = strategies.integers(0, 4) | strategies.lists(strategies.integers(-4, 5), max_size=3)
    assert_matches_numpy(name, arrays(DTYPES, max_side=4), cuts, examples=120)
    if name in ("split", "array_split"):
        assert_matches_numpy(name, arrays(DTYPES, (4, 6)), cuts, AXIS, examples=60)


def test_parts_are_views():
    x = np.arange(6) * 1
    left, right = np.split(x, 2)
    x[0], x[5] = 10, 50
    assert left.tolist() == [10, 1, 2] and right.tolist() == [3, 4, 50]
    first, second = np.unstack(np.arange(6).reshape(3, 2), axis=1)
    assert first.tolist() == [0, 2, 4] and second.tolist() == [1, 3, 5]


# --- repeating, shifting, padding


def test_tile_and_repeat():
    counts = strategies.integers(0, 3)
    assert_matches_numpy(
        "tile", arrays(DTYPES, max_side=3), counts | strategies.lists(counts, max_size=4), examples=120
    )
    assert_matches_numpy(
        "repeat", arrays(DTYPES, max_side=3), counts, strategies.none() | AXIS, examples=120, check_messages=True
    )
    assert_matches_numpy(
        "repeat",
        arrays(DTYPES, (3, 2)),
        strategies.lists(strategies.integers(-1, 3), min_size=1, max_size=3),
        strategies.sampled_from([0, 1, -1]),
        examples=80,
        check_messages=True,
    )
    assert np.repeat(3, 4).tolist() == [3, 3, 3, 3]
    assert np.arange(3).repeat(np.array([1, 0, 2])).tolist() == [0, 2, 2]


def test_repetitions_are_copies():
    x = np.arange(3) * 1
    for found in (np.tile(x, 1), np.tile(x, (1, 1)), np.repeat(x, 1), np.roll(x, 0), np.pad(x, 0)):
        found[...] = 9
    assert x.tolist() == [0, 1, 2]


def test_roll():
    shifts = strategies.integers(-7, 7)
    assert_matches_numpy("roll", arrays(DTYPES, max_side=4), shifts, strategies.none() | AXIS, examples=150)
    assert_matches_numpy(
        "roll",
        arrays(DTYPES, (3, 4)),
        strategies.tuples(shifts, shifts) | shifts,
        strategies.sampled_from([(0, 1), (1, 0), (0, 0), (-1, 0)]),
        examples=60,
    )


PAD_WIDTHS = strategies.integers(0, 5)


@pytest.mark.parametrize(
    "mode", ["constant", "edge", "reflect", "symmetric", "wrap", "empty", "linear_ramp", "maximum", "mean"]
)
def test_pad(mode):
    def program(xp, x, widths):
        found = xp.pad(x, widths, mode=mode)
        return found.shape if mode == "empty" else found

    pairs = strategies.tuples(PAD_WIDTHS, PAD_WIDTHS)
    assert_matches_numpy(
        program,
        arrays(DTYPES, min_dims=1, max_dims=2, max_side=4, values="moderate"),
        PAD_WIDTHS | pairs | strategies.tuples(pairs, pairs),
        examples=80,
        relative_tolerance=1e-3,
    )


def test_pad_keywords():
    def program(xp, x):
        return (
            xp.pad(x, ((1, 2), (0, 3)), constant_values=((1, 2), (3, 4))),
            xp.pad(x, 1, "constant", constant_values=2.6),
            xp.pad(x, (2, 1), "reflect", reflect_type="odd"),
            xp.pad(x, 2, "symmetric", reflect_type="even"),
            xp.pad(x, {0: 1, -1: (0, 2)}),
            xp.pad(x, 2, "maximum", stat_length=1),
        )

    assert_matches_numpy(program, arrays(["float32"][0], (2, 3), values="moderate"), examples=10)
    assert_matches_numpy(lambda xp, x: xp.pad(x, 1, constant_values=(3, 4)), arrays("int8", (2, 3)), examples=5)
    for call in (
        lambda xp: xp.pad(xp.arange(3), -1),
        lambda xp: xp.pad(xp.arange(3), 1.5),
        lambda xp: xp.pad(xp.arange(3), (1, 2, 3)),
        lambda xp: xp.pad(xp.arange(3), 1, "edge", constant_values=1),
        lambda xp: xp.pad(xp.arange(3), 1, "nothing"),
        lambda xp: xp.pad(xp.zeros(0), 1, "reflect"),
    ):
        with pytest.raises((ValueError, TypeError)) as expected:
            call(numpy)
        with pytest.raises(type(expected.value)) as found:
            call(np)
        assert str(found.value) == str(expected.value)


def test_diff():
    matrices = arrays(DTYPES, max_dims=3, values="moderate")
    assert_matches_numpy("diff", matrices, strategies.integers(-1, 3), AXIS, examples=120)
    assert_matches_numpy(
        lambda xp, x: (xp.diff(x, prepend=0), xp.diff(x, append=x), xp.diff(x, axis=0, prepend=x, append=3)),
        arrays("int32", (2, 3), values="moderate"),
        examples=20,
    )


def test_windows():
    def program(xp, x):
        windows = xp.lib.stride_tricks.sliding_window_view
        return (
            windows(x, 2, axis=1).sum(-1),
            windows(x, (2, 2)),
            xp.lib.stride_tricks.as_strided(x, (2,), x.strides[:1]),
        )

    assert_matches_numpy(program, arrays("float64", (3, 4), values="moderate", layouts=["contiguous"]), examples=10)


# --- grids and counting of positions


def test_grids():
    def program(xp, x, y):
        return (
            xp.meshgrid(x, y),
            xp.meshgrid(x, y, indexing="ij"),
            xp.meshgrid(x, y, sparse=True),
            xp.meshgrid(x),
            xp.indices((2, 3)),
            xp.indices((2, 3), dtype="float32", sparse=True),
            xp.ix_([0, 1], x.astype(int)),
            xp.unravel_index(xp.asarray([5, 3]), (2, 3)),
            xp.ravel_multi_index((xp.asarray([1, 0]), xp.asarray([2, 0])), (2, 3)),
        )

    assert_matches_numpy(program, arrays("float32", 3, values="moderate"), arrays("int64", 2), examples=10)
    with pytest.raises(ValueError, match="indexing"):
        np.meshgrid(np.arange(2), indexing="xz")


def test_insertion_and_deletion():
    def program(xp, x):
        return (
            xp.insert(x, 1, 5, axis=1), xp.insert(x, [0, 2], 7), xp.delete(x, 1, axis=0), xp.delete(x, [0, 4]),
            xp.resize(x, (3, 5)), xp.trim_zeros(xp.asarray([0, 1, 0])),
        )  # fmt: skip

    assert_matches_numpy(program, arrays(DTYPES, (2, 3), values="moderate"), examples=15)


def test_arguments_that_are_no_arrays_of_ours():
    values = [[1, 2, 3], [4, 5, 6]]
    for name, rest in (
        ("reshape", ((3, 2),)), ("transpose", ()), ("ravel", ()), ("flip", ()), ("tile", (2,)), ("repeat", (2,)),
        ("roll", (1,)), ("squeeze", ()), ("expand_dims", (0,)), ("swapaxes", (0, 1)), ("diagonal", ()), ("take", ([1],)),
        ("tril", ()), ("diff", ()), ("pad", (1,)), ("clip", (2, 3)), ("trace", ()), ("rot90", ()), ("matrix_transpose", ()),
        ("permute_dims", ((1, 0),)),
    ):  # fmt: skip
        found = getattr(np, name)(values, *rest)
        assert isinstance(found, np.ndarray | numpy.generic), name
        assert_equal_arrays(found, getattr(numpy, name)(values, *rest))
    complex_values = numpy.array([[1j, 2], [3, 4]])
    for name, rest in (
        ("reshape", (4,)), ("transpose", ()), ("concatenate", ()), ("stack", ()), ("roll", (1,)), ("repeat", (2,)),
        ("where", (complex_values, 1)), ("pad", (1,)), ("flip", ()), ("tril", ()), ("take", ([0],)), ("hstack", ()),
        ("vstack", ()), ("array_split", (2,)), ("atleast_3d", ()), ("moveaxis", (0, 1)), ("broadcast_to", ((2, 2, 2),)),
        ("diff", ()), ("diagonal", ()), ("trace", ()), ("squeeze", ()), ("expand_dims", (0,)), ("tile", (2,)), ("rot90", ()),
        ("unstack", ()), ("swapaxes", (0, 1)), ("clip", (0, 2)), ("append", (1,)),
    ):  # fmt: skip
        mask = complex_values.real > 1 if name == "where" else complex_values
        expected = getattr(numpy, name)(mask, *rest)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.HostFallbackWarning)
            found = getattr(np, name)(mask, *rest)
        for one, other in zip(*(r if isinstance(r, list | tuple) else [r] for r in (found, expected)), strict=True):
            assert numpy.array_equal(numpy.asarray(one), other), name
