"""Combiners: neutral elements, associativity, and reductions over trees of any shape against NumPy."""

import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scalar_reference import array_of, assert_same, special_values

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.combiners import COMBINERS, INT64_MAX, combiner
from codegen.scalar.function import Algebra
from codegen.scalar.numpy_core import NumpyCore, NumpyValue
from codegen.scalar.table import TABLE

CORE = NumpyCore()
Part = tuple[NumpyValue, ...]
ROWS = [row for row in TABLE.values() if row.is_a(Algebra.ASSOCIATIVE)]
# logic gives booleans, so that only booleans can be combined again
ROW_CASES = [
    pytest.param(row.name, dtype, id=f"{row.name}-{dtype}")
    for row in ROWS
    for dtype in dtypes.ALL
    if row.takes(dtype) and row.result_dtype(dtype, dtype) is dtype
]
CHANGES_SIGN = {"gcd", "lcm", "hypot"}  # one operand alone keeps its sign, which these lose


def part(*arrays: np.ndarray) -> Part:
    return tuple(CORE.value(array) for array in arrays)


def combine(name: str, left: Part, right: Part) -> Part:
    return combiner(name).combine(CORE, left, right)


def numbers(values: Part) -> list:
    return [array_of(value).tolist() for value in values]


def tree(name: str, parts: list[Part], split: int) -> Part:
    """Combine in an order given by `split`, neighbours only."""
    if len(parts) == 1:
        return parts[0]
    middle = 1 + split % (len(parts) - 1)
    return combine(name, tree(name, parts[:middle], split // 2), tree(name, parts[middle:], split // 3))


@pytest.mark.parametrize(("name", "dtype"), ROW_CASES)
def test_identity_changes_nothing(name: str, dtype: DType) -> None:
    x = special_values(dtype)
    if name in CHANGES_SIGN:
        x = np.abs(x[x == x])
        x = x[x >= 0]
    (number,) = combiner(name).identity((dtype,))
    neutral = part(np.full(x.shape, number).astype(dtype.numpy))
    for left, right in ((neutral, part(x)), (part(x), neutral)):
        # -0 + 0 is 0
        assert_same(array_of(combine(name, left, right)[0]), x, x, zero_signs=False)


@pytest.mark.parametrize(("name", "dtype"), [c for c in ROW_CASES if c.values[1].kind != "float"])
def test_integers_are_associative(name: str, dtype: DType) -> None:
    generator = np.random.default_rng(1)
    a, b, c = (part(generator.choice(special_values(dtype), 300)) for _ in range(3))
    if name == "lcm":
        # wrapping around is not compatible with division: operands whose multiples fit
        a, b, c = (part(generator.integers(0, 5, 300).astype(dtype.numpy)) for _ in range(3))
    left = combine(name, combine(name, a, b), c)
    right = combine(name, a, combine(name, b, c))
    assert numbers(left) == numbers(right)


EXTREME = st.sampled_from([0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@given(values=st.lists(EXTREME, min_size=1, max_size=9), split=st.integers(0, 10**6))
def test_index_of_extreme_is_numpys(name: str, values: list[float], split: int) -> None:
    parts = [part(np.float64(value), np.int64(index)) for index, value in enumerate(values)]
    value, index = tree(name, parts, split)
    expected = int(getattr(np, name)(values))
    assert array_of(index) == expected
    assert_same(array_of(value), np.asarray(values[expected]))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_index_of_extreme_against_identity(name: str, dtype: DType) -> None:
    worst, index = combiner(name).identity((dtype, dtypes.int64))
    assert index == INT64_MAX
    neutral = part(np.array(worst).astype(dtype.numpy), np.int64(index))
    for value in special_values(dtype):
        element = part(np.asarray(value), np.int64(0))
        for left, right in ((neutral, element), (element, neutral)):
            chosen, position = combine(name, left, right)
            assert array_of(position) == 0
            assert array_of(chosen).tobytes() == np.asarray(value).tobytes()


@given(
    values=st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=12), split=st.integers(0, 10**6)
)
def test_welford_gives_mean_and_variance(values: list[float], split: int) -> None:
    parts = [part(np.float64(value), np.float64(0), np.float64(1)) for value in values]
    empty = part(*(np.float64(number) for number in combiner("welford").identity((dtypes.float64,) * 3)))
    mean, squares, count = tree("welford", [empty, *parts, empty], split)
    assert array_of(count) == len(values)
    assert np.isclose(array_of(mean), np.mean(values), rtol=1e-12, atol=1e-9)
    assert np.isclose(array_of(squares) / len(values), np.var(values), rtol=1e-9, atol=1e-9)


def test_welford_is_accurate_far_from_zero() -> None:
    x = (7e5 - 12 * np.random.default_rng(3).standard_normal(4096)).astype(np.float32)
    parts = [part(value, np.float32(0), np.float32(1)) for value in x[:512]]
    _, squares, count = reduce(lambda left, right: combine("welford", left, right), parts)
    assert np.isclose(array_of(squares) / array_of(count), x[:512].astype(np.float64).var(), rtol=5e-3)


@pytest.mark.parametrize(
    "values", [[math.inf, 1.0], [1.0, math.inf, 2.0], [-math.inf, -math.inf], [math.inf, -math.inf]]
)
def test_welford_of_infinities_is_numpys(values: list[float]) -> None:
    parts = [part(np.float64(value), np.float64(0), np.float64(1)) for value in values]
    mean, squares, _ = tree("welford", parts, 0)
    with np.errstate(invalid="ignore"):
        assert_same(array_of(mean), np.asarray(np.mean(values)))
    assert np.isnan(array_of(squares))


def test_welford_of_nothing_is_nothing() -> None:
    empty = part(np.float64(0), np.float64(0), np.float64(0))
    assert numbers(combine("welford", empty, empty)) == [0, 0, 0]


@given(values=st.lists(EXTREME, min_size=1, max_size=9), split=st.integers(0, 10**6))
def test_maximum_and_sum_of_exponentials(values: list[float], split: int) -> None:
    empty = part(*(np.float64(number) for number in combiner("maximum_sum_exp").identity((dtypes.float64,) * 2)))
    parts = [part(np.float64(value), np.float64(1)) for value in values]
    maximum, total = tree("maximum_sum_exp", [empty, *parts, empty], split)
    assert_same(array_of(maximum), np.asarray(np.max(values)), zero_signs=False)
    with np.errstate(all="ignore"):
        logsumexp = array_of(maximum) + np.log(array_of(total))
        assert np.isclose(logsumexp, np.logaddexp.reduce(values), equal_nan=True)
        literal = array_of(total) + (array_of(maximum) - array_of(maximum))
        assert np.isclose(literal, np.sum(np.exp(values - np.max(values))), equal_nan=True)


def test_every_associative_row_and_no_other_has_a_combiner() -> None:
    composed = {"argmax", "argmin", "welford", "maximum_sum_exp"}
    assert set(COMBINERS) - composed == {row.name for row in ROWS}
    assert {c.name: c.arity for c in COMBINERS.values() if c.name in composed} == {
        "argmax": 2,
        "argmin": 2,
        "welford": 3,
        "maximum_sum_exp": 2,
    }


def test_unknown_combiner_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match="no combiner is called 'median'; known: .*welford"):
        combiner("median")


@pytest.mark.parametrize("name", [row.name for row in COMBINERS.values() if row.gather is not None])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_gathered_elements_are_those_combined_one_by_one(name: str, count: int) -> None:
    generator = np.random.default_rng(count)
    row = combiner(name)
    assert row.gather is not None
    columns = [generator.normal(2.0, 3.0, 50).astype(np.float64) for _ in range(count)]
    if name == "maximum_sum_exp":
        columns[0][:10] = -np.inf
        columns[-1][:5] = np.inf
    start = part(*(np.full(50, number, np.float64) for number in row.identity((dtypes.float64,) * row.arity)))
    expected = start
    for column in columns:
        expected = combine(name, expected, part(column, *(np.full(50, float(number)) for number in row.rest)))
    elements = [CORE.value(column) for column in columns]
    for begin in (start, expected):
        one_by_one = begin
        for column in columns:
            one_by_one = combine(name, one_by_one, part(column, *(np.full(50, float(number)) for number in row.rest)))
        gathered = row.gather(CORE, begin, elements)
        for found, wanted in zip(gathered, one_by_one, strict=True):
            np.testing.assert_allclose(array_of(found), array_of(wanted), rtol=1e-12, atol=1e-12)
