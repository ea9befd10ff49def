"""Arc sine, cosine and tangent.

Coefficients: minimax fits of the relative error by Remez exchange in 200-bit arithmetic, rounded to the format.
"""

import math
from dataclasses import dataclass

from codegen.scalar.function import CoreFunctions, ScalarValue
from codegen.scalar.polynomial import by_width, horner


@dataclass(frozen=True)
class InverseConstants:
    """What the functions of this file need to know about one float format.

    Attributes
    ----------
    arc_sine : tuple of float
        Coefficients in s**2 of (arcsin(s) / s - 1) / s**2 for |s| <= 1/2.
    arc_tangent : tuple of float
        Coefficients in t**2 of (arctan(t) / t - 1) / t**2 for |t| <= 1/2.
    quarter_pi : tuple of float
        pi/4 in two parts; multiples of the first by up to four are exact.
    half_pi : tuple of float
        pi/2 in two parts, the first rounded to the format.
    large : float
        Sums of two numbers from here on may overflow.
    """

    arc_sine: tuple[float, ...]
    arc_tangent: tuple[float, ...]
    quarter_pi: tuple[float, float]
    half_pi: tuple[float, float]
    large: float


SINGLE = InverseConstants(
    # error 2**-30.1
    arc_sine=(
        0.16666659712791443,
        0.07500505447387695,
        0.044516708701848984,
        0.031809914857149124,
        0.014429825358092785,
        0.03752940148115158,
    ),
    # error 2**-26.9
    arc_tangent=(
        -0.3333323299884796,
        0.19994211196899414,
        -0.14174790680408478,
        0.10158834606409073,
        -0.051304418593645096,
    ),
    quarter_pi=(0.7853984832763672, -3.1987892157303577e-07),
    half_pi=(1.5707963705062866, -4.371138828673793e-08),
    large=2.0**126,
)

DOUBLE = InverseConstants(
    # error 2**-58.1
    arc_sine=(
        0.1666666666666676,
        0.07499999999970633,
        0.04464285717477918,
        0.030381942699372038,
        0.022372215234843222,
        0.01735160740007056,
        0.013980877831010402,
        0.011398428001053524,
        0.010783051000000888,
        0.003695530273409105,
        0.021734648334274253,
        -0.021038570582117326,
        0.03265395229292752,
    ),
    # error 2**-56.9
    arc_tangent=(
        -0.33333333333333315,
        0.19999999999993212,
        -0.14285714284955203,
        0.11111111068271488,
        -0.09090907661090873,
        0.07692276917345021,
        -0.06666216975620852,
        0.058777541664917506,
        -0.052297202700986235,
        0.045883606458842256,
        -0.037092716355479734,
        0.023618795057315574,
        -0.008343385367006859,
    ),
    quarter_pi=(0.7853981633974456, 2.6951514290790595e-15),
    half_pi=(1.5707963267948966, 6.123233995736766e-17),
    large=2.0**1022,
)


def _constants_for(core: CoreFunctions, x: ScalarValue) -> InverseConstants:
    return by_width(core, x, SINGLE, DOUBLE)


def _arc_sine_parts(core: CoreFunctions, magnitude: ScalarValue) -> tuple[ScalarValue, ScalarValue, ScalarValue]:
    """Whether 1/2 < |x|, then s and arcsin(s) - s.

    s is |x| up to 1/2; beyond it sqrt((1 - |x|) / 2), and the angle is pi/2 - 2 arcsin(s).
    """
    large = magnitude > 0.5
    square = core.where(large, (1.0 - magnitude) * 0.5, magnitude * magnitude)
    s = core.where(large, core.apply("sqrt", square), magnitude)
    return large, s, s * (square * horner(square, _constants_for(core, magnitude).arc_sine))


def arcsin(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Arc sine, NaN beyond 1."""
    high, low = _constants_for(core, x).half_pi
    large, s, small = _arc_sine_parts(core, core.apply("fabs", x))
    complement = high - ((s + s) + ((small + small) - low))
    return core.apply("copysign", core.where(large, complement, s + small), x)


def arccos(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Arc cosine, NaN beyond 1."""
    high, low = _constants_for(core, x).half_pi
    large, s, small = _arc_sine_parts(core, core.apply("fabs", x))
    negative = x < 0
    twice_s, twice_small = s + s, small + small
    obtuse = (high + high) - (twice_s + (twice_small - (low + low)))
    far = core.where(negative, obtuse, twice_s + twice_small)
    angle = s + small
    near = core.where(negative, high + (angle + low), high - (angle - low))
    return core.where(large, far, near)


def _arc_tangent_less(core: CoreFunctions, t: ScalarValue) -> ScalarValue:
    """``arctan(t) - t`` for |t| <= 1/2."""
    square = t * t
    return t * (square * horner(square, _constants_for(core, t).arc_tangent))


def arctan(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Arc tangent: beyond 1/2 by the angle from pi/4, beyond 2 by that from pi/2."""
    quarter = _constants_for(core, x).quarter_pi
    magnitude = core.apply("fabs", x)
    one, zero = core.constant(x, 1), core.constant(x, 0)
    middle, far = magnitude > 0.5, magnitude > 2.0
    numerator = core.where(far, -one, core.where(middle, magnitude - 1.0, magnitude))
    denominator = core.where(far, magnitude, core.where(middle, magnitude + 1.0, one))
    quarters = core.where(far, core.constant(x, 2), core.where(middle, one, zero))
    tangent = numerator / denominator
    small = core.multiply_add(quarters, quarter[1], _arc_tangent_less(core, tangent))
    return core.apply("copysign", core.multiply_add(quarters, quarter[0], tangent + small), x)


def arctan2(core: CoreFunctions, y: ScalarValue, x: ScalarValue) -> ScalarValue:
    """The angle of the point (x, y), from -pi to pi; the signs of zeros tell the sides of the axes.

    The angle in the first octant is turned into place: by a whole number of quarters of pi, one way or the other.
    """
    constants = _constants_for(core, x)
    one, zero = core.constant(x, 1), core.constant(x, 0)
    width, height = core.apply("fabs", x), core.apply("fabs", y)
    steep = height > width
    smaller, larger = core.where(steep, width, height), core.where(steep, height, width)
    scale = core.where(larger > constants.large, core.constant(x, 0.25), one)
    numerator, denominator = smaller * scale, larger * scale
    middle = (smaller > larger * 0.5) | (smaller == math.inf)
    dividend = core.where(middle, numerator - denominator, numerator)
    tangent = dividend / core.where(middle, numerator + denominator, denominator)
    tangent = core.where(smaller == larger, zero, tangent)
    backwards = core.apply("signbit", x)
    quarters = core.where(middle, one, zero)
    quarters = core.where(steep, 2.0 - quarters, quarters)
    quarters = core.where(backwards, 4.0 - quarters, quarters)
    tangent = core.where(steep ^ backwards, -tangent, tangent)
    small = core.multiply_add(quarters, constants.quarter_pi[1], _arc_tangent_less(core, tangent))
    return core.apply("copysign", core.multiply_add(quarters, constants.quarter_pi[0], tangent + small), y)
