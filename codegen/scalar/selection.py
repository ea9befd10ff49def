"""Choosing between values: extremes, signs, logical combinations."""

from codegen import dtypes
from codegen.scalar.function import CoreFunctions, ScalarValue


def where(core: CoreFunctions, condition: ScalarValue, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The first value where the condition holds, else the second."""
    return core.where(condition, a, b)


def identity(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The value itself."""
    return x


def maximum(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The greater float; NaN if either is one.

    ``where(a > b, a, b)`` is one machine instruction (maxps) that yields b whenever a comparison with NaN fails, so
    only a NaN in `a` has to be put back.
    """
    return core.where(a != a, a, core.where(a > b, a, b))


def minimum(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The smaller float; NaN if either is one."""
    return core.where(a != a, a, core.where(a < b, a, b))


def maximum_in_hardware(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """`maximum` in one instruction on GPUs that have it for float32; there 0.0 is greater than -0.0."""
    if core.dtype(a).bits == 32 and core.has("maximum"):
        return core.intrinsic("llvm.maximum", a, b)
    return maximum(core, a, b)


def minimum_in_hardware(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """`minimum` in one instruction on GPUs that have it for float32; there -0.0 is smaller than 0.0."""
    if core.dtype(a).bits == 32 and core.has("minimum"):
        return core.intrinsic("llvm.minimum", a, b)
    return minimum(core, a, b)


def fmax(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The greater float; a NaN loses against a number."""
    return core.where(b != b, a, core.where(a > b, a, b))


def fmin(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """The smaller float; a NaN loses against a number."""
    return core.where(b != b, a, core.where(a < b, a, b))


def absolute(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Magnitude of a signed integer; the most negative one stays itself, as its magnitude wraps around."""
    return core.where(x < 0, -x, x)


def negative(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The integer with the opposite sign, wrapping around."""
    return -x


def invert(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Every bit flipped; the opposite truth value."""
    return ~x


def sign_of_float(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """-1, 0 or 1; NaN stays NaN; the result for -0 is +0, as NumPy's."""
    one = core.constant(x, 1)
    return core.where(x > 0, one, core.where(x < 0, -one, x + 0.0))


def sign_of_signed(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """-1, 0 or 1."""
    zero = core.constant(x, 0)
    return core.where(x > 0, core.constant(x, 1), core.where(x < 0, core.constant(x, -1), zero))


def sign_of_unsigned(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """0 or 1."""
    return core.where(x == 0, x, core.constant(x, 1))


def heaviside(core: CoreFunctions, x: ScalarValue, at_zero: ScalarValue) -> ScalarValue:
    """0 for negative, 1 for positive, `at_zero` for zero, NaN for NaN."""
    step = core.where(x > 0, core.constant(x, 1), core.where(x < 0, core.constant(x, 0), x))
    return core.where(x == 0, at_zero, step)


def clip(core: CoreFunctions, x: ScalarValue, low: ScalarValue, high: ScalarValue) -> ScalarValue:
    """`x` held between two bounds; the upper one wins where they cross; a NaN anywhere gives NaN."""
    return core.apply("minimum", core.apply("maximum", x, low), high)


def logical_and(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """Whether both differ from zero."""
    return (a != 0) & (b != 0)


def logical_or(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """Whether either differs from zero."""
    return (a != 0) | (b != 0)


def logical_xor(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """Whether exactly one differs from zero."""
    return (a != 0) ^ (b != 0)


def logical_not(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """Whether the value is zero."""
    return x == 0


def logical_not_of_boolean(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The opposite truth value."""
    return ~x


def never(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """False: what isnan and isinf say of every integer."""
    return core.constant_of(dtypes.boolean, x, 0)


def always(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """True: what isfinite says of every integer."""
    return core.constant_of(dtypes.boolean, x, 1)


def signed_less_unsigned(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """``a < b`` for a signed and an unsigned integer of one width, as numbers."""
    return (a < 0) | (core.bits(a) < b)


def signed_less_equal_unsigned(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """``a <= b`` for a signed and an unsigned integer of one width, as numbers."""
    return (a < 0) | (core.bits(a) <= b)


def signed_equal_unsigned(core: CoreFunctions, a: ScalarValue, b: ScalarValue) -> ScalarValue:
    """``a == b`` for a signed and an unsigned integer of one width, as numbers."""
    return (a >= 0) & (core.bits(a) == b)
