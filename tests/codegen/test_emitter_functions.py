"""Every row of the scalar table on both targets: the bits are those of its definition's NumPy run."""

import emitted
import numpy as np
import pytest

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, Kernel
from codegen.ir.layout import Layout
from codegen.scalar.function import ScalarFunction
from codegen.scalar.numpy_core import evaluate
from codegen.scalar.table import TABLE

COUNT = 128
LAYOUTS = {"host": Layout((1,), (1,), 16), "ptx": Layout((64,), (2,))}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1e-40, -1e-40, 1e30, 123456.7, 3.5, 2.5, 0.1, -0.1]


def operands_of(row: ScalarFunction, dtype: DType) -> tuple[DType, ...] | None:
    """Dtypes of the operands of a row on values of `dtype`; None if it does not take them."""
    if row.name == "where":
        return dtypes.boolean, dtype, dtype
    if row.name == "ldexp":
        return (dtype, dtypes.int32) if row.takes(dtype) else None
    if row.name.endswith("signed_unsigned"):
        return (dtype, dtypes.unsigned_of_width(dtype.bits)) if dtype.kind == "signed" else None
    if row.arity == 4:
        return (dtype, dtype, *(dtypes.unsigned_of_width(dtype.bits),) * 2) if row.takes(dtype) else None
    return (dtype,) * row.arity if row.takes(dtype) else None


def values(generator: np.random.Generator, dtype: DType) -> np.ndarray:
    """Random elements of all magnitudes, special ones first."""
    if dtype.kind == "boolean":
        return generator.integers(0, 2, COUNT).astype(bool)
    if dtype.kind == "float":
        magnitudes = 10.0 ** generator.uniform(-6, 6, COUNT)
        array = generator.choice([-1, 1], COUNT) * magnitudes
        array[: len(SPECIAL)] = generator.permutation(SPECIAL)
        with np.errstate(over="ignore"):
            return array.astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    array = generator.integers(limits.min, limits.max, COUNT, dtype.numpy, endpoint=True)
    array[::3] = generator.integers(0, 9, len(array[::3]))
    array[:4] = [0, limits.max, limits.min, 1]
    if dtype.bits == 64:  # small numbers for whoever looks at the lower half
        array[4:7] = [2**32, 2**32 + 5, 2**40]
    return array


def kernel_of(row: ScalarFunction, operands: tuple[DType, ...], layout: Layout) -> Kernel:
    builder = Builder()
    zero = builder.index(0)
    buffers = [emitted.buffer(f"x{place}", dtype, (COUNT,), (1,)) for place, dtype in enumerate(operands)]
    loads = [builder.load(buffer.value, (zero,), (COUNT,), (False,)) for buffer in buffers]
    result = builder.map(row.name, *loads)
    out = emitted.buffer("out", result.block.dtype, (COUNT,), (1,), written=True)
    builder.store(out.value, (zero,), result, (False,))
    return builder.kernel("function", (*buffers, out), (GridAxis(1),), layout)


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays are equal bit for bit, any NaN being any other."""
    if a.dtype.kind in "biu":
        return a == b
    nan = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
    bits = f"u{a.dtype.itemsize}"
    return (a.view(bits) == b.view(bits)) | nan


@pytest.mark.parametrize("target", LAYOUTS)
@pytest.mark.parametrize("name", TABLE)
def test_rows_equal_their_definitions(name: str, target: str) -> None:
    row = TABLE[name]
    if target == "ptx" and ("nvptx" in row.on_target or row.contracts):
        pytest.skip("the row has a lowering of its own on a GPU, within its error bound but with other bits")
    generator = np.random.default_rng(0)
    for dtype in dtypes.ALL:
        operands = operands_of(row, dtype)
        if operands is None:
            continue
        arrays = [values(generator, operand) for operand in operands]
        if row.arity == 4:  # the last one is a number of bits
            arrays[3] %= operands[3].bits
        kernel = kernel_of(row, operands, LAYOUTS[target])
        result = kernel.parameters[-1].type.dtype
        out = np.zeros(COUNT, result.numpy)
        emitted.run(kernel, {**{f"x{place}": array for place, array in enumerate(arrays)}, "out": out})
        expected = evaluate(name, *arrays)
        wrong = ~same_bits(out, expected)
        shown = [array[wrong][:3] for array in (*arrays, out, expected)]
        assert not wrong.any(), f"{dtype}: operands, result, expected: {shown}"
