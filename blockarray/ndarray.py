"""ndarray: a mutable cell that holds a node, and a view of that node's memory.

Reading an array captures the node that its cell holds now; writing puts another node into the cell. So an expression that was recorded
never sees a later write, and all views of one cell see every write.
"""

import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, SupportsIndex

import numpy as np

from blockarray.execution.device import current_device
from blockarray.execution.evaluate import evaluate_nodes
from blockarray.execution.memory import buffer_of, host_copy, host_elements, host_view, shared_buffer, view_node
from blockarray.execution.statistics import run as statistics
from blockarray.graph.nodes import (
    Cast,
    Constant,
    Iota,
    Map,
    Node,
    Scatter,
    Shape,
    Source,
    Update,
    View,
    row_major_strides,
    token,
)
from blockarray.graph.recording import linearize
from blockarray.reinterpretation import change_reinterpreted, reinterpreting_view
from blockarray.scalars import NumpyScalar, scalar_type
from blockarray.sizes import refuse_too_big
from codegen import dtypes
from codegen.dtypes import DType
from codegen.targets import backend
from codegen.targets.backend import Backend

# A recording deeper than this, or with more pending nodes, is evaluated by itself: memory stays bounded, kernels stay of a
# size that compiles fast, and nothing that walks a graph ever meets a deep one.
DEEPEST = 64
HEAVIEST = 256
_HEAVIEST_COUNTED_TWICE = 1024

# Lines (code and instruction) where that happened. Others may go on to twice the depth, until such a line comes round.
_bounded_at: set[tuple[int, int]] = set()
_KEPT_PLACES = 4096

_get_frame = sys._getframe
_PACKAGE = __name__.rpartition(".")[0]


class Cell:
    """What an array and all its views share: the node of the whole memory."""

    __slots__ = ("node",)

    node: Node

    def __init__(self, node: Node) -> None:
        self.node = node


class ndarray:
    """A lazy value with NumPy's semantics: what arrays (`Array`, which users see as ``ndarray``) and scalars (`Scalar`) share.

    Made by the creation functions (`array`, `zeros`, `arange` …) and by every function of arrays. An operation on arrays is
    recorded; its value is computed when it is looked at (printed, converted, compared in an ``if`` …), by `evaluate`, or when much has been
    recorded.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    """

    __slots__ = ("_cell", "_shape", "_row", "_view", "_base", "_writeable", "__weakref__")

    _cell: Cell
    _shape: Shape
    _row: DType
    _view: tuple[int, tuple[int, ...]] | None
    _base: "ndarray | None"
    _writeable: bool

    __array_priority__ = 0.0  # as NumPy's arrays

    # --- what it is

    @property
    def shape(self) -> Shape:
        """Length of each axis."""
        return self._shape

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._row.numpy

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for extent in self._shape:
            size *= extent
        return size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._row.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self._row.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one entry to the next along each axis."""
        itemsize = self._row.itemsize
        return tuple(stride * itemsize for stride in element_strides(self))

    @property
    def device(self) -> str:
        """Where the array is: ``"cpu"``, ``"cuda:0"`` …"""
        return self._cell.node.device.device

    @property
    def base(self) -> "ndarray | None":
        """The array whose memory this one is a view of, or None."""
        return self._base

    # --- looking at the value

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        """The value as a new NumPy array. Memory is not shared: a later write to either is not seen by the other."""
        if copy is False:
            raise ValueError(
                "a NumPy array cannot share memory with a blockarray.ndarray, whose recorded expressions must not see later "
                "writes: expected copy=True or None"
            )
        value = host_value(self)
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)

    def asnumpy(self) -> np.ndarray:
        """The value as a new NumPy array.

        Examples
        --------
        >>> import blockarray as np
        >>> type((np.arange(3) + 1).asnumpy())
        <class 'numpy.ndarray'>
        """
        return host_value(self)

    def item(self, *index: SupportsIndex) -> Any:
        """One element as a Python scalar."""
        return borrowed_value(self).item(*index)

    def tolist(self) -> Any:
        """Nested lists of Python scalars."""
        return borrowed_value(self).tolist()

    def tobytes(self, order: str | None = "C") -> bytes:
        """The bytes of the elements."""
        return borrowed_value(self).tobytes(order)  # type: ignore[arg-type]

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def __repr__(self) -> str:
        return repr(borrowed_value(self))

    def __str__(self) -> str:
        return str(borrowed_value(self))

    def __format__(self, specification: str) -> str:
        return format(borrowed_value(self), specification)

    def __bool__(self) -> bool:
        return bool(borrowed_value(self))

    def __int__(self) -> int:
        return int(borrowed_value(self))

    def __float__(self) -> float:
        return float(borrowed_value(self))

    def __complex__(self) -> complex:
        return complex(borrowed_value(self))

    # --- copies

    def __copy__(self) -> "ndarray":
        return copy_of(self)

    def __deepcopy__(self, memo: dict) -> "ndarray":
        return copy_of(self)

    def __reduce__(self) -> tuple:
        return from_numpy, (host_value(self),)

    def __getitem__(self, key: Any) -> Any:
        raise TypeError("indexing is installed by blockarray.methods")


class Array(ndarray):
    """What users see as ``ndarray``: everything but scalars. It has what scalars have not: a length, elements to walk over and to assign."""

    __slots__ = ()

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __index__(self) -> int:
        return borrowed_value(self).__index__()

    def __contains__(self, element: object) -> bool:
        return element in borrowed_value(self)

    def __iter__(self) -> Iterator[Any]:
        if not self._shape:
            raise TypeError("iteration over a 0-d array")
        return self._elements() if len(self._shape) == 1 else (self[position] for position in range(self._shape[0]))

    def _elements(self) -> Iterator[Any]:
        """The elements of an array of one axis, each as it is when it is asked for."""
        cell, row = self._cell, self._row
        offset, strides = self._view if self._view is not None else (0, (1,))
        for position in range(self._shape[0]):
            buffer = cell.node.buffer
            if cell.node.dtype is not row:
                yield self[position]
            elif buffer is not None and buffer.elements is not None:
                yield buffer.elements[offset + position * strides[0]]
            elif buffer is not None and cell.node.device.target.kind == "cpu":
                yield host_elements(buffer, row)[offset + position * strides[0]]
            else:
                yield self[position]

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("indexing is installed by blockarray.methods")

    def __delitem__(self, key: Any) -> None:
        raise ValueError("cannot delete array elements")

    __hash__ = None  # type: ignore[assignment]  # as NumPy's arrays


Array.__name__ = Array.__qualname__ = "ndarray"


class Scalar(NumpyScalar, ndarray):
    """What NumPy returns as a scalar: immutable, hashable, read only when its value is looked at."""

    __slots__ = ()

    def known_value(self) -> np.generic | None:
        """The value if it is on the host already, else None."""
        node = self._cell.node
        buffer = node.buffer
        if buffer is None:
            return self._row.numpy.type(node.value) if type(node) is Constant else None
        if node.device.target.kind != "cpu":
            return None
        return host_elements(buffer, self._row)[0]

    def numpy_value(self) -> Any:
        """The value as NumPy's scalar; computes it."""
        node = self._cell.node
        if node.depth:
            evaluate_nodes(node)
        known = self.known_value()
        return borrowed_value(self)[()] if known is None else known


_SCALARS: dict[DType, type[Scalar]] = {dtype: scalar_type(dtype, Scalar) for dtype in dtypes.ALL}
_new = object.__new__


def wrap(node: Node) -> ndarray:
    """A new array, or a scalar if it has no axes, whose value is `node`, just recorded.

    Remembers the line of the user's program, and evaluates when much has been recorded.
    """
    shape = node.shape
    if node.depth > DEEPEST or node.weight > HEAVIEST:
        _bound(node)
    array = _new(Array if shape else _SCALARS[node.dtype])
    array._cell = Cell(node)
    array._shape = shape
    array._row = node.dtype
    array._view = None
    array._base = None
    array._writeable = True
    return array


def wrap_array(node: Node) -> ndarray:
    """As `wrap`, but an array even if it has no axes."""
    array = wrap(node)
    if node.shape:
        return array
    return make_view(array._cell, node.dtype, (), None, None)


def make_view(
    cell: Cell, dtype: DType, shape: Shape, view: tuple[int, tuple[int, ...]] | None, base: ndarray | None
) -> ndarray:
    """An array on `cell` (a view of `base`, if given): element ``offset + sum(index * strides)`` of the node's row-major memory, all
    of it in order if `view` is None."""
    array = _new(Array)
    array._cell = cell
    array._shape = shape
    array._row = dtype
    array._view = view
    array._base = base
    array._writeable = True if base is None else base._writeable
    return array


def view_of(array: ndarray, offset: int, shape: Shape, strides: tuple[int, ...]) -> ndarray:
    """A view of `array`'s memory, with absolute offset and strides in elements of the cell's row-major memory."""
    base = array._base if array._base is not None else array
    view: tuple[int, tuple[int, ...]] | None = (offset, strides)
    node = array._cell.node
    if offset == 0 and shape == node.shape and array._row is node.dtype and strides == row_major_strides(shape):
        view = None
    found = make_view(array._cell, array._row, shape, view, base)
    found._writeable = array._writeable
    return found


def element_strides(array: ndarray) -> tuple[int, ...]:
    """Strides in elements of the cell's memory."""
    return array._view[1] if array._view is not None else row_major_strides(array._shape)


def element_offset(array: ndarray) -> int:
    """First element in the cell's memory."""
    return array._view[0] if array._view is not None else 0


def read(array: ndarray) -> Node:
    """The node of the array's present value, of the array's shape."""
    if array._view is None:
        return array._cell.node
    offset, strides = array._view
    return memory_view(array, offset, array._shape, strides)


def memory_view(array: ndarray, offset: int, shape: Shape, strides: tuple[int, ...]) -> View:
    """A view of the memory that `array` lies in, as elements of its dtype, with absolute offset and strides."""
    node = array._cell.node
    if node.dtype is not array._row:
        return reinterpreting_view(array._cell, array._row, offset, shape, strides)
    return view_node(node, offset, shape, strides)


def write(array: ndarray, value: Node) -> None:
    """Replace the array's elements by `value`, which has its dtype and its shape or one that broadcasts to it."""
    if not array._writeable:
        raise ValueError("assignment destination is read-only")
    cell = array._cell
    node = cell.node
    if value.device is not node.device:
        value = transferred(value, node.device)
    if array._view is None and value.shape == node.shape:
        cell.node = value
    else:
        offset, strides = array._view if array._view is not None else (0, row_major_strides(array._shape))
        if array.size == 0:
            return
        change = _changing(value, array._row, offset, array._shape, strides)
        if array._row is not node.dtype:
            del node
            change_reinterpreted(cell, array._row, change)
            return
        cell.node = change(node)
    note_write(cell)


def _changing(value: Node, dtype: DType, offset: int, shape: Shape, strides: tuple[int, ...]) -> Callable[[Node], Node]:
    """What makes a memory's new value from the old one, when `value` is written through a view of it."""
    if not repeats_elements(shape, strides):
        return lambda base: Update(base, value, offset, shape, strides)
    # Which of several values an element takes must not depend on how the work is spread: the last one, as in NumPy.
    places = positions_of(offset, shape, strides, value.device)
    skip = len(shape) - len(value.shape)
    own = zip(value.shape, row_major_strides(value.shape), strict=True)
    spread = View(value, 0, shape, (0,) * skip + tuple(0 if extent == 1 else stride for extent, stride in own))
    return lambda base: Scatter(base, places, (spread,), None, dtype)


@lru_cache(maxsize=4096)
def repeats_elements(shape: Shape, strides: tuple[int, ...]) -> bool:
    """Whether two indices of a view may be one element of the memory."""
    reach = 0
    for stride, extent in sorted((abs(stride), extent) for stride, extent in zip(strides, shape, strict=True)):
        if extent == 1:
            continue
        if stride <= reach:
            return True
        reach += stride * (extent - 1)
    return False


def positions_of(offset: int, shape: Shape, strides: tuple[int, ...], device: Backend) -> Node:
    """The elements of the memory that a view shows, as int64 of the view's shape."""
    node: Node = View(Constant(offset, dtypes.int64, device), 0, shape, (0,) * len(shape))
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        if stride == 0:
            continue
        along = View(Iota(extent, device), 0, shape, tuple(int(k == axis) for k in range(len(shape))))
        step = Constant(stride, dtypes.int64, device)
        moved = Map("multiply", (along, step), shape, dtypes.int64, _MULTIPLY, device)
        node = Map("add", (node, moved), shape, dtypes.int64, _ADD, device)
    return node


_MULTIPLY, _ADD = (token(("map", name, dtypes.int64, dtypes.int64)) for name in ("multiply", "add"))


def note_write(cell: Cell) -> None:
    """Remember the line that put a new node into the cell, and evaluate when much has been recorded."""
    cell.node.record(user_frame())
    if cell.node.depth > DEEPEST or cell.node.weight > HEAVIEST:
        _bound(cell.node)


def _bound(node: Node) -> None:
    """Evaluate `node` if it really has too much below it (`weight` counts shared nodes again).

    In a loop the same line is waited for, so that what has piled up is the same each time and its plan is found again.
    """
    pending = 0
    if node.depth <= DEEPEST:
        if node.weight <= _HEAVIEST_COUNTED_TWICE:
            return
        pending = node.weight = len(linearize((node,)).nodes)
        if pending <= HEAVIEST:
            return
    place = (id(node.code), node.instruction)
    if place not in _bounded_at:
        if node.depth <= 2 * DEEPEST and pending <= 2 * HEAVIEST:
            return
        if len(_bounded_at) >= _KEPT_PLACES:
            _bounded_at.clear()
        _bounded_at.add(place)
    evaluate_nodes(node)


def user_frame() -> Any:
    """The innermost frame outside the package: the line of the user's program."""
    frame = _get_frame(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        if frame.f_back is None:
            break
        frame = frame.f_back
    return frame


def transferred(node: Node, device: Backend) -> Node:
    """The value of `node` on another device."""
    if node.device is device:
        return node
    if isinstance(node, Constant):
        return Constant(node.value, node.dtype, device)
    evaluate_nodes(node)
    assert node.buffer is not None
    value = host_copy(node.buffer, node.dtype, node.shape, node.device)
    statistics.transfers += 1
    statistics.transfer_bytes += value.nbytes
    return Source(node.shape, node.dtype, device, buffer_of(value, node.dtype, device))


def borrowed_value(array: ndarray) -> np.ndarray:
    """The value as a NumPy array that must not be written or kept: on the host it is the array's own memory."""
    node = array._cell.node
    if node.dtype is not array._row:
        node = read(array)
        evaluate_nodes(node)
        return _host_array(node)
    if array._view is not None and node.buffer is None and array.size != node.size:
        return _gathered_on_host(node, array._view[0], array._shape, array._view[1])
    if isinstance(node, Constant):
        return np.asarray(node.value).astype(node.dtype.numpy)
    evaluate_nodes(node)
    if array._view is None:
        return _host_array(node)
    offset, strides = array._view
    if array.size == 0:
        return np.empty(array._shape, array.dtype)
    if node.device.target.kind != "cpu":
        return _gathered_on_host(node, offset, array._shape, strides)
    itemsize = array._row.itemsize
    flat = _host_array(node).reshape(-1)
    return np.ndarray(array._shape, array.dtype, flat, offset * itemsize, [s * itemsize for s in strides])


def _gathered_on_host(node: Node, offset: int, shape: Shape, strides: tuple[int, ...]) -> np.ndarray:
    """What a view shows of `node`'s memory, which stays where it is; in the view's memory order."""
    axes = memory_order(strides, shape)
    if axes is None:
        gathered = View(node, offset, shape, strides)
        evaluate_nodes(gathered)
        return _host_array(gathered)
    gathered = View(node, offset, tuple(shape[k] for k in axes), tuple(strides[k] for k in axes))
    evaluate_nodes(gathered)
    return _host_array(gathered).transpose(sorted(range(len(axes)), key=axes.__getitem__))


def _host_array(node: Node) -> np.ndarray:
    if isinstance(node, Constant):
        return np.asarray(node.value).astype(node.dtype.numpy)
    assert node.buffer is not None
    if node.device.target.kind == "cpu":
        return host_view(node.buffer, node.dtype, node.shape)
    statistics.transfers += 1
    statistics.transfer_bytes += node.nbytes
    return host_copy(node.buffer, node.dtype, node.shape, node.device)


def host_value(array: ndarray) -> np.ndarray:
    """The value as a new NumPy array, with the array's memory order."""
    return borrowed_value(array).copy("K")


def from_numpy(value: np.ndarray, device: Backend | None = None, order: str = "K", copy: bool = True) -> ndarray:
    """A new array with the value of a NumPy array whose dtype kernels have; its memory order is kept.

    Parameters
    ----------
    value : numpy.ndarray
        Of a dtype that `codegen.dtypes.find` knows, in either byte order, aligned or not.
    device : Backend, optional
        The current one if absent.
    order : {"K", "A", "C", "F"}
    copy : bool
        False shares the memory of a C-contiguous host array.
    """
    place = current_device() if device is None else device
    native = value.astype(value.dtype.newbyteorder("="), copy=False) if not value.dtype.isnative else value
    dtype = dtypes.of(native.dtype)
    if not copy and native.flags.c_contiguous and place.target.kind == "cpu":
        return wrap_array(Source(native.shape, dtype, place, shared_buffer(native, dtype, place)))
    axes = memory_order(tuple(stride // native.itemsize for stride in native.strides), native.shape, order)
    permuted = native if axes is None else native.transpose(axes)
    node = Source(permuted.shape, dtype, place, buffer_of(permuted, dtype, place))
    return _permuted_back(node, axes)


def memory_order(strides: tuple[int, ...], shape: Shape, order: str = "K") -> tuple[int, ...] | None:
    """The axes from the outermost in memory to the innermost, or None for row-major order; strides are in elements."""
    rank = len(shape)
    if order == "C" or rank < 2:
        return None
    if order == "F" or (order == "A" and _is_column_major(strides, shape)):
        return tuple(range(rank - 1, -1, -1))
    if order == "A":
        return None
    # As NumPy lays out a copy: larger strides outside, those that are equal in row-major order. Axes of extent 1 stay.
    deciding = [axis for axis in range(rank) if shape[axis] != 1]
    by_stride = iter(sorted(deciding, key=lambda axis: -abs(strides[axis])))
    axes = tuple(axis if shape[axis] == 1 else next(by_stride) for axis in range(rank))
    return None if axes == tuple(range(rank)) else axes


def _is_column_major(strides: tuple[int, ...], shape: Shape) -> bool:
    """Whether the elements lie in column-major order without gaps, and not in row-major order too."""
    step = 1
    for stride, extent in zip(strides, shape, strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return tuple(strides) != row_major_strides(shape)


def _permuted_back(node: Node, axes: tuple[int, ...] | None) -> ndarray:
    """An array on `node` whose axis ``axes[k]`` is the node's axis k."""
    if axes is None:
        return wrap_array(node)
    strides = row_major_strides(node.shape)
    shape_back = [0] * len(axes)
    strides_back = [0] * len(axes)
    for k, axis in enumerate(axes):
        shape_back[axis] = node.shape[k]
        strides_back[axis] = strides[k]
    node.record(user_frame())
    return make_view(Cell(node), node.dtype, tuple(shape_back), (0, tuple(strides_back)), None)


def wrap_in_order(node: Node, axes: tuple[int, ...] | None) -> ndarray:
    """As `wrap`, with the result's memory in the order `axes` (outermost first; None: row-major)."""
    if axes is None:
        return wrap(node)
    strides = row_major_strides(node.shape)
    permuted = View(node, 0, tuple(node.shape[a] for a in axes), tuple(strides[a] for a in axes))
    _bound(permuted)
    return _permuted_back(permuted, axes)


def copy_of(array: ndarray, order: str = "K") -> ndarray:
    """A new array with the same value."""
    node = read(array)
    if isinstance(array, Scalar):
        return array
    if array._view is not None:
        refuse_too_big(array._shape, array._row)
    axes = (
        memory_order(element_strides(array), array._shape, order) if array._view is not None or order == "F" else None
    )
    copied = wrap_in_order(node, axes)
    return copied if array._shape else wrap_array(node)


def cast(node: Node, dtype: DType) -> Node:
    """`node` in another dtype; itself if it has it."""
    if node.dtype is dtype:
        return node
    if isinstance(node, Constant):
        with np.errstate(all="ignore"):
            return Constant(
                np.asarray(node.value).astype(node.dtype.numpy).astype(dtype.numpy).item(), dtype, node.device
            )
    return Cast(node, dtype)


# What `evaluate` and `explain` let pass.
_WITH_VALUES = (ndarray, np.ndarray, np.generic, int, float, complex)


def lazy_arrays(function: str, arrays: tuple[Any, ...]) -> list[ndarray]:
    """Those of `arrays` that may have no value yet; TypeError, which names `function`, for what is no array and no number."""
    for array in arrays:
        if not isinstance(array, _WITH_VALUES):
            raise TypeError(
                f"{function}() expected arrays of blockarray (NumPy's arrays and numbers may stand among them), "
                f"found {type(array).__name__}: pass each array as an argument of its own"
            )
    return [array for array in arrays if isinstance(array, ndarray)]


def evaluate(*arrays: ndarray) -> None:
    """Compute arrays now; those that are asked for together share their work.

    Parameters
    ----------
    *arrays : ndarray
        NumPy's arrays and scalars and Python's numbers, which have their values already, may stand among them.

    Raises
    ------
    TypeError
        For any other object.

    Examples
    --------
    >>> import blockarray as np
    >>> x = np.arange(4) * 2
    >>> np.evaluate(x)
    >>> x
    array([0, 2, 4, 6])
    """
    if len(arrays) == 1 and isinstance(arrays[0], ndarray):
        evaluate_nodes(arrays[0]._cell.node)
    else:
        evaluate_nodes(*[array._cell.node for array in lazy_arrays("evaluate", arrays)])


def synchronize() -> None:
    """Wait until the current device has finished all that was asked of it."""
    current_device().synchronize()


def to_device(array: ndarray, name: str) -> ndarray:
    """The array on another device; itself if it is there."""
    place = backend(name)
    node = read(array)
    if node.device is place:
        return array
    return wrap_array(transferred(node, place))
