"""Rows of the table: powers, exponentials, logarithms, trigonometric and hyperbolic functions.

Each `max_ulp` is a little above the largest error found over dense samples of the function's domain, neighbourhoods of
hard points and special values. That of logaddexp is in units of the larger operand's last place where the result is
smaller, as its formula (NumPy's too) cancels near zero.
"""

from collections.abc import Mapping

from codegen.dtypes import DType
from codegen.scalar import (
    exponential,
    hyperbolic,
    integer,
    inverse_trigonometric,
    logarithm,
    power,
    special,
    trigonometric,
)
from codegen.scalar.function import (
    POSITIVE,
    REALS,
    UNIT,
    Algebra,
    DefinitionFunction,
    Interval,
    Intrinsic,
    Lowering,
    Number,
    ScalarFunction,
    definitions,
    lowest,
)

MONOID = frozenset({Algebra.COMMUTATIVE, Algebra.ASSOCIATIVE})


def _zero(_dtype: DType) -> Number:
    return 0


# Definitions without error-free products: a fused multiply-add only makes their reductions and polynomials more exact.
_CONTRACTING = frozenset(("exp", "exp2", "expm1", "log", "log1p", "sin", "cos", "tanh", "sinh", "cosh"))


def _elementary(
    name: str,
    function: DefinitionFunction,
    summary: str,
    domain: Interval,
    max_ulp: float | Mapping[str, float],
    expensive: float,
    on_gpu: DefinitionFunction | None = None,
) -> ScalarFunction:
    """A function of one float."""
    return ScalarFunction(
        name,
        1,
        definitions(float=function),
        summary,
        domain=domain,
        max_ulp=max_ulp,
        expensive=expensive,
        numpy_name=name,
        on_target={} if on_gpu is None else {"nvptx": definitions(float=on_gpu)},
        contracts=name in _CONTRACTING,
    )


_POWER_ULP = {"float32": 0.6, "float64": 1.5}
# float32: 1.0 by the definition; 1.96 measured with a GPU's special unit, over a sixtieth of all values. NumPy's own: 2.5.
_EXPONENTIAL_ULP = {"float32": 2.0, "float64": 1.0}
_LOGARITHM_ULP = {"float32": 2.0, "float64": 1.0}

ELEMENTARY_ROWS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        "sqrt",
        1,
        Lowering(float=Intrinsic("llvm.sqrt")),
        "non-negative square root",
        domain=POSITIVE,
        expensive=6.0,
        numpy_name="sqrt",
    ),
    ScalarFunction(
        "square", 1, definitions(float=power.square, integer=power.square), "the value squared", numpy_name="square"
    ),
    ScalarFunction(
        "reciprocal",
        1,
        definitions(float=power.reciprocal, integer=integer.reciprocal),
        "one divided by the value",
        expensive=4.0,
        numpy_name="reciprocal",
    ),
    ScalarFunction(
        "power",
        2,
        definitions(float=power.power, integer=integer.power),
        "the first to the power of the second, which is not negative for integers",
        max_ulp=_POWER_ULP,
        expensive=90.0,
        numpy_name="power",
    ),
    ScalarFunction(
        "float_power",
        2,
        definitions(float=power.power),
        "the first to the power of the second",
        max_ulp=_POWER_ULP,
        expensive=90.0,
        numpy_name="float_power",
    ),
    _elementary("cbrt", power.cbrt, "cube root", REALS, max_ulp=1.0, expensive=25.0),
    _elementary(
        "exp",
        exponential.exp,
        "e to the power of the value",
        REALS,
        max_ulp=_EXPONENTIAL_ULP,
        expensive=28.0,
        on_gpu=exponential.exp_of_special_unit,
    ),
    _elementary("exp2", exponential.exp2, "two to the power of the value", REALS, max_ulp=1.2, expensive=28.0),
    _elementary(
        "expm1", exponential.expm1, "e to the power of the value, less one", REALS, max_ulp=1.5, expensive=36.0
    ),
    _elementary("log", logarithm.log, "natural logarithm", POSITIVE, max_ulp=1.0, expensive=40.0),
    _elementary("log2", logarithm.log2, "logarithm to base two", POSITIVE, max_ulp=_LOGARITHM_ULP, expensive=42.0),
    _elementary("log10", logarithm.log10, "logarithm to base ten", POSITIVE, max_ulp=_LOGARITHM_ULP, expensive=44.0),
    _elementary(
        "log1p",
        logarithm.log1p,
        "natural logarithm of one plus the value",
        Interval(low=-1.0),
        max_ulp=1.5,
        expensive=50.0,
    ),
    _elementary("sin", trigonometric.sin, "sine", REALS, max_ulp=1.6, expensive=42.0),
    _elementary("cos", trigonometric.cos, "cosine", REALS, max_ulp=1.6, expensive=42.0),
    _elementary("tan", trigonometric.tan, "tangent", REALS, max_ulp=1.8, expensive=48.0),
    _elementary("arcsin", inverse_trigonometric.arcsin, "arc sine", UNIT, max_ulp=1.7, expensive=40.0),
    _elementary("arccos", inverse_trigonometric.arccos, "arc cosine", UNIT, max_ulp=1.2, expensive=45.0),
    _elementary("arctan", inverse_trigonometric.arctan, "arc tangent", REALS, max_ulp=1.6, expensive=38.0),
    ScalarFunction(
        "arctan2",
        2,
        definitions(float=inverse_trigonometric.arctan2),
        "angle of the point with the second as abscissa and the first as ordinate",
        max_ulp=1.6,
        expensive=50.0,
        numpy_name="arctan2",
    ),
    _elementary("sinh", hyperbolic.sinh, "hyperbolic sine", REALS, max_ulp=1.7, expensive=50.0),
    _elementary("cosh", hyperbolic.cosh, "hyperbolic cosine", REALS, max_ulp=1.5, expensive=36.0),
    _elementary("tanh", hyperbolic.tanh, "hyperbolic tangent", REALS, max_ulp=2.6, expensive=45.0),
    _elementary("arcsinh", hyperbolic.arcsinh, "inverse hyperbolic sine", REALS, max_ulp=2.0, expensive=110.0),
    _elementary(
        "arccosh", hyperbolic.arccosh, "inverse hyperbolic cosine", Interval(low=1.0), max_ulp=2.2, expensive=110.0
    ),
    _elementary("arctanh", hyperbolic.arctanh, "inverse hyperbolic tangent", UNIT, max_ulp=2.2, expensive=62.0),
    ScalarFunction(
        "hypot",
        2,
        definitions(float=special.hypot),
        "length of the vector of two values",
        identity=_zero,
        algebra=MONOID,
        max_ulp=1.2,
        expensive=25.0,
        numpy_name="hypot",
    ),
    ScalarFunction(
        "logaddexp",
        2,
        definitions(float=special.logaddexp),
        "logarithm of the sum of the exponentials of two values",
        identity=lowest,
        algebra=MONOID,
        max_ulp=3.0,
        expensive=85.0,
        numpy_name="logaddexp",
    ),
    ScalarFunction(
        "logaddexp2",
        2,
        definitions(float=special.logaddexp2),
        "logarithm to base two of the sum of the powers of two of two values",
        identity=lowest,
        algebra=MONOID,
        max_ulp=3.0,
        expensive=85.0,
        numpy_name="logaddexp2",
    ),
    _elementary("degrees", special.degrees, "radians to degrees", REALS, max_ulp=0.0, expensive=1.0),
    _elementary("rad2deg", special.degrees, "radians to degrees", REALS, max_ulp=0.0, expensive=1.0),
    _elementary("radians", special.radians, "degrees to radians", REALS, max_ulp=0.0, expensive=1.0),
    _elementary("deg2rad", special.radians, "degrees to radians", REALS, max_ulp=0.0, expensive=1.0),
)
