"""Reductions and scans along every axis, over registers, lanes and warps."""

import emitted
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, Kernel, Value
from codegen.ir.layout import Layout

LAYOUTS = (
    Layout((1, 1), (1, 1), 1),
    Layout((1, 1), (1, 1), 8),
    Layout((1, 1), (1, 1), 16),
    Layout((1, 32), (1, 2)),
    Layout((1, 128), (1, 1)),
    Layout((32, 4), (1, 2)),
    Layout((4, 8), (2, 1)),
    Layout((2, 64), (1, 4)),
)
FUNCTIONS = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "bitwise_xor": np.bitwise_xor,
    "logical_or": np.logical_or,
}


def zeros(builder: Builder, rank: int) -> tuple[Value, ...]:
    zero = builder.index(0)
    return (zero,) * rank


def folded_shape(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))


def fold_kernel(dtype: DType, function: str, shape: tuple[int, ...], axis: int, layout: Layout, scan: bool) -> Kernel:
    """A reduction spread over its block again, or a scan with its totals."""
    builder = Builder()
    totals_shape = folded_shape(shape, axis)
    x = emitted.buffer("x", dtype, shape, row_major(shape), alignment=16)
    out = emitted.buffer("out", dtype, shape, row_major(shape), written=True, alignment=16)
    totals = emitted.buffer("totals", dtype, totals_shape, row_major(totals_shape), written=True)
    places = zeros(builder, len(shape))
    inside = (False,) * len(shape)
    block = builder.load(x.value, places, shape, inside)
    if scan:
        block, total = builder.scan(function, [block], axis)
    else:
        (total,) = builder.reduce(function, [block], axis)
        block = builder.broadcast(total, shape)
    builder.store(out.value, places, block, inside)
    builder.store(totals.value, places, total, inside)
    return builder.kernel("fold", (x, out, totals), (GridAxis(1),), layout)


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_folds_equal_numpy(data: st.DataObject) -> None:
    function = data.draw(st.sampled_from(tuple(FUNCTIONS)), "function")
    kinds = {"bitwise_xor": ("signed", "unsigned"), "logical_or": ("boolean",)}.get(function)
    allowed = [row for row in dtypes.ALL if row.kind in (kinds or ("signed", "unsigned", "float"))]
    dtype = data.draw(st.sampled_from(allowed), "dtype")
    layout = data.draw(st.sampled_from(LAYOUTS), "layout")
    shape = data.draw(st.sampled_from(((1, 256), (4, 64), (32, 16), (8, 2), (1, 1))), "shape")
    axis, scan = data.draw(st.integers(0, 1), "axis"), data.draw(st.booleans(), "scan")
    # Small whole numbers: sums and products are exact in any order.
    generator = np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
    high = 2 if function == "multiply" or dtype.kind == "boolean" else 3
    x = generator.integers(0, high, shape).astype(dtype.numpy)
    if function == "multiply":
        x = np.where(x == 0, np.ones((), dtype.numpy), x)
    out, totals = np.zeros_like(x), np.zeros(folded_shape(shape, axis), dtype.numpy)
    emitted.run(fold_kernel(dtype, function, shape, axis, layout, scan), {"x": x, "out": out, "totals": totals})
    ufunc = FUNCTIONS[function]
    if dtype.is_half:
        folded = ufunc.reduce(x.astype(np.float32), axis=axis, keepdims=True).astype(dtype.numpy)
        running = ufunc.accumulate(x.astype(np.float32), axis=axis).astype(dtype.numpy)
    else:
        folded = ufunc.reduce(x, axis=axis, keepdims=True, dtype=x.dtype)
        running = ufunc.accumulate(x, axis=axis, dtype=x.dtype)
    assert (totals == folded).all()
    assert (out == (running if scan else np.broadcast_to(folded, shape))).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_sums_are_pairwise(layout: Layout) -> None:
    x = np.random.default_rng(2).random((1, 256)).astype(np.float32)
    out, totals = np.zeros_like(x), np.zeros((1, 1), np.float32)
    emitted.run(fold_kernel(dtypes.float32, "add", (1, 256), 1, layout, False), {"x": x, "out": out, "totals": totals})
    exact = x.astype(np.float64).sum()
    # A tree of 8 levels loses at most 8 roundings; a chain of 256 would be allowed 256.
    assert abs(float(totals[0, 0]) - exact) <= 8 * np.finfo(np.float32).eps * exact
    assert (out == totals).all()


def argmax_kernel(layout: Layout, shape: tuple[int, int]) -> Kernel:
    builder = Builder()
    x = emitted.buffer("x", dtypes.float32, shape, row_major(shape))
    out = emitted.buffer("out", dtypes.int64, (shape[0], 1), (1, 1), written=True)
    places = zeros(builder, 2)
    block = builder.load(x.value, places, shape, (False, False))
    _, index = builder.reduce("argmax", [block, builder.iota(shape, 1)], 1)
    builder.store(out.value, places, index, (False, False))
    return builder.kernel("argmax", (x, out), (GridAxis(1),), layout)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_argmax_is_the_first_and_prefers_nan(layout: Layout) -> None:
    x = np.random.default_rng(0).integers(0, 4, (8, 128)).astype(np.float32)
    x[1, [40, 90]] = np.nan
    x[2] = -np.inf
    x[3, 127] = np.inf
    out = np.zeros((8, 1), np.int64)
    emitted.run(argmax_kernel(layout, (8, 128)), {"x": x, "out": out})
    assert (out[:, 0] == x.argmax(axis=1)).all()


def welford_kernel(layout: Layout, shape: tuple[int, int], scan: bool) -> Kernel:
    """Three values that belong together, in an order that matters for their bits."""
    builder = Builder()
    x = emitted.buffer("x", dtypes.float64, shape, row_major(shape))
    names = ("mean", "squares", "count")
    outputs = [emitted.buffer(name, dtypes.float64, folded_shape(shape, 1), (1, 1), written=True) for name in names]
    spread = emitted.buffer("spread", dtypes.float64, shape, row_major(shape), written=True)
    places = zeros(builder, 2)
    inside = (False, False)
    block = builder.load(x.value, places, shape, inside)
    parts = [block, builder.constant(dtypes.float64, 0, shape), builder.constant(dtypes.float64, 1, shape)]
    folded = builder.scan("welford", parts, 1)[3:] if scan else builder.reduce("welford", parts, 1)
    for output, value in zip(outputs, folded, strict=True):
        builder.store(output.value, places, value, inside)
    builder.store(spread.value, places, builder.broadcast(folded[0], shape), inside)
    return builder.kernel("welford", (x, *outputs, spread), (GridAxis(1),), layout)


@pytest.mark.parametrize("scan", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_several_values_fold_together(layout: Layout, scan: bool) -> None:
    shape = (4, 64)
    x = np.random.default_rng(0).random(shape) + 1000
    results = {name: np.zeros((4, 1)) for name in ("mean", "squares", "count")}
    spread = np.zeros(shape)
    emitted.run(welford_kernel(layout, shape, scan), {"x": x, **results, "spread": spread})
    assert (results["count"] == 64).all()
    assert np.allclose(results["mean"][:, 0], x.mean(axis=1), rtol=1e-15)
    assert np.allclose(results["squares"][:, 0], x.var(axis=1) * 64, rtol=1e-9)
    # Every lane holds the same bits.
    assert (spread == results["mean"]).all()


def test_two_reductions_in_a_loop_do_not_race() -> None:
    """The scratch areas of reductions across warps take turns; a loop must not let a fast lane lap a slow one."""
    for count in (1, 2, 3):
        builder = Builder()
        shape = (1, 128)
        x = emitted.buffer("x", dtypes.int64, shape, (128, 1))
        out = emitted.buffer("out", dtypes.int64, (1, 1), (1, 1), written=True)
        places = zeros(builder, 2)
        inside = (False, False)
        start = builder.load(x.value, places, shape, inside)

        def turn(_index: Value, block: Value, builder: Builder = builder, count: int = count) -> tuple[Value, ...]:
            for _ in range(count):
                (total,) = builder.reduce("maximum", [block], 1)
                block = builder.map("subtract", block, builder.broadcast(total, block.block.shape))
            return (block,)

        (block,) = builder.loop(places[0], builder.index(3), 1, [start], turn)
        builder.store(out.value, places, builder.reduce("add", [block], 1)[0], inside)
        kernel = builder.kernel("repeated", (x, out), (GridAxis(1),), Layout((1, 128), (1, 1)))
        array, result = np.arange(128)[None], np.zeros((1, 1), np.int64)
        emitted.run(kernel, {"x": array, "out": result})
        expected = array - 127
        assert result[0, 0] == expected.sum()
