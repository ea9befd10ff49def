"""Index arithmetic on numbers and int64 names: constants fold, so that the text stays short."""

from math import gcd

from codegen.ir.kernel import Value
from codegen.llvm.writer import FunctionWriter

Index = int | str
"""A number known now, or the name of an i64."""


def add(writer: FunctionWriter, a: Index, b: Index) -> Index:
    """``a + b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0:
        return b
    if b == 0:
        return a
    return writer.value(f"add nsw i64 {a}, {b}")


def subtract(writer: FunctionWriter, a: Index, b: Index) -> Index:
    """``a - b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return a if b == 0 else writer.value(f"sub nsw i64 {a}, {b}")


def multiply(writer: FunctionWriter, a: Index, b: Index) -> Index:
    """``a * b``."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a == 1:
        return b
    return a if b == 1 else writer.value(f"mul nsw i64 {a}, {b}")


def below(writer: FunctionWriter, position: Index, extent: Index) -> str:
    """``0 <= position < extent`` as an i1: a negative position is a huge unsigned one, and no extent is negative."""
    if isinstance(position, int) and isinstance(extent, int):
        return "true" if 0 <= position < extent else "false"
    return writer.value(f"icmp ult i64 {position}, {extent}")


def both(writer: FunctionWriter, a: str | None, b: str | None) -> str | None:
    """``a & b``, where None stands for true."""
    if a is None or b is None:
        return b if a is None else a
    if "true" in (a, b):
        return b if a == "true" else a
    return writer.value(f"and i1 {a}, {b}")


class IndexFacts:
    """What is known of int64 scalars: a number that divides them, and whether they can be negative."""

    def __init__(self) -> None:
        self._divisor: dict[Value, int] = {}
        self._from_zero: set[Value] = set()

    def state(self, value: Value, divisor: int, from_zero: bool) -> None:
        """Record facts; 0 is divided by everything and has divisor 0."""
        self._divisor[value] = divisor
        if from_zero:
            self._from_zero.add(value)

    def divisor(self, value: Value) -> int:
        """A number that divides `value`; 0 if the value is 0."""
        return self._divisor.get(value, 1)

    def is_from_zero(self, value: Value) -> bool:
        """Whether the value is known not to be negative."""
        return value in self._from_zero

    def derive(self, function: str, operands: tuple[Value, ...], result: Value) -> None:
        """Record what follows for a Map of int64 scalars."""
        divisors = [self.divisor(operand) for operand in operands]
        from_zero = all(self.is_from_zero(operand) for operand in operands)
        if function in ("add", "minimum", "maximum", "subtract"):
            self.state(result, gcd(*divisors), from_zero and function != "subtract")
        elif function == "multiply":
            self.state(result, divisors[0] * divisors[1], from_zero)
