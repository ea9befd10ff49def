"""Windows, gather, scatter and memory of the program, at every kind of edge."""

import emitted
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import InternalCompilerError
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, IndexParameter, Kernel
from codegen.ir.layout import Layout

LAYOUTS = (Layout((1, 1), (1, 1), 1), Layout((1, 1), (1, 1), 16), Layout((2, 16), (1, 2)), Layout((8, 8), (2, 4)))
ITEMS = (dtypes.boolean, dtypes.uint8, dtypes.float16, dtypes.float32, dtypes.int64)


def copy_kernel(dtype: DType, layout: Layout, tile: tuple[int, int], strides: tuple[int | None, ...]) -> Kernel:
    """A window of x at run-time offsets, which may lie partly or wholly outside, copied to the same place in out."""
    builder = Builder()
    names = ("rows", "columns", "row", "column")
    parameters = [IndexParameter(name) for name in names]
    # Only extents are known not to be negative; an offset is computed so that nothing is known of it.
    row, column = (builder.map("subtract", index.value, builder.index(8)) for index in parameters[2:])
    x = emitted.buffer("x", dtype, ("rows", "columns"), strides)
    out = emitted.buffer("out", dtype, ("rows", "columns"), strides, written=True)
    seen = emitted.buffer("seen", dtype, tile, (tile[1], 1), written=True)
    zero = builder.index(0)
    value = builder.load(x.value, (row, column), tile, fill=1)
    builder.store(out.value, (row, column), value)
    builder.store(seen.value, (zero, zero), value, (False, False))
    return builder.kernel("copy", (*parameters, x, out, seen), (GridAxis(1),), layout)


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_windows_end_at_the_buffer(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(ITEMS), "dtype")
    layout = data.draw(st.sampled_from(LAYOUTS), "layout")
    tile = data.draw(st.sampled_from(((1, 32), (4, 16), (8, 8))), "tile")
    rows, columns = data.draw(st.integers(0, 12), "rows"), data.draw(st.integers(0, 40), "columns")
    row, column = data.draw(st.integers(-9, 12), "row"), data.draw(st.integers(-34, 42), "column")
    step = data.draw(st.sampled_from((1, -1, 3)), "step")
    static = data.draw(st.booleans(), "static")
    generator = np.random.default_rng(3)
    x = generator.integers(0, 2 if dtype is dtypes.boolean else 100, (rows, columns * abs(step))).astype(dtype.numpy)
    out = np.zeros_like(x)[:, ::step]
    x = x[:, ::step]
    seen = np.zeros(tile, dtype.numpy)
    kernel = copy_kernel(dtype, layout, tile, (None, step if static else None))
    emitted.run(
        kernel,
        {"rows": rows, "columns": columns, "row": row + 8, "column": column + 8, "x": x, "out": out, "seen": seen},
    )
    expected_out = np.zeros_like(out)
    inside = (slice(max(row, 0), max(row + tile[0], 0)), slice(max(column, 0), max(column + tile[1], 0)))
    expected_out[inside] = x[inside]
    expected_seen = np.full(tile, 1, dtype.numpy)
    part = x[inside]
    top, left = max(-row, 0), max(-column, 0)
    expected_seen[top : top + part.shape[0], left : left + part.shape[1]] = part
    assert (out == expected_out).all()
    assert (seen == expected_seen).all()


def gather_kernel(layout: Layout, checked: bool, dtype: DType, block: int) -> Kernel:
    builder = Builder()
    count, side = IndexParameter("count"), IndexParameter("side")
    x = emitted.buffer("x", dtype, ("side", "side"), (None, None))
    first = emitted.buffer("first", dtypes.int64, ("count",), (1,))
    second = emitted.buffer("second", dtypes.int64, ("count",), (1,))
    out = emitted.buffer("out", dtype, ("count",), (1,), written=True)
    start = builder.map("multiply", builder.program_index(0), builder.index(block))
    indices = [builder.load(buffer.value, (start,), (block,)) for buffer in (first, second)]
    value = builder.gather(x.value, indices, checked, fill=1)
    builder.store(out.value, (start,), value)
    grid = (GridAxis("count", block),)
    return builder.kernel("gather", (count, side, x, first, second, out), grid, layout)


@pytest.mark.parametrize("dtype", ITEMS, ids=str)
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("layout", [Layout((1,), (1,), 8), Layout((32,), (1,)), Layout((16,), (4,))], ids=str)
def test_gather_reads_computed_positions(layout: Layout, checked: bool, dtype: DType) -> None:
    generator = np.random.default_rng(0)
    side, count = 7, 90
    x = generator.integers(0, 2 if dtype is dtypes.boolean else 50, (side, 2 * side)).astype(dtype.numpy)[:, ::2]
    low, high = (-4, side + 4) if checked else (0, side)
    first, second = generator.integers(low, high, (2, count))
    out = np.zeros(count, dtype.numpy)
    arguments = {"count": count, "side": side, "x": x, "first": first, "second": second, "out": out}
    emitted.run(gather_kernel(layout, checked, dtype, 64), arguments)
    inside = (first >= 0) & (first < side) & (second >= 0) & (second < side)
    clipped = x[np.clip(first, 0, side - 1), np.clip(second, 0, side - 1)]
    assert (out == np.where(inside, clipped, np.ones((), dtype.numpy))).all()


def test_checked_gather_of_an_empty_buffer_gives_the_fill() -> None:
    for layout in (Layout((1,), (1,), 8), Layout((32,), (1,))):
        out = np.zeros(20, np.float32)
        arguments = {"count": 20, "side": 0, "x": np.zeros((0, 0), np.float32), "out": out}
        indices = np.zeros(20, np.int64)
        emitted.run(gather_kernel(layout, True, dtypes.float32, 32), {**arguments, "first": indices, "second": indices})
        assert (out == 1).all()


def scatter_kernel(layout: Layout, dtype: DType, block: int) -> Kernel:
    builder = Builder()
    count, length = IndexParameter("count"), IndexParameter("length")
    x = emitted.buffer("x", dtype, ("count",), (1,))
    index = emitted.buffer("index", dtypes.int64, ("count",), (1,))
    out = emitted.buffer("out", dtype, ("length",), (None,), written=True)
    start = builder.map("multiply", builder.program_index(0), builder.index(block))
    positions = builder.load(index.value, (start,), (block,), fill=-1)
    builder.scatter(out.value, [positions], builder.load(x.value, (start,), (block,)))
    return builder.kernel("scatter", (count, length, x, index, out), (GridAxis("count", block),), layout)


@pytest.mark.parametrize("dtype", ITEMS, ids=str)
@pytest.mark.parametrize("layout", [Layout((1,), (1,), 8), Layout((32,), (2,))], ids=["host", "ptx"])
def test_scatter_writes_computed_positions(layout: Layout, dtype: DType) -> None:
    generator = np.random.default_rng(0)
    count, length = 75, 60
    x = generator.integers(0, 2 if dtype is dtypes.boolean else 50, count).astype(dtype.numpy)
    index = generator.permutation(count) - 5
    out = np.zeros(2 * length, dtype.numpy)[::2]
    emitted.run(
        scatter_kernel(layout, dtype, 64), {"count": count, "length": length, "x": x, "index": index, "out": out}
    )
    expected = np.zeros(length, dtype.numpy)
    inside = (index >= 0) & (index < length)
    expected[index[inside]] = x[inside]
    assert (out == expected).all()


def reversal_kernel(layout: Layout, rows: int, columns: int) -> Kernel:
    """Rows swapped through memory of the program, twice: what one lane writes another one reads."""
    builder = Builder()
    shape = (rows, columns)
    x = emitted.buffer("x", dtypes.float32, shape, (columns, 1))
    out = emitted.buffer("out", dtypes.float32, shape, (columns, 1), written=True)
    zero = builder.index(0)
    local = builder.allocate(dtypes.float32, shape)
    builder.store(local, (zero, zero), builder.load(x.value, (zero, zero), shape, (False, False)), (False, False))
    for _ in range(2):
        half = rows // 2
        upper = builder.load(local, (zero, zero), (half, columns), (False, False))
        lower = builder.load(local, (builder.index(half), zero), (half, columns), (False, False))
        builder.store(local, (zero, zero), builder.map("add", lower, upper), (False, False))
        builder.store(local, (builder.index(half), zero), builder.map("subtract", lower, upper), (False, False))
    builder.store(out.value, (zero, zero), builder.load(local, (zero, zero), shape, (False, False)), (False, False))
    return builder.kernel("reversal", (x, out), (GridAxis(1),), layout)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_memory_of_the_program_is_ordered(layout: Layout) -> None:
    x = np.random.default_rng(0).integers(0, 9, (8, 32)).astype(np.float32)
    out = np.zeros_like(x)
    emitted.run(reversal_kernel(layout, 8, 32), {"x": x, "out": out})
    upper, lower = x[:4], x[4:]
    for _ in range(2):
        upper, lower = lower + upper, lower - upper
    assert (out == np.concatenate([upper, lower])).all()


@pytest.mark.parametrize("layout", [Layout((1,), (1,), 8), Layout((16,), (2,))], ids=["host", "ptx"])
def test_loads_stay_before_stores_to_memory_that_may_be_the_same(layout: Layout) -> None:
    builder = Builder()
    x = emitted.buffer("x", dtypes.float32, (64,), (1,), restrict=False)
    out = emitted.buffer("out", dtypes.float32, (64,), (1,), written=True, restrict=False)
    zero = builder.index(0)
    old = builder.load(x.value, (zero,), (64,), (False,))
    builder.store(out.value, (zero,), builder.constant(dtypes.float32, 5, (64,)), (False,))
    builder.store(out.value, (zero,), builder.map("add", old, old), (False,))
    kernel = builder.kernel("in_place", (x, out), (GridAxis(1),), layout)
    array = np.arange(64, dtype=np.float32)
    expected = array + array
    if layout.lane_count == 1:
        emitted.run(kernel, {"x": array, "out": array})
        assert (array == expected).all()
    else:  # the machine gives each array its own memory, so only the order within a lane shows
        result = np.zeros_like(array)
        emitted.run(kernel, {"x": array, "out": result})
        assert (result == expected).all()


def test_a_reshape_moves_elements_to_other_lanes() -> None:
    for layout in (Layout((1, 1), (1, 1), 8), Layout((4, 8), (1, 2)), Layout((32, 2), (1, 1))):
        builder = Builder()
        x = emitted.buffer("x", dtypes.int16, (32, 1), (1, 1))
        out = emitted.buffer("out", dtypes.int16, (32,), (1,), written=True)
        zero = builder.index(0)
        value = builder.load(x.value, (zero, zero), (32, 1), (False, False))
        builder.store(out.value, (zero,), builder.reshape(value, (32,)), (False,))
        kernel = builder.kernel("reshape", (x, out), (GridAxis(1),), layout)
        array, result = np.arange(32, dtype=np.int16)[:, None], np.zeros(32, np.int16)
        emitted.run(kernel, {"x": array, "out": result})
        assert (result == array[:, 0]).all()


def test_a_gpu_block_must_be_a_power_of_two() -> None:
    builder = Builder()
    x = emitted.buffer("x", dtypes.float32, (24,), (1,))
    zero = builder.index(0)
    builder.load(x.value, (zero,), (24,), (False,))
    kernel = builder.kernel("uneven", (x,), (GridAxis(1),), Layout((8,), (1,)))
    with pytest.raises(InternalCompilerError, match="24 elements over 8 lanes; expected a power of two"):
        emitted.ptx_of(kernel)


def test_too_much_shared_memory_is_refused() -> None:
    builder = Builder()
    builder.allocate(dtypes.float64, (128, 64))
    kernel = builder.kernel("large", (), (GridAxis(1),), Layout((32,), (1,)))
    with pytest.raises(InternalCompilerError, match="65536 bytes of shared memory, but a program has 49152"):
        emitted.ptx_of(kernel)
