"""Quotients and remainders of integers and floats with NumPy's rules for zero, signs and infinities."""

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.floating_bits import copysign
from codegen.scalar.function import CoreFunctions, ScalarValue


def _quotient_through_floats(core: CoreFunctions, a: ScalarValue, b: ScalarValue, rounding: str) -> ScalarValue:
    """``a / b`` of integers up to 32 bits, rounded by the row `rounding`; anything where `b` is 0.

    Exact: a quotient that is no integer is at least 1/b away from one, and the float quotient (float32 for 16 bits,
    float64 for 32) is wrong by less than that. So it vectorises, which integer division does not.
    """
    dtype = core.dtype(a)
    wide = dtypes.float32 if dtype.bits <= 16 else dtypes.float64
    quotient = core.apply(rounding, core.convert(a, wide) / core.convert(b, wide))
    if dtype.bits <= 16:
        return core.convert(core.convert(quotient, dtypes.int32), dtype)
    if dtype.kind == "unsigned":
        return core.convert(quotient, dtype)
    # only the lowest integer divided by -1 does not fit, and wraps around to itself
    return core.where(quotient < 2.0**31, core.convert(quotient, dtype), a)


def _truncated_64(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """``a / b`` of 64-bit integers cut towards zero, `a` where `b` is 0; on magnitudes, so that nothing overflows."""
    if core.dtype(a).kind == "unsigned":
        return core.instruction("udiv", a, core.where(b == 0, core.constant(b, 1), b))
    magnitude, divisor = core.bits(core.apply("absolute", a)), core.bits(core.apply("absolute", b))
    divisor = core.where(divisor == 0, core.constant(divisor, 1), divisor)
    quotient = core.from_bits(core.instruction("udiv", magnitude, divisor), core.dtype(a))
    return core.where((a ^ b) < 0, -quotient, quotient)


def _is_wide(dtype: DType) -> bool:
    return dtype.bits == 64


def floor_divide_integers(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The quotient rounded down; 0 for division by zero; the lowest integer divided by -1 is itself."""
    dtype = core.dtype(a)
    if not _is_wide(dtype):
        quotient = _quotient_through_floats(core, a, b, "floor" if dtype.kind == "signed" else "trunc")
    else:
        quotient = _truncated_64(core, a, b)
        if dtype.kind == "signed":
            rest = a - quotient * b
            quotient = core.where((rest != 0) & ((rest ^ b) < 0), quotient - 1, quotient)
    return core.where(b == 0, core.constant(a, 0), quotient)


def remainder_integers(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """What `floor_divide` leaves over, with the sign of `b`; 0 for division by zero."""
    return core.where(b == 0, core.constant(a, 0), a - floor_divide_integers(core, a, b) * b)


def truncated_divide_integers(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The quotient cut towards zero, as C's; 0 for division by zero."""
    wide = _is_wide(core.dtype(a))
    quotient = _truncated_64(core, a, b) if wide else _quotient_through_floats(core, a, b, "trunc")
    return core.where(b == 0, core.constant(a, 0), quotient)


def fmod_integers(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """What `truncated_divide` leaves over, with the sign of `a`; 0 for division by zero."""
    return core.where(b == 0, core.constant(a, 0), a - truncated_divide_integers(core, a, b) * b)


def _near_remainder_32(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """``a mod b`` for 0 <= a < 2**24 * b, float32, exact.

    In float64 the product of the rounded quotient (25 bits) and `b` (24 bits) is exact, and so is the difference.
    """
    wide_a, wide_b = core.convert(a, dtypes.float64), core.convert(b, dtypes.float64)
    rest = wide_a - core.apply("trunc", wide_a / wide_b) * wide_b
    return core.convert(core.where(rest < 0, rest + wide_b, rest), dtypes.float32)


def _near_remainder_64(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """``a mod b`` for 0 <= a < 2**24 * b, float64, exact.

    `b` is split into 26 and 27 bits, so that both products with the rounded quotient (25 bits) are exact; the rest,
    between -b/2 and b/2, and the difference on the way are multiples of b's last place of at most 53 bits.
    """
    quotient = core.apply("rint", a / b)
    upper = core.from_bits(core.bits(b) & (2**64 - 2**27), dtypes.float64)
    rest = (a - quotient * upper) - quotient * (b - upper)
    return core.where(rest < 0, rest + b, rest)


def _integer_and_exponent(core: CoreFunctions, x: ScalarValue) -> tuple[ScalarValue, ScalarValue]:
    """A positive finite float64 as an integer times a power of two (uint64, int64 exponent field)."""
    pattern = core.bits(x)
    field = pattern >> 52
    fraction = pattern & (2**52 - 1)
    integer = core.where(field == 0, fraction, fraction | 2**52)
    return integer, core.from_bits(core.where(field == 0, field + 1, field), dtypes.int64)


def _far_remainder_64(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """``a mod b`` of any positive finite float64 by long division: 11 bits of the quotient a step (64 - 53)."""
    integer, exponent = _integer_and_exponent(core, a)
    divisor, divisor_exponent = _integer_and_exponent(core, b)
    divisor = core.where(divisor == 0, core.constant(divisor, 1), divisor)
    zero = core.constant(exponent, 0)
    missing = core.where(exponent > divisor_exponent, exponent - divisor_exponent, zero)

    def unfinished(_rest: ScalarValue, missing: ScalarValue) -> ScalarValue:
        return missing > 0

    def step(rest: ScalarValue, missing: ScalarValue) -> tuple[ScalarValue, ...]:
        amount = core.where(missing > 11, core.constant(missing, 11), missing)
        return core.instruction("urem", rest << core.bits(amount), divisor), missing - amount

    start = core.instruction("urem", integer, divisor)
    rest, _ = core.repeat_while(unfinished, step, (start, missing))
    # the rest times b's last place: exact in two steps, as the first factor keeps it normal
    scaled = core.convert(core.from_bits(rest, dtypes.int64), dtypes.float64)
    field = divisor_exponent + (1023 - 1075)
    low = field < 1
    field = core.where(low, field + 512, field)
    scale = core.from_bits(field << 52, dtypes.float64)
    return core.where(low, (scaled * scale) * 2.0**-512, scaled * scale)


def _far_remainder(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    if core.dtype(a) is dtypes.float64:
        return _far_remainder_64(core, a, b)
    wide = _far_remainder_64(core, core.convert(a, dtypes.float64), core.convert(b, dtypes.float64))
    return core.convert(wide, dtypes.float32)


def fmod_floats(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The exact remainder of the quotient cut towards zero, with the sign of `a`; NaN for x mod 0 and inf mod x.

    Quotients below 2**24 take a few operations; larger ones a long division that is skipped if none is there.
    """
    numerator, denominator = core.apply("fabs", a), core.apply("fabs", b)
    narrow = core.dtype(a) is dtypes.float32
    near = (_near_remainder_32 if narrow else _near_remainder_64)(core, numerator, denominator)
    infinity = float("inf")
    far = numerator >= denominator * 2.0**24
    if not narrow:
        # the rounded quotient times the divisor might overflow
        far = far | (numerator >= 2.0**1022)
    far = far & (numerator < infinity) & (denominator > 0)
    rest = core.select_rare(far, lambda: _far_remainder(core, numerator, denominator), near)
    rest = core.where(numerator < denominator, numerator, rest)
    valid = (numerator < infinity) & (denominator > 0)
    rest = core.where(valid, rest, core.constant(rest, float("nan")))
    return copysign(core, rest, a)


def remainder_floats(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The remainder with the sign of `b` (Python's ``%``); zero too takes the sign of `b`."""
    rest = fmod_floats(core, a, b)
    moved = core.where((rest < 0) != (b < 0), rest + b, rest)
    return core.where(rest == 0, copysign(core, rest, b), moved)


def floor_divide_floats(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The quotient that belongs to `remainder`, an integer; ``a / b`` for division by zero.

    NumPy's npy_divmod: the quotient without the remainder is an integer up to rounding, and is snapped to it.
    """
    rest = fmod_floats(core, a, b)
    quotient = (a - rest) / b
    opposite = (rest != 0) & ((rest < 0) != (b < 0))
    quotient = core.where(opposite, quotient - 1.0, quotient)
    lower = core.apply("floor", quotient)
    snapped = core.where(quotient - lower > 0.5, lower + 1.0, lower)
    plain = a / b
    snapped = core.where(quotient == 0, copysign(core, core.constant(a, 0), plain), snapped)
    return core.where(b == 0, plain, snapped)
