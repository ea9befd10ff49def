"""Buffers: the values of evaluated nodes, in a device's memory."""

from typing import Final

import numpy as np

from blockarray.graph.nodes import Shape, token
from codegen.dtypes import DType
from codegen.targets.backend import Backend, Memory

# A pointer aligned to less than this gets a plan of its own, since kernels are compiled for the alignment of their buffers.
FULL_ALIGNMENT: Final = 64


class ExternalMemory(Memory):
    """Memory that a NumPy array owns and that is shared with it."""

    __slots__ = ("array",)

    array: np.ndarray

    def __init__(self, array: np.ndarray) -> None:
        self.array = array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
        self.address = array.ctypes.data
        self.nbytes = array.nbytes


class Buffer:
    """A row-major array in a device's memory, starting at the memory's first byte.

    Attributes
    ----------
    memory : Memory
    address : int
        Of the first element.
    token : int
        What a plan must know of it: dtype, shape, alignment, device.
    shared : bool
        Whether something outside the library can see the memory (then it is never written in place by an update of another array).
    """

    __slots__ = ("memory", "address", "token", "shared")

    def __init__(self, memory: Memory, token: int, shared: bool = False) -> None:
        self.memory = memory
        self.address = memory.address
        self.token = token
        self.shared = shared


def buffer_token(dtype: DType, shape: Shape, device: Backend, aligned: bool = True) -> int:
    """The token of buffers of this kind; every plan that reads one may rely on all that it says."""
    return token(("buffer", dtype, shape, device.device, aligned))


def new_buffer(dtype: DType, shape: Shape, device: Backend) -> Buffer:
    """An uninitialised buffer."""
    elements = 1
    for extent in shape:
        elements *= extent
    return Buffer(device.allocate(max(elements * dtype.itemsize, 1)), buffer_token(dtype, shape, device))


def buffer_of(array: np.ndarray, dtype: DType, device: Backend) -> Buffer:
    """A buffer with a copy of `array`, which has `dtype`'s elements in any layout."""
    buffer = new_buffer(dtype, array.shape, device)
    if array.size:
        device.from_host(np.ascontiguousarray(array), buffer.memory, 0)
    return buffer


def shared_buffer(array: np.ndarray, dtype: DType, device: Backend) -> Buffer:
    """A buffer over the memory of a C-contiguous host array."""
    aligned = array.ctypes.data % FULL_ALIGNMENT == 0
    return Buffer(ExternalMemory(array), buffer_token(dtype, array.shape, device, aligned), shared=True)


def host_view(buffer: Buffer, dtype: DType, shape: Shape) -> np.ndarray:
    """The buffer of a host device as a NumPy array over the same memory."""
    elements = 1
    for extent in shape:
        elements *= extent
    array: np.ndarray = buffer.memory.array  # type: ignore[attr-defined]  # host memories have it
    return array[: elements * dtype.itemsize].view(dtype.numpy).reshape(shape)


def host_copy(buffer: Buffer, dtype: DType, shape: Shape, device: Backend) -> np.ndarray:
    """The buffer's value as a new NumPy array."""
    if device.target.kind == "cpu":
        return host_view(buffer, dtype, shape).copy()
    array = np.empty(shape, dtype.numpy)
    if array.size:
        device.to_host(buffer.memory, 0, array)
    return array
