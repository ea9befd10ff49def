"""Division by scalars of a launch: the inverse, the quotients, the pass that puts them in place, and the emitted code."""

import emitted
import numpy as np
import pytest
from scalar_reference import patterns, special_values

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, IndexParameter, Kernel, ScalarParameter
from codegen.ir.layout import Layout
from codegen.ir.printer import print_kernel
from codegen.passes import pipeline
from codegen.passes.divide_by_invariants import DIVISIONS, divide_by_invariants
from codegen.scalar.numpy_core import evaluate

INTEGERS = [dtype for dtype in dtypes.ALL if dtype.kind in ("signed", "unsigned")]


def by_inverse(name: str, x: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    inverse = (evaluate("division_multiplier", divisor), evaluate("division_shift", divisor))
    return evaluate(f"{name}_by", x, divisor, *inverse)


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """All dividends with all divisors of 8 bits; for wider ones, values at the edges of quotients too."""
    if dtype.bits == 8:
        x, divisor = (axis.ravel() for axis in np.meshgrid(patterns(dtype, 0, 0), patterns(dtype, 0, 0)))
        return x, divisor
    generator = np.random.default_rng(dtype.bits)
    limits = np.iinfo(dtype.numpy)
    divisors = np.concatenate([special_values(dtype), generator.choice(patterns(dtype, 300, 1), 300)])
    powers = [2**power + step for power in range(dtype.bits - 1) for step in (-1, 0, 1)]
    divisors = np.concatenate([divisors, np.array([p for p in powers if p <= limits.max], dtype.numpy)])
    x = generator.choice(np.concatenate([special_values(dtype), patterns(dtype, 500, 2)]), (40, divisors.size))
    with np.errstate(over="ignore", divide="ignore"):
        x[20:] = x[20:] // np.where(divisors == 0, 1, divisors) * divisors + generator.integers(
            0, 2, (20, 1), np.int8
        ).astype(dtype.numpy)
    return x.ravel(), np.broadcast_to(divisors, x.shape).ravel()


@pytest.mark.parametrize("name", sorted(DIVISIONS))
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_quotients_are_those_of_division(name: str, dtype: DType) -> None:
    x, divisor = pairs(dtype)
    np.testing.assert_array_equal(by_inverse(name, x, divisor), evaluate(name, x, divisor))


def kernel_of(name: str, dtype: DType, layout: Layout) -> Kernel:
    builder = Builder()
    extent, divisor = IndexParameter("n"), ScalarParameter("d", dtype)
    x = emitted.buffer("x", dtype, ("n",), (1,))
    out = emitted.buffer("out", dtype, ("n",), (1,), written=True)
    offset = builder.map("multiply", builder.program_index(0), builder.index(64))
    value = builder.load(x.value, (offset,), (64,))
    quotient = builder.map(name, value, builder.broadcast(divisor.value, (64,)))
    builder.store(out.value, (offset,), quotient)
    return builder.kernel("quotient", (extent, divisor, x, out), (GridAxis("n", 64),), layout)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_code_of_the_host_divides_as_numpy_does(dtype: DType) -> None:
    x = np.resize(np.concatenate([special_values(dtype), patterns(dtype, 200, 3)]), 300)
    for name in ("floor_divide", "remainder", "fmod"):
        kernel = pipeline.run(kernel_of(name, dtype, Layout((1,), (1,), 16)), emitted.HOST.target)
        for divisor in np.array([0, 3, np.iinfo(dtype.numpy).max, np.iinfo(dtype.numpy).min], dtype.numpy):
            out = np.zeros_like(x)
            emitted.run(kernel, {"n": x.size, "d": divisor, "x": x, "out": out})
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(out, getattr(np, name)(x, divisor))


def test_inverse_is_computed_before_anything_else() -> None:
    kernel = pipeline.run(kernel_of("floor_divide", dtypes.int64, Layout((1,), (1,), 8)), emitted.HOST.target)
    text = print_kernel(kernel)
    assert "map floor_divide_by" in text
    assert "map floor_divide " not in text
    assert text.index("map division_multiplier %d") < text.index("if ")


def test_divisors_that_vary_and_lanes_keep_their_divisions() -> None:
    kernel = kernel_of("floor_divide", dtypes.int64, Layout((32,), (1,)))
    assert divide_by_invariants(kernel, emitted.GPU) is kernel
    builder = Builder()
    x, y = (emitted.buffer(name, dtypes.int32, (64,), (1,)) for name in "xy")
    zero = builder.index(0)
    first, second = (builder.load(one.value, (zero,), (64,), (False,)) for one in (x, y))
    out = emitted.buffer("out", dtypes.int32, (64,), (1,), written=True)
    builder.store(out.value, (zero,), builder.map("remainder", first, second), (False,))
    kernel = builder.kernel("rest", (x, y, out), (GridAxis(1),), Layout((1,), (1,), 16))
    assert divide_by_invariants(kernel, emitted.HOST.target) is kernel
