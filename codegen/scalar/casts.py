"""Conversion of any dtype to any other, as NumPy's ``astype`` does it on x86-64."""

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar import half
from codegen.scalar.function import CoreFunctions, ScalarValue


def cast(core: CoreFunctions, value: ScalarValue, dtype: DType) -> ScalarValue:
    """Convert `value` to `dtype`, whatever the two are.

    Integers wrap around. Floats are cut towards zero; what does not fit, NaN included, becomes what NumPy's loops over
    whole arrays give: the lowest number of the 32- or 64-bit integer, cut down to 8 or 16 bits. float64 is rounded
    to float16 in one step; to bfloat16 through float32, as ml_dtypes does.
    """
    source = core.dtype(value)
    if source is dtype:
        return value
    if dtype.kind == "boolean":
        return _is_not_zero(core, value, source)
    if source.is_half:
        return cast(core, _widen(core, value, source), dtype)
    if dtype.is_half:
        return _narrow(core, _to_float32(core, value, source, dtype), dtype)
    if source.kind == "float" and dtype.kind != "float":
        return _truncate(core, value, dtype)
    return core.convert(value, dtype)


def _is_not_zero(core: CoreFunctions, value: ScalarValue, source: DType) -> ScalarValue:
    if source.is_half:
        return (core.bits(value) & 0x7FFF) != 0
    return value != 0


def _widen(core: CoreFunctions, value: ScalarValue, source: DType) -> ScalarValue:
    """float16 or bfloat16 to float32."""
    if source is dtypes.bfloat16:
        return half.float32_of_bfloat16(core, value)
    if core.has("half_conversion"):
        return core.convert(value, dtypes.float32)
    return half.float32_of_float16(core, value)


def _narrow(core: CoreFunctions, value: ScalarValue, dtype: DType) -> ScalarValue:
    """float32 to float16 or bfloat16."""
    if dtype is dtypes.bfloat16:
        return half.bfloat16_of_float32(core, value)
    if core.has("half_conversion"):
        return core.convert(value, dtypes.float16)
    return half.float16_of_float32(core, value)


def _to_float32(core: CoreFunctions, value: ScalarValue, source: DType, dtype: DType) -> ScalarValue:
    """Anything to a float32 that rounds to the right half.

    Integers that float32 cannot hold are far outside of float16, and go to bfloat16 in two steps in ml_dtypes too.
    """
    if source is dtypes.float64 and dtype is dtypes.float16:
        return half.float32_rounded_to_odd(core, value)
    if source is dtypes.float32:
        return value
    return core.convert(value, dtypes.float32)


def _truncate(core: CoreFunctions, value: ScalarValue, dtype: DType) -> ScalarValue:
    """float32 or float64 to an integer; through int32 if the integer is narrower."""
    if dtype.bits < 32:
        return core.convert(_truncate_to_signed(core, value, dtypes.int32), dtype)
    signed = dtypes.signed_of_width(dtype.bits)
    if dtype.kind == "signed":
        return _truncate_to_signed(core, value, signed)
    # Two halves of the range, as the compilers' vector code for unsigned results: the upper one less its start.
    start = 2.0 ** (dtype.bits - 1)
    upper = value >= start
    low = _truncate_to_signed(core, core.where(upper, value - start, value), signed)
    result = core.from_bits(low, dtype)
    return core.where(upper, result ^ 2 ** (dtype.bits - 1), result)


def _truncate_to_signed(core: CoreFunctions, value: ScalarValue, signed: DType) -> ScalarValue:
    """x86's conversion: the lowest integer for everything out of range, NaN included."""
    fits = core.apply("fabs", value) < 2.0 ** (signed.bits - 1)
    return core.where(fits, core.convert(value, signed), core.constant_of(signed, value, -(2 ** (signed.bits - 1))))
