"""Functions made of others: recorded, so fused like what a user would write."""

import math
from typing import Any

import numpy as np

from blockarray.creation import zeros_like
from blockarray.fallback import call_numpy
from blockarray.graph.nodes import Constant
from blockarray.ndarray import Scalar, cast, element_strides, ndarray, read, wrap, wrap_in_order
from blockarray.overrides import by_method
from blockarray.promotion import result_order
from blockarray.reductions import NO_VALUE
from blockarray.reductions import all as all_along
from blockarray.reductions import cumprod as running_product
from blockarray.reductions import cumsum as running_sum
from blockarray.reductions import max as largest
from blockarray.reductions import mean as mean_along
from blockarray.reductions import min as smallest
from blockarray.reductions import prod as product_along
from blockarray.reductions import sum as sum_along
from blockarray.ufuncs import UFUNCS, as_operand, where_node
from codegen import dtypes


def _operand(value: Any) -> ndarray | None:
    try:
        return as_operand(value)
    except TypeError:
        return None


def _given(**keywords: Any) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value is not None and value is not NO_VALUE}


def _written(result: ndarray, out: Any) -> Any:
    if out is None:
        return result
    return (
        UFUNCS["positive"](result, out=out)
        if result.dtype != np.bool_
        else UFUNCS["logical_or"](result, result, out=out)
    )


@by_method
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Rounded to `decimals` places, halves to even."""
    source = _operand(a)
    if source is None:
        return call_numpy(np.round, (a,), _given(decimals=decimals, out=out))
    if source.dtype == np.bool_:
        source = source.astype(np.float16)  # type: ignore[attr-defined]  # as NumPy
    if source._row.kind != "float":
        if decimals >= 0:
            return _written(UFUNCS["positive"](source), out)
        return call_numpy(np.round, (source,), _given(decimals=decimals, out=out))
    if decimals == 0:
        return UFUNCS["rint"](source) if out is None else UFUNCS["rint"](source, out=out)
    scale = 10.0 ** abs(decimals)
    first, second = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    return _written(UFUNCS[second](UFUNCS["rint"](UFUNCS[first](source, scale)), scale), out)


around = round


def fix(x: Any, out: Any = None) -> Any:
    """Rounded towards zero."""
    return UFUNCS["trunc"](x) if out is None else UFUNCS["trunc"](x, out=out)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether elements are equal within a tolerance."""
    x, y = _operand(a), _operand(b)
    if x is None or y is None:
        return call_numpy(np.isclose, (a, b), {"rtol": rtol, "atol": atol, "equal_nan": equal_nan})
    if y._row.kind != "float":
        y = y.astype(np.result_type(y.dtype, 1.0))  # type: ignore[attr-defined]  # so that abs cannot overflow
    near = (UFUNCS["less_equal"](abs(x - y), atol + rtol * abs(y)) & UFUNCS["isfinite"](y)) | (x == y)  # type: ignore[operator]
    if equal_nan:
        near = near | (UFUNCS["isnan"](x) & UFUNCS["isnan"](y))
    return near


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are equal within a tolerance."""
    return bool(all_along(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have one shape and equal elements."""
    try:
        x, y = _operand(a1), _operand(a2)
    except ValueError:
        return False
    if x is None or y is None:
        return bool(np.array_equal(np.asarray(a1), np.asarray(a2), equal_nan))
    if x.shape != y.shape:
        return False
    same = x == y
    if equal_nan:
        same = same | (UFUNCS["isnan"](x) & UFUNCS["isnan"](y))
    return bool(all_along(same))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays broadcast together and are equal then."""
    x, y = _operand(a1), _operand(a2)
    if x is None or y is None:
        return bool(np.array_equiv(np.asarray(a1), np.asarray(a2)))
    try:
        return bool(all_along(x == y))
    except ValueError:
        return False


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """NaN and the infinities replaced by numbers."""
    source = _operand(x)
    if source is None:
        return call_numpy(np.nan_to_num, (x,), _given(copy=copy, nan=nan, posinf=posinf, neginf=neginf))
    if source._row.kind != "float":
        result = UFUNCS["logical_or"](source, source) if source._row is dtypes.boolean else UFUNCS["positive"](source)
    else:
        limits = np.finfo(source.dtype) if source._row is not dtypes.bfloat16 else np.finfo(np.float32)
        high = float(limits.max) if posinf is None else posinf
        low = float(limits.min) if neginf is None else neginf
        result = _replaced(source, UFUNCS["isnan"](source), nan)
        result = _replaced(result, source == math.inf, high)
        result = _replaced(result, source == -math.inf, low)
    if not copy and isinstance(x, ndarray):
        return UFUNCS["positive"](result, out=x)
    return result


def _replaced(source: ndarray, mask: Any, number: Any) -> ndarray:
    node = read(source)
    value = cast(read(as_operand(number)), node.dtype)
    replaced = where_node(read(mask), value, node)
    return wrap_in_order(replaced, result_order(((source._shape, element_strides(source)),), source._shape))


def _without_nans(a: Any, number: float) -> ndarray | None:
    source = _operand(a)
    if source is None or source._row.kind != "float":
        return source
    return _replaced(source, UFUNCS["isnan"](source), number)


def _nan_function(name: str, plain: Any, number: float) -> Any:
    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Any:
        source = _without_nans(a, number)
        if source is None:
            return call_numpy(
                getattr(np, name),
                (a,),
                _given(axis=axis, dtype=dtype, out=out, keepdims=keepdims, initial=initial, where=where),
            )
        return plain(source, axis, dtype, out, keepdims, initial, where)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name[3:]}` that leaves NaN out."
    return function


nansum = _nan_function("nansum", sum_along, 0.0)
nanprod = _nan_function("nanprod", product_along, 1.0)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running sum that counts NaN as 0."""
    source = _without_nans(a, 0.0)
    return running_sum(a if source is None else source, axis, dtype, out)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Running product that counts NaN as 1."""
    source = _without_nans(a, 1.0)
    return running_product(a if source is None else source, axis, dtype, out)


def _nan_extreme(name: str, ufunc: str, plain: Any) -> Any:
    def function(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Any:
        source = _operand(a)
        if source is None:
            return call_numpy(
                getattr(np, name), (a,), _given(axis=axis, out=out, keepdims=keepdims, initial=initial, where=where)
            )
        if source._row.kind != "float":
            return plain(source, axis, out, keepdims, initial, where)
        return UFUNCS[ufunc].reduce(
            source,
            axis,
            None,
            out,
            False if keepdims is NO_VALUE else keepdims,
            initial,
            True if where is NO_VALUE else where,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name[3:]}` that leaves NaN out."
    return function


nanmax = _nan_extreme("nanmax", "fmax", largest)
nanmin = _nan_extreme("nanmin", "fmin", smallest)


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE
) -> Any:
    """Mean that leaves NaN out."""
    source = _operand(a)
    if source is None or out is not None or where is not NO_VALUE or source._row.kind != "float":
        return mean_along(a, axis, dtype, out, keepdims, where=where) if source is not None and source._row.kind != "float" else call_numpy(
            np.nanmean, (a,), _given(axis=axis, dtype=dtype, out=out, keepdims=keepdims, where=where))  # fmt: skip
    there = UFUNCS["logical_not"](UFUNCS["isnan"](source))
    return mean_along(_replaced(source, UFUNCS["isnan"](source), 0.0), axis, dtype, None, keepdims, where=there)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NO_VALUE) -> Any:
    """Weighted mean over axes."""
    source = _operand(a)
    if source is None or (weights is not None and np.shape(weights) != source.shape):
        return call_numpy(
            np.average, (a,), _given(axis=axis, weights=weights, returned=returned, keepdims=keepdims), by_design=True
        )
    if weights is None:
        result = mean_along(source, axis, None, None, keepdims)
        return (result, full_count(source, result)) if returned else result
    factor = as_operand(weights)
    kind = np.result_type(source.dtype, factor.dtype, np.float64 if source._row.kind != "float" else source.dtype)
    total = sum_along(factor, axis, kind, None, keepdims)
    if bool(sum_along(total == 0.0)):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    result = sum_along(UFUNCS["multiply"](source, factor, dtype=kind), axis, None, None, keepdims) / total
    return (result, total) if returned else result


def full_count(source: ndarray, result: ndarray) -> ndarray:
    """How many elements each element of a mean stands for, in the shape of the mean."""
    count = Constant(float(source.size // result.size if result.size else 0), result._row, result._cell.node.device)
    return wrap(count) + UFUNCS["multiply"](result, 0)  # type: ignore[operator]


def sinc(x: Any) -> Any:
    """``sin(pi x) / (pi x)``, 1 at 0."""
    source = _operand(x)
    if source is None:
        return call_numpy(np.sinc, (x,), {})
    scaled = math.pi * source  # type: ignore[operator]
    tiny = float(np.finfo(scaled.dtype).eps) if scaled._row.kind == "float" else 1e-20
    y = _replaced(scaled, scaled == 0, tiny)
    return UFUNCS["sin"](y) / y


def isposinf(x: Any, out: Any = None) -> Any:
    """Whether elements are +inf."""
    return _written(as_operand(x) == math.inf, out)  # type: ignore[arg-type]


def isneginf(x: Any, out: Any = None) -> Any:
    """Whether elements are -inf."""
    return _written(as_operand(x) == -math.inf, out)  # type: ignore[arg-type]


def real(val: Any) -> Any:
    """The real part: real arrays themselves."""
    return val if isinstance(val, ndarray) else call_numpy(np.real, (val,), {}, by_design=True)


def imag(val: Any) -> Any:
    """The imaginary part: zeros for real arrays, which cannot be written."""
    if isinstance(val, Scalar):
        return wrap(Constant(0, val._row, val._cell.node.device))
    if not isinstance(val, ndarray):
        return call_numpy(np.imag, (val,), {}, by_design=True)
    column_major = val.flags.f_contiguous and not val.flags.c_contiguous
    found = zeros_like(val, order="F" if column_major else "C")
    found._writeable = False
    return found


def isreal(x: Any) -> Any:
    """Whether elements have no imaginary part."""
    if isinstance(x, ndarray):
        return UFUNCS["logical_or"](x == x, True)
    return call_numpy(np.isreal, (x,), {}, by_design=True)


def iscomplex(x: Any) -> Any:
    """Whether elements have an imaginary part."""
    if isinstance(x, ndarray):
        return UFUNCS["logical_and"](x == x, False)
    return call_numpy(np.iscomplex, (x,), {}, by_design=True)


def angle(z: Any, deg: bool = False) -> Any:
    """The argument of complex numbers: 0 or pi for real ones."""
    source = _operand(z)
    if source is None:
        return call_numpy(np.angle, (z,), {"deg": deg}, by_design=True)
    result = UFUNCS["arctan2"](0, source)  # an integer, as NumPy: the width of the result is the array's
    return result * (180 / math.pi) if deg else result


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """Running sum along an axis, as the array API has it."""
    source = _operand(x)
    if source is None or include_initial or (axis is None and source.ndim != 1):
        return call_numpy(
            np.cumulative_sum,
            (x,),
            _given(axis=axis, dtype=dtype, out=out, include_initial=include_initial),
            by_design=True,
        )
    return running_sum(source, 0 if axis is None else axis, dtype, out)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """Running product along an axis, as the array API has it."""
    source = _operand(x)
    if source is None or include_initial or (axis is None and source.ndim != 1):
        return call_numpy(
            np.cumulative_prod,
            (x,),
            _given(axis=axis, dtype=dtype, out=out, include_initial=include_initial),
            by_design=True,
        )
    return running_product(source, 0 if axis is None else axis, dtype, out)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Linear interpolation, by NumPy on the host."""
    return call_numpy(np.interp, (x, xp, fp), _given(left=left, right=right, period=period), by_design=True)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return False if isinstance(x, ndarray) else bool(np.iscomplexobj(x))


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


def ndim(a: Any) -> int:
    """Number of axes."""
    return a.ndim if isinstance(a, ndarray) else np.ndim(a)


def shape(a: Any) -> tuple[int, ...]:
    """Length of each axis."""
    return a.shape if isinstance(a, ndarray) else np.shape(a)


def size(a: Any, axis: Any = None) -> int:
    """Number of elements, or length of one axis."""
    if not isinstance(a, ndarray):
        return int(np.size(a, axis))
    if axis is None:
        return a.size
    return int(np.size(np.broadcast_to(np.empty(()), a.shape), axis))


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype that NumPy's promotion gives to arrays, dtypes and Python scalars together; no value is looked at."""
    return np.result_type(*(one.dtype if isinstance(one, ndarray) else one for one in arrays_and_dtypes))
