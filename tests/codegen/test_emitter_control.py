"""Loops and branches, and what must be emitted before them."""

import emitted
import numpy as np
import pytest

from codegen import dtypes
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, IndexParameter, Kernel, Value
from codegen.ir.layout import Layout

LAYOUTS = [Layout((1, 1), (1, 1), 1), Layout((1, 1), (1, 1), 8), Layout((2, 16), (1, 1)), Layout((1, 64), (1, 2))]
SHAPE = (2, 64)
UNCHECKED = (False, False)


def loop_kernel(layout: Layout) -> Kernel:
    """Nested loops with carried blocks and scalars, whose bounds come from parameters and from the outer index."""
    builder = Builder()
    begin, end = IndexParameter("begin"), IndexParameter("end")
    x = emitted.buffer("x", dtypes.float64, SHAPE, (64, 1))
    out = emitted.buffer("out", dtypes.float64, SHAPE, (64, 1), written=True)
    turns = emitted.buffer("turns", dtypes.int64, (1, 1), (1, 1), written=True)
    zero = builder.index(0)
    x_block = builder.load(x.value, (zero, zero), SHAPE, UNCHECKED)
    unused_before = builder.map("add", x_block, x_block)

    def outer(index: Value, total: Value, count: Value) -> tuple[Value, ...]:
        def inner(inner_index: Value, inner_total: Value) -> tuple[Value, ...]:
            number = builder.cast(inner_index, dtypes.float64)
            term = builder.map("multiply", x_block, builder.broadcast(number, SHAPE))
            return (builder.map("add", inner_total, term),)

        (total,) = builder.loop(zero, index, 2, [total], inner)
        return total, builder.map("add", count, builder.index(1))

    start = builder.constant(dtypes.float64, 0, SHAPE)
    total, count = builder.loop(begin.value, end.value, 3, [start, zero], outer)
    builder.store(out.value, (zero, zero), builder.map("add", total, unused_before), UNCHECKED)
    builder.store(turns.value, (zero, zero), builder.reshape(count, (1, 1)), UNCHECKED)
    return builder.kernel("loops", (begin, end, x, out, turns), (GridAxis(1),), layout)


@pytest.mark.parametrize("bounds", [(0, 10), (1, 11), (5, 5), (7, 2), (-3, 4)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_loops_count(layout: Layout, bounds: tuple[int, int]) -> None:
    x = np.random.default_rng(0).integers(-5, 5, SHAPE).astype(np.float64)
    out, turns = np.zeros_like(x), np.zeros((1, 1), np.int64)
    emitted.run(loop_kernel(layout), {"begin": bounds[0], "end": bounds[1], "x": x, "out": out, "turns": turns})
    outer = range(bounds[0], bounds[1], 3)
    factor = sum(sum(range(0, index, 2)) for index in outer)
    assert turns[0, 0] == len(outer)
    assert (out == x * factor + 2 * x).all()


def branch_kernel(layout: Layout) -> Kernel:
    """Branches that yield blocks, around values made before them and used behind them."""
    builder = Builder()
    limit = IndexParameter("limit")
    x = emitted.buffer("x", dtypes.float32, ("limit", 64), (64, 1))
    out = emitted.buffer("out", dtypes.float32, ("limit", 64), (64, 1), written=True)
    zero = builder.index(0)
    row = builder.map("multiply", builder.program_index(0), builder.index(2))
    block = builder.load(x.value, (row, zero), SHAPE)
    doubled = builder.map("add", block, block)
    squared = builder.map("multiply", block, block)
    first = builder.map("less", row, builder.index(3))

    def then() -> tuple[Value, ...]:
        inner = builder.branch(
            builder.map("equal", row, zero), lambda: (builder.map("negative", doubled),), lambda: (doubled,)
        )
        return (builder.map("add", inner[0], block),)

    (chosen,) = builder.branch(first, then, lambda: (squared,))
    builder.branch(first, lambda: (builder.store(out.value, (row, zero), squared), ())[1])
    builder.store(out.value, (row, zero), builder.map("add", chosen, builder.map("add", squared, doubled)))
    return builder.kernel("branches", (limit, x, out), (GridAxis("limit", 2),), layout)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_branches_choose(layout: Layout) -> None:
    x = np.random.default_rng(0).integers(-5, 5, (7, 64)).astype(np.float32)
    out = np.zeros_like(x)
    emitted.run(branch_kernel(layout), {"limit": 7, "x": x, "out": out})
    expected = x * x
    expected[:4] = 3 * x[:4]
    expected[:2] = -x[:2]
    assert (out == expected + x * x + 2 * x).all()


def test_programs_are_numbered_row_major() -> None:
    for layout in (Layout((1, 1, 1), (1, 1, 1), 4), Layout((1, 2, 4), (1, 1, 1))):
        builder = Builder()
        extents = [IndexParameter(name) for name in ("a", "b", "c")]
        out = emitted.buffer("out", dtypes.int64, ("a", "b", "c"), (None, None, 1), written=True)
        blocks = (1, 2, 4)
        starts = [
            builder.map("multiply", builder.program_index(axis), builder.index(block))
            for axis, block in enumerate(blocks)
        ]
        number = builder.index(0)
        for axis in range(3):
            number = builder.map(
                "add", builder.map("multiply", number, builder.index(100)), builder.program_index(axis)
            )
        builder.store(out.value, starts, builder.broadcast(number, blocks))
        grid = tuple(GridAxis(extent.name, block) for extent, block in zip(extents, blocks, strict=True))
        kernel = builder.kernel("grid", (*extents, out), grid, layout)
        shape = (3, 5, 9)
        result = np.full(shape, -1)
        emitted.run(kernel, {"a": 3, "b": 5, "c": 9, "out": result})
        first, second, third = np.indices(shape)
        assert (result == (first * 100 + second // 2) * 100 + third // 4).all()


def test_a_range_of_programs_can_start_anywhere() -> None:
    """The host's pool hands out ranges: two calls for a part each do what one call does."""
    builder = Builder()
    rows, columns = IndexParameter("rows"), IndexParameter("columns")
    out = emitted.buffer("out", dtypes.int64, ("rows", "columns"), (None, 1), written=True)
    indices = [builder.program_index(axis) for axis in range(2)]
    number = builder.map("add", builder.map("multiply", indices[0], builder.index(10)), indices[1])
    builder.store(out.value, indices, builder.reshape(number, (1, 1)), UNCHECKED)
    grid = (GridAxis("rows"), GridAxis("columns"))
    kernel = builder.kernel("parts", (rows, columns, out), grid, Layout((1, 1), (1, 1), 4))
    launcher = emitted.HOST.load(emitted.host_module(kernel).object_code(), kernel.name, lambda: kernel)
    result = np.full((4, 5), -1)
    slots = np.array([4, 5, emitted.address_of(result), 5])
    entry = launcher._entry
    for begin, end in ((0, 7), (7, 8), (8, 20), (3, 3)):
        entry(emitted.address_of(slots), begin, end)
    first, second = np.indices((4, 5))
    assert (result == first * 10 + second).all()


def test_memory_in_loops_is_ordered_between_turns() -> None:
    """Each turn reads what another lane wrote in the turn before."""
    for layout in (Layout((1, 1), (1, 1), 8), Layout((1, 64), (1, 1))):
        builder = Builder()
        out = emitted.buffer("out", dtypes.int64, (1, 64), (64, 1), written=True)
        zero = builder.index(0)
        local = builder.allocate(dtypes.int64, (1, 65))
        builder.store(local, (zero, zero), builder.iota((1, 64), 1), UNCHECKED)
        builder.store(local, (zero, builder.index(64)), builder.constant(dtypes.int64, 1000, (1, 1)), UNCHECKED)

        def turn(_index: Value, builder: Builder = builder, local: Value = local, zero: Value = zero) -> tuple:
            shifted = builder.load(local, (zero, builder.index(1)), (1, 64), UNCHECKED)
            builder.store(local, (zero, zero), shifted, UNCHECKED)
            return ()

        builder.loop(zero, builder.index(5), 1, [], turn)
        builder.store(out.value, (zero, zero), builder.load(local, (zero, zero), (1, 64), UNCHECKED), UNCHECKED)
        kernel = builder.kernel("shift", (out,), (GridAxis(1),), layout)
        result = np.zeros((1, 64), np.int64)
        emitted.run(kernel, {"out": result})
        assert (result[0] == [*range(5, 64), *[1000] * 5]).all()
