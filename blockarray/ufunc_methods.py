"""``ufunc.at`` and ``ufunc.reduceat``: positions that repeat are taken one after the other."""

from typing import Any, Final

import numpy as np

from blockarray.assignment import fitted
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Node, Shape
from blockarray.indexing import places_of
from blockarray.manipulation import as_array, astype, axis_number, moveaxis
from blockarray.ndarray import Scalar, cast, ndarray, read, transferred, wrap_array
from blockarray.promotion import Resolution
from blockarray.scattering import is_too_much, scatter
from blockarray.ufuncs import UFunc, number_node, register_methods
from codegen import dtypes
from codegen.dtypes import DType

_PYTHON_NUMBERS: Final = frozenset((int, float, bool))


def at(ufunc: UFunc, array: Any, indices: Any, *values: Any) -> None:
    """``ufunc.at``: the function applied in place at indices, one after the other."""
    found = _resolution(ufunc, array, values)
    if found is None:
        name = f"{ufunc.__name__}.at"
        call_numpy(ufunc.numpy.at, (array, indices, *values), {}, name=name, changes=(0,))
        return
    if not array._writeable:
        raise ValueError("array is read-only")
    places = places_of(array, indices)
    if is_too_much(array, places.size):
        name = f"{ufunc.__name__}.at"
        call_numpy(ufunc.numpy.at, (array, indices, *values), {}, name=name, changes=(0,))
        return
    device = array._cell.node.device
    node: Node | None = None
    if values:
        node = _value_node(values[0], found.inputs[1], places.shape, device)
        if found.rows[0] == "power":
            ufunc._check_exponent((node, node))
    scatter(array, places, node, found.rows[0], found.inputs[0])


def _resolution(ufunc: UFunc, array: Any, values: tuple) -> Resolution | None:
    """The loop, or None where NumPy has to do the work or to raise the error. Python numbers count as the arrays they make, as in NumPy."""
    if not isinstance(array, ndarray) or isinstance(array, Scalar) or len(values) + 1 != ufunc.nin or ufunc.nout != 1:
        return None
    kinds: list[Any] = [array._row]
    for value in values:
        row = value._row if isinstance(value, ndarray) else dtypes.find(np.asarray(value).dtype)
        if row is None:
            return None
        kinds.append(row)
    found = ufunc.resolution(tuple(kinds))
    return found if found is None or len(set(found.inputs)) == 1 else None


def _value_node(value: Any, row: DType, shape: Shape, device: Any) -> Node:
    if type(value) in _PYTHON_NUMBERS:
        return number_node(value, row, device)
    given = as_array(value)
    node = cast(transferred(read(given), device), row)
    try:
        return fitted(node, shape)
    except ValueError:
        raise ValueError("array is not broadcastable to correct shape") from None


def reduceat(ufunc: UFunc, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """``ufunc.reduceat``: folds over the slices that `indices` bound, each in order."""
    source = as_array(array)
    arguments = {"axis": axis, "dtype": dtype, "out": out}
    folds = None
    if isinstance(source, ndarray) and source.ndim and ufunc.nin == 2 and ufunc.nout == 1:
        folds = _working(ufunc, source._row, dtype, out)
    if folds is None or isinstance(out, np.ndarray | tuple):
        return _reduced_by_numpy(ufunc, array, indices, arguments)
    along = axis_number(axis, source.ndim)
    starts = np.asarray(indices)
    if starts.dtype.kind not in "iu" or starts.ndim != 1:
        return _reduced_by_numpy(ufunc, array, indices, arguments)
    extent = source.shape[along]
    for start in starts:
        if not 0 <= start < extent:
            raise IndexError(f"index {start} out-of-bounds in {ufunc.__name__}.reduceat [0, {extent})")
    working, row = folds
    rows = moveaxis(astype(source, working.numpy, copy=False), along, 0)
    stops = np.append(starts[1:], extent)
    if np.all(np.diff(stops) > 0) and np.all(stops > starts):
        return _delivered(_side_by_side(ufunc, rows, starts, stops, row, working), along, out)
    # The first element of each slice is there from the start; the others follow, slice by slice.
    lengths = np.maximum(stops - starts - 1, 0)
    segment = np.repeat(np.arange(len(starts)), lengths)
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    element = np.arange(len(segment)) - before + starts[segment] + 1
    result = wrap_array(read(rows[starts.astype(np.int64)]))
    if is_too_much(result, result[segment].size if len(segment) else 0):
        return _reduced_by_numpy(ufunc, array, indices, arguments)
    if len(segment):
        scatter(result, places_of(result, segment), read(rows[element]), row, working)
    return _delivered(result, along, out)


def _side_by_side(
    ufunc: UFunc, rows: ndarray, starts: np.ndarray, stops: np.ndarray, row: str, working: DType
) -> ndarray:
    """Slices that follow one another: every row goes to the fold of its slice, the first of each to a row that nobody looks at."""
    count = len(starts)
    segment = np.repeat(np.arange(count), stops - starts)
    segment[starts - starts[0]] = count
    result = wrap_array(read(rows[np.append(starts, starts[-1:]).astype(np.int64)]))
    scatter(result, places_of(result, segment), read(rows[int(starts[0]) :]), row, working)
    return result[:count]


def _delivered(result: ndarray, along: int, out: Any) -> Any:
    moved = moveaxis(result, 0, along)
    if out is None:
        return moved
    out[...] = moved
    return out


def _reduced_by_numpy(ufunc: UFunc, array: Any, indices: Any, arguments: dict[str, Any]) -> Any:
    given = {name: value for name, value in arguments.items() if value is not None}
    return call_numpy(ufunc.numpy.reduceat, (array, indices), given, name=f"{ufunc.__name__}.reduceat")


def _working(ufunc: UFunc, row: DType, dtype: Any, out: Any) -> tuple[DType, str] | None:
    """The dtype of the fold, and the row that combines; None where kernels have none."""
    wanted = np.dtype(dtype) if dtype is not None else (out.dtype if isinstance(out, ndarray) else None)
    found = dtypes.find(ufunc.numpy.reduceat(np.ones(1, row.numpy), [0], dtype=wanted).dtype)
    if found is None:
        return None
    loop = ufunc.resolution((found, found))
    if loop is None or loop.outputs[0] is not found or loop.inputs[0] is not found:
        return None
    return found, loop.rows[0]


register_methods(at=at, reduceat=reduceat)
