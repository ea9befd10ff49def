"""Rounding to an integer with nothing but additions, for targets without rounding instructions."""

from codegen.scalar.floating_bits import copysign, format_of
from codegen.scalar.function import CoreFunctions, ScalarValue


def rint(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The nearest integer, ties to even, with the sign of `x`.

    A number below 2**fraction_bits loses its fraction, rounded to nearest even, when 2**fraction_bits is added to it;
    all larger ones are integers.
    """
    limit = 2.0 ** format_of(core, x).fraction_bits
    magnitude = core.apply("fabs", x)
    rounded = copysign(core, (magnitude + limit) - limit, x)
    return core.where(magnitude < limit, rounded, x)


def trunc(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The integer next to `x` towards zero, with the sign of `x`."""
    limit = 2.0 ** format_of(core, x).fraction_bits
    magnitude = core.apply("fabs", x)
    nearest = (magnitude + limit) - limit
    cut = core.where(nearest > magnitude, nearest - 1.0, nearest)
    return core.where(magnitude < limit, copysign(core, cut, x), x)


def floor(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The largest integer that is not above `x`."""
    nearest = rint(core, x)
    return core.where(nearest > x, nearest - 1.0, nearest)


def ceil(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The smallest integer that is not below `x`; -0 above -1."""
    nearest = rint(core, x)
    return copysign(core, core.where(nearest < x, nearest + 1.0, nearest), x)
