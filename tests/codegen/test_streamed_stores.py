"""Results larger than the caches: which are, and how they are stored."""

import dataclasses

import emitted
import numpy as np
import pytest

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import BufferParameter, GridAxis, IndexParameter, Kernel
from codegen.ir.layout import Layout
from codegen.ir.parser import parse
from codegen.ir.printer import print_kernel
from codegen.ir.types import BufferType
from codegen.passes import pipeline
from codegen.schedules.choose import streams
from codegen.schedules.schedule import Access, Problem
from codegen.targets.nvptx.description import nvptx_target


def kernel_of(dtype: DType, alignment: int, stride: int = 1) -> Kernel:
    builder = Builder()
    x = emitted.buffer("x", dtype, ("n",), (1,))
    type_ = BufferType(dtype, ("n",), (stride,), alignment)
    out = BufferParameter("out", type_, written=True, streamed=True)
    offset = builder.map("multiply", builder.program_index(0), builder.index(64))
    value = builder.load(x.value, (offset,), (64,))
    builder.store(out.value, (offset,), value)
    return builder.kernel("stream", (IndexParameter("n"), x, out), (GridAxis("n", 64),), Layout((1,), (1,), 16))


def aligned(size: int, dtype: DType) -> np.ndarray:
    raw = np.zeros(size * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * dtype.itemsize].view(dtype.numpy)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.uint8, dtypes.boolean], ids=str)
@pytest.mark.parametrize("size", [64, 1024, 1000, 65, 3])
def test_streamed_results_are_all_there(dtype: DType, size: int) -> None:
    kernel = pipeline.run(kernel_of(dtype, 64), emitted.HOST.target)
    x = np.arange(size).astype(dtype.numpy)
    out = aligned(size + 64, dtype)
    emitted.run(kernel, {"n": size, "x": x, "out": out[:size]})
    np.testing.assert_array_equal(out[:size], x)
    assert not out[size:].any()


def test_whole_lines_go_past_the_caches() -> None:
    text = emitted.host_module(pipeline.run(kernel_of(dtypes.float32, 64), emitted.HOST.target)).text()
    stores = [line for line in text.splitlines() if "!nontemporal" in line]
    assert stores and all(line.lstrip().startswith("store <") and "align 64" in line for line in stores)


@pytest.mark.parametrize(("alignment", "stride"), [(4, 1), (64, 2)])
def test_parts_of_lines_stay_in_the_caches(alignment: int, stride: int) -> None:
    kernel = pipeline.run(kernel_of(dtypes.float32, alignment, stride), emitted.HOST.target)
    assert "!nontemporal" not in emitted.host_module(kernel).text()


def test_text_says_what_is_streamed() -> None:
    kernel = kernel_of(dtypes.float32, 64)
    text = print_kernel(kernel)
    assert "out: buffer float32[n] strides (1) align 64 written streamed" in text
    assert print_kernel(parse(text)) == text


def test_results_are_streamed_from_some_caches_on() -> None:
    target = dataclasses.replace(emitted.HOST.target, cache_bytes=1 << 20)

    def problem(elements: int, stride: int = 1) -> Problem:
        accesses = (Access(4, (1,)), Access(4, (stride,), written=True))
        return Problem((elements,), (False,), accesses, 32, 1.0)

    assert streams(problem(2 << 20), target)
    assert not streams(problem((2 << 20) - 1), target)
    assert not streams(problem(2 << 20, stride=0), target)
    assert not streams(problem(1 << 30), nvptx_target("sm_90a"))
