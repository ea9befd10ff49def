"""Reductions and running folds: sum, prod, max, min, mean, var, std, any, all, argmax, argmin, ptp, count_nonzero, cumsum, cumprod."""

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.exceptions import AxisError

from blockarray import ufuncs
from blockarray.fallback import call_numpy, warn_user
from blockarray.graph.nodes import Constant, Map, Node, Reduce, Scan, Shape, View, row_major_strides
from blockarray.ndarray import cast, element_strides, ndarray, read, transferred, user_frame, wrap, wrap_in_order, write
from blockarray.overrides import any_decides, by_method, decided
from blockarray.promotion import broadcast, result_order
from blockarray.ufuncs import UFUNCS, UFunc, as_operand, where_node
from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.combiners import COMBINERS
from codegen.scalar.function import highest, lowest

NO_VALUE = np._NoValue

# Folds whose result does not depend on how often a value is counted, or that have no neutral element in NumPy.
_WITHOUT_IDENTITY = frozenset(("maximum", "minimum", "fmax", "fmin"))


def normalized_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes as non-negative numbers in order; None is all of them. AxisError, ValueError and TypeError as NumPy."""
    if axis is None:
        return tuple(range(rank))
    listed = axis if isinstance(axis, tuple) else (axis,)
    found = []
    for one in listed:
        number = operator.index(one)
        if not -rank <= number < rank:
            raise AxisError(number, rank, None)
        found.append(number % rank)
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(found))


@lru_cache(maxsize=1024)
def _fold_dtype(ufunc: np.ufunc, dtype: DType, wanted: np.dtype | None) -> tuple[DType, DType] | None:
    """Dtype in which NumPy folds, and of the result; None if kernels have no such dtype. TypeError as NumPy."""
    result = ufunc.reduce(np.ones(1, dtype.numpy), dtype=wanted).dtype
    found = dtypes.find(np.dtype(result))
    if found is None:
        return None
    if ufunc in (np.logical_and, np.logical_or, np.logical_xor):
        return dtypes.boolean, dtypes.boolean
    return found, found


def drop_axes(node: Node, axes: Sequence[int]) -> Node:
    """`node` without the axes of extent 1 in `axes`."""
    if not axes:
        return node
    if len(axes) == len(node.shape):
        return View(node, 0, (), ())
    kept = [axis for axis in range(len(node.shape)) if axis not in axes]
    strides = row_major_strides(node.shape)
    return View(node, 0, tuple(node.shape[a] for a in kept), tuple(strides[a] for a in kept))


def fold(combiner: str, node: Node, axes: tuple[int, ...], output: int = 0) -> Node:
    """Fold over `axes`, which keep extent 1; float16 and bfloat16 accumulate in float32."""
    if not axes:
        return node
    if combiner in ("argmax", "argmin"):
        return Reduce(combiner, node, axes, dtypes.int64, output)
    if node.dtype.is_half and combiner in ("add", "multiply"):
        return cast(Reduce(combiner, cast(node, dtypes.float32), axes, dtypes.float32), node.dtype)
    return Reduce(combiner, node, axes, node.dtype)


def _as_mask(where: Any, node: Node) -> Node | None:
    if where is True or where is NO_VALUE:
        return None
    mask = as_operand(where)
    if mask._row is not dtypes.boolean:
        raise TypeError(f"Cannot cast array data from {mask.dtype!r} to dtype('bool') according to the rule 'safe'")
    return transferred(read(mask), node.device)


def _identity(ufunc: UFunc, dtype: DType) -> bool | int | float:
    name = ufunc.__name__
    if name in ("maximum", "fmax"):
        return lowest(dtype)
    if name in ("minimum", "fmin"):
        return highest(dtype)
    return COMBINERS[name].identity((dtype,))[0]


def reduce(
    ufunc: UFunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = NO_VALUE, where: Any = True,
) -> Any:  # fmt: skip
    """``ufunc.reduce`` with NumPy's meaning of every argument."""
    if ufunc.numpy.nin != 2 or ufunc.numpy.nout != 1:
        raise ValueError("reduce only supported for binary functions")
    name = ufunc.__name__
    if out is None and dtype is None and where is True and initial is NO_VALUE and isinstance(array, ndarray):
        plain = _fold_dtype(ufunc.numpy, array._row, None)
        if plain is not None and name in COMBINERS and 0 not in array._shape:
            axes = axes_of_fold(axis, len(array._shape))
            return finish(cast(fold(name, cast(read(array), plain[0]), axes), plain[1]), axes, keepdims, None, array)
    if any_decides((array,), out):
        given = {"axis": axis, **_arguments(dtype=dtype, out=out, initial=initial)}
        if keepdims:
            given["keepdims"] = keepdims
        if where is not True:
            given["where"] = where
        return decided(ufunc, ufunc.numpy, "reduce", (array,), given)
    source = _array_or_none(array)
    wanted = None if dtype is None else np.dtype(dtype)
    # The fold is done in the dtype of `out` where that holds the elements, else as without it, and then converted.
    if wanted is None and isinstance(out, ndarray) and name in ("add", "multiply") and source is not None:
        wanted = out.dtype if np.can_cast(source.dtype, out.dtype, "same_kind") else None
    arguments = {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims}
    if initial is not NO_VALUE:
        arguments["initial"] = initial
    if where is not True:
        arguments["where"] = where
    if source is None:
        return call_numpy(ufunc.numpy.reduce, (array,), arguments, name=f"{name}.reduce")
    kinds = _fold_dtype(ufunc.numpy, source._row, wanted)
    if kinds is None or name not in COMBINERS or isinstance(out, np.ndarray):
        return call_numpy(ufunc.numpy.reduce, (source,), arguments, name=f"{name}.reduce")
    working, result = kinds
    axes = axes_of_fold(axis, source.ndim)
    node = cast(read(source), working)
    mask = _as_mask(where, node)
    if mask is not None:
        if name in _WITHOUT_IDENTITY and initial is NO_VALUE:
            raise ValueError(
                f"reduction operation '{name}' does not have an identity, so to use a where mask one has to specify 'initial'"
            )
        shape = broadcast((node.shape, mask.shape))
        if shape != node.shape:
            axes = normalized_axes(axis, len(shape)) if axis is None or not isinstance(axis, tuple) else axes
        node = where_node(mask, node, Constant(_identity(ufunc, working), working, node.device))
    empty = 0 in [node.shape[a] for a in axes]
    start = None
    if initial is None:
        start = None
        if empty:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    elif initial is not NO_VALUE:
        start = Constant(np.asarray(initial).astype(working.numpy).item(), working, node.device)
    if empty and name in _WITHOUT_IDENTITY and start is None:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    if empty:
        shape = tuple(1 if a in axes else extent for a, extent in enumerate(node.shape))
        folded: Node = _filled(shape, start or Constant(_identity(ufunc, working), working, node.device))
        start = None
    else:
        folded = fold(name, node, axes)
    if start is not None:
        resolution = ufunc.resolution((working, working))
        assert resolution is not None
        folded = Map(name, (folded, start), folded.shape, working, resolution.tokens[0], node.device)
    return finish(cast(folded, result), axes, keepdims, out, source)


def _filled(shape: Shape, value: Constant) -> Node:
    return View(value, 0, shape, (0,) * len(shape))


def _array_or_none(array: Any) -> ndarray | None:
    if isinstance(array, ndarray):
        return array
    try:
        return as_operand(array)
    except TypeError:
        return None


def axes_of_fold(axis: Any, rank: int) -> tuple[int, ...]:
    """As `normalized_axes`; an array without axes may be folded over axis 0 or -1, as in NumPy."""
    if rank == 0 and axis is not None and not isinstance(axis, tuple) and operator.index(axis) in (0, -1):
        return ()
    return normalized_axes(axis, rank)


def _memory_order_without(source: ndarray, rank: int, dropped: Sequence[int]) -> tuple[int, ...] | None:
    """Axes of a fold of `source` from the outermost in memory to the innermost, as NumPy allocates the result."""
    if source._view is None or rank < 2:
        return None
    order = result_order(((source._shape, element_strides(source)),), source._shape)
    if order is None:
        return None
    left = [axis for axis in range(len(order)) if axis not in dropped]
    return tuple(left.index(axis) for axis in order if axis not in dropped)


def finish(
    node: Node,
    axes: Sequence[int],
    keepdims: bool,
    out: Any,
    source: ndarray | None = None,
    casting: Literal["unsafe", "same_kind"] = "unsafe",
) -> Any:
    """Drop the folded axes unless they are kept, and deliver into `out` if it is given, else in the memory order of `source`.

    What NumPy folds into `out` it converts without asking; only what comes behind a fold is cast by a rule.
    """
    folded = node if keepdims else drop_axes(node, axes)
    if out is None:
        folded.record(user_frame())
        if node is not folded:
            node.code, node.instruction = folded.code, folded.instruction
        if source is None or source.ndim != len(node.shape):
            return wrap(folded)
        return wrap_in_order(folded, _memory_order_without(source, len(folded.shape), () if keepdims else axes))
    target = out[0] if isinstance(out, tuple) else out
    if not isinstance(target, ndarray):
        raise TypeError(
            f"out must be a blockarray.ndarray, found {type(target).__name__}; convert it with blockarray.asarray"
        )
    if target._shape != folded.shape:
        raise ValueError(
            f"output parameter for reduction operation has wrong shape: expected {folded.shape}, found {target._shape}"
        )
    if not np.can_cast(folded.dtype.numpy, target.dtype, casting):
        raise TypeError(
            f"Cannot cast ufunc output from {folded.dtype.numpy!r} to {target.dtype!r} with casting rule {casting!r}"
        )
    write(target, cast(folded, target._row))
    return target


def accumulate(ufunc: UFunc, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """``ufunc.accumulate``: running fold along an axis."""
    if ufunc.numpy.nin != 2 or ufunc.numpy.nout != 1:
        raise ValueError("accumulate only supported for binary functions")
    source = _array_or_none(array)
    name = ufunc.__name__
    arguments = {"axis": axis, "dtype": dtype, "out": out}
    kinds = None
    if source is not None:
        if source.ndim == 0:
            raise TypeError("cannot accumulate on a scalar")
        wanted = None if dtype is None else np.dtype(dtype)
        kinds = _fold_dtype(ufunc.numpy, source._row, wanted)
    if source is None or kinds is None or name not in COMBINERS or isinstance(out, np.ndarray):
        return call_numpy(ufunc.numpy.accumulate, (array,), arguments, name=f"{name}.accumulate")
    (along,) = normalized_axes(operator.index(axis), source.ndim)
    working, result = kinds
    node = cast(read(source), working)
    if node.size:
        node = Scan(name, node, along)
    return finish(cast(node, result), (), True, out, source)


# --- functions and methods


def _given_keepdims(keepdims: Any) -> bool:
    return False if keepdims is NO_VALUE else bool(keepdims)


def _plain(value: Any, default: Any) -> Any:
    return default if value is NO_VALUE else value


@by_method
def sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE, initial: Any = NO_VALUE,
        where: Any = NO_VALUE) -> Any:  # fmt: skip
    """Sum over axes; small integers add up in 64 bits.

    Examples
    --------
    >>> import blockarray as np
    >>> int(np.sum(np.arange(5)))
    10
    """
    return reduce(UFUNCS["add"], a, axis, dtype, out, _given_keepdims(keepdims), initial, _plain(where, True))


@by_method
def prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE, initial: Any = NO_VALUE,
         where: Any = NO_VALUE) -> Any:  # fmt: skip
    """Product over axes; small integers multiply in 64 bits."""
    return reduce(UFUNCS["multiply"], a, axis, dtype, out, _given_keepdims(keepdims), initial, _plain(where, True))


@by_method
def max(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, initial: Any = NO_VALUE, where: Any = NO_VALUE
) -> Any:
    """Largest element along axes; NaN if there is one."""
    return reduce(UFUNCS["maximum"], a, axis, None, out, _given_keepdims(keepdims), initial, _plain(where, True))


@by_method
def min(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, initial: Any = NO_VALUE, where: Any = NO_VALUE
) -> Any:
    """Smallest element along axes; NaN if there is one."""
    return reduce(UFUNCS["minimum"], a, axis, None, out, _given_keepdims(keepdims), initial, _plain(where, True))


amax, amin = max, min


@by_method
def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE) -> Any:
    """Whether an element along axes is true."""
    return _logical("logical_or", a, axis, out, keepdims, where)


@by_method
def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE) -> Any:
    """Whether all elements along axes are true."""
    return _logical("logical_and", a, axis, out, keepdims, where)


def _logical(name: str, a: Any, axis: Any, out: Any, keepdims: Any, where: Any) -> Any:
    if isinstance(out, ndarray) and out._row is not dtypes.boolean:
        result = reduce(UFUNCS[name], a, axis, None, None, _given_keepdims(keepdims), NO_VALUE, _plain(where, True))
        write(out, cast(read(result), out._row))
        return out
    return reduce(UFUNCS[name], a, axis, None, out, _given_keepdims(keepdims), NO_VALUE, _plain(where, True))


def _count(node: Node, axes: tuple[int, ...]) -> int:
    count = 1
    for axis in axes:
        count *= node.shape[axis]
    return count


def _binary_node(name: str, a: Node, b: Node) -> Node:
    resolution = UFUNCS[name].resolution((a.dtype, b.dtype))
    assert resolution is not None
    wanted_a, wanted_b = resolution.inputs
    shape = broadcast((a.shape, b.shape))
    return Map(
        name, (cast(a, wanted_a), cast(b, wanted_b)), shape, resolution.outputs[0], resolution.tokens[0], a.device
    )


def _moment_dtypes(row: DType, dtype: Any) -> tuple[DType | None, DType | None]:
    """Dtypes in which a mean is summed and given back, as NumPy: integers in float64, float16 in float32."""
    if dtype is not None:
        wanted = dtypes.find(np.dtype(dtype))
        return wanted, wanted
    if row.kind != "float":
        return dtypes.float64, dtypes.float64
    return (dtypes.float32 if row.is_half else row), row


def _counted(node: Node, mask: Node | None, axes: tuple[int, ...], working: DType) -> Node:
    """How many elements take part, as a node of extent 1 along `axes` (or a constant)."""
    if mask is None:
        return Constant(float(_count(node, axes)), working, node.device)
    spread = where_node(mask, _ones_like(node), Constant(0, dtypes.int64, node.device))
    return cast(fold("add", spread, axes), working)


def _ones_like(node: Node) -> Node:
    return View(Constant(1, dtypes.int64, node.device), 0, node.shape, (0,) * len(node.shape))


@by_method
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE
) -> Any:
    """Arithmetic mean over axes; integers in float64, float16 in float32 inside."""
    source = _array_or_none(a)
    working, result = (None, None) if source is None else _moment_dtypes(source._row, dtype)
    if source is None or working is None or result is None or isinstance(out, np.ndarray):
        return call_numpy(np.mean, (a,), _arguments(axis=axis, dtype=dtype, out=out, keepdims=keepdims, where=where))
    axes = normalized_axes(axis, source.ndim)
    node, mask, axes = _prepared(cast(read(source), working), where, axes, axis)
    if mask is None and _count(node, axes) == 0:
        warn_user("Mean of empty slice", RuntimeWarning)
    total = _sum_of(node, mask, axes, working)
    return finish(
        cast(_binary_node("divide", total, _counted(node, mask, axes, working)), result),
        axes,
        _given_keepdims(keepdims),
        out,
        source,
    )


def _arguments(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not NO_VALUE and value is not None}


def _prepared(node: Node, where: Any, axes: tuple[int, ...], axis: Any) -> tuple[Node, Node | None, tuple[int, ...]]:
    mask = _as_mask(where, node)
    if mask is None:
        return node, None, axes
    shape = broadcast((node.shape, mask.shape))
    if shape != node.shape:
        node = View(node, 0, shape, _spread_strides(node.shape, shape))
        axes = normalized_axes(axis, len(shape))
    return node, mask, axes


def _spread_strides(shape: Shape, target: Shape) -> tuple[int, ...]:
    skip = len(target) - len(shape)
    own = tuple(0 if n == 1 else s for n, s in zip(shape, row_major_strides(shape), strict=True))
    return (0,) * skip + own


def _sum_of(node: Node, mask: Node | None, axes: tuple[int, ...], working: DType) -> Node:
    if mask is not None:
        node = where_node(mask, node, Constant(0.0, working, node.device))
    if _count(node, axes) == 0:
        shape = tuple(1 if k in axes else n for k, n in enumerate(node.shape))
        return _filled(shape, Constant(0.0, working, node.device))
    return fold("add", node, axes)


def _variance(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any, where: Any, mean: Any, correction: Any
) -> Any:
    if correction is not NO_VALUE:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    source = _array_or_none(a)
    working, result = (None, None) if source is None else _moment_dtypes(source._row, dtype)
    if source is None or working is None or result is None or isinstance(out, np.ndarray):
        arguments = _arguments(axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims, where=where, mean=mean)
        return call_numpy(getattr(np, name), (a,), arguments)
    axes = normalized_axes(axis, source.ndim)
    node, mask, axes = _prepared(cast(read(source), working), where, axes, axis)
    count = _counted(node, mask, axes, working)
    if mean is NO_VALUE:
        centre = _binary_node("divide", _sum_of(node, mask, axes, working), count)
    else:
        centre = cast(transferred(read(as_operand(mean)), node.device), working)
    deviation = _binary_node("subtract", node, centre)
    square = UFUNCS["square"].resolution((working,))
    assert square is not None
    squares = Map("square", (deviation,), deviation.shape, working, square.tokens[0], node.device)
    total = _sum_of(squares, mask, axes, working)
    freedom = _binary_node("subtract", count, Constant(float(ddof), working, node.device)) if mask is not None else None
    divisor: Node
    if freedom is None:
        left = _count(node, axes) - ddof
        if left <= 0:
            warn_user("Degrees of freedom <= 0 for slice", RuntimeWarning)
        divisor = Constant(float(left) if left > 0 else 0.0, working, node.device)
    else:
        divisor = _binary_node("maximum", freedom, Constant(0.0, working, node.device))
    spread = _binary_node("divide", total, divisor)
    if name == "std":
        root = UFUNCS["sqrt"].resolution((working,))
        assert root is not None
        spread = Map("sqrt", (spread,), spread.shape, working, root.tokens[0], node.device)
    casting: Literal["unsafe", "same_kind"] = "same_kind" if name == "std" else "unsafe"
    return finish(cast(spread, result), axes, _given_keepdims(keepdims), out, source, casting)


@by_method
def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NO_VALUE, *,
        where: Any = NO_VALUE, mean: Any = NO_VALUE, correction: Any = NO_VALUE) -> Any:  # fmt: skip
    """Variance over axes: the mean of squared deviations from the mean, which is subtracted first."""
    return _variance("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@by_method
def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NO_VALUE, *,
        where: Any = NO_VALUE, mean: Any = NO_VALUE, correction: Any = NO_VALUE) -> Any:  # fmt: skip
    """Standard deviation over axes."""
    return _variance("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def _arg(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    combiner = {"argmax": "argmax", "argmin": "argmin"}[name]
    source = _array_or_none(a)
    if source is None or isinstance(out, np.ndarray):
        return call_numpy(getattr(np, name), (a,), _arguments(axis=axis, out=out, keepdims=keepdims))
    if isinstance(axis, tuple):
        raise TypeError("'tuple' object cannot be interpreted as an integer")
    if source.ndim == 0 and axis is not None:
        normalized_axes(axis, 1)
        axis = None
    axes = normalized_axes(axis, source.ndim)
    node = read(source)
    for one in axes:
        if node.shape[one] == 0:
            raise ValueError(f"attempt to get {name} of an empty sequence")
    if not axes:
        found: Node = View(Constant(0, dtypes.int64, node.device), 0, (), ())
    else:
        found = fold(combiner, node, axes, output=1)
    return finish(found, axes, _given_keepdims(keepdims), out, casting="same_kind")


@by_method
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Any:
    """Index of the first largest element (or first NaN) along an axis, or in the flattened array."""
    return _arg("argmax", a, axis, out, keepdims)


@by_method
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Any:
    """Index of the first smallest element (or first NaN) along an axis, or in the flattened array."""
    return _arg("argmin", a, axis, out, keepdims)


@by_method
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Any:
    """Largest minus smallest element along axes."""
    high = max(a, axis, None, keepdims)
    return UFUNCS["subtract"](high, min(a, axis, None, keepdims), out=out)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Number of elements that are not zero along axes."""
    source = _array_or_none(a)
    if source is None:
        return call_numpy(np.count_nonzero, (a,), {"axis": axis, "keepdims": keepdims})
    return sum(wrap(cast(read(source), dtypes.boolean)), axis, np.intp, None, keepdims)


def _running(ufunc: UFunc, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    source = _array_or_none(a)
    if source is None:
        return call_numpy(
            getattr(np, {"add": "cumsum", "multiply": "cumprod"}[ufunc.__name__]),
            (a,),
            _arguments(axis=axis, dtype=dtype, out=out),
        )
    if axis is None:
        source = source.reshape(-1)  # type: ignore[attr-defined]  # installed by methods
        axis = 0
    elif source.ndim == 0:
        normalized_axes(axis, 1)
        source = source.reshape(-1)  # type: ignore[attr-defined]
    return accumulate(ufunc, source, axis, dtype, out)


@by_method
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running sum along an axis, or over the flattened array."""
    return _running(UFUNCS["add"], a, axis, dtype, out)


@by_method
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running product along an axis, or over the flattened array."""
    return _running(UFUNCS["multiply"], a, axis, dtype, out)


ufuncs.register_methods(reduce=reduce, accumulate=accumulate)
