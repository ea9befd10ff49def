"""Views of other dtypes, what can be set in place, the class itself, and what shares memory: as NumPy."""

import warnings

import numpy
import pytest
from hypothesis import given, settings, strategies

import blockarray as np
from blockarray.testing import assert_equal_arrays

INTEGERS = ["int8", "uint8", "int16", "int32", "uint32", "int64"]


@strategies.composite
def layouts(draw):
    """A function that makes the same view of the memory of an array of 96 bytes, of any dtype."""
    rows = draw(strategies.sampled_from([1, 2, 4]))
    start, step = draw(strategies.integers(0, rows - 1)), draw(strategies.sampled_from([1, 2, -1]))
    return lambda x: x.reshape(rows, -1)[start::step]


@settings(max_examples=80, deadline=None)
@given(strategies.sampled_from(INTEGERS), strategies.sampled_from(INTEGERS), layouts(), strategies.data())
def test_writes_through_views_of_other_dtypes_are_seen_both_ways(first, second, layout, data):
    octets = (numpy.arange(96) % 11).astype("uint8")
    theirs = octets.view(first).copy()
    ours = np.array(theirs)
    views = [layout(ours).view(second), layout(theirs).view(second)]
    assert views[0].shape == views[1].shape and views[0].strides == views[1].strides
    before = [x + x for x in views]
    for _ in range(3):
        target = data.draw(strategies.sampled_from(["view", "whole", "element", "mask", "in place"]))
        number = data.draw(strategies.integers(0, 100))
        for whole, seen in zip((ours, theirs), views, strict=True):
            if target == "view":
                seen[..., ::2] = number
            elif target == "whole":
                whole[::3] = number
            elif target == "element":
                seen[0, -1] = number
            elif target == "mask":
                seen[seen > 50] = number
            else:
                seen += 1
    assert_equal_arrays(*views)
    assert_equal_arrays(ours, theirs)
    assert_equal_arrays(*before)


def test_the_bits_of_floats_are_written_in_place():
    x = np.arange(100_000, dtype="float32")
    remembered = x * 2
    bits = x.view("int32")
    bits |= -(1 << 31)
    assert bits.base is x
    expected = -numpy.arange(100_000, dtype="float32")
    assert_equal_arrays(x, expected)
    x[1:] = 0
    assert bits[0] == -(1 << 31) and not bits[1:].any()
    assert_equal_arrays(remembered, -2 * expected)


def test_elements_of_views_of_other_dtypes():
    x = np.array([1.0, -2.0, 3.0])
    bits, host = x.view("int64"), numpy.array([1.0, -2.0, 3.0]).view("int64")
    assert x[1] == -2.0 and list(x) == [1.0, -2.0, 3.0]  # the elements of the memory are at hand now
    assert bits[1] == host[1] and [int(one) for one in bits] == host.tolist() and bits.item(2) == host[2]
    bits[0] = host[2]
    assert x[0] == 3.0 and list(x) == [3.0, -2.0, 3.0] and bits[0] == host[2]
    numbers = np.arange(5)
    assert [int(one) for one in numbers] == [0, 1, 2, 3, 4] and numbers[3] == 3


def test_views_of_other_dtypes_say_what_is_wrong():
    x = np.arange(9, dtype="uint8")
    with pytest.raises(ValueError, match="expected multiples of 4"):
        x[1:].view("int32")
    with pytest.raises(ValueError, match="must be a divisor of the total size in bytes"):
        x.view("int32")
    with pytest.raises(ValueError, match="the last axis must be contiguous"):
        x[::2].view("int16")
    with pytest.raises(ValueError, match="Changing the dtype of a 0d array"):
        np.array(1.0).view("int8")
    with pytest.raises(ValueError, match="Type must be a sub-type"):
        x.view(type=int)
    seen = x[:8].view("S4")
    assert type(seen) is numpy.ndarray and not seen.flags.writeable
    assert np.float64 is numpy.float64 and (np.arange(3.0).sum()).view("int64") == numpy.float64(3).view("int64")


def test_the_tail_of_memory_that_is_no_whole_element_stays():
    x = np.arange(11, dtype="uint8")
    wide = x[:8].view("float64")
    kept = x + 0
    wide[0] = 1.5
    expected = numpy.arange(11, dtype="uint8")
    expected[:8].view("float64")[0] = 1.5
    assert_equal_arrays(x, expected)
    assert_equal_arrays(kept, numpy.arange(11, dtype="uint8"))


def test_shape_dtype_and_strides_are_set_in_place():
    x = np.arange(6.0)
    y = x[:]
    y.shape = (2, 3)
    y.dtype = "int32"
    assert y.shape == (2, 6) and y.dtype == numpy.int32
    y[0, 1] = 0x40000000
    expected = numpy.arange(6.0)
    expected.view("int32")[1] = 0x40000000
    assert_equal_arrays(x, expected)
    with pytest.raises(ValueError, match="last axis must be contiguous"):
        x[::2].dtype = "int32"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        z = x[::2]
        z.strides = (8,)
        assert_equal_arrays(z, expected[:3])
        with pytest.raises(ValueError, match="not compatible with available memory"):
            x.strides = (16,)
        with pytest.raises(ValueError, match="same length as shape"):
            x.strides = (8, 8)
    with pytest.warns(DeprecationWarning, match="Setting the strides"):
        x.strides = (8,)


@pytest.mark.parametrize(
    "arguments",
    [
        {"shape": (2, 2), "dtype": "float32", "offset": 8, "strides": (16, 4)},
        {"shape": (2, 2), "offset": 8},
        {"shape": (2, 2), "order": "F"},
        {"shape": (2, 2), "dtype": "int8", "strides": (3, 1)},
        {"shape": (7,)},
        {"shape": (2,), "offset": 8, "strides": (48,)},
        {"shape": (2, 2), "strides": (8,)},
    ],
)
def test_the_class_makes_views_of_a_buffer(arguments):
    found = []
    for xp in (np, numpy):
        x = xp.arange(6.0)
        try:
            made = xp.ndarray(buffer=x, **arguments)
        except (TypeError, ValueError) as error:
            found.append((type(error), str(error)))
        else:
            made[0] = 5
            found.append((made.shape, made.strides, str(made.dtype), x.tolist(), made.tolist()))
    assert found[0] == found[1]


def test_the_class_makes_arrays():
    assert np.ndarray((2, 3), "int16").strides == (6, 2)
    assert np.ndarray((2, 3), order="F").strides == (8, 16)
    assert np.ndarray(3, strides=(16,)).strides == (16,)
    copied = np.ndarray((2,), "int16", b"\x01\x00\x02\x00")
    assert copied.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        copied[0] = 1
    with pytest.raises(TypeError, match="use numpy.ndarray"):
        np.ndarray((2,), "S3")


def test_fields_are_views():
    found = []
    for xp in (np, numpy):
        x = xp.arange(6.0)
        x[::2].getfield("int32", 4)[...] = 1074266112
        x[1:].setfield(7, "int16", 0)
        found.append(x.tolist())
        with pytest.raises(ValueError, match="Need 0 <= offset|larger than original|offset must be"):
            x.getfield("int32", 6)
    assert found[0] == found[1]


def overlapping(xp, name, extent):
    x = xp.zeros(extent)
    tricks = xp.lib.stride_tricks
    if name == "windows":
        seen = tricks.sliding_window_view(x, 3, writeable=True)
    else:
        seen = tricks.as_strided(x, (40, extent), (0, 8))
    seen[...] = xp.arange(float(seen.size)).reshape(seen.shape)
    seen += 1
    return x


@pytest.mark.parametrize("name", ["windows", "repeated"])
@pytest.mark.parametrize("extent", [10, 5000])
def test_the_last_value_written_through_a_view_that_repeats_elements_stays(name, extent):
    assert_equal_arrays(overlapping(np, name, extent), overlapping(numpy, name, extent))


def test_iterators_write_back():
    x = np.arange(6.0).reshape(2, 3)
    with np.nditer([x[:, ::2], x[:, :2]], op_flags=[["readwrite"], ["readonly"]]) as elements:
        for first, second in elements:
            first[...] = first * 10 + second
    expected = numpy.arange(6.0).reshape(2, 3)
    with numpy.nditer([expected[:, ::2], expected[:, :2].copy()], op_flags=[["readwrite"], ["readonly"]]) as elements:
        for first, second in elements:
            first[...] = first * 10 + second
    assert_equal_arrays(x, expected)
    for element in np.nditer(x, op_flags=["readwrite"]):
        element[...] = 0
    assert not x.any()
    assert [int(one) for one in np.nditer(np.arange(3))] == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        np.nditer(np.broadcast_to(x, (2, 2, 3)), op_flags=["readwrite"])
    with pytest.raises(TypeError, match="read-only"):
        x.data[0] = 1  # type: ignore[index]


def test_the_flat_iterator():
    for xp in (np, numpy):
        x = xp.arange(12.0).reshape(3, 4).T
        flat = x.flat
        next(flat)
        x.flat[2] = 50
        assert (float(next(flat)), float(next(flat)), flat.index, flat.coords, len(flat)) == (4.0, 50.0, 3, (1, 0), 12)
        taken = x.flat[1:3]
        taken[0] = -1
        assert x.flat[1] == 4
        x.flat[[1, 1, 3]] = [5, 6, 7]
        x.flat[::5] = [1, 2]
        assert x.tolist() == [[1.0, 6.0, 50.0], [7.0, 5.0, 2.0], [2.0, 6.0, 10.0], [3.0, 1.0, 11.0]]


@pytest.mark.parametrize("side", ["fb", "f", "b"])
@pytest.mark.parametrize("values", [[0, 0, 1, 2, 0], [0, 0], [], [[0, 0, 0], [0, 1, 0]]])
def test_trim_zeros_gives_a_view(values, side):
    ours, theirs = np.array(values, "int64"), numpy.array(values, "int64")
    assert_equal_arrays(np.trim_zeros(ours, side), numpy.trim_zeros(theirs, side))
    assert np.trim_zeros(ours, side).base is ours


def test_require():
    x = np.arange(6.0).reshape(2, 3)
    assert np.require(x, None, ["C", "W"]) is x
    assert np.require(x.T, None, "F")._cell is x._cell and np.require(x.T, None, "C").flags.c_contiguous
    assert np.require(x[:1], None, "O").flags.owndata
    with pytest.raises(ValueError, match='both "C" and "F"'):
        np.require(x, None, ["C", "F"])


def test_what_shares_memory():
    x = np.arange(12.0)
    assert np.shares_memory(x, x[3:]) and not np.shares_memory(x[::2], x[1::2])
    assert np.may_share_memory(x[::2], x[1::2]) and not np.may_share_memory(x[:3], x[3:])
    assert np.shares_memory(x[:1], x.view("uint8")[7:9]) and not np.shares_memory(x[:1], x.view("uint8")[8:])
    assert not np.shares_memory(x, x + 0) and not np.shares_memory(x, numpy.arange(12.0))


VIEWS = {
    "expand_dims": lambda xp, x: xp.expand_dims(x, (0, -1)),
    "squeeze": lambda xp, x: xp.squeeze(x[None]),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, -1),
    "rollaxis": lambda xp, x: xp.rollaxis(x, -1),
    "swapaxes": lambda xp, x: xp.swapaxes(x, 0, -1),
    "flip": lambda xp, x: xp.flip(x),
    "rot90": lambda xp, x: xp.rot90(x, 3),
    "diagonal": lambda xp, x: xp.diagonal(x, 1),
    "diag": lambda xp, x: xp.diag(x),
    "array_split": lambda xp, x: xp.array_split(x, 2)[1],
    "ravel": lambda xp, x: x.ravel(),
    "ravel K": lambda xp, x: x.ravel("K"),
    "ravel F": lambda xp, x: x.ravel("F"),
    "flatten K": lambda xp, x: x.flatten("K"),
    "reshape": lambda xp, x: x.reshape(-1, 2),
    "reshape F": lambda xp, x: x.reshape(-1, 2, order="F"),
    "atleast_3d": lambda xp, x: xp.atleast_3d(x),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (3, *x.shape)),
    "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x, xp.zeros((3, *x.shape)))[0],
    "conj": lambda xp, x: x.conj(),
    "real": lambda xp, x: x.real,
    "imag": lambda xp, x: x.imag,
    "flat": lambda xp, x: x.flat[2:],
    "zeros_like": lambda xp, x: xp.zeros_like(x),
    "concatenate": lambda xp, x: xp.concatenate([x, x]),
    "copy": lambda xp, x: x.copy("K"),
    "array": lambda xp, x: xp.array(x, order="F"),
    "astype": lambda xp, x: x.astype("float32"),
    "sum": lambda xp, x: x.sum(0, keepdims=True),
    "mean": lambda xp, x: x.mean(-1, keepdims=True),
    "cumsum": lambda xp, x: x.cumsum(0),
    "add": lambda xp, x: x + x,
    "add F": lambda xp, x: xp.add(x, 1, order="F"),
    "real of": lambda xp, x: xp.real(x),
}
BASES = {
    "rows": lambda xp: xp.arange(24.0).reshape(4, 6).copy(),
    "columns": lambda xp: xp.array(xp.arange(24.0).reshape(4, 6), order="F"),
    "steps": lambda xp: xp.arange(48.0).reshape(4, 12).copy()[::2, 1::3],
    "turned": lambda xp: xp.arange(24.0).reshape(4, 6).copy()[::-1, ::-1],
    "repeated": lambda xp: xp.broadcast_to(xp.arange(6.0), (4, 6)),
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", VIEWS)
def test_layout_flags_and_base(name, base):
    found = []
    for xp in (np, numpy):
        x = BASES[base](xp)
        root = x if x.base is None else x.base
        seen = VIEWS[name](xp, x)
        flags = seen.flags
        places = (flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.owndata, flags.num & 0xFFFF)
        found.append((seen.shape, seen.strides, places, seen.base is None, seen.base is root, seen is x, seen.tolist()))
    assert found[0] == found[1]


def test_divmod_gives_both_results():
    x = np.arange(-5, 5)
    for found, expected in zip(divmod(x, 3), divmod(numpy.arange(-5, 5), 3), strict=True):
        assert_equal_arrays(found, expected)
    for found, expected in zip(divmod(7, x[6:]), divmod(7, numpy.arange(1, 5)), strict=True):
        assert_equal_arrays(found, expected)


def test_arrays_without_axes_fold_over_their_only_axis():
    x = np.array(5)
    assert x.sum(0) == 5 and x.max(-1) == 5 and np.add.reduce(x, 0) == 5
    with pytest.raises(numpy.exceptions.AxisError):
        x.sum(1)
    with pytest.raises(numpy.exceptions.AxisError):
        x.mean(0)


def test_a_moving_average_over_windows_is_one_kernel_without_the_windows():
    x = np.random.default_rng(0).normal(size=5000)
    windows = np.lib.stride_tricks.sliding_window_view(x * 2 + 1, 7)
    moving = windows.mean(axis=-1)
    plan = moving.explain()
    assert len(plan.kernels) == 1 and plan.temporaries == 0
    host = numpy.lib.stride_tricks.sliding_window_view(x.asnumpy() * 2 + 1, 7)
    numpy.testing.assert_allclose(moving.asnumpy(), host.mean(axis=-1), rtol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        windows[0, 0] = 1
