"""Evenly spaced values: maps of an index, so that what uses them computes them instead of reading them.

The formulas are NumPy's own, operation by operation, so the values are its values to the bit.
"""

import math
import operator
from typing import Any

import numpy as np

from blockarray.creation import kernel_dtype, place_of
from blockarray.fallback import from_host
from blockarray.graph.nodes import Cast, Constant, Iota, Map, Node, View, token
from blockarray.manipulation import moveaxis
from blockarray.ndarray import borrowed_value, cast, ndarray, read, user_frame, wrap_array
from blockarray.promotion import broadcast
from blockarray.sizes import refuse_too_big
from blockarray.ufuncs import where_node
from codegen import dtypes
from codegen.dtypes import DType
from codegen.targets.backend import Backend

_MAPPED = (dtypes.float16, dtypes.float32, dtypes.float64)


def _apply(name: str, a: Node, b: Node) -> Node:
    meaning = token(("map", name, a.dtype, b.dtype))
    result = dtypes.boolean if name == "equal" else a.dtype
    return Map(name, (a, b), broadcast((a.shape, b.shape)), result, meaning, a.device)


def arange(
    start: Any = None,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: str | None = None,
    like: Any = None,
) -> Any:
    """Evenly spaced values from `start` to before `stop`.

    Examples
    --------
    >>> import blockarray as np
    >>> np.arange(2, 10, 3)
    array([2, 5, 8])
    >>> np.arange(0, 1, 0.25)
    array([0.  , 0.25, 0.5 , 0.75])
    """
    if start is None and stop is None:
        raise TypeError("arange() requires stop to be specified.")
    if stop is None:
        start, stop = 0, start
    elif start is None:
        start = 0
    step = 1 if step is None else step
    start, stop, step = (borrowed_value(one)[()] if isinstance(one, ndarray) else one for one in (start, stop, step))
    integers = all(
        isinstance(one, int | np.integer) and not isinstance(one, bool | np.bool_) for one in (start, stop, step)
    )
    row = dtypes.int64 if dtype is None and integers else (None if dtype is None else kernel_dtype(dtype))
    first, last, stride = (int(one) if integers else 0 for one in (start, stop, step))
    simple = integers and row is dtypes.int64 and stride != 0 and max(abs(first), abs(last), abs(stride)) < 1 << 62
    plain = simple and all(type(one) is int for one in (start, stop, step)) or simple and dtype is not None
    place = place_of(device)
    if not plain:
        node = _range_of_floats(start, stop, step, dtype, place)
        return from_host(np.arange(start, stop, step, dtype), place) if node is None else _recorded(node)
    count = max(0, -((last - first) // -stride) if stride > 0 else -((first - last) // stride))
    refuse_too_big((count,), dtypes.int64)
    node = Iota(count, place)
    if stride != 1:
        node = _apply("multiply", node, Constant(stride, dtypes.int64, place))
    if first:
        node = _apply("add", node, Constant(first, dtypes.int64, place))
    return _recorded(node)


def _recorded(node: Node) -> ndarray:
    node.record(user_frame())
    return wrap_array(node)


def _range_of_floats(start: Any, stop: Any, step: Any, dtype: Any, place: Backend) -> Node | None:
    """The range as ``start + index * delta``; None where NumPy has another formula or raises an error."""
    numbers = int | float | np.integer | np.floating
    if not all(isinstance(one, numbers) and not isinstance(one, bool) for one in (start, stop, step)):
        return None
    row = dtypes.find(np.arange(start, start, step or 1, dtype).dtype)
    if row not in _MAPPED:
        return None
    with np.errstate(all="ignore"):
        count = _length(start, stop, step)
        if count is None:
            return None
        # The first two elements are converted, and what follows is extrapolated from them.
        known = np.empty(2, row.numpy)
        known[:] = start, start + step
        wide = known.astype(np.float32) if row.is_half else known
        first, second = wide
        delta = second - first
        extrapolated = (first + type(delta)(1) * delta).astype(row.numpy)
    if not np.isfinite(delta) or (first == 0 and np.signbit(first)):
        return None
    refuse_too_big((count,), row)
    working = dtypes.of(wide.dtype)
    index: Node = Iota(count, place)
    scaled = _apply("multiply", Cast(index, working), Constant(float(delta), working, place))
    node = cast(_apply("add", scaled, Constant(float(first), working, place)), row)
    if count > 1 and extrapolated != known[1]:
        node = _with_element(node, index, 1, float(known[1]))
    return node


def _length(start: Any, stop: Any, step: Any) -> int | None:
    """How many elements a range has, by NumPy's arithmetic; None where that is not an ordinary number."""
    if step == 0:
        return None
    distance = stop - start
    steps = float(distance / step)
    if not math.isfinite(steps) or abs(steps) >= 1 << 60:
        return None
    if steps == 0 and distance != 0:
        # The quotient is too small for a float.
        return 0 if math.copysign(1, steps) < 0 else 1
    return max(0, math.ceil(steps))


def _with_element(node: Node, index: Node, position: int, value: float) -> Node:
    """`node` with one of its elements replaced."""
    here = _apply("equal", index, Constant(position, dtypes.int64, node.device))
    return where_node(here, Constant(value, node.dtype, node.device), node)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: str | None = None,
) -> Any:
    """Evenly spaced values from `start` to `stop`, both exactly.

    Parameters
    ----------
    start, stop : array_like
        Arrays give a column of values for each pair of elements.
    num : int
    endpoint : bool
        Whether `stop` is the last value.
    retstep : bool
        Whether to return the step too.
    dtype : dtype, optional
        Integers are rounded down.
    axis : int
        Where the values run along.

    Examples
    --------
    >>> import blockarray as np
    >>> np.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    values = [np.asarray(borrowed_value(one) if isinstance(one, ndarray) else one) for one in (start, stop)]
    place = place_of(device)
    count = operator.index(num)
    given = [one if type(one) in (int, float) else value for one, value in zip((start, stop), values, strict=True)]
    inexact = np.result_type(*given, 0.0)
    working = dtypes.find(inexact)
    result = working if dtype is None else kernel_dtype(dtype)
    if working not in _MAPPED or result is None or count < 0:
        made = np.linspace(
            start=values[0], stop=values[1], num=num, endpoint=endpoint, retstep=retstep, dtype=dtype, axis=axis
        )
        return from_host(made, place)
    assert working is not None
    with np.errstate(all="ignore"):
        first, last = values
        delta = np.subtract(last, first, dtype=inexact)
        intervals = count - 1 if endpoint else count
        step = delta / intervals if intervals > 0 else np.nan
    index: Node = Iota(count, place)
    column: Node = View(index, 0, (count,) + (1,) * delta.ndim, (1,) + (0,) * delta.ndim)
    node: Node = cast(column, working)
    if intervals > 0 and np.all(step != 0):
        node = _apply("multiply", node, _operand(np.asarray(step), working, place))
    else:
        if intervals > 0:
            node = _apply("divide", node, Constant(float(intervals), working, place))
        node = _apply("multiply", node, _operand(delta, working, place))
    node = _apply("add", node, _operand(first, working, place))
    if endpoint and count > 1:
        here = _apply("equal", column, Constant(count - 1, dtypes.int64, place))
        node = where_node(here, _operand(last, working, place), node)
    if result.kind in ("signed", "unsigned"):
        node = Map("floor", (node,), node.shape, working, token(("map", "floor", working)), place)
    found: Any = _recorded(cast(node, result))
    if axis != 0:
        found = moveaxis(found, 0, axis)
    return (found, step) if retstep else found


def _operand(value: np.ndarray, dtype: DType, place: Backend) -> Node:
    """A number or an array as an operand of `dtype`."""
    converted = value.astype(dtype.numpy)
    if converted.ndim == 0:
        return Constant(float(converted), dtype, place)
    return read(from_host(converted, place))
