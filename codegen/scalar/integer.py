"""Functions of integers: shifts, powers, common divisors and multiples, bit counts."""

from codegen import dtypes
from codegen.scalar.function import CoreFunctions, ScalarValue


def left_shift(core: CoreFunctions, x: ScalarValue, amount: ScalarValue) -> ScalarValue:
    """Bits moved up; 0 if the amount is negative or not less than the width."""
    in_range = core.bits(amount) < core.dtype(x).bits
    # The mask keeps the shift defined; without it LLVM 22 shifts by the low 32 bits of a 64-bit amount on a GPU.
    return core.where(in_range, x << (amount & (core.dtype(x).bits - 1)), core.constant(x, 0))


def right_shift(core: CoreFunctions, x: ScalarValue, amount: ScalarValue) -> ScalarValue:
    """Bits moved down, the sign repeated; only signs if the amount is negative or not less than the width."""
    width = core.dtype(x).bits
    if core.dtype(x).kind == "unsigned":
        return core.where(amount < width, x >> (amount & (width - 1)), core.constant(x, 0))
    return x >> core.where(core.bits(amount) < width, amount, core.constant(amount, width - 1))


def power(core: CoreFunctions, base: ScalarValue, exponent: ScalarValue) -> ScalarValue:
    """Integer power, wrapping around, by repeated squaring; the exponent is not negative."""

    def unfinished(_result: ScalarValue, _square: ScalarValue, rest: ScalarValue) -> ScalarValue:
        return rest != 0

    def step(result: ScalarValue, square: ScalarValue, rest: ScalarValue) -> tuple[ScalarValue, ...]:
        odd = (rest & 1) != 0
        return core.where(odd, result * square, result), square * square, rest >> 1

    # the exponent as an unsigned number: even one that is out of contract ends after `width` steps
    start = core.where(base == base, core.constant(base, 1), base)
    result, _, _ = core.repeat_while(unfinished, step, (start, base, core.bits(exponent)))
    return result


def high_product(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The upper half of a product of unsigned integers, which has twice their width."""
    dtype = core.dtype(a)
    if dtype.bits < 64:
        wide = dtypes.unsigned_of_width(2 * dtype.bits)
        return core.convert((core.convert(a, wide) * core.convert(b, wide)) >> dtype.bits, dtype)
    mask = 2**32 - 1
    a_high, a_low, b_high, b_low = a >> 32, a & mask, b >> 32, b & mask
    middle = a_low * b_high + ((a_low * b_low) >> 32)
    other = a_high * b_low + (middle & mask)
    return a_high * b_high + (middle >> 32) + (other >> 32)


def reciprocal(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """``1 / x`` cut to an integer: what 1 and -1 keep, 0 otherwise.

    For zero NumPy converts infinity to the integer, which gives the lowest one of 32 or 64 bits and 0 for the others.
    """
    dtype = core.dtype(x)
    if dtype.kind == "unsigned":
        return core.where(x == 1, x, core.constant(x, 0))
    zero = core.constant(x, 0)
    at_zero = core.constant(x, -(2 ** (dtype.bits - 1))) if dtype.bits >= 32 else zero
    return core.where((x == 1) | (x == -1), x, core.where(x == 0, at_zero, zero))


def _magnitude(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The magnitude as an unsigned integer of the same width."""
    return core.bits(core.apply("absolute", x))


def gcd(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """Greatest common divisor, not negative (the magnitude of the lowest integer wraps around), by Euclid."""

    def unfinished(_divisor: ScalarValue, rest: ScalarValue) -> ScalarValue:
        return rest != 0

    def step(divisor: ScalarValue, rest: ScalarValue) -> tuple[ScalarValue, ...]:
        return core.where(rest == 0, divisor, rest), core.apply("remainder", divisor, rest)

    divisor, _ = core.repeat_while(unfinished, step, (_magnitude(core, a), _magnitude(core, b)))
    return core.from_bits(divisor, core.dtype(a))


def lcm(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """Least common multiple of the magnitudes, wrapping around; 0 if either is 0."""
    divisor = core.bits(gcd(core, a, b))
    multiple = core.apply("floor_divide", _magnitude(core, a), divisor) * _magnitude(core, b)
    return core.from_bits(multiple, core.dtype(a))


def bitwise_count(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """How many bits of the magnitude are set."""
    count = core.intrinsic("llvm.ctpop", _magnitude(core, x))
    return count if core.dtype(count) is dtypes.uint8 else core.convert(count, dtypes.uint8)
