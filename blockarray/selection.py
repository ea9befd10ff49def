"""Choosing elements: where, clip, take, diagonals, triangles, and writing at chosen places."""

from typing import Any

import numpy as np

from blockarray.creation import asanyarray
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Node
from blockarray.manipulation import as_array, astype, axis_number, ravel, reshape
from blockarray.ndarray import (
    Scalar,
    cast,
    copy_of,
    element_offset,
    element_strides,
    ndarray,
    read,
    user_frame,
    view_of,
    wrap,
    wrap_array,
)
from blockarray.reductions import NO_VALUE
from blockarray.reductions import sum as sum_along
from blockarray.ufuncs import UFUNCS, as_operand, number_node, where_node
from codegen import dtypes


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
    source = as_array(a)
    if not isinstance(source, ndarray) or isinstance(out, np.ndarray):
        return call_numpy(np.take, (a, indices), {"axis": axis, "out": out, "mode": mode}, by_design=True)
    if axis is None:
        source, place = ravel(source), 0
    else:
        place = axis_number(axis, source.ndim)
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
    source = as_array(a)
    if not isinstance(source, ndarray):
        return np.diagonal(source, offset, axis1, axis2)
    if source.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = axis_number(axis1, source.ndim, "axis1"), axis_number(axis2, source.ndim, "axis2")
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
    source = as_array(v)
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
    source = as_array(m)
    if not isinstance(source, ndarray) or source.ndim < 2:
        return call_numpy(np.tril if lower else np.triu, (m,), {"k": k}, by_design=True)
    rows, columns = source.shape[-2:]
    down = reshape(asanyarray(np.arange(rows)), (rows, 1))
    across = asanyarray(np.arange(columns))
    inside = (across - down <= k) if lower else (across - down >= k)
    return where(inside, source, source.dtype.type(0))


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Set the diagonal in place."""
    call_numpy(np.fill_diagonal, (a, val), {"wrap": wrap}, changes=(0,), by_design=True)
