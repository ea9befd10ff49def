"""Matrix products on a GPU against float64: every schedule, layout and edge that the machine for PTX cannot run."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import blockarray
from blockarray.fusion.plan import Product
from blockarray.fusion.products import View
from blockarray.kernels.matmul import DeviceProduct
from codegen import dtypes
from codegen.dtypes import DType
from codegen.schedules.matmul import MatmulSchedule
from codegen.targets.backend import Backend

pytestmark = pytest.mark.gpu

# Rounding to the result's dtype alone gives about 2e-4 and 1.7e-3.
LARGEST_ERROR = {"float16": 5e-4, "bfloat16": 4e-3}

SCHEDULES = [
    *(MatmulSchedule("wgmma", 128, n, 64) for n in (64, 128, 256)),
    MatmulSchedule("wgmma", 128, 128, 64, swapped=True),
    MatmulSchedule("wgmma", 128, 64, 64, parts=2),
    MatmulSchedule("wgmma", 128, 128, 64, together=2),
    MatmulSchedule("wgmma", 128, 256, 64, together=2),
    MatmulSchedule("wgmma", 128, 64, 64, sharers=2),
    MatmulSchedule("wgmma", 128, 64, 64, sharers=4, swapped=True),
    MatmulSchedule("mma", 128, 128, 32),
    MatmulSchedule("mma", 64, 16, 32, parts=2),
]


def stored(shape: tuple[int, ...], turned: bool, dtype: DType, seed: int) -> np.ndarray:
    """Random numbers, the last two axes in one order or the other."""
    (*batch, rows, columns) = shape
    lying = (*batch, columns, rows) if turned else shape
    values = np.random.default_rng(seed).standard_normal(lying).astype(np.float32).astype(dtype.numpy)
    return values.swapaxes(-1, -2) if turned else values


def view_of(array: np.ndarray) -> View:
    return 0, array.shape, tuple(stride // array.itemsize for stride in array.strides)


def check(gpu: Backend, a: np.ndarray, b: np.ndarray, schedule: MatmulSchedule | None = None) -> None:
    """Multiply on the GPU, into memory full of NaN, and compare."""
    dtype = dtypes.of(a.dtype)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    result = np.full(expected.shape, np.nan, dtype.numpy)
    memories = []
    for array in (a, b, result):
        flat = array if array.flags.c_contiguous else array.swapaxes(-1, -2)
        memory = gpu.allocate(array.nbytes)
        gpu.from_host(np.ascontiguousarray(flat), memory, 0)
        memories.append(memory)
    product = Product(0, 1, 2, dtype, view_of(a), view_of(b), expected.shape)
    DeviceProduct(product, gpu, schedule).run(memories)
    gpu.to_host(memories[2], 0, result)
    error = np.linalg.norm(result.astype(np.float64) - expected) / np.linalg.norm(expected)
    assert error < LARGEST_ERROR[dtype.name], f"{a.shape} @ {b.shape}: {error}"


def orders(m: int, n: int, k: int, dtype: DType = dtypes.float16) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for a_turned, b_turned in itertools.product((False, True), (False, True)):
        yield stored((m, k), a_turned, dtype, 1), stored((k, n), b_turned, dtype, 2)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_schedules(gpu: Backend, schedule: MatmulSchedule) -> None:
    if schedule.instruction not in [row.name for row in gpu.target.matmul_instructions]:
        pytest.skip(f"this GPU has no {schedule.instruction}")
    for m, n, k in ((512, 512, 512), (304, 520, 328)):
        for a, b in orders(m, n, k):
            check(gpu, a, b, schedule)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 1, 1), (1, 512, 1024), (512, 1, 64), (16, 1024, 2048), (511, 513, 515), (33, 65, 2050), (1000, 1000, 1000)],
)
def test_chosen_schedules(gpu: Backend, m: int, n: int, k: int, dtype: DType) -> None:
    for a, b in orders(m, n, k, dtype):
        check(gpu, a, b)


def test_stacks(gpu: Backend) -> None:
    check(gpu, stored((5, 304, 256), False, dtypes.float16, 1), stored((5, 256, 272), True, dtypes.float16, 2))
    check(gpu, stored((2, 3, 72, 64), True, dtypes.float16, 1), stored((2, 3, 64, 40), False, dtypes.float16, 2))


def test_the_same_product_gives_the_same_bits(gpu: Backend) -> None:
    a, b = (stored((1024, 1024), False, dtypes.float16, seed) for seed in (1, 2))
    with blockarray.device("cuda:0"):
        x, y = blockarray.array(a), blockarray.array(b)
        results = [np.asarray(x @ y) for _ in range(20)]
    assert all(np.array_equal(results[0], one) for one in results[1:])
