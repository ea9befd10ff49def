"""Associative combinations of partial results, for reductions and scans on every target."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from codegen.dtypes import DType
from codegen.scalar.function import Algebra, CoreFunctions, Number, ScalarValue, highest, lowest
from codegen.scalar.table import TABLE

Values = tuple[ScalarValue, ...]

INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class Combiner:
    """An associative function of two partial results, each a tuple of `arity` values.

    Attributes
    ----------
    name : str
    arity : int
        Values in one partial result.
    combine : callable
        ``combine(core, left, right) -> tuple``; `left` comes from elements before those of `right`.
    identity : callable
        ``identity(dtypes) -> tuple`` of numbers: the partial result that changes nothing.
    rest : tuple of int
        One element x alone is the partial result ``(x, *rest)``.
    gather : callable, optional
        ``gather(core, partial, elements) -> tuple`` merges a partial result with several elements behind it, for less than
        `combine` would take for each of them.
    """

    name: str
    arity: int
    combine: Callable[[CoreFunctions, Values, Values], Values]
    identity: Callable[[tuple[DType, ...]], tuple[Number, ...]]
    rest: tuple[int, ...] = ()
    gather: Callable[[CoreFunctions, Values, Sequence[ScalarValue]], Values] | None = None


def _of_row(name: str) -> Combiner:
    """Combine with an associative row of the table."""
    row = TABLE[name]

    def combine(core: CoreFunctions, left: Values, right: Values) -> Values:
        return (core.apply(name, left[0], right[0]),)

    def identity(dtypes: tuple[DType, ...]) -> tuple[Number, ...]:
        number = row.identity_for(dtypes[0])
        if number is None:
            raise TypeError(f"{name}: an associative row needs an identity, and has none on {dtypes[0]}")
        return (number,)

    return Combiner(name, 1, combine, identity)


def _first_of(comparison: str, worst: Callable[[DType], Number]) -> Combiner:
    """Value and index of the extreme element: the first NaN wins, then the better value, then the smaller index."""

    def combine(core: CoreFunctions, left: Values, right: Values) -> Values:
        (left_value, left_index), (right_value, right_index) = left, right
        better = core.apply(comparison, right_value, left_value)
        tied = core.apply("equal", right_value, left_value)
        if core.dtype(left_value).kind == "float":
            left_nan = core.apply("isnan", left_value)
            right_nan = core.apply("isnan", right_value)
            better = better | (right_nan & ~left_nan)
            tied = tied | (right_nan & left_nan)
        right_wins = better | (tied & (right_index < left_index))
        return core.where(right_wins, right_value, left_value), core.where(right_wins, right_index, left_index)

    def identity(dtypes: tuple[DType, ...]) -> tuple[Number, ...]:
        return worst(dtypes[0]), INT64_MAX

    return Combiner("argmax" if comparison == "greater" else "argmin", 2, combine, identity)


def _welford(core: CoreFunctions, left: Values, right: Values) -> Values:
    """Merge (mean, sum of squared deviations, count) of two parts.

    Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979). An empty
    part has count 0. Infinite data give an infinite or NaN mean as their sum would, and a NaN deviation.
    """
    (left_mean, left_squares, left_count), (right_mean, right_squares, right_count) = left, right
    count = left_count + right_count
    share = right_count / core.where(count == 0, core.constant(count, 1), count)
    difference = right_mean - left_mean
    shifted = left_mean + difference * share
    zero_or_nan = difference - difference
    mean = core.where(zero_or_nan == 0, shifted, left_mean + right_mean)
    squares = left_squares + right_squares + difference * difference * (left_count * share) + zero_or_nan
    return mean, squares, count


def _by_halves(values: Sequence[ScalarValue], merge: Callable[[ScalarValue, ScalarValue], ScalarValue]) -> ScalarValue:
    """Values folded by halves, in order."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return merge(_by_halves(values[:middle], merge), _by_halves(values[middle:], merge))


def _total(values: Sequence[ScalarValue]) -> ScalarValue:
    return _by_halves(values, lambda left, right: left + right)


def _welford_of_several(core: CoreFunctions, partial: Values, elements: Sequence[ScalarValue]) -> Values:
    """Merge a part with some elements: their own mean and deviations first, in two steps, then as two parts.

    So the data may lie far from zero: nothing is subtracted from the squares of the elements themselves.
    """
    count = core.constant(elements[0], len(elements))
    mean = _total(elements) / count
    deviations = [element - mean for element in elements]
    squares = _total([deviation * deviation for deviation in deviations])
    return _welford(core, partial, (mean, squares, count))


def _maximum_sum_exp_of_several(core: CoreFunctions, partial: Values, elements: Sequence[ScalarValue]) -> Values:
    """Merge a part with some elements: one exponential for each, and one for the part."""
    before, total = partial
    highest_element = _by_halves(elements, lambda left, right: core.apply("maximum", left, right))
    maximum = core.apply("maximum", before, highest_element)
    one = core.constant(maximum, 1)
    terms = [core.where(one_of == maximum, one, core.apply("exp", one_of - maximum)) for one_of in elements]
    scaled = core.where(before == maximum, total, total * core.apply("exp", before - maximum))
    return maximum, scaled + _total(terms)


def _maximum_sum_exp(core: CoreFunctions, left: Values, right: Values) -> Values:
    """Merge (maximum, sum of exp(x - maximum)) of two parts; one element x is the part (x, 1).

    Elements equal to the maximum count 1 each, infinite ones too, so ``maximum + log(sum)`` is the logarithm of the
    sum of exponentials for infinite data as well. Where NumPy's literal ``sum(exp(x - max(x)))`` is wanted, which is
    NaN if the maximum is infinite, add ``maximum - maximum`` to the sum.
    """
    (left_maximum, left_sum), (right_maximum, right_sum) = left, right
    maximum = core.apply("maximum", left_maximum, right_maximum)
    left_term = left_sum * core.apply("exp", left_maximum - maximum)
    right_term = right_sum * core.apply("exp", right_maximum - maximum)
    left_term = core.where(left_maximum == maximum, left_sum, left_term)
    right_term = core.where(right_maximum == maximum, right_sum, right_term)
    return maximum, left_term + right_term


def _zeros(dtypes: tuple[DType, ...]) -> tuple[Number, ...]:
    return (0,) * len(dtypes)


def _empty_maximum_sum(_dtypes: tuple[DType, ...]) -> tuple[Number, ...]:
    return -math.inf, 0


def _all() -> Mapping[str, Combiner]:
    rows = [_of_row(row.name) for row in TABLE.values() if row.is_a(Algebra.ASSOCIATIVE)]
    composed = [
        _first_of("greater", lowest),
        _first_of("less", highest),
        Combiner("welford", 3, _welford, _zeros, (0, 1), _welford_of_several),
        Combiner("maximum_sum_exp", 2, _maximum_sum_exp, _empty_maximum_sum, (1,), _maximum_sum_exp_of_several),
    ]
    return MappingProxyType({combiner.name: combiner for combiner in rows + composed})


COMBINERS = _all()


def combiner(name: str) -> Combiner:
    """The combiner called `name`; KeyError lists the known ones."""
    try:
        return COMBINERS[name]
    except KeyError:
        raise KeyError(f"no combiner is called {name!r}; known: {', '.join(COMBINERS)}") from None
