"""What is in a drawn array: ordinary numbers, arbitrary bit patterns, and the special values of its dtype."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy
from hypothesis import strategies
from hypothesis.strategies import DrawFn, SearchStrategy

from blockarray.testing.comparison import is_floating

Values: TypeAlias = Literal["any", "finite", "moderate"]

_VALUES = ("any", "finite", "moderate")
_MAXIMUM_DRAWN = 64  # elements; a longer array repeats them, since Hypothesis would spend its entropy on the length
_MAXIMUM_SPECIAL = 6
_SMALL = 9  # one digit: arrays with equal elements, which is what ties need
_MODERATE = 999  # three digits: sums and products of some of them are exact in float32


def check_bounds(function: str, values: object, minimum: object, maximum: object) -> None:
    """Refuse a name of values that does not exist, one bound alone, bounds in the wrong order, and both together."""
    if values is not None and values not in _VALUES:
        raise ValueError(f"{function}: values: expected one of {', '.join(map(repr, _VALUES))}, found {values!r}")
    if minimum is None and maximum is None:
        return
    for name, bound in (("minimum", minimum), ("maximum", maximum)):
        if bound is None:
            raise TypeError(f"{function}: {name}: expected a number, since the other bound is given, found None")
        if isinstance(bound, bool) or not isinstance(bound, (int, float, numpy.integer, numpy.floating)):
            raise TypeError(f"{function}: {name}: expected a real number, found {bound!r}")
        if not math.isfinite(bound):
            raise ValueError(f"{function}: {name}: expected a finite number, found {bound!r}")
    if minimum > maximum:  # type: ignore[operator]
        raise ValueError(f"{function}: expected minimum <= maximum, found {minimum!r} and {maximum!r}")
    if values is not None:
        raise TypeError(f"{function}: values={values!r} and bounds exclude each other: leave out one")


def python_scalars(values: Values | None, minimum: float | None, maximum: float | None) -> SearchStrategy[object]:
    """Python's bool, int and float."""
    if minimum is not None and maximum is not None:
        integers = (
            strategies.integers(math.ceil(minimum), math.floor(maximum)) if math.ceil(minimum) <= maximum else None
        )
        floats = strategies.floats(float(minimum), float(maximum))
        return floats if integers is None else integers | floats
    largest = _MODERATE if values == "moderate" else 2**31 - 1  # an int that every dtype of 32 bits takes
    finite = values in ("finite", "moderate")
    floats = (
        strategies.floats(-largest, largest)
        if values == "moderate"
        else strategies.floats(allow_nan=not finite, allow_infinity=not finite)
    )
    return strategies.booleans() | strategies.integers(-largest, largest) | floats


def draw_elements(
    draw: DrawFn, dtype: numpy.dtype, count: int, values: Values | None, minimum: float | None, maximum: float | None
) -> numpy.ndarray:
    """``count`` elements of ``dtype`` in a row of their own.

    Raises
    ------
    TypeError
        There is no way to draw such a dtype.
    """
    drawn = min(count, _MAXIMUM_DRAWN)
    if dtype.kind == "c":
        part = numpy.dtype(f"f{dtype.itemsize // 2}")
        elements = draw_elements(draw, part, 2 * drawn, values, minimum, maximum)[: 2 * drawn].view(dtype)
    elif minimum is not None and maximum is not None:
        elements = _between(draw, dtype, drawn, minimum, maximum)
    elif dtype.kind == "b":
        elements = (_bytes(draw, drawn, 1) & 1).astype(dtype)
    elif dtype.kind in "iu":
        elements = _integers(draw, dtype, drawn, values or "any")
    elif is_floating(dtype) and dtype.itemsize <= 8:
        elements = _quiet(_floats(draw, dtype, drawn, values or "any"))
    else:
        raise TypeError(f"arrays: expected a boolean, integer, floating point or complex dtype, found {dtype}")
    return numpy.resize(elements, count) if count > drawn else elements


def _quiet(elements: numpy.ndarray) -> numpy.ndarray:
    """Signalling NaNs made quiet: what they give differs between C libraries, and any copy through a register may lose them."""
    with numpy.errstate(all="ignore"):
        return numpy.where(numpy.isnan(elements), elements + elements, elements)


def _bytes(draw: DrawFn, count: int, itemsize: int) -> numpy.ndarray:
    """``count`` unsigned integers of ``itemsize`` bytes; they shrink to 0."""
    size = count * itemsize
    return numpy.frombuffer(draw(strategies.binary(min_size=size, max_size=size)), f"<u{itemsize}").copy()


def _integers(draw: DrawFn, dtype: numpy.dtype, count: int, values: Values) -> numpy.ndarray:
    limits = numpy.iinfo(dtype)
    if values == "moderate" or draw(strategies.booleans()):
        largest = draw(strategies.sampled_from([_SMALL, _MODERATE]))
        low, high = max(int(limits.min), -largest), min(int(limits.max), largest)
        steps = _bytes(draw, count, 2).astype(numpy.int64) % (high - low + 1)
        return numpy.where(steps <= high, steps, high - steps).astype(dtype)
    elements = _bytes(draw, count, dtype.itemsize).view(dtype)
    special = numpy.array([limits.min, limits.max, 0, 1, limits.max // 2, limits.max - 1, limits.min + 1], dtype)
    if dtype.kind == "i":
        special = numpy.append(special, numpy.array([-1, -2], dtype))
    return _with_special(draw, elements, special)


def _floats(draw: DrawFn, dtype: numpy.dtype, count: int, values: Values) -> numpy.ndarray:
    flavour = "moderate" if values == "moderate" else draw(strategies.sampled_from(["moderate", "moderate", "any"]))
    if flavour == "moderate":
        # Whole numbers, or 64ths where the dtype has the digits: exact, and most sums of them are too.
        unit = 64 if dtype.itemsize >= 4 and draw(strategies.booleans()) else 1
        largest = unit * draw(strategies.sampled_from([_SMALL, _MODERATE]))
        steps = _bytes(draw, count, 2).astype(numpy.float64) % (2 * largest + 1)
        elements = (numpy.where(steps <= largest, steps, largest - steps) / unit).astype(dtype)
    else:
        elements = _bytes(draw, count, dtype.itemsize).view(dtype)
    if values == "moderate":
        return elements
    if draw(strategies.booleans()):
        elements = _with_special(draw, elements, _special_floats(dtype))
    return elements if values == "any" else numpy.where(numpy.isfinite(elements), elements, numpy.zeros((), dtype))


def _special_floats(dtype: numpy.dtype) -> numpy.ndarray:
    """NaN of both signs with two payloads, infinities, zeros, subnormal numbers, extremes, and what lies around 1, as bit patterns."""
    width = dtype.itemsize * 8
    sign = 1 << (width - 1)
    one = int(numpy.ones((), dtype).view(f"u{dtype.itemsize}"))
    infinity = int(numpy.array(numpy.inf).astype(dtype).view(f"u{dtype.itemsize}"))
    smallest_normal = infinity & ~(infinity << 1)  # the lowest bit of the exponent
    quiet = infinity | (smallest_normal >> 1)
    positive = [
        0,
        infinity,
        quiet,
        quiet | 5,
        1,
        smallest_normal - 1,
        smallest_normal,
        infinity - 1,
        one,
        one + 1,
        one - 1,
    ]
    patterns = [pattern | bit for pattern in positive for bit in (0, sign)]
    return numpy.array(patterns, f"u{dtype.itemsize}").view(dtype)


def _with_special(draw: DrawFn, elements: numpy.ndarray, special: numpy.ndarray) -> numpy.ndarray:
    if not elements.size:
        return elements
    place = strategies.integers(0, elements.size - 1)
    which = strategies.integers(0, special.size - 1)
    for position, choice in draw(strategies.lists(strategies.tuples(place, which), max_size=_MAXIMUM_SPECIAL)):
        # Bit by bit: an assignment through a register may make a signalling NaN quiet, or lose a payload.
        unsigned = f"u{elements.dtype.itemsize}"
        elements.view(unsigned)[position] = special.view(unsigned)[choice]
    return elements


def _between(draw: DrawFn, dtype: numpy.dtype, count: int, minimum: float, maximum: float) -> numpy.ndarray:
    if dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        low, high = math.ceil(minimum), math.floor(maximum)
        if low > high or low < limits.min or high > limits.max:
            raise ValueError(f"arrays: {dtype.name} has no values, or not all, between {minimum!r} and {maximum!r}")
        offsets = [int(step) % (high - low + 1) for step in _bytes(draw, count, 8)]
        return numpy.array([low + offset for offset in offsets], dtype)
    if not is_floating(dtype):
        raise TypeError(f"arrays: bounds need an integer or floating point dtype, found {dtype}")
    share = _bytes(draw, count, 2).astype(numpy.float64) / (2**16 - 1)
    exact = minimum * (1 - share) + maximum * share
    # Rounding to a narrow dtype may step over a bound.
    lowest, highest = numpy.array(minimum).astype(dtype), numpy.array(maximum).astype(dtype)
    rounded = exact.astype(dtype)
    return numpy.where(rounded < lowest, lowest, numpy.where(rounded > highest, highest, rounded)).astype(dtype)
