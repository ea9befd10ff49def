"""Elementwise work, numbers, loops, branches and functions in kernels, against NumPy: on the host, interpreted, as PTX."""

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_runs import assert_everywhere

import blockarray as np
from blockarray.language import (
    Static,
    argmin,  # noqa: F401
    cast,
    cdiv,
    extent,
    load,
    program_index,
    store,
    zeros,
)
from blockarray.language.words import word_of
from codegen import dtypes
from codegen.frontend.language import NUMPY_WORDS
from codegen.scalar.table import TABLE

MATRIX = numpy.random.default_rng(0).normal(size=(13, 21)).astype(numpy.float32)
SQUARE = numpy.random.default_rng(1).integers(-9, 9, (16, 16)).astype(numpy.int32)
VECTOR = numpy.arange(1, 41, dtype=numpy.float32)


# --- elementwise


@np.kernel("(n)->(n)")
def unary(x, out, *, function: Static, block: Static = 64):
    first = program_index(0) * block
    store(out, first, function(load(x, first, block)))


@np.kernel("(n),(n)->(n)")
def binary(x, y, out, *, function: Static, block: Static = 64):
    first = program_index(0) * block
    store(out, first, function(load(x, first, block), load(y, first, block)))


@np.kernel("(n)->(n),(n)")
def two_results(x, first_out, second_out, *, function: Static, block: Static = 64):
    first = program_index(0) * block
    one, other = function(load(x, first, block))
    store(first_out, first, one)
    store(second_out, first, cast(other, second_out.dtype))


NAMES = sorted(
    row.numpy_name
    for row in TABLE.values()
    if row.numpy_name and isinstance(getattr(numpy, row.numpy_name, None), numpy.ufunc)
)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_of_the_table_by_numpys_name(name: str) -> None:
    ufunc = getattr(numpy, name)
    generator = numpy.random.default_rng(5)
    for dtype in ("float32", "int32"):
        operands = [generator.integers(1, 5, 30).astype(dtype) for _ in range(ufunc.nin)]
        if name == "ldexp":
            operands[1] = operands[1].astype(numpy.int32)
        try:
            with numpy.errstate(all="ignore"):
                expected = ufunc(*operands)
        except TypeError:
            continue
        for function in (ufunc, getattr(np, name)):
            kernel = unary if ufunc.nin == 1 else binary
            found = kernel.interpret(*operands, function=function, dtype=expected.dtype)
            numpy.testing.assert_allclose(numpy.asarray(found), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ("frexp", "modf"))
def test_functions_with_two_results(name: str) -> None:
    x = VECTOR / 7
    first, second = getattr(numpy, name)(x)
    assert_everywhere(two_results, (x,), (first, second.astype(x.dtype)), function=getattr(numpy, name), as_ptx=False)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
DTYPES = tuple(row.name for row in dtypes.ALL if row.name != "bfloat16")


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(sorted(OPERATORS)), st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_operators_promote_as_numpy(symbol: str, first: str, second: str) -> None:
    generator = numpy.random.default_rng(7)
    x, y = generator.integers(0, 5, 20).astype(first), generator.integers(1, 4, 20).astype(second)
    try:
        expected = OPERATORS[symbol](x, y)
    except TypeError:
        with pytest.raises(np.language.KernelError):
            binary.interpret(x, y, function=OPERATORS[symbol], dtype="float64")
        return
    found = numpy.asarray(binary.interpret(x, y, function=OPERATORS[symbol], dtype=expected.dtype))
    if symbol == "**" and expected.dtype.kind == "f":
        numpy.testing.assert_allclose(found, expected, rtol=1e-3)
    else:
        numpy.testing.assert_array_equal(found, expected)


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "x + 1": lambda x: x + 1,
    "2.5 * x": lambda x: 2.5 * x,
    "x - True": lambda x: x - True,
    "-x": lambda x: -x,
    "+x": lambda x: +x,
    "abs(x)": lambda x: abs(x),
    "x ** 2": lambda x: x**2,
    "x ** 0.5": lambda x: x**0.5,
    "x ** -1": lambda x: x**-1.0,
    "x ** 3": lambda x: x**3,
    "numpy scalar": lambda x: x * numpy.float64(0.1),
    "below all": lambda x: x > -1000,
    "pi": lambda x: x * math.pi,
    "where": lambda x: numpy.where(x > 3, x, 0),
    "clip": lambda x: numpy.clip(x, 2, 5),
}


@pytest.mark.parametrize("dtype", ("float32", "float16", "int32"))
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beside_blocks_adapt_as_numpys(name: str, dtype: str) -> None:
    x = numpy.arange(1, 30).astype(dtype)
    expected = NUMBERS[name](x)
    found = numpy.asarray(unary.interpret(x, function=NUMBERS[name], dtype=expected.dtype))
    assert found.dtype == expected.dtype
    numpy.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == "float16" else 1e-6)


def test_functions_of_the_library_are_words_by_numpys_names() -> None:
    for function in NUMPY_WORDS:
        own = getattr(np, function.__name__)
        assert word_of(own) is NUMPY_WORDS[function], function.__name__
    assert word_of(np.sort) is None and word_of(print) is None


def test_what_no_dtype_holds_is_still_compared() -> None:
    x, y = numpy.array([-1, 5], numpy.int64), numpy.array([2**63 + 1, 5], numpy.uint64)
    for symbol in ("<", "<=", ">", ">=", "==", "!="):
        expected = OPERATORS[symbol](x, y)
        numpy.testing.assert_array_equal(
            numpy.asarray(binary.interpret(x, y, function=OPERATORS[symbol], dtype=bool)), expected
        )
    small = numpy.arange(5, dtype=numpy.uint8)
    assert numpy.asarray(unary.interpret(small, function=lambda x: x < 300, dtype=bool)).all()
    assert not numpy.asarray(unary.interpret(small, function=lambda x: -1 > x, dtype=bool)).any()


@np.kernel
def casts(x, out, *, kind: Static, block: Static = 64):
    first = program_index(0) * block
    store(out, first, load(x, first, block).astype(kind))


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float64", "int8", "bool"))
def test_casts(dtype: str) -> None:
    x = VECTOR - 20.25
    row = dtypes.by_name(dtype).numpy
    out = numpy.zeros(40, row)
    casts(x, out, kind=row)
    numpy.testing.assert_array_equal(out, x.astype(row))


# --- numbers as arguments


@np.kernel("(n)->(n)")
def scaled(x, out, factor: float, offset: np.float32, count: int, *, block: Static = 64):
    first = program_index(0) * block
    store(out, first, load(x, first, block) * factor + offset * count)


def test_numbers_as_arguments_adapt_or_have_a_dtype() -> None:
    for dtype in ("float32", "float16", "float64"):
        x = VECTOR.astype(dtype)
        expected = x * 0.25 + numpy.float32(1.5) * 3
        out = numpy.zeros(40, expected.dtype)
        scaled(x, out, 0.25, 1.5, 3)
        numpy.testing.assert_array_equal(out, expected)
    out = numpy.zeros(40, numpy.float32)
    scaled.interpret(VECTOR, out, 0.25, 1.5, 3)
    numpy.testing.assert_array_equal(out, VECTOR * 0.25 + 4.5)


@np.kernel
def plus(x, number, out, *, block: Static = 64):
    first = program_index(0) * block
    store(out, first, cast(load(x, first, block) + number, out.dtype))


@pytest.mark.parametrize("number", (3, 2.5, True, numpy.float64(0.1), numpy.int8(-3)))
def test_numbers_are_told_from_arrays_by_the_call(number: Any) -> None:
    expected = VECTOR + number
    out = numpy.zeros(40, expected.dtype)
    plus(VECTOR, number, out)
    numpy.testing.assert_array_equal(out, expected)


def test_other_numbers_share_the_code() -> None:
    out = numpy.zeros(40, numpy.float32)
    plus(VECTOR, 1.0, out)
    before = len(plus._launches._compiled)
    plus(VECTOR, 2.0, out)
    plus(VECTOR[:-1], 7.0, out[:-1])
    assert len(plus._launches._compiled) == before + 1  # another alignment of the length


# --- control flow


@np.kernel("(n)->(n)")
def powers(x, out, *, terms: Static, block: Static = 64):
    first = program_index(0) * block
    value = load(x, first, block)
    total = zeros(block, x.dtype)
    for exponent in range(terms):
        if exponent % 2 == 0:
            total += value**exponent
        elif exponent == 1:
            total -= value
        else:
            pass
    for weight in (1, 2):
        total = total * weight
    store(out, first, total)


def test_static_loops_and_branches() -> None:
    x = VECTOR / 40
    assert_everywhere(powers, (x,), (1 - x + x**2) * 2, terms=4, ulp=4)


@np.kernel("(n)->()")
def total_of(x, out, *, block: Static = 16):
    total = 0
    for start in range(0, extent(x, 0), block):
        total += load(x, start, block).sum()
    store(out, (), total)


@np.kernel("(m,n)->(m)")
def nested(x, out, *, block: Static = 8):
    row = program_index(0)
    best, count = -math.inf, 0
    for start in range(0, x.shape[1], block):
        values = load(x, (row, start), block)
        for _ in range(3):
            best = np.maximum(best, values.max())
            count += 1
    store(out, row, best + count)


def test_loops_of_the_run_time() -> None:
    assert_everywhere(total_of, (VECTOR,), numpy.float32(VECTOR.sum()), grid=())
    assert_everywhere(nested, (MATRIX,), MATRIX.max(axis=1) + numpy.float32(9))


@np.kernel("(n)->(n)")
def long_loop(x, out, *, turns: Static, block: Static = 64):
    first = program_index(0) * block
    value = load(x, first, block)
    for turn in range(turns):
        value = value + turn
    store(out, first, value)


def test_long_static_ranges_become_loops() -> None:
    expected = VECTOR + numpy.float32(sum(range(100)))
    assert_everywhere(long_loop, (VECTOR,), expected, turns=100)
    assert "for " in long_loop.text(VECTOR, turns=100)
    assert "for " not in long_loop.text(VECTOR, turns=4)
    numpy.testing.assert_array_equal(numpy.asarray(long_loop(VECTOR, turns=0)), VECTOR)


@np.kernel("(n)->(n)")
def by_program(x, out, limit: int, *, block: Static = 16):
    index = program_index(0)
    value = load(x, index * block, block)
    scale = 1
    if index < limit and index >= 1:
        value = -value
        scale = 3
    else:
        shift = 5
        value = value + shift
    store(out, index * block, value * scale)


def test_branches_of_the_run_time() -> None:
    expected = VECTOR + 5
    expected[16:32] = -3 * VECTOR[16:32]
    assert_everywhere(by_program, (VECTOR, numpy.zeros_like(VECTOR), 2), expected)


# --- functions


def gelu(x):
    """A helper with a docstring, a local name and a return in the middle."""
    inner = x * (1 + 0.044715 * x * x)
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * inner))


def choose(first, *others, scale=2, **rest):
    if not others:
        return first * scale
    return choose_last(*others) + first * rest["extra"]


def choose_last(*values):
    return values[-1]


FACTOR = 3


@np.kernel("(n)->(n)")
def with_helpers(x, out, *, activation: Static, block: Static = 64):
    first = program_index(0) * block

    def twice(value, times=2):
        return value * times

    values = load(x, first, block)
    parts = [twice(part) for part in (values, values + 1) if part is not None]
    mixed = choose(choose(parts[0], scale=1), *parts, extra=FACTOR)
    store(out, first, activation(mixed * (lambda: 1)() / cdiv(block, 64)))


def test_functions_are_inlined() -> None:
    x = (VECTOR - 20) / 50
    mixed = (x + 1) * 2 + x * 2 * 3
    assert_everywhere(with_helpers, (x,), mixed, activation=lambda x: x)
    wide = mixed.astype(numpy.float64)
    inner = wide * (1 + 0.044715 * wide * wide)
    expected = 0.5 * wide * (1 + numpy.tanh(math.sqrt(2 / math.pi) * inner))
    found = numpy.asarray(with_helpers(x, activation=gelu))
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_names_from_outside_are_read_again_when_they_change() -> None:
    global FACTOR
    x = numpy.ones(4, numpy.float32)
    assert numpy.asarray(with_helpers(x, activation=abs))[0] == 10
    FACTOR = 4
    try:
        assert numpy.asarray(with_helpers(x, activation=abs))[0] == 12
    finally:
        FACTOR = 3
