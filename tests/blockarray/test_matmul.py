"""Matrix products in block IR, run as PTX, against NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from plans import Values, run_lowered_as_ptx

from blockarray.fusion.plan import Product
from blockarray.kernels.matmul import lower_product
from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.printer import print_kernel
from codegen.targets.nvptx.description import nvptx_target

GPU = nvptx_target("sm_90a")
DTYPES = (
    dtypes.float32,
    dtypes.float64,
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.int8,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint16,
    dtypes.boolean,
)


def multiply(product: Product, a: np.ndarray, b: np.ndarray, cores: int = 1) -> np.ndarray:
    """The product's result, flat."""
    target = np.zeros(int(np.prod(product.shape)), product.dtype.numpy)
    memory: Values = {0: a.reshape(-1), 1: b.reshape(-1), 2: target}
    for lowered in lower_product(product, replace(GPU, cores=cores)):
        memory = run_lowered_as_ptx(lowered.kernel, lowered.arguments, lowered.programs, memory, GPU)
    return memory[2].reshape(product.shape)


def programs_on(product: Product, cores: int) -> int:
    """Programs of a product with one kernel."""
    (lowered,) = lower_product(product, replace(GPU, cores=cores))
    return lowered.programs


def draw(shape: tuple[int, ...], dtype: DType, seed: int) -> np.ndarray:
    low = 0 if dtype.kind in ("unsigned", "boolean") else -3
    high = 2 if dtype is dtypes.boolean else 4
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype.numpy)


def expected(a: np.ndarray, b: np.ndarray, dtype: DType) -> np.ndarray:
    if dtype.kind == "float":
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype.numpy)
    return a @ b


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_products_of_odd_matrices(dtype: DType) -> None:
    m, k, n = 19, 37, 21
    a, b = draw((m, k), dtype, 1), draw((k, n), dtype, 2)
    product = Product(0, 1, 2, dtype, (0, (m, k), (k, 1)), (0, (k, n), (n, 1)), (m, n))
    np.testing.assert_array_equal(multiply(product, a, b), expected(a, b, dtype))


def test_transposed_operands_and_offsets() -> None:
    a, b = draw((40, 70), dtypes.float32, 1), draw((9, 41), dtypes.float32, 2)
    product = Product(0, 1, 2, dtypes.float32, (3, (66, 40), (1, 70)), (1, (40, 9), (1, 41)), (66, 9))
    np.testing.assert_array_equal(multiply(product, a, b), a[:, 3:69].T @ b[:, 1:].T)


def test_batches_with_a_repeated_operand() -> None:
    a, b = draw((3, 8, 12), dtypes.float32, 1), draw((12, 16), dtypes.float32, 2)
    product = Product(0, 1, 2, dtypes.float32, (0, (3, 8, 12), (96, 12, 1)), (0, (3, 12, 16), (0, 16, 1)), (3, 8, 16))
    np.testing.assert_array_equal(multiply(product, a, b), a @ b)


def test_vectors_are_matrices_with_one_row_or_column() -> None:
    a, b = draw((1, 50), dtypes.float32, 1), draw((50, 1), dtypes.float32, 2)
    product = Product(0, 1, 2, dtypes.float32, (0, (1, 50), (50, 1)), (0, (50, 1), (1, 1)), (1, 1))
    np.testing.assert_array_equal(multiply(product, a, b), a @ b)


def test_nothing_to_sum_gives_zeros() -> None:
    product = Product(0, 1, 2, dtypes.float32, (0, (2, 0), (0, 1)), (0, (0, 3), (3, 1)), (2, 3))
    target = multiply(product, np.ones(1, np.float32), np.ones(1, np.float32))
    assert not target.any()


def test_large_tiles() -> None:
    a, b = draw((130, 33), dtypes.float32, 1), draw((33, 129), dtypes.float32, 2)
    product = Product(0, 1, 2, dtypes.float32, (0, (130, 33), (33, 1)), (0, (33, 129), (129, 1)), (130, 129))
    assert programs_on(product, 1) == 4
    assert programs_on(product, 132) == 9
    np.testing.assert_array_equal(multiply(product, a, b), a @ b)


def test_other_extents_of_a_class_share_the_kernel() -> None:
    first = Product(0, 1, 2, dtypes.float32, (0, (130, 33), (33, 1)), (0, (33, 129), (129, 1)), (130, 129))
    second = replace(first, a_view=(0, (150, 35), (35, 1)), b_view=(0, (35, 131), (131, 1)), shape=(150, 131))
    assert print_kernel(lower_product(first, GPU)[0].kernel) == print_kernel(lower_product(second, GPU)[0].kernel)
