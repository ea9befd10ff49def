"""What is known of int64 values when a kernel is compiled: enough to prove that windows lie inside of buffers.

A value is written as a sum of symbols times numbers, plus a range that its elements spread over: the block
``iota + 64 * program`` is ``64 * program + [0, 63]``. Symbols are values that no sum stands for: parameters, program and loop
indices, results of other functions. What is known of symbols is a list of *facts*, sums that are at least 0. That a sum is at
least 0 is proved by taking facts away from it until only symbols that are not negative are left.

Indices do not overflow: they count elements of memory that exists.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import gcd

from codegen import dtypes
from codegen.ir.kernel import IndexParameter, Kernel, Value
from codegen.ir.operations import (
    Broadcast,
    Cast,
    Constant,
    For,
    Iota,
    Load,
    Map,
    Operation,
    ProgramIndex,
    Reshape,
    Store,
)

# Facts taken away from one sum; the longest chain that a lowered kernel needs is a window in a loop in a program's part.
_LONGEST_PROOF = 5


@dataclass(frozen=True)
class Sum:
    """``low <= value - (sum of symbols times factors) <= high`` for each element of a value.

    Attributes
    ----------
    terms : mapping
        Factor of each symbol; none is 0.
    low, high : int
    """

    terms: Mapping[Value, int]
    low: int
    high: int

    def plus(self, other: "Sum", factor: int = 1) -> "Sum":
        """``self + factor * other``."""
        terms = dict(self.terms)
        for symbol, count in other.terms.items():
            total = terms.get(symbol, 0) + factor * count
            if total:
                terms[symbol] = total
            else:
                del terms[symbol]
        ends = (factor * other.low, factor * other.high)
        return Sum(terms, self.low + min(ends), self.high + max(ends))

    def shifted(self, number: int) -> "Sum":
        """``self + number``."""
        return Sum(self.terms, self.low + number, self.high + number)

    @property
    def number(self) -> int | None:
        """The only number that the value can be, if no symbol is in it."""
        return self.low if not self.terms and self.low == self.high else None


def _number(number: int) -> Sum:
    return Sum({}, number, number)


ZERO = _number(0)


class IndexBounds:
    """Sums and facts of a kernel, which is walked from its beginning on.

    Parameters
    ----------
    kernel : Kernel
        Its index parameters are extents, which are not negative.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._sums: dict[Value, Sum] = {}
        self._facts: dict[Value, list[Sum]] = {}
        self._divisors: dict[Value, int] = {}
        self._not_negative: set[Value] = set()
        self._definitions: dict[Value, Map] = {}
        self._extents: dict[str, Value] = {}
        for parameter in kernel.parameters:
            if isinstance(parameter, IndexParameter):
                self._extents[parameter.name] = parameter.value
                self._divisors[parameter.value] = parameter.divisible
                self._not_negative.add(parameter.value)

    def sum_of(self, value: Value) -> Sum:
        """The sum that stands for an int64 value; the value itself as a symbol, if no other is known."""
        found = self._sums.get(value)
        return Sum({value: 1}, 0, 0) if found is None else found

    def extent(self, extent: str | int) -> Sum:
        """The sum of an extent of a buffer or of the grid."""
        return _number(extent) if isinstance(extent, int) else self.sum_of(self._extents[extent])

    def is_not_negative(self, value: Sum) -> bool:
        """Whether a sum is proved to be at least 0, in all its elements."""
        return self._prove(value, _LONGEST_PROOF)

    def is_window_inside(self, offset: Value, length: int, extent: str | int) -> bool:
        """Whether ``0 <= offset`` and ``offset + length <= extent`` are proved."""
        begin = self.sum_of(offset)
        return self.is_not_negative(begin) and self.is_not_negative(
            self.extent(extent).plus(begin, -1).shifted(-length)
        )

    def walk(self, operation: Operation) -> None:
        """Take up an operation that stands behind those walked before; the bodies in it are walked afterwards."""
        rule = _RULES.get(type(operation))
        if rule is not None:
            rule(self, operation)

    @contextmanager
    def assuming(self, condition: Value) -> Iterator[None]:
        """What a condition says holds inside of the context."""
        with self._inside():
            for fact in self._stated(condition):
                self._state(fact)
            yield

    @contextmanager
    def in_turn_of(self, loop: For) -> Iterator[None]:
        """What holds inside of the context, a turn of the loop: its index is between the bounds.

        Behind the loop, and in a loop that follows, it would say that there was a turn.
        """
        with self._inside():
            self._loop(loop)
            yield

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Facts that are stated inside of the context are forgotten at its end."""
        counts = {symbol: len(facts) for symbol, facts in self._facts.items()}
        not_negative = set(self._not_negative)
        try:
            yield
        finally:
            self._not_negative = not_negative
            self._facts = {symbol: facts[: counts[symbol]] for symbol, facts in self._facts.items() if symbol in counts}

    def longest_loop(self, loop: For) -> int | None:
        """A number of turns that a loop never exceeds, if one is known."""
        distance = self.sum_of(loop.operands[1]).plus(self.sum_of(loop.operands[0]), -1)
        for count in (4, 64, 1024):
            if self.is_not_negative(_number(count * loop.step).plus(distance, -1)):
                return count
        return None

    def known_comparison(self, operation: Map) -> bool | None:
        """The result of a comparison of int64 values, if it is the same for all elements."""
        if operation.operands[0].block.dtype is not dtypes.int64:
            return None
        first, second = (self.sum_of(value) for value in operation.operands)
        difference = second.plus(first, -1)
        if operation.function in ("greater", "greater_equal"):
            difference = first.plus(second, -1)
        margin = 0 if operation.function in ("less_equal", "greater_equal") else 1
        if self.is_not_negative(difference.shifted(-margin)):
            return True
        opposite = ZERO.plus(difference, -1).shifted(margin - 1)
        return False if self.is_not_negative(opposite) else None

    def _prove(self, value: Sum, depth: int) -> bool:
        if not value.terms:
            return value.low >= 0
        in_the_way = [
            symbol for symbol, factor in value.terms.items() if factor < 0 or symbol not in self._not_negative
        ]
        if not in_the_way and value.low >= 0:
            return True
        if depth == 0:
            return False
        # Each of them has to go at some time, so that it is enough to look at ways to be rid of the first.
        for symbol in in_the_way[:1] or value.terms:
            factor = value.terms[symbol]
            for fact in self._facts.get(symbol, ()):
                times, rest = divmod(factor, fact.terms[symbol])
                # A fact that holds for a sum holds for times the sum; what is left has to be at least 0 by itself.
                if times > 0 and rest == 0 and self._prove(value.plus(fact, -times), depth - 1):
                    return True
        return False

    def _state(self, fact: Sum) -> None:
        """Record that a sum of scalars, which is exact, is at least 0."""
        for symbol in fact.terms:
            self._facts.setdefault(symbol, []).append(fact)
        if len(fact.terms) == 1 and fact.low <= 0:
            ((symbol, factor),) = fact.terms.items()
            if factor > 0:
                self._not_negative.add(symbol)

    def _stated(self, condition: Value) -> Iterator[Sum]:
        """Facts that hold where a condition does."""
        operation = self._definitions.get(condition)
        if operation is None:
            return
        if operation.function in ("logical_and", "bitwise_and"):
            for operand in operation.operands:
                yield from self._stated(operand)
        elif operation.function in ("less", "less_equal", "greater", "greater_equal"):
            smaller, larger = operation.operands
            if operation.function.startswith("greater"):
                smaller, larger = larger, smaller
            margin = 0 if operation.function.endswith("equal") else 1
            yield self.sum_of(larger).plus(self.sum_of(smaller), -1).shifted(-margin)

    def divisor(self, value: Sum) -> int:
        """A number that divides a value; 0 if the value is 0."""
        if value.low != value.high:
            return 1
        result = abs(value.low)
        for symbol, factor in value.terms.items():
            result = gcd(result, factor * self._divisors.get(symbol, 1))
        return result

    def _program_index(self, operation: ProgramIndex) -> None:
        axis = self._kernel.grid[operation.axis]
        index = operation.result
        self._not_negative.add(index)
        extent = self.extent(axis.extent)
        # The last program begins inside of the axis; all of its block is inside if blocks divide the extent.
        inside = axis.block if self.divisor(extent) % axis.block == 0 else 1
        self._state(extent.plus(Sum({index: axis.block}, 0, 0), -1).shifted(-inside))

    def _loop(self, operation: For) -> None:
        index = operation.bodies[0].parameters[0]
        begin, end = (self.sum_of(value) for value in operation.operands[:2])
        symbol = Sum({index: 1}, 0, 0)
        self._divisors[index] = gcd(self.divisor(begin), operation.step)
        self._state(symbol.plus(begin, -1))
        if self.is_not_negative(begin):
            self._not_negative.add(index)
        inside = operation.step if self.divisor(end.plus(begin, -1)) % operation.step == 0 else 1
        self._state(end.plus(symbol, -1).shifted(-inside))

    def _constant(self, operation: Constant) -> None:
        if operation.dtype is dtypes.int64:
            self._sums[operation.result] = _number(int(operation.number))

    def _iota(self, operation: Iota) -> None:
        self._sums[operation.result] = Sum({}, 0, operation.shape[operation.axis] - 1)

    def _same(self, operation: Broadcast | Reshape) -> None:
        (value,) = operation.operands
        if value.block.dtype is not dtypes.int64:
            return
        found = self.sum_of(value)
        # A reshape may turn a column into a row, which are no longer the same where elements meet.
        if isinstance(operation, Broadcast) or not any(symbol.block.shape for symbol in found.terms):
            self._sums[operation.result] = found

    def _cast(self, operation: Cast) -> None:
        if operation.dtype is dtypes.int64 and operation.operands[0].block.dtype.kind == "unsigned":
            if operation.operands[0].block.dtype.bits < 64:
                self._not_negative.add(operation.result)

    def _map(self, operation: Map) -> None:
        result = operation.result
        if result.block.dtype is dtypes.boolean:
            if not result.block.shape:
                self._definitions[result] = operation
            return
        if result.block.dtype is not dtypes.int64 or operation.function not in _FUNCTIONS:
            return
        _FUNCTIONS[operation.function](self, operation, *(self.sum_of(value) for value in operation.operands))

    def _add(self, operation: Map, a: Sum, b: Sum) -> None:
        self._sums[operation.result] = a.plus(b)

    def _subtract(self, operation: Map, a: Sum, b: Sum) -> None:
        self._sums[operation.result] = a.plus(b, -1)

    def _multiply(self, operation: Map, a: Sum, b: Sum) -> None:
        value, number = (a, b.number) if b.number is not None else (b, a.number)
        if number is not None:
            self._sums[operation.result] = ZERO.plus(value, number) if number else ZERO
        elif self.is_not_negative(a) and self.is_not_negative(b):
            self._not_negative.add(operation.result)

    def _minimum(self, operation: Map, a: Sum, b: Sum) -> None:
        if operation.result.block.shape:
            return
        symbol = Sum({operation.result: 1}, 0, 0)
        if self.is_not_negative(a) and self.is_not_negative(b):
            self._not_negative.add(operation.result)
        self._divisors[operation.result] = gcd(self.divisor(a), self.divisor(b))
        for limit in (a, b):
            self._state(limit.plus(symbol, -1))

    def _maximum(self, operation: Map, a: Sum, b: Sum) -> None:
        if operation.result.block.shape:
            return
        symbol = Sum({operation.result: 1}, 0, 0)
        if self.is_not_negative(a) or self.is_not_negative(b):
            self._not_negative.add(operation.result)
        self._divisors[operation.result] = gcd(self.divisor(a), self.divisor(b))
        for limit in (a, b):
            self._state(symbol.plus(limit, -1))

    def _mask(self, operation: Map, a: Sum, b: Sum) -> None:
        """``x & -16``: the largest multiple of 16 that is not above x."""
        value, mask = (a, b.number) if b.number is not None else (b, a.number)
        if mask is None or operation.result.block.shape:
            return
        if mask >= 0:
            self._not_negative.add(operation.result)
            self._state(_number(mask).plus(Sum({operation.result: 1}, 0, 0), -1))
            return
        step = -mask
        if step & (step - 1):
            return
        symbol = Sum({operation.result: 1}, 0, 0)
        self._divisors[operation.result] = step
        if self.is_not_negative(value):
            self._not_negative.add(operation.result)
        self._state(value.plus(symbol, -1))
        self._state(symbol.plus(value, -1).shifted(step - 1))


_RULES: Mapping[type[Operation], Callable[..., None]] = {
    ProgramIndex: IndexBounds._program_index,
    Constant: IndexBounds._constant,
    Iota: IndexBounds._iota,
    Broadcast: IndexBounds._same,
    Reshape: IndexBounds._same,
    Cast: IndexBounds._cast,
    Map: IndexBounds._map,
}
_FUNCTIONS: Mapping[str, Callable[..., None]] = {
    "add": IndexBounds._add,
    "subtract": IndexBounds._subtract,
    "multiply": IndexBounds._multiply,
    "minimum": IndexBounds._minimum,
    "maximum": IndexBounds._maximum,
    "bitwise_and": IndexBounds._mask,
}


@dataclass(frozen=True)
class WindowAxis:
    """One axis of a window: `length` elements from `offset` on, in a buffer with `extent` elements there."""

    offset: Value
    length: int
    extent: str | int
    checked: bool


def window_axes(operation: Load | Store) -> tuple[WindowAxis, ...]:
    """The axes of the window that is loaded or stored."""
    is_load = isinstance(operation, Load)
    offsets = operation.operands[1:] if is_load else operation.operands[1:-1]
    shape = operation.shape if isinstance(operation, Load) else operation.operands[-1].block.shape
    rows = zip(offsets, shape, operation.operands[0].buffer.extents, operation.checked, strict=True)
    return tuple([WindowAxis(*row) for row in rows])
