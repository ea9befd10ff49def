"""Products of halves on the host, by panels and registers, against float64; and who computes what."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockarray
from blockarray.fusion.plan import Product
from blockarray.fusion.products import schedule_of
from blockarray.kernels.matmul import lower_product
from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.products import dot_loops
from codegen.passes import pipeline
from codegen.targets import backend
from codegen.targets.cpu.description import describe_host

HALVES = [dtypes.float16, dtypes.bfloat16]


def integers(shape: tuple[int, ...], dtype: DType, seed: int) -> np.ndarray:
    """Small ones, whose products every order of additions sums up exactly."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype.numpy)


def check(a: np.ndarray, b: np.ndarray) -> None:
    with blockarray.device("cpu"):
        found = np.asarray(blockarray.array(a) @ blockarray.array(b))
    compare(found, a, b)


def compare(found: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """NumPy gives a product of bfloat16 in float32."""
    assert found.dtype == np.matmul(a, b).dtype
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(found.dtype)
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("a_turned", [False, True])
@pytest.mark.parametrize("b_turned", [False, True])
def test_all_orders_of_operands(a_turned: bool, b_turned: bool, dtype: DType) -> None:
    a = integers((300, 70), dtype, 1).T if a_turned else integers((70, 300), dtype, 1)
    b = integers((75, 300), dtype, 2).T if b_turned else integers((300, 75), dtype, 2)
    with blockarray.device("cpu"):
        # As views of what lies in memory, not as copies of their own.
        x = blockarray.array(a.T).T if a_turned else blockarray.array(a)
        y = blockarray.array(b.T).T if b_turned else blockarray.array(b)
        found = np.asarray(x @ y)
    compare(found, a, b)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 80), st.integers(1, 80), st.integers(1, 300))
def test_odd_shapes(m: int, n: int, k: int) -> None:
    check(integers((m, k), dtypes.float16, 1), integers((k, n), dtypes.float16, 2))


def test_stacks_vectors_and_steps() -> None:
    check(integers((3, 9, 20), dtypes.float16, 1), integers((20, 12), dtypes.float16, 2))
    check(integers((50,), dtypes.float16, 1), integers((50, 7), dtypes.float16, 2))
    big = integers((40, 90), dtypes.float16, 1)
    with blockarray.device("cpu"):
        x = blockarray.array(big)[::-2, 1::3]
        found = np.asarray(x @ x.T)
    part = big[::-2, 1::3].astype(float)
    np.testing.assert_array_equal(found.astype(float), part @ part.T)


def test_halves_go_to_a_kernel_of_ours_and_the_rest_to_the_library() -> None:
    with blockarray.device("cpu"):
        half, single = (blockarray.ones((32, 32), dtype=dtype) for dtype in ("float16", "float32"))
        assert "panels tile" in str(blockarray.explain(half @ half))
        assert "NumPy's BLAS" in str(blockarray.explain(single @ single))


def test_a_product_of_bfloat16_widens_nothing_in_memory() -> None:
    with blockarray.device("cpu"):
        x = blockarray.array(integers((2, 32, 48), dtypes.bfloat16, 1))
        y = blockarray.array(integers((48, 16), dtypes.bfloat16, 2))
        explanation = blockarray.explain(x @ y)
        assert (len(explanation.kernels), explanation.temporaries) == (1, 0)
        assert (x @ y).dtype == np.float32


@pytest.mark.parametrize("feature", ["", "avx2", "avx512"])
def test_every_width_of_registers_has_a_row_that_takes_the_product(feature: str) -> None:
    wide = {"avx2": True, "f16c": True, "fma": True}
    wide |= dict.fromkeys(("avx512f", "avx512bw", "avx512dq", "avx512vl"), True) if feature == "avx512" else {}
    target = describe_host("x86_64-unknown-linux-gnu", "x86-64", wide if feature else {}, "x86_64")
    product = Product(0, 1, 2, dtypes.float16, (0, (64, 64), (64, 1)), (0, (64, 64), (64, 1)), (64, 64))
    assert schedule_of(product, target).instruction == "panels"
    (lowered,) = lower_product(product, target)
    assert len(list(dot_loops(pipeline.run(lowered.kernel, target).body))) == 1


def test_the_host_states_its_row() -> None:
    (row,) = backend("cpu").target.matmul_instructions
    assert (row.name, row.lanes) == ("panels", 1)
