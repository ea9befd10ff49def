"""Repeating, shifting and padding."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockarray.creation import full
from blockarray.fallback import call_numpy
from blockarray.joining import concatenate
from blockarray.manipulation import (
    as_array,
    axis_number,
    axis_numbers,
    broadcast_to,
    expand_dims,
    ravel,
    reshape,
)
from blockarray.ndarray import (
    copy_of,
    ndarray,
)
from blockarray.reductions import NO_VALUE
from blockarray.selection import take
from blockarray.ufuncs import UFUNCS


def tile(A: Any, reps: Any) -> Any:
    """An array repeated along axes."""
    source = as_array(A)
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
    source = as_array(a)
    if not isinstance(source, ndarray):
        return np.repeat(source, repeats, axis)
    if axis is None:
        source, place = ravel(source), 0
    else:
        place = axis_number(axis, source.ndim)
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
    source = as_array(a)
    if not isinstance(source, ndarray):
        return np.roll(source, shift, axis)
    if axis is None:
        return reshape(roll(ravel(source), shift, 0), source.shape)
    places = (
        axis_numbers(axis, source.ndim)
        if not isinstance(axis, tuple)
        else tuple(axis_number(one, source.ndim) for one in axis)
    )
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
    source = as_array(array)
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
    source = as_array(a)
    if not isinstance(source, ndarray) or prepend is not NO_VALUE or append is not NO_VALUE:
        given = {} if prepend is NO_VALUE else {"prepend": prepend}
        given |= {} if append is NO_VALUE else {"append": append}
        return call_numpy(np.diff, (a,), {"n": n, "axis": axis, **given}, by_design=True)
    if source.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    before = (slice(None),) * axis_number(axis, source.ndim)
    subtract = UFUNCS["not_equal"] if source.dtype == np.bool_ else UFUNCS["subtract"]
    for _ in range(n):
        source = subtract(source[(*before, slice(1, None))], source[(*before, slice(None, -1))])
    return source
