"""Reading and writing through indices, slices and masks.

Integers, slices, ellipses and new axes give views of the array's memory. Index arrays and masks give copies: a `Gather` on a view
whose indexed axes come first, with the axes that the indices make put where NumPy puts them.
"""

import operator
import weakref
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Final

import numpy as np

from blockarray.creation import host_nested
from blockarray.execution.evaluate import evaluate_nodes
from blockarray.execution.memory import buffer_of, host_copy, host_view
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Constant, Gather, Node, Reduce, Shape, Source, View, row_major_strides
from blockarray.ndarray import (
    Cell,
    Scalar,
    borrowed_value,
    cast,
    element_offset,
    element_strides,
    from_numpy,
    make_view,
    ndarray,
    read,
    transferred,
    user_frame,
    view_of,
    wrap,
    wrap_array,
    write,
)
from blockarray.promotion import broadcast
from blockarray.ufuncs import UFUNCS, where_node
from codegen import dtypes
from codegen.dtypes import DType
from codegen.targets.backend import Backend

_INVALID: Final = "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices"
_INVALID_ARRAY: Final = "arrays used as indices must be of integer (or boolean) type"

# Small assignments to a host array whose value exists are done at once: recording them costs more, and every other offset
# would be another plan.
_AT_ONCE: Final = 1 << 14

_NUMPY_DTYPE: Final[dict[DType, np.dtype]] = {dtype: dtype.numpy for dtype in dtypes.ALL}
_PYTHON_NUMBERS: Final = frozenset((int, float, bool))

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
class _Selection:
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
        raise IndexError(_INVALID_ARRAY if found.ndim else _INVALID)
    if found.ndim:
        return found
    if kind == "b":
        return bool(found)
    return int(found) if isinstance(found, Scalar) else _IntegerArray(int(found))


def _axes_taken(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, ndarray | np.ndarray) and item.dtype == np.bool_:
        return item.ndim
    return 1


def _parse(array: ndarray, key: Any) -> _Selection:
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
    found = _Selection(element_offset(array))
    found.is_element = only_integers and taken == rank and not has_ellipsis
    _fill(found, array, items, rank - taken, has_arrays)
    return found


def _fill(found: _Selection, array: ndarray, items: list[Any], missing: int, has_arrays: bool) -> None:
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
    shape = array._shape
    if type(key) is int:
        if len(shape) == 1:
            extent = shape[0]
            position = key + extent if key < 0 else key
            if 0 <= position < extent:
                view = array._view
                return _element(array, position if view is None else view[0] + position * view[1][0])
    elif type(key) is tuple and len(key) == len(shape):
        offset = _element_offset(array, key)
        if offset is not None:
            return _element(array, offset)
    if isinstance(array, Scalar):
        return _of_scalar(array, key)
    found = _parse(array, key)
    if found.fancy or found.flags:
        return _gathered(array, found)
    if found.is_element:
        return _element(array, found.offset)
    if found.is_copy:
        node = View(array._cell.node, found.offset, tuple(found.shape), tuple(found.strides))
        node.record(user_frame())
        return wrap_array(node)
    return subview(array, found.offset, tuple(found.shape), tuple(found.strides))


def subview(array: ndarray, offset: int, shape: Shape, strides: tuple[int, ...]) -> ndarray:
    """A view with absolute offset and strides in the cell's memory; read-only if `array` is, and no view of a scalar."""
    if isinstance(array, Scalar):
        array = wrap_array(read(array))
    view = view_of(array, offset, shape, strides)
    view._writeable = array._writeable
    return view


def _element_offset(array: ndarray, key: tuple) -> int | None:
    """Where the element of an integer per axis is; None for other keys and integers out of bounds."""
    view = array._view
    if view is None:
        offset = 0
        for one, extent in zip(key, array._shape, strict=True):
            if type(one) is not int:
                return None
            if one < 0:
                one += extent
            if not 0 <= one < extent:
                return None
            offset = offset * extent + one
        return offset
    offset = view[0]
    for one, extent, stride in zip(key, array._shape, view[1], strict=True):
        if type(one) is not int:
            return None
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
    if buffer is not None and node.device.target.kind == "cpu":
        row = array._row
        start = offset * row.itemsize
        memory: np.ndarray = buffer.memory.array  # type: ignore[attr-defined]  # host memories have it
        return memory[start : start + row.itemsize].view(_NUMPY_DTYPE[row])[0]
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


def _gathered(array: ndarray, found: _Selection) -> ndarray:
    """The copy that index arrays, masks and booleans select."""
    node = array._cell.node
    nodes, shape, extents, strides = _index_nodes(found, node.device)
    rest = tuple(found.shape)
    gathered: Node
    if not nodes:
        # Only booleans: a new axis of extent 1 or 0.
        gathered = View(node, found.offset, shape + rest, (0,) * len(shape) + tuple(found.strides))
    else:
        base = View(node, found.offset, extents + rest, strides + tuple(found.strides))
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


def _index_nodes(found: _Selection, device: Backend) -> tuple[list[Node], Shape, Shape, tuple[int, ...]]:
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


# --- writing


def setitem(array: ndarray, key: Any, value: Any) -> None:
    """``array[key] = value``."""
    if isinstance(array, Scalar):
        Scalar.__setitem__(array, key, value)
    shape = array._shape
    offset: int | None = None
    if type(key) is int and len(shape) == 1:
        extent = shape[0]
        position = key + extent if key < 0 else key
        if 0 <= position < extent:
            view = array._view
            offset = position if view is None else view[0] + position * view[1][0]
    elif type(key) is tuple and len(key) == len(shape):
        offset = _element_offset(array, key)
    if offset is not None and (type(value) in _PYTHON_NUMBERS or isinstance(value, np.generic)):
        if array._cell.node.device.target.kind == "cpu":
            _set_element(array, offset, value)
            return
    found = _parse(array, key)
    _check_writeable(array)
    if found.fancy or found.flags:
        _scatter(array, key, found, value)
        return
    target = subview(array, found.offset, tuple(found.shape), tuple(found.strides))
    if found.is_element and _rank(value):
        # NumPy decides what a sequence is as an element: an error, but for some booleans.
        holder = np.empty(1, target.dtype)
        holder[0] = host_nested(value)
        value = holder[0]
    assign(target, value)


def _rank(value: Any) -> int:
    if isinstance(value, ndarray | np.ndarray):
        return value.ndim
    return int(isinstance(value, list | tuple))


def _check_writeable(array: ndarray) -> None:
    if not array._writeable:
        raise ValueError("assignment destination is read-only")


def _set_element(array: ndarray, offset: int, value: Any) -> None:
    _check_writeable(array)
    memory = _exclusive_memory(array._cell)
    row = array._row
    start = offset * row.itemsize
    memory[start : start + row.itemsize].view(_NUMPY_DTYPE[row])[0] = value


def _exclusive_memory(cell: Cell) -> np.ndarray:
    """The bytes of the cell's value on the host, which nothing else can read: the value is copied first if something can."""
    node = cell.node
    if node.buffer is None:
        if isinstance(node, Constant):
            value = np.asarray(node.value).astype(node.dtype.numpy)
            cell.node = Source((), node.dtype, node.device, buffer_of(value, node.dtype, node.device))
            return cell.node.buffer.memory.array  # type: ignore[union-attr]
        evaluate_nodes(node)
    buffer = node.buffer
    assert buffer is not None
    if not buffer.shared:
        # Another node takes the value over; if the old one is gone then, nobody else had it.
        reference = weakref.ref(node)
        shape, dtype, device = node.shape, node.dtype, node.device
        cell.node = Source(shape, dtype, device, buffer)
        del node
        old = reference()
        if old is None and not buffer.is_watched:
            return buffer.memory.array  # type: ignore[attr-defined]  # host memories have it
        node = cell.node
    fresh = buffer_of(host_view(buffer, node.dtype, node.shape), node.dtype, node.device)
    cell.node = Source(node.shape, node.dtype, node.device, fresh)
    return fresh.memory.array  # type: ignore[attr-defined]


def writable_host_view(array: ndarray) -> np.ndarray:
    """The array's own memory on the host, to be written at once. Nothing recorded before can read it."""
    _check_writeable(array)
    memory = _exclusive_memory(array._cell)
    itemsize = array._row.itemsize
    if array.size == 0:
        return np.empty(array._shape, array.dtype)
    strides = [stride * itemsize for stride in element_strides(array)]
    return np.ndarray(array._shape, array._row.numpy, memory, element_offset(array) * itemsize, strides)


def assign(target: ndarray, value: Any) -> None:
    """``target[...] = value`` with NumPy's conversion and broadcasting."""
    if isinstance(value, ndarray):
        if value._cell is target._cell and value._shape == target._shape and value._view == target._view:
            return  # `x[key] += y` ends with this
        node = read(value)
    else:
        node = assigned_node(value, target._row, target._cell.node.device)
    assign_node(target, node)


def assign_node(target: ndarray, node: Node) -> None:
    """``target[...] = node`` with NumPy's conversion and broadcasting."""
    node = fitted(node, target._shape)
    if target.size <= _AT_ONCE and _exists_on_host(target._cell.node) and _exists_on_host(node):
        with np.errstate(all="ignore"):
            source = np.array(_host_of(node))
            writable_host_view(target)[...] = source
        return
    write(target, cast(transferred(node, target._cell.node.device), target._row))


def _exists_on_host(node: Node) -> bool:
    if type(node) is View:
        node = node.inputs[0] if node.buffer is None else node
    return node.is_leaf and node.device.target.kind == "cpu"


def _host_of(node: Node) -> np.ndarray:
    if node.buffer is not None:
        return host_view(node.buffer, node.dtype, node.shape)
    if isinstance(node, Constant):
        return np.asarray(node.value).astype(node.dtype.numpy)
    assert type(node) is View
    return borrowed_value(make_view(Cell(node.inputs[0]), node.dtype, node.shape, (node.offset, node.strides), None))


def assigned_node(value: Any, dtype: DType, device: Backend) -> Node:
    """What is assigned to elements of `dtype`, converted as NumPy does: errors for Python numbers that do not fit."""
    if type(value) in _PYTHON_NUMBERS or isinstance(value, np.generic) or value is None:
        return assigned_constant(value, dtype, device)
    if isinstance(value, np.ndarray):
        converted = value.astype(dtype.numpy, copy=False)
    else:
        converted = np.array(host_nested(value), dtype=dtype.numpy)
    if converted.ndim == 0:
        return assigned_constant(converted[()], dtype, device)
    return read(from_numpy(converted, device, "C"))


def assigned_constant(value: Any, dtype: DType, device: Backend) -> Constant:
    """A number as an element of `dtype`, converted as assignment does."""
    holder = np.empty((), dtype.numpy)
    holder[()] = value
    return Constant(float(holder) if dtype.kind == "float" else holder.item(), dtype, device)


def fitted(node: Node, shape: Shape) -> Node:
    """`node` without the leading axes of extent 1 that `shape` does not have; ValueError if it does not broadcast to it."""
    own = node.shape
    extra = len(own) - len(shape)
    if extra > 0 and all(extent == 1 for extent in own[:extra]):
        own = own[extra:]
        node = View(node, 0, own, row_major_strides(own))
    if len(own) > len(shape) or any(
        extent not in (1, wanted) for extent, wanted in zip(reversed(own), reversed(shape), strict=False)
    ):
        raise ValueError(
            f"could not broadcast input array from shape {_listed(node.shape)} into shape {_listed(shape)}"
        )
    return node


def _listed(shape: Shape) -> str:
    return str(shape).replace(" ", "")


def _scatter(array: ndarray, key: Any, found: _Selection, value: Any) -> None:
    """Assignment through index arrays and masks."""
    if len(found.fancy) == 1 and not found.flags and found.fancy[0].is_mask and _is_single(value):
        _fill_masked(array, found, value)
        return
    if array._cell.node.device.target.kind != "cpu":
        call_numpy(operator.setitem, (array, key, value), {}, name="assignment through index arrays", changes=(0,))
        return
    # NumPy sees the values of all that is ours: copies, since what is written may be what is read.
    own = tuple(_host_key(one) for one in key) if type(key) is tuple else _host_key(key)
    given = np.array(borrowed_value(value)) if isinstance(value, ndarray) else host_nested(value)
    writable_host_view(array)[own] = given


def _host_key(item: Any) -> Any:
    if isinstance(item, ndarray):
        return np.array(borrowed_value(item))
    return host_nested(item) if isinstance(item, list | tuple) else item


def _is_single(value: Any) -> bool:
    if isinstance(value, ndarray):
        return not value._shape
    return type(value) in _PYTHON_NUMBERS or isinstance(value, np.generic)


def _fill_masked(array: ndarray, found: _Selection, value: Any) -> None:
    """One value where a mask is true: a selection between it and the old value, written back whole."""
    one = found.fancy[0]
    device = array._cell.node.device
    row = array._row
    new = (
        cast(transferred(read(value), device), row) if isinstance(value, ndarray) else assigned_node(value, row, device)
    )
    mask = one.index if isinstance(one.index, ndarray) else from_numpy(one.index, device)
    # The axes of the mask in front of the others.
    shape = one.shape + tuple(found.shape)
    target = subview(array, found.offset, shape, one.strides + tuple(found.strides))
    own = transferred(read(mask), device)
    spread = View(own, 0, shape, row_major_strides(own.shape) + (0,) * len(found.shape)) if found.shape else own
    if 0 in shape:
        return
    if array._view is None and not found.shape and shape == array._shape:
        target = array
    write(target, where_node(spread, new, read(target)))


def host_elements(array: ndarray) -> np.ndarray:
    """A copy of the value on the host."""
    evaluate_nodes(array._cell.node)
    node = array._cell.node
    if array._view is None and node.buffer is not None:
        return host_copy(node.buffer, node.dtype, node.shape, node.device)
    return np.array(borrowed_value(array))
