"""Products of blocks on both targets."""

import emitted
import numpy as np
import pytest

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, IndexParameter, Kernel, Value
from codegen.ir.layout import Layout

LAYOUTS = [Layout((1, 1), (1, 1), 1), Layout((1, 1), (1, 1), 8), Layout((4, 8), (4, 2)), Layout((8, 16), (2, 1))]
PAIRS = [
    (dtypes.float32, dtypes.float32),
    (dtypes.float64, dtypes.float64),
    (dtypes.float16, dtypes.float32),
    (dtypes.bfloat16, dtypes.float32),
    (dtypes.int8, dtypes.int32),
    (dtypes.float16, dtypes.float16),
]


def product_kernel(dtype: DType, total_dtype: DType, layout: Layout, tile: tuple[int, int, int]) -> Kernel:
    """A whole matrix product, a tile for each program, with edges."""
    builder = Builder()
    m, n, k = (IndexParameter(name) for name in ("m", "n", "k"))
    rows, columns, inner = tile
    a = emitted.buffer("a", dtype, ("m", "k"), (None, 1))
    b = emitted.buffer("b", dtype, ("k", "n"), (None, 1))
    out = emitted.buffer("out", total_dtype, ("m", "n"), (None, 1), written=True)
    row = builder.map("multiply", builder.program_index(0), builder.index(rows))
    column = builder.map("multiply", builder.program_index(1), builder.index(columns))

    def step(index: Value, total: Value) -> tuple[Value, ...]:
        left = builder.load(a.value, (row, index), (rows, inner))
        right = builder.load(b.value, (index, column), (inner, columns))
        return (builder.dot(left, right, total),)

    start = builder.constant(total_dtype, 0, (rows, columns))
    (total,) = builder.loop(builder.index(0), k.value, inner, [start], step)
    builder.store(out.value, (row, column), total)
    grid = (GridAxis("m", rows), GridAxis("n", columns))
    return builder.kernel("product", (m, n, k, a, b, out), grid, layout)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_products_equal_numpy(layout: Layout, pair: tuple[DType, DType]) -> None:
    dtype, total_dtype = pair
    generator = np.random.default_rng(0)
    m, n, k = 19, 37, 21
    a = generator.integers(-3, 4, (m, k)).astype(dtype.numpy)
    b = generator.integers(-3, 4, (k, n)).astype(dtype.numpy)
    out = np.zeros((m, n), total_dtype.numpy)
    emitted.run(
        product_kernel(dtype, total_dtype, layout, (16, 32, 8)), {"m": m, "n": n, "k": k, "a": a, "b": b, "out": out}
    )
    assert (out == a.astype(np.float64) @ b.astype(np.float64)).all()


def test_products_of_odd_blocks_on_the_host() -> None:
    a = np.arange(15, dtype=np.float32).reshape(3, 5)
    b = np.arange(35, dtype=np.float32).reshape(5, 7)
    out = np.zeros((3, 7), np.float32)
    kernel = product_kernel(dtypes.float32, dtypes.float32, Layout((1, 1), (1, 1), 8), (3, 7, 5))
    emitted.run(kernel, {"m": 3, "n": 7, "k": 5, "a": a, "b": b, "out": out})
    assert (out == a @ b).all()
