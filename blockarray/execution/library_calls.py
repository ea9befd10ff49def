"""What a well-kept library does better than a kernel of ours: products on the host of what NumPy's BLAS has go there."""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from blockarray.fusion.plan import Product
from blockarray.fusion.products import schedule_of
from blockarray.kernels.matmul import DeviceProduct
from codegen.dtypes import DType
from codegen.targets.backend import Backend, Memory


class ProductCall:
    """A matrix product on the host, with both operands and the target as views of buffers."""

    __slots__ = ("product", "constants")

    def __init__(self, product: Product) -> None:
        self.product = product
        self.constants = ()

    def run(self, memories: Sequence[Memory]) -> None:
        """Compute the product; `memories` are the values of the plan."""
        step = self.product
        a = _strided(memories[step.a], step.dtype, step.a_view)
        b = _strided(memories[step.b], step.dtype, step.b_view)
        target = _whole(memories[step.target], step.dtype, step.shape)
        np.matmul(a, b, out=target)


def _strided(memory: Memory, dtype: DType, view: tuple[int, tuple[int, ...], tuple[int, ...]]) -> np.ndarray:
    offset, shape, strides = view
    raw: np.ndarray = memory.array  # type: ignore[attr-defined]  # host memories have it
    flat = raw[: len(raw) // dtype.itemsize * dtype.itemsize].view(dtype.numpy)[offset:]
    return as_strided(flat, shape, [stride * dtype.itemsize for stride in strides])


def _whole(memory: Memory, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    raw: np.ndarray = memory.array  # type: ignore[attr-defined]  # host memories have it
    return raw[: int(np.prod(shape)) * dtype.itemsize].view(dtype.numpy).reshape(shape)


def bind_product(product: Product, device: Backend) -> ProductCall | DeviceProduct:
    """The product as a step that can be run on `device`."""
    schedule = schedule_of(product, device.target)
    if device.target.lanes == 1 and not schedule.instruction:
        return ProductCall(product)
    return DeviceProduct(product, device, schedule)
