"""How an array lies in its memory: flags, views of other dtypes and strides, `ndarray` itself, and what shares memory."""

import builtins
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockarray.creation import array, empty
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Shape
from blockarray.manipulation import as_array, axis_number, reshape
from blockarray.ndarray import (
    Scalar,
    borrowed_value,
    element_offset,
    element_strides,
    from_numpy,
    make_view,
    ndarray,
    view_of,
)
from codegen import dtypes
from codegen.dtypes import DType


class Flags:
    """Memory layout of an array, as NumPy's flags."""

    def __init__(self, array: ndarray) -> None:
        self._array = array

    @property
    def _shadow(self) -> np.ndarray:
        # NumPy itself reads the flags off strides: of an array over one element, which is never looked at.
        array = self._array
        return np.lib.stride_tricks.as_strided(np.empty(1, array.dtype), array.shape, array.strides)

    @property
    def c_contiguous(self) -> bool:
        """Row-major without gaps."""
        return self._shadow.flags.c_contiguous

    @property
    def f_contiguous(self) -> bool:
        """Column-major without gaps."""
        return self._shadow.flags.f_contiguous

    contiguous = c_contiguous

    @property
    def forc(self) -> bool:
        """Row-major or column-major without gaps."""
        return self.c_contiguous or self.f_contiguous

    @property
    def fnc(self) -> bool:
        """Column-major and not row-major."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def writeable(self) -> bool:
        """Whether elements may be assigned."""
        return self._array._writeable and not isinstance(self._array, Scalar)

    @writeable.setter
    def writeable(self, value: bool) -> None:
        base = self._array._base
        if isinstance(self._array, Scalar) or (value and base is not None and not base._writeable):
            raise ValueError("cannot set WRITEABLE flag to True of this array")
        self._array._writeable = bool(value)

    @property
    def behaved(self) -> bool:
        """Aligned and writeable."""
        return self.writeable

    @property
    def carray(self) -> bool:
        """Behaved and row-major."""
        return self.writeable and self.c_contiguous

    @property
    def farray(self) -> bool:
        """Behaved, and column-major and not row-major."""
        return self.writeable and self.fnc

    @property
    def num(self) -> int:
        """The flags as NumPy's number."""
        parts = ((1, self.c_contiguous), (2, self.f_contiguous), (4, self.owndata), (0x400, self.writeable))
        return 0x100 + sum(bit for bit, holds in parts if holds)

    @property
    def owndata(self) -> bool:
        """Whether the array is no view of another."""
        return self._array._base is None

    aligned = True
    writebackifcopy = False

    def __getitem__(self, key: str) -> bool:
        names = {
            "C": "c_contiguous",
            "F": "f_contiguous",
            "W": "writeable",
            "O": "owndata",
            "A": "aligned",
            "X": "writebackifcopy",
        }
        names |= {"CA": "contiguous", "CARRAY": "contiguous", "FORC": "forc", "FNC": "fnc"}
        name = names.get(key, key.lower())
        if not hasattr(type(self), name):
            raise KeyError("Unknown flag")
        return bool(getattr(self, name))

    def __setitem__(self, key: str, value: bool) -> None:
        if key not in ("W", "WRITEABLE"):
            raise KeyError("Unknown flag")
        self.writeable = value

    def __repr__(self) -> str:
        names = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY")
        return "\n".join(f"  {name} : {self[name]}" for name in names) + "\n"


# --- attributes that can be set


def shape_of(self: ndarray) -> tuple[int, ...]:
    """Length of each axis."""
    return self._shape


def set_shape(self: ndarray, shape: Any) -> None:
    """Give the array another shape over the same memory; AttributeError where that takes a copy."""
    changed = reshape(self, shape)
    if changed._cell is not self._cell:
        raise AttributeError(
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape."
        )
    self._shape, self._view = changed._shape, changed._view


def dtype_of(self: ndarray) -> np.dtype:
    """Type of the elements."""
    return self._row.numpy


def set_dtype(self: ndarray, dtype: Any) -> None:
    """See the array's memory as another dtype from now on, as `view` does."""
    row = dtypes.find(np.dtype(dtype))
    if row is None or isinstance(self, Scalar):
        raise TypeError(f"the dtype of an array in place cannot become {np.dtype(dtype)}: use x.view(dtype)")
    self._shape, self._view = place_as(self, row)
    self._row = row


def strides_of(self: ndarray) -> tuple[int, ...]:
    """Bytes from one entry to the next along each axis."""
    itemsize = self._row.itemsize
    return tuple(stride * itemsize for stride in element_strides(self))


def set_strides(self: ndarray, strides: Any) -> None:
    """Give the array other strides inside the same memory."""
    given = tuple(operator.index(one) for one in strides)
    warnings.warn(
        "Setting the strides on a NumPy array has been deprecated in NumPy 2.4.\nAs an alternative, you can create a new view "
        "using np.lib.stride_tricks.as_strided.",
        DeprecationWarning,
        stacklevel=2,
    )
    if len(given) != self.ndim:
        raise ValueError(f"strides must be  same length as shape ({self.ndim})")
    itemsize = self._row.itemsize
    available = self._cell.node.nbytes
    if any(stride % itemsize for stride in given) or not _fits(
        self._shape, given, element_offset(self) * itemsize, itemsize, available
    ):
        raise ValueError("strides is not compatible with available memory")
    self._view = (element_offset(self), tuple(stride // itemsize for stride in given))


def _fits(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, itemsize: int, available: int) -> bool:
    """Whether all elements lie inside of so many bytes."""
    if 0 in shape:
        return True
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low, high = offset + sum(min(0, one) for one in reach), offset + sum(max(0, one) for one in reach)
    return 0 <= low and high + itemsize <= available


def getfield(self: ndarray, dtype: Any, offset: int = 0) -> Any:
    """The bytes of each element from `offset` on as a dtype: a view of the same shape.

    Raises
    ------
    ValueError
        If a field is not inside of the elements, or not at a multiple of its size.
    """
    row = dtypes.find(np.dtype(dtype))
    if row is None or isinstance(self, Scalar):
        return call_numpy(np.ndarray.getfield, (self, dtype, offset), {}, by_design=True)
    own, size = self._row.itemsize, row.itemsize
    if offset < 0 or offset + size > own:
        raise ValueError(
            f"Need 0 <= offset <= {own} for requested type but received offset = {offset}"
            if size <= own
            else "new type is larger than original type"
        )
    if offset % size or own % size:
        raise ValueError(
            f"a field of {row.name} at byte {offset} of {own}: expected multiples of {size}; copy the array first"
        )
    ratio = own // size
    view = (
        element_offset(self) * ratio + offset // size,
        tuple(stride * ratio for stride in element_strides(self)),
    )
    found = make_view(self._cell, row, self._shape, view, self if self._base is None else self._base)
    found._writeable = self._writeable
    return found


# --- other views of the memory


_REQUIREMENTS = {
    "C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F",
    "A": "A", "ALIGNED": "A", "W": "W", "WRITEABLE": "W", "O": "O", "OWNDATA": "O", "E": "E", "ENSUREARRAY": "E",
}  # fmt: skip


def view(a: ndarray, dtype: Any = None, type: Any = None) -> Any:
    """The same memory seen as another dtype: writes to one are seen by the other.

    Parameters
    ----------
    dtype : dtype, optional
    type : type, optional
        Of the result: only `ndarray` itself is there.

    Raises
    ------
    ValueError
        If the elements do not divide into others of the dtype's size, or would not lie at multiples of it in the memory.

    Examples
    --------
    >>> import blockarray as np
    >>> x = np.array([1.0, 2.0], "float32")
    >>> bits = x.view("int32")
    >>> bits |= -(1 << 31)
    >>> x
    array([-1., -2.], dtype=float32)
    """
    if isinstance(dtype, builtins.type) and issubclass(dtype, ndarray | np.ndarray):
        if type is not None:
            raise ValueError("Cannot specify output type twice.")
        dtype, type = None, dtype
    if type is not None and not (isinstance(type, builtins.type) and issubclass(type, ndarray | np.ndarray)):
        raise ValueError("Type must be a sub-type of ndarray type")
    wanted = a.dtype if dtype is None else np.dtype(dtype)
    if isinstance(a, Scalar):
        return a if wanted == a.dtype else borrowed_value(a)[()].view(wanted)
    if wanted == a.dtype:
        return view_of(a, element_offset(a), a.shape, element_strides(a))
    row = dtypes.find(wanted)
    if row is None:
        # NumPy keeps what kernels have no elements for. A copy that cannot be written cannot lose a write.
        foreign = borrowed_value(a).view(wanted).copy()
        foreign.flags.writeable = False
        return foreign
    found = view_of(a, element_offset(a), a.shape, element_strides(a))
    found._shape, found._view = place_as(a, row)
    found._row = row
    return found


def place_as(a: ndarray, row: DType) -> tuple[Shape, tuple[int, tuple[int, ...]]]:
    """Shape, offset and strides (in the new elements) of an array whose memory is seen as another dtype; ValueError in NumPy's words."""
    old, new = a._row.itemsize, row.itemsize
    shape, strides = list(a.shape), [stride * old for stride in element_strides(a)]
    offset = element_offset(a) * old
    if new != old:
        if not shape:
            raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
        if shape[-1] != 1 and a.size and strides[-1] != old:
            raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
        if new < old and old % new:
            raise ValueError(
                "When changing to a smaller dtype, its size must be a divisor of the size of original dtype"
            )
        total = shape[-1] * old
        if total % new:
            raise ValueError(
                "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis "
                "of the array."
            )
        shape[-1], strides[-1] = total // new, new
    # An axis without neighbours, or an array without elements, goes nowhere.
    empty = 0 in shape
    steps = [
        0 if (extent == 1 or empty) and stride % new else stride for extent, stride in zip(shape, strides, strict=True)
    ]
    if empty and offset % new:
        offset = 0
    if offset % new or any(stride % new for stride in steps):
        raise ValueError(
            f"elements of {row.name} would lie at byte {offset} and in steps of {tuple(steps)} bytes; expected multiples of {new}: "
            "copy the bytes first (`x.copy().view(dtype)`)"
        )
    return tuple(shape), (offset // new, tuple(stride // new for stride in steps))


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """An array that meets requirements on its memory; itself if it does already."""
    wanted = {_REQUIREMENTS[one.upper()] for one in requirements or ()}
    if {"C", "F"} <= wanted:
        raise ValueError('Cannot specify both "C" and "F" order')
    order = "F" if "F" in wanted else "C" if "C" in wanted else "A"
    found = array(a, dtype, copy=None, order=order)
    flags = found.flags
    missing = ("W" in wanted and not flags.writeable) or ("O" in wanted and not flags.owndata)
    return found.copy(order) if missing else found


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """Every window of a shape, as a view.

    Examples
    --------
    >>> import blockarray as np
    >>> np.lib.stride_tricks.sliding_window_view(np.arange(4), 2).sum(axis=1)
    array([1, 3, 5])
    """
    source = as_array(x)
    extents = tuple(window_shape) if isinstance(window_shape, Sequence) else (operator.index(window_shape),)
    if any(extent < 0 for extent in extents):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = (
        tuple(range(source.ndim))
        if axis is None
        else tuple(axis_number(one, source.ndim) for one in (axis if isinstance(axis, Sequence) else (axis,)))
    )
    if len(axes) != len(extents):
        raise ValueError(
            "Since axis is None, must provide window_shape for all dimensions of `x`; got "
            f"{len(extents)} window_shape elements and `x.ndim` is {source.ndim}."
        )
    shape, strides = list(source.shape), element_strides(source)
    for place, extent in zip(axes, extents, strict=True):
        if shape[place] < extent:
            raise ValueError("window shape cannot be larger than input array shape")
        shape[place] -= extent - 1
    found = view_of(source, element_offset(source), (*shape, *extents), (*strides, *(strides[place] for place in axes)))
    found._writeable = writeable
    return found


def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    """A view with any shape and byte strides inside the array's memory."""
    source = as_array(x)
    extents = source.shape if shape is None else tuple(shape)
    given = source.strides if strides is None else tuple(strides)
    itemsize = source.itemsize
    if any(stride % itemsize for stride in given):
        raise ValueError(
            f"strides {given} are not multiples of the item size {itemsize}, which a view of elements needs"
        )
    steps = tuple(stride // itemsize for stride in given)
    offset = element_offset(source)
    low = offset + sum(min(0, (n - 1) * s) for n, s in zip(extents, steps, strict=True))
    high = offset + sum(max(0, (n - 1) * s) for n, s in zip(extents, steps, strict=True))
    available = source._cell.node.nbytes // itemsize
    if 0 not in extents and not 0 <= low <= high < max(available, 1):
        raise ValueError(f"the view would reach from element {low} to {high} of a memory of {available} elements")
    found = view_of(source, offset, extents, steps)
    found._writeable = writeable and found._writeable
    return found


# --- the class itself


def make(
    cls: type,
    shape: Any,
    dtype: Any = float,
    buffer: Any = None,
    offset: int = 0,
    strides: Any = None,
    order: Any = None,
) -> Any:
    """``ndarray(shape, dtype, buffer, offset, strides, order)``: a new array, or a view of the memory of `buffer`.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype
    buffer : ndarray, optional
        Row-major; the result is a view of it. Of anything else that has bytes (bytes, memoryview, a NumPy array) the result is a copy, which
        cannot be written: a write to it would not reach the buffer.
    offset : int
        Bytes from the start of the buffer.
    strides : tuple of int, optional
        In bytes.
    order : {"C", "F"}

    Raises
    ------
    TypeError, ValueError
        In NumPy's words, for a buffer that is too small; ValueError for elements that do not lie at multiples of their size.
    """
    row = dtypes.find(np.dtype(dtype))
    if row is None:
        raise TypeError(f"a blockarray.ndarray has no elements of dtype {np.dtype(dtype)}: use numpy.ndarray")
    extents = (operator.index(shape),) if not isinstance(shape, tuple | list | ndarray | np.ndarray) else tuple(shape)
    if isinstance(buffer, ndarray):
        return _over(buffer, row, extents, offset, strides, order)
    if buffer is not None:
        found = from_numpy(np.ndarray(extents, row.numpy, buffer, offset, strides, order))
        found._writeable = False
        return found
    fresh = empty(extents, row.numpy, order or "C")
    if strides is None:
        return fresh
    steps = tuple(operator.index(one) for one in strides)
    if len(steps) != len(extents):
        raise ValueError("strides, if given, must be the same length as shape")
    itemsize = row.itemsize
    reach = sum((extent - 1) * stride for extent, stride in zip(extents, steps, strict=True) if extent)
    if any(stride % itemsize or stride < 0 for stride in steps):
        raise ValueError(f"strides {steps}: expected multiples of the item size {itemsize}, not below 0")
    memory = empty(reach // itemsize + 1, row.numpy)
    return make_view(memory._cell, row, fresh.shape, (0, tuple(stride // itemsize for stride in steps)), None)


def _over(buffer: ndarray, row: DType, shape: tuple[int, ...], offset: int, strides: Any, order: Any) -> ndarray:
    if not buffer.flags.c_contiguous:  # type: ignore[attr-defined]  # installed by methods
        raise ValueError("ndarray is not contiguous")
    itemsize = row.itemsize
    if strides is None:
        steps = _dense_strides(shape, itemsize, order)
        size = itemsize
        for extent in shape:
            size *= extent
        if size + offset > buffer.nbytes or offset < 0:
            raise TypeError("buffer is too small for requested array")
    else:
        steps = tuple(operator.index(one) for one in strides)
        if len(steps) != len(shape):
            raise ValueError("strides, if given, must be the same length as shape")
        if offset < 0 or not _fits(shape, steps, offset, itemsize, buffer.nbytes):
            raise ValueError("strides is incompatible with shape of requested array and size of buffer")
    first = element_offset(buffer) * buffer.itemsize + offset
    if first % itemsize or any(stride % itemsize for stride in steps):
        raise ValueError(
            f"elements of {row.name} would lie at byte {first} and in steps of {steps} bytes; expected multiples of {itemsize}: "
            "copy the bytes first"
        )
    base = buffer if buffer._base is None else buffer._base
    view = (first // itemsize, tuple(stride // itemsize for stride in steps))
    found = make_view(buffer._cell, row, tuple(shape), view, base)
    found._writeable = buffer._writeable
    return found


def _dense_strides(shape: tuple[int, ...], itemsize: int, order: Any) -> tuple[int, ...]:
    steps = [0] * len(shape)
    axes = range(len(shape)) if order == "F" else reversed(range(len(shape)))
    step = itemsize
    for axis in axes:
        steps[axis] = step
        step *= shape[axis]
    return tuple(steps)


# --- sharing


class _Place:
    """Where an array lies, for NumPy's own arithmetic on addresses; nothing is ever read there."""

    def __init__(self, array: ndarray) -> None:
        itemsize = array.itemsize
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{itemsize}",
            "shape": array.shape,
            "strides": array.strides,
            "data": (_SOMEWHERE + element_offset(array) * itemsize, True),
        }


# Far enough from 0 that no array of ours begins before it.
_SOMEWHERE = 1 << 40


def shares_memory(a: Any, b: Any, /, max_work: int = -1) -> bool:
    """Whether two arrays have an element's byte in common.

    Examples
    --------
    >>> import blockarray as np
    >>> x = np.arange(4)
    >>> np.shares_memory(x, x[::2]), np.shares_memory(x[1::2], x[::2])
    (True, False)
    """
    return _compared(np.shares_memory, a, b, max_work)


def may_share_memory(a: Any, b: Any, /, max_work: int = 0) -> bool:
    """Whether two arrays could have memory in common: whether the ranges that they lie in overlap, unless `max_work` asks for more."""
    return _compared(np.may_share_memory, a, b, max_work)


def _compared(function: Any, a: Any, b: Any, max_work: int) -> bool:
    if isinstance(a, ndarray) and isinstance(b, ndarray):
        if a._cell is not b._cell or isinstance(a, Scalar):
            return False
        return bool(function(np.asarray(_Place(a)), np.asarray(_Place(b)), max_work=max_work))
    if isinstance(a, ndarray) or isinstance(b, ndarray):
        # Nothing else lies in the memory of an array of ours.
        np.asarray(b if isinstance(a, ndarray) else a)
        return False
    return bool(function(a, b, max_work=max_work))
