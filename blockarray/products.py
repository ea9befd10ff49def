"""Products of vectors, matrices and stacks: matmul and what is made of it."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Contract, Node, Shape, View, row_major_strides
from blockarray.ndarray import cast, ndarray, read, transferred, user_frame, wrap, write
from blockarray.overrides import any_decides, decided
from blockarray.promotion import broadcast
from blockarray.reductions import drop_axes, fold
from blockarray.ufuncs import UFUNCS, as_operand
from codegen import dtypes
from codegen.dtypes import DType

_SIGNATURE = "(n?,k),(k,m?)->(n?,m?)"


def _both(a: Any, b: Any) -> tuple[ndarray, ndarray] | None:
    try:
        left, right = as_operand(a), as_operand(b)
    except TypeError:
        return None
    return left, right


def _common_dtype(left: ndarray, right: ndarray, wanted: Any, casting: str) -> DType | None:
    """The dtype of the product as NumPy's ufunc chooses it."""
    signature = None if wanted is None else (None, None, np.dtype(wanted))
    extra = {} if signature is None else {"signature": signature}
    found = np.matmul.resolve_dtypes((left.dtype, right.dtype, None), casting=casting, **extra)  # type: ignore[arg-type, call-arg]
    if dtypes.find(found[0]) is None or len({dtypes.find(one) for one in found}) != 1:
        return None
    return dtypes.find(found[0])


def _spread(node: Node, shape: Shape) -> Node:
    """The node broadcast to `shape`."""
    if node.shape == shape:
        return node
    skip = len(shape) - len(node.shape)
    own = [
        0 if n == 1 and m != 1 else s
        for n, m, s in zip(node.shape, shape[skip:], row_major_strides(node.shape), strict=True)
    ]
    return View(node, 0, shape, (0,) * skip + tuple(own))


def _unit_axis(node: Node, axis: int) -> Node:
    shape, strides = list(node.shape), list(row_major_strides(node.shape))
    shape.insert(axis, 1)
    strides.insert(axis, 0)
    return View(node, 0, tuple(shape), tuple(strides))


def product_node(a: Node, b: Node, dtype: DType | None = None) -> Node:
    """``a @ b`` for nodes of one dtype, widened to `dtype` if that is given; ValueError in NumPy's words where the shapes do not fit."""
    if not a.shape or not b.shape:
        which = 0 if not a.shape else 1
        raise ValueError(
            f"matmul: Input operand {which} does not have enough dimensions (has 0, gufunc core with signature {_SIGNATURE} requires 1)"
        )
    row, column = len(a.shape) == 1, len(b.shape) == 1
    left = _unit_axis(a, 0) if row else a
    right = _unit_axis(b, 1) if column else b
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(
            f"matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature {_SIGNATURE} "
            f"(size {right.shape[-2]} is different from {left.shape[-1]})"
        )
    batch = broadcast((left.shape[:-2], right.shape[:-2])) if left.shape[:-2] or right.shape[:-2] else ()
    shape = (*batch, left.shape[-2], right.shape[-1])
    if 0 in shape or left.shape[-1] == 0:
        result: Node = cast(_zeros(shape, a), dtype or a.dtype)
    elif a.dtype is dtypes.boolean:
        spread = UFUNCS["logical_and"]
        found = spread.resolution((dtypes.boolean, dtypes.boolean))
        assert found is not None
        result = cast(Contract(cast(_spread(left, (*batch, *left.shape[-2:])), dtypes.int64),
                               cast(_spread(right, (*batch, *right.shape[-2:])), dtypes.int64)), dtypes.boolean)  # fmt: skip
    else:
        wanted = dtype or a.dtype
        spread_left, spread_right = (
            _spread(left, (*batch, *left.shape[-2:])),
            _spread(right, (*batch, *right.shape[-2:])),
        )
        result = Contract(cast(spread_left, wanted), cast(spread_right, wanted))
    dropped = ([len(shape) - 2] if row else []) + ([len(shape) - 1] if column else [])
    return drop_axes(result, dropped)


def _zeros(shape: Shape, like: Node) -> Node:
    from_constant = fold_identity(like)
    return View(from_constant, 0, shape, (0,) * len(shape))


def fold_identity(like: Node) -> Node:
    """Zero in the dtype and on the device of `like`."""
    from_number = as_operand(like.dtype.numpy.type(0))
    return transferred(read(from_number), like.device)


def matmul(
    x1: Any, x2: Any, /, out: Any = None, *, casting: str = "same_kind", order: str = "K", dtype: Any = None, subok: bool = True,
    signature: Any = None, axes: Any = None, axis: Any = None,
) -> Any:  # fmt: skip
    """Matrix product of vectors, matrices or stacks of matrices.

    Raises
    ------
    ValueError
        If the inner extents differ, or an operand has no axes.

    Examples
    --------
    >>> import blockarray as np
    >>> np.matmul(np.ones((2, 3)), np.ones(3))
    array([3., 3.])
    """
    if any_decides((x1, x2), out):
        given = {"out": out, "dtype": dtype, "signature": signature, "axes": axes, "axis": axis}
        return decided(matmul, np.matmul, "__call__", (x1, x2), {k: v for k, v in given.items() if v is not None})
    target = out[0] if isinstance(out, tuple) else out
    operands = _both(x1, x2)
    common = None if operands is None else _common_dtype(*operands, dtype, casting)
    if operands is None or common is None or axes is not None or axis is not None or isinstance(target, np.ndarray):
        given = {"out": out, "dtype": dtype, "axes": axes, "axis": axis}
        return call_numpy(np.matmul, (x1, x2), {k: v for k, v in given.items() if v is not None})
    left, right = read(operands[0]), read(operands[1])
    right = transferred(right, left.device)
    if left.dtype is right.dtype and left.dtype.is_half:
        # Spread first: the product widens halves by itself, which it sees where the cast is its operand.
        node = product_node(left, right, common)
    else:
        node = product_node(cast(left, common), cast(right, common))
    return _deliver(node, target, casting)


def _deliver(node: Node, target: Any, casting: str = "same_kind") -> Any:
    if target is None:
        node.record(user_frame())
        return wrap(node)
    if target.shape != node.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {target.shape} doesn't match the result's shape {node.shape}"
        )
    if not np.can_cast(node.dtype.numpy, target.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast ufunc 'matmul' output from {node.dtype.numpy!r} to {target.dtype!r} with casting rule {casting!r}"
        )
    write(target, cast(node, target._row))
    return target


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Product over the last axis of `a` and the last but one of `b` (its only one, if it has one)."""
    operands = _both(a, b)
    if operands is None:
        return call_numpy(np.dot, (a, b), {} if out is None else {"out": out})
    left, right = operands
    if left.ndim == 0 or right.ndim == 0:
        return UFUNCS["multiply"](left, right) if out is None else UFUNCS["multiply"](left, right, out=out)
    inner = left.shape[-1]
    other = right.shape[-1] if right.ndim == 1 else right.shape[-2]
    if inner != other:
        axis = 0 if right.ndim == 1 else right.ndim - 2
        raise ValueError(
            f"shapes {_listed(left.shape)} and {_listed(right.shape)} not aligned: {inner} (dim {left.ndim - 1}) != "
            f"{other} (dim {axis})"
        )
    if right.ndim <= 2:
        return matmul(left, right) if out is None else matmul(left, right, out=out)
    return _finished(tensordot(left, right, ((left.ndim - 1,), (right.ndim - 2,))), out)


def _listed(shape: Shape) -> str:
    return str(shape).replace(" ", "")


def _finished(result: Any, out: Any) -> Any:
    if out is None:
        return result
    write(out, cast(read(result), out._row))
    return out


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Sum of products over chosen axes of both operands."""
    operands = _both(a, b)
    if operands is None:
        return call_numpy(np.tensordot, (a, b), {"axes": axes})
    left, right = operands
    try:
        first, second = axes
    except TypeError:
        count = operator.index(axes)
        first, second = list(range(-count, 0)), list(range(count))
    chosen_left = [operator.index(one) for one in (first if isinstance(first, Sequence | np.ndarray) else (first,))]
    chosen_right = [operator.index(one) for one in (second if isinstance(second, Sequence | np.ndarray) else (second,))]
    fits = len(chosen_left) == len(chosen_right)
    if fits:
        chosen_left = [one + left.ndim if one < 0 else one for one in chosen_left]
        chosen_right = [one + right.ndim if one < 0 else one for one in chosen_right]
        fits = all(left.shape[m] == right.shape[n] for m, n in zip(chosen_left, chosen_right, strict=True))
    if not fits:
        raise ValueError("shape-mismatch for sum")
    kept_left = [k for k in range(left.ndim) if k not in chosen_left]
    kept_right = [k for k in range(right.ndim) if k not in chosen_right]
    inner = 1
    for one in chosen_left:
        inner *= left.shape[one]
    rows = [left.shape[k] for k in kept_left]
    columns = [right.shape[k] for k in kept_right]
    flat_left = left.transpose([*kept_left, *chosen_left]).reshape(_size(rows), inner)  # type: ignore[attr-defined]
    flat_right = right.transpose([*chosen_right, *kept_right]).reshape(inner, _size(columns))  # type: ignore[attr-defined]
    return matmul(flat_left, flat_right).reshape(rows + columns)


def _size(extents: list[int]) -> int:
    size = 1
    for extent in extents:
        size *= extent
    return size


def inner(a: Any, b: Any, /) -> Any:
    """Product over the last axes of both operands."""
    operands = _both(a, b)
    if operands is None:
        return call_numpy(np.inner, (a, b), {})
    left, right = operands
    if left.ndim == 0 or right.ndim == 0:
        return UFUNCS["multiply"](left, right)
    if left.shape[-1] != right.shape[-1]:
        # NumPy multiplies by the second operand with its last two axes exchanged, and says what it multiplies.
        turned = (*right.shape[:-2], *right.shape[-2:][::-1])
        raise ValueError(
            f"shapes {_listed(left.shape)} and {_listed(turned)} not aligned: {left.shape[-1]} (dim {left.ndim - 1}) "
            f"!= {right.shape[-1]} (dim {max(right.ndim - 2, 0)})"
        )
    return tensordot(left, right, ((left.ndim - 1,), (right.ndim - 1,)))


def vdot(a: Any, b: Any, /) -> Any:
    """Product of two flattened arrays."""
    operands = _both(a, b)
    if operands is None:
        return call_numpy(np.vdot, (a, b), {})
    left, right = (one.reshape(-1) for one in operands)  # type: ignore[attr-defined]
    if left.size != right.size:
        raise ValueError(f"cannot reshape array of size {right.size} into shape {_listed(left.shape)}")
    return dot(left, right)


def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: int = -1, **keywords: Any) -> Any:
    """Products summed over one axis of both operands."""
    operands = _both(x1, x2)
    if operands is None or keywords:
        return call_numpy(np.vecdot, (x1, x2), {"axis": axis, **({} if out is None else {"out": out}), **keywords})
    left, right = (np_moveaxis(one, axis) for one in operands)
    if left.shape[-1] != right.shape[-1]:
        raise ValueError(
            "vecdot: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (n),(n)->() "
            f"(size {right.shape[-1]} is different from {left.shape[-1]})"
        )
    product = UFUNCS["multiply"](left, right)
    node = read(product)
    last = len(node.shape) - 1
    if node.shape[last] == 0:
        return _finished(wrap(_zeros(node.shape[:-1], node)), out)
    return _finished(wrap(drop_axes(fold("add", node, (last,)), (last,))), out)


def np_moveaxis(array: ndarray, axis: int) -> ndarray:
    """The array with `axis` last."""
    if not -array.ndim <= axis < array.ndim:
        raise np.exceptions.AxisError(axis, array.ndim)
    place = axis % array.ndim
    return array.transpose([k for k in range(array.ndim) if k != place] + [place])  # type: ignore[attr-defined]


def matvec(x1: Any, x2: Any, /, out: Any = None, **keywords: Any) -> Any:
    """Stacks of matrices times stacks of vectors."""
    operands = _both(x1, x2)
    if operands is None or keywords or operands[0].ndim < 2 or operands[1].ndim < 1:
        return call_numpy(np.matvec, (x1, x2), {**({} if out is None else {"out": out}), **keywords})
    left, right = operands
    return _finished(matmul(left, right.reshape((*right.shape, 1)))[..., 0], out)  # type: ignore[attr-defined]


def vecmat(x1: Any, x2: Any, /, out: Any = None, **keywords: Any) -> Any:
    """Stacks of vectors times stacks of matrices."""
    operands = _both(x1, x2)
    if operands is None or keywords or operands[1].ndim < 2 or operands[0].ndim < 1:
        return call_numpy(np.vecmat, (x1, x2), {**({} if out is None else {"out": out}), **keywords})
    left, right = operands
    return _finished(matmul(left.reshape((*left.shape[:-1], 1, left.shape[-1])), right)[..., 0, :], out)  # type: ignore[attr-defined]


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Every product of an element of `a` and one of `b`, both flattened."""
    operands = _both(a, b)
    if operands is None:
        return call_numpy(np.outer, (a, b), {} if out is None else {"out": out})
    left, right = operands
    column = left.reshape((-1, 1))  # type: ignore[attr-defined]
    return UFUNCS["multiply"](column, right.reshape((1, -1)), **({} if out is None else {"out": out}))  # type: ignore[attr-defined]
