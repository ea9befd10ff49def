"""The first kernels that anyone writes: vector addition, softmax, a matrix product, against NumPy."""

from pathlib import Path

import emitted
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_runs import assert_everywhere
from test_emitter_ptx import GENERATIONS, assemble, needs_ptxas

import blockarray as np
from blockarray.language import Static, accumulator_dtype, dot, extent, load, program_index, store, zeros
from blockarray.language.calling import Call
from blockarray.language.interpretation import prepare
from codegen.passes import pipeline
from codegen.targets.nvptx.description import nvptx_target

VECTOR = numpy.arange(5000, dtype=numpy.float32)


@np.kernel("(n),(n)->(n)")
def add(x, y, out, *, block: Static = 64):
    first = program_index(0) * block
    store(out, first, load(x, first, block) + load(y, first, block))


@np.kernel("(rows,columns)->(rows,columns)")
def softmax(x, out, *, block: Static):
    row = program_index(0)
    values = load(x, (row, 0), block)
    weights = np.exp(values - np.max(values))
    store(out, (row, 0), weights / np.sum(weights))


@np.kernel("(...,m,k),(...,k,n)->(...,m,n)")
def product(a, b, out, *, block_m: Static = 16, block_n: Static = 16, block_k: Static = 8):
    batch = [program_index(axis) for axis in range(a.ndim - 2)]
    row = program_index(a.ndim - 2) * block_m
    column = program_index(a.ndim - 1) * block_n
    total = zeros((block_m, block_n), accumulator_dtype(a.dtype))
    for k in range(0, extent(a, -1), block_k):
        left = load(a, (*batch, row, k), (block_m, block_k))
        total = dot(left, load(b, (*batch, k, column), (block_k, block_n)), total)
    store(out, (*batch, row, column), total)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 200), st.sampled_from((16, 64, 128)))
def test_addition_of_any_length(n: int, block: int) -> None:
    x, y = numpy.arange(n, dtype=numpy.float32), numpy.full(n, 0.5, numpy.float32)
    assert_everywhere(add, (x, y), x + y, block=block, as_ptx=False)


def test_addition_as_ptx() -> None:
    x, y = numpy.arange(150, dtype=numpy.float32), numpy.arange(150, dtype=numpy.float32)[::-1]
    assert_everywhere(add, (x, y), x + y)


@pytest.mark.parametrize("columns", (1, 31, 64, 100))
def test_softmax(columns: int) -> None:
    x = numpy.random.default_rng(columns).normal(size=(7, columns)).astype(numpy.float32)
    weights = numpy.exp(x.astype(numpy.float64) - x.max(axis=1, keepdims=True))
    expected = (weights / weights.sum(axis=1, keepdims=True)).astype(numpy.float32)
    assert_everywhere(softmax, (x,), expected, ulp=4, block=128)


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64", "int8", "int32", "int64", "uint16"))
def test_products(dtype: str) -> None:
    generator = numpy.random.default_rng(3)
    a = generator.integers(0, 4, (19, 13)).astype(dtype)
    b = generator.integers(0, 4, (13, 37)).astype(dtype)
    assert_everywhere(product, (a, b), a @ b)


def test_products_of_stacks() -> None:
    generator = numpy.random.default_rng(4)
    a = generator.integers(-4, 4, (3, 9, 20)).astype(numpy.float32)
    b = generator.integers(-4, 4, (3, 20, 17)).astype(numpy.float32)
    assert_everywhere(product, (a, b), a @ b)


@needs_ptxas
@pytest.mark.parametrize("cpu", GENERATIONS)
def test_ptxas_takes_kernels_of_the_language(cpu: str, tmp_path: Path) -> None:
    target = nvptx_target(cpu)
    generator = numpy.random.default_rng(0)
    a, b = (generator.normal(size=(200, 200)).astype("float16") for _ in range(2))
    rows = numpy.zeros((64, 1000), numpy.float32)
    sizes = {"block_m": 64, "block_n": 64, "block_k": 16}
    calls = ((add, (VECTOR, VECTOR), {"block": 1024}), (softmax, (rows,), {"block": 1024}), (product, (a, b), sizes))
    for kernel, arguments, named in calls:
        call = Call(kernel.declaration, arguments, named, None, None)
        found = prepare(kernel.function, call, target)
        assemble(emitted.ptx_of(pipeline.run(found.translation.kernel, target), target), cpu, tmp_path)
