"""Logarithms: natural, of base two and ten, and of one plus x.

All split ``x = 2**k (1 + f)`` with ``sqrt(1/2) <= 1 + f < sqrt(2)``. Coefficients: minimax fits of the relative error
by Remez exchange in 200-bit arithmetic, rounded to the format.
"""

import math
from dataclasses import dataclass

from codegen import dtypes
from codegen.scalar.function import CoreFunctions, ScalarValue
from codegen.scalar.polynomial import by_width, horner


@dataclass(frozen=True)
class LogarithmConstants:
    """What the functions of this file need to know about one float format.

    Attributes
    ----------
    fraction_bits : int
    square_root_of_half : int
        Bit pattern of sqrt(1/2), where the range of 1 + f starts.
    smallest_normal : float
    lift : float
        Power of two that makes subnormals normal.
    kept_bits : int
        Mask that keeps the upper half of the significant bits.
    ln2, log10_of_2 : tuple of float
        Two parts each; the first ends in zeros enough that its product with any k is exact.
    log2_of_e, log10_of_e : tuple of float
        Two parts each; the product of the first with a number under the mask is exact.
    """

    fraction_bits: int
    square_root_of_half: int
    smallest_normal: float
    lift: int
    kept_bits: int
    ln2: tuple[float, float]
    log10_of_2: tuple[float, float]
    log2_of_e: tuple[float, float]
    log10_of_e: tuple[float, float]


SINGLE = LogarithmConstants(
    fraction_bits=23,
    square_root_of_half=0x3F3504F3,
    smallest_normal=2.0**-126,
    lift=25,
    kept_bits=0xFFFFF000,
    ln2=(0.693145751953125, 1.4286068203094173e-06),
    log10_of_2=(0.30103302001953125, -3.0243555500547862e-06),
    log2_of_e=(1.44287109375, -0.00017605286103659264),
    log10_of_e=(0.434326171875, -3.168997174817235e-05),
)

DOUBLE = LogarithmConstants(
    fraction_bits=52,
    square_root_of_half=0x3FE6A09E667F3BCD,
    smallest_normal=2.0**-1022,
    lift=54,
    kept_bits=0xFFFFFFFFF8000000,
    ln2=(0.6931471805598903, 5.497923018708371e-14),
    log10_of_2=(0.30102999566395283, 2.8363394551044964e-14),
    log2_of_e=(1.4426950514316559, -1.0542692476429138e-08),
    log10_of_e=(0.4342944845557213, -2.6524694553078553e-09),
)

# (log(1 + f) - f + f**2 / 2) / f**3 in f; error of the logarithm 2**-28.2. A float32 needs so few terms that they take less
# time than a division.
_SERIES_SINGLE = (
    0.3333331346511841,
    -0.25000008940696716,
    0.2000211924314499,
    -0.1666799634695053,
    0.14219552278518677,
    -0.1240558922290802,
    0.11888162046670914,
    -0.11675652116537094,
    0.06746640801429749,
)

# (log((1 + s) / (1 - s)) - 2 s) / s**3 in s**2; error of the logarithm 2**-58.9
_QUOTIENT_SERIES_DOUBLE = (
    0.6666666666666735,
    0.39999999999412655,
    0.2857142874288132,
    0.22222198518313666,
    0.1818356738388543,
    0.15313967312381027,
    0.14796830465847602,
)


def constants_for(core: CoreFunctions, x: ScalarValue) -> LogarithmConstants:
    """The constants of a value's format."""
    return by_width(core, x, SINGLE, DOUBLE)


def split_exponent(
    core: CoreFunctions, x: ScalarValue, constants: LogarithmConstants
) -> tuple[ScalarValue, ScalarValue]:
    """A positive normal number as k (signed integer) and 1 + f in [sqrt(1/2), sqrt(2))."""
    shifted = core.bits(x) - constants.square_root_of_half
    signed = core.from_bits(shifted, dtypes.signed_of_width(core.dtype(x).bits))
    fraction = (shifted & (2**constants.fraction_bits - 1)) + constants.square_root_of_half
    return signed >> constants.fraction_bits, core.from_bits(fraction, core.dtype(x))


def split_any_exponent(
    core: CoreFunctions, x: ScalarValue, constants: LogarithmConstants
) -> tuple[ScalarValue, ScalarValue]:
    """Like `split_exponent`, for positive subnormal numbers too, and k as a float."""
    small = x < constants.smallest_normal
    exponent, mantissa = split_exponent(core, core.where(small, x * 2.0**constants.lift, x), constants)
    shift = core.where(small, core.constant(x, constants.lift), core.constant(x, 0))
    return core.convert(exponent, core.dtype(x)) - shift, mantissa


def log_of_fraction(core: CoreFunctions, f: ScalarValue) -> tuple[ScalarValue, ScalarValue]:
    """``log(1 + f)`` as ``f - a + b``: gives a = f**2 / 2 and b, both small against f.

    Of a float64, with s = f / (2 + f), log(1 + f) = 2 s + s**3 R(s**2) and 2 s = f - s f; few terms are needed as
    |s| < 0.18, and the division runs beside the other operations.
    """
    whole_square = f * f
    half_square = whole_square * 0.5
    if core.dtype(f) is dtypes.float32:
        return half_square, whole_square * (f * horner(f, _SERIES_SINGLE))
    quotient = f / (f + 2.0)
    square = quotient * quotient
    return half_square, quotient * core.multiply_add(square, horner(square, _QUOTIENT_SERIES_DOUBLE), half_square)


def at_the_edges(core: CoreFunctions, x: ScalarValue, result: ScalarValue) -> ScalarValue:
    """A logarithm's values at the edges of its domain: -inf at 0, inf at inf, NaN below 0 and at NaN."""
    result = core.where(x < math.inf, result, x)
    outside = core.where(x == 0, core.constant(x, -math.inf), core.constant(x, math.nan))
    return core.where(x > 0, result, outside)


def log(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Natural logarithm."""
    constants = constants_for(core, x)
    exponent, mantissa = split_any_exponent(core, x, constants)
    f = mantissa - 1.0
    half_square, tail = log_of_fraction(core, f)
    small = core.multiply_add(exponent, constants.ln2[1], tail) - half_square
    return at_the_edges(core, x, core.multiply_add(exponent, constants.ln2[0], f + small))


def _log_of_base(
    core: CoreFunctions, x: ScalarValue, log_of_e: tuple[float, float], log_of_2: tuple[float, float]
) -> ScalarValue:
    """Logarithm to the base whose logarithms of e and of 2 are given in two parts each."""
    constants = constants_for(core, x)
    exponent, mantissa = split_any_exponent(core, x, constants)
    f = mantissa - 1.0
    half_square, tail = log_of_fraction(core, f)
    if core.dtype(x) is dtypes.float32:
        scaled = (f - (half_square - tail)) * (log_of_e[0] + log_of_e[1])
        small = scaled + exponent * log_of_2[1] if log_of_2[1] != 0 else scaled
        return at_the_edges(core, x, small + exponent * log_of_2[0])
    # an upper half, whose product with the upper part of the factor is exact, and a rest
    upper = core.from_bits(core.bits(f - half_square) & constants.kept_bits, core.dtype(x))
    lower = ((f - upper) - half_square) + tail
    small = lower * log_of_e[0] + (lower + upper) * log_of_e[1]
    if log_of_2[1] != 0:
        small = small + exponent * log_of_2[1]
    large, leading = upper * log_of_e[0], exponent * log_of_2[0]
    total = leading + large
    return at_the_edges(core, x, total + (small + ((leading - total) + large)))


def log2(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Logarithm to base two; exact for powers of two."""
    return _log_of_base(core, x, constants_for(core, x).log2_of_e, (1.0, 0.0))


def log10(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Logarithm to base ten."""
    constants = constants_for(core, x)
    return _log_of_base(core, x, constants.log10_of_e, constants.log10_of_2)


def log1p(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Natural logarithm of one plus x, exact for small x.

    What rounding 1 + x lost is put back into f, scaled as f is: where k is 0 that makes f equal to x again.
    """
    constants = constants_for(core, x)
    dtype = core.dtype(x)
    total = x + 1.0
    lost = core.where(total < 2.0, x - (total - 1.0), 1.0 - (total - x))
    exponent, mantissa = split_exponent(core, total, constants)
    # nothing of `lost` remains for large k, where 2**-k would not be normal any more
    limit = core.constant(exponent, 64)
    field = core.bits(core.where(exponent < limit, exponent, limit)) << constants.fraction_bits
    one = core.bits(core.constant(x, 1.0))
    f = (mantissa - 1.0) + lost * core.from_bits(one - field, dtype)
    half_square, tail = log_of_fraction(core, f)
    multiple = core.convert(exponent, dtype)
    small = core.multiply_add(multiple, constants.ln2[1], tail) - half_square
    result = at_the_edges(core, total, core.multiply_add(multiple, constants.ln2[0], f + small))
    return core.where(x == 0, x, result)
