"""Choosing elements, and writing at chosen places: where, clip, take, diagonals, triangles, masks."""

import operator
from typing import Any, Final

import numpy as np

from blockarray.assignment import assigned_constant
from blockarray.creation import asanyarray, host_nested, zeros
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Constant, Node, Shape, View, row_major_strides
from blockarray.indexing import subview
from blockarray.manipulation import as_array, astype, axis_number, ravel, reshape
from blockarray.ndarray import (
    Array,
    Scalar,
    cast,
    element_offset,
    element_strides,
    ndarray,
    read,
    transferred,
    user_frame,
    view_of,
    wrap_array,
    wrap_in_order,
    write,
)
from blockarray.overrides import by_method
from blockarray.promotion import broadcast, result_order
from blockarray.reductions import NO_VALUE
from blockarray.reductions import sum as sum_along
from blockarray.ufuncs import UFUNCS, UFunc, as_operand, where_node
from codegen import dtypes
from codegen.dtypes import DType
from codegen.targets.backend import Backend

_PYTHON_NUMBERS: Final = frozenset((int, float, bool))
_MODES: Final = ("raise", "wrap", "clip")

# As many as NumPy takes.
_MOST_CHOICES: Final = 64
_CLIP: Final = UFunc(np._core.umath.clip, ("clip",))  # type: ignore[attr-defined]  # NumPy names no ufunc of its clip


# --- element by element


@by_method
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
    """Elements limited to an interval: ``minimum(maximum(a, low), high)``.

    Raises
    ------
    OverflowError
        If a Python integer is outside the dtype of an integer array, on the side where it would matter.

    Examples
    --------
    >>> import blockarray as np
    >>> np.clip(np.arange(5), 1, 3)
    array([1, 1, 2, 3, 3])
    """
    if a_min is NO_VALUE and a_max is NO_VALUE:
        a_min = None if min is NO_VALUE else min
        a_max = None if max is NO_VALUE else max
    elif a_min is NO_VALUE or a_max is NO_VALUE:
        missing = "a_min" if a_min is NO_VALUE else "a_max"
        raise TypeError(f"clip() missing 1 required positional argument: '{missing}'")
    elif min is not NO_VALUE or max is not NO_VALUE:
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    return clip_method(as_array(a), a_min, a_max, out, **keywords)


def clip_method(a: Any, min: Any = None, max: Any = None, out: Any = None, **keywords: Any) -> Any:
    """Elements limited to an interval: ``minimum(maximum(a, min), max)``; None is no limit."""
    if a.dtype.kind in "iu":
        limits = np.iinfo(a.dtype)
        if type(min) is int and min <= limits.min:
            min = None
        if type(max) is int and max >= limits.max:
            max = None
    if out is not None:
        keywords["out"] = out
    if min is None and max is None:
        return UFUNCS["positive"](a, **keywords)
    if min is None:
        return UFUNCS["minimum"](a, max, **keywords)
    if max is None:
        return UFUNCS["maximum"](a, min, **keywords)
    return _CLIP(a, min, max, **keywords)


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
        operands = [one if type(one) in _PYTHON_NUMBERS else as_operand(one) for one in (x, y)]
    except TypeError:
        return call_numpy(np.where, (condition, x, y), {})
    found = dtypes.find(np.result_type(*(one.dtype if isinstance(one, ndarray) else one for one in operands)))
    if found is None:
        return call_numpy(np.where, (condition, x, y), {})
    arrays = [one for one in (mask, *operands) if isinstance(one, ndarray)]
    device = next((one._cell.node.device for one in arrays if one.shape), mask._cell.node.device)
    first, second = (
        cast(transferred(read(one), device), found) if isinstance(one, ndarray) else _wrapped(one, found, device)
        for one in operands
    )
    shape = broadcast([one._shape for one in arrays])
    chosen = where_node(cast(transferred(read(mask), device), dtypes.boolean), first, second)
    chosen.record(user_frame())
    if not shape:
        return wrap_array(chosen)
    axes = None
    if any(one._view is not None for one in arrays):
        axes = result_order([(one._shape, element_strides(one)) for one in arrays], shape)
    return wrap_in_order(chosen, axes)


def _wrapped(value: bool | int | float, dtype: DType, device: Backend) -> Constant:
    """A Python number as an element of `dtype`; integers that do not fit wrap around, as in a cast."""
    with np.errstate(all="ignore"):
        converted = np.asarray(value).astype(dtype.numpy)
    return assigned_constant(converted[()], dtype, device)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each place, the choice of the first condition that holds."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    conditions = [as_array(one) for one in condlist]
    for number, one in enumerate(conditions):
        if one.dtype != np.bool_:
            raise TypeError(f"invalid entry {number} in condlist: should be boolean ndarray")
    # Python numbers adapt to the arrays beside them, as in NumPy.
    operands = [one if type(one) in _PYTHON_NUMBERS else as_array(one) for one in (*choicelist, default)]
    wanted = np.result_type(*(one if type(one) in _PYTHON_NUMBERS else one.dtype for one in operands))
    row = dtypes.find(wanted)
    arrays = all(isinstance(one, ndarray) or type(one) in _PYTHON_NUMBERS for one in operands)
    if row is None or not arrays:
        return call_numpy(np.select, (condlist, choicelist), {"default": default})
    for one in operands[:-1]:
        own = np.asarray(one).dtype if type(one) in _PYTHON_NUMBERS else one.dtype
        if not np.can_cast(own, wanted, "same_kind"):
            raise TypeError(f"Cannot cast array data from {own!r} to {wanted!r} according to the rule 'same_kind'")
    device = conditions[0]._cell.node.device
    typed = [
        wrap_array(_wrapped(one, row, device)) if type(one) in _PYTHON_NUMBERS else astype(one, wanted, copy=False)
        for one in operands
    ]
    result = typed.pop()
    for condition, choice in zip(reversed(conditions), reversed(typed), strict=True):
        result = where(condition, choice, result)
    shape = broadcast([one._shape for one in (*conditions, *typed)])
    if result._shape != shape:
        result = wrap_array(_spread(read(result), shape))
    return result[()] if not shape else result


def _spread(node: Node, shape: Shape) -> Node:
    """`node` broadcast to `shape`."""
    skip = len(shape) - len(node.shape)
    own = zip(node.shape, row_major_strides(node.shape), strict=True)
    return View(node, 0, shape, (0,) * skip + tuple(0 if extent == 1 else stride for extent, stride in own))


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Elements of the choice that `a` names at each place.

    Parameters
    ----------
    a : array_like of int
    choices : sequence of array_like
    out : ndarray, optional
    mode : {"raise", "wrap", "clip"}
        What happens to numbers that name no choice.

    Examples
    --------
    >>> import blockarray as np
    >>> np.choose(np.array([1, 0, 1]), [np.arange(3), -np.arange(3)])
    array([ 0,  1, -2])
    """
    index = as_array(a)
    listed = [as_array(one) for one in choices]
    count = len(listed)
    native = isinstance(index, ndarray) and all(isinstance(one, ndarray) for one in listed)
    if (
        not native
        or not 0 < count <= _MOST_CHOICES
        or index._row.kind == "float"
        or mode not in _MODES
        or out is not None
    ):
        given = {"mode": mode} if out is None else {"mode": mode, "out": out}
        return call_numpy(np.choose, (a, choices), given, by_design=True)
    index = astype(index, np.int64, copy=False)
    if mode == "raise":
        if index.size and not bool(UFUNCS["logical_and"](index >= 0, index < count).all()):
            raise ValueError("invalid entry in choice array")
    else:
        index = UFUNCS["remainder"](index, count) if mode == "wrap" else clip_method(index, 0, count - 1)
    # Python numbers adapt to the arrays beside them.
    kinds = [one if type(one) in _PYTHON_NUMBERS else typed.dtype for one, typed in zip(choices, listed, strict=True)]
    wanted = np.result_type(*kinds)
    shape = broadcast([one._shape for one in (index, *listed)])
    typed = [astype(one, wanted, copy=False) for one in listed]
    result = typed[0]
    for number, one in enumerate(typed[1:], 1):
        result = where(UFUNCS["equal"](index, number), one, result)
    if result._shape != shape or count == 1:
        result = wrap_array(_spread(read(result), shape))
    return result[()] if not shape else result


# --- by position


def nonzero(a: Any) -> Any:
    """Indices of the elements that are not zero, an array for each axis."""
    return call_numpy(np.nonzero, (a,), {}, by_design=True)


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Elements at indices along an axis, or of the flattened array.

    Parameters
    ----------
    a : array_like
    indices : array_like of int
        Negative ones count from the end.
    axis : int, optional
    out : ndarray, optional
    mode : {"raise", "wrap", "clip"}
        What happens to indices outside the axis.

    Examples
    --------
    >>> import blockarray as np
    >>> np.take(np.arange(5) * 10, [0, -1])
    array([ 0, 40])
    """
    source = as_array(a)
    index = as_array(host_nested(indices) if isinstance(indices, list | tuple) else indices)
    if not isinstance(source, ndarray) or not isinstance(index, ndarray) or isinstance(out, np.ndarray):
        given = {"axis": axis, "mode": mode} if out is None else {"axis": axis, "mode": mode, "out": out}
        return call_numpy(np.take, (a, indices), given, by_design=True)
    if axis is None or source.ndim == 0:
        place = 0 if axis is None else axis_number(axis, 1)
        source = reshape(source, (-1,)) if source.size else reshape(source, (0,))
    else:
        place = axis_number(axis, source.ndim)
    before, extent, after = source._shape[:place], source._shape[place], source._shape[place + 1 :]
    if extent == 0 and index.size and 0 not in before + after:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    if 0 in before or (0 in after and mode != "raise"):
        # Nothing will be read, so NumPy looks at no index.
        index = UFUNCS["multiply"](index, 0)
        source = reshape(source, (*before, 1, *after))
    index = _positions(index, source._shape[place], mode)
    result = source[(slice(None),) * place + (index,)]
    if not isinstance(result, ndarray):
        # An element that exists already.
        result = asanyarray(result) if out is not None else result
    elif result._view is not None or not index._shape:
        node = read(result)
        result = wrap_array(node)[()] if not node.shape else wrap_array(node)
    return result if out is None else _taken_into(out, result)


def _positions(index: ndarray, extent: int, mode: str) -> ndarray:
    """Indices as int64, moved into the axis as `mode` says."""
    if index._row.kind == "float":
        if index.size:
            raise TypeError(
                f"Cannot cast array data from {index.dtype!r} to dtype('int64') according to the rule 'safe'"
            )
        index = astype(index, np.int64)
    if index._row.kind == "boolean":
        index = astype(index, np.int64)
    if index._row is dtypes.uint64 and isinstance(index, Scalar):
        index = astype(index, np.int64)
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if mode == "raise" or extent == 0:
        return index
    index = astype(index, np.int64, copy=False)
    return UFUNCS["remainder"](index, extent) if mode == "wrap" else clip_method(index, 0, extent - 1)


def _taken_into(out: ndarray, result: ndarray) -> ndarray:
    if out._shape != result._shape:
        raise ValueError("output array does not match result of ndarray.take")
    if not np.can_cast(out.dtype, result.dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {out.dtype!r} to {result.dtype!r} according to the rule 'safe'")
    write(out, cast(transferred(read(result), out._cell.node.device), out._row))
    return out


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Elements at indices that differ from place to place along an axis.

    Examples
    --------
    >>> import blockarray as np
    >>> np.take_along_axis(np.array([[30, 10, 20]]), np.array([[1, 2, 0]]), 1)
    array([[10, 20, 30]])
    """
    source, index = as_array(arr), as_array(indices)
    if not isinstance(source, ndarray) or not isinstance(index, ndarray):
        return call_numpy(np.take_along_axis, (arr, indices), {"axis": axis})
    if axis is None:
        if index.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        source, axis = ravel(source), 0
    return source[_along_axis(source, index, axis)]


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Replace elements at indices that differ from place to place along an axis."""
    index = as_array(indices)
    if not isinstance(arr, Array) or not isinstance(index, ndarray) or axis is None:
        changed = (0,) if isinstance(arr, ndarray) else ()
        call_numpy(np.put_along_axis, (arr, indices, values, axis), {}, changes=changed, by_design=True)
        return
    arr[_along_axis(arr, index, axis)] = values


def _along_axis(source: ndarray, index: ndarray, axis: Any) -> tuple:
    """The key that pairs each index with its own place along the other axes."""
    if index._row.kind not in ("signed", "unsigned"):
        raise IndexError("`indices` must be an integer array")
    along = axis_number(axis, source.ndim)
    if index.ndim != source.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    places: list[Any] = []
    for k, extent in enumerate(source._shape):
        shape = tuple(-1 if other == k else 1 for other in range(source.ndim))
        places.append(index if k == along else np.arange(extent).reshape(shape))
    return tuple(places)


def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Slices along an axis where a condition holds."""
    source = as_array(a)
    chosen = np.asarray(condition)
    if not isinstance(source, ndarray) or chosen.ndim != 1:
        given = {"axis": axis} if out is None else {"axis": axis, "out": out}
        return call_numpy(np.compress, (condition, a), given, by_design=True)
    return take(source, np.flatnonzero(chosen), axis, out)


def extract(condition: Any, arr: Any) -> Any:
    """Elements of the flattened array where a condition holds."""
    return take(ravel(as_array(arr)), np.flatnonzero(np.asarray(condition)))


# --- diagonals and triangles


def diagonal(a: Any, offset: int = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """A diagonal: a read-only view.

    Examples
    --------
    >>> import blockarray as np
    >>> np.diagonal(np.arange(9).reshape(3, 3), 1)
    array([1, 5])
    """
    source = as_array(a)
    if not isinstance(source, ndarray):
        return np.diagonal(source, offset, axis1, axis2)
    if source.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = axis_number(axis1, source.ndim, "axis1"), axis_number(axis2, source.ndim, "axis2")
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    offset = operator.index(offset)
    strides, start = element_strides(source), element_offset(source)
    rows, columns = source._shape[first], source._shape[second]
    if offset >= 0:
        count, start = min(rows, columns - offset), start + offset * strides[second]
    else:
        count, start = min(rows + offset, columns), start - offset * strides[first]
    count = max(count, 0)
    kept = [k for k in range(source.ndim) if k not in (first, second)]
    found = view_of(
        source,
        start if count else element_offset(source),
        (*(source._shape[k] for k in kept), count),
        (*(strides[k] for k in kept), strides[first] + strides[second]),
    )
    found._writeable = False
    return found


def diag(v: Any, k: int = 0) -> Any:
    """A diagonal of a matrix, or a matrix with a diagonal."""
    source = as_array(v)
    if not isinstance(source, ndarray):
        return np.diag(source, k)
    if source.ndim == 2:
        return diagonal(source, k)
    if source.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = source._shape[0] + abs(k)
    matrix = zeros((size, size), source.dtype, device=source.device)
    line = subview(matrix, max(k, 0) + max(-k, 0) * size, source._shape, (size + 1,))
    if source.size:
        write(line, read(source))
    return matrix


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
    if not isinstance(source, ndarray) or source.ndim < 1:
        return call_numpy(np.tril if lower else np.triu, (m,), {"k": k}, by_design=True)
    rows, columns = source._shape[-2:] if source.ndim > 1 else source._shape * 2
    down = reshape(asanyarray(np.arange(rows)), (rows, 1))
    difference = UFUNCS["subtract"](asanyarray(np.arange(columns)), down)
    inside = UFUNCS["less_equal" if lower else "greater_equal"](difference, k)
    return where(inside, source, source.dtype.type(0))
