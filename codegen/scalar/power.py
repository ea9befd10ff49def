"""Powers and roots.

A power is ``2 ** (y log2(x))``; the logarithm is needed to more digits than the format has, as its error is multiplied
by the exponent. Coefficients: minimax fits of the relative error by Remez exchange in 200-bit arithmetic.
"""

import math

from codegen import dtypes
from codegen.scalar import exponential, logarithm
from codegen.scalar.function import CoreFunctions, ScalarValue
from codegen.scalar.polynomial import clamp, horner

# log2((1 + s) / (1 - s)) / s in s**2, error 2**-37.8: for float32 powers, computed in float64
_SHORT_LOG2 = (2.885390081790176, 0.961796673236477, 0.5770836041637384, 0.41167160433996586, 0.3407502478728394)

# (2**r - 1) / r for |r| <= 1/2, error 2**-28.5
_SHORT_EXP2 = (
    0.6931472150980328,
    0.2402265279073698,
    0.0555031029844014,
    0.009617691882295106,
    0.0013406735745696643,
    0.00015594916378151218,
)

# (3 atanh(s) / s - 3 - s**2) / s**4 in s**2, error 2**-65.8 of atanh(s)
_LONG_SERIES = (
    0.600000000000034,
    0.42857142855143165,
    0.33333333781034286,
    0.2727267644647998,
    0.2308014095189244,
    0.19885107844439984,
    0.19795625162803887,
)

# 2 / (3 ln 2) rounded, and what that leaves; its first 26 bits, and what they leave
_FACTOR = 0.9617966939259756
_FACTOR_REST = 5.0577616648125907e-17
_FACTOR_HIGH = 0.9617967009544373
_FACTOR_LOW = -7.028461650952758e-09

_UPPER_HALF = 2**64 - 2**27


def square(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The value times itself."""
    return x * x


def reciprocal(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """One divided by the value."""
    return 1.0 / x


def _upper_half(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """A float64 without its lowest 27 bits: the product of two such is exact."""
    return core.from_bits(core.bits(x) & _UPPER_HALF, dtypes.float64)


def _magnitude_of_single(core: CoreFunctions, x: ScalarValue, y: ScalarValue) -> ScalarValue:
    """``|x| ** y`` of float32 values for x neither 0 nor infinite, in float64: all but correctly rounded.

    The reciprocal in the logarithm is a float32's, made better by one of Newton's steps: cheaper than a division.
    """
    # the power of any x but 1 is 0 or infinite far before this exponent
    exponent_operand = core.convert(clamp(core, y, -(2.0**40), 2.0**40), dtypes.float64)
    exponent, mantissa = logarithm.split_any_exponent(core, core.apply("fabs", x), logarithm.SINGLE)
    guess = core.convert(1.0 / (mantissa + 1.0), dtypes.float64)
    wide = core.convert(mantissa, dtypes.float64)
    reciprocal = guess * core.multiply_add(wide + 1.0, -guess, 2.0)
    quotient = (wide - 1.0) * reciprocal
    series = horner(quotient * quotient, _SHORT_LOG2)
    log2 = core.multiply_add(quotient, series, core.convert(exponent, dtypes.float64))
    product = clamp(core, log2 * exponent_operand, -200.0, 200.0)
    rounded = product + exponential.DOUBLE.rounder
    rest = product - (rounded - exponential.DOUBLE.rounder)
    power = core.multiply_add(rest, horner(rest, _SHORT_EXP2), 1.0)
    return core.convert(power * exponential.power_of_two(core, rounded, exponential.DOUBLE), dtypes.float32)


def _log2_in_two_parts(core: CoreFunctions, x: ScalarValue) -> tuple[ScalarValue, ScalarValue]:
    """``log2(x)`` of a positive finite float64: its upper half, and the rest, to 65 bits in all.

    With f = m - 1 and s = f / (2 + f), log2(m) = 2 / (3 ln 2) s (3 + s**2 + s**4 R(s**2)); all factors are split so that
    the leading products are exact (the method of FDLIBM's e_pow.c, K. C. Ng, 1993, over one range of m).
    """
    exponent, mantissa = logarithm.split_any_exponent(core, x, logarithm.DOUBLE)
    f = mantissa - 1.0
    denominator = mantissa + 1.0
    s = f / denominator
    s_high = _upper_half(core, s)
    denominator_high = _upper_half(core, denominator)
    denominator_low = mantissa - (denominator_high - 1.0)
    s_low = ((f - s_high * denominator_high) - s_high * denominator_low) / denominator
    square = s * s
    tail = square * square * horner(square, _LONG_SERIES) + s_low * (s_high + s)
    square_high = s_high * s_high
    series_high = _upper_half(core, (square_high + 3.0) + tail)
    series_low = tail - ((series_high - 3.0) - square_high)
    product = s_high * series_high
    product_low = s_low * series_high + series_low * s
    large = _upper_half(core, product + product_low)
    small = product_low - (large - product)
    log_high = large * _FACTOR_HIGH
    log_low = large * _FACTOR_LOW + small * _FACTOR
    total = _upper_half(core, (log_high + log_low) + exponent)
    return total, log_low - ((total - exponent) - log_high)


def _log2_in_two_fused_parts(core: CoreFunctions, x: ScalarValue) -> tuple[ScalarValue, ScalarValue]:
    """``log2(x)`` of a positive finite float64, rounded, and the rest: `_log2_in_two_parts` with fused multiply-adds.

    What rounding takes from a product is the product less its rounded value, fused. So no factor has to be split, and a
    reciprocal takes the place of two divisions: what the quotient lacks is in its rest.
    """
    exponent, mantissa = logarithm.split_any_exponent(core, x, logarithm.DOUBLE)
    f = mantissa - 1.0
    denominator = mantissa + 1.0
    denominator_low = mantissa - (denominator - 1.0)
    reciprocal = 1.0 / denominator
    s = f * reciprocal
    missing = core.multiply_add(-s, denominator_low, core.multiply_add(-s, denominator, f))
    s_low = missing * reciprocal
    square = s * s
    square_low = core.multiply_add(s, s, -square)
    tail = core.multiply_add(square * square, horner(square, _LONG_SERIES), square_low)
    tail = core.multiply_add(s + s, s_low, tail)
    series = square + 3.0
    series_low = (square - (series - 3.0)) + tail
    product = s * series
    product_low = core.multiply_add(s, series, -product)
    product_low = core.multiply_add(s, series_low, core.multiply_add(s_low, series, product_low))
    log = product * _FACTOR
    log_low = core.multiply_add(product, _FACTOR, -log)
    log_low = core.multiply_add(product_low, _FACTOR, core.multiply_add(product, _FACTOR_REST, log_low))
    total = exponent + log
    return total, ((exponent - total) + log) + log_low


def _product_in_two_parts(core: CoreFunctions, y: ScalarValue, x: ScalarValue) -> tuple[ScalarValue, ScalarValue]:
    """``y log2(x)`` of float64 values, a rounded number and a rest."""
    if core.has("fma"):
        log, log_low = _log2_in_two_fused_parts(core, x)
        high = y * log
        return high, core.multiply_add(y, log_low, core.multiply_add(y, log, -high))
    log_high, log_low = _log2_in_two_parts(core, x)
    y_high = _upper_half(core, y)
    return y_high * log_high, (y - y_high) * log_high + y * log_low


def _magnitude_of_double(core: CoreFunctions, x: ScalarValue, y: ScalarValue) -> ScalarValue:
    """``|x| ** y`` of float64 values for x neither 0 nor infinite."""
    constants = exponential.DOUBLE
    # the power of any x but 1 is 0 or infinite far before this exponent
    high, low = _product_in_two_parts(core, clamp(core, y, -(2.0**64), 2.0**64), core.apply("fabs", x))
    inside = clamp(core, high, constants.exp2_lowest - 1.0, constants.exp2_highest + 1.0)
    low = core.where(inside == high, low, core.constant(low, 0))
    rounded = (inside + low) + constants.rounder
    rest = (inside - (rounded - constants.rounder)) + low
    power = exponential.exp2_of_rest(rest, constants)
    return exponential.scale(core, power, rounded, inside > 0, high < constants.exp2_lowest, constants)


def power(core: CoreFunctions, x: ScalarValue, y: ScalarValue) -> ScalarValue:
    """``x ** y`` of floats, with C's rules for zero, infinities, NaN and negative numbers.

    The rules are applied only if a block has operands that need them: x not positive or not finite, y not a number.
    """
    narrow = core.dtype(x) is dtypes.float32
    magnitude = (_magnitude_of_single if narrow else _magnitude_of_double)(core, x, y)
    ordinary = (x > 0) & (x < math.inf) & (y == y)
    return core.select_rare(~ordinary, lambda: _by_the_rules(core, x, y, magnitude), magnitude)


def _by_the_rules(core: CoreFunctions, x: ScalarValue, y: ScalarValue, result: ScalarValue) -> ScalarValue:
    """The power of any x and y, given that of |x| for x neither 0 nor infinite."""
    zero, infinite = x == 0, core.apply("fabs", x) == math.inf
    infinity = core.constant(x, math.inf)
    at_the_edge = core.where(zero ^ (y < 0), core.constant(x, 0), infinity)
    result = core.where(zero | infinite, at_the_edge, result)
    integral = core.apply("trunc", y) == y
    half = y * 0.5
    odd = integral & (core.apply("trunc", half) != half)
    not_a_number = ((x < 0) & ~integral & ~infinite) | (x != x) | (y != y)
    result = core.where(not_a_number, core.constant(x, math.nan), result)
    result = core.where(odd, core.apply("copysign", result, x), result)
    return core.where((y == 0) | (x == 1), core.constant(x, 1), result)


def cbrt(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Cube root, with the sign of x.

    A third of the bit pattern is a first guess of x ** (-1/3) (the constant makes its largest error, 3.5%, smallest);
    Newton's steps for the reciprocal root need no division; the last step is one for the root itself.
    """
    narrow = core.dtype(x) is dtypes.float32
    constants = logarithm.constants_for(core, x)
    magnitude = core.apply("fabs", x)
    small = magnitude < constants.smallest_normal
    lift = 24.0 if narrow else 54.0
    a = core.where(small, magnitude * 2.0**lift, magnitude)
    signed = dtypes.signed_of_width(core.dtype(x).bits)
    pattern = core.convert(core.from_bits(core.bits(a), signed), core.dtype(x))
    guess = 1.419915e9 if narrow else 6.1426114e18
    third = core.convert(guess - pattern * (1.0 / 3.0), signed)
    root = core.from_bits(third, core.dtype(x))
    for _ in range(2 if narrow else 3):
        root = root + root * ((1.0 - a * root * root * root) * (1.0 / 3.0))
    result = a * root * root
    result = result - (result * result * result - a) * (root * root * (1.0 / 3.0))
    result = core.where(small, result * 2.0 ** (-lift / 3), result)
    result = core.apply("copysign", result, x)
    return core.where((magnitude < math.inf) & (x != 0), result, x)
