"""Lazy scalars behave as NumPy's wherever a program can tell."""

import copy
import fractions
import json
import math
import numbers
import operator
import pickle
import statistics
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import blockarray
from blockarray.execution.statistics import run as counters

# Each is evaluated under NumPy and under blockarray with these names: what it prints and what it raises must be the same.
EXPRESSIONS = """
isinstance(s, float), isinstance(f, float), isinstance(i, int), isinstance(b, bool)
isinstance(s, np.floating), isinstance(f, np.floating), isinstance(i, np.integer), isinstance(b, np.bool_)
isinstance(s, np.generic), isinstance(i, np.number), isinstance(b, np.number), isinstance(u, np.unsignedinteger)
isinstance(s, np.ndarray), isinstance(x, np.ndarray), isinstance(x[1:, 0], np.ndarray)
isinstance(s, numbers.Real), isinstance(i, numbers.Integral), isinstance(b, numbers.Integral), isinstance(s, numbers.Integral)
type(s), type(f), type(i), type(u), type(b), type(s).__name__
type(s) == numpy.float64, {numpy.float32: "single"}.get(type(f)), type(i)(7), np.zeros(2, type(f)).dtype
s, f, i, u, b, [s, i], str(s), str(i), str(b), repr(f)
f"{s:.3f} {i:05d} {b} {f:>8}", "%d %5.2f %s %x" % (i, s, s, i), format(s), format(i, "x")
hash(s) == hash(3.0), hash(i) == hash(6), hash(b) == hash(True), {3.0: 1}[s], {6: 1}[i], {i: 2}[6], {s, 3.0}
json.dumps({"a": s, "b": [s, {"c": s}]}), json.dumps([s], indent=1), json.dumps(s, default=str), json.dumps({"a": s}, sort_keys=True)
json.dumps(f)
json.dumps(i)
json.dumps(b)
list(range(i)), [1, 2, 3, 4, 5, 6, 7][i], "abcdefgh"[:i], [0] * i, i * "ab", bytes(i)
[1, 2, 3][s]
range(s)
[0] * s
math.sqrt(s), math.floor(s), math.ceil(f), math.trunc(s), math.isqrt(i), math.gcd(i, 4), math.hypot(s, f)
math.trunc(f)
round(s), round(s, 1), round(i), type(round(s)), round(f, 1)
int(s), float(i), complex(s), bool(s), not b, int(b), operator.index(i)
operator.index(s)
operator.index(b)
s < 4, s == 3, 3 == s, i >= 6, 2 > s, s != i, (s == 3) is True
s + 1, 1 + s, s * numpy.float64(2), numpy.float64(2) * s, s + i, i // 4, i % 4, 7 // i, s - f, -s, +i, abs(-i), ~i, ~b
i << 1, i & 3, 1 | i, i ^ i, b & True, b | False, divmod(i, 4), divmod(7, i), divmod(s, 2), s / 2, 2 / s
s ** 2, 2 ** s, i ** 2, pow(i, 2), f ** 2
pow(i, 2, 5)
numpy.arange(3) * s, s * numpy.arange(3), x * s, s * x, x * numpy.float64(2), numpy.float64(2) * x, numpy.float32(2) - x, x[0, 1] * x
sum([s, s]), min(s, 2), max(s, 4), sorted([i, s]), s in [3.0], 3.0 in [s], s in (1, 2)
s.item(), type(s.item()), s.tolist(), s.dtype, s.shape, s.ndim, s.size, s.nbytes, s.itemsize, s.strides, s.base
s.real, s.imag, s.T, s.copy(), s.astype("f4"), s.astype(int), s.round(1), s.conj(), s.squeeze(), s.view("i8"), s.clip(0, 1)
s.sum(), s.mean(), s.max(), s.any(), s.std(), s.argmax(), s.max(axis=0), s.sum(axis=-1), s.cumsum()
s.mean(axis=0)
s.reshape(1), s.reshape(1, 1), s.ravel(), s.flatten(), s[...], s[None], s[()]
s[0]
s[0, 0]
s.is_integer(), s.as_integer_ratio(), s.hex(), i.bit_count(), i.numerator, i.denominator
s.no_such_attribute
i.is_integer(), f.is_integer()
len(s)
iter(s)
list(s)
hasattr(s, "__len__"), hasattr(s, "__getitem__"), hasattr(s, "__setitem__"), hasattr(s, "__iadd__"), hasattr(s, "__index__"), hasattr(i, "__index__")
np.isscalar(s), np.isscalar(b), np.iterable(s), np.ndim(s), np.shape(s), np.size(s), callable(s)
operator.setitem(s, (), 1)
setattr(s, "other", 1)
np.array([s, s]), np.array([i, i]), np.array([s, i]), np.array([[s, 1], [2, i]]), np.asarray(s), np.array(b), np.stack([s, s])
numpy.array([s, s]), numpy.array([i, i]), numpy.array([b, b]), numpy.array([f, f]), numpy.asarray(s), numpy.float32(s), numpy.int32(i)
np.full(2, s), np.linspace(0, s, 4), np.arange(i), np.zeros(i), np.zeros((i, 2)).shape, np.where(b, s, i), np.maximum(s, 4), np.sqrt(s)
x[i - 5], x[1, i - 4], x[: i - 4], x.reshape(i, 2), x[x.argmax() // 4], np.unravel_index(x.argmax(), x.shape)
pickle.loads(pickle.dumps(s)), type(pickle.loads(pickle.dumps(i))), copy.copy(s), copy.deepcopy([s])
statistics.mean([s, s]), fractions.Fraction(s), float.fromhex(s.hex()), s.flags.writeable, str(s.device)
np.array_equal(s, 3.0), np.isclose(s, 3.0), np.allclose(s, 3.0), np.issubdtype(type(i), np.integer), np.result_type(s, i)
""".strip().splitlines()

NAMES = {"numpy": numpy, "json": json, "math": math, "numbers": numbers, "operator": operator, "pickle": pickle, "copy": copy,
         "statistics": statistics, "fractions": fractions}  # fmt: skip


def outcome(expression: str, module: Any, prepare: Callable[..., None]) -> str:
    """What an expression prints, or raises."""
    names = NAMES | {
        "np": module,
        "s": module.ones(3).sum(),
        "f": module.ones(3, "f4").sum(),
        "i": module.arange(4).sum(),
        "u": module.arange(4, dtype="u1").max(),
        "b": (module.ones(3) > 0).all(),
        "x": module.arange(12.0).reshape(3, 4),
    }
    prepare(*(names[name] for name in "sfiub"))
    try:
        return repr(eval(expression, names))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("prepare", [lambda *_: None, blockarray.evaluate], ids=["pending", "evaluated"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression: str, prepare: Callable[..., None]) -> None:
    expected = outcome(expression, numpy, lambda *_: None)
    assert outcome(expression, blockarray, prepare) == expected


def test_in_place_operators_make_another_scalar() -> None:
    total = blockarray.ones(3).sum()
    before = total
    total += 1
    assert (float(total), float(before)) == (4.0, 3.0)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "u8", "f2", "bfloat16", "f4", "f8"])
def test_every_dtype_gives_its_scalar(dtype: str) -> None:
    largest = blockarray.ones(3, dtype).max()
    kind = largest.dtype.type
    assert isinstance(largest, kind) and type(largest) == kind  # noqa: E721  # that they are equal is what is tested
    assert type(pickle.loads(pickle.dumps(largest))) is kind
    assert repr(largest) == repr(kind(1)) and hash(largest) == hash(kind(1))
    assert numpy.array([largest]).dtype == kind


def test_nothing_is_computed_before_it_is_looked_at() -> None:
    x = blockarray.ones(1000)
    blockarray.evaluate(x)
    before = counters.kernels
    norm = blockarray.sqrt((x * x).sum())
    assert isinstance(norm, float) and isinstance(norm, numbers.Real) and blockarray.isscalar(norm)
    assert norm.dtype == "f8" and norm.shape == ()
    assert counters.kernels == before
    assert math.isclose(norm, 1000**0.5)


def test_numbers_that_are_known_need_no_kernel() -> None:
    total = blockarray.ones(3).sum()
    assert float(total) == 3
    before = counters.kernels
    assert (total + 1) / 2 == 2 and total > -total and type(total * 2.0) is numpy.float64
    assert counters.kernels == before


def walk(xp: Any) -> list[Any]:
    """Reads and writes of single elements, with expressions recorded between them."""
    x, matrix = xp.arange(8.0), xp.arange(12.0).reshape(3, 4)
    seen: list[Any] = []
    for k, value in enumerate(x):
        seen.append(float(value))
        if k < 7:
            x[k + 1] = value + x[k + 1]
    doubled = x * 2
    x[-1] = numpy.float32(3)
    tail = x[5:]
    plus = tail + 1
    tail[0] = 9
    x[xp.int64(6)] = x.sum()
    for i in range(3):
        for j in numpy.arange(4):
            matrix[i, j] = matrix[i, j] * 2 + x[i]
    turned = matrix.T
    turned[3, -1] = True
    return [*seen, *(one.tolist() for one in (doubled, plus, tail, x, matrix, turned))]


def test_loops_over_elements() -> None:
    assert walk(blockarray) == walk(numpy)


@pytest.mark.parametrize("key", [8, -9, (3, 0), (0, -5)])
def test_elements_out_of_bounds(key: Any) -> None:
    x = blockarray.arange(8.0) if isinstance(key, int) else blockarray.zeros((3, 4))
    blockarray.evaluate(x)
    for operation in (lambda: x[key], lambda: operator.setitem(x, key, 1.0)):
        with pytest.raises(IndexError, match="out of bounds"):
            operation()


def test_read_only_elements() -> None:
    x = blockarray.zeros(3)
    blockarray.evaluate(x)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
