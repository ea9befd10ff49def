"""Rows of the table: powers, exponentials, logarithms, trigonometric and hyperbolic functions."""

from codegen.scalar import integer, power
from codegen.scalar.function import POSITIVE, Intrinsic, Lowering, ScalarFunction, definitions

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
)
