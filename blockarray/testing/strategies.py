"""Hypothesis strategies for arrays and for what goes with them.

What is drawn is small and made to shrink well: an array's elements come from one string of bytes, in one of several
flavours, with special values put in at drawn places. Every strategy checks its arguments when it is made, not when it
is first drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import ml_dtypes
import numpy
from hypothesis import strategies
from hypothesis.strategies import DrawFn, SearchStrategy
from numpy.typing import DTypeLike

from blockarray.testing.arguments import Arguments
from blockarray.testing.elements import Values, check_bounds, draw_elements, python_scalars
from blockarray.testing.layouts import Layout

Kind: TypeAlias = Literal["boolean", "signed", "unsigned", "float", "bfloat", "complex"]
LayoutName: TypeAlias = Literal["contiguous", "offset", "transposed", "reversed", "strided", "broadcast"]
Shape: TypeAlias = int | Sequence[int] | SearchStrategy[tuple[int, ...]] | None
DTypes: TypeAlias = DTypeLike | SearchStrategy[numpy.dtype] | None

_KINDS: dict[str, tuple[DTypeLike, ...]] = {
    "boolean": ("bool",),
    "signed": ("int64", "int32", "int16", "int8"),
    "unsigned": ("uint64", "uint32", "uint16", "uint8"),
    "float": ("float64", "float32", "float16"),
    "bfloat": (ml_dtypes.bfloat16,),
    "complex": ("complex128", "complex64"),
}
_DEFAULT_KINDS: tuple[Kind, ...] = ("boolean", "signed", "unsigned", "float")
LAYOUTS: tuple[LayoutName, ...] = ("contiguous", "offset", "transposed", "reversed", "strided", "broadcast")
_MAXIMUM_RANK = 64  # NumPy's own


def dtypes(*kinds: Kind) -> SearchStrategy[numpy.dtype]:
    """Draw a dtype.

    Parameters
    ----------
    *kinds : {"boolean", "signed", "unsigned", "float", "bfloat", "complex"}
        Which kinds of dtype; the first four if none is named. ``"bfloat"`` is ``ml_dtypes.bfloat16``.

    Returns
    -------
    strategy of numpy.dtype

    Examples
    --------
    >>> from blockarray.testing import arrays, assert_matches_numpy
    >>> assert_matches_numpy(lambda x: x // 3, arrays(dtypes("signed", "unsigned")), examples=10)
    """
    for kind in kinds:
        if kind not in _KINDS:
            raise ValueError(f"dtypes: expected kinds among {', '.join(map(repr, _KINDS))}, found {kind!r}")
    return strategies.sampled_from([numpy.dtype(item) for kind in kinds or _DEFAULT_KINDS for item in _KINDS[kind]])


def scalars(
    dtype: DTypes = None,
    *,
    values: Values | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
) -> SearchStrategy[object]:
    """Draw a number.

    Parameters
    ----------
    dtype : dtype, strategy of dtypes, or None
        Of the NumPy scalar. With None, draw Python's ``bool``, ``int`` and ``float`` instead, whose dtype gives way
        to that of any array.
    values : {"any", "finite", "moderate"}, optional
        Which values; see `arrays`.
    minimum, maximum : number, optional
        Bounds, both inclusive.

    Returns
    -------
    strategy of numpy scalars, or of Python's numbers

    Examples
    --------
    >>> from blockarray.testing import arrays, assert_matches_numpy
    >>> assert_matches_numpy(lambda x, k: x * k, arrays("float32", 5), scalars(values="moderate"), examples=10)
    """
    check_bounds("scalars", values, minimum, maximum)
    if dtype is None:
        return python_scalars(values, minimum, maximum)
    chosen = _dtype_strategy("scalars", dtype)

    @strategies.composite
    def scalar(draw: DrawFn) -> object:
        return draw_elements(draw, draw(chosen), 1, values, minimum, maximum)[0]

    return scalar()


def axes(ndim: int, *, none: bool = True, single: bool = True, several: bool = True) -> SearchStrategy[object]:
    """Draw an axis argument for an array of ``ndim`` axes.

    Parameters
    ----------
    ndim : int
        How many axes the array has. With 0, the only axis arguments are None and the empty tuple.
    none : bool
        Whether None, for all axes, may be drawn.
    single : bool
        Whether one axis may be drawn, counted from the front or from the back.
    several : bool
        Whether a tuple of different axes, the empty one included, may be drawn.

    Returns
    -------
    strategy of None, int, or tuple of int
    """
    ndim = _integer("axes", "ndim", ndim, 0, _MAXIMUM_RANK)
    choices: list[SearchStrategy[object]] = []
    if none:
        choices.append(strategies.none())
    if single and ndim:
        choices.append(strategies.integers(-ndim, ndim - 1))
    if several:
        choices.append(_axis_tuples(ndim))
    if not choices:
        raise ValueError(
            f"axes: nothing to draw for ndim {ndim}: set none, single (with ndim of at least 1) or several"
        )
    return strategies.one_of(choices)


def _axis_tuples(ndim: int) -> SearchStrategy[tuple[int, ...]]:
    @strategies.composite
    def several_axes(draw: DrawFn) -> tuple[int, ...]:
        order = draw(strategies.permutations(range(ndim)))
        chosen = order[: draw(strategies.integers(0, ndim))]
        return tuple(axis - ndim if draw(strategies.booleans()) else axis for axis in chosen)

    return several_axes()


def broadcastable_shapes(
    count: int, *, min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 6
) -> SearchStrategy[tuple[tuple[int, ...], ...]]:
    """Draw ``count`` shapes that broadcast together.

    Parameters
    ----------
    count : int
        How many.
    min_dims, max_dims : int
        Bounds of the rank of their common shape; a single shape may have fewer axes.
    min_side, max_side : int
        Bounds of the common shape's extents; a single shape may have 1 instead.

    Returns
    -------
    strategy of tuples of shapes

    Examples
    --------
    >>> from blockarray.testing import Arguments, arrays, assert_matches_numpy
    >>> from hypothesis import strategies
    >>> pairs = broadcastable_shapes(2).flatmap(lambda shapes: strategies.tuples(*(arrays("int8", shape) for shape in shapes)))
    >>> assert_matches_numpy(lambda a, b: a - b, pairs.map(Arguments), examples=10)
    """
    count = _integer("broadcastable_shapes", "count", count, 1, _MAXIMUM_RANK)
    common = _shapes("broadcastable_shapes", min_dims, max_dims, min_side, max_side)

    @strategies.composite
    def shapes(draw: DrawFn) -> tuple[tuple[int, ...], ...]:
        shape = draw(common)
        return tuple(_narrower(draw, shape) for _ in range(count))

    return shapes()


def _narrower(draw: DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    first = draw(strategies.sampled_from([0, 0, *range(len(shape) + 1)]))  # most often all of its axes
    return tuple(1 if draw(strategies.sampled_from([False, False, True])) else extent for extent in shape[first:])


def arrays(
    dtype: DTypes = None,
    shape: Shape = None,
    *,
    min_dims: int = 0,
    max_dims: int = 3,
    min_side: int = 0,
    max_side: int = 6,
    values: Values | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    layouts: Sequence[LayoutName] = LAYOUTS,
) -> SearchStrategy[numpy.ndarray]:
    """Draw an array of NumPy.

    Parameters
    ----------
    dtype : dtype, strategy of dtypes, or None
        None draws from `dtypes`.
    shape : int, tuple of int, strategy of shapes, or None
        None draws from the four bounds that follow.
    min_dims, max_dims, min_side, max_side : int
        Bounds of rank and extents, where ``shape`` is None.
    values : {"any", "finite", "moderate"}, optional
        ``"any"``, the default, draws every value of the dtype, and often the special ones: NaN of both signs and
        several payloads, infinities, signed zeros, subnormal numbers, the extremes, and numbers around 1.
        ``"finite"`` leaves out NaN and infinities. ``"moderate"`` draws numbers of at most three digits, whose sums
        and products are far from every limit.
    minimum, maximum : number, optional
        Bounds, both inclusive; both must be given, and ``values`` must not.
    layouts : sequence of {"contiguous", "offset", "transposed", "reversed", "strided", "broadcast"}
        Ways in which the array may lie in memory; all but the first are combined at will. A broadcast array repeats
        elements, and cannot be written.

    Returns
    -------
    strategy of numpy.ndarray
        Views of a longer row where the layout asks for it. Arrays of more than 64 elements repeat the first 64.

    Examples
    --------
    >>> from blockarray.testing import assert_matches_numpy
    >>> assert_matches_numpy(lambda x: x + x, arrays("int16", layouts=["reversed", "strided"]), examples=10)
    """
    check_bounds("arrays", values, minimum, maximum)
    chosen_dtype = dtypes() if dtype is None else _dtype_strategy("arrays", dtype)
    chosen_shape = _shape_strategy(shape, min_dims, max_dims, min_side, max_side)
    allowed = _check_layouts(layouts)

    @strategies.composite
    def array(draw: DrawFn) -> numpy.ndarray:
        drawn_dtype, drawn_shape = draw(chosen_dtype), draw(chosen_shape)
        elements = draw_elements(draw, drawn_dtype, math.prod(drawn_shape), values, minimum, maximum)
        return _laid_out(draw, elements.reshape(drawn_shape), allowed)

    return array()


def broadcastable_arrays(
    count: int,
    dtype: DTypes = None,
    *,
    min_dims: int = 0,
    max_dims: int = 3,
    min_side: int = 0,
    max_side: int = 6,
    values: Values | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    layouts: Sequence[LayoutName] = LAYOUTS,
) -> SearchStrategy[Arguments]:
    """Draw ``count`` arrays that broadcast together, as so many arguments of `assert_matches_numpy`.

    Parameters
    ----------
    count : int
        How many.
    dtype : dtype, strategy of dtypes, or None
        Of each array; with a strategy or None, each draws its own.
    min_dims, max_dims, min_side, max_side : int
        Bounds of their common shape; see `broadcastable_shapes`.
    values, minimum, maximum, layouts
        See `arrays`.

    Returns
    -------
    strategy of Arguments

    Examples
    --------
    >>> from blockarray.testing import assert_matches_numpy
    >>> assert_matches_numpy(lambda a, b: a > b, broadcastable_arrays(2), examples=10)
    """
    shapes = broadcastable_shapes(count, min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side)
    check_bounds("broadcastable_arrays", values, minimum, maximum)
    if dtype is not None:
        _dtype_strategy("broadcastable_arrays", dtype)
    _check_layouts(layouts)

    @strategies.composite
    def several(draw: DrawFn) -> Arguments:
        made = (
            arrays(dtype, shape, values=values, minimum=minimum, maximum=maximum, layouts=layouts)
            for shape in draw(shapes)
        )
        return Arguments(draw(strategy) for strategy in made)

    return several()


def arrays_with_axes(
    dtype: DTypes = None,
    shape: Shape = None,
    *,
    none: bool = True,
    single: bool = True,
    several: bool = True,
    min_dims: int = 1,
    max_dims: int = 3,
    min_side: int = 0,
    max_side: int = 6,
    values: Values | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    layouts: Sequence[LayoutName] = LAYOUTS,
) -> SearchStrategy[Arguments]:
    """Draw an array and an axis argument for it, as two arguments of `assert_matches_numpy`.

    Parameters
    ----------
    none, single, several : bool
        Which axis arguments; see `axes`.
    dtype, shape, min_dims, max_dims, min_side, max_side, values, minimum, maximum, layouts
        See `arrays`.

    Returns
    -------
    strategy of Arguments

    Examples
    --------
    >>> from blockarray.testing import assert_matches_numpy
    >>> assert_matches_numpy(lambda x, axis: x.any(axis=axis), arrays_with_axes("bool"), examples=10)
    """
    drawn = arrays(
        dtype, shape, min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side, values=values,
        minimum=minimum, maximum=maximum, layouts=layouts,
    )  # fmt: skip
    axes(1, none=none, single=single, several=several)

    @strategies.composite
    def array_and_axis(draw: DrawFn) -> Arguments:
        array = draw(drawn)
        return Arguments((array, draw(axes(array.ndim, none=none, single=single, several=several))))

    return array_and_axis()


def _laid_out(draw: DrawFn, array: numpy.ndarray, layouts: frozenset[str]) -> numpy.ndarray:
    """``array``'s values in a drawn layout."""
    kinds = sorted(layouts)
    if (
        array.ndim == 0
        or array.size == 0
        or ("contiguous" in layouts and (len(kinds) == 1 or draw(strategies.booleans())))
    ):
        return array
    rank = array.ndim
    axes_in_memory = (
        tuple(draw(strategies.permutations(range(rank)))) if "transposed" in layouts else tuple(range(rank))
    )
    offset = draw(strategies.integers(0, 3)) if "offset" in layouts else 0
    shape = array.shape
    repeated: list[int] = []
    if "broadcast" in layouts and draw(strategies.sampled_from([False, False, True])):
        repeated = [axis for axis in range(rank) if draw(strategies.booleans())]
        array = numpy.array(array[tuple(slice(0, 1) if axis in repeated else slice(None) for axis in range(rank))])
    base_shape, index = [], []
    for axis in axes_in_memory:
        step = draw(strategies.integers(1, 3)) if "strided" in layouts else 1
        backwards = "reversed" in layouts and draw(strategies.booleans())
        extent = array.shape[axis] * step
        base_shape.append(extent)
        index.append(slice(extent - step, None, -step) if backwards else slice(None, None, step))
    permutation = tuple(axes_in_memory.index(axis) for axis in range(rank))
    layout = Layout(offset, tuple(base_shape), tuple(index), permutation)
    view = layout.view(numpy.ones(layout.base_size, array.dtype), numpy)
    assert isinstance(view, numpy.ndarray)
    view[...] = array
    return numpy.broadcast_to(view, shape) if repeated else view


def _dtype_strategy(function: str, dtype: DTypes) -> SearchStrategy[numpy.dtype]:
    if isinstance(dtype, SearchStrategy):
        return dtype
    try:
        return strategies.just(numpy.dtype(dtype))
    except TypeError as error:
        raise TypeError(f"{function}: dtype: {error}") from None


def _shape_strategy(
    shape: Shape, min_dims: int, max_dims: int, min_side: int, max_side: int
) -> SearchStrategy[tuple[int, ...]]:
    if shape is None:
        return _shapes("arrays", min_dims, max_dims, min_side, max_side)
    if isinstance(shape, SearchStrategy):
        return shape
    extents = (shape,) if isinstance(shape, (int, numpy.integer)) else shape
    if isinstance(extents, str) or not isinstance(extents, Sequence):
        raise TypeError(f"arrays: shape: expected an int, a tuple of int, or a strategy, found {shape!r}")
    return strategies.just(tuple(_integer("arrays", "shape", extent, 0, None) for extent in extents))


def _shapes(
    function: str, min_dims: int, max_dims: int, min_side: int, max_side: int
) -> SearchStrategy[tuple[int, ...]]:
    _integer(function, "min_dims", min_dims, 0, _MAXIMUM_RANK)
    _integer(function, "max_dims", max_dims, min_dims, _MAXIMUM_RANK)
    _integer(function, "min_side", min_side, 0, None)
    _integer(function, "max_side", max_side, min_side, None)
    return strategies.lists(strategies.integers(min_side, max_side), min_size=min_dims, max_size=max_dims).map(tuple)


def _check_layouts(layouts: Sequence[LayoutName]) -> frozenset[str]:
    if isinstance(layouts, str):
        raise TypeError(f"layouts: expected several names, such as [{layouts!r}], found the text {layouts!r}")
    for name in layouts:
        if name not in LAYOUTS:
            raise ValueError(f"layouts: expected names among {', '.join(map(repr, LAYOUTS))}, found {name!r}")
    if not layouts:
        raise ValueError("layouts: expected at least one name, found none")
    return frozenset(layouts)


def _integer(function: str, name: str, value: object, lowest: int, highest: int | None) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, numpy.integer)):
        raise TypeError(f"{function}: {name}: expected an int, found {value!r}")
    if value < lowest or (highest is not None and value > highest):
        bounds = f"of at least {lowest}" if highest is None else f"between {lowest} and {highest}"
        raise ValueError(f"{function}: {name}: expected an int {bounds}, found {value}")
    return int(value)
