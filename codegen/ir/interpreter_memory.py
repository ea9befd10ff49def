"""Memory of interpreted kernels: strided buffers that know who wrote and who read each element."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from codegen.errors import CodegenError
from codegen.ir.location import Location

Array = np.ndarray
Key = tuple[slice, ...] | tuple[Array, ...]

_NOBODY = -1
_SEVERAL = -2


class InterpretationError(CodegenError):
    """A kernel, or the arguments it is run on, do something that has no meaning."""


@dataclass(frozen=True)
class Access:
    """Who touches memory.

    Attributes
    ----------
    program : int
        Linear program number.
    operation : str
        Text of the operation, for messages.
    location : Location or None
        Where it was written.
    """

    program: int
    operation: str
    location: Location | None = None

    def error(self, problem: str) -> InterpretationError:
        """The exception for a problem with this access."""
        place = f" – {self.location}" if self.location else ""
        return InterpretationError(f"program {self.program}, `{self.operation}`{place}: {problem}")


class InterpretedBuffer:
    """A buffer: the array, and what has been done to its elements.

    Parameters
    ----------
    name : str
    array : numpy.ndarray
        The elements; written in place.
    writers, readers : numpy.ndarray, optional
        Program that wrote or read each element, of the array's shape, laid over memory as the array is. Without them
        nothing that programs do to one another is noticed.
    filled : numpy.ndarray, optional
        Whether each element has been written; given for memory that starts uninitialised.
    """

    def __init__(
        self,
        name: str,
        array: Array,
        writers: Array | None = None,
        readers: Array | None = None,
        filled: Array | None = None,
    ) -> None:
        self.name = name
        self.array = array
        self._writers = writers
        self._readers = readers
        self._filled = filled

    def read_window(
        self, offsets: Sequence[int], shape: tuple[int, ...], checked: tuple[bool, ...], fill: Array, access: Access
    ) -> Array:
        """Elements of a window, `fill` outside of the buffer."""
        inside, place = self._window(offsets, shape, checked, access)
        result = np.full(shape, fill, self.array.dtype)
        self._note_read(inside, access)
        result[place] = self.array[inside]
        return result

    def write_window(self, offsets: Sequence[int], value: Array, checked: tuple[bool, ...], access: Access) -> None:
        """Write a window, except outside of the buffer."""
        inside, place = self._window(offsets, value.shape, checked, access)
        part = value[place]
        for axis, stride in enumerate(self.array.strides):
            if stride == 0 and part.shape[axis] > 1 and part.size:
                raise access.error(f"writes one element of {self.name} more than once: axis {axis} has stride 0")
        self._note_write(inside, access)
        self.array[inside] = part

    def read_at(self, indices: tuple[Array, ...], checked: bool, fill: Array, access: Access) -> Array:
        """Elements at positions, `fill` outside of the buffer."""
        inside = self._inside(indices)
        if not checked and not inside.all():
            raise access.error(f"an unchecked position is outside of {self.name} with extents {self.array.shape}")
        result = np.full(inside.shape, fill, self.array.dtype)
        key = tuple(index[inside] for index in indices)
        self._note_read(key, access)
        result[inside] = self.array[key]
        return result

    def write_at(self, indices: tuple[Array, ...], value: Array, access: Access) -> None:
        """Write elements at positions, except outside of the buffer."""
        inside = self._inside(indices)
        key = tuple(index[inside] for index in indices)
        # Axes of stride 0 lead to one element whatever the index is.
        distinct = [index for index, stride in zip(key, self.array.strides, strict=True) if stride]
        count = len(key[0])
        if count > 1 and (not distinct or len(np.unique(np.stack(distinct), axis=1).T) != count):
            raise access.error(f"writes one element of {self.name} more than once")
        self._note_write(key, access)
        self.array[key] = value[inside]

    def _window(
        self, offsets: Sequence[int], shape: tuple[int, ...], checked: tuple[bool, ...], access: Access
    ) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The part of the buffer that a window meets, and where it lies in the window."""
        inside, place = [], []
        for axis, (offset, length, extent) in enumerate(zip(offsets, shape, self.array.shape, strict=True)):
            if not checked[axis] and not 0 <= offset <= extent - length:
                raise access.error(
                    f"axis {axis} is unchecked, but elements {offset} to {offset + length} are not all "
                    f"inside {self.name} with extents {self.array.shape}"
                )
            low = min(max(offset, 0), extent)
            high = max(min(offset + length, extent), low)
            inside.append(slice(low, high))
            place.append(slice(low - offset, high - offset) if high > low else slice(0, 0))
        return tuple(inside), tuple(place)

    def _inside(self, indices: tuple[Array, ...]) -> Array:
        result = np.ones(indices[0].shape, np.bool_)
        for index, extent in zip(indices, self.array.shape, strict=True):
            result &= (index >= 0) & (index < extent)
        return result

    def _note_read(self, key: Key, access: Access) -> None:
        if self._filled is not None and not np.all(self._filled[key]):
            raise access.error(f"reads elements of {self.name} that were never written")
        if self._writers is None or self._readers is None:
            return
        self._refuse_others(self._writers[key], access, "reads an element of {} that program {} writes")
        before = self._readers[key]
        mine = (before == _NOBODY) | (before == access.program)
        self._readers[key] = np.where(mine, access.program, _SEVERAL)

    def _note_write(self, key: Key, access: Access) -> None:
        if self._filled is not None:
            self._filled[key] = True
        if self._writers is None or self._readers is None:
            return
        self._refuse_others(self._writers[key], access, "writes an element of {} that program {} writes too")
        self._refuse_others(self._readers[key], access, "writes an element of {} that program {} reads")
        self._writers[key] = access.program

    def _refuse_others(self, programs: Array, access: Access, problem: str) -> None:
        others = programs[(programs != _NOBODY) & (programs != access.program)]
        if others.size:
            other = int(others.flat[0])
            raise access.error(problem.format(self.name, "another one" if other == _SEVERAL else other))


def private_memory(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> InterpretedBuffer:
    """Uninitialised memory of one program."""
    return InterpretedBuffer(name, np.zeros(shape, dtype), filled=np.zeros(shape, np.bool_))


def shared_memory(arrays: dict[str, Array], written: set[str]) -> dict[str, InterpretedBuffer]:
    """Buffers over a kernel's arrays; those that overlap in memory share what is known of their elements."""
    ranges = {name: byte_bounds(array) if array.size else (0, 0) for name, array in arrays.items()}
    result: dict[str, InterpretedBuffer] = {}
    for group in _overlapping(ranges):
        low = min(ranges[name][0] for name in group)
        high = max(ranges[name][1] for name in group)
        if not written.intersection(group) or low == high:
            result |= {name: InterpretedBuffer(name, arrays[name]) for name in group}
            continue
        writers = np.full(high - low, _NOBODY, np.int32)
        readers = np.full(high - low, _NOBODY, np.int32)
        for name in group:
            array = arrays[name]
            result[name] = InterpretedBuffer(
                name, array, _laid_over(writers, array, low), _laid_over(readers, array, low)
            )
    return {name: result[name] for name in arrays}


def _overlapping(ranges: dict[str, tuple[int, int]]) -> list[list[str]]:
    """Names in groups whose byte ranges hang together."""
    groups: list[list[str]] = []
    end = -1
    for name in sorted(ranges, key=lambda key: ranges[key]):
        low, high = ranges[name]
        if groups and low < end:
            groups[-1].append(name)
        else:
            groups.append([name])
        end = max(end, high)
    return groups


def _laid_over(bytes_: Array, array: Array, low: int) -> Array:
    """A view with one entry for each element of `array`: that of its first byte."""
    start = array.__array_interface__["data"][0] - low
    strides = tuple(stride * bytes_.itemsize for stride in array.strides)
    if not array.size:
        return np.full(array.shape, _NOBODY, bytes_.dtype)
    return as_strided(bytes_[start:], array.shape, strides)
