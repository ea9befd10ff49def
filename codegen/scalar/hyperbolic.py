"""Hyperbolic functions and their inverses."""

import math

from codegen.scalar import exponential
from codegen.scalar.exponential import exp_scaled
from codegen.scalar.function import CoreFunctions, ScalarValue
from codegen.scalar.logarithm import log1p
from codegen.scalar.polynomial import by_width, horner

# (sinh(x) / x - 1) / x**2 in x**2 for |x| <= 1; minimax by Remez exchange in 200-bit arithmetic; errors 2**-27.3, 2**-56.6
_SINH_SINGLE = (0.1666666716337204, 0.008333350531756878, 0.0001983614929486066, 2.8170127279736334e-06)
_SINH_DOUBLE = (
    0.16666666666666669,
    0.008333333333333146,
    0.0001984126984143268,
    2.755731915680466e-06,
    2.505212318093644e-08,
    1.6057256199924066e-10,
    7.758860650590852e-13,
)

_LN2 = 0.6931471805599453


def sinh(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Hyperbolic sine: a polynomial up to 1, beyond that from half of the exponential, which overflows when it does."""
    magnitude = core.apply("fabs", x)
    square = x * x
    near = core.multiply_add(x, square * horner(square, by_width(core, x, _SINH_SINGLE, _SINH_DOUBLE)), x)
    half = exp_scaled(core, magnitude, halvings=1)
    far = core.apply("copysign", half - 0.25 / half, x)
    return core.where(magnitude < 1.0, core.where(x == 0, x, near), far)


def cosh(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Hyperbolic cosine."""
    half = exp_scaled(core, core.apply("fabs", x), halvings=1)
    return half + 0.25 / half


def tanh(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Hyperbolic tangent: t / (t + 2) of t = exp(2 |x|) - 1; 1 to the last digit beyond the limit.

    t as `expm1` has it, without what that needs for results at the ends of the range.
    """
    constants = exponential.constants_for(core, x)
    magnitude = core.apply("fabs", x)
    limit = core.constant(x, by_width(core, x, 9.5, 20.0))
    inside = core.where(magnitude > limit, limit, magnitude)
    inside = inside + inside
    rounded, rest = exponential.reduce_by_ln2(core, inside, constants)
    small = rest * rest * horner(rest, constants.exp_minus_one)
    power = exponential.power_of_two(core, rounded, constants)
    less_one = core.multiply_add(small, power, core.multiply_add(rest, power, power - 1.0))
    return core.apply("copysign", less_one / (less_one + 2.0), x)


def arcsinh(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Inverse hyperbolic sine: log1p(a + a**2 / (1 + sqrt(1 + a**2))) of the magnitude a, log(2 a) of huge ones."""
    a = core.apply("fabs", x)
    huge = a > by_width(core, x, 2.0**30, 2.0**60)
    moderate = core.where(huge, core.constant(x, 0), a)
    square = moderate * moderate
    added = square / (core.apply("sqrt", square + 1.0) + 1.0)
    result = log1p(core, a + added) + core.where(huge, core.constant(x, _LN2), core.constant(x, 0))
    return core.apply("copysign", result, x)


def arccosh(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Inverse hyperbolic cosine, NaN below 1: log1p(t + sqrt(2 t + t**2)) of t = x - 1, log(2 x) of huge x."""
    huge = x > by_width(core, x, 2.0**30, 2.0**60)
    t = x - 1.0
    moderate = core.where(huge, core.constant(x, 0), t)
    added = core.apply("sqrt", (moderate + moderate) + moderate * moderate)
    result = log1p(core, t + added) + core.where(huge, core.constant(x, _LN2), core.constant(x, 0))
    return core.where(x < 1.0, core.constant(x, math.nan), result)


def arctanh(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Inverse hyperbolic tangent: log1p(2 a / (1 - a)) / 2 of the magnitude a; infinite at 1, NaN beyond."""
    a = core.apply("fabs", x)
    result = log1p(core, (a + a) / (1.0 - a)) * 0.5
    result = core.where(a == 1.0, core.constant(x, math.inf), result)
    return core.apply("copysign", result, x)
