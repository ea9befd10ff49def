"""Writing at chosen places: put, place, putmask, copyto, fill_diagonal."""

from typing import Any, Final

import numpy as np

from blockarray.assignment import assign_node, assigned_constant, assigned_node, writable_host_view
from blockarray.creation import host_nested
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Node, Shape, View, row_major_strides
from blockarray.indexing import places_of, subview
from blockarray.manipulation import as_array
from blockarray.ndarray import (
    Scalar,
    borrowed_value,
    cast,
    element_offset,
    element_strides,
    ndarray,
    read,
    transferred,
    wrap_array,
    write,
)
from blockarray.scattering import scatter
from blockarray.ufuncs import as_operand, where_node
from codegen import dtypes

_PYTHON_NUMBERS: Final = frozenset((int, float, bool))
_MODES: Final = ("raise", "wrap", "clip")


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Replace elements of the flattened array; of equal positions the last one counts.

    Parameters
    ----------
    a : ndarray
    ind : array_like of int
    v : array_like
        Repeated as needed.
    mode : {"raise", "wrap", "clip"}
        What happens to positions outside.

    Examples
    --------
    >>> import blockarray as np
    >>> x = np.zeros((2, 2))
    >>> np.put(x, [0, -1, 0], [1, 2, 3])
    >>> x
    array([[3., 0.],
           [0., 2.]])
    """
    if not isinstance(a, ndarray) or a._cell.node.device.target.kind == "cpu" or not a.size or mode not in _MODES:
        _changing(np.put, a, ind, v, mode=mode)
        return
    if not a._writeable:
        raise ValueError("put: output array is read-only")
    positions = np.asarray(ind).reshape(-1).astype(np.int64, casting="same_kind")
    values = read(as_array(v)) if isinstance(v, ndarray) else assigned_node(v, a._row, a._cell.node.device)
    values = cast(transferred(values, a._cell.node.device), a._row)
    if not positions.size or not values.size:
        return
    positions = np.arange(a.size).take(positions, mode=mode)  # type: ignore[call-overload]
    if values.size > 1:
        flat = wrap_array(View(values, 0, (values.size,), (1,)))
        values = read(flat[np.arange(positions.size) % values.size])
    places = places_of(a, np.unravel_index(positions, a._shape) if a._shape else ())
    if not a._shape:
        # The only element takes the last value.
        places = View(places, 0, positions.shape, (0,))
    scatter(a, places, values, None, a._row)


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Replace elements where a mask holds, by values in order."""
    _changing(np.place, arr, mask, vals)


def _changing(function: Any, target: Any, *rest: Any, **keywords: Any) -> None:
    """A function of NumPy that changes its first argument: on the host in the array's own memory."""
    if isinstance(target, ndarray) and not isinstance(target, Scalar) and target._cell.node.device.target.kind == "cpu":
        # Copies, since what is written may be what is read.
        given = [np.array(borrowed_value(one)) if isinstance(one, ndarray) else host_nested(one) for one in rest]
        function(writable_host_view(target), *given, **keywords)
        return
    changed = (0,) if isinstance(target, ndarray) else ()
    call_numpy(function, (target, *rest), keywords, changes=changed, by_design=True)


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Replace elements where a mask holds, by the values at the same places (repeated)."""
    if not isinstance(a, ndarray):
        _changing(np.putmask, a, mask, values)
        return
    device, size = a._cell.node.device, a.size
    flags = as_operand(mask)
    if flags.size != size:
        raise ValueError("putmask: mask and data must be the same size")
    if isinstance(values, ndarray | np.ndarray) and not np.can_cast(values.dtype, a.dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {values.dtype!r} to {a.dtype!r} according to the rule 'safe'")
    node = _assigned(values, a)
    if size == 0 or node.size == 0:
        return
    if node.size == 1:
        node = View(node, 0, a._shape, (0,) * a.ndim)
    elif node.size == size:
        node = View(node, 0, a._shape, row_major_strides(a._shape))
    else:
        repeated = wrap_array(View(node, 0, (node.size,), (1,)))[np.arange(size) % node.size]
        node = View(read(repeated), 0, a._shape, row_major_strides(a._shape))
    test = cast(transferred(read(flags), device), dtypes.boolean)
    write(a, where_node(View(test, 0, a._shape, row_major_strides(a._shape)), node, read(a)))


def _assigned(values: Any, target: ndarray) -> Node:
    """Values converted to the target's dtype, on its device."""
    device, row = target._cell.node.device, target._row
    if isinstance(values, ndarray):
        return cast(transferred(read(values), device), row)
    return assigned_node(values, row, device)


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Copy values into an array, where a mask holds."""
    if not isinstance(dst, ndarray) or isinstance(dst, Scalar):
        if isinstance(dst, np.ndarray):
            call_numpy(np.copyto, (dst, src), {"casting": casting, "where": where}, by_design=True)
            return
        raise TypeError(f"copyto() argument 1 must be a blockarray.ndarray, not {type(dst).__name__}")
    node = _cast_source(dst, src, casting)
    device = dst._cell.node.device
    if where is True:
        assign_node(dst, node)
        return
    mask = as_operand(np.asarray(where, bool) if isinstance(where, list | tuple | bool) else where)
    if mask._row is not dtypes.boolean:
        raise TypeError(f"Cannot cast array data from {mask.dtype!r} to dtype('bool') according to the rule 'safe'")
    if not _fits(mask._shape, dst._shape):
        raise ValueError(
            f"could not broadcast where mask from shape {_listed(mask._shape)} into shape {_listed(dst._shape)}"
        )
    own = node.shape[max(len(node.shape) - dst.ndim, 0) :]
    if not _fits(own, dst._shape) or own != node.shape[len(node.shape) - len(own) :]:
        raise ValueError(
            f"could not broadcast input array from shape {_listed(node.shape)} into shape {_listed(dst._shape)}"
        )
    if own != node.shape:
        node = View(node, 0, own, row_major_strides(own))
    if dst.size:
        test = transferred(read(mask), device)
        write(dst, where_node(_spread(test, dst._shape), cast(transferred(node, device), dst._row), read(dst)))


def _cast_source(target: ndarray, source: Any, casting: str) -> Node:
    """What is copied, as a node; TypeError if `casting` does not allow it, OverflowError for a number that does not fit."""
    device = target._cell.node.device
    if type(source) in _PYTHON_NUMBERS:
        dtype = np.asarray(source).dtype
        if not np.can_cast(dtype, target.dtype, casting) and not (
            type(source) is int and target._row.kind != "boolean"
        ):  # type: ignore[arg-type]
            raise TypeError(f"Cannot cast scalar from {dtype!r} to {target.dtype!r} according to the rule {casting!r}")
        return assigned_constant(source, target._row, device)
    value = as_operand(source)
    if not np.can_cast(value.dtype, target.dtype, casting):  # type: ignore[arg-type]
        kind = "array data" if value._shape else "scalar"
        raise TypeError(
            f"Cannot cast {kind} from {value.dtype!r} to {target.dtype!r} according to the rule {casting!r}"
        )
    return read(value)


def _fits(shape: Shape, wanted: Shape) -> bool:
    skip = len(wanted) - len(shape)
    return skip >= 0 and all(own in (1, extent) for own, extent in zip(shape, wanted[skip:], strict=True))


def _listed(shape: Shape) -> str:
    return str(shape).replace(" ", "")


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Set the main diagonal in place; values are repeated as needed.

    Parameters
    ----------
    a : ndarray
        Of two axes or more; of equal extents if there are more than two.
    val : array_like
    wrap : bool
        Begin again below a square of a tall matrix.
    """
    if not isinstance(a, ndarray) or (wrap and a.ndim == 2 and a._shape[0] > a._shape[1]):
        _changing(np.fill_diagonal, a, val, wrap=wrap)
        return
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a._shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    count = min(a._shape)
    node = _assigned(val, a)
    if node.size == 0 or count == 0:
        return
    line = subview(a, element_offset(a), (count,), (sum(element_strides(a)),))
    if node.size == 1:
        node = View(node, 0, (), ())
    else:
        node = read(wrap_array(View(node, 0, (node.size,), (1,)))[np.arange(count) % node.size])
    assign_node(line, node)


def _spread(node: Node, shape: Shape) -> Node:
    """`node` broadcast to `shape`."""
    skip = len(shape) - len(node.shape)
    own = zip(node.shape, row_major_strides(node.shape), strict=True)
    return View(node, 0, shape, (0,) * skip + tuple(0 if extent == 1 else stride for extent, stride in own))
