"""Rows with rounding errors: each stays within its stated bound, and has NumPy's special values."""

import numpy as np
import pytest
from scalar_reference import EXTENDED_PRECISION, WIDER, floats, pairs, special_values, ulp_error

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.function import Interval, ScalarFunction
from codegen.scalar.numpy_core import NumpyCore, evaluate
from codegen.scalar.table import TABLE

COUNT = 40_000
INEXACT = [row for row in TABLE.values() if row.numpy_name and row.max_ulp != 0]
TRIGONOMETRIC = ["sin", "cos", "tan"]
FLOATS = [
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.float32,
    pytest.param(
        dtypes.float64, marks=pytest.mark.skipif(not EXTENDED_PRECISION, reason="no wider float here to compare with")
    ),
]
# where the results change their nature: exponentials end, reductions change, logarithms and arc functions vanish
HARD_POINTS = [0.25, 0.3465, 0.5, 0.7071, 0.75, 1.0, 1.0397, 1.4142, 1.5708, 2.0, 3.1416, 17.33, 22.0, 37.5, 87.3, 88.7]
HARD_POINTS += [
    103.9,
    126.0,
    149.5,
    708.4,
    709.78,
    744.44,
    745.1,
    1022.0,
    1074.5,
    2999.0,
    3001.0,
    1.5e6,
    2.0**30,
    2.0**60,
]


def reference_of(row: ScalarFunction, *operands: np.ndarray) -> np.ndarray:
    assert row.numpy_name is not None
    wider = WIDER[dtypes.of(operands[0].dtype).name]
    with np.errstate(all="ignore"):
        return np.asarray(getattr(np, row.numpy_name)(*(operand.astype(wider) for operand in operands)))


def around(points: list[float], dtype: DType, width: float, count: int, seed: int) -> np.ndarray:
    """Numbers beside each point and its negative."""
    generator = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        near = np.concatenate([p * (1 + width * generator.uniform(-1, 1, count)) for p in [*points, 0.0]])
        return np.concatenate([near, -near]).astype(dtype.numpy)


def assert_within_bound(row: ScalarFunction, operands: tuple[np.ndarray, ...], scale: np.ndarray | None = None) -> None:
    dtype = dtypes.of(operands[0].dtype)
    result, reference = evaluate(row.name, *operands), reference_of(row, *operands)
    assert result.dtype == operands[0].dtype
    error = ulp_error(result, reference, scale)
    worst = int(np.argmax(error))
    described = f"{[operand[worst] for operand in operands]} gives {result[worst]!r}, exact is {reference[worst]!r}"
    assert error[worst] <= row.ulp_bound(dtype), f"{row.name}: {error[worst]:.3f} units in the last place: {described}"


def assert_special_values_are_numpys(row: ScalarFunction, *operands: np.ndarray) -> None:
    """NaN, infinities and zeros with their signs appear where they appear in NumPy's results.

    Not the zeros of logaddexp: they come from cancellation.
    """
    result, reference = evaluate(row.name, *operands), reference_of(row, *operands).astype(operands[0].dtype)
    wide, wanted = result.astype(np.float64), reference.astype(np.float64)
    special = ~np.isfinite(wanted) | ~np.isfinite(wide)
    if not row.name.startswith("logaddexp"):
        special |= (wanted == 0) | (wide == 0)
    same = (wide == wanted) & (np.signbit(wide) == np.signbit(wanted)) | (np.isnan(wide) & np.isnan(wanted))
    wrong = np.flatnonzero(special & ~same)[:5]
    assert wrong.size == 0, [([operand[i] for operand in operands], result[i], reference[i]) for i in wrong]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("row", [row for row in INEXACT if row.arity == 1], ids=lambda row: row.name)
def test_error_of_unary_row(row: ScalarFunction, dtype: DType) -> None:
    x = np.concatenate(
        [
            floats(dtype, row.domain, COUNT, seed=1),
            around(HARD_POINTS, dtype, 1e-3, 400, seed=2),
            around(HARD_POINTS, dtype, 1e-6, 200, seed=3),
        ]
    )
    assert_within_bound(row, (x,))
    with np.errstate(all="ignore"):
        assert_special_values_are_numpys(row, special_values(dtype))


def powers(dtype: DType, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents whose powers fill the range of the format, bases beside one among them."""
    generator = np.random.default_rng(seed)
    limit = {"float16": 16, "bfloat16": 127, "float32": 127, "float64": 1023}[dtype.name]
    log2 = np.concatenate([generator.uniform(-limit, limit, COUNT), generator.uniform(-1, 1, COUNT)])
    base = np.concatenate(
        [np.exp2(log2), 1 + generator.uniform(-1, 1, COUNT) * 2.0 ** -generator.uniform(1, 20, COUNT)]
    )
    base = base.astype(dtype.numpy)
    with np.errstate(all="ignore"):
        exponent = generator.uniform(-1.1 * limit, 1.1 * limit, base.size) / np.log2(base.astype(np.float64))
        exponent = exponent.astype(dtype.numpy)
    whole = generator.integers(-6, 7, COUNT).astype(dtype.numpy)
    small = generator.uniform(-10, 10, COUNT).astype(dtype.numpy)
    return np.concatenate([base, small]), np.concatenate([exponent, whole])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("row", [row for row in INEXACT if row.arity == 2], ids=lambda row: row.name)
def test_error_of_binary_row(row: ScalarFunction, dtype: DType) -> None:
    values = floats(dtype, Interval(-20, 20), COUNT, seed=4)
    left, right = pairs(values, values, 2 * COUNT, seed=5)
    generator = np.random.default_rng(6)
    with np.errstate(all="ignore"):
        beside = (left.astype(np.float64) * np.exp2(generator.uniform(-3, 3, left.size))).astype(dtype.numpy)
    left, right = np.concatenate([left, left]), np.concatenate([right, beside])
    if "power" in row.name:
        more, exponents = powers(dtype, seed=7)
        left, right = np.concatenate([left, more]), np.concatenate([right, exponents])
    scale = None
    if row.name.startswith("logaddexp"):
        with np.errstate(invalid="ignore"):
            scale = np.fmax(np.abs(left), np.abs(right))
        scale = np.where(np.isfinite(scale), scale, scale.dtype.type(0))
    assert_within_bound(row, (left, right), scale)
    few = special_values(dtype)
    with np.errstate(all="ignore"):
        assert_special_values_are_numpys(row, *pairs(few, few, 0, 0))


@pytest.mark.parametrize("name", TRIGONOMETRIC)
@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
def test_arguments_beside_multiples_of_quarter_turns(name: str, dtype: DType) -> None:
    generator = np.random.default_rng(8)
    multiples = np.concatenate([np.arange(1, 30_000), generator.integers(1, 2**48, 20_000)])
    x = (multiples * (np.longdouble(np.pi) / 2)).astype(dtype.numpy)
    infinity = dtype.numpy.type(np.inf)
    x = np.concatenate([x, np.nextafter(x, infinity), np.nextafter(x, -infinity), -x])
    assert_within_bound(TABLE[name], (x,))


@pytest.mark.skipif(not EXTENDED_PRECISION, reason="no wider float here to compare with")
@pytest.mark.parametrize("name", TRIGONOMETRIC)
def test_huge_arguments(name: str) -> None:
    generator = np.random.default_rng(9)
    x = np.ldexp(generator.uniform(1, 2, 20_000), generator.integers(20, 1024, 20_000))
    # the float64 that comes closest to a multiple of pi/2 (J.-M. Muller, "Elementary Functions", 2006, section 11.2.2)
    x[:2] = 6381956970095103 * 2.0**797, -6381956970095103 * 2.0**797
    assert_within_bound(TABLE[name], (x,))
    assert_within_bound(TABLE[name], (x[np.abs(x) < 1e38].astype(np.float32),))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_results(dtype: type) -> None:
    whole = np.arange(-20, 21)
    exponents = whole.astype(dtype)
    assert evaluate("exp2", exponents).tolist() == (2.0**exponents).tolist()
    assert evaluate("log2", np.ldexp(dtype(1), whole)).tolist() == whole.tolist()
    decades = 10.0 ** np.arange(11)
    assert evaluate("log10", decades.astype(dtype)).tolist() == list(range(11))
    assert evaluate("power", exponents, np.full(41, 2, dtype)).tolist() == (whole**2).tolist()
    assert evaluate("cbrt", np.array([0, 1, 8, 27, 1000, -64], dtype)).tolist() == [0, 1, 2, 3, 10, -4]
    assert evaluate("hypot", np.array([3, 5, 8], dtype), np.array([4, 12, 15], dtype)).tolist() == [5, 13, 17]
    assert evaluate("tanh", np.array([30, -30, 1e30], dtype)).tolist() == [1, -1, 1]


def test_results_stay_in_their_range() -> None:
    x = floats(dtypes.float32, Interval(-30, 30), 200_000, seed=10)
    x = x[~np.isnan(x)]
    assert (np.abs(evaluate("tanh", x)) <= 1).all()
    finite = x[np.isfinite(x)]
    assert (np.abs(evaluate("sin", finite)) <= 1).all()
    assert (np.abs(evaluate("cos", finite)) <= 1).all()
    assert (evaluate("exp", x) >= 0).all()
    assert (evaluate("cosh", x) >= 1).all()


@pytest.mark.parametrize(
    "name", ["exp", "expm1", "log", "log1p", "sin", "tan", "sinh", "tanh", "arctan", "arcsinh", "arctanh", "cbrt"]
)
def test_subnormal_operands_and_results(name: str) -> None:
    for dtype in (dtypes.float32, dtypes.float64):
        if dtype is dtypes.float64 and not EXTENDED_PRECISION:
            continue
        tiny, least = np.finfo(dtype.numpy).tiny, np.finfo(dtype.numpy).smallest_subnormal
        x = np.concatenate([np.arange(1, 200) * least, tiny * np.linspace(0.01, 2, 300)]).astype(dtype.numpy)
        x = np.concatenate([x, np.log(x.astype(np.float64)).astype(dtype.numpy)])
        assert_within_bound(TABLE[name], (x,))


def test_exp_of_the_special_unit_agrees_with_the_definition() -> None:
    generator = np.random.default_rng(5)
    x = np.concatenate(
        [
            generator.uniform(-110, 95, 200_000),
            [-np.inf, np.inf, np.nan, 0.0, -0.0, -87.4, -103.9, -104.1, 88.7, 88.73, 1e30, -1e30, 1e-30],
        ]
    ).astype(np.float32)
    found = evaluate("exp", x, core=NumpyCore(target="nvptx"))
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.exp(x.astype(np.float64))
        rounded = expected.astype(np.float32)
        step = np.maximum(np.spacing(np.abs(rounded)), np.float32(1e-45))
        near = np.abs(found - expected) <= TABLE["exp"].ulp_bound(dtypes.float32) * step
    assert (near | (found == rounded) | (np.isnan(found) & np.isnan(rounded))).all()
