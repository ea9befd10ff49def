"""Buffers: the values of evaluated nodes, in a device's memory."""

import weakref
from typing import Final

import numpy as np

from blockarray.graph.nodes import Node, Shape, View, Window, token
from codegen.dtypes import DType
from codegen.targets.backend import Backend, Memory

# A pointer aligned to less than this gets a plan of its own, since kernels are compiled for the alignment of their buffers.
FULL_ALIGNMENT: Final = 64

# Places of windows that were let go are forgotten when there are this many.
_KEPT_WINDOWS: Final = 64


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
    windows : dict or None
        Windows into the memory that may still be read, by first element, length and dtype.
    shared : bool
        Whether something outside the library can see the memory (then it is never written in place by an update of another array).
    elements : numpy.ndarray or None
        On the host, once an element was looked at: the memory as a row of elements.
    """

    __slots__ = ("memory", "address", "token", "shared", "windows", "elements")

    def __init__(self, memory: Memory, token: int, shared: bool = False) -> None:
        self.memory = memory
        self.address = memory.address
        self.token = token
        self.shared = shared
        self.windows: dict[tuple[int, int, DType], weakref.ref[Window]] | None = None
        self.elements: np.ndarray | None = None

    @property
    def is_watched(self) -> bool:
        """Whether a window into the memory may still be read."""
        return self.windows is not None and any(known() is not None for known in self.windows.values())


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


def host_elements(buffer: Buffer, dtype: DType) -> np.ndarray:
    """The memory of a buffer on the host as a row of elements, which may go on beyond the last; the same one every time."""
    elements = buffer.elements
    if elements is None:
        array: np.ndarray = buffer.memory.array  # type: ignore[attr-defined]  # host memories have it
        elements = array[: len(array) // dtype.itemsize * dtype.itemsize].view(dtype.numpy)
        buffer.elements = elements
    return elements


def host_copy(buffer: Buffer, dtype: DType, shape: Shape, device: Backend) -> np.ndarray:
    """The buffer's value as a new NumPy array."""
    if device.target.kind == "cpu":
        return host_view(buffer, dtype, shape).copy()
    array = np.empty(shape, dtype.numpy)
    if array.size:
        device.to_host(buffer.memory, 0, array)
    return array


def window_range(offset: int, shape: Shape, strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """First element and length of the aligned range that a view of one element or more lies in."""
    first = last = offset
    for extent, stride in zip(shape, strides, strict=True):
        if stride < 0:
            first += (extent - 1) * stride
        else:
            last += (extent - 1) * stride
    first -= first % (FULL_ALIGNMENT // itemsize)
    return first, last + 1 - first


def window_of(base: Node, first: int, extent: int, dtype: DType | None = None) -> Window:
    """The window of `extent` elements from element `first` of an evaluated node's memory on, counted in elements of `dtype` (the node's own
    if absent); the same one as long as it is alive."""
    buffer = base.buffer
    assert buffer is not None
    if buffer.windows is None:
        buffer.windows = {}
    row = base.dtype if dtype is None else dtype
    known = buffer.windows.get((first, extent, row))
    window = known() if known is not None else None
    if window is None:
        device = base.device
        memory = device.borrow(buffer.address + first * row.itemsize, extent * row.itemsize, buffer.memory)
        aligned = buffer.address % FULL_ALIGNMENT == 0
        inside = Buffer(memory, buffer_token(row, (extent,), device, aligned))
        window = Window(extent, row, device, inside)
        if len(buffer.windows) >= _KEPT_WINDOWS:
            buffer.windows = {place: known for place, known in buffer.windows.items() if known() is not None}
        buffer.windows[(first, extent, row)] = weakref.ref(window)
    return window


def view_node(base: Node, offset: int, shape: Shape, strides: tuple[int, ...]) -> View:
    """A view of `base` for reading, through a window if `base` is evaluated and the view does not span all of it."""
    if base.buffer is None or 0 in shape:
        return View(base, offset, shape, strides)
    first, extent = window_range(offset, shape, strides, base.dtype.itemsize)
    if first == 0 and extent == base.size:
        return View(base, offset, shape, strides)
    return View(window_of(base, first, extent), offset - first, shape, strides)


def through_windows(views: list[View]) -> bool:
    """Let views of arrays that were evaluated since they were recorded read through windows; whether any could."""
    changed = False
    for view in views:
        found = view_node(view.inputs[0], view.offset, view.shape, view.strides)
        if type(found.inputs[0]) is Window:
            view.inputs, view.offset, view.token = found.inputs, found.offset, found.token
            changed = True
    return changed
