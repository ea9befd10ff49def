"""Sine, cosine and tangent.

Moderate arguments are reduced with pi in four parts (Cody and Waite), the first three so short that their products
with the quotient are exact. Huge ones take a slow path that runs only if a block contains one. Coefficients: minimax
fits of the relative error by Remez exchange in 200-bit arithmetic, rounded to the format.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from codegen import dtypes
from codegen.scalar.argument_reduction import reduce_huge
from codegen.scalar.function import CoreFunctions, ScalarValue
from codegen.scalar.polynomial import by_width, horner


@dataclass(frozen=True)
class TrigonometricConstants:
    """What the functions of this file need to know about one float format.

    Attributes
    ----------
    rounder : float
        1.5 * 2**fraction_bits: a sum with it is rounded to an integer, which its lowest bits hold.
    limit : float
        Arguments from here on are huge: their quotient does not fit beside the parts of pi any more.
    half_pi : tuple of float
        In parts; products of all but the last with the quotient of an argument below the limit are exact.
    half_pi_rounded : tuple of float
        In parts of full width, each what rounding the ones before left: for fused multiply-adds, the first of which is exact,
        as the difference and all that it is taken of are multiples of one power of two.
    sine : tuple of float
        Coefficients in r**2 of (sin(r) / r - 1) / r**2 for |r| <= pi/4.
    cosine : tuple of float
        Coefficients in r**2 of (cos(r) - 1 + r**2 / 2) / r**4 for |r| <= pi/4.
    tangent : tuple of float
        Coefficients in r**2 of (tan(r) / r - 1) / r**2 for |r| <= pi/4.
    """

    rounder: float
    limit: float
    half_pi: tuple[float, ...]
    half_pi_rounded: tuple[float, float, float]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    tangent: tuple[float, ...]


# parts of 13 bits, quotients below 2**11; the second leaves so little that two parts and a float32 are enough
SINGLE = TrigonometricConstants(
    rounder=1.5 * 2.0**23,
    limit=3000.0,
    half_pi=(1.57080078125, -4.454515874385834e-06, 6.077100628276710e-11),
    half_pi_rounded=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    # error 2**-26.8
    sine=(-0.16666655242443085, 0.008332155644893646, -0.0001951463200384751),
    # error 2**-32.8
    cosine=(0.04166664555668831, -0.0013887309469282627, 2.443241282890085e-05),
    # error 2**-27.2
    tangent=(
        0.33333349227905273,
        0.13332653045654297,
        0.05406106635928154,
        0.02127605490386486,
        0.010852187871932983,
        6.819406553404406e-05,
        0.0043870811350643635,
    ),
)

# parts of 33 bits, quotients below 2**20
DOUBLE = TrigonometricConstants(
    rounder=1.5 * 2.0**52,
    limit=1.5e6,
    half_pi=(1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32),
    half_pi_rounded=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    # error 2**-56.8
    sine=(
        -0.1666666666666663,
        0.008333333333322005,
        -0.00019841269829495457,
        2.755731358760602e-06,
        -2.5050742305819863e-08,
        1.589590462242605e-10,
    ),
    # error 2**-59.2
    cosine=(
        0.041666666666666595,
        -0.0013888888888872895,
        2.480158728874821e-05,
        -2.755731414863001e-07,
        2.0875696573454047e-09,
        -1.1358310533842107e-11,
    ),
    # error 2**-55.2
    tangent=(
        0.3333333333333276,
        0.133333333334168,
        0.05396825392562744,
        0.02186948963396009,
        0.008863218812272039,
        0.0035922922588130526,
        0.0014547386145063782,
        0.0005951463400698365,
        0.00022213864021875215,
        0.00013702362738138394,
        -2.7090143435059413e-05,
        9.010111686904784e-05,
        -4.522777032185552e-05,
        2.0947959208780467e-05,
    ),
)

Function = Callable[[CoreFunctions, ScalarValue], ScalarValue]


def _constants_for(core: CoreFunctions, x: ScalarValue) -> TrigonometricConstants:
    return by_width(core, x, SINGLE, DOUBLE)


@dataclass(frozen=True)
class Reduced:
    """An argument as ``n pi/2 + r``.

    Attributes
    ----------
    rest : ScalarValue
        r, at most pi/4 in magnitude.
    correction : ScalarValue
        What rounding took from r, at most half a unit in its last place.
    quarters : ScalarValue
        The lowest bits of n, unsigned.
    """

    rest: ScalarValue
    correction: ScalarValue
    quarters: ScalarValue


def _reduce(core: CoreFunctions, x: ScalarValue) -> Reduced:
    """Reduce an argument below the limit.

    The first difference is exact. What the second one rounds off is given back with the third part; where r is small
    nothing is rounded off.
    """
    constants = _constants_for(core, x)
    rounded = x * (2 / math.pi) + constants.rounder
    quotient = rounded - constants.rounder
    first = x - quotient * constants.half_pi[0]
    taken = quotient * constants.half_pi[1]
    second = first - taken
    missing = quotient * constants.half_pi[2] - ((first - second) - taken)
    rest = second - missing
    correction = (second - rest) - missing
    if len(constants.half_pi) == 4:
        fourth = quotient * constants.half_pi[3]
        correction = correction + ((rest - (rest - fourth)) - fourth)
        rest = rest - fourth
    return Reduced(rest, correction, core.bits(rounded))


def _reduce_roughly(core: CoreFunctions, x: ScalarValue) -> tuple[ScalarValue, ScalarValue]:
    """Rest and quarters of an argument below the limit, for functions that need no correction."""
    if not core.has("fma"):
        reduced = _reduce(core, x)
        return reduced.rest, reduced.quarters
    constants = _constants_for(core, x)
    rounded = core.multiply_add(x, 2 / math.pi, constants.rounder)
    quotient = rounded - constants.rounder
    rest = x
    for part in constants.half_pi_rounded:
        rest = core.multiply_add(quotient, -part, rest)
    return rest, core.bits(rounded)


def _reduce_huge(core: CoreFunctions, x: ScalarValue) -> Reduced:
    return Reduced(*reduce_huge(core, core.apply("fabs", x)))


def _sine_of_quarters(core: CoreFunctions, rest: ScalarValue, quarters: ScalarValue) -> ScalarValue:
    """``sin(quarters pi/2 + r)`` for |r| <= pi/4 and an unsigned integer."""
    constants = _constants_for(core, rest)
    square = rest * rest
    sine = core.multiply_add(rest, square * horner(square, constants.sine), rest)
    falling = core.multiply_add(square, horner(square, constants.cosine), -0.5)
    cosine = core.multiply_add(square, falling, 1.0)
    result = core.where((quarters & 1) != 0, cosine, sine)
    return _flip_sign(core, result, quarters >> 1)


def _flip_sign(core: CoreFunctions, result: ScalarValue, odd: ScalarValue) -> ScalarValue:
    """The result negated where the integer `odd`, an unsigned one of its width, is odd."""
    dtype = core.dtype(result)
    return core.from_bits(core.bits(result) ^ (odd << (dtype.bits - 1)), dtype)


def _unless_huge(
    core: CoreFunctions, x: ScalarValue, fast: ScalarValue, function: Function, huge: Function
) -> ScalarValue:
    """`fast`, but for huge arguments what a float64 gives: `huge` on float64, `function` on the widened float32."""
    constants = _constants_for(core, x)
    magnitude = core.apply("fabs", x)
    rare = (magnitude >= constants.limit) & (magnitude < math.inf)

    def slow() -> ScalarValue:
        if core.dtype(x) is dtypes.float64:
            return huge(core, x)
        return core.convert(function(core, core.convert(x, dtypes.float64)), dtypes.float32)

    return core.select_rare(rare, slow, fast)


def _sin_of_huge(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    reduced = _reduce_huge(core, x)
    return _flip_sign(core, _sine_of_quarters(core, reduced.rest, reduced.quarters), core.bits(x) >> 63)


def _cos_of_huge(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    reduced = _reduce_huge(core, x)
    return _sine_of_quarters(core, reduced.rest, reduced.quarters + 1)


def sin(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Sine."""
    fast = core.where(x == 0, x, _sine_of_quarters(core, *_reduce_roughly(core, x)))
    return _unless_huge(core, x, fast, sin, _sin_of_huge)


def cos(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Cosine: the sine of a quarter turn more."""
    rest, quarters = _reduce_roughly(core, x)
    fast = _sine_of_quarters(core, rest, quarters + 1)
    return _unless_huge(core, x, fast, cos, _cos_of_huge)


def _tangent_of_quarters(core: CoreFunctions, reduced: Reduced) -> ScalarValue:
    """tan(r) where n is even, else a quarter turn more, -1 / tan(r); |r| <= pi/4.

    The reciprocal doubles errors, so the correction of r is taken in, times the derivative 1 + tan(r)**2, roughly.
    """
    rest, correction = reduced.rest, reduced.correction
    square = rest * rest
    small = rest * (square * horner(square, _constants_for(core, rest).tangent))
    tangent = rest + (small + (correction + correction * square))
    return core.where((reduced.quarters & 1) != 0, -1.0 / tangent, tangent)


def _tan_of_huge(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    return _flip_sign(core, _tangent_of_quarters(core, _reduce_huge(core, x)), core.bits(x) >> 63)


def tan(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Tangent."""
    fast = core.where(x == 0, x, _tangent_of_quarters(core, _reduce(core, x)))
    return _unless_huge(core, x, fast, tan, _tan_of_huge)
