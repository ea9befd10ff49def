"""Arrays of equal values and many layouts: strided, reversed, transposed, broadcast.

A view is described by the steps that lead to it from a whole row of elements. The steps are ordinary indexing and
reshaping, so they can be taken in any array library: that is how an array drawn for NumPy becomes one of
``blockarray`` with the very same layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

import numpy

import blockarray

# Elements before and between those of a view have this value, so that a write that strays there can be seen.
_FILLER = 1

# An offset beyond this many elements has lost its interest: alignment repeats, and a view deep in a large array would
# be copied whole.
_MAXIMUM_OFFSET = 64


class ArrayNamespace(Protocol):
    """What is needed of an array library beside its arrays: ``asarray`` and ``broadcast_to``, as NumPy's."""

    @property
    def asarray(self) -> Callable[..., object]:
        """Make an array of this library from one of NumPy's."""

    @property
    def broadcast_to(self) -> Callable[..., object]:
        """Show an array in a larger shape."""


class _Array(Protocol):
    def __getitem__(self, index: object, /) -> _Array: ...
    def reshape(self, shape: tuple[int, ...], /) -> _Array: ...
    def transpose(self, axes: tuple[int, ...], /) -> _Array: ...


@dataclass(frozen=True)
class Layout:
    """The steps from a row of elements to a view of it, in the order in which they are taken.

    Attributes
    ----------
    offset : int
        How many elements are left out at the beginning.
    base_shape : tuple of int
        The shape that the rest is given.
    index : tuple of slice
        What of it is taken, an entry an axis.
    axes : tuple of int
        How the axes are then permuted.
    new_axes : tuple of int
        Which axes of the result are new ones of one element.
    shape : tuple of int or None
        What the result is then broadcast to.
    """

    offset: int
    base_shape: tuple[int, ...]
    index: tuple[slice, ...]
    axes: tuple[int, ...]
    new_axes: tuple[int, ...] = ()
    shape: tuple[int, ...] | None = None

    @property
    def base_size(self) -> int:
        """How many elements the row has."""
        return self.offset + math.prod(self.base_shape)

    def view(self, row: object, namespace: ArrayNamespace) -> object:
        """The view of ``row``, an array of ``namespace`` with one axis of `base_size` elements."""
        result = cast(_Array, row)
        if self.offset:
            result = result[self.offset :]
        result = result.reshape(self.base_shape)
        if any(item != slice(None) for item in self.index):
            result = result[self.index]
        if self.axes != tuple(range(len(self.axes))):
            result = result.transpose(self.axes)
        if self.new_axes:
            rank = len(self.axes) + len(self.new_axes)
            result = result[tuple(None if axis in self.new_axes else slice(None) for axis in range(rank))]
        return result if self.shape is None else namespace.broadcast_to(result, self.shape)

    def __str__(self) -> str:
        """The steps as Python, after the expression ``row``."""
        text = "row"
        if self.offset:
            text += f"[{self.offset}:]"
        text += f".reshape({self.base_shape})"
        if any(item != slice(None) for item in self.index):
            text += f"[{', '.join(map(_slice_text, self.index))}]"
        if self.axes != tuple(range(len(self.axes))):
            text += f".transpose({self.axes})"
        if self.new_axes:
            rank = len(self.axes) + len(self.new_axes)
            text += f"[{', '.join('None' if axis in self.new_axes else ':' for axis in range(rank))}]"
        return text if self.shape is None else f"broadcast_to({text}, {self.shape})"


def _slice_text(item: slice) -> str:
    start, stop = ("" if part is None else str(part) for part in (item.start, item.stop))
    return f"{start}:{stop}" + ("" if item.step in (None, 1) else f":{item.step}")


def layout_of(array: numpy.ndarray) -> Layout | None:
    """The layout of ``array``; None if no such steps lead to it, as when it repeats elements in overlapping windows."""
    offset = _offset_in_owner(array)
    if array.flags.c_contiguous or array.size == 0:
        index = (slice(None),) * array.ndim
        return Layout(offset, array.shape, index, tuple(range(array.ndim)))
    if any(stride % array.itemsize for stride in array.strides):
        return None
    strides = [stride // array.itemsize for stride in array.strides]
    # Axes of one element, and axes that repeat one, take no part in the walk through memory: they are put in
    # afterwards.
    new_axes = tuple(axis for axis in range(array.ndim) if array.shape[axis] == 1 or strides[axis] == 0)
    walk = sorted((axis for axis in range(array.ndim) if axis not in new_axes), key=lambda axis: -abs(strides[axis]))
    steps = [abs(strides[axis]) for axis in walk]
    extents = _extents(steps, [array.shape[axis] for axis in walk])
    if extents is None:
        return None
    index = tuple(
        _slice(array.shape[axis], steps[-1] if axis == walk[-1] else 1, extent, strides[axis] < 0)
        for axis, extent in zip(walk, extents, strict=True)
    )
    kept = sorted(walk)
    repeated = any(array.shape[axis] > 1 for axis in new_axes)
    return Layout(
        offset, extents, index, tuple(walk.index(axis) for axis in kept), new_axes, array.shape if repeated else None
    )


def _extents(steps: list[int], counts: list[int]) -> tuple[int, ...] | None:
    """Shape of the contiguous array in which axes of these steps (largest first) are rows; None if they do not nest."""
    if not steps:
        return ()
    innermost = (counts[-1] - 1) * steps[-1] + 1
    if len(steps) == 1:
        return (innermost,)
    if steps[-2] < innermost:
        return None
    extents = [steps[-2]]  # only the innermost axis is walked in steps: what it steps over is an extent for the next
    for axis in range(len(steps) - 2, 0, -1):
        extent, rest = divmod(steps[axis - 1], steps[axis])
        if rest or extent < counts[axis]:
            return None
        extents.insert(0, extent)
    return (counts[0], *extents)


def _slice(count: int, step: int, extent: int, backwards: bool) -> slice:
    if backwards:
        return slice((count - 1) * step, None, -step)
    last = (count - 1) * step + 1
    return slice(None, None if last == extent else last, None if step == 1 else step)


def _offset_in_owner(array: numpy.ndarray) -> int:
    owner = array
    while isinstance(owner.base, numpy.ndarray):
        owner = owner.base
    lowest = array.__array_interface__["data"][0] + sum(
        (extent - 1) * stride
        for extent, stride in zip(array.shape, array.strides, strict=True)
        if extent and stride < 0
    )
    offset, rest = divmod(lowest - owner.__array_interface__["data"][0], max(array.itemsize, 1))
    return offset if not rest and 0 <= offset <= _MAXIMUM_OFFSET and array.size else 0


def copy_with_layout(array: numpy.ndarray, namespace: ArrayNamespace) -> tuple[object, object]:
    """A copy of ``array`` in ``namespace``, with its layout.

    Returns
    -------
    copy : array of ``namespace``
        C-contiguous if `layout_of` knows no layout.
    row : array of ``namespace``
        The whole row of elements that ``copy`` is a view of: what a stray write would change.
    """
    layout = layout_of(array)
    if layout is None:
        layout = Layout(0, array.shape, (slice(None),) * array.ndim, tuple(range(array.ndim)))
    values = numpy.full(layout.base_size, _FILLER, array.dtype)
    view = cast(numpy.ndarray, layout.view(values, numpy))
    if layout.shape is None:
        view[...] = array
    else:  # a broadcast view cannot be written: write what it repeats
        narrow = Layout(layout.offset, layout.base_shape, layout.index, layout.axes, layout.new_axes)
        once = tuple(slice(0, 1) if axis in layout.new_axes else slice(None) for axis in range(array.ndim))
        cast(numpy.ndarray, narrow.view(values, numpy))[...] = array[once]
    row = values if namespace is numpy else namespace.asarray(values)
    return layout.view(row, namespace), row


def as_blockarray(array: numpy.ndarray) -> object:
    """Copy an array of NumPy into one of ``blockarray`` that has the same strides.

    ``blockarray.asarray`` gives a contiguous copy; this gives the same kind of view: reversed, strided, transposed,
    broadcast, or at the same offset in a longer row.

    Parameters
    ----------
    array : numpy.ndarray
        Its layout must come about by slicing, reversing, transposing and broadcasting; overlapping windows become a
        contiguous copy.

    Returns
    -------
    blockarray.ndarray

    Examples
    --------
    >>> import numpy
    >>> as_blockarray(numpy.arange(6).reshape(2, 3)[:, ::-1]).tolist()
    [[2, 1, 0], [5, 4, 3]]
    """
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"as_blockarray: expected a numpy.ndarray, found {type(array).__name__}")
    return copy_with_layout(array, blockarray)[0]
