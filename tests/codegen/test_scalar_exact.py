"""Rows whose results are exact, on every dtype that they take, against NumPy's ufuncs bit for bit."""

import numpy as np
import pytest
from scalar_reference import BARE, array_of, assert_same, floats, pairs, patterns, special_values

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.function import ScalarFunction, ScalarValue
from codegen.scalar.numpy_core import NumpyCore, NumpyValue, evaluate
from codegen.scalar.table import TABLE

COUNT = 20_000
EXTREMES = {"maximum", "minimum", "fmax", "fmin"}  # which of two zeros they return is free
DIVISIONS = {"floor_divide", "remainder", "fmod"}


def is_exact(row: ScalarFunction, dtype: DType) -> bool:
    return dtype.kind != "float" or row.max_ulp == 0


def cases(arity: int) -> list:
    return [
        pytest.param(row, dtype, id=f"{row.name}-{dtype}")
        for row in TABLE.values()
        for dtype in dtypes.ALL
        if row.numpy_name and row.arity == arity and row.takes(dtype) and is_exact(row, dtype) and row.name != "ldexp"
    ]


def operands_of(dtype: DType, seed: int) -> np.ndarray:
    if dtype.kind == "float" and dtype.bits > 16:
        return floats(dtype, TABLE["add"].domain, COUNT, seed)
    return np.concatenate([special_values(dtype), patterns(dtype, COUNT, seed)])


def expected_of(row: ScalarFunction, *operands: np.ndarray) -> np.ndarray:
    assert row.numpy_name is not None
    ufunc = getattr(np, row.numpy_name)
    dtype = dtypes.of(operands[0].dtype)
    with np.errstate(all="ignore"):
        if dtype is not dtypes.bfloat16 or row.half == "bits":
            return np.asarray(ufunc(*operands))
        result = np.asarray(ufunc(*(operand.astype(np.float32) for operand in operands)))
        return result.astype(dtype.numpy) if result.dtype == np.float32 else result


@pytest.mark.parametrize(("row", "dtype"), cases(1))
def test_unary_row_equals_numpy(row: ScalarFunction, dtype: DType) -> None:
    x = operands_of(dtype, seed=1)
    result = evaluate(row.name, x)
    assert result.dtype == row.result_dtype(dtype).numpy
    assert_same(result, expected_of(row, x), x)


def binary_operands(row: ScalarFunction, dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    few = special_values(dtype)
    if dtype.bits == 8:
        few = patterns(dtype, 0, 0)
    left, right = pairs(few, few, 2**16, seed=2)
    many = operands_of(dtype, seed=3)
    more, others = pairs(many, operands_of(dtype, seed=4), 2 * COUNT, seed=5)
    if row.name in DIVISIONS and dtype.kind == "float":
        # random bit patterns hardly ever have quotients of ordinary size
        generator = np.random.default_rng(6)
        with np.errstate(all="ignore"):
            near = (more.astype(np.float64) * generator.uniform(-2, 2, more.shape)).astype(dtype.numpy)
            whole = np.round(generator.uniform(-50, 50, COUNT))
            multiples = (whole * 0.7).astype(dtype.numpy), np.full(COUNT, 0.7).astype(dtype.numpy)
        left, right = np.concatenate([left, multiples[0], more]), np.concatenate([right, multiples[1], near])
    left, right = np.concatenate([left, more]), np.concatenate([right, others])
    if row.name == "power":
        right = np.abs(right) if dtype.kind == "signed" else right
        keep = right >= 0
        left, right = left[keep], right[keep]
    return left, right


@pytest.mark.parametrize(("row", "dtype"), cases(2))
def test_binary_row_equals_numpy(row: ScalarFunction, dtype: DType) -> None:
    left, right = binary_operands(row, dtype)
    result = evaluate(row.name, left, right)
    assert result.dtype == row.result_dtype(dtype, dtype).numpy
    assert_same(result, expected_of(row, left, right), left, right, zero_signs=row.name not in EXTREMES)


@pytest.mark.parametrize("dtype", [dtype for dtype in dtypes.ALL if dtype.kind != "boolean"], ids=str)
def test_clip_equals_numpy(dtype: DType) -> None:
    generator = np.random.default_rng(7)
    values = special_values(dtype)
    x, low, high = (generator.choice(values, 5000) for _ in range(3))
    with np.errstate(all="ignore"):
        expected = np.minimum(np.maximum(x, low), high)
    assert_same(evaluate("clip", x, low, high), expected, x, low, high, zero_signs=False)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_where_keeps_bits(dtype: DType) -> None:
    values = special_values(dtype)
    condition = np.arange(len(values)) % 2 == 0
    result = evaluate("where", condition, values, values[::-1].copy())
    expected = np.where(condition, values, values[::-1])
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("exponent_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_ldexp_rounds_once(name: str, exponent_dtype: type) -> None:
    dtype = dtypes.by_name(name)
    x = floats(dtype, TABLE["ldexp"].domain, 8000, seed=8)
    generator = np.random.default_rng(9)
    limits = np.iinfo(exponent_dtype)
    extremes = np.array([0, 1, -1, limits.max, limits.min, 2000, -2000], exponent_dtype)
    for exponent in (generator.integers(-2200, 2200, x.size), generator.integers(-160, 160, x.size)):
        exponent = exponent.astype(exponent_dtype)
        exponent[: extremes.size] = extremes
        generator.shuffle(exponent)
        with np.errstate(all="ignore"):
            assert_same(evaluate("ldexp", x, exponent), np.ldexp(x, exponent), x, exponent)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("rows", "ufunc"), [(("modf_fraction", "modf_integral"), np.modf), (("frexp_mantissa", "frexp_exponent"), np.frexp)]
)
def test_two_output_functions(rows: tuple[str, str], ufunc: np.ufunc, name: str) -> None:
    x = floats(dtypes.by_name(name), TABLE["add"].domain, COUNT, seed=10)
    with np.errstate(all="ignore"):
        results = ufunc(x)
    for row, expected in zip(rows, results, strict=True):
        assert_same(evaluate(row, x), expected, x)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint"])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_rounding_without_instructions(name: str, dtype: DType) -> None:
    fraction_bits = {32: 23, 64: 52}[dtype.bits]
    large = (2.0**fraction_bits + np.arange(-40, 40) * 0.5).astype(dtype.numpy)
    halves = (np.arange(-200, 200) * 0.25).astype(dtype.numpy)
    beside = np.concatenate([np.nextafter(halves, dtype.numpy.type(9e9)), np.nextafter(halves, dtype.numpy.type(-9e9))])
    x = np.concatenate([floats(dtype, TABLE[name].domain, COUNT, seed=11), large, -large, halves, beside])
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    assert_same(evaluate(name, x, core=BARE), expected, x)


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.kind in ("signed", "unsigned")], ids=str)
def test_truncated_division_of_integers(dtype: DType) -> None:
    left, right = binary_operands(TABLE["floor_divide"], dtype)
    right = np.where(right == 0, right.dtype.type(1), right)
    lowest = left == np.iinfo(dtype.numpy).min
    overflows = lowest & (right == -1) if dtype.kind == "signed" else np.zeros(left.shape, bool)
    left, right = left[~overflows], right[~overflows]
    signs = np.where((left < 0) != (right < 0), -1, 1)
    quotients = [s * (abs(int(a)) // abs(int(b))) for a, b, s in zip(left, right, signs.tolist(), strict=True)]
    assert_same(evaluate("truncated_divide", left, right), np.array(quotients, dtype.numpy), left, right)


def test_integer_division_by_zero_and_of_the_lowest() -> None:
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        low = np.iinfo(dtype).min
        a, b = np.array([low, low, 5, 0], dtype), np.array([-1, 0, 0, 0], dtype)
        assert evaluate("floor_divide", a, b).tolist() == [low, 0, 0, 0]
        assert evaluate("truncated_divide", a, b).tolist() == [low, 0, 0, 0]
        assert evaluate("remainder", a, b).tolist() == [0, 0, 0, 0]
        assert evaluate("fmod", a, b).tolist() == [0, 0, 0, 0]


def test_integer_power_wraps_around() -> None:
    base, exponent = [10, 3, -3, 7, 2, 0, 0], [25, 41, 41, 23, 64, 0, 5]
    wrapped = [((b**e + 2**63) % 2**64) - 2**63 for b, e in zip(base, exponent, strict=True)]
    assert evaluate("power", np.array(base), np.array(exponent)).tolist() == wrapped


@pytest.mark.parametrize(
    ("row", "comparison"),
    [
        ("less_signed_unsigned", np.less),
        ("less_equal_signed_unsigned", np.less_equal),
        ("equal_signed_unsigned", np.equal),
    ],
)
def test_comparison_of_signed_and_unsigned(row: str, comparison: np.ufunc) -> None:
    signed, unsigned = pairs(special_values(dtypes.int64), special_values(dtypes.uint64), 0, 0)
    shared = np.arange(20)
    signed, unsigned = np.concatenate([signed, shared]), np.concatenate([unsigned, shared.astype(np.uint64)])
    assert_same(evaluate(row, signed, unsigned), comparison(signed, unsigned), signed, unsigned)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_remainders_of_huge_quotients(dtype: DType) -> None:
    generator = np.random.default_rng(12)
    exponents = generator.integers(-1000, 1000, 4000) if dtype.bits == 64 else generator.integers(-140, 120, 4000)
    largest = 1000 if dtype.bits == 64 else 120
    x = np.ldexp(generator.uniform(1, 2, 4000), np.minimum(np.abs(exponents), largest)).astype(dtype.numpy)
    y = np.ldexp(generator.uniform(1, 2, 4000), exponents - 20).astype(dtype.numpy)
    y[:50] = np.arange(1, 51) * np.finfo(dtype.numpy).smallest_subnormal
    for name in DIVISIONS:
        with np.errstate(all="ignore"):
            assert_same(evaluate(name, x, -y), getattr(np, name)(x, -y), x, -y)


def test_rows_give_the_same_bits_with_and_without_machine_functions() -> None:
    """But for fused multiply-adds, which round once less."""
    bare = NumpyCore(functions=frozenset({"fma"}))
    generator = np.random.default_rng(13)
    for dtype in (np.float16, np.float32, np.float64):
        x, y = generator.normal(0, 100, 3000).astype(dtype), generator.normal(0, 10, 3000).astype(dtype)
        for name in ("exp", "sin", "tanh"):
            assert evaluate(name, x).tobytes() == evaluate(name, x, core=bare).tobytes()
        for name in ("floor_divide", "power", "maximum"):
            assert evaluate(name, x, y).tobytes() == evaluate(name, x, y, core=bare).tobytes()


def test_result_has_the_broadcast_shape() -> None:
    core = NumpyCore()
    assert evaluate("isnan", np.arange(6).reshape(2, 3), core=core).shape == (2, 3)
    assert evaluate("add", np.ones((4, 1)), np.ones((1, 5))).shape == (4, 5)
    assert evaluate("exp", np.float32(0)).shape == ()


class NoUnderflow(NumpyCore):
    """Refuses products that underflow: each costs a processor some hundred cycles."""

    def instruction(self, opcode: str, *values: ScalarValue) -> NumpyValue:
        result = super().instruction(opcode, *values)
        if opcode == "fmul":
            left, right = (array_of(value) for value in values)
            least = np.finfo(result.array.dtype).smallest_normal
            assert not ((np.abs(result.array) < least) & (left != 0) & (right != 0)).any()
        return result


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_that_vanish_do_not_underflow(dtype: type) -> None:
    lowest = {"exp": (-104.5, -746.5), "exp2": (-151.5, -1076.5)}
    for name, limits in lowest.items():
        limit = limits[dtype is np.float64]
        x = np.array([-np.inf, -1e30, 4 * limit, limit, 0.0, 1.0, 20.0], dtype)
        assert evaluate(name, x, core=NoUnderflow()).tolist()[:5] == [0, 0, 0, 0, 1]
