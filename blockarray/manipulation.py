"""Other shapes, orders and dtypes of the same elements: views where NumPy gives views, copies elsewhere."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from blockarray.creation import array, asanyarray
from blockarray.graph.nodes import Shape, View, row_major_strides
from blockarray.ndarray import (
    Scalar,
    borrowed_value,
    cast,
    copy_of,
    element_offset,
    element_strides,
    make_view,
    memory_order,
    ndarray,
    read,
    user_frame,
    view_of,
    wrap,
    wrap_array,
    wrap_in_order,
)
from blockarray.promotion import result_order
from blockarray.sizes import refuse_too_big
from codegen import dtypes


def as_array(value: Any) -> Any:
    """An array of ours, or a NumPy array if kernels have no such elements."""
    return value if isinstance(value, ndarray) else asanyarray(value)


def axis_number(axis: Any, rank: int, name: str | None = None) -> int:
    """The axis as a number from 0 on; AxisError in NumPy's words."""
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise AxisError(number, rank, name) if name else AxisError(number, rank)
    return number % rank


def axis_numbers(axis: Any, rank: int, name: str | None = None) -> tuple[int, ...]:
    """The axes as numbers from 0 on; AxisError and ValueError in NumPy's words."""
    listed = axis if isinstance(axis, tuple | list) else (axis,)
    found = tuple(axis_number(one, rank, name) for one in listed)
    if len(set(found)) != len(found):
        raise ValueError(f"repeated axis in `{name}` argument" if name else "repeated axis")
    return found


# --- shapes


def _wanted_shape(shape: Any, size: int) -> Shape:
    if isinstance(shape, ndarray):
        shape = shape.tolist()
    if isinstance(shape, Sequence | np.ndarray):
        extents = [operator.index(one) for one in shape]
    else:
        try:
            extents = [operator.index(shape)]
        except TypeError:
            raise TypeError(f"expected a sequence of integers or a single integer, got '{shape!r}'") from None
    # NumPy takes any negative number for the extent that is to be found out.
    unknown = [k for k, extent in enumerate(extents) if extent < 0]
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    known = math.prod(extent for extent in extents if extent >= 0)
    if (unknown and (known == 0 or size % known)) or (not unknown and known != size):
        raise ValueError(f"cannot reshape array of size {size} into shape {_shape_in_words(extents)}")
    if unknown:
        extents[unknown[0]] = size // known
    return tuple(extents)


def _shape_in_words(extents: list[int]) -> str:
    """As NumPy's messages show a shape with an unknown extent."""
    first = next((k for k, extent in enumerate(extents) if extent >= 0), len(extents))
    shown = ",".join("newaxis" if extent < 0 else str(extent) for extent in extents[first:])
    return f"({shown},)" if len(extents) == 1 and shown else f"({shown})"


def _strides_without_copy(shape: Shape, strides: tuple[int, ...], wanted: Shape) -> tuple[int, ...] | None:
    """Strides over the same memory for another row-major shape, or None if there are none: NumPy's own way."""
    if 0 in wanted:
        return row_major_strides(wanted)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    found = [0] * len(wanted)
    taken = place = 0
    while place < len(wanted) and taken < len(old):
        new_size, old_size = wanted[place], old[taken][0]
        last, last_taken = place + 1, taken + 1
        while new_size != old_size:
            if new_size < old_size:
                new_size *= wanted[last]
                last += 1
            else:
                old_size *= old[last_taken][0]
                last_taken += 1
        for k in range(taken, last_taken - 1):
            if old[k][1] != old[k + 1][0] * old[k + 1][1]:
                return None
        stride = old[last_taken - 1][1]
        for k in range(last - 1, place - 1, -1):
            found[k] = stride
            stride *= wanted[k]
        place, taken = last, last_taken
    stride = found[place - 1] if place else 1
    for k in range(place, len(wanted)):
        found[k] = stride
    return tuple(found)


def reshape(
    a: Any, /, *args: Any, shape: Any = None, order: str = "C", copy: bool | None = None, newshape: Any = None
) -> Any:
    """The same elements in another shape: a view where the memory allows it.

    Parameters
    ----------
    a : array_like
    shape : int or tuple of int
        One extent may be -1.
    order : {"C", "F", "A"}
    copy : bool, optional
        True copies always; False raises ValueError where a view is not possible.

    Examples
    --------
    >>> import blockarray as np
    >>> np.arange(6).reshape(2, -1)
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    if args and isinstance(args[-1], str) and len(args) > 1:
        args, order = args[:-1], args[-1]
    wanted = shape if shape is not None else newshape
    if wanted is None:
        if not args:
            raise TypeError("reshape() missing 1 required positional argument: 'shape'")
        wanted = args[0] if len(args) == 1 else args
    source = as_array(a)
    if wanted is None:
        wanted = source.shape
    if not isinstance(source, ndarray):
        return np.reshape(source, wanted, order)  # type: ignore[call-overload]
    if order not in ("C", "F", "A"):
        if order == "K":
            raise ValueError("order 'K' is not permitted for reshaping")
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    extents = _wanted_shape(wanted, source.size)
    strides = element_strides(source)
    column = order == "F" or (order == "A" and _is_column_major(source))
    if column:
        turned = _strides_without_copy(source.shape[::-1], strides[::-1], extents[::-1])
        found = None if turned is None else turned[::-1]
    else:
        found = _strides_without_copy(source.shape, strides, extents)
    if found is not None and copy is not True:
        if isinstance(source, Scalar):
            return wrap_array(View(read(source), 0, extents, found))
        return view_of(source, element_offset(source), extents, found)
    if copy is False:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    if column:
        return transpose(reshape(copy_of(transpose(source), "C"), extents[::-1]))
    refuse_too_big(extents, source._row)
    fresh = wrap_array(View(read(source), 0, extents, row_major_strides(extents)))
    # As in NumPy the copy has the shape of the source, and the result is a view of it.
    return view_of(fresh, 0, extents, row_major_strides(extents))


def _is_row_major(strides: tuple[int, ...], shape: Shape) -> bool:
    """Whether the elements lie in row-major order without gaps."""
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            return 0 in shape
        step *= extent
    return True


def _is_column_major(source: ndarray) -> bool:
    """Whether the elements lie in column-major order without gaps, and not in row-major order too."""
    strides, shape = element_strides(source), source.shape
    return _is_row_major(strides[::-1], shape[::-1]) and not _is_row_major(strides, shape)


def ravel(a: Any, order: str = "C") -> Any:
    """Flattened: a view if the elements lie one after the other in memory in this order, else a copy."""
    source = as_array(a)
    if not isinstance(source, ndarray):
        return np.ravel(source, order)  # type: ignore[arg-type]
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    axes: tuple[int, ...] | None = None
    if order == "F" or (order == "A" and _is_column_major(source)):
        axes = tuple(range(source.ndim - 1, -1, -1))
    elif order == "K":
        # As NumPy walks through the memory: axes that repeat elements stay where they are.
        axes = result_order(((source.shape, element_strides(source)),), source.shape)
    turned = source if axes is None else transpose(source, axes)
    if _is_row_major(element_strides(turned), turned.shape):
        return reshape(turned, (-1,) if turned.size else (0,))
    refuse_too_big((turned.size,), turned._row)
    return wrap_array(View(read(turned), 0, (turned.size,), (1,)))


def flatten(a: ndarray, order: str = "C") -> ndarray:
    """Flattened, always a copy."""
    flat = ravel(a, order)
    return copy_of(flat, "C") if flat._cell is a._cell else flat


def transpose(a: Any, *axes: Any) -> Any:
    """Axes in another order: a view.

    Examples
    --------
    >>> import blockarray as np
    >>> np.transpose(np.arange(6).reshape(2, 3)).shape
    (3, 2)
    """
    source = as_array(a)
    wanted = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], Sequence | np.ndarray)) else axes
    if not isinstance(source, ndarray):
        return np.transpose(source, wanted or None)
    rank = source.ndim
    if wanted is None or len(wanted) == 0:
        order = tuple(range(rank - 1, -1, -1))
    else:
        if len(wanted) != rank:
            raise ValueError("axes don't match array")
        order = tuple(axis_number(one, rank) for one in wanted)
        if len(set(order)) != rank:
            raise ValueError("repeated axis in transpose")
    if rank < 2 and isinstance(source, Scalar):
        return source
    strides = element_strides(source)
    return view_of(
        source, element_offset(source), tuple(source.shape[k] for k in order), tuple(strides[k] for k in order)
    )


def permute_dims(a: Any, axes: Any = None) -> Any:
    """The same as `transpose`."""
    return transpose(a, axes)


def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    """Two axes exchanged: a view."""
    source = as_array(a)
    first, second = axis_number(axis1, source.ndim, "axis1"), axis_number(axis2, source.ndim, "axis2")
    order = list(range(source.ndim))
    order[first], order[second] = order[second], order[first]
    return transpose(source, order)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged: a view."""
    source = as_array(x)
    if source.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {source.ndim}")
    return swapaxes(source, -1, -2)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Axes moved to other places: a view."""
    given = as_array(a)
    origin, target = axis_numbers(source, given.ndim, "source"), axis_numbers(destination, given.ndim, "destination")
    if len(origin) != len(target):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [k for k in range(given.ndim) if k not in origin]
    for place, axis in sorted(zip(target, origin, strict=True)):
        order.insert(place, axis)
    return transpose(given, order)


def rollaxis(a: Any, axis: Any, start: int = 0) -> Any:
    """An axis moved before another: a view."""
    given = as_array(a)
    rank = given.ndim
    origin = axis_number(axis, rank)
    place = start + rank if start < 0 else start
    if not 0 <= place < rank + 1:
        raise AxisError(f"'start' arg requires {-rank} <= start < {rank + 1}, but {place} was passed in")
    if origin < place:
        place -= 1
    order = [k for k in range(rank) if k != origin]
    order.insert(place, origin)
    return transpose(given, order)


def squeeze(a: Any, axis: Any = None) -> Any:
    """Axes of extent 1 left out: a view."""
    source = as_array(a)
    if not isinstance(source, ndarray):
        return np.squeeze(source, axis)
    if axis is None:
        dropped = tuple(k for k, n in enumerate(source.shape) if n == 1)
    else:
        if source.ndim == 0 and not isinstance(axis, tuple | list):
            if operator.index(axis) not in (0, -1):
                raise AxisError(axis, 0)
            return source
        dropped = tuple(axis_number(one, source.ndim) for one in (axis if isinstance(axis, tuple | list) else (axis,)))
        if len(set(dropped)) != len(dropped):
            raise ValueError("duplicate value in 'axis'")
        if any(source.shape[k] != 1 for k in dropped):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    if not dropped:
        return source
    kept = [k for k in range(source.ndim) if k not in dropped]
    strides = element_strides(source)
    return view_of(
        source, element_offset(source), tuple(source.shape[k] for k in kept), tuple(strides[k] for k in kept)
    )


def expand_dims(a: Any, axis: Any) -> Any:
    """New axes of extent 1: a view."""
    source = as_array(a)
    if not isinstance(source, ndarray):
        return np.expand_dims(source, axis)
    listed = axis if isinstance(axis, tuple | list) else (axis,)
    rank = source.ndim + len(listed)
    shape = list(source.shape)
    for place in sorted(axis_numbers(tuple(listed), rank)):
        shape.insert(place, 1)
    return reshape(source, tuple(shape))


def atleast_1d(*arys: Any) -> Any:
    """Arrays of one axis or more."""
    found = [one if one.ndim >= 1 else reshape(one, (1,)) for one in map(as_array, arys)]
    return found[0] if len(found) == 1 else tuple(found)


def atleast_2d(*arys: Any) -> Any:
    """Arrays of two axes or more."""
    found = []
    for one in map(as_array, arys):
        found.append(one if one.ndim >= 2 else reshape(one, (1, 1)) if one.ndim == 0 else one[None, :])
    return found[0] if len(found) == 1 else tuple(found)


def atleast_3d(*arys: Any) -> Any:
    """Arrays of three axes or more."""
    found = []
    for one in map(as_array, arys):
        if one.ndim == 0:
            found.append(reshape(one, (1, 1, 1)))
        elif one.ndim == 1:
            found.append(one[None, :, None])
        else:
            found.append(one if one.ndim >= 3 else one[:, :, None])
    return found[0] if len(found) == 1 else tuple(found)


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Repeated to `shape` without a copy; the view is read-only.

    Examples
    --------
    >>> import blockarray as np
    >>> np.broadcast_to(np.arange(3), (2, 3)).sum()
    np.int64(6)
    """
    source = as_array(array)
    extents = tuple(operator.index(one) for one in shape) if isinstance(shape, Sequence) else (operator.index(shape),)
    if not isinstance(source, ndarray):
        return np.broadcast_to(source, extents)
    if any(extent < 0 for extent in extents):
        raise ValueError("all elements of broadcast shape must be non-negative")
    skip = len(extents) - source.ndim
    if not extents and source.ndim:
        raise ValueError("cannot broadcast a non-scalar to a scalar array")
    if skip < 0:
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    strides = []
    for extent, stride, wanted in zip(source.shape, element_strides(source), extents[skip:], strict=True):
        if extent != wanted and extent != 1:
            listed = str(extents).replace(" ", "")
            raise ValueError(
                "operands could not be broadcast together with remapped shapes [original->remapped]: "
                f"{str(source.shape).replace(' ', '')}  and requested shape {listed}"
            )
        strides.append(0 if extent == 1 else stride)
    base = source if source._base is None else source._base
    view = make_view(source._cell, source._row, extents, (element_offset(source), (0,) * skip + tuple(strides)), base)
    view._writeable = False
    return view


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Arrays repeated to their common shape."""
    found = [as_array(one) for one in args]
    shape = np.broadcast_shapes(*(one.shape for one in found))
    spread = []
    for one in found:
        if one.shape != shape:
            writeable = one.flags.writeable
            one = broadcast_to(one, shape)
            one.flags.writeable = writeable
        spread.append(one)
    return tuple(spread)


def flip(m: Any, axis: Any = None) -> Any:
    """Reversed along axes: a view."""
    source = as_array(m)
    if not isinstance(source, ndarray):
        return np.flip(source, axis)
    turned = range(source.ndim) if axis is None else axis_numbers(axis, source.ndim)
    offset, strides = element_offset(source), list(element_strides(source))
    for k in turned:
        if source.shape[k]:
            offset += strides[k] * (source.shape[k] - 1)
        strides[k] = -strides[k]
    if not source.shape:
        return source[()]
    return view_of(source, offset, source.shape, tuple(strides))


def fliplr(m: Any) -> Any:
    """Reversed along the second axis."""
    if as_array(m).ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """Reversed along the first axis."""
    if as_array(m).ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Rotated by quarter turns in the plane of two axes."""
    source = as_array(m)
    plane = tuple(axes)
    if len(plane) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = plane
    if first == second or abs(first - second) == source.ndim:
        raise ValueError("Axes must be different.")
    if not all(-source.ndim <= one < source.ndim for one in plane):
        raise ValueError(f"Axes={plane} out of range for array of ndim={source.ndim}.")
    turns = k % 4
    if turns == 0:
        return source[:]
    if turns == 2:
        return flip(flip(source, first), second)
    if turns == 1:
        return swapaxes(flip(source, second), first, second)
    return flip(swapaxes(source, first, second), second)


def astype(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
    *,
    device: Any = None,
) -> Any:
    """Elements converted to another dtype.

    Raises
    ------
    TypeError
        If `casting` does not allow it.
    """
    source = as_array(a)
    wanted = np.dtype(dtype)
    row = dtypes.find(wanted.newbyteorder("="))
    if not isinstance(source, ndarray):
        return array(np.asarray(source).astype(wanted, order, casting))  # type: ignore[call-overload]
    if not np.can_cast(source.dtype, wanted, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data from {source.dtype!r} to {wanted!r} according to the rule {casting!r}")
    if row is None:
        return borrowed_value(source).astype(wanted)
    same = row is source._row
    if same and not copy and _has_order(source, order):
        return source
    if same and not isinstance(source, Scalar):
        return copy_of(source, order)
    refuse_too_big(source._shape, row, stored=False)
    node = cast(read(source), row)
    node.record(user_frame())
    if isinstance(source, Scalar):
        return wrap(node)
    axes = memory_order(element_strides(source), source.shape, order)
    return wrap_in_order(node, axes) if source.shape else wrap_array(node)


def _has_order(source: ndarray, order: str) -> bool:
    strides, shape = element_strides(source), source.shape
    if order == "C":
        return _is_row_major(strides, shape)
    return order != "F" or _is_row_major(strides[::-1], shape[::-1])


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Without zeros at the ends of axes: a view.

    Parameters
    ----------
    filt : array_like
    trim : {"fb", "f", "b"}
        From the front, the back or both.
    axis : int or tuple of int, optional
        All of them if absent.
    """
    source = as_array(filt)
    side = trim.lower()
    if not isinstance(source, ndarray) or isinstance(filt, list | tuple) or side not in ("fb", "bf", "f", "b"):
        return np.trim_zeros(borrowed_value(filt) if isinstance(filt, ndarray) else filt, trim, axis)
    axes = tuple(range(source.ndim)) if axis is None else axis_numbers(axis, source.ndim)
    inside = [np.unique(one) for one in borrowed_value(source).nonzero()]
    key: list[slice] = []
    for k, extent in enumerate(source.shape):
        first, last = (int(inside[k][0]), int(inside[k][-1]) + 1) if inside[k].size else (extent, extent)
        if inside[k].size == 0 and "f" not in side:
            first, last = 0, 0
        key.append(slice(first if "f" in side else 0, last if "b" in side else extent) if k in axes else slice(None))
    return source[tuple(key)]
