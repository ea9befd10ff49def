"""Array arguments of kernels: where their elements lie, and what a kernel is compiled for."""

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from blockarray.execution.device import current_device
from blockarray.execution.memory import FULL_ALIGNMENT, buffer_of
from blockarray.ndarray import ndarray
from blockarray.reinterpretation import computed
from codegen import dtypes
from codegen.dtypes import DType
from codegen.frontend.signature import ArrayKind
from codegen.targets import backend
from codegen.targets.backend import Backend, BorrowedMemory, Memory

_ALIGNMENTS = (FULL_ALIGNMENT, 16)


_NOWHERE = BorrowedMemory(0, 0, None)


@dataclass(slots=True)
class Operand:
    """An array argument.

    Attributes
    ----------
    name : str
    array : ndarray or numpy.ndarray
        As it was passed.
    dtype : DType
    shape : tuple of int
    strides : tuple of int
        In elements; 0 along axes of length 1.
    offset_bytes : int
        Of the first element in `memory`.
    memory : Memory
    is_where_it_was : bool
        The elements were not copied.
    """

    name: str
    array: Any
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset_bytes: int
    memory: Memory
    is_where_it_was: bool = True

    def without_memory(self) -> "Operand":
        """What holds for any array that lies in the same way; its memory must not be used."""
        return Operand(self.name, None, self.dtype, self.shape, self.strides, self.offset_bytes, _NOWHERE)

    def with_memory(self, array: Any, memory: Memory) -> "Operand":
        """Another array that lies in the same way."""
        return Operand(self.name, array, self.dtype, self.shape, self.strides, self.offset_bytes, memory)

    @property
    def address(self) -> int:
        """Of the first element."""
        return self.memory.address + self.offset_bytes

    @property
    def extent_bytes(self) -> tuple[int, int]:
        """The range of memory that the elements span, from `offset_bytes` on."""
        reach = [stride * (extent - 1) for stride, extent in zip(self.strides, self.shape, strict=True)]
        if 0 in self.shape:
            return 0, 0
        low = sum(step for step in reach if step < 0)
        high = sum(step for step in reach if step > 0)
        return low * self.dtype.itemsize, (high + 1) * self.dtype.itemsize

    def kind(self, extents: tuple[str | int, ...]) -> ArrayKind:
        """What a kernel is compiled for."""
        last = len(self.shape) - 1
        known = tuple(
            stride if stride in (0, 1) or (stride == -1 and axis == last) else None
            for axis, stride in enumerate(self.strides)
        )
        itemsize = self.dtype.itemsize
        # Copies of several elements run along the axis of stride 1, forwards.
        outer = list(self.strides)
        if 1 in outer[-2:]:
            outer.remove(1)
        divisor = gcd(self.address, *(stride * itemsize for stride in outer)) if min(outer, default=0) >= 0 else 1
        alignment = next((one for one in _ALIGNMENTS if divisor % one == 0), itemsize)
        return ArrayKind(self.dtype, extents, known, max(alignment, itemsize))


def row_of(name: str, array: Any) -> DType:
    """The element type of an array argument; TypeError if it is no array, or kernels have no such elements."""
    if isinstance(array, ndarray):
        return array._row
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"{name}: expected a blockarray or NumPy array, found {type(array).__name__}; convert it by blockarray.asarray"
        )
    row = dtypes.find(array.dtype.newbyteorder("="))
    if row is None:
        raise TypeError(f"{name}: kernels have no elements of dtype {array.dtype}")
    return row


def device_of(arrays: list[Any]) -> Backend:
    """Where a kernel runs: with its arrays of ours, which must all be in one place; else on the host, where NumPy's are."""
    places = {array.device: array._cell.node.device for array in arrays if isinstance(array, ndarray)}
    if len(places) > 1:
        raise ValueError(
            f"the arrays of a kernel are on {' and '.join(sorted(places))}; expected one device: move them by to_device"
        )
    if places:
        return next(iter(places.values()))
    return backend("cpu") if arrays else current_device()


def memory_of(array: ndarray) -> Memory:
    """The memory of an array that has been evaluated."""
    buffer = computed(array._cell).buffer
    assert buffer is not None
    return buffer.memory


def operand_of(name: str, array: Any, device: Backend, is_written: bool) -> Operand:
    """Where an argument's elements lie on `device`; what NumPy holds is shared on the host and copied elsewhere."""
    dtype = row_of(name, array)
    if isinstance(array, ndarray):
        strides = array._view[1] if array._view is not None else _row_major(array.shape)
        offset = array._view[0] if array._view is not None else 0
        steps = _without_unit_axes(array.shape, strides)
        return Operand(name, array, dtype, array.shape, steps, offset * dtype.itemsize, memory_of(array))
    on_host = device.target.kind == "cpu"
    if is_written and not (on_host and _is_plain(array)):
        where = (
            f"the kernel runs on {device.device}"
            if not on_host
            else "its elements are not aligned or not in native order"
        )
        raise TypeError(f"{name}: a NumPy array is written where it lies, but {where}; pass a blockarray array")
    is_copied = not (on_host and _is_plain(array))
    if is_copied:
        array = np.ascontiguousarray(array.astype(dtype.numpy))
    if not on_host:
        copied = buffer_of(array, dtype, device)
        steps = _without_unit_axes(array.shape, _row_major(array.shape))
        return Operand(name, array, dtype, array.shape, steps, 0, copied.memory, is_where_it_was=False)
    strides = tuple(stride // dtype.itemsize for stride in array.strides)
    steps = _without_unit_axes(array.shape, strides)
    return Operand(name, array, dtype, array.shape, steps, 0, borrowed(array), is_where_it_was=not is_copied)


def borrowed(array: np.ndarray) -> Memory:
    """The memory of a NumPy array, from its first element on."""
    return BorrowedMemory(array.__array_interface__["data"][0], array.nbytes, array)


def _is_plain(array: np.ndarray) -> bool:
    is_whole = all(stride % array.itemsize == 0 for stride in array.strides)
    return array.dtype.isnative and array.flags.aligned and is_whole


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _without_unit_axes(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True))


def check_output(operand: Operand) -> None:
    """Refuse an output that cannot be written: ValueError."""
    array = operand.array
    is_writeable = array._writeable if isinstance(array, ndarray) else array.flags.writeable
    if not is_writeable:
        raise ValueError(f"{operand.name}: the kernel writes it, but the array is read-only")
    if any(extent > 1 and stride == 0 for extent, stride in zip(operand.shape, operand.strides, strict=True)):
        raise ValueError(
            f"{operand.name}: the kernel writes it, but elements of a broadcast array share memory; pass a copy"
        )


def overlap(a: Operand, b: Operand) -> bool:
    """Whether the memory that two operands span overlaps."""
    (low_a, high_a), (low_b, high_b) = a.extent_bytes, b.extent_bytes
    return a.address + low_a < b.address + high_b and b.address + low_b < a.address + high_a
