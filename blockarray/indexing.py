"""Reading through indices, slices and masks.

Integers, slices, ellipses and new axes give views of the array's memory. Index arrays and masks give copies: a `Gather` on a view
whose indexed axes come first, with the axes that the indices make put where NumPy puts them.
"""

import operator
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Final

import numpy as np

from blockarray.creation import host_nested
from blockarray.execution.evaluate import evaluate_nodes
from blockarray.execution.memory import host_elements
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Constant, Gather, Iota, Map, Node, Reduce, Shape, View, row_major_strides
from blockarray.ndarray import (
    Scalar,
    borrowed_value,
    cast,
    element_offset,
    element_strides,
    from_numpy,
    make_view,
    memory_view,
    ndarray,
    read,
    user_frame,
    view_of,
    wrap,
    wrap_array,
)
from blockarray.promotion import broadcast
from blockarray.ufuncs import UFUNCS, where_node
from codegen import dtypes
from codegen.targets.backend import Backend

_INVALID: Final = "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices"
_INVALID_ARRAY: Final = "arrays used as indices must be of integer (or boolean) type"

IndexArray = ndarray | np.ndarray


# --- what a key selects


@dataclass(slots=True)
class _Fancy:
    """An index array, or a mask for several axes at once, and the axes of the source that it indexes."""

    index: IndexArray
    first_axis: int
    shape: Shape
    strides: tuple[int, ...]

    @property
    def is_mask(self) -> bool:
        return self.index.dtype == np.bool_


@dataclass(slots=True)
class Selection:
    """A parsed key.

    Attributes
    ----------
    offset, shape, strides
        The axes that stay or are new, in the order of the result, with absolute offset and strides in the cell's memory.
    fancy : list of _Fancy
        Index arrays in order.
    flags : list of bool
        Booleans without axes: each indexes nothing and makes an axis of extent 1 or 0.
    place : int
        Where among `shape` the axes of the index arrays go.
    is_copy : bool
        Whether an array without axes stood for an integer: the result is a copy then.
    is_element : bool
        Whether there was an integer for each axis, and nothing else.
    """

    offset: int
    shape: list[int] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)
    fancy: list[_Fancy] = field(default_factory=list)
    flags: list[bool] = field(default_factory=list)
    place: int = 0
    is_copy: bool = False
    is_element: bool = False


class _IntegerArray(int):
    """An integer that was given as an array without axes."""


def _normalized(item: Any) -> Any:
    """An index that is neither None, nor an ellipsis, nor a slice as an int, a bool or an array of integers or booleans."""
    if isinstance(item, int):
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, np.integer):
        return int(item)
    found: IndexArray
    if isinstance(item, ndarray | np.ndarray):
        found = item
    else:
        if not isinstance(item, list | tuple | range) and not hasattr(item, "__array__"):
            try:
                return operator.index(item)
            except TypeError:
                if not hasattr(type(item), "__getitem__") or isinstance(item, str | bytes):
                    raise IndexError(_INVALID) from None
        found = np.asarray(host_nested(item))
        if found.size == 0 and found.dtype == np.float64:
            found = found.astype(np.intp)
    kind = found.dtype.kind
    if kind not in "iub":
        raise IndexError(_INVALID_ARRAY if _is_array(item) else _INVALID)
    if found.ndim:
        return found
    if kind == "b":
        return bool(found)
    return int(found) if isinstance(found, Scalar) else _IntegerArray(int(found))


def _is_array(item: Any) -> bool:
    return isinstance(item, ndarray | np.ndarray) and not isinstance(item, Scalar)


def _axes_taken(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, ndarray | np.ndarray) and item.dtype == np.bool_:
        return item.ndim
    return 1


def parse(array: ndarray, key: Any) -> Selection:
    """What `key` selects; IndexError in NumPy's words."""
    items: list[Any] = []
    taken = 0
    has_ellipsis = has_arrays = only_integers = False
    only_integers = True
    for item in key if type(key) is tuple else (key,):
        one = item
        if item is Ellipsis:
            if has_ellipsis:
                raise IndexError("an index can only have a single ellipsis ('...')")
            has_ellipsis = True
        elif item is not None and not isinstance(item, slice):
            one = _normalized(item)
        is_integer = isinstance(one, int) and not isinstance(one, bool)
        only_integers = only_integers and is_integer
        has_arrays = has_arrays or isinstance(one, bool | ndarray | np.ndarray)
        taken += _axes_taken(one)
        items.append(one)
    rank = len(array._shape)
    if taken > rank:
        raise IndexError(f"too many indices for array: array is {rank}-dimensional, but {taken} were indexed")
    if not has_ellipsis:
        items.append(Ellipsis)
    found = Selection(element_offset(array))
    found.is_element = only_integers and taken == rank and not has_ellipsis
    _fill(found, array, items, rank - taken, has_arrays)
    return found


def _fill(found: Selection, array: ndarray, items: list[Any], missing: int, has_arrays: bool) -> None:
    """Apply the items one after the other."""
    extents, steps = array._shape, element_strides(array)
    axis = 0
    # Index arrays, and integers beside them, make one group of axes: in place if they stand side by side, else in front.
    group_started = group_ended = False
    for item in items:
        in_group = has_arrays and item is not None and not isinstance(item, slice | EllipsisType)
        if in_group:
            if not group_started:
                found.place = len(found.shape)
                group_started = True
            elif group_ended:
                found.place = 0
        elif group_started:
            group_ended = True
        if item is None:
            found.shape.append(1)
            found.strides.append(0)
        elif item is Ellipsis:
            found.shape += extents[axis : axis + missing]
            found.strides += steps[axis : axis + missing]
            axis += missing
        elif isinstance(item, slice):
            start, stop, step = item.indices(extents[axis])
            extent = len(range(start, stop, step))
            if extent:
                found.offset += start * steps[axis]
            found.shape.append(extent)
            found.strides.append(step * steps[axis])
            axis += 1
        elif isinstance(item, bool):
            found.flags.append(item)
        elif isinstance(item, int):
            extent = extents[axis]
            if not -extent <= item < extent:
                _check_width(item)
                raise IndexError(f"index {int(item)} is out of bounds for axis {axis} with size {extent}")
            found.offset += int(item + extent if item < 0 else item) * steps[axis]
            found.is_copy = found.is_copy or isinstance(item, _IntegerArray)
            axis += 1
        else:
            count = _axes_taken(item)
            if item.dtype == np.bool_:
                _check_mask(item, extents, axis, alone=len(items) <= 2 and count == len(extents))
            found.fancy.append(_Fancy(item, axis, extents[axis : axis + count], steps[axis : axis + count]))
            axis += count


def _check_width(index: int) -> None:
    """Refuse an integer that no index can have, in NumPy's words: it takes those beyond 64 bits for objects."""
    if not -(1 << 63) <= index < 1 << 64:
        raise IndexError(_INVALID)
    if index >= 1 << 63:
        raise OverflowError("Python int too large to convert to C long")


def _check_mask(mask: IndexArray, extents: Shape, axis: int, alone: bool) -> None:
    for position, extent in enumerate(mask.shape):
        # NumPy lets empty masks fit any axis, unless they are for the whole array.
        if extent != extents[axis + position] and (extent or alone):
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + position}; size of axis is "
                f"{extents[axis + position]} but size of corresponding boolean axis is {extent}"
            )


# --- reading


def getitem(array: ndarray, key: Any) -> Any:
    """``array[key]``: a view for basic keys, a copy for index arrays and masks, a scalar for an integer per axis."""
    offset = place_of_element(array, key)
    if offset is not None:
        node = array._cell.node
        buffer = node.buffer
        if buffer is not None and buffer.elements is not None and node.dtype is array._row:
            return buffer.elements[offset]
        return _element(array, offset)
    if isinstance(array, Scalar):
        return _of_scalar(array, key)
    found = parse(array, key)
    if found.fancy or found.flags:
        return _gathered(array, found)
    if found.is_element:
        return _element(array, found.offset)
    if found.is_copy:
        copied = memory_view(array, found.offset, tuple(found.shape), tuple(found.strides))
        copied.record(user_frame())
        return wrap_array(copied)
    return subview(array, found.offset, tuple(found.shape), tuple(found.strides))


def subview(array: ndarray, offset: int, shape: Shape, strides: tuple[int, ...]) -> ndarray:
    """A view with absolute offset and strides in the cell's memory; read-only if `array` is, and no view of a scalar."""
    if isinstance(array, Scalar):
        array = wrap_array(read(array))
    view = view_of(array, offset, shape, strides)
    view._writeable = array._writeable
    return view


def place_of_element(array: ndarray, key: Any) -> int | None:
    """Where the element of an integer per axis is; None for other keys and integers out of bounds."""
    shape = array._shape
    view = array._view
    if type(key) is int:
        if len(shape) != 1:
            return None
        if key < 0:
            key += shape[0]
        if not 0 <= key < shape[0]:
            return None
        return key if view is None else view[0] + key * view[1][0]
    if type(key) is not tuple:
        return place_of_element(array, int(key)) if isinstance(key, np.integer) else None
    if len(key) != len(shape) or not key:
        return None
    if len(key) == 2 and view is None:
        i, j = key
        if type(i) is int and type(j) is int:
            # Written out: loops over the elements of a matrix come here.
            extent, width = shape
            if i < 0:
                i += extent
            if j < 0:
                j += width
            return i * width + j if 0 <= i < extent and 0 <= j < width else None
    offset, strides = view if view is not None else (0, row_major_strides(shape))
    for one, extent, stride in zip(key, shape, strides, strict=True):
        if type(one) is not int:
            if not isinstance(one, np.integer):
                return None
            one = int(one)
        if one < 0:
            one += extent
        if not 0 <= one < extent:
            return None
        offset += one * stride
    return offset


def _element(array: ndarray, offset: int) -> Any:
    """The element at `offset` of the cell's memory: a NumPy scalar if it exists on the host, else a lazy one."""
    node = array._cell.node
    buffer = node.buffer
    if node.dtype is not array._row:
        element: View = memory_view(array, offset, (), ())
        element.record(user_frame())
        return wrap(element)
    if buffer is not None and node.device.target.kind == "cpu":
        return host_elements(buffer, array._row)[offset]
    if type(node) is Iota and buffer is None:
        return np.int64(offset)
    if type(node) is View and buffer is None and type(node.inputs[0]) is Constant:
        # All elements are one number, which is known.
        return node.dtype.numpy.type(node.inputs[0].value)
    element = View(node, offset, (), ())
    element.record(user_frame())
    return wrap(element)


def _of_scalar(scalar: Scalar, key: Any) -> Any:
    if type(key) is tuple and not key:
        return scalar
    items = key if type(key) is tuple else (key,)
    if any(_is_integer(one) for one in items):
        raise IndexError("invalid index to scalar variable.")
    return getitem(wrap_array(read(scalar)), key)


def _is_integer(item: Any) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def _gathered(array: ndarray, found: Selection) -> ndarray:
    """The copy that index arrays, masks and booleans select."""
    node = array._cell.node
    nodes, shape, extents, strides = _index_nodes(found, node.device)
    rest = tuple(found.shape)
    gathered: Node
    if not nodes:
        # Only booleans: a new axis of extent 1 or 0.
        gathered = memory_view(array, found.offset, shape + rest, (0,) * len(shape) + tuple(found.strides))
    else:
        base = memory_view(array, found.offset, extents + rest, strides + tuple(found.strides))
        gathered = Gather(base, tuple(_spread(one, shape) for one in nodes))
    gathered.record(user_frame())
    result = wrap_array(gathered)
    if not found.place or not shape:
        return result
    own = row_major_strides(gathered.shape)
    count, place = len(shape), found.place
    final = rest[:place] + shape + rest[place:]
    moved = own[count : count + place] + own[:count] + own[count + place :]
    return make_view(result._cell, result._row, final, (0, moved), None)


def places_of(array: ndarray, key: Any) -> Node:
    """Where the elements of ``array[key]`` are in the memory: int64, of the shape of the result; IndexError as reading."""
    found = parse(array, key)
    device = array._cell.node.device
    rest = tuple(found.shape)
    nodes: list[Node] = []
    strides: tuple[int, ...] = ()
    shape: Shape = (0,) if False in found.flags else (1,) * bool(found.flags)
    if found.fancy:
        nodes, shape, _, strides = _index_nodes(found, device)
    rank = len(shape) + len(rest)
    terms: list[Node] = []
    for one, stride in zip(nodes, strides, strict=True):
        padded = one.shape + (1,) * len(rest)
        terms.append(_times(View(one, 0, padded, row_major_strides(padded)) if rest else one, stride))
    for axis, (extent, stride) in enumerate(zip(rest, found.strides, strict=True), len(shape)):
        along = tuple(extent if k == axis else 1 for k in range(rank))
        moves = tuple(1 if k == axis else 0 for k in range(rank))
        terms.append(_times(View(Iota(extent, device), 0, along, moves), stride))
    if found.offset or not terms:
        terms.append(Constant(found.offset, dtypes.int64, device))
    node = terms[0]
    for term in terms[1:]:
        node = _int64("add", node, term)
    full = shape + rest
    node = _spread(node, full)
    if not found.place or not shape:
        return node
    count, place = len(shape), found.place
    order = (*range(count, count + place), *range(count), *range(count + place, rank))
    own = row_major_strides(full)
    return View(node, 0, tuple(full[k] for k in order), tuple(own[k] for k in order))


def _times(node: Node, factor: int) -> Node:
    return node if factor == 1 else _int64("multiply", node, Constant(factor, dtypes.int64, node.device))


def _int64(name: str, a: Node, b: Node) -> Node:
    known = UFUNCS[name].resolution((dtypes.int64, dtypes.int64))
    assert known is not None
    return Map(name, (a, b), broadcast((a.shape, b.shape)), dtypes.int64, known.tokens[0], a.device)


def _spread(node: Node, shape: Shape) -> Node:
    """`node` broadcast to `shape`."""
    if node.shape == shape:
        return node
    skip = len(shape) - len(node.shape)
    own = row_major_strides(node.shape)
    strides = tuple(0 if extent == 1 else stride for extent, stride in zip(node.shape, own, strict=True))
    return View(node, 0, shape, (0,) * skip + strides)


def _broadcast_indices(shapes: list[Shape]) -> Shape:
    try:
        return broadcast(shapes)
    except ValueError:
        listed = " ".join(str(one).replace(" ", "") for one in shapes)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {listed} "
        ) from None


def _index_nodes(found: Selection, device: Backend) -> tuple[list[Node], Shape, Shape, tuple[int, ...]]:
    """Indices inside the axes and not negative, their common shape, and extents and strides of the axes that they index."""
    expanded: list[tuple[IndexArray, int, int, int, bool]] = []
    for one in found.fancy:
        if not one.is_mask:
            expanded.append((one.index, one.first_axis, one.shape[0], one.strides[0], False))
        elif len(found.fancy) == 1 and not found.flags and _is_row_major(one.shape, one.strides):
            # One position per true element: the axes of the mask are one axis in memory.
            size = int(np.prod(one.shape, dtype=np.int64))
            position = _nonzero(one.index.reshape(-1))[0]  # type: ignore[union-attr]  # installed by methods
            expanded.append((position, one.first_axis, size, one.strides[-1], True))
        else:
            for k, position in enumerate(_nonzero(one.index)):
                expanded.append((position, one.first_axis + k, one.shape[k], one.strides[k], True))
    shape = _broadcast_indices([*((int(flag),) for flag in found.flags), *(index.shape for index, *_ in expanded)])
    empty = 0 in shape  # then NumPy looks at no index
    nodes = [index_node(index, extent, axis, device, checked or empty) for index, axis, extent, _, checked in expanded]
    if empty:
        nodes = [_nothing(node, shape) for node in nodes]
    return nodes, shape, tuple(one[2] for one in expanded), tuple(one[3] for one in expanded)


def _nothing(index: Node, shape: Shape) -> Node:
    """The index broadcast to a shape without elements."""
    return View(Constant(0, dtypes.int64, index.device), 0, shape, (0,) * len(shape))


def _is_row_major(shape: Shape, strides: tuple[int, ...]) -> bool:
    """Whether the axes can be walked as one."""
    return all(strides[k] == strides[k + 1] * shape[k + 1] for k in range(len(shape) - 1))


def _nonzero(mask: IndexArray) -> tuple[IndexArray, ...]:
    if isinstance(mask, np.ndarray):
        return mask.nonzero()
    return call_numpy(np.nonzero, (mask,), {}, name="boolean indexing", by_design=True)


def index_node(index: IndexArray, extent: int, axis: int, device: Backend, checked: bool = False) -> Node:
    """Indices for an axis of length `extent` as a node of int64 without negative numbers; IndexError if one is outside."""
    on_host = isinstance(index, np.ndarray) or index._cell.node.device.target.kind == "cpu"
    if isinstance(index, ndarray) and index._cell.node.device is device and checked:
        return read(index)
    if not on_host and isinstance(index, ndarray) and index._cell.node.device is device:
        return _index_node_on_device(index, extent, axis)
    value = index if isinstance(index, np.ndarray) else borrowed_value(index)
    value = value.astype(np.int64, copy=False)
    if value.size and not checked:
        lowest, highest = int(value.min()), int(value.max())
        if lowest < -extent or highest >= extent:
            _raise_out_of_bounds(value, extent, axis)
        if lowest < 0:
            value = np.where(value < 0, value + extent, value)
            return read(from_numpy(value, device, "C"))
    if isinstance(index, ndarray) and index._cell.node.device is device:
        return cast(read(index), dtypes.int64)
    return read(from_numpy(value, device, "C"))


def _raise_out_of_bounds(value: np.ndarray, extent: int, axis: int) -> None:
    outside = value[(value < -extent) | (value >= extent)]
    raise IndexError(f"index {int(outside.flat[0])} is out of bounds for axis {axis} with size {extent}")


def _index_node_on_device(index: ndarray, extent: int, axis: int) -> Node:
    """As `index_node`: only the smallest and the largest index are looked at on the host."""
    node = cast(read(index), dtypes.int64)
    if not node.size:
        return node
    every = tuple(range(len(node.shape)))
    bounds = [Reduce(name, node, every, dtypes.int64) for name in ("minimum", "maximum")]
    evaluate_nodes(node, *bounds)
    lowest, highest = (int(borrowed_value(wrap_array(one)).reshape(())) for one in bounds)
    if lowest < -extent or highest >= extent:
        _raise_out_of_bounds(borrowed_value(wrap_array(node)), extent, axis)
    if lowest >= 0:
        return node
    array = wrap_array(node)
    return read(where_wrapped(array, extent))


def where_wrapped(index: ndarray, extent: int) -> ndarray:
    """Negative indices counted from the end."""
    negative = UFUNCS["less"](index, 0)
    return wrap_array(where_node(read(negative), read(UFUNCS["add"](index, extent)), read(index)))
