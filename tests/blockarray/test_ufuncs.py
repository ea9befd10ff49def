"""Every ufunc against NumPy: dtypes, broadcasting, layouts, special values, keyword arguments, operators, errors."""

import operator

import ml_dtypes
import numpy
import pytest
from hypothesis import strategies

import blockarray as np
from blockarray import ufuncs
from blockarray.testing import arrays, assert_equal_arrays, assert_matches_numpy, broadcastable_arrays, scalars
from codegen.scalar.table import TABLE

NUMERIC = ["bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "float32", "float64"]
NAMES = sorted({ufunc.__name__ for ufunc in ufuncs.UFUNCS.values()} - {"isnat"})
# Errors of NumPy's own loops that are larger than ours: the comparison allows both.
WIDE = {"power": 8, "float_power": 8, "tan": 8, "cbrt": 8}


def one_of(*names):
    """Any of some dtypes."""
    return strategies.sampled_from([numpy.dtype(name) for name in names])


def allowed(ufunc):
    """Units in the last place that ours and NumPy's may differ by."""
    worst = 4.0
    for row in ufunc.rows:
        bound = TABLE[row].max_ulp if row in TABLE else 4
        worst = max(worst, 4 + (max(bound.values()) if isinstance(bound, dict) else float(bound)))  # type: ignore[arg-type]
    return max(worst, WIDE.get(ufunc.__name__, 0))


def has_loop(ufunc, *kinds):
    """Whether NumPy takes these dtypes."""
    try:
        ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("name", [name for name in NAMES if getattr(numpy, name).nin == 1])
def test_unary(name):
    ufunc = ufuncs.UFUNCS[name]
    taken = [dtype for dtype in NUMERIC if has_loop(ufunc.numpy, numpy.dtype(dtype))]
    assert_matches_numpy(name, arrays(one_of(*taken)), examples=40, max_ulp=allowed(ufunc))


@pytest.mark.parametrize("name", [name for name in NAMES if getattr(numpy, name).nin == 2 and name != "power"])
def test_binary(name):
    ufunc = ufuncs.UFUNCS[name]
    for dtype in NUMERIC:
        kind = numpy.dtype(dtype)
        if has_loop(ufunc.numpy, kind, kind):
            assert_matches_numpy(
                name,
                broadcastable_arrays(2, dtype),
                examples=12,
                max_ulp=allowed(ufunc),
                # Which of two zeros an extreme is depends on the order in which NumPy's loops meet them.
                signed_zeros=name not in ("maximum", "minimum", "fmax", "fmin"),
            )


def test_power():
    assert_matches_numpy("power", broadcastable_arrays(2, one_of("float32", "float64")), examples=60, max_ulp=8)
    assert_matches_numpy(
        "power",
        arrays(one_of("int8", "int64", "uint16"), (5,)),
        arrays("uint8", (5,), minimum=0, maximum=70),
        examples=30,
    )


@pytest.mark.parametrize("name", ["add", "multiply", "floor_divide", "remainder", "less", "equal", "maximum", "divide"])
def test_mixed_dtypes(name):
    for left in NUMERIC:
        for right in NUMERIC:
            assert_matches_numpy(
                name,
                arrays(left, (3,)),
                arrays(right, (3,)),
                examples=2,
                max_ulp=4,
                signed_zeros=name != "maximum",
            )


@pytest.mark.parametrize("symbol", ["add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "ge", "eq", "ne"])
def test_operators_with_python_numbers(symbol):
    function = getattr(operator, symbol)
    numbers = strategies.one_of(strategies.integers(-3, 3), strategies.sampled_from([0.5, -2.0, 1e10, True]))
    for dtype in ["bool", "int8", "int64", "float16", "float32", "float64"]:
        assert_matches_numpy(lambda x, c: function(x, c), arrays(dtype, (4,)), numbers, examples=12, max_ulp=4)
        assert_matches_numpy(lambda x, c: function(c, x), arrays(dtype, (4,)), numbers, examples=12, max_ulp=4)


def test_strong_scalars_and_arrays_of_numpy():
    assert_matches_numpy(
        lambda x, s: (x + s, s * x, x > s), arrays(one_of("int16", "float32"), (3,)), scalars("float64"), examples=20
    )
    x = np.array([1.0, 2.0], dtype="float32")
    assert (x + numpy.arange(2)).dtype == numpy.float64
    assert isinstance(numpy.arange(2) + x, np.ndarray)


def test_comparison_with_integers_outside_the_dtype():
    values = numpy.array([0, 7, 255], dtype="uint8")
    for symbol in ("lt", "le", "gt", "ge", "eq", "ne"):
        for number in (300, -1, 2**70, -(2**70)):
            function = getattr(operator, symbol)
            assert_equal_arrays(function(np.array(values), number), function(values, number))
            assert_equal_arrays(function(number, np.array(values)), function(number, values))
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for uint8"):
        np.array(values) + 300


def test_bfloat16():
    values = numpy.array([1.0, -2.5, 3.0e38, numpy.nan, 0.0], dtype=ml_dtypes.bfloat16)
    x = np.array(values)
    for name in ("add", "multiply", "divide", "maximum", "less"):
        expected = getattr(numpy, name)(values, values[::-1])
        found = getattr(np, name)(x, x[::-1]).asnumpy()
        assert found.dtype == expected.dtype
        assert numpy.array_equal(found.astype("float32"), expected.astype("float32"), equal_nan=True)
    assert numpy.array_equal(np.exp(x[:2]).asnumpy().astype("f4"), numpy.exp(values[:2]).astype("f4"))


def test_out_where_dtype_casting():
    values = numpy.arange(6, dtype="float32").reshape(2, 3)
    x, out = np.array(values), np.zeros((2, 3), dtype="float32")
    assert np.sqrt(x, out=out) is out
    assert_equal_arrays(out, numpy.sqrt(values))
    expected = numpy.full((2, 3), -1, dtype="float32")
    target = np.array(expected)
    mask = values > 2
    np.add(x, 1, out=target, where=np.array(mask))
    numpy.add(values, 1, out=expected, where=mask)
    assert_equal_arrays(target, expected)
    assert_equal_arrays(np.add(x, 1, dtype="float64"), numpy.add(values, 1, dtype="float64"))
    with pytest.raises(TypeError, match="Cannot cast ufunc 'add' output from dtype"):
        np.add(x, 1, out=np.zeros((2, 3), dtype="int32"))
    assert_equal_arrays(
        np.add(x, 1, out=np.zeros((2, 3), dtype="int32"), casting="unsafe"), (values + 1).astype("int32")
    )
    with pytest.raises(ValueError, match="non-broadcastable output operand"):
        np.add(x, 1, out=np.zeros(3, dtype="float32"))
    with pytest.raises(TypeError):
        np.add(x)


def test_results_keep_the_memory_order():
    values = numpy.arange(24.0).reshape(2, 3, 4)
    x = np.array(values)
    for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)):
        expected = numpy.negative(values.transpose(axes)) + 1
        found = -x.transpose(axes) + 1
        assert found.strides == expected.strides
        assert_equal_arrays(found, expected)


def test_two_outputs():
    assert_matches_numpy("divmod", arrays("float64", (5,)), arrays("float64", (5,)), examples=40)
    assert_matches_numpy("modf", arrays("float32", (5,)), examples=20)
    values = numpy.array([3.5, -8.0])
    quotient, rest = np.zeros(2), np.zeros(2)
    np.divmod(np.array(values), 3, out=(quotient, rest))
    assert_equal_arrays(quotient, values // 3)
    assert_equal_arrays(rest, values % 3)


def test_integer_powers():
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        np.arange(3) ** -1
    with pytest.raises(ValueError, match="Integers to negative integer powers"):
        np.arange(3) ** np.array([1, -1, 2])
    assert_matches_numpy(
        lambda x: (x**2, x**3, x**0, x**1), arrays(one_of("int8", "int64", "float32"), (4,)), examples=20, max_ulp=4
    )
    assert_matches_numpy(
        lambda x: (x**0.5, x**-1, x**2.0), arrays(one_of("float32", "float64"), (4,)), examples=30, max_ulp=4
    )


def test_outer():
    values = numpy.arange(4.0)
    assert_equal_arrays(np.multiply.outer(np.array(values), np.array(values)), numpy.multiply.outer(values, values))


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"operands could not be broadcast together with shapes \(3,\) \(4,\)"):
        np.zeros(3) + np.zeros(4)


def test_every_node_knows_its_line():
    x = np.arange(3.0)
    y = x * 2.0
    file, line = y._cell.node.location
    assert file == __file__
    assert "y = x * 2.0" in open(file, encoding="utf-8").read().splitlines()[line - 1]


@pytest.mark.filterwarnings("ignore::blockarray.HostFallbackWarning")
def test_a_numpy_array_given_as_out_is_the_result():
    x = np.array([1.0, 2.0, 3.0])
    target = numpy.zeros(3)
    assert np.add(x, x, out=target) is target and target.tolist() == [2, 4, 6]
    quotient, rest = numpy.zeros(3), numpy.zeros(3)
    found = np.divmod(x, 2, out=(quotient, rest))
    assert found[0] is quotient and found[1] is rest and rest.tolist() == [1, 0, 1]
    total = numpy.zeros(())
    assert numpy.sum(x, out=total) is total and total == 6


@pytest.mark.filterwarnings("error")
def test_result_type_looks_at_dtypes_alone():
    x = np.array([1.0], dtype="float32")
    assert np.result_type(x, numpy.float64) == numpy.result_type(x, x, "float64") == numpy.float64
    assert np.result_type(x, 3.0) == np.result_type(x.sum(), 3) == numpy.float32
