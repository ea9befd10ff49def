"""Joining arrays and parting them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from blockarray.assignment import assign_node
from blockarray.creation import array, empty, in_memory_order
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Shape
from blockarray.manipulation import (
    as_array,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    axis_number,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
)
from blockarray.ndarray import (
    borrowed_value,
    element_strides,
    from_numpy,
    ndarray,
    read,
    transferred,
)

# Bytes up to which pieces that exist are joined at once.
_AT_ONCE: Final = 1 << 18


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
    parts = [as_array(one) for one in arrays]
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
    along = axis_number(axis, rank)
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
    if out is None and _exists_on_host(parts):
        # A kernel for each piece costs more than the bytes. The memory order of the result is NumPy's own choice.
        joined = np.concatenate([borrowed_value(one) for one in parts], along, dtype=wanted, casting=casting)
        return from_numpy(joined, parts[0]._cell.node.device)
    extents = list(parts[0].shape)
    extents[along] = sum(one.shape[along] for one in parts)
    if out is None:
        result = zeros_for(tuple(extents), wanted, parts)
    elif out.ndim != rank:
        raise ValueError("Output array has wrong dimensionality")
    elif out.shape != tuple(extents):
        raise ValueError("Output array is the wrong shape")
    else:
        result = out
    # All parts are read before the first is written: the result may be one of them.
    nodes = [transferred(read(one), result._cell.node.device) for one in parts]
    start = 0
    for node in nodes:
        stop = start + node.shape[along]
        if node.size:
            assign_node(result[(slice(None),) * along + (slice(start, stop),)], node)
        start = stop
    return result


def _exists_on_host(parts: Sequence[ndarray]) -> bool:
    """Whether joining is moving a few bytes from one place of the host's memory to another: nothing is to be computed first."""
    left = _AT_ONCE
    for one in parts:
        node = one._cell.node
        left -= one.nbytes
        if node.buffer is None or node.device.target.kind != "cpu" or left < 0:
            return False
    return True


def zeros_for(shape: Shape, dtype: Any, parts: Sequence[ndarray]) -> Any:
    """The array that parts are written to, in their memory order, on their device."""
    axes = _memory_order(parts)
    device = parts[0].device
    if axes == list(range(len(shape))):
        return empty(shape, dtype, device=device)
    return in_memory_order(empty(tuple(shape[k] for k in axes), dtype, device=device), axes)


def _memory_order(parts: Sequence[ndarray]) -> list[int]:
    """Axes from the outermost in memory to the innermost, as NumPy chooses them: row-major where the parts disagree."""
    axes = list(range(parts[0].ndim))
    for k in range(1, len(axes)):
        inner, place = axes[k], k
        for j in range(k - 1, -1, -1):
            outer, compared, swap = axes[j], False, False
            for one in parts:
                strides = element_strides(one)
                if one.shape[inner] == 1 or one.shape[outer] == 1:
                    continue
                if abs(strides[inner]) <= abs(strides[outer]):
                    swap = False
                elif not compared:
                    swap = True
                compared = True
            if not compared:
                continue
            if not swap:
                break
            place = j
        axes.insert(place, axes.pop(k))
    return axes


def concat(arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """The same as `concatenate`."""
    return concatenate(arrays, axis, out, dtype=dtype, casting=casting)


def _listed(arrays: Any) -> list[Any]:
    if not hasattr(arrays, "__getitem__"):
        raise TypeError('arrays to stack must be passed as a "sequence" type such as list or tuple.')
    return [as_array(one) for one in arrays]


def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays along a new axis.

    Examples
    --------
    >>> import blockarray as np
    >>> np.stack([np.arange(2), np.ones(2)], axis=1)
    array([[0., 1.],
           [1., 1.]])
    """
    parts = _listed(arrays)
    if not parts:
        raise ValueError("need at least one array to stack")
    if len({one.shape for one in parts}) != 1:
        raise ValueError("all input arrays must have the same shape")
    place = axis_number(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(one, place) for one in parts], place, out, dtype=dtype, casting=casting)


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays below one another."""
    return concatenate([atleast_2d(one) for one in _listed(tup)], 0, dtype=dtype, casting=casting)


row_stack = vstack


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays beside one another."""
    parts = [atleast_1d(one) for one in _listed(tup)]
    axis = 0 if parts and parts[0].ndim == 1 else 1
    return concatenate(parts, axis, dtype=dtype, casting=casting)


def dstack(tup: Any) -> Any:
    """Arrays behind one another."""
    return concatenate([atleast_3d(one) for one in _listed(tup)], 2)


def column_stack(tup: Any) -> Any:
    """One-dimensional arrays as columns."""
    return concatenate([one if one.ndim >= 2 else reshape(one, (-1 if one.size else 0, 1)) for one in _listed(tup)], 1)


def block(arrays: Any) -> Any:
    """An array put together from nested lists of blocks: the innermost lists along the last axis, and so on outwards.

    Examples
    --------
    >>> import blockarray as np
    >>> np.block([[np.ones((1, 2)), np.zeros((1, 1))], [np.full((1, 3), 7)]])
    array([[1., 1., 0.],
           [7., 7., 7.]])
    """
    bottom, rank = _depth(arrays, ())
    if bottom and bottom[-1] is None:
        raise ValueError(f"List at {_place_in_words(bottom)} cannot be empty")
    depth = len(bottom)
    result = _joined_blocks(arrays, depth, max(rank, depth), 0)
    return array(result) if depth == 0 else result


def _depth(arrays: Any, place: tuple[int | None, ...]) -> tuple[tuple[int | None, ...], int]:
    """Where the first innermost block is (None at the end: an empty list), and the most axes that a block has."""
    if isinstance(arrays, tuple):
        raise TypeError(
            f"{_place_in_words(place)} is a tuple. Only lists can be used to arrange blocks, and np.block does not allow "
            "implicit conversion from tuple to ndarray."
        )
    if not isinstance(arrays, list):
        return place, as_array(arrays).ndim
    if not arrays:
        return (*place, None), 0
    first, rank = _depth(arrays[0], (*place, 0))
    for number, one in enumerate(arrays[1:], 1):
        found, own = _depth(one, (*place, number))
        rank = max(rank, own)
        if len(found) != len(first):
            raise ValueError(
                f"List depths are mismatched. First element was at depth {len(first)}, but there is an element at depth "
                f"{len(found)} ({_place_in_words(found)})"
            )
        if found[-1] is None:
            first = found
    return first, rank


def _place_in_words(place: tuple[int | None, ...]) -> str:
    return "arrays" + "".join(f"[{one}]" for one in place if one is not None)


def _joined_blocks(arrays: Any, deepest: int, rank: int, depth: int) -> Any:
    if depth == deepest:
        found = as_array(arrays)
        return reshape(found, (1,) * (rank - found.ndim) + found.shape) if found.ndim < rank else found
    return concatenate([_joined_blocks(one, deepest, rank, depth + 1) for one in arrays], depth - deepest)


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Values after an array's, in a new array."""
    if axis is None:
        return concatenate([ravel(as_array(arr)), ravel(as_array(values))])
    return concatenate([arr, values], axis)


def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """Views of parts that need not be equal."""
    source = as_array(ary)
    extent = source.shape[axis]
    along = axis_number(axis, source.ndim)
    edges = _edges(indices_or_sections, extent)
    before = (slice(None),) * along
    return [source[(*before, slice(a, b))] for a, b in zip(edges[:-1], edges[1:], strict=True)]


def _edges(indices_or_sections: Any, extent: int) -> list[int]:
    if _is_listed(indices_or_sections):
        return [0, *(int(one) for one in indices_or_sections), extent]
    count = int(indices_or_sections)
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    each, more = divmod(extent, count)
    sizes = more * [each + 1] + (count - more) * [each]
    return [0, *np.cumsum(sizes).tolist()]


def _is_listed(indices_or_sections: Any) -> bool:
    try:
        len(indices_or_sections)
    except TypeError:
        return False
    return True


def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """Views of equal parts, or of parts between indices.

    Examples
    --------
    >>> import blockarray as np
    >>> np.split(np.arange(5), [1, 3])
    [array([0]), array([1, 2]), array([3, 4])]
    """
    source = as_array(ary)
    if not _is_listed(indices_or_sections) and source.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(source, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts beside one another."""
    source = as_array(ary)
    if source.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(source, indices_or_sections, 1 if source.ndim > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts below one another."""
    if as_array(ary).ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts behind one another."""
    if as_array(ary).ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The entries along an axis."""
    source = as_array(x)
    if source.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(moveaxis(source, axis, 0))
