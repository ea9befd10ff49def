"""Folds, shapes, windows and products of blocks in kernels, against NumPy: on the host, interpreted, as PTX."""

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
    arange,
    argmax,
    broadcast_to,
    cast,
    dot,
    extent,
    full,
    load,
    ones,
    program_index,
    store,
    transpose,
    where,
    zeros,
)

MATRIX = numpy.random.default_rng(0).normal(size=(13, 21)).astype(numpy.float32)
SQUARE = numpy.random.default_rng(1).integers(-9, 9, (16, 16)).astype(numpy.int32)
VECTOR = numpy.arange(1, 41, dtype=numpy.float32)


# --- folds


@np.kernel("(m,n)->(m)")
def fold_rows(x, out, *, word: Static, block_m: Static = 4, block_n: Static = 32):
    row = program_index(0) * block_m
    store(out, row, word(load(x, (row, 0), (block_m, block_n))))


@np.kernel("(m,n)->(n)")
def fold_columns(x, out, *, word: Static, block_m: Static = 16, block_n: Static = 8):
    column = program_index(0) * block_n
    store(out, column, word(load(x, (0, column), (block_m, block_n))))


FOLDS: dict[str, Callable[[Any, int], Any]] = {
    "sum": lambda x, axis: x.sum(axis),
    "prod": lambda x, axis: x.prod(axis=axis),
    "max": lambda x, axis: np.max(x, axis=axis),
    "min": lambda x, axis: x.min(axis),
    "any": lambda x, axis: (x == 2).any(axis),
    "all": lambda x, axis: (x != 2).all(axis),
    "argmax": lambda x, axis: argmax(x, axis),
    "argmin": lambda x, axis: x.argmin(axis),
}


@pytest.mark.parametrize("dtype", ("float32", "float16", "int32", "uint8", "bool"))
@pytest.mark.parametrize("name", FOLDS)
def test_folds_leave_out_what_does_not_exist(name: str, dtype: str) -> None:
    x = numpy.random.default_rng(3).integers(-2 if dtype[0] in "fi" else 1, 3, (13, 21)).astype(dtype)
    x[x == 0] = 1
    operand = {"any": x == 2, "all": x != 2}.get(name, x)
    as_ptx = dtype == "float32"
    fold = FOLDS[name]
    words = (lambda x: fold(x, 0)), (lambda x: fold(x, 1))
    for axis, kernel in ((1, fold_rows), (0, fold_columns)):
        expected = getattr(operand, name)(axis=axis)
        if x.dtype.kind == "f" and x.dtype.itemsize == 2 and name == "prod":
            expected = x.astype(numpy.float32).prod(axis=axis).astype(dtype)
        assert_everywhere(kernel, (x,), expected, word=words[axis], dtype=expected.dtype, as_ptx=as_ptx)


def test_folds_of_nan_and_infinity() -> None:
    x = numpy.array([[1, numpy.nan, 3], [numpy.inf, -numpy.inf, 0], [-numpy.inf] * 3], numpy.float32)
    for name in ("max", "min", "sum"):
        fold = FOLDS[name]
        with numpy.errstate(invalid="ignore"):
            expected = getattr(x, name)(axis=1)
        assert_everywhere(fold_rows, (x,), expected, word=lambda x: fold(x, 1))  # noqa: B023


@np.kernel("(m,n)->(m,n)")
def standardized(x, out, *, block: Static = 32):
    row = program_index(0) * 4
    values = load(x, (row, 0), (4, block))
    mean = values.sum(axis=1, keepdims=True) / extent(x, 1)
    deviation = values - mean
    variance = np.sum(deviation * deviation, axis=1) / x.shape[1]
    store(out, (row, 0), deviation / np.sqrt(variance)[:, None])


@np.kernel("(m,n)->(m,n)")
def less_columns(x, out, *, block: Static = 8):
    column = program_index(0) * block
    values = load(x, (0, column), (16, block))
    store(out, (0, column), values - values.max(axis=0))


def test_results_of_folds_broadcast_back() -> None:
    wide = MATRIX.astype(numpy.float64)
    expected = ((wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)).astype(numpy.float32)
    assert_everywhere(standardized, (MATRIX,), expected, ulp=20)
    assert_everywhere(less_columns, (MATRIX,), MATRIX - MATRIX.max(axis=0))


@np.kernel("(m,n)->(),()")
def of_all(x, total, positive):
    values = load(x, (0, 0), (16, 32))
    store(total, (), cast(values.sum(), total.dtype))
    store(positive, (), cast((values > 0).sum((0, 1)), positive.dtype))


def test_folds_of_all_axes() -> None:
    whole = numpy.arange(13 * 21, dtype=numpy.float32).reshape(13, 21) - 20
    assert_everywhere(of_all, (whole,), (numpy.float32(whole.sum()), numpy.float32((whole > 0).sum())), grid=())


@np.kernel("(m,n)->(m,n)")
def exponentials(x, out, *, block: Static = 32):
    row = program_index(0)
    best = full((), -math.inf, x.dtype)
    total = zeros((), x.dtype)
    for start in range(0, extent(x, 1), block):
        values = load(x, (row, start), block)
        higher = np.maximum(best, values.max())
        total = total * np.exp(best - higher) + np.exp(values - higher).sum()
        best = higher
    for start in range(0, extent(x, 1), block):
        store(out, (row, start), np.exp(load(x, (row, start), block) - best) / total)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 6), st.integers(1, 90), st.sampled_from((8, 32)))
def test_rows_longer_than_a_block(rows: int, columns: int, block: int) -> None:
    x = numpy.random.default_rng(rows * 100 + columns).normal(size=(rows, columns))
    weights = numpy.exp(x - x.max(1, keepdims=True))
    assert_everywhere(exponentials, (x,), weights / weights.sum(1, keepdims=True), block=block, ulp=50, as_ptx=False)


# --- shapes


@np.kernel("(m),(n)->(m,n)")
def outer(x, y, out, *, block_m: Static = 8, block_n: Static = 16):
    row, column = program_index(0) * block_m, program_index(1) * block_n
    store(out, (row, column), load(x, row, block_m)[:, None] * load(y, column, block_n)[None, :])


@np.kernel("(n)->(n,n)")
def with_itself(x, out, *, block: Static = 16):
    first = load(x, 0, block)
    square = np.square(first)
    # What was computed cannot be loaded again: it moves from one axis to the other.
    store(out, (0, 0), square[:, None] - square + first[:, None])


@np.kernel("(m,n)->(n,m)")
def turned(x, out, *, computed: Static, block: Static = 16):
    row, column = program_index(1) * block, program_index(0) * block
    values = load(x, (row, column), (block, block))
    if computed:
        values = values + 0
    store(out, (column, row), values.T)


@np.kernel("(a,b,c)->(c,a,b)")
def rolled(x, out, *, computed: Static):
    values = load(x, (0, 0, 0), (4, 8, 2))
    values = values + 1 if computed else values
    store(out, (0, 0, 0), transpose(values, (2, 0, -2)))


@np.kernel("(n,n)->(n,n)")
def plus_its_transpose(x, out):
    values = load(x, (0, 0), (16, 16))
    store(out, (0, 0), 2 * values + transpose(values * 1))


def test_axes_come_and_go_and_turn() -> None:
    y = numpy.arange(30, dtype=numpy.float32)
    assert_everywhere(outer, (VECTOR, y), numpy.outer(VECTOR, y))
    x = numpy.arange(16, dtype=numpy.int64)
    squares = x * x
    assert_everywhere(with_itself, (x,), squares[:, None] - squares + x[:, None], grid=())
    for computed in (False, True):
        assert_everywhere(turned, (MATRIX,), numpy.ascontiguousarray(MATRIX.T), computed=computed)
    cube = numpy.arange(4 * 7 * 2, dtype=numpy.float32).reshape(4, 7, 2)
    for computed in (False, True):
        assert_everywhere(rolled, (cube,), (cube + computed).transpose(2, 0, 1), computed=computed)
    assert_everywhere(plus_its_transpose, (SQUARE,), 2 * SQUARE + SQUARE.T, grid=())


LAYOUTS: dict[str, Callable[[numpy.ndarray], numpy.ndarray]] = {
    "plain": lambda x: x,
    "columns first": lambda x: numpy.asfortranarray(x),
    "reversed": lambda x: x[::-1, ::-1],
    "every other": lambda x: numpy.repeat(numpy.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "repeated": lambda x: numpy.broadcast_to(x[:1], x.shape),
}


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from((4, 16)), st.sampled_from(sorted(LAYOUTS)))
def test_any_shape_and_layout(m: int, n: int, block: int, layout: str) -> None:
    x = LAYOUTS[layout](numpy.random.default_rng(m * 50 + n).integers(-9, 9, (m, n)).astype(numpy.float32))
    for given_array in (x, np.asarray(x.T.copy()).T if layout == "plain" else x):
        results = turned(given_array, computed=m % 2 == 0, block=block), turned.interpret(given_array, computed=False)
        for found in results:
            numpy.testing.assert_array_equal(numpy.asarray(found), x.T)
    kernels = (fold_rows, {"block_n": 64}, lambda x: x.sum(1)), (fold_columns, {"block_m": 64}, lambda x: x.sum(0))
    for kernel, sizes, word in kernels:
        numpy.testing.assert_array_equal(numpy.asarray(kernel(x, word=word, **sizes)), word(x))


@np.kernel("(n)->(n)")
def filled(x, out, *, block: Static = 16):
    first = program_index(0) * block
    row = ones((4, block), x.dtype) * full(block, 2, "int32") + broadcast_to(1, (4, 1)) + arange(4)[:, None]
    store(out, first, row.sum(axis=0) + load(x, first, block) + len(row) + row.ndim + where(arange(block) < 1, 1, 0))


def test_blocks_out_of_nothing() -> None:
    expected = VECTOR.astype(numpy.float64) + (4 * 2 + 4 + 6) + 4 + 2
    expected[::16] += 1
    assert_everywhere(filled, (VECTOR,), expected, dtype="float64")


@np.kernel("(b,m,n)->(b,n)")
def of_a_stack(x, out, *, block: Static = 32):
    batch = program_index(0)
    matrix = x[batch]
    total = zeros(block, x.dtype)
    for row in range(matrix.shape[0]):
        total += load(matrix[row], 0, block, fill=0)
    store(out[batch], 0, total)


def test_parts_of_arrays() -> None:
    x = numpy.arange(3 * 5 * 21, dtype=numpy.float32).reshape(3, 5, 21)
    assert_everywhere(of_a_stack, (x,), x.sum(axis=1))


@np.kernel("(n)->(n)")
def neighbours(x, out, *, block: Static = 16):
    first = program_index(0) * block
    left, right = load(x, first - 1, block, fill=0), load(x, first + 1, block, fill=0)
    store(out, first, left + right)


@np.kernel("(n)->(n)")
def centred_sums(x, out):
    place = program_index(0)
    store(out, place, load(x, place - 3, 8).sum())


def test_windows_that_leave_the_array_on_both_sides() -> None:
    padded = numpy.pad(VECTOR, 1)
    assert_everywhere(neighbours, (VECTOR,), padded[:-2] + padded[2:])
    sums = numpy.array([VECTOR[max(0, k - 3) : k + 5].sum() for k in range(40)], numpy.float32)
    assert_everywhere(centred_sums, (VECTOR,), sums)


@np.kernel("(n),(m)->(m)")
def picked(table, places, out):
    place = program_index(0)
    store(out, place, load(table, load(places, place, ()), ()))


def test_offsets_that_are_loaded() -> None:
    places = numpy.array([3, 0, 39, 7], numpy.int32)
    assert_everywhere(picked, (VECTOR, places), VECTOR[places], dtype="float32")


# --- products


@np.kernel("(m,k),(k,n),(n)->(m,n)")
def fused(a, b, bias, out, scale: float, *, activation: Static):
    row, column = program_index(0) * 16, program_index(1) * 32
    total = zeros((16, 32), "float32")
    for k in range(0, extent(a, 1), 16):
        left = load(a, (row, k), (16, 16)) * scale + 1
        total = dot(left, load(b, (k, column), (16, 32)), total)
    store(out, (row, column), activation(total + load(bias, column, 32)))


@np.kernel("(m,d),(n,d),(n,d)->(m,d)")
def attention(q, k, v, out, *, block_m: Static = 16, block_n: Static = 16, d: Static = 16):
    row = program_index(0) * block_m
    queries = load(q, (row, 0), (block_m, d))
    best = full(block_m, -math.inf, "float32")
    weight, total = zeros(block_m, "float32"), zeros((block_m, d), "float32")
    for start in range(0, extent(k, 0), block_n):
        scores = dot(queries, load(k, (start, 0), (block_n, d)).T) / math.sqrt(d)
        scores = where(start + arange(block_n) < extent(k, 0), scores, -math.inf)
        higher = np.maximum(best, scores.max(axis=1))
        powers, decay = np.exp(scores - higher[:, None]), np.exp(best - higher)
        weight = weight * decay + powers.sum(axis=1)
        total = dot(cast(powers, v.dtype), load(v, (start, 0), (block_n, d)), total * decay[:, None])
        best = higher
    store(out, (row, 0), total / weight[:, None])


def integers(shape: tuple[int, ...], dtype: str, seed: int) -> numpy.ndarray:
    return numpy.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@np.kernel("(m,k),(n,k)->(m,n)")
def product_nt(a, b, out, *, computed: Static = False):
    row, column = program_index(0) * 16, program_index(1) * 16
    total = zeros((16, 16), "float32")
    for k in range(0, extent(a, 1), 8):
        right = load(b, (column, k), (16, 8))
        right = right * 1 if computed else right
        total += load(a, (row, k), (16, 8)) @ right.T
    store(out, (row, column), total)


def test_products_of_transposed_blocks() -> None:
    a, b = integers((19, 29), "float32", 1), integers((21, 29), "float32", 2)
    for computed in (False, True):
        assert_everywhere(product_nt, (a, b), a @ b.T, computed=computed)


def test_products_with_work_around_them() -> None:
    a, b, bias = integers((19, 37), "float16", 1), integers((37, 41), "float16", 2), integers((41,), "float16", 3)
    wide = (a.astype("float32") * 2 + 1) @ b.astype("float32") + bias
    expected = numpy.maximum(wide, 0)
    arguments = (a, b, bias, numpy.zeros((19, 41), numpy.float32), 2.0)
    assert_everywhere(fused, arguments, expected, activation=lambda x: np.maximum(x, 0))


@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_attention(dtype: str) -> None:
    generator = numpy.random.default_rng(9)
    q, k, v = (generator.normal(size=(n, 16)).astype(dtype) for n in (21, 37, 37))
    scores = q.astype(numpy.float64) @ k.astype(numpy.float64).T / 4
    weights = numpy.exp(scores - scores.max(1, keepdims=True))
    expected = (weights / weights.sum(1, keepdims=True) @ v.astype(numpy.float64)).astype(dtype)
    assert_everywhere(attention, (q, k, v), expected, ulp=8 if dtype == "float16" else 40)


@np.kernel("(m,n)->(m)")
def row_norms(x, out):
    row = program_index(0) * 16
    values = np.exp(load(x, (row, 0), (16, 32)))
    store(out, row, dot(values, ones((32, 1), x.dtype)).max(axis=1))


def test_products_leave_out_what_does_not_exist() -> None:
    expected = numpy.exp(MATRIX.astype(numpy.float64)).sum(1).astype(numpy.float32)
    assert_everywhere(row_norms, (MATRIX,), expected, ulp=8)
