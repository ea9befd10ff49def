"""Conversions between all dtypes, against NumPy's astype over whole arrays."""

import platform

import ml_dtypes
import numpy as np
import pytest
from scalar_reference import BARE, array_of, assert_same, floats, patterns, special_values

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar import half
from codegen.scalar.casts import cast
from codegen.scalar.function import Interval
from codegen.scalar.numpy_core import NumpyCore

LANES = 64  # NumPy converts what is left over from whole vectors by other instructions


def converted(values: np.ndarray, dtype: DType, core: NumpyCore) -> np.ndarray:
    return array_of(cast(core, core.value(values), dtype))


def operands_of(dtype: DType, seed: int) -> np.ndarray:
    if dtype.kind != "float":
        values = np.concatenate([special_values(dtype), patterns(dtype, 4000, seed)])
    else:
        generator = np.random.default_rng(seed)
        limits = [2.0**k + d for k in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, -0.5, 0, 0.5, 1)]
        spread = generator.uniform(-1, 1, 3000) * 2.0 ** generator.uniform(0, 70, 3000)
        with np.errstate(over="ignore"):
            more = np.concatenate([limits, np.negative(limits), spread]).astype(dtype.numpy)
        values = np.concatenate([floats(dtype, Interval(), 3000, seed), more])
    return np.resize(values, -(-values.size // LANES) * LANES)


def fits(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Where a float's integral part is a number of the integer type."""
    limits = np.iinfo(dtype.numpy)
    whole = np.trunc(values.astype(np.longdouble))
    return (whole >= limits.min) & (whole <= limits.max)


@pytest.mark.parametrize("core", [NumpyCore(), BARE], ids=["machine", "bits"])
@pytest.mark.parametrize("target", dtypes.ALL, ids=str)
@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
def test_cast_equals_astype(source: DType, target: DType, core: NumpyCore) -> None:
    values = operands_of(source, seed=1)
    with np.errstate(all="ignore"):
        expected = values.astype(target.numpy)
        if source is dtypes.bfloat16 or (source.is_half and target.kind in ("signed", "unsigned")):
            # halves become integers through float32, and so take the loop that works in vectors
            expected = values.astype(np.float32).astype(target.numpy)
    if source.kind == "float" and target.kind in ("signed", "unsigned") and platform.machine() != "x86_64":
        with np.errstate(all="ignore"):
            usable = fits(values, target)
        values, expected = values[usable], expected[usable]
    assert_same(converted(values, target, core), expected, values)


def test_float64_is_rounded_to_float16_once() -> None:
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middle = (halves[:-1] + halves[1:]) / 2
    x = np.concatenate([np.nextafter(middle, 0), middle, np.nextafter(middle, np.inf), [65519.99999, 65520.0, 1e300]])
    x = np.concatenate([x, -x])
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    for core in (NumpyCore(), BARE):
        assert_same(converted(x, dtypes.float16, core), expected, x)


def test_every_float16_survives_the_bit_algorithms() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    wide = half.float32_of_float16(BARE, BARE.value(halves))
    assert_same(array_of(wide), halves.astype(np.float32), halves)
    assert_same(array_of(half.float16_of_float32(BARE, wide)), halves, halves)


def test_every_bfloat16_survives_the_bit_algorithms() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    wide = half.float32_of_bfloat16(BARE, BARE.value(halves))
    assert_same(array_of(wide), halves.astype(np.float32), halves)
    assert_same(array_of(half.bfloat16_of_float32(BARE, wide)), halves, halves)


@pytest.mark.parametrize("target", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_float32_is_rounded_to_even(target: DType) -> None:
    exact = np.arange(2**16, dtype=np.uint16).view(target.numpy).astype(np.float32)
    exact = np.sort(exact[np.isfinite(exact)])
    middle = (exact[:-1].astype(np.float64) + exact[1:]) / 2
    middle = middle.astype(np.float32)
    x = np.concatenate([middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))])
    with np.errstate(over="ignore"):
        assert_same(converted(x, target, BARE), x.astype(target.numpy), x)


def test_sign_of_nan_survives() -> None:
    x = np.array([np.nan, -np.nan], np.float32)
    for target in (dtypes.float16, dtypes.bfloat16):
        assert np.signbit(converted(x, target, BARE).astype(np.float32)).tolist() == [False, True]
