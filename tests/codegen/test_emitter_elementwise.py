"""Elementwise kernels on both targets against NumPy, bit for bit."""

import emitted
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, IndexParameter, Kernel, ScalarParameter, Value
from codegen.ir.layout import Layout

# NumPy's function of each row, for rows whose result is exact or correctly rounded in both.
EXACT = {
    "float": ("add", "subtract", "multiply", "divide", "square", "sqrt", "absolute", "negative"),
    "signed": ("add", "subtract", "multiply", "maximum", "minimum", "negative", "bitwise_and", "invert"),
    "unsigned": ("add", "subtract", "multiply", "maximum", "minimum", "bitwise_or", "bitwise_xor"),
    "boolean": ("logical_and", "logical_or", "logical_xor", "logical_not"),
}
HOST_LAYOUTS = (Layout((1, 1), (1, 1), 1), Layout((1, 1), (1, 1), 4), Layout((1, 1), (1, 1), 16))
GPU_LAYOUTS = (Layout((1, 32), (1, 4)), Layout((4, 16), (1, 1)), Layout((2, 8), (2, 8)), Layout((16, 8), (1, 2)))


def values(generator: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Random elements, with every special value where the dtype has some."""
    if dtype.kind == "boolean":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind == "float":
        array = (generator.standard_normal(shape) * 3).astype(dtype.numpy)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan]).astype(dtype.numpy)
        return np.where(generator.random(shape) < 0.1, generator.choice(special, shape), array)
    limits = np.iinfo(dtype.numpy)
    return generator.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bit for bit, any NaN being any other."""
    if a.dtype.kind in "biu":
        return bool((a == b).all())
    nan = np.isnan(a.astype(np.float64))
    bits = f"u{a.dtype.itemsize}"
    return bool(((a.view(bits) == b.view(bits)) | (nan & np.isnan(b.astype(np.float64)))).all())


def chain_kernel(
    dtype: DType, functions: list[str], tile: tuple[int, int], layout: Layout, strides: tuple[int | None, ...]
) -> Kernel:
    """Row after row of the table applied to a first operand, with the second one where there must be two."""
    builder = Builder()
    rows, columns = IndexParameter("rows"), IndexParameter("columns")
    extents = ("rows", "columns")
    x = emitted.buffer("x", dtype, extents, strides)
    y = emitted.buffer("y", dtype, extents, (None, 1))
    out = emitted.buffer("out", dtype, extents, (None, 1), written=True)
    offsets = tuple(
        builder.map("multiply", builder.program_index(axis), builder.index(tile[axis])) for axis in range(2)
    )
    value = builder.load(x.value, offsets, tile)
    other = builder.load(y.value, offsets, tile)
    for name in functions:
        value = builder.map(name, value, *([other] if getattr(np, name).nin == 2 else []))
    builder.store(out.value, offsets, value)
    grid = tuple(GridAxis(extent, block) for extent, block in zip(extents, tile, strict=True))
    return builder.kernel("chain", (rows, columns, x, y, out), grid, layout)


def chain_expected(functions: list[str], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    value = x
    with np.errstate(all="ignore"):
        for name in functions:
            function = getattr(np, name)
            value = function(value, y) if function.nin == 2 else function(value)
    return value


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_chains_equal_numpy(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(dtypes.ALL), "dtype")
    functions = data.draw(st.lists(st.sampled_from(EXACT[dtype.kind]), min_size=1, max_size=5), "functions")
    layout = data.draw(st.sampled_from(HOST_LAYOUTS + GPU_LAYOUTS), "layout")
    tile = data.draw(st.sampled_from(((1, 64), (4, 32), (2, 128), (8, 16))), "tile")
    shape = (data.draw(st.integers(1, 9), "rows"), data.draw(st.integers(1, 150), "columns"))
    generator = np.random.default_rng(data.draw(st.integers(0, 1000), "seed"))
    step = data.draw(st.sampled_from((1, 2, -1, 0)), "step")
    y = values(generator, dtype, shape)
    if step == 0:
        x = np.broadcast_to(values(generator, dtype, (shape[0], 1)), shape)
    else:
        x = values(generator, dtype, (shape[0], shape[1] * abs(step)))[:, ::step]
    static = data.draw(st.booleans(), "static stride")
    kernel = chain_kernel(dtype, functions, tile, layout, (None, step if static or step == 0 else None))
    out = np.zeros(shape, dtype.numpy)
    emitted.run(kernel, {"rows": shape[0], "columns": shape[1], "x": x, "y": y, "out": out})
    assert same_bits(out, chain_expected(functions, x, y))


def cast_kernel(source: DType, target: DType, layout: Layout) -> Kernel:
    builder = Builder()
    x = emitted.buffer("x", source, (64,), (1,))
    out = emitted.buffer("out", target, (64,), (1,), written=True)
    zero = builder.index(0)
    value = builder.cast(builder.load(x.value, (zero,), (64,), (False,)), target)
    builder.store(out.value, (zero,), value, (False,))
    return builder.kernel("cast", (x, out), (GridAxis(1),), layout)


@pytest.mark.parametrize("layout", [Layout((1,), (1,), 8), Layout((32,), (2,))], ids=["host", "ptx"])
@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
def test_casts_equal_numpy(source: DType, layout: Layout) -> None:
    generator = np.random.default_rng(5)
    x = values(generator, source, (64,))
    if source.kind == "float":
        x = np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=-2.0).astype(source.numpy)
    for target in dtypes.ALL:
        out = np.zeros(64, target.numpy)
        chosen = np.abs(x) if source.kind == "float" and target.kind == "unsigned" else x
        emitted.run(cast_kernel(source, target, layout), {"x": chosen, "out": out})
        with np.errstate(all="ignore"):
            assert same_bits(out, chosen.astype(target.numpy)), target


def _broadcast_sum(layout: Layout) -> Kernel:
    """Constants, counters and scalar parameters meet blocks of every shape."""
    builder = Builder()
    factor = ScalarParameter("factor", dtypes.float32)
    flag = ScalarParameter("flag", dtypes.boolean)
    row = emitted.buffer("row", dtypes.float32, (1, 16), (16, 1))
    column = emitted.buffer("column", dtypes.float32, (8, 1), (1, 1))
    out = emitted.buffer("out", dtypes.float32, (8, 16), (16, 1), written=True)
    zero = builder.index(0)
    shape = (8, 16)

    def window(buffer: Value, extents: tuple[int, int]) -> Value:
        return builder.broadcast(builder.load(buffer, (zero, zero), extents, (False, False)), shape)

    total = builder.map("add", window(row.value, (1, 16)), window(column.value, (8, 1)))
    total = builder.map("multiply", total, builder.broadcast(factor.value, shape))
    counters = [builder.cast(builder.iota(shape, axis), dtypes.float32) for axis in range(2)]
    total = builder.map(
        "add", total, builder.map("multiply", counters[0], builder.constant(dtypes.float32, 100, shape))
    )
    total = builder.map("where", builder.broadcast(flag.value, shape), builder.map("add", total, counters[1]), total)
    builder.store(out.value, (zero, zero), total, (False, False))
    return builder.kernel("broadcast_sum", (factor, flag, row, column, out), (GridAxis(1),), layout)


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("layout", HOST_LAYOUTS + (Layout((4, 8), (1, 2)), Layout((1, 32), (2, 4))), ids=str)
def test_shapes_broadcast(layout: Layout, flag: bool) -> None:
    generator = np.random.default_rng(1)
    row = generator.standard_normal((1, 16)).astype(np.float32)
    column = generator.standard_normal((8, 1)).astype(np.float32)
    out = np.zeros((8, 16), np.float32)
    factor = np.float32(1.7)
    emitted.run(_broadcast_sum(layout), {"factor": factor, "flag": flag, "row": row, "column": column, "out": out})
    first, second = np.indices((8, 16)).astype(np.float32)
    expected = (row + column) * factor + first * 100
    assert (out == (expected + second if flag else expected)).all()


def test_long_chains_need_no_deep_recursion() -> None:
    builder = Builder()
    x = emitted.buffer("x", dtypes.float32, (16,), (1,))
    out = emitted.buffer("out", dtypes.float32, (16,), (1,), written=True)
    zero = builder.index(0)
    value = builder.load(x.value, (zero,), (16,), (False,))
    for _ in range(1500):
        value = builder.map("negative", value)
    builder.store(out.value, (zero,), value, (False,))
    kernel = builder.kernel("long", (x, out), (GridAxis(1),), Layout((1,), (1,), 8))
    array, result = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    emitted.run(kernel, {"x": array, "out": result})
    assert (result == array).all()
