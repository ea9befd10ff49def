"""Functions that make arrays: from values, from shapes, from ranges."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockarray.execution.device import current_device
from blockarray.foreign import array_given, gives_ours
from blockarray.graph.nodes import Cast, Constant, Iota, Map, Node, Shape, View, row_major_strides, token
from blockarray.ndarray import (
    Cell,
    Scalar,
    borrowed_value,
    cast,
    copy_of,
    element_strides,
    from_numpy,
    make_view,
    memory_order,
    ndarray,
    read,
    transferred,
    wrap_array,
    wrap_in_order,
)
from blockarray.promotion import broadcast
from blockarray.sizes import refuse_too_big
from codegen import dtypes
from codegen.dtypes import DType
from codegen.targets import backend
from codegen.targets.backend import Backend


def kernel_dtype(dtype: Any) -> DType | None:
    """The row of a dtype given in any of NumPy's ways, or None if kernels have no such elements. TypeError as NumPy."""
    return dtypes.find(np.dtype(dtype).newbyteorder("="))


def place_of(device: str | None) -> Backend:
    return current_device() if device is None else backend(device)


# As many as NumPy's arrays have, which show the values of ours.
MOST_AXES = 64


def _shape(shape: Any) -> Shape:
    if isinstance(shape, ndarray):
        shape = shape.tolist()
    extents = (shape,) if not isinstance(shape, Sequence) and not isinstance(shape, np.ndarray) else tuple(shape)
    found = tuple(operator.index(one) for one in extents)
    if len(found) > MOST_AXES:
        raise ValueError(f"maximum supported dimension for an ndarray is currently {MOST_AXES}, found {len(found)}")
    if any(one < 0 for one in found):
        raise ValueError("negative dimensions are not allowed")
    if math.prod(one for one in found if one) >= 1 << 62:
        raise ValueError("array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size.")
    return found


def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: str | None = "K", subok: bool = False,
    ndmin: int = 0, ndmax: int = 0, like: Any = None, device: str | None = None,
) -> Any:  # fmt: skip
    """An array with the value of anything array-like.

    Parameters
    ----------
    object : array_like
    dtype : dtype, optional
        NumPy's choice if absent.
    copy : bool or None
        True makes a new array; None only where needed; False shares a NumPy array's memory or raises ValueError.
    order : {"K", "A", "C", "F"}
    ndmin : int
        Axes that the result has at least.
    device : str, optional
        The current one if absent.

    Returns
    -------
    ndarray
        Or a NumPy array, if the dtype is one that kernels have no elements for (complex, strings, dates, objects).

    Examples
    --------
    >>> import blockarray as np
    >>> np.array([[1, 2], [3, 4]]) * 2
    array([[2, 4],
           [6, 8]])
    """
    order = order or "K"
    place = place_of(device)
    if gives_ours(object):
        object = array_given(object)
    if isinstance(object, ndarray):
        found = _converted(object, dtype, copy, order, place if device is not None else None)
        return _with_axes(found, ndmin)
    if isinstance(object, list | tuple) and holds_arrays(object):
        object = host_nested(object)
    if copy is False:
        value = np.array(object, dtype=dtype, copy=False, ndmin=ndmin)
        if dtypes.find(value.dtype) is not None and value.flags.c_contiguous and place.target.kind == "cpu":
            return from_numpy(value, place, copy=False)
        raise ValueError(
            "Unable to avoid copy while creating an array as requested: expected a C-contiguous host array in native byte "
            "order and an array on the host"
        )
    value = np.array(object, dtype=dtype, order=order, ndmin=ndmin, subok=False, copy=None)  # type: ignore[call-overload]
    if dtypes.find(value.dtype.newbyteorder("=")) is None:
        return value.copy() if value is object else value
    return from_numpy(value, place, order)


def _with_axes(found: ndarray, ndmin: int) -> ndarray:
    missing = ndmin - found.ndim
    if missing <= 0:
        return found
    return found.reshape((1,) * missing + found.shape)  # type: ignore[attr-defined]  # installed by methods


def holds_arrays(values: Any) -> bool:
    pending = [values]
    while pending:
        for one in pending.pop():
            if isinstance(one, ndarray) or gives_ours(one):
                return True
            if isinstance(one, list | tuple):
                pending.append(one)
    return False


def host_nested(values: Any) -> Any:
    if isinstance(values, ndarray):
        value = borrowed_value(values)
        return value[()] if isinstance(values, Scalar) else value
    if isinstance(values, list | tuple):
        return (
            type(values)(host_nested(one) for one in values)
            if type(values) in (list, tuple)
            else list(map(host_nested, values))
        )
    if gives_ours(values):
        return host_nested(array_given(values))
    return values


def _converted(source: ndarray, dtype: Any, copy: bool | None, order: str, place: Backend | None) -> Any:
    row = source._row if dtype is None else kernel_dtype(dtype)
    if row is None:
        return borrowed_value(source).astype(dtype)
    same = row is source._row and (place is None or place is source._cell.node.device)
    if same and copy is not True and not isinstance(source, Scalar) and _has_order(source, order):
        return source
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    node = read(source)
    if place is not None:
        node = transferred(node, place)
    if row is source._row:
        if isinstance(source, Scalar):
            return wrap_array(node)
        return copy_of(source, order) if place is None else wrap_array(node)
    axes = memory_order(element_strides(source), source._shape, order)
    changed = cast(node, row)
    return wrap_in_order(changed, axes) if source._shape else wrap_array(changed)


def _has_order(source: ndarray, order: str) -> bool:
    if order in ("K", "A"):
        return True
    strides = element_strides(source)
    if order == "C":
        return _dense(strides, source._shape)
    return _dense(strides[::-1], source._shape[::-1])


def _dense(strides: tuple[int, ...], shape: Shape) -> bool:
    step = 1
    for stride, extent in zip(reversed(strides), reversed(shape), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """As `array`, without a copy of what is an array of ours already."""
    return array(a, dtype, copy=copy, order=order or "K", device=device)


def asanyarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """The same as `asarray`: there are no subclasses."""
    return asarray(a, dtype, order, device=device, copy=copy)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """A row-major array of one axis or more."""
    return array(a, dtype, copy=None, order="C", ndmin=1)


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """A column-major array of one axis or more."""
    return array(a, dtype, copy=None, order="F", ndmin=1)


def asarray_chkfinite(a: Any, dtype: Any = None, order: str | None = None) -> Any:
    """As `asarray`; ValueError if an element is infinite or NaN."""
    np.asarray_chkfinite(np.asarray(a))
    return asarray(a, dtype, order)


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """A new array with the same value."""
    return array(a, copy=True, order=order)


def _filled(value: Constant, shape: Shape, order: str | None) -> ndarray:
    """An array whose memory does not exist before it is written."""
    refuse_too_big(shape, value.dtype)
    axes = tuple(range(len(shape) - 1, -1, -1)) if order == "F" and len(shape) > 1 else None
    stored = shape if axes is None else shape[::-1]
    node = View(value, 0, stored, (0,) * len(stored))
    strides = row_major_strides(stored)
    return make_view(Cell(node), value.dtype, shape, None if axes is None else (0, strides[::-1]), None)


def _number(value: Any, dtype: DType) -> bool | int | float:
    with np.errstate(all="ignore"):
        found = np.asarray(value).astype(dtype.numpy)
    return float(found) if dtype.kind == "float" else found.item()


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: str | None = None, like: Any = None
) -> Any:
    """An array filled with one value.

    Examples
    --------
    >>> import blockarray as np
    >>> np.full((2, 2), 0.5)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    extents = _shape(shape)
    if isinstance(fill_value, ndarray):
        fill_value = borrowed_value(fill_value)
    value = np.asarray(fill_value)
    row = dtypes.find(value.dtype.newbyteorder("=")) if dtype is None else kernel_dtype(dtype)
    if row is None:
        return np.full(extents, fill_value, dtype, order)  # type: ignore[call-overload]
    if value.ndim:
        return from_numpy(np.full(extents, fill_value, dtype, order), place_of(device))  # type: ignore[call-overload]
    if dtype is not None and value.dtype.kind == "c":
        np.full((), fill_value, dtype)
    return _filled(Constant(_checked_number(fill_value, row), row, place_of(device)), extents, order)


def _checked_number(value: Any, row: DType) -> bool | int | float:
    # NumPy itself decides what fits: OverflowError for a Python integer out of bounds, ValueError for a NaN in an integer.
    found = np.full((), value, row.numpy)
    return float(found) if row.kind == "float" else found.item()


def zeros(shape: Any, dtype: Any = float, order: str = "C", *, device: str | None = None, like: Any = None) -> Any:
    """An array of zeros."""
    row = kernel_dtype(dtype)
    if row is None:
        return np.zeros(_shape(shape), dtype, order)  # type: ignore[call-overload]
    return _filled(Constant(_number(0, row), row, place_of(device)), _shape(shape), order)


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: str | None = None, like: Any = None) -> Any:
    """An array of ones."""
    row = kernel_dtype(float if dtype is None else dtype)
    if row is None:
        return np.ones(_shape(shape), dtype, order)  # type: ignore[call-overload]
    return _filled(Constant(_number(1, row), row, place_of(device)), _shape(shape), order)


def empty(shape: Any, dtype: Any = float, order: str = "C", *, device: str | None = None, like: Any = None) -> Any:
    """An array whose elements are to be written; until then they are zero."""
    row = kernel_dtype(dtype)
    if row is None:
        return np.empty(_shape(shape), dtype, order)  # type: ignore[call-overload]
    return zeros(shape, dtype, order, device=device)


def _like(make: Any, a: Any, dtype: Any, order: str, shape: Any, device: str | None, *value: Any) -> Any:
    source = a if isinstance(a, ndarray) else asarray(a)
    wanted = source.dtype if dtype is None else dtype
    extents = source.shape if shape is None else _shape(shape)
    place = device if device is not None else getattr(source, "device", None)
    if isinstance(source, ndarray) and order in ("K", "A") and shape is None:
        axes = memory_order(element_strides(source), source._shape, order)
        if axes is not None:
            made = make(tuple(extents[k] for k in axes), *value, wanted, device=place)
            if not isinstance(made, ndarray):
                return made.transpose(np.argsort(axes))
            return in_memory_order(made, axes)
    kind = "F" if order == "F" else "C"
    return make(extents, *value, wanted, kind, device=place if place != "cpu" or isinstance(source, ndarray) else None)


def in_memory_order(made: ndarray, axes: Sequence[int]) -> ndarray:
    """A fresh row-major array as one of its own whose axis ``axes[k]`` is the fresh one's axis k."""
    own = row_major_strides(made._shape)
    back = sorted(range(len(axes)), key=axes.__getitem__)
    shape, strides = tuple(made._shape[k] for k in back), tuple(own[k] for k in back)
    return make_view(made._cell, made._row, shape, (0, strides), None)


def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: str | None = None
) -> Any:
    """Zeros with the shape, dtype and memory order of `a`."""
    return _like(zeros, a, dtype, order, shape, device)


def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: str | None = None
) -> Any:
    """Ones with the shape, dtype and memory order of `a`."""
    return _like(ones, a, dtype, order, shape, device)


def empty_like(
    prototype: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Any:
    """An array to be written with the shape, dtype and memory order of `prototype`."""
    return _like(empty, prototype, dtype, order, shape, device)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Any:
    """One value with the shape, dtype and memory order of `a`."""
    return _like(full, a, dtype, order, shape, device, fill_value)


def _apply(name: str, a: Node, b: Node) -> Node:
    meaning = ("map", name, a.dtype, b.dtype)
    return Map(name, (a, b), broadcast((a.shape, b.shape)), a.dtype, token(meaning), a.device)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: str | None = None,
    like: Any = None,
) -> Any:
    """Ones on a diagonal, zeros elsewhere."""
    columns = N if M is None else M
    row = kernel_dtype(dtype)
    if row is None:
        return np.eye(N, columns, k, dtype, order)  # type: ignore[call-overload]
    rows, columns, shift = operator.index(N), operator.index(columns), operator.index(k)
    if rows < 0 or columns < 0:
        raise ValueError("negative dimensions are not allowed")
    refuse_too_big((rows, columns), row)
    place = place_of(device)
    down: Node = View(Iota(rows, place), 0, (rows, 1), (1, 0))
    if shift:
        down = _apply("add", down, Constant(shift, dtypes.int64, place))
    across = Iota(columns, place)
    equal = Map(
        "equal",
        (down, across),
        (rows, columns),
        dtypes.boolean,
        token(("map", "equal", dtypes.int64, dtypes.int64)),
        place,
    )
    node: Node = equal if row is dtypes.boolean else Cast(equal, row)
    return wrap_in_order(node, (1, 0) if order == "F" else None)


def identity(n: int, dtype: Any = None, *, like: Any = None) -> Any:
    """The square matrix with ones on its diagonal."""
    return eye(n, dtype=float if dtype is None else dtype)
