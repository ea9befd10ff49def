"""Powers."""

from codegen.scalar.function import CoreFunctions, ScalarValue


def square(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """The value times itself."""
    return x * x


def reciprocal(core: CoreFunctions, x: ScalarValue) -> ScalarValue:
    """One divided by the value."""
    return 1.0 / x
