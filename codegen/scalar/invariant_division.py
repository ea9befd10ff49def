"""Division of many integers by one: a multiplication with the divisor's inverse, which is computed once.

T. Granlund, P. L. Montgomery, "Division by invariant integers using multiplication" (1994), figure 4.1: for an unsigned divisor
d of N bits and l = ceil(log2 d), the quotient of any n of N bits is ``(t + ((n - t) >> min(l, 1))) >> max(l - 1, 0)``, where t is
the upper half of ``n * m`` and m is ``floor(2**N (2**l - d) / d) + 1``.
"""

from codegen import dtypes
from codegen.scalar.function import CoreFunctions, ScalarValue
from codegen.scalar.integer import high_product


def _magnitude(core: CoreFunctions, divisor: ScalarValue) -> ScalarValue:
    """The divisor without its sign, 1 for 0: quotients by 0 are replaced behind."""
    magnitude = core.bits(core.apply("absolute", divisor))
    return core.where(magnitude == 0, core.constant(magnitude, 1), magnitude)


def division_shift(core: CoreFunctions, divisor: ScalarValue) -> ScalarValue:
    """``ceil(log2 d)`` of the magnitude: as many bits as d - 1 has."""
    filled = _magnitude(core, divisor) - 1
    step = 1
    while step < core.dtype(filled).bits:
        filled = filled | (filled >> step)
        step *= 2
    return core.intrinsic("llvm.ctpop", filled)


def division_multiplier(core: CoreFunctions, divisor: ScalarValue) -> ScalarValue:
    """``floor(2**N (2**l - d) / d) + 1`` modulo 2**N of the magnitude."""
    magnitude = _magnitude(core, divisor)
    shift = division_shift(core, divisor)
    bits = core.dtype(magnitude).bits
    if bits < 64:
        wide = core.convert(magnitude, dtypes.uint64)
        power = core.constant(wide, 1) << core.convert(shift, dtypes.uint64)
        return core.convert(core.instruction("udiv", (power - wide) << bits, wide) + 1, core.dtype(magnitude))
    # 2**64 is 0 here; what is left after d is taken from it is right.
    power = core.where(shift == 64, core.constant(shift, 0), core.constant(shift, 1) << (shift & 63))

    def unfinished(_rest: ScalarValue, _quotient: ScalarValue, missing: ScalarValue) -> ScalarValue:
        return missing != 0

    def step(rest: ScalarValue, quotient: ScalarValue, missing: ScalarValue) -> tuple[ScalarValue, ...]:
        doubled = rest << 1
        fits = (doubled >= magnitude) | ((rest >> 63) != 0)
        bit = core.where(fits, core.constant(rest, 1), core.constant(rest, 0))
        rest = core.where(fits, doubled - magnitude, doubled)
        return rest, (quotient << 1) | bit, missing - 1

    start = (power - magnitude, core.constant(shift, 0), core.where(shift == shift, core.constant(shift, 64), shift))
    _, quotient, _ = core.repeat_while(unfinished, step, start)
    return quotient + 1


def _unsigned_quotient(core: CoreFunctions, n: ScalarValue, multiplier: ScalarValue, shift: ScalarValue) -> ScalarValue:
    upper = high_product(core, n, multiplier)
    first = core.where(shift == 0, shift, core.constant(shift, 1))
    return (upper + ((n - upper) >> first)) >> (shift - first)


def truncated_divide_by(
    core: CoreFunctions, x: ScalarValue, divisor: ScalarValue, multiplier: ScalarValue, shift: ScalarValue
) -> ScalarValue:
    """The quotient cut towards zero; 0 for division by zero."""
    dtype = core.dtype(x)
    if dtype.kind == "unsigned":
        quotient = _unsigned_quotient(core, x, multiplier, shift)
    else:
        sign = (x ^ divisor) >> (dtype.bits - 1)
        magnitude = core.bits(core.apply("absolute", x))
        quotient = core.from_bits(_unsigned_quotient(core, magnitude, multiplier, shift), dtype)
        quotient = (quotient ^ sign) - sign
    return core.where(divisor == 0, core.constant(x, 0), quotient)


def floor_divide_by(
    core: CoreFunctions, x: ScalarValue, divisor: ScalarValue, multiplier: ScalarValue, shift: ScalarValue
) -> ScalarValue:
    """The quotient rounded down; 0 for division by zero; the lowest integer divided by -1 is itself.

    With the divisor made positive, the quotient of a negative number a is ``-1 - (-1 - a) / d``: both are flips of all bits.
    The lowest integer divided by a negative number is the one positive number that looks negative.
    """
    dtype = core.dtype(x)
    if dtype.kind == "unsigned":
        return truncated_divide_by(core, x, divisor, multiplier, shift)
    last = dtype.bits - 1
    sign = divisor >> last
    dividend = (x ^ sign) - sign
    flips = (dividend >> last) & ~((x >> last) & sign)
    magnitude = core.bits(dividend ^ flips)
    quotient = core.from_bits(_unsigned_quotient(core, magnitude, multiplier, shift), dtype) ^ flips
    return core.where(divisor == 0, core.constant(x, 0), quotient)


def remainder_by(
    core: CoreFunctions, x: ScalarValue, divisor: ScalarValue, multiplier: ScalarValue, shift: ScalarValue
) -> ScalarValue:
    """What `floor_divide_by` leaves over; 0 for division by zero."""
    rest = x - floor_divide_by(core, x, divisor, multiplier, shift) * divisor
    return core.where(divisor == 0, core.constant(x, 0), rest)


def fmod_by(
    core: CoreFunctions, x: ScalarValue, divisor: ScalarValue, multiplier: ScalarValue, shift: ScalarValue
) -> ScalarValue:
    """What `truncated_divide_by` leaves over; 0 for division by zero."""
    rest = x - truncated_divide_by(core, x, divisor, multiplier, shift) * divisor
    return core.where(divisor == 0, core.constant(x, 0), rest)
