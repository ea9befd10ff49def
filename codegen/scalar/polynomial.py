"""Evaluation of polynomials, and constants that depend on the width of the float."""

from collections.abc import Sequence
from typing import TypeVar

from codegen.scalar.function import CoreFunctions, ScalarValue

Choice = TypeVar("Choice")


def horner(x: ScalarValue, coefficients: Sequence[float]) -> ScalarValue:
    """``coefficients[0] + coefficients[1] * x + …``, from the highest power down; two or more coefficients."""
    core = x.core
    result = core.multiply_add(x, coefficients[-1], coefficients[-2])
    for coefficient in reversed(coefficients[:-2]):
        result = core.multiply_add(result, x, coefficient)
    return result


def by_width(core: CoreFunctions, x: ScalarValue, single: Choice, double: Choice) -> Choice:
    """`single` for float32 values, `double` for float64 ones."""
    return single if core.dtype(x).bits == 32 else double


def clamp(core: CoreFunctions, x: ScalarValue, low: float, high: float) -> ScalarValue:
    """`x` held between two constants; NaN stays. Two machine instructions (minps, maxps)."""
    below = core.where(x > high, core.constant(x, high), x)
    return core.where(below < low, core.constant(x, low), below)
