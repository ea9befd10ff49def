"""Every row of the table as emitted code, on every dtype, bit for bit what its definition gives on NumPy arrays."""

import emitted
import numpy as np
import pytest
from scalar_reference import array_of, assert_same, floats, patterns, special_values

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, Kernel
from codegen.ir.layout import Layout
from codegen.scalar.casts import cast
from codegen.scalar.function import Interval, ScalarFunction
from codegen.scalar.numpy_core import NumpyCore, evaluate
from codegen.scalar.table import TABLE

REGISTER_BYTES = 64
ROWS = [row for row in TABLE.values() if row.name not in ("where", "ldexp") and not row.name.endswith("_unsigned")]
# the PTX machine of the tests is slow: rows with branches and loops, and some of each module
ON_GPU = {
    "float": [
        "sin",
        "tan",
        "fmod",
        "floor_divide",
        "power",
        "exp",
        "log10",
        "expm1",
        "arctan2",
        "tanh",
        "cbrt",
        "hypot",
    ],
    "signed": ["floor_divide", "remainder", "gcd", "lcm", "power", "left_shift", "right_shift", "bitwise_count"],
}


def operands(row: ScalarFunction, dtype: DType, count: int) -> list[np.ndarray]:
    """Special and ordinary values in a random order, so that some registers need slow paths and others do not."""
    generator = np.random.default_rng(1)
    if dtype.kind == "float":
        values = floats(dtype, Interval(-20, 20), count // 8, seed=1)
    else:
        values = np.concatenate([special_values(dtype), patterns(dtype, count // 2, seed=1)])
    columns = [generator.permutation(np.resize(values, count)) for _ in range(row.arity)]
    if row.name == "power" and dtype.kind == "signed":
        columns[1] = np.where(columns[1] < 0, dtype.numpy.type(3), columns[1])
    return columns


def kernel_of(row: ScalarFunction, dtype: DType, count: int, block: int, layout: Layout) -> Kernel:
    builder = Builder()
    inputs = [emitted.buffer(f"x{position}", dtype, (count,), (1,)) for position in range(row.arity)]
    result = row.result_dtype(*(dtype,) * row.arity)
    out = emitted.buffer("out", result, (count,), (1,), written=True)
    offset = builder.map("multiply", builder.program_index(0), builder.index(block))
    values = [builder.load(x.value, (offset,), (block,)) for x in inputs]
    builder.store(out.value, (offset,), builder.map(row.name, *values))
    return builder.kernel("row", (*inputs, out), (GridAxis(count // block),), layout)


def assert_emitted_equals_definition(row: ScalarFunction, dtype: DType, count: int, block: int, layout: Layout) -> None:
    columns = operands(row, dtype, count)
    out = np.zeros(count, row.result_dtype(*(dtype,) * row.arity).numpy)
    arguments = {f"x{position}": column for position, column in enumerate(columns)}
    emitted.run(kernel_of(row, dtype, count, block, layout), {**arguments, "out": out})
    expected = evaluate(row.name, *columns)
    if row.contracts and layout.lane_count > 1:
        # Fused multiply-adds: other bits, but no further from the definition than both may be from the truth.
        step = np.spacing(np.abs(expected), where=np.isfinite(expected), out=np.ones_like(expected))
        with np.errstate(invalid="ignore"):
            near = np.abs(out - expected) <= 2 * row.ulp_bound(dtype) * step
        out = np.where(near & np.isfinite(expected), expected, out)
    assert_same(out, expected, *columns)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_rows_on_the_host(dtype: DType) -> None:
    width = min(REGISTER_BYTES // dtype.itemsize, 16)
    for row in ROWS:
        if row.arity < 3 and row.takes(dtype):
            assert_emitted_equals_definition(row, dtype, 2048, 64, Layout((1,), (1,), width))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64], ids=str)
def test_rows_in_ptx(dtype: DType) -> None:
    for name in ON_GPU[dtype.kind]:
        assert_emitted_equals_definition(TABLE[name], dtype, 256, 128, Layout((32,), (1,)))


def cast_kernel(source: DType, target: DType, count: int, layout: Layout) -> Kernel:
    builder = Builder()
    x = emitted.buffer("x", source, (count,), (1,))
    out = emitted.buffer("out", target, (count,), (1,), written=True)
    offset = builder.map("multiply", builder.program_index(0), builder.index(64))
    value = builder.cast(builder.load(x.value, (offset,), (64,)), target)
    builder.store(out.value, (offset,), value)
    return builder.kernel("cast", (x, out), (GridAxis(count // 64),), layout)


@pytest.mark.parametrize("layout", [Layout((1,), (1,), 16), Layout((32,), (1,))], ids=["host", "ptx"])
@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
def test_casts_of_special_values(source: DType, layout: Layout) -> None:
    core = NumpyCore()
    x = np.resize(special_values(source), 128)
    for target in dtypes.ALL:
        out = np.zeros(x.size, target.numpy)
        emitted.run(cast_kernel(source, target, x.size, layout), {"x": x, "out": out})
        assert_same(out, array_of(cast(core, core.value(x), target)), x)
