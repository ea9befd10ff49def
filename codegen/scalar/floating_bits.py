"""Functions of a float's sign, exponent and fraction, written on its bit pattern so that halves need no widening."""

from dataclasses import dataclass

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.function import CoreFunctions, ScalarValue

_FRACTION_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


@dataclass(frozen=True)
class FloatFormat:
    """Where the parts of a float sit.

    Attributes
    ----------
    dtype : DType
    fraction_bits : int
        Width of the fraction, which occupies the lowest bits.
    """

    dtype: DType
    fraction_bits: int

    @property
    def sign(self) -> int:
        """The pattern of -0."""
        return 2 ** (self.dtype.bits - 1)

    @property
    def magnitude(self) -> int:
        """Everything but the sign."""
        return self.sign - 1

    @property
    def fraction(self) -> int:
        """All ones in the fraction."""
        return 2**self.fraction_bits - 1

    @property
    def infinity(self) -> int:
        """The pattern of +inf."""
        return self.magnitude ^ self.fraction

    @property
    def bias(self) -> int:
        """What is added to an exponent."""
        return 2 ** (self.dtype.bits - self.fraction_bits - 2) - 1

    @property
    def quiet_nan(self) -> int:
        """The pattern of the plain NaN."""
        return self.infinity | 2 ** (self.fraction_bits - 1)


def format_of(core: CoreFunctions, x: ScalarValue) -> FloatFormat:
    """The format of a float value."""
    dtype = core.dtype(x)
    return FloatFormat(dtype, _FRACTION_BITS[dtype.name])


def negative(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The sign flipped, of NaN and zero too."""
    form = format_of(core, x)
    if form.dtype.is_half:
        return core.from_bits(core.bits(x) ^ form.sign, form.dtype)
    return -x


def absolute(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The sign cleared, of NaN too."""
    form = format_of(core, x)
    if form.dtype.is_half:
        return core.from_bits(core.bits(x) & form.magnitude, form.dtype)
    return core.intrinsic("llvm.fabs", x)


def copysign(core: CoreFunctions, x: ScalarValue, y: ScalarValue) -> ScalarValue:
    """The magnitude of `x` with the sign of `y`."""
    form = format_of(core, x)
    return core.from_bits((core.bits(x) & form.magnitude) | (core.bits(y) & form.sign), form.dtype)


def signbit(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Whether the sign is set, of NaN and zero too."""
    return core.from_bits(core.bits(x), dtypes.signed_of_width(core.dtype(x).bits)) < 0


def isnan(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Whether the value is not a number."""
    form = format_of(core, x)
    if form.dtype.is_half:
        return (core.bits(x) & form.magnitude) > form.infinity
    return x != x


def isinf(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Whether the value is infinite."""
    form = format_of(core, x)
    return (core.bits(x) & form.magnitude) == form.infinity


def isfinite(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Whether the value is neither infinite nor NaN."""
    form = format_of(core, x)
    return (core.bits(x) & form.magnitude) < form.infinity


def nextafter(core: CoreFunctions, x: ScalarValue, y: ScalarValue) -> ScalarValue:
    """The neighbour of `x` in the direction of `y`.

    Patterns of one sign are ordered as the magnitudes are, so a neighbour is one away in the pattern; from zero the
    first step leads to the smallest subnormal with the sign of `y`.
    """
    form = format_of(core, x)
    pattern, target = core.bits(x), core.bits(y)
    magnitude, target_magnitude = pattern & form.magnitude, target & form.magnitude
    inwards = (target_magnitude < magnitude) | (((pattern ^ target) & form.sign) != 0)
    step = core.where(inwards, pattern - 1, pattern + 1)
    step = core.where(magnitude == 0, (target & form.sign) | 1, step)
    both_zero = (magnitude | target_magnitude) == 0
    # equal values: C returns `y`, which shows where the zeros differ in sign; NumPy's float16 returns `x`
    unmoved = pattern if form.dtype is dtypes.float16 else target
    step = core.where((pattern == target) | both_zero, unmoved, step)
    not_a_number = (magnitude > form.infinity) | (target_magnitude > form.infinity)
    return core.from_bits(core.where(not_a_number, core.constant(step, form.quiet_nan), step), form.dtype)


def spacing(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Distance to the neighbour further from zero, with the sign of `x`; inf beyond the largest number.

    NumPy's float16 differs: there it is the distance to the next greater number, which is positive. So is that of -0,
    but not in ml_dtypes' bfloat16.
    """
    form = format_of(core, x)
    pattern = core.bits(x)
    magnitude = pattern & form.magnitude
    negative = (pattern & form.sign) != 0
    upwards = form.dtype is dtypes.float16
    exponent = magnitude >> form.fraction_bits
    overflows = magnitude == form.infinity - 1
    if upwards:
        # below a negative power of two the next greater number has the smaller exponent
        at_power = negative & ((magnitude & form.fraction) == 0) & (exponent > 1)
        exponent = core.where(at_power, exponent - 1, exponent)
        overflows = overflows & ~negative
    result = _last_place(core, exponent, form)
    result = core.where(overflows, core.constant(pattern, form.infinity), result)
    result = core.where(magnitude >= form.infinity, core.constant(pattern, form.quiet_nan), result)
    if form.dtype is dtypes.bfloat16:
        result = result | (pattern & form.sign)
    elif not upwards:
        result = core.where(negative & (magnitude != 0), result | form.sign, result)
    return core.from_bits(result, form.dtype)


def _last_place(core: CoreFunctions, exponent: ScalarValue, form: FloatFormat) -> ScalarValue:
    """Pattern of the power of two that the last place is worth: a normal number, or a subnormal with one bit set."""
    normal = (exponent - form.fraction_bits) << form.fraction_bits
    one = core.constant(exponent, 1)
    subnormal = one << core.where(exponent > 1, exponent - 1, core.constant(exponent, 0))
    return core.where(exponent > form.fraction_bits, normal, subnormal)


def power_of_two(core: CoreFunctions, exponent: ScalarValue, dtype: DType) -> ScalarValue:
    """``2.0 ** exponent`` of float `dtype` for a signed integer of its width within the normal range."""
    form = FloatFormat(dtype, _FRACTION_BITS[dtype.name])
    return core.from_bits((exponent + form.bias) << form.fraction_bits, dtype)


def exponent_of(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The exponent of a positive normal float, as a signed integer of its width: floor(log2(x))."""
    form = format_of(core, x)
    field = core.from_bits(core.bits(x), dtypes.signed_of_width(form.dtype.bits)) >> form.fraction_bits
    return field - form.bias


def _normalized(core: CoreFunctions, x: ScalarValue) -> tuple[ScalarValue, ScalarValue]:
    """Pattern of a number in [1, 2) with the sign of `x`, and the exponent that belongs to it; `x` finite, not 0."""
    form = format_of(core, x)
    shift = form.fraction_bits + 1
    subnormal = (core.bits(x) & form.infinity) == 0
    pattern = core.bits(core.where(subnormal, x * 2.0**shift, x))
    field = core.from_bits((pattern & form.infinity) >> form.fraction_bits, dtypes.signed_of_width(form.dtype.bits))
    exponent = field - core.where(subnormal, core.constant(field, form.bias + shift), core.constant(field, form.bias))
    return (pattern & (form.sign | form.fraction)) | (form.bias << form.fraction_bits), exponent


def _is_zero_or_not_finite(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    form = format_of(core, x)
    return (x == 0) | ((core.bits(x) & form.infinity) == form.infinity)


def ldexp(core: CoreFunctions, x: ScalarValue, exponent: ScalarValue) -> ScalarValue:
    """``x * 2**exponent``, rounded once.

    The result is put together from pattern and exponent; a subnormal one first a fixed power of two larger, so that
    the multiplication that brings it down is the only rounding.
    """
    form = format_of(core, x)
    signed = dtypes.signed_of_width(form.dtype.bits)
    limit = 4 * form.bias
    low, high = core.constant(exponent, -limit), core.constant(exponent, limit)
    clamped = core.where(exponent < low, low, core.where(exponent > high, high, exponent))
    pattern, own_exponent = _normalized(core, x)
    total = own_exponent + (clamped if core.dtype(clamped) is signed else core.convert(clamped, signed))
    lift = 2 * form.fraction_bits
    tiny, huge = total < 1 - form.bias, total > form.bias
    field = core.where(tiny, total + lift, total)
    least = core.constant(field, 1 - form.bias)
    field = core.where(field < least, least, core.where(huge, core.constant(field, form.bias), field))
    scale = core.bits(field + form.bias) << form.fraction_bits
    number = core.from_bits((pattern & (form.sign | form.fraction)) | scale, form.dtype)
    result = core.where(tiny, number * 2.0**-lift, number)
    result = core.where(huge, number * 2.0**form.bias * 2.0, result)
    return core.where(_is_zero_or_not_finite(core, x), x, result)


def frexp_mantissa(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The number in [1/2, 1) that `x` is a power of two times; `x` itself if zero or not finite."""
    form = format_of(core, x)
    pattern, _ = _normalized(core, x)
    half = core.from_bits(pattern - 2**form.fraction_bits, form.dtype)
    return core.where(_is_zero_or_not_finite(core, x), x, half)


def frexp_exponent(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The exponent that belongs to `frexp_mantissa`; 0 if `x` is zero or not finite."""
    _, exponent = _normalized(core, x)
    exponent = core.where(_is_zero_or_not_finite(core, x), core.constant(exponent, 0), exponent + 1)
    return exponent if core.dtype(exponent) is dtypes.int32 else core.convert(exponent, dtypes.int32)


def modf_integral(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The part before the point, with the sign of `x`."""
    return core.apply("trunc", x)


def modf_fraction(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The part behind the point, with the sign of `x`; zero for infinities."""
    fraction = x - core.apply("trunc", x)
    fraction = core.where(isinf(core, x), core.constant(x, 0), fraction)
    return copysign(core, fraction, x)
