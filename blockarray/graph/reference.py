"""What a recording means: every node computed by itself with NumPy. The oracle for everything that fuses."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from blockarray.graph.nodes import (
    Cast,
    Constant,
    Contract,
    Gather,
    Iota,
    Map,
    Node,
    Reduce,
    Scan,
    Scatter,
    Update,
    View,
    numpy_scalar,
)
from blockarray.graph.recording import Recording
from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.combiners import COMBINERS
from codegen.scalar.numpy_core import NumpyCore
from codegen.scalar.numpy_core import evaluate as evaluate_row
from codegen.scalar.table import TABLE

Array = np.ndarray


def apply_function(name: str, operands: Sequence[Array], dtype: DType) -> Array:
    """A row of the scalar table on arrays that broadcast: NumPy's ufunc if it has one, else the row's definition."""
    row = TABLE[name]
    with np.errstate(all="ignore"):
        if name == "where":
            result = np.where(operands[0], operands[1], operands[2])
        elif row.numpy_name is not None:
            result = np.asarray(getattr(np, row.numpy_name)(*operands))
        else:
            result = evaluate_row(name, *operands)
    return result if result.dtype == dtype.numpy else result.astype(dtype.numpy)


def convert(value: Array, dtype: DType) -> Array:
    """NumPy's astype, without its warnings."""
    with np.errstate(all="ignore"):
        return value.astype(dtype.numpy)


def fold(name: str, value: Array, axes: tuple[int, ...], output: int) -> Array:
    """A combiner over axes, which keep extent 1; halves are folded as they come, so convert them before."""
    if name in ("argmax", "argmin"):
        return _fold_with_position(name, value, axes, output)
    row = TABLE.get(name)
    if row is None or row.numpy_name is None:
        raise ValueError(
            f"fold: {name!r} is no function that NumPy can reduce with; expected an associative ufunc's name"
        )
    with np.errstate(all="ignore"):
        ufunc = getattr(np, row.numpy_name)
        if ufunc.identity is None and any(value.shape[axis] == 0 for axis in axes):
            shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(value.shape))
            return np.full(shape, COMBINERS[name].identity((dtypes.of(value.dtype),))[0], value.dtype)
        return np.asarray(ufunc.reduce(value, axis=axes, keepdims=True, dtype=value.dtype))


def _fold_with_position(name: str, value: Array, axes: tuple[int, ...], output: int) -> Array:
    kept = [axis for axis in range(value.ndim) if axis not in axes]
    moved = value.transpose(*kept, *axes).reshape(*(value.shape[axis] for axis in kept), -1)
    position = getattr(np, name)(moved, axis=-1)
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(value.shape))
    if output == 1:
        return position.astype(np.int64).reshape(shape)
    return np.take_along_axis(moved, position[..., None], axis=-1).reshape(shape)


def running_fold(name: str, value: Array, axis: int) -> Array:
    """Inclusive running fold along an axis, element after element."""
    row = TABLE.get(name)
    with np.errstate(all="ignore"):
        if row is not None and row.numpy_name is not None:
            return getattr(np, row.numpy_name).accumulate(value, axis=axis, dtype=value.dtype)
        core = NumpyCore()
        moved = np.moveaxis(value, axis, 0)
        found = [moved[0]] if len(moved) else []
        for element in moved[1:]:
            (combined,) = COMBINERS[name].combine(core, (core.value(found[-1]),), (core.value(element),))
            found.append(combined.array)  # type: ignore[attr-defined]  # a value of the NumPy core
        return np.moveaxis(np.stack(found), 0, axis) if found else value


def widened(value: Array) -> Array:
    """float16 and bfloat16 as float32, in which they are accumulated."""
    return convert(value, dtypes.float32) if dtypes.of(value.dtype).is_half else value


def strided_view(base: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Elements of a C-contiguous array at ``offset + sum(index * strides)``; shares its memory."""
    if 0 in shape:
        return np.empty(shape, base.dtype)
    flat = base.reshape(-1)
    return as_strided(flat[offset:], shape, [stride * base.itemsize for stride in strides])


def evaluate(recording: Recording, leaf_value: Callable[[Node], Array]) -> tuple[Array, ...]:
    """The values of a recording's roots.

    Parameters
    ----------
    recording : Recording
    leaf_value : callable
        Gives the array of an evaluated leaf, of the leaf's shape and dtype. Constants are known.

    Returns
    -------
    tuple of numpy.ndarray
        New arrays, one for each root.
    """
    values: dict[Node, Array] = {}
    for node in recording.nodes:
        if isinstance(node, Constant):
            values[node] = np.asarray(numpy_scalar(node))
        elif node.is_leaf:
            values[node] = np.ascontiguousarray(leaf_value(node)).reshape(node.shape)
        else:
            value = np.asarray(_value(node, [values[one] for one in node.inputs]))
            if value.shape != node.shape or value.dtype != node.dtype.numpy:
                raise ValueError(
                    f"{node.describe()}: the node says {node.dtype}{list(node.shape)}, its value is "
                    f"{value.dtype}{list(value.shape)}; the operation was recorded wrongly"
                )
            values[node] = np.ascontiguousarray(value).reshape(node.shape)
    return tuple(np.array(values[root]) for root in recording.roots)


def _value(node: Node, inputs: list[Array]) -> Array:
    match node:
        case Iota():
            return np.arange(node.shape[0], dtype=np.int64)
        case Map():
            return np.broadcast_to(apply_function(node.function, inputs, node.dtype), node.shape)
        case Cast():
            return convert(inputs[0], node.dtype)
        case Reduce():
            folded = fold(node.function, widened(inputs[0]), node.axes, node.output)
            return folded if folded.dtype == node.dtype.numpy else convert(folded, node.dtype)
        case Scan():
            return convert(running_fold(node.function, widened(inputs[0]), node.axis), node.dtype)
        case View():
            return strided_view(inputs[0], node.offset, node.shape, node.strides)
        case Gather():
            return inputs[0][tuple(inputs[1:])]
        case Update():
            changed = inputs[0].copy()
            strided_view(changed, node.offset, node.view_shape, node.strides)[...] = inputs[1]
            return changed
        case Scatter():
            changed = inputs[0].copy()
            scatter(changed.reshape(-1), inputs[1], inputs[2] if len(inputs) > 2 else None, node.function, node.working)
            return changed
        case Contract():
            return product(inputs[0], inputs[1])
    raise TypeError(f"{type(node).__name__} has no meaning here; expected one of the classes of graph/nodes.py")


def scatter(flat: Array, places: Array, value: Array | None, function: str | None, working: DType) -> None:
    """Replace elements of `flat` at `places`, one after the other."""
    given = None if value is None else np.broadcast_to(value.reshape(-1), (places.size,))
    for number, place in enumerate(places.reshape(-1)):
        one = slice(number, number + 1)
        if function is None:
            assert given is not None
            flat[place : place + 1] = given[one]
            continue
        operands = [convert(flat[place : place + 1], working)]
        if given is not None:
            operands.append(given[one])
        result = TABLE[function].result_dtype(*(dtypes.of(operand.dtype) for operand in operands))
        flat[place : place + 1] = convert(apply_function(function, operands, result), dtypes.of(flat.dtype))


def product(a: Array, b: Array) -> Array:
    """A matrix product, halves accumulated in float32."""
    with np.errstate(all="ignore"):
        return np.matmul(widened(a), widened(b)).astype(a.dtype, copy=False)
