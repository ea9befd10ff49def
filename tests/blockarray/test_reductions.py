"""Reductions and running folds against NumPy, over dtypes, layouts, axes and special values."""

import warnings

import numpy
import pytest
from hypothesis import strategies

import blockarray as np
from blockarray.testing import arrays, arrays_with_axes, assert_equal_arrays, assert_matches_numpy

NUMBERS = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"]


def one_of(*names):
    """Any of some dtypes."""
    return strategies.sampled_from([numpy.dtype(name) for name in names])


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "ptp"])
def test_along_axes(name):
    function = f"{name}"
    if name == "ptp":
        assert_matches_numpy(function, arrays(one_of("int16", "float32"), (4, 5)), examples=15)
        return
    if name == "prod":
        # Small factors: once a product overflows, the order of multiplication decides between infinity and NaN.
        drawn = arrays_with_axes(one_of(*NUMBERS[1:]), minimum=0, maximum=1, min_side=1)
        assert_matches_numpy(
            lambda xp, x, axis: xp.prod(x, axis=axis), drawn, examples=60, max_ulp=64, absolute_tolerance=1e-5
        )
        return
    assert_matches_numpy(
        lambda xp, x, axis: getattr(xp, name)(x, axis=axis),
        # NumPy squares the deviations of float16 in float16, which overflows; here they are float32.
        arrays_with_axes(
            one_of(*([n for n in NUMBERS if n != "float16"] if name in ("var", "std") else NUMBERS)),
            values="moderate",
            min_side=1,
        ),
        examples=60,
        max_ulp=64,
        relative_tolerance=1e-3,
        absolute_tolerance=1e-6,
    )


@pytest.mark.parametrize("name", ["argmax", "argmin", "cumsum", "cumprod"])
def test_along_one_axis(name):
    assert_matches_numpy(
        lambda xp, x, axis: getattr(xp, name)(x, axis=axis),
        arrays_with_axes(
            one_of("bool", "int8", "int64", "float32", "float64"), values="moderate", several=False, min_side=1
        ),
        examples=60,
        max_ulp=64,
        relative_tolerance=1e-4,
        absolute_tolerance=1e-6,
    )


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "any", "all"])
def test_special_values_come_through(name):
    assert_matches_numpy(
        lambda xp, x: getattr(xp, name)(x), arrays(one_of("float32", "float64"), (7,)), examples=40, signed_zeros=False
    )


@pytest.mark.parametrize("shape", [(1,), (1000,), (3, 70000), (70000, 3), (2, 3, 501), (300, 257), (1, 1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_sizes_between_the_nice_ones(shape, dtype):
    values = numpy.random.default_rng(3).integers(-9, 9, shape).astype(dtype)
    x = np.array(values)
    for axis in (None, 0, -1):
        for name in ("sum", "max", "argmin", "cumsum"):
            assert_equal_arrays(getattr(x, name)(axis=axis), getattr(values, name)(axis=axis), max_ulp=0)
        found, exact = x.var(axis=axis).asnumpy(), values.astype("float64").var(axis=axis)
        # NumPy's own sums along an outer axis are not pairwise, so its variance is no oracle to the last digits.
        assert numpy.allclose(found, exact, rtol=1e-5 if dtype == "float32" else 1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_where_and_initial(name):
    assert_matches_numpy(
        lambda xp, x, m, start: getattr(xp, name)(x, axis=-1, where=m, initial=start, keepdims=True),
        arrays(one_of("int32", "float64"), (3, 4), values="moderate"),
        arrays("bool", (3, 4)),
        strategies.integers(-3, 3),
        examples=30,
        max_ulp=8,
    )


def test_moments_with_where_and_ddof():
    assert_matches_numpy(
        lambda xp, x, m: (xp.mean(x, axis=1, where=m), xp.var(x, axis=1, where=m, ddof=1), xp.std(x, ddof=1)),
        arrays(one_of("float32", "float64"), (3, 6), values="moderate"),
        strategies.just(numpy.array([[True] * 3 + [False] * 3] * 3)),
        examples=30,
        relative_tolerance=1e-3,
        absolute_tolerance=1e-4,
    )


def test_out_and_dtype():
    values = numpy.arange(12, dtype="int8").reshape(3, 4)
    x, out = np.array(values), np.zeros(4, "int64")
    assert np.sum(x, axis=0, out=out) is out
    assert_equal_arrays(out, values.sum(axis=0))
    assert_equal_arrays(x.sum(dtype="float32"), values.sum(dtype="float32"))
    assert_equal_arrays(x.mean(dtype="float32", axis=1), values.mean(dtype="float32", axis=1))
    with pytest.raises(ValueError, match="wrong shape"):
        np.sum(x, axis=0, out=np.zeros(3, "int64"))


def test_errors_are_numpys():
    empty, matrix = np.zeros((0, 2)), np.ones((2, 3))
    for name in ("max", "min"):
        with pytest.raises(ValueError, match="zero-size array to reduction operation"):
            getattr(empty, name)()
        with pytest.raises(ValueError, match="zero-size array"):
            getattr(empty, name)(axis=0)
        assert getattr(empty, name)(axis=1).shape == (0,)
    with pytest.raises(ValueError, match="attempt to get argmax of an empty sequence"):
        empty.argmax()
    for bad in (2, -3, (0, 2)):
        with pytest.raises(numpy.exceptions.AxisError):
            matrix.sum(axis=bad)
    with pytest.raises(ValueError, match="duplicate value in 'axis'"):
        matrix.sum(axis=(0, 0))
    with pytest.raises(TypeError):
        matrix.sum(axis=1.5)


def test_reduce_accumulate_of_other_ufuncs():
    values = numpy.array([[6, 4, 9], [3, 8, 12]])
    x = np.array(values)
    for name in ("gcd", "lcm", "bitwise_or", "bitwise_and", "bitwise_xor", "maximum", "add", "logical_and"):
        for axis in (0, 1) if name == "lcm" else (0, 1, None):
            assert_equal_arrays(getattr(np, name).reduce(x, axis=axis), getattr(numpy, name).reduce(values, axis=axis))
        assert_equal_arrays(getattr(np, name).accumulate(x, axis=1), getattr(numpy, name).accumulate(values, axis=1))
    halves = values / 7
    assert_equal_arrays(np.hypot.reduce(np.array(halves), axis=1), numpy.hypot.reduce(halves, axis=1), max_ulp=4)


def test_half_precision_accumulates_wider():
    x = np.full(2**17, 1e-4, dtype="float16")
    unit = float(numpy.float16(1e-4))
    assert abs(float(x.mean()) - unit) < 2e-2 * unit
    assert x.mean().dtype == numpy.float16
    assert abs(float(x.sum()) - unit * 2**17) < 2e-3 * unit * 2**17


def test_long_sums_keep_their_digits():
    values = numpy.random.default_rng(0).random(3_000_000).astype("float32")
    exact = values.astype("float64").sum()
    assert abs(float(np.array(values).sum()) - exact) < 3e-7 * exact
    rows = values.reshape(3, 1_000_000)
    error = numpy.abs(np.array(rows).sum(axis=1).asnumpy() - rows.astype("float64").sum(axis=1))
    assert (error < 3e-7 * rows.astype("float64").sum(axis=1)).all()


@pytest.mark.parametrize("name", ["sum", "max", "any", "prod", "mean", "std", "cumsum"])
@pytest.mark.parametrize("axis", [0, -1, 1, (), (0,)])
def test_axes_of_what_has_none(name, axis):
    def outcome(xp):
        try:
            return float(numpy.asarray(getattr(xp, name)(5, axis=axis)).sum())
        except Exception as error:
            return type(error), str(error)

    assert outcome(np) == outcome(numpy)


def test_divmod_gives_both():
    for a, b in [(numpy.array([7, -7]), 2), (7, numpy.array([2, -3])), (numpy.array([7.5]), numpy.array([-2.0]))]:
        ours = divmod(*(np.array(one) if isinstance(one, numpy.ndarray) else one for one in (a, b)))
        assert type(ours) is tuple
        for found, expected in zip(ours, divmod(a, b), strict=True):
            assert_equal_arrays(found, expected)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "cumsum"])
@pytest.mark.parametrize("values", [[0.5, 0.5, 2.25], [True, True, False], [1, 300, 2]], ids=str)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "bool", "float64"])
def test_folds_into_an_out_of_another_dtype(name, values, dtype):
    def outcome(xp):
        out = xp.zeros(3 if name == "cumsum" else (), dtype)
        try:
            getattr(xp, name)(xp.array(values), out=out)
        except TypeError:
            return TypeError
        return numpy.asarray(out).tolist()

    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = outcome(np), outcome(numpy)
    assert found == (expected if expected is TypeError else pytest.approx(expected, rel=1e-6))
