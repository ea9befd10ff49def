"""Lengths, sums of exponentials, angle units."""

import math

from codegen.scalar.exponential import exp, exp2
from codegen.scalar.function import CoreFunctions, ScalarValue
from codegen.scalar.logarithm import log1p
from codegen.scalar.polynomial import by_width

_LN2 = 0.6931471805599453
_LOG2_OF_E = 1.4426950408889634

# for float32 and float64, each a quotient of two numbers rounded to the format, as in NumPy's npy_math
_DEGREES_PER_RADIAN = (57.2957763671875, 57.29577951308232)
_RADIANS_PER_DEGREE = (0.01745329238474369, 0.017453292519943295)


def hypot(core: CoreFunctions, x: ScalarValue, y: ScalarValue) -> ScalarValue:
    """``sqrt(x**2 + y**2)`` without overflow or underflow; infinite if either is, even beside NaN.

    Operands whose squares might leave the range are scaled by a power of two first.
    """
    a, b = core.apply("fabs", x), core.apply("fabs", y)
    large = core.where(a > b, a, b)
    limit, power = by_width(core, x, (2.0**60, 80), (2.0**500, 600))
    low_limit, low_power = by_width(core, x, (2.0**-40, 100), (2.0**-400, 700))
    one = core.constant(x, 1)
    high, low = large > limit, large < low_limit
    scale = core.where(high, core.constant(x, 2.0**-power), core.where(low, core.constant(x, 2.0**low_power), one))
    back = core.where(high, core.constant(x, 2.0**power), core.where(low, core.constant(x, 2.0**-low_power), one))
    a, b = a * scale, b * scale
    result = core.apply("sqrt", a * a + b * b) * back
    infinite = (a == math.inf) | (b == math.inf)
    return core.where(infinite, core.constant(x, math.inf), result)


def _sum_of_powers(
    core: CoreFunctions, x: ScalarValue, y: ScalarValue, twice: float, of_difference: ScalarValue
) -> ScalarValue:
    """The larger operand and the logarithm of what the smaller one adds; `twice` is the logarithm of 2."""
    larger = core.where(x > y, x, y)
    return core.where(x == y, x + twice, larger + of_difference)


def logaddexp(core: CoreFunctions, x: ScalarValue, y: ScalarValue) -> ScalarValue:
    """``log(exp(x) + exp(y))`` without overflow."""
    added = log1p(core, exp(core, -core.apply("fabs", x - y)))
    return _sum_of_powers(core, x, y, _LN2, added)


def logaddexp2(core: CoreFunctions, x: ScalarValue, y: ScalarValue) -> ScalarValue:
    """``log2(2**x + 2**y)`` without overflow."""
    added = log1p(core, exp2(core, -core.apply("fabs", x - y))) * _LOG2_OF_E
    return _sum_of_powers(core, x, y, 1.0, added)


def degrees(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Radians to degrees, by NumPy's factor."""
    return x * by_width(core, x, *_DEGREES_PER_RADIAN)


def radians(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Degrees to radians, by NumPy's factor."""
    return x * by_width(core, x, *_RADIANS_PER_DEGREE)
