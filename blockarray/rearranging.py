"""Repeating, shifting and padding."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockarray.creation import full, host_nested
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Shape, View, row_major_strides
from blockarray.joining import concatenate
from blockarray.manipulation import (
    as_array,
    axis_number,
    broadcast_to,
    expand_dims,
    ravel,
    reshape,
)
from blockarray.ndarray import (
    copy_of,
    ndarray,
    read,
    wrap_array,
)
from blockarray.reductions import NO_VALUE
from blockarray.selection import take
from blockarray.sizes import refuse_too_big
from blockarray.ufuncs import UFUNCS


def tile(A: Any, reps: Any) -> Any:
    """An array repeated along axes.

    Examples
    --------
    >>> import blockarray as np
    >>> np.tile(np.arange(3), 2)
    array([0, 1, 2, 0, 1, 2])
    """
    source = as_array(A)
    listed = reps.tolist() if isinstance(reps, ndarray) else reps
    counts = tuple(operator.index(one) for one in (listed if isinstance(listed, Sequence | np.ndarray) else (listed,)))
    if not isinstance(source, ndarray):
        return np.tile(source, counts)
    if any(count < 0 for count in counts):
        raise ValueError("negative dimensions are not allowed")
    rank = max(source.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - source.ndim) + source.shape
    given = reshape(source, shape)
    if all(count == 1 for count in counts):
        return copy_of(given)
    spread = tuple(part for n, c in zip(shape, counts, strict=True) for part in (c, n))
    wanted = tuple(n * c for n, c in zip(shape, counts, strict=True))
    grid = tuple(part for n in shape for part in (1, n))
    return _copied(broadcast_to(reshape(given, grid), spread), wanted)


def _copied(source: ndarray, shape: Shape) -> ndarray:
    """The elements in row-major order as a new array of another shape."""
    refuse_too_big(shape, source._row)
    return wrap_array(View(read(source), 0, shape, row_major_strides(shape)))


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Each element repeated along an axis.

    Examples
    --------
    >>> import blockarray as np
    >>> np.repeat(np.arange(3), [2, 0, 1])
    array([0, 0, 2])
    """
    source = as_array(a)
    counts = host_nested(repeats) if isinstance(repeats, ndarray | list | tuple) else repeats
    if not isinstance(source, ndarray):
        return np.repeat(source, counts, axis)
    if axis is None or source.ndim == 0:
        if axis is not None:
            axis_number(axis, 1)
        source, place = reshape(source, (source.size,)), 0
    else:
        place = axis_number(axis, source.ndim)
    extent = source.shape[place]
    # NumPy says what the counts mean, and what is wrong with them.
    if np.size(counts) != 1:
        return _in_row_major_order(source[(slice(None),) * place + (np.repeat(np.arange(extent), counts),)])
    np.repeat(np.empty(0), counts)
    count = int(np.asarray(counts).reshape(())[()])
    if count < 0 and extent:
        raise ValueError("negative dimensions are not allowed")
    count = max(count, 0)
    wider = (*source.shape[: place + 1], count, *source.shape[place + 1 :])
    wanted = (*source.shape[:place], extent * count, *source.shape[place + 1 :])
    return _copied(broadcast_to(expand_dims(source, place + 1), wider), wanted)


def _in_row_major_order(found: ndarray) -> ndarray:
    return found if found._view is None else wrap_array(read(found))


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Elements moved along axes; those that leave at one end come in at the other.

    Examples
    --------
    >>> import blockarray as np
    >>> np.roll(np.arange(5), 2)
    array([3, 4, 0, 1, 2])
    """
    source = as_array(a)
    amounts = host_nested(shift) if isinstance(shift, ndarray | list | tuple) else shift
    if not isinstance(source, ndarray):
        return np.roll(source, amounts, axis)
    if axis is None:
        return reshape(roll(ravel(source), amounts, 0), source.shape)
    places = tuple(axis_number(one, source.ndim) for one in (axis if isinstance(axis, tuple | list) else (axis,)))
    pairs = np.broadcast(amounts, places)
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


# --- edges


def pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    """An array with more elements at its edges.

    Parameters
    ----------
    array : array_like
    pad_width : int, pair, pairs or dict
        Elements before and after each axis.
    mode : str or callable
        ``constant``, ``edge``, ``reflect``, ``symmetric``, ``wrap`` and ``empty`` are native; NumPy does the others on the host.

    Examples
    --------
    >>> import blockarray as np
    >>> np.pad(np.arange(3), 2, mode="reflect")
    array([2, 1, 0, 1, 2, 1, 0])
    """
    source = as_array(array)
    widths = pad_width if isinstance(pad_width, dict) else np.asarray(pad_width)
    native = isinstance(mode, str) and mode in ("constant", "empty", "edge", "reflect", "symmetric", "wrap")
    simple = not isinstance(widths, dict) and widths.dtype.kind == "i"
    known = {"constant_values"} if mode == "constant" else set()
    if not (isinstance(source, ndarray) and native and simple and set(keywords) <= known and 0 not in source.shape):
        return call_numpy(np.pad, (array, pad_width), {"mode": mode, **keywords}, by_design=True)
    pairs = np.broadcast_to(widths, (source.ndim, 2))
    if (pairs < 0).any():
        raise ValueError("index can't contain negative values")
    if mode in ("constant", "empty"):
        given = keywords.get("constant_values", 0)
        values = np.broadcast_to(np.asarray(host_nested(given)), (source.ndim, 2))
        with np.errstate(all="ignore"):
            return _padded_with_numbers(source, pairs, values.astype(source.dtype))
    result = source
    for axis, (before, after) in enumerate(pairs.tolist()):
        if before or after:
            index = np.pad(np.arange(source.shape[axis]), (before, after), mode=mode)
            result = take(result, index, axis)
    return copy_of(source) if result is source else result


def _padded_with_numbers(source: ndarray, pairs: np.ndarray, values: np.ndarray) -> ndarray:
    shape = tuple(int(n + before + after) for n, (before, after) in zip(source.shape, pairs, strict=True))
    first = values.reshape(-1)[0] if values.size else 0
    result = full(shape, first, source.dtype, device=source.device)
    inner = tuple(slice(int(before), int(before) + n) for n, (before, _) in zip(source.shape, pairs, strict=True))
    if values.size and (values != first).any():
        # Later axes have the corners.
        for axis, ((before, after), (low, high)) in enumerate(zip(pairs, values, strict=True)):
            head = (slice(None),) * axis
            result[(*head, slice(0, int(before)))] = low
            result[(*head, slice(shape[axis] - int(after), shape[axis]))] = high
    result[inner] = source
    return result


def diff(a: Any, n: int = 1, axis: Any = -1, prepend: Any = NO_VALUE, append: Any = NO_VALUE) -> Any:
    """Differences of neighbours along an axis.

    Examples
    --------
    >>> import blockarray as np
    >>> np.diff(np.array([1, 4, 9, 16]))
    array([3, 5, 7])
    """
    if n == 0:
        return a
    if n < 0:
        raise ValueError("order must be non-negative but got " + repr(n))
    source = as_array(a)
    if not isinstance(source, ndarray):
        given = {} if prepend is NO_VALUE else {"prepend": prepend}
        given |= {} if append is NO_VALUE else {"append": append}
        return call_numpy(np.diff, (a,), {"n": n, "axis": axis, **given})
    if source.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    along = axis_number(axis, source.ndim)
    edge = tuple(1 if k == along else extent for k, extent in enumerate(source.shape))
    parts = [source]
    for place, given in ((0, prepend), (1, append)):
        if given is not NO_VALUE:
            values = as_array(given)
            parts.insert(place * len(parts), values if values.ndim else broadcast_to(values, edge))
    if len(parts) > 1:
        source = concatenate(parts, along)
    before = (slice(None),) * along
    subtract = UFUNCS["not_equal"] if source.dtype == np.bool_ else UFUNCS["subtract"]
    for _ in range(n):
        source = subtract(source[(*before, slice(1, None))], source[(*before, slice(None, -1))])
    return source
