"""Other shapes and orders of the same elements: views where NumPy gives views, copies elsewhere."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from blockarray.creation import array, asanyarray, empty, full
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Node, Shape, View, row_major_strides
from blockarray.ndarray import (
    Scalar,
    borrowed_value,
    cast,
    copy_of,
    element_offset,
    element_strides,
    from_numpy,
    host_value,
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
from blockarray.reductions import NO_VALUE
from blockarray.reductions import sum as sum_along
from blockarray.ufuncs import UFUNCS, as_operand, number_node, where_node
from codegen import dtypes


def _array(value: Any) -> Any:
    """An array of ours, or a NumPy array if kernels have no such elements."""
    return value if isinstance(value, ndarray) else asanyarray(value)


def _axis(axis: Any, rank: int, name: str | None = None) -> int:
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise AxisError(number, rank, name) if name else AxisError(number, rank)
    return number % rank


def _axes(axis: Any, rank: int, name: str | None = None) -> tuple[int, ...]:
    listed = axis if isinstance(axis, tuple | list) else (axis,)
    found = tuple(_axis(one, rank, name) for one in listed)
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
        extents = [operator.index(shape)]
    unknown = [k for k, extent in enumerate(extents) if extent == -1]
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    if any(extent < -1 for extent in extents):
        raise ValueError("negative dimensions not allowed")
    known = math.prod(extent for extent in extents if extent != -1)
    listed = str(tuple(extents)).replace(" ", "")
    if unknown:
        if known == 0 or size % known:
            raise ValueError(f"cannot reshape array of size {size} into shape {listed}")
        extents[unknown[0]] = size // known
    elif known != size:
        raise ValueError(f"cannot reshape array of size {size} into shape {listed}")
    return tuple(extents)


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


def _column_major(shape: Shape) -> tuple[int, ...]:
    return row_major_strides(shape[::-1])[::-1]


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
    wanted = (
        shape if shape is not None else (newshape if newshape is not None else (args[0] if len(args) == 1 else args))
    )
    source = _array(a)
    if not isinstance(source, ndarray):
        return np.reshape(source, wanted, order)  # type: ignore[call-overload]
    if order not in ("C", "F", "A", "K"):
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
    node = read(source)
    return wrap_array(View(node, 0, extents, row_major_strides(extents)))


def _is_column_major(source: ndarray) -> bool:
    strides, shape = element_strides(source), source.shape
    flags = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), shape, strides).flags
    return bool(flags.f_contiguous and not flags.c_contiguous)


def ravel(a: Any, order: str = "C") -> Any:
    """Flattened: a view where the memory allows it."""
    source = _array(a)
    if not isinstance(source, ndarray):
        return np.ravel(source, order)  # type: ignore[arg-type]
    if order == "K":
        axes = memory_order(element_strides(source), source.shape, "K")
        return ravel(source if axes is None else transpose(source, axes))
    return reshape(source, (-1,), order=order)


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
    source = _array(a)
    wanted = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], Sequence | np.ndarray)) else axes
    if not isinstance(source, ndarray):
        return np.transpose(source, wanted or None)
    rank = source.ndim
    if wanted is None or len(wanted) == 0:
        order = tuple(range(rank - 1, -1, -1))
    else:
        if len(wanted) != rank:
            raise ValueError("axes don't match array")
        order = tuple(_axis(one, rank) for one in wanted)
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
    source = _array(a)
    first, second = _axis(axis1, source.ndim, "axis1"), _axis(axis2, source.ndim, "axis2")
    order = list(range(source.ndim))
    order[first], order[second] = order[second], order[first]
    return transpose(source, order)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged: a view."""
    source = _array(x)
    if source.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {source.ndim}")
    return swapaxes(source, -1, -2)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Axes moved to other places: a view."""
    given = _array(a)
    origin, target = _axes(source, given.ndim, "source"), _axes(destination, given.ndim, "destination")
    if len(origin) != len(target):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [k for k in range(given.ndim) if k not in origin]
    for place, axis in sorted(zip(target, origin, strict=True)):
        order.insert(place, axis)
    return transpose(given, order)


def rollaxis(a: Any, axis: Any, start: int = 0) -> Any:
    """An axis moved before another: a view."""
    given = _array(a)
    rank = given.ndim
    origin = _axis(axis, rank)
    place = start + rank if start < 0 else start
    if not 0 <= place < rank + 1:
        raise AxisError(f"'start' arg requires {-rank} <= start < {rank + 1}, but {start} was passed in")
    if origin < place:
        place -= 1
    order = [k for k in range(rank) if k != origin]
    order.insert(place, origin)
    return transpose(given, order)


def squeeze(a: Any, axis: Any = None) -> Any:
    """Axes of extent 1 left out: a view."""
    source = _array(a)
    if not isinstance(source, ndarray):
        return np.squeeze(source, axis)
    if axis is None:
        dropped = tuple(k for k, n in enumerate(source.shape) if n == 1)
    else:
        dropped = _axes(axis, source.ndim)
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
    source = _array(a)
    if not isinstance(source, ndarray):
        return np.expand_dims(source, axis)
    listed = axis if isinstance(axis, tuple | list) else (axis,)
    rank = source.ndim + len(listed)
    places = _axes(tuple(listed), rank)
    shape, strides = list(source.shape), list(element_strides(source))
    for place in sorted(places):
        shape.insert(place, 1)
        strides.insert(place, 0)
    if isinstance(source, Scalar):
        return wrap_array(View(read(source), 0, tuple(shape), tuple(strides)))
    return view_of(source, element_offset(source), tuple(shape), tuple(strides))


def atleast_1d(*arys: Any) -> Any:
    """Arrays of one axis or more."""
    found = [one if one.ndim >= 1 else reshape(one, (1,)) for one in map(_array, arys)]
    return found[0] if len(found) == 1 else tuple(found)


def atleast_2d(*arys: Any) -> Any:
    """Arrays of two axes or more."""
    found = []
    for one in map(_array, arys):
        found.append(one if one.ndim >= 2 else reshape(one, (1, 1)) if one.ndim == 0 else one[None, :])
    return found[0] if len(found) == 1 else tuple(found)


def atleast_3d(*arys: Any) -> Any:
    """Arrays of three axes or more."""
    found = []
    for one in map(_array, arys):
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
    source = _array(array)
    extents = tuple(operator.index(one) for one in shape) if isinstance(shape, Sequence) else (operator.index(shape),)
    if not isinstance(source, ndarray):
        return np.broadcast_to(source, extents)
    if any(extent < 0 for extent in extents):
        raise ValueError("all elements of broadcast shape must be non-negative")
    skip = len(extents) - source.ndim
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
    view = make_view(source._cell, source._row, extents, (element_offset(source), (0,) * skip + tuple(strides)), source)
    view._writeable = False
    return view


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Arrays repeated to their common shape."""
    found = [_array(one) for one in args]
    shape = np.broadcast_shapes(*(one.shape for one in found))
    return tuple(one if one.shape == shape else broadcast_to(one, shape) for one in found)


def flip(m: Any, axis: Any = None) -> Any:
    """Reversed along axes: a view."""
    source = _array(m)
    if not isinstance(source, ndarray):
        return np.flip(source, axis)
    turned = range(source.ndim) if axis is None else _axes(axis, source.ndim)
    offset, strides = element_offset(source), list(element_strides(source))
    for k in turned:
        if source.shape[k]:
            offset += strides[k] * (source.shape[k] - 1)
        strides[k] = -strides[k]
    if isinstance(source, Scalar):
        return source
    return view_of(source, offset, source.shape, tuple(strides))


def fliplr(m: Any) -> Any:
    """Reversed along the second axis."""
    if _array(m).ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """Reversed along the first axis."""
    if _array(m).ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Rotated by quarter turns in the plane of two axes."""
    source = _array(m)
    first, second = tuple(axes)
    if first == second or abs(first - second) == source.ndim:
        raise ValueError("Axes must be different.")
    turns = k % 4
    if turns == 0:
        return source[:]
    if turns == 2:
        return flip(flip(source, first), second)
    if turns == 1:
        return swapaxes(flip(source, second), first, second)
    return flip(swapaxes(source, first, second), second)


# --- other dtypes


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
    source = _array(a)
    wanted = np.dtype(dtype)
    row = dtypes.find(wanted.newbyteorder("="))
    if not isinstance(source, ndarray):
        return array(np.asarray(source).astype(wanted, order, casting))  # type: ignore[call-overload]
    if not np.can_cast(source.dtype, wanted, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data from {source.dtype!r} to {wanted!r} according to the rule {casting!r}")
    if row is None:
        return borrowed_value(source).astype(wanted)
    same = row is source._row
    if same and not copy:
        return source
    if same and not isinstance(source, Scalar):
        return copy_of(source, order)
    node = cast(read(source), row)
    node.record(user_frame())
    if isinstance(source, Scalar):
        return wrap(node)
    axes = memory_order(element_strides(source), source.shape, order)
    return wrap_in_order(node, axes) if source.shape else wrap_array(node)


def view(a: ndarray, dtype: Any = None, type: Any = None) -> Any:
    """The same memory seen as another dtype.

    With the array's own dtype this is a view. With another one the bytes are reinterpreted in a new array, which does not
    share later writes.
    """
    if dtype is None or (isinstance(dtype, np.dtype) and dtype == a.dtype) or dtype is ndarray:
        return a if isinstance(a, Scalar) else view_of(a, element_offset(a), a.shape, element_strides(a))
    wanted = np.dtype(dtype)
    if wanted == a.dtype:
        return view_of(a, element_offset(a), a.shape, element_strides(a))
    seen = borrowed_value(a).view(wanted)
    return from_numpy(seen) if dtypes.find(wanted.newbyteorder("=")) is not None else seen.copy()


def clip(
    a: Any,
    a_min: Any = NO_VALUE,
    a_max: Any = NO_VALUE,
    out: Any = None,
    *,
    min: Any = NO_VALUE,
    max: Any = NO_VALUE,
    **keywords: Any,
) -> Any:
    """Elements limited to an interval: ``minimum(maximum(a, low), high)``."""
    low = min if a_min is NO_VALUE else a_min
    high = max if a_max is NO_VALUE else a_max
    if (min is not NO_VALUE and a_min is not NO_VALUE) or (max is not NO_VALUE and a_max is not NO_VALUE):
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    low = None if low is NO_VALUE else low
    high = None if high is NO_VALUE else high
    result = a if isinstance(a, ndarray) else as_operand(a)
    if low is None and high is None:
        return UFUNCS["positive"](result) if out is None else UFUNCS["positive"](result, out=out)
    if low is not None:
        result = UFUNCS["maximum"](result, low)
    if high is not None:
        result = UFUNCS["minimum"](result, high)
    return result if out is None else UFUNCS["positive"](result, out=out, **keywords)


# --- choosing elements


def where(condition: Any, x: Any = NO_VALUE, y: Any = NO_VALUE, /) -> Any:
    """Elements of `x` where `condition` holds, else of `y`; with one argument, the indices where it holds.

    Examples
    --------
    >>> import blockarray as np
    >>> np.where(np.arange(4) < 2, 1.0, 0.0)
    array([1., 1., 0., 0.])
    """
    if x is NO_VALUE and y is NO_VALUE:
        return nonzero(condition)
    if x is NO_VALUE or y is NO_VALUE:
        raise ValueError("either both or neither of x and y should be given")
    try:
        mask = as_operand(condition)
        operands = [one if type(one) in (int, float, bool) else as_operand(one) for one in (x, y)]
    except TypeError:
        return call_numpy(np.where, (condition, x, y), {})
    kinds = [one.dtype if isinstance(one, ndarray) else one for one in operands]
    found = dtypes.find(np.result_type(*kinds))
    if found is None:
        return call_numpy(np.where, (condition, x, y), {})
    arrays = [one for one in (mask, *operands) if isinstance(one, ndarray)]
    device = next((one._cell.node.device for one in arrays if one.shape), mask._cell.node.device)
    nodes = [
        cast(transferred_node(one, device), found) if isinstance(one, ndarray) else number_node(one, found, device)
        for one in operands
    ]
    test = cast(transferred_node(mask, device), dtypes.boolean)
    chosen = where_node(test, nodes[0], nodes[1])
    chosen.record(user_frame())
    return wrap(chosen) if chosen.shape else wrap_array(chosen)


def transferred_node(one: ndarray, device: Any) -> Node:
    """The array's node on `device`."""
    node = read(one)
    return node if node.device is device else read(one.to_device(device.device))  # type: ignore[attr-defined]


def nonzero(a: Any) -> Any:
    """Indices of the elements that are not zero, an array for each axis."""
    return call_numpy(np.nonzero, (a,), {}, by_design=True)


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Elements at indices along an axis, or of the flattened array."""
    source = _array(a)
    if not isinstance(source, ndarray) or isinstance(out, np.ndarray):
        return call_numpy(np.take, (a, indices), {"axis": axis, "out": out, "mode": mode}, by_design=True)
    if axis is None:
        source, place = ravel(source), 0
    else:
        place = _axis(axis, source.ndim)
    index = as_operand(indices)
    if index._row.kind not in ("signed", "unsigned"):
        if index.size == 0 and index._row.kind == "float":
            index = astype(index, np.int64)
        else:
            raise TypeError(
                f"Cannot cast array data from {index.dtype!r} to dtype('int64') according to the rule 'safe'"
            )
    extent = source.shape[place]
    if mode == "wrap":
        index = astype(index, np.int64) % extent  # type: ignore[operator]
    elif mode == "clip":
        index = clip(astype(index, np.int64), 0, extent - 1)
    elif mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if isinstance(source, Scalar):
        source = reshape(source, (1,))
    result = source[(slice(None),) * place + (index,)]
    if out is None:
        return result
    return UFUNCS["positive"](result, out=out)


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Elements at indices that differ from place to place along an axis."""
    return call_numpy(np.take_along_axis, (arr, indices), {"axis": axis}, by_design=True)


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Replace elements of the flattened array."""
    call_numpy(np.put, (a, ind, v), {"mode": mode}, changes=(0,), by_design=True)


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Replace elements where a mask holds, by the values at the same places (repeated)."""
    call_numpy(np.putmask, (a, mask, values), {}, changes=(0,), by_design=True)


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Replace elements where a mask holds, by values in order."""
    call_numpy(np.place, (arr, mask, vals), {}, changes=(0,), by_design=True)


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Copy values into an array."""
    if not isinstance(dst, ndarray):
        raise TypeError(f"copyto() argument 1 must be blockarray.ndarray, not {type(dst).__name__}")
    value = as_operand(src)
    if not np.can_cast(value.dtype, dst.dtype, casting):  # type: ignore[arg-type]
        if not (type(src) in (int, float, bool) and np.can_cast(np.min_scalar_type(src), dst.dtype, casting)):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast array data from {value.dtype!r} to {dst.dtype!r} according to the rule {casting!r}"
            )
    if where is True:
        dst[...] = value
    else:
        dst[...] = globals()["where"](where, value, dst)


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Elements of the choice that `a` names at each place."""
    given = {"mode": mode} if out is None else {"mode": mode, "out": out}
    return call_numpy(np.choose, (a, choices), given, by_design=True)


def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Slices along an axis where a condition holds."""
    given = {"axis": axis} if out is None else {"axis": axis, "out": out}
    return call_numpy(np.compress, (condition, a), given, by_design=True)


def extract(condition: Any, arr: Any) -> Any:
    """Elements of the flattened array where a condition holds."""
    return call_numpy(np.extract, (condition, arr), {}, by_design=True)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each place, the choice of the first condition that holds."""
    return call_numpy(np.select, (condlist, choicelist), {"default": default}, by_design=True)


def diagonal(a: Any, offset: int = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """A diagonal: a read-only view."""
    source = _array(a)
    if not isinstance(source, ndarray):
        return np.diagonal(source, offset, axis1, axis2)
    if source.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = _axis(axis1, source.ndim, "axis1"), _axis(axis2, source.ndim, "axis2")
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    strides, start = element_strides(source), element_offset(source)
    rows, columns = source.shape[first], source.shape[second]
    if offset >= 0:
        count, start = min(rows, columns - offset), start + offset * strides[second]
    else:
        count, start = min(rows + offset, columns), start - offset * strides[first]
    count = max(count, 0)
    kept = [k for k in range(source.ndim) if k not in (first, second)]
    shape = (*(source.shape[k] for k in kept), count)
    found = view_of(
        source,
        start if count else element_offset(source),
        shape,
        (*(strides[k] for k in kept), strides[first] + strides[second]),
    )
    found._writeable = False
    return found


def diag(v: Any, k: int = 0) -> Any:
    """A diagonal of a matrix, or a matrix with a diagonal."""
    source = _array(v)
    if source.ndim == 2:
        return copy_of(diagonal(source, k)) if isinstance(source, ndarray) else np.diag(source, k)
    return call_numpy(np.diag, (v,), {"k": k}, by_design=True)


def trace(a: Any, offset: int = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    """Sum along a diagonal."""
    return sum_along(diagonal(a, offset, axis1, axis2), -1, dtype, out)


def tril(m: Any, k: int = 0) -> Any:
    """The lower triangle; zeros above."""
    return _triangle(m, k, lower=True)


def triu(m: Any, k: int = 0) -> Any:
    """The upper triangle; zeros below."""
    return _triangle(m, k, lower=False)


def _triangle(m: Any, k: int, lower: bool) -> Any:
    source = _array(m)
    if not isinstance(source, ndarray) or source.ndim < 2:
        return call_numpy(np.tril if lower else np.triu, (m,), {"k": k}, by_design=True)
    rows, columns = source.shape[-2:]
    down = reshape(asanyarray(np.arange(rows)), (rows, 1))
    across = asanyarray(np.arange(columns))
    inside = (across - down <= k) if lower else (across - down >= k)
    return where(inside, source, source.dtype.type(0))


# --- joining and parting


def _joined_dtype(arrays: Sequence[Any], dtype: Any, casting: str) -> Any:
    wanted = np.result_type(*(one.dtype for one in arrays)) if dtype is None else np.dtype(dtype)
    for one in arrays:
        if not np.can_cast(one.dtype, wanted, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast array data from {one.dtype!r} to {wanted!r} according to the rule {casting!r}"
            )
    return wanted


def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """Arrays one after the other along an axis.

    Raises
    ------
    ValueError
        If there are none, or other axes differ.

    Examples
    --------
    >>> import blockarray as np
    >>> np.concatenate([np.arange(2), np.arange(3)])
    array([0, 1, 0, 1, 2])
    """
    parts = [_array(one) for one in arrays]
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    if not all(isinstance(one, ndarray) for one in parts) or isinstance(out, np.ndarray):
        given = {"axis": axis, "out": out, "dtype": dtype, "casting": casting}
        return call_numpy(np.concatenate, (arrays,), {k: v for k, v in given.items() if v is not None or k == "axis"})
    if axis is None:
        parts, axis = [ravel(one) for one in parts], 0
    rank = parts[0].ndim
    if rank == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    along = _axis(axis, rank)
    for number, one in enumerate(parts[1:], 1):
        if one.ndim != rank:
            raise ValueError(
                "all the input arrays must have same number of dimensions, but the array at index 0 has "
                f"{rank} dimension(s) and the array at index {number} has {one.ndim} dimension(s)"
            )
        for k in range(rank):
            if k != along and one.shape[k] != parts[0].shape[k]:
                raise ValueError(
                    "all the input array dimensions except for the concatenation axis must match exactly, but along "
                    f"dimension {k}, the array at index 0 has size {parts[0].shape[k]} and the array at index {number} has "
                    f"size {one.shape[k]}"
                )
    wanted = _joined_dtype(parts, dtype if out is None else out.dtype, casting)
    extents = list(parts[0].shape)
    extents[along] = sum(one.shape[along] for one in parts)
    if out is None:
        result = zeros_for(tuple(extents), wanted, parts)
    elif out.shape != tuple(extents):
        raise ValueError("Output array is the wrong shape")
    else:
        result = out
    start = 0
    for one in parts:
        stop = start + one.shape[along]
        if stop > start:
            result[(slice(None),) * along + (slice(start, stop),)] = one
        start = stop
    return result


def zeros_for(shape: Shape, dtype: Any, parts: Sequence[ndarray]) -> Any:
    """The array that parts are written to, in their memory order, on their device."""
    from_parts = parts[0]
    made = empty(shape, dtype, device=from_parts.device)
    orders = {memory_order(element_strides(one), one.shape) for one in parts}
    axes = orders.pop() if len(orders) == 1 else None
    if axes is None:
        return made
    back = [0] * len(axes)
    for position, axis in enumerate(axes):
        back[axis] = position
    stored = empty(tuple(shape[k] for k in axes), dtype, device=from_parts.device)
    return transpose(stored, back)


def concat(arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """The same as `concatenate`."""
    return concatenate(arrays, axis, out, dtype=dtype, casting=casting)


def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays along a new axis."""
    parts = [_array(one) for one in arrays]
    if not parts:
        raise ValueError("need at least one array to stack")
    if len({one.shape for one in parts}) != 1:
        raise ValueError("all input arrays must have the same shape")
    place = _axis(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(one, place) for one in parts], place, out, dtype=dtype, casting=casting)


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays below one another."""
    parts = [atleast_2d(one) for one in tup]
    return concatenate(parts, 0, dtype=dtype, casting=casting)


row_stack = vstack


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays beside one another."""
    parts = [atleast_1d(one) for one in tup]
    axis = 0 if parts and parts[0].ndim == 1 else 1
    return concatenate(parts, axis, dtype=dtype, casting=casting)


def dstack(tup: Any) -> Any:
    """Arrays behind one another."""
    return concatenate([atleast_3d(one) for one in tup], 2)


def column_stack(tup: Any) -> Any:
    """One-dimensional arrays as columns."""
    parts = [one if one.ndim >= 2 else reshape(one, (-1, 1)) for one in map(_array, tup)]
    return concatenate(parts, 1)


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Values after an array's, in a new array."""
    if axis is None:
        return concatenate([ravel(_array(arr)), ravel(_array(values))])
    return concatenate([arr, values], axis)


def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """Views of parts that need not be equal."""
    source = _array(ary)
    extent = source.shape[_axis(axis, source.ndim)]
    if isinstance(indices_or_sections, ndarray):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, Sequence | np.ndarray):
        edges = [0, *indices_or_sections, extent]
    else:
        count = operator.index(indices_or_sections)
        if count <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, more = divmod(extent, count)
        sizes = more * [each + 1] + (count - more) * [each]
        edges = [0, *np.cumsum(sizes).tolist()]
    before = (slice(None),) * _axis(axis, source.ndim)
    return [source[(*before, slice(a, b))] for a, b in zip(edges[:-1], edges[1:], strict=True)]


def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """Views of equal parts, or of parts between indices."""
    source = _array(ary)
    if not isinstance(indices_or_sections, Sequence | np.ndarray | ndarray):
        extent = source.shape[_axis(axis, source.ndim)]
        if extent % operator.index(indices_or_sections):
            raise ValueError("array split does not result in an equal division")
    return array_split(source, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts beside one another."""
    source = _array(ary)
    if source.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(source, indices_or_sections, 1 if source.ndim > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts below one another."""
    if _array(ary).ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts behind one another."""
    if _array(ary).ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The entries along an axis."""
    source = _array(x)
    if source.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(moveaxis(source, axis, 0))


# --- repeating and shifting


def tile(A: Any, reps: Any) -> Any:
    """An array repeated along axes."""
    source = _array(A)
    counts = (
        tuple(operator.index(one) for one in reps)
        if isinstance(reps, Sequence | np.ndarray)
        else (operator.index(reps),)
    )
    if not isinstance(source, ndarray):
        return np.tile(source, counts)
    rank = max(source.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - source.ndim) + source.shape
    given = reshape(source, shape)
    spread = tuple(part for n, c in zip(shape, counts, strict=True) for part in (c, n))
    wanted = tuple(n * c for n, c in zip(shape, counts, strict=True))
    grid = tuple(part for n in shape for part in (1, n))
    if all(count == 1 for count in counts):
        return copy_of(given)
    result = reshape(broadcast_to(reshape(given, grid), spread), wanted)
    return copy_of(result, "C") if result._cell is source._cell else result


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Each element repeated along an axis."""
    source = _array(a)
    if not isinstance(source, ndarray):
        return np.repeat(source, repeats, axis)
    if axis is None:
        source, place = ravel(source), 0
    else:
        place = _axis(axis, source.ndim)
    counts = np.asarray(repeats)
    if not np.can_cast(counts.dtype, np.int64, "safe"):
        raise TypeError(f"Cannot cast array data from {counts.dtype!r} to dtype('int64') according to the rule 'safe'")
    extent = source.shape[place]
    if counts.ndim == 0 or counts.size == 1:
        count = int(counts.reshape(-1)[0])
        if count < 0:
            raise ValueError("repeats may not contain negative values.")
        wider = source.shape[: place + 1] + (count,) + source.shape[place + 1 :]
        wanted = (*source.shape[:place], extent * count, *source.shape[place + 1 :])
        result = reshape(broadcast_to(expand_dims(source, place + 1), wider), wanted)
        return copy_of(result, "C") if result._cell is source._cell else result
    if counts.ndim != 1 or counts.size != extent:
        raise ValueError(
            f"operands could not be broadcast together with shape ({extent},) ({','.join(map(str, counts.shape))},)"
        )
    if (counts < 0).any():
        raise ValueError("repeats may not contain negative values.")
    return source[(slice(None),) * place + (np.repeat(np.arange(extent), counts),)]


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements moved along axes; those that leave at one end come in at the other."""
    source = _array(a)
    if not isinstance(source, ndarray):
        return np.roll(source, shift, axis)
    if axis is None:
        return reshape(roll(ravel(source), shift, 0), source.shape)
    places = _axes(axis, source.ndim) if not isinstance(axis, tuple) else tuple(_axis(one, source.ndim) for one in axis)
    pairs = np.broadcast(shift, places)
    if pairs.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    moves = dict.fromkeys(range(source.ndim), 0)
    for amount, place in pairs:
        moves[int(place)] += int(amount)
    result = source
    for place, amount in moves.items():
        extent = result.shape[place]
        if extent == 0 or amount % extent == 0:
            continue
        cut = extent - amount % extent
        before = (slice(None),) * place
        result = concatenate([result[(*before, slice(cut, None))], result[(*before, slice(0, cut))]], place)
    return copy_of(source) if result is source else result


def pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    """An array with more elements at its edges."""
    source = _array(array)
    widths = pad_width if isinstance(pad_width, dict) else np.asarray(pad_width)
    native = mode in ("constant", "edge", "reflect", "symmetric", "wrap")
    simple = not isinstance(widths, dict) and widths.dtype.kind == "i" and "reflect_type" not in keywords
    if not isinstance(source, ndarray) or not native or not simple or 0 in source.shape:
        return call_numpy(np.pad, (array, pad_width), {"mode": mode, **keywords}, by_design=True)
    pairs = np.broadcast_to(widths, (source.ndim, 2))
    if (pairs < 0).any():
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        values = np.broadcast_to(np.asarray(keywords.pop("constant_values", 0)), (source.ndim, 2))
        if keywords:
            raise ValueError(f"unsupported keyword arguments for mode 'constant': {set(keywords)}")
        return _padded_with_numbers(source, pairs, values)
    if keywords:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {set(keywords)}")
    result = source
    for axis, (before, after) in enumerate(pairs.tolist()):
        if before or after:
            index = np.pad(np.arange(source.shape[axis]), (before, after), mode=mode)
            result = take(result, index, axis)
    return copy_of(source) if result is source else result


def _padded_with_numbers(source: ndarray, pairs: np.ndarray, values: np.ndarray) -> ndarray:
    shape = tuple(int(n + before + after) for n, (before, after) in zip(source.shape, pairs, strict=True))
    first = values.reshape(-1)[0] if values.size else 0
    result = full(shape, source.dtype.type(first), source.dtype, device=source.device)
    inner = tuple(slice(int(before), int(before) + n) for n, (before, _) in zip(source.shape, pairs, strict=True))
    if values.size and (values != first).any():
        for axis, ((before, after), (low, high)) in enumerate(zip(pairs, values, strict=True)):
            head = inner[:axis]
            result[(*(slice(None) for _ in head), slice(0, int(before)))] = low
            result[(*(slice(None) for _ in head), slice(shape[axis] - int(after), shape[axis]))] = high
    result[inner] = source
    return result


def diff(a: Any, n: int = 1, axis: Any = -1, prepend: Any = NO_VALUE, append: Any = NO_VALUE) -> Any:
    """Differences of neighbours along an axis."""
    if n == 0:
        return a
    if n < 0:
        raise ValueError("order must be non-negative but got " + repr(n))
    source = _array(a)
    if not isinstance(source, ndarray) or prepend is not NO_VALUE or append is not NO_VALUE:
        given = {} if prepend is NO_VALUE else {"prepend": prepend}
        given |= {} if append is NO_VALUE else {"append": append}
        return call_numpy(np.diff, (a,), {"n": n, "axis": axis, **given}, by_design=True)
    if source.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    before = (slice(None),) * _axis(axis, source.ndim)
    subtract = UFUNCS["not_equal"] if source.dtype == np.bool_ else UFUNCS["subtract"]
    for _ in range(n):
        source = subtract(source[(*before, slice(1, None))], source[(*before, slice(None, -1))])
    return source


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Set the diagonal in place."""
    call_numpy(np.fill_diagonal, (a, val), {"wrap": wrap}, changes=(0,), by_design=True)


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """An array that meets requirements on its memory."""
    if not isinstance(a, ndarray):
        return asanyarray(np.require(a, dtype, requirements))
    return from_numpy(np.require(host_value(a), dtype, requirements))


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
    source = _array(x)
    extents = tuple(window_shape) if isinstance(window_shape, Sequence) else (operator.index(window_shape),)
    if any(extent < 0 for extent in extents):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = (
        tuple(range(source.ndim))
        if axis is None
        else tuple(_axis(one, source.ndim) for one in (axis if isinstance(axis, Sequence) else (axis,)))
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
    source = _array(x)
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
    if 0 not in extents and not 0 <= low <= high < max(source._cell.node.size, 1):
        raise ValueError(
            f"the view would reach from element {low} to {high} of a memory of {source._cell.node.size} elements"
        )
    found = view_of(source, offset, extents, steps)
    found._writeable = writeable and found._writeable
    return found
