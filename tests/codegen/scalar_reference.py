"""Operands for tests of scalar functions, and errors in units in the last place."""

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.function import Interval
from codegen.scalar.numpy_core import NumpyCore, NumpyValue

# what a function of a wider type stands for: the correct result of a narrower one
WIDER = {"float16": np.float64, "bfloat16": np.float64, "float32": np.float64, "float64": np.longdouble}

EXTENDED_PRECISION = np.finfo(np.longdouble).nmant >= 63

# a machine that has nothing but additions: every replacement runs
BARE = NumpyCore(functions=frozenset())

_FRACTION_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
_LEAST_EXPONENT = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}


def patterns(dtype: DType, count: int, seed: int) -> np.ndarray:
    """All values of a dtype of up to 16 bits; random bit patterns of a wider one."""
    if dtype is dtypes.boolean:
        return np.array([False, True])
    if dtype.bits <= 16:
        return np.arange(2**dtype.bits, dtype=f"uint{dtype.bits}").view(dtype.numpy)
    raw = np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)
    return raw.astype(f"uint{dtype.bits}").view(dtype.numpy)


def special_values(dtype: DType) -> np.ndarray:
    """Zeros, ones, extremes, subnormals, NaN, infinities, and what lies beside them."""
    if dtype.kind == "boolean":
        return np.array([False, True])
    if dtype.kind != "float":
        limits = np.iinfo(dtype.numpy)
        near = [0, 1, 2, 3, 5, 7, 10, 31, 32, 63, 64, 100, limits.max, limits.max - 1, limits.max // 2]
        near += [limits.min, limits.min + 1] + [-number for number in near[1:] if dtype.kind == "signed"]
        return np.unique(np.array([number for number in near if limits.min <= number <= limits.max], dtype.numpy))
    bits, fraction = dtype.bits, _FRACTION_BITS[dtype.name]
    infinity = 2 ** (bits - 1) - 2**fraction
    one = (2 ** (bits - fraction - 2) - 1) << fraction
    magnitudes = [0, 1, 2, 2**fraction - 1, 2**fraction, infinity - 1, infinity, infinity + 2 ** (fraction - 1)]
    magnitudes += [one - 1, one, one + 1, one + 2**fraction, one + 3 * 2 ** (fraction - 1), one - 2**fraction]
    unsigned = np.array(magnitudes + [2 ** (bits - 1) + m for m in magnitudes], f"uint{bits}")
    plain = [0.1, 0.25, 0.7, 2.5, 3.0, 10.0, 100.0, 1e3, 88.0, 89.0, 1e4]
    signed = np.array(plain + [-number for number in plain], np.float64).astype(dtype.numpy)
    return np.concatenate([unsigned.view(dtype.numpy), signed])


def floats(dtype: DType, domain: Interval, count: int, seed: int) -> np.ndarray:
    """Special values, random bit patterns, and evenly spread numbers of the domain near its ends and near zero."""
    generator = np.random.default_rng(seed)
    low, high = max(domain.low, -20.0), min(domain.high, 20.0)
    even = generator.uniform(low, high, count)
    small = np.clip(generator.uniform(-1, 1, count) * 2.0 ** -generator.uniform(0, 30, count), domain.low, domain.high)
    edges = [edge for edge in (low, high, 1.0, 0.0) if domain.low <= edge <= domain.high]
    near = np.concatenate([edge + generator.uniform(-1, 1, count // 4) * 0.1 for edge in edges])
    ordinary = np.concatenate([even, small, np.clip(near, domain.low, domain.high)]).astype(dtype.numpy)
    values = np.concatenate([special_values(dtype), patterns(dtype, count, seed), ordinary])
    # no signalling NaN: C libraries disagree on their powers
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(values), dtype.numpy.type(np.nan), values)


def pairs(values: np.ndarray, others: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of few values, random ones of many."""
    if len(values) * len(others) <= 2**18:
        left, right = np.meshgrid(values, others)
        return left.ravel(), right.ravel()
    generator = np.random.default_rng(seed)
    return generator.choice(values, count), generator.choice(others, count)


def unit_in_last_place(reference: np.ndarray, dtype: DType) -> np.ndarray:
    """Distance of neighbouring numbers of `dtype` at each reference; of 1 where that is not finite."""
    usable = np.where(np.isfinite(reference), np.abs(reference), 1)
    exponent = np.frexp(usable)[1] - 1
    exponent = np.where(usable == 0, _LEAST_EXPONENT[dtype.name], exponent)
    exponent = np.maximum(exponent, _LEAST_EXPONENT[dtype.name]) - _FRACTION_BITS[dtype.name]
    return np.ldexp(np.ones((), reference.dtype), exponent)


def ulp_error(result: np.ndarray, reference: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """Error of results in units in the last place of the reference, or of `scale` where that is larger.

    The reference has more digits. Infinite where one of the two is NaN or infinite and the other does not round to it.
    """
    dtype = dtypes.of(result.dtype)
    with np.errstate(all="ignore"):
        wide = result.astype(reference.dtype)
        unit = unit_in_last_place(reference, dtype)
        if scale is not None:
            unit = np.maximum(unit, unit_in_last_place(scale.astype(reference.dtype), dtype))
        error = np.abs(wide - reference) / unit
        rounded = reference.astype(result.dtype).astype(reference.dtype)
    not_finite = ~np.isfinite(wide) | ~np.isfinite(rounded)
    agree = (wide == rounded) | (np.isnan(wide) & np.isnan(rounded))
    return np.where(not_finite, np.where(agree, 0.0, np.inf), error)


def assert_same(result: np.ndarray, expected: np.ndarray, *operands: np.ndarray, zero_signs: bool = True) -> None:
    """Equal dtypes and values: NaN for NaN, and zeros of the same sign unless that is free."""
    assert result.dtype == expected.dtype
    with np.errstate(all="ignore"):
        same = result == expected
        if dtypes.of(result.dtype).kind == "float":
            wide, wanted = result.astype(np.float64), expected.astype(np.float64)
            same = (wide == wanted) | (np.isnan(wide) & np.isnan(wanted))
            if zero_signs:
                same &= (np.signbit(wide) == np.signbit(wanted)) | np.isnan(wide)
    if same.all():
        return
    wrong = np.flatnonzero(~same)[:5]
    cases = [([operand[i] for operand in operands], "gives", result[i], "not", expected[i]) for i in wrong]
    raise AssertionError(f"{(~same).sum()} of {same.size} differ, such as {cases}")


def array_of(value: object) -> np.ndarray:
    """The array behind a value of the NumPy core."""
    assert isinstance(value, NumpyValue)
    return value.array
