"""Conversions of float16 and bfloat16 from and to float32 by bit patterns, for targets without such instructions."""

from codegen import dtypes
from codegen.scalar.function import CoreFunctions, ScalarValue

_TWO_TO_16_BITS = 0x47800000  # 65536: the first power of two above float16's largest number
_INFINITY_BITS = 0x7F800000


def float32_of_float16(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Widen, exactly.

    The 15 bits below the sign, moved to float32's place, stand for the number divided by 2**112 (127 - 15), subnormals
    too, so one exact multiplication ends it (F. Giesen, "Half to float done quick", 2012). Infinity and NaN come out
    at or above 2**16 and get float32's largest exponent.
    """
    pattern = core.convert(core.bits(x), dtypes.uint32)
    shifted = core.from_bits((pattern & 0x7FFF) << 13, dtypes.float32) * 2.0**112
    magnitude = core.bits(shifted)
    magnitude = core.where(shifted < 65536.0, magnitude, magnitude | _INFINITY_BITS)
    return core.from_bits(magnitude | ((pattern & 0x8000) << 16), dtypes.float32)


def float16_of_float32(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Round to nearest even.

    F. Giesen, "float_to_half_fast3_rtne" (2013): normal results by adding half a unit less one plus the parity of the
    kept part; subnormal results by adding 0.5, whose last place is 2**-24, float16's smallest number.
    """
    pattern = core.bits(x)
    magnitude = pattern & 0x7FFFFFFF
    odd = (magnitude >> 13) & 1
    rebias = (15 - 127) << 23
    normal = (magnitude + (rebias % 2**32) + 0xFFF + odd) >> 13
    subnormal = core.bits(core.from_bits(magnitude, dtypes.float32) + 0.5) - 0x3F000000
    not_finite = core.where(
        magnitude > _INFINITY_BITS, ((magnitude >> 13) & 0x3FF) | 0x7E00, core.constant(magnitude, 0x7C00)
    )
    small = magnitude < 0x38800000  # 2**-14, float16's smallest normal number
    result = core.where(small, subnormal, core.where(magnitude < _TWO_TO_16_BITS, normal, not_finite))
    result = result | ((pattern >> 16) & 0x8000)
    return core.from_bits(core.convert(result, dtypes.uint16), dtypes.float16)


def float32_of_bfloat16(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Widen, exactly: bfloat16 is the upper half of a float32."""
    return core.from_bits(core.convert(core.bits(x), dtypes.uint32) << 16, dtypes.float32)


def bfloat16_of_float32(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Round to nearest even; NaN stays a quiet NaN of its sign."""
    pattern = core.bits(x)
    rounded = (pattern + 0x7FFF + ((pattern >> 16) & 1)) >> 16
    upper = core.where(x != x, (pattern >> 16) | 0x40, rounded)
    return core.from_bits(core.convert(upper, dtypes.uint16), dtypes.bfloat16)


def float32_rounded_to_odd(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """A float64 cut to float32 with the last bit set if anything was cut off.

    Rounding that once more, to a format at least two bits shorter, is the same as rounding the float64 once (S. Boldo,
    G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    """
    nearest = core.convert(x, dtypes.float32)
    back = core.convert(nearest, dtypes.float64)
    magnitude, back_magnitude = core.apply("fabs", x), core.apply("fabs", back)
    pattern = core.bits(nearest)
    pattern = core.where(back_magnitude > magnitude, pattern - 1, pattern)
    pattern = core.where(back != x, pattern | 1, pattern)
    return core.from_bits(pattern, dtypes.float32)
