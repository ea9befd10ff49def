"""Exponentials: powers of e and of two, and e to the x less one.

All reduce ``x = k ln 2 + r`` with an integer k and ``|r| <= ln 2 / 2``, evaluate a polynomial for e**r and scale by
2**k. Coefficients: minimax fits of the relative error over ``|r| <= 1.0005 ln 2 / 2`` by Remez exchange in 200-bit
arithmetic, rounded to the format.
"""

from dataclasses import dataclass

from codegen.scalar.function import CoreFunctions, ScalarValue
from codegen.scalar.polynomial import by_width, clamp, horner


@dataclass(frozen=True)
class ExponentialConstants:
    """What the functions of this file need to know about one float format.

    Attributes
    ----------
    fraction_bits : int
    rounder : float
        1.5 * 2**fraction_bits: a sum with it is rounded to an integer, which its lowest bits hold.
    ln2_high, ln2_low : float
        ln 2 in two parts; the first ends in zeros enough that its product with any k is exact.
    split : int
        2**k is applied as 2**(k - split) * 2**split for positive x, so that neither factor overflows, and
        2**(k + split) * 2**-split for negative x, so that a subnormal result is rounded once.
    lowest, highest : float
        exp is 0 or infinite beyond these.
    lowest_minus_one : float
        exp - 1 is -1 below this.
    linear : float
        exp(x) - 1 is x to the last digit below this.
    exp : tuple of float
        Coefficients of (e**r - 1 - r) / r**2.
    exp_minus_one : tuple of float
        The same, fitted to the relative error of e**r - 1.
    exp2 : tuple of float
        Coefficients of (2**r - 1 - r ln 2) / r**2 for |r| <= 1/2.
    exp2_lowest, exp2_highest : float
        exp2 is 0 or infinite beyond these.
    ln2_rounded, ln2_rest : float
        ln 2 rounded to the format, and what that leaves.
    """

    fraction_bits: int
    rounder: float
    ln2_high: float
    ln2_low: float
    split: int
    lowest: float
    highest: float
    lowest_minus_one: float
    linear: float
    exp: tuple[float, ...]
    exp_minus_one: tuple[float, ...]
    exp2: tuple[float, ...]
    exp2_lowest: float
    exp2_highest: float
    ln2_rounded: float
    ln2_rest: float


LOG2_OF_E = 1.4426950408889634

SINGLE = ExponentialConstants(
    fraction_bits=23,
    rounder=1.5 * 2.0**23,
    ln2_high=0.693145751953125,  # 16 bits
    ln2_low=1.4286068203094173e-06,
    split=32,
    lowest=-104.0,
    highest=89.0,
    lowest_minus_one=-18.0,
    linear=2.0**-26,
    # error 2**-28.0
    exp=(0.4999999403953552, 0.1666652113199234, 0.04166838899254799, 0.00836874544620514, 0.0013814539415761828),
    # error 2**-28.4
    exp_minus_one=(
        0.5,
        0.1666666716337204,
        0.04166632518172264,
        0.008333220146596432,
        0.0013943254016339779,
        0.00019962254737038165,
    ),
    # error 2**-28.0
    exp2=(
        0.24022647738456726,
        0.05550362169742584,
        0.009618527255952358,
        0.0013390228850767016,
        0.00015321056707762182,
    ),
    exp2_lowest=-151.0,
    exp2_highest=129.0,
    ln2_rounded=0.6931471824645996,
    ln2_rest=-1.9046542121259336e-09,
)

DOUBLE = ExponentialConstants(
    fraction_bits=52,
    rounder=1.5 * 2.0**52,
    ln2_high=0.6931471805598903,  # 42 bits
    ln2_low=5.497923018708371e-14,
    split=128,
    lowest=-746.0,
    highest=710.0,
    lowest_minus_one=-40.0,
    linear=2.0**-55,
    # error 2**-56.3
    exp=(
        0.5000000000000011,
        0.1666666666666641,
        0.041666666666529725,
        0.008333333333494975,
        0.0013888888943760546,
        0.00019841269505780116,
        2.4801492949052314e-05,
        2.755758679835934e-06,
        2.7630306452932736e-07,
        2.5000020534748098e-08,
    ),
    # error 2**-56.2
    exp_minus_one=(
        0.5000000000000001,
        0.1666666666666667,
        0.041666666666652245,
        0.00833333333332613,
        0.0013888888895613337,
        0.0001984126987484561,
        2.4801574517473e-05,
        2.755725535969336e-06,
        2.7567935820819667e-07,
        2.5105236719514428e-08,
        1.768769844969116e-09,
    ),
    # error 2**-58.6
    exp2=(
        0.24022650695910072,
        0.05550410866482164,
        0.009618129107628345,
        0.001333355814640226,
        0.0001540353039363408,
        1.5252733846554684e-05,
        1.321548658975055e-06,
        1.0178054788639731e-07,
        7.0549789903265314e-09,
        4.456183279462209e-10,
        2.5616712195537386e-11,
    ),
    exp2_lowest=-1076.0,
    exp2_highest=1025.0,
    ln2_rounded=0.6931471805599453,
    ln2_rest=2.3190468138462996e-17,
)


def constants_for(core: CoreFunctions, x: ScalarValue) -> ExponentialConstants:
    """The constants of a value's format."""
    return by_width(core, x, SINGLE, DOUBLE)


def reduce_by_ln2(
    core: CoreFunctions, x: ScalarValue, constants: ExponentialConstants
) -> tuple[ScalarValue, ScalarValue]:
    """Split a clamped `x` into k ln 2 + r: k as ``rounder + k``, whose lowest bits are the integer k, and r."""
    rounded = core.multiply_add(x, LOG2_OF_E, constants.rounder)
    multiple = rounded - constants.rounder
    upper = core.multiply_add(multiple, -constants.ln2_high, x)
    return rounded, core.multiply_add(multiple, -constants.ln2_low, upper)


def power_of_two_field(core: CoreFunctions, rounded: ScalarValue, constants: ExponentialConstants) -> ScalarValue:
    """k, the lowest bits of ``rounder + k``, moved to where the exponent of a float sits."""
    return core.bits(rounded) << constants.fraction_bits


def power_of_two(
    core: CoreFunctions, rounded: ScalarValue, constants: ExponentialConstants, halvings: int = 0
) -> ScalarValue:
    """``2**(k - halvings)``, which must be a normal number."""
    dtype = core.dtype(rounded)
    bias = 2 ** (dtype.bits - constants.fraction_bits - 2) - 1
    one = (bias - halvings) << constants.fraction_bits
    return core.from_bits(power_of_two_field(core, rounded, constants) + one, dtype)


def scale(
    core: CoreFunctions,
    value: ScalarValue,
    rounded: ScalarValue,
    upwards: ScalarValue,
    vanishes: ScalarValue,
    constants: ExponentialConstants,
    halvings: int = 0,
) -> ScalarValue:
    """``value * 2**(k - halvings)`` for any k that occurs, rounded once; `upwards` says that k is not negative.

    `vanishes` says that the result is zero. It must not be left to underflow: a product that becomes subnormal costs a processor
    some hundred cycles, and exp(-inf) is what the places behind a row's end, or masked elements, come to in a softmax.
    """
    bias = 2 ** (core.dtype(value).bits - constants.fraction_bits - 2) - 1
    field = power_of_two_field(core, rounded, constants)
    start_up = core.constant(field, (bias - constants.split - halvings) << constants.fraction_bits)
    start_down = core.constant(field, (bias + constants.split - halvings) << constants.fraction_bits)
    first = core.from_bits(field + core.where(upwards, start_up, start_down), core.dtype(value))
    second = core.where(
        upwards, core.constant(value, 2.0**constants.split), core.constant(value, 2.0**-constants.split)
    )
    second = core.where(vanishes, core.constant(value, 0), second)
    return (value * first) * second


def exp_scaled(core: CoreFunctions, x: ScalarValue, halvings: int = 0) -> ScalarValue:
    """``exp(x) / 2**halvings``, not overflowing before the result does."""
    constants = constants_for(core, x)
    highest = constants.highest + halvings
    inside = clamp(core, x, constants.lowest, highest)
    rounded, rest = reduce_by_ln2(core, inside, constants)
    power = core.multiply_add(rest * rest, horner(rest, constants.exp), rest) + 1.0
    return scale(core, power, rounded, x > 0, x < constants.lowest, constants, halvings)


def exp(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """e to the power x."""
    return exp_scaled(core, x)


# Between these, 2**k is a normal number; beyond, what is left for the special function to do is small or large enough
# that its result times 2**k underflows or overflows as it should.
_SCALED_LOWEST, _SCALED_HIGHEST = -87.0, 88.0
# log2(e) less its nearest float32.
_LOG2_OF_E_REST = 1.925963033500011e-08


def exp_of_special_unit(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """e to the power x where a unit of its own gives 2**r to about 2**-22.5 (GPUs).

    Nine instructions instead of twenty, which decides whether rows of exponentials run at the speed of memory: x log2(e) is
    k + r with an integer k, and r is computed with two fused products, so that large x lose nothing.
    """
    if core.dtype(x).bits != 32:
        return exp_scaled(core, x)
    log2_of_e = core.constant(x, LOG2_OF_E)
    inside = core.apply(
        "fmin", core.apply("fmax", x, core.constant(x, _SCALED_LOWEST)), core.constant(x, _SCALED_HIGHEST)
    )
    rounded = core.intrinsic("llvm.fma", inside, log2_of_e, core.constant(x, SINGLE.rounder))
    multiple = rounded - SINGLE.rounder
    rest = core.intrinsic("llvm.fma", x, log2_of_e, -multiple)
    rest = core.intrinsic("llvm.fma", x, core.constant(x, _LOG2_OF_E_REST), rest)
    return core.intrinsic("llvm.nvvm.ex2.approx.ftz", rest) * power_of_two(core, rounded, SINGLE)


def exp2_of_rest(rest: ScalarValue, constants: ExponentialConstants) -> ScalarValue:
    """``2**r`` for |r| <= 1/2."""
    core = rest.core
    small = rest * core.multiply_add(rest, horner(rest, constants.exp2), constants.ln2_rest)
    return core.multiply_add(rest, constants.ln2_rounded, small) + 1.0


def exp2(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Two to the power x; exact for integers."""
    constants = constants_for(core, x)
    inside = clamp(core, x, constants.exp2_lowest, constants.exp2_highest)
    rounded = inside + constants.rounder
    rest = inside - (rounded - constants.rounder)
    power = exp2_of_rest(rest, constants)
    return scale(core, power, rounded, x > 0, x < constants.exp2_lowest, constants)


def expm1(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """e to the power x, less one, without cancellation near zero."""
    constants = constants_for(core, x)
    inside = clamp(core, x, constants.lowest_minus_one, constants.highest)
    rounded = core.multiply_add(inside, LOG2_OF_E, constants.rounder)
    multiple = rounded - constants.rounder
    upper, lower = core.multiply_add(multiple, -constants.ln2_high, inside), multiple * constants.ln2_low
    rest = upper - lower
    small = core.multiply_add(rest * rest, horner(rest, constants.exp_minus_one), (upper - rest) - lower)
    # half of the result first, as 2**k itself overflows for the largest results; the large parts first, because they
    # cancel where k is 1 or -1
    half_power = power_of_two(core, rounded, constants, halvings=1)
    large = core.multiply_add(rest, half_power, half_power - 0.5)
    half_result = core.multiply_add(small, half_power, large)
    result = half_result + half_result
    # half of a subnormal number would lose a bit, and zero would lose its sign
    return core.where(core.apply("fabs", x) < constants.linear, x, result)
