"""Writing through indices, slices and masks.

A write puts an `Update` of the memory's node into the cell, or is done at once where the memory exists on the host, nothing else can read it
and little is written.
"""

import operator
import sys
import weakref
from typing import Any, Final

import numpy as np

from blockarray.creation import holds_arrays, host_nested
from blockarray.execution.evaluate import evaluate_nodes
from blockarray.execution.memory import buffer_of, host_elements, host_view
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Constant, Node, Shape, Source, View, row_major_strides
from blockarray.indexing import Selection, parse, place_of_element, places_of, subview
from blockarray.ndarray import (
    Cell,
    Scalar,
    borrowed_value,
    cast,
    element_offset,
    element_strides,
    from_numpy,
    ndarray,
    read,
    transferred,
    write,
)
from blockarray.scattering import is_too_much, scatter
from blockarray.ufuncs import where_node
from codegen import dtypes
from codegen.dtypes import DType
from codegen.targets.backend import Backend

# Small assignments to a host array whose value exists are done at once: recording them costs more, and every other offset
# would be another plan.
_AT_ONCE: Final = 1 << 14

# NumPy's scalar types stand for lazy scalars as well, whose classes are equal to them.
_NUMBERS: Final = frozenset((int, float, bool, *(dtype.numpy.type for dtype in dtypes.ALL)))

_get_reference_count = sys.getrefcount


def _holders(cell: Cell) -> int:
    return _get_reference_count(cell.node)


# What `_holders` counts of a node that only its cell holds.
_ALONE: Final = _holders(Cell(Node.__new__(Node)))


def setitem(array: ndarray, key: Any, value: Any) -> None:
    """``array[key] = value``."""
    if type(value) in _NUMBERS:
        offset = place_of_element(array, key)
        if offset is not None:
            cell = array._cell
            buffer = cell.node.buffer
            # The path of loops over elements: the memory is there, and nothing recorded reads it.
            if (
                buffer is not None
                and buffer.elements is not None
                and buffer.windows is None
                and not buffer.shared
                and array._writeable
                and cell.node.dtype is array._row
                and not isinstance(value, Scalar)
                and _get_reference_count(cell.node) == _ALONE
            ):
                buffer.elements[offset] = value
                return
            if cell.node.device.target.kind == "cpu":
                _set_element(array, offset, value)
                return
    if isinstance(array, Scalar):
        raise TypeError(f"'numpy.{array.dtype.type.__name__}' object does not support item assignment")
    _check_writeable(array)
    found = parse(array, key)
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
    if isinstance(value, Scalar):
        value = value.numpy_value()
    elements = _exclusive_elements(array._cell)
    if array._row is not array._cell.node.dtype:
        elements = _reinterpreted(elements, array._row)
    elements[offset] = value


def _reinterpreted(elements: np.ndarray, dtype: DType) -> np.ndarray:
    """Memory as a row of elements of another dtype, as many as fit."""
    octets = elements.view(np.uint8)
    return octets[: len(octets) // dtype.itemsize * dtype.itemsize].view(dtype.numpy)


def _exclusive_elements(cell: Cell) -> np.ndarray:
    """The cell's value on the host as a row of elements that nothing else can read: it is copied first if something can."""
    node = cell.node
    if node.buffer is None:
        if isinstance(node, Constant):
            value = np.asarray(node.value).astype(node.dtype.numpy)
            buffer = buffer_of(value, node.dtype, node.device)
            cell.node = Source((), node.dtype, node.device, buffer)
            return host_elements(buffer, node.dtype)
        evaluate_nodes(node)
    buffer, dtype = node.buffer, node.dtype  # type: ignore[assignment]  # it has one now
    if not buffer.shared:
        # Another node takes the value over; if the old one is gone then, nobody else had it.
        reference = weakref.ref(node)
        cell.node = Source(node.shape, dtype, node.device, buffer)
        del node
        if reference() is None and not buffer.is_watched:
            return host_elements(buffer, dtype)
        node = cell.node
    fresh = buffer_of(host_view(buffer, dtype, node.shape), dtype, node.device)
    cell.node = Source(node.shape, dtype, node.device, fresh)
    return host_elements(fresh, dtype)


def writable_host_view(array: ndarray) -> np.ndarray:
    """The array's own memory on the host, to be written at once. Nothing recorded before can read it."""
    _check_writeable(array)
    if array.size == 0:
        return np.empty(array._shape, array.dtype)
    elements = _exclusive_elements(array._cell)
    if array._row is not array._cell.node.dtype:
        elements = _reinterpreted(elements, array._row)
    itemsize = array._row.itemsize
    strides = [stride * itemsize for stride in element_strides(array)]
    return np.ndarray(array._shape, array._row.numpy, elements, element_offset(array) * itemsize, strides)


def assign(target: ndarray, value: Any) -> None:
    """``target[...] = value`` with NumPy's conversion and broadcasting."""
    if isinstance(value, ndarray):
        same_place = value._cell is target._cell and value._shape == target._shape and value._view == target._view
        if same_place and value._row is target._row:
            return  # `x[key] += y` ends with this
        exists = value.size <= _AT_ONCE and _exists_on_host(value._cell.node)
    else:
        exists = not isinstance(value, np.ndarray) or value.size <= _AT_ONCE
    if exists and target.size <= _AT_ONCE and _exists_on_host(target._cell.node):
        # A copy, since what is written may be what is read.
        host = value
        if isinstance(value, ndarray):
            host = np.array(borrowed_value(value))
        elif isinstance(value, list | tuple) and holds_arrays(value):
            host = np.array(host_nested(value), dtype=target.dtype)
        with np.errstate(all="ignore"):
            writable_host_view(target)[...] = host
        return
    device = target._cell.node.device
    assign_node(target, read(value) if isinstance(value, ndarray) else assigned_node(value, target._row, device))


def assign_node(target: ndarray, node: Node) -> None:
    """``target[...] = node`` with NumPy's conversion and broadcasting."""
    node = fitted(node, target._shape)
    write(target, cast(transferred(node, target._cell.node.device), target._row))


def _exists_on_host(node: Node) -> bool:
    if type(node) is View:
        node = node.inputs[0] if node.buffer is None else node
    return node.is_leaf and node.device.target.kind == "cpu"


def assigned_node(value: Any, dtype: DType, device: Backend) -> Node:
    """What is assigned to elements of `dtype`, converted as NumPy does: errors for Python numbers that do not fit."""
    if type(value) in _NUMBERS or isinstance(value, np.generic) or value is None:
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


def _scatter(array: ndarray, key: Any, found: Selection, value: Any) -> None:
    """Assignment through index arrays and masks."""
    if len(found.fancy) == 1 and not found.flags and found.fancy[0].is_mask and _is_single(value):
        _fill_masked(array, found, value)
        return
    device = array._cell.node.device
    if device.target.kind != "cpu":
        places = places_of(array, key)
        if is_too_much(array, places.size):
            call_numpy(operator.setitem, (array, key, value), {}, name="assignment through index arrays", changes=(0,))
            return
        node = read(value) if isinstance(value, ndarray) else assigned_node(value, array._row, device)
        node = _fitted_to_places(node, places.shape)
        scatter(array, places, cast(transferred(node, device), array._row), None, array._row)
        return
    # NumPy sees the values of all that is ours: copies, since what is written may be what is read.
    own = tuple(_host_key(one) for one in key) if type(key) is tuple else _host_key(key)
    given = np.array(borrowed_value(value)) if isinstance(value, ndarray) else host_nested(value)
    writable_host_view(array)[own] = given


def _fitted_to_places(node: Node, shape: Shape) -> Node:
    try:
        return fitted(node, shape)
    except ValueError:
        raise ValueError(
            f"shape mismatch: value array of shape {_listed(node.shape)} could not be broadcast to indexing result of shape "
            f"{_listed(shape)}"
        ) from None


def _host_key(item: Any) -> Any:
    if isinstance(item, ndarray):
        return np.array(borrowed_value(item))
    return host_nested(item) if isinstance(item, list | tuple) else item


def _is_single(value: Any) -> bool:
    if isinstance(value, ndarray):
        return not value._shape
    return type(value) in _NUMBERS or isinstance(value, np.generic)


def _fill_masked(array: ndarray, found: Selection, value: Any) -> None:
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
