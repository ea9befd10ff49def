"""Compare arrays by value, in units in the last place, and show the first differences."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy

_SHOWN_DIFFERENCES = 5
_INFINITE_DISTANCE = numpy.iinfo(numpy.uint64).max

MaximumUlp = float | Mapping[str, float]


def is_floating(dtype: numpy.dtype) -> bool:
    """Whether ``dtype`` is real floating point; bfloat16 and its kin count, though NumPy gives them another kind."""
    return dtype.kind == "f" or (
        dtype.kind == "V" and dtype.fields is None and dtype.name.startswith(("bfloat", "float"))
    )


def ulp_distance(actual: object, expected: object) -> numpy.ndarray:
    """How many units in the last place lie between the elements of two floating point arrays.

    One unit is the step from a representable number to the next one of the same dtype. The two zeros are the same
    number here; NaN is at distance 0 from NaN; an infinity is infinitely far (the largest uint64) from everything
    else, and so is NaN.

    Parameters
    ----------
    actual, expected : array_like
        Two real or two complex floating point arrays of one dtype, whose shapes broadcast together.

    Returns
    -------
    ndarray of uint64
        For complex numbers, the larger of the distances of the two parts.

    Raises
    ------
    TypeError
        The dtypes differ, or are not floating point.

    Examples
    --------
    >>> import numpy
    >>> ulp_distance(numpy.float32([1, 1, numpy.nan]), numpy.nextafter(numpy.float32([1, 1, numpy.nan]), numpy.float32([1, 2, 0])))
    array([0, 1, 0], dtype=uint64)
    """
    first, second = numpy.asarray(actual), numpy.asarray(expected)
    if first.dtype != second.dtype:
        raise TypeError(f"ulp_distance: expected arrays of one dtype, found {first.dtype.name} and {second.dtype.name}")
    if first.dtype.kind == "c":
        return numpy.maximum(ulp_distance(first.real, second.real), ulp_distance(first.imag, second.imag))
    if not is_floating(first.dtype) or first.dtype.itemsize > 8:
        raise TypeError(
            f"ulp_distance: expected float16, bfloat16, float32, float64 or complex arrays, found {first.dtype.name}"
        )
    first, second = numpy.broadcast_arrays(first, second)
    one, other = _ordered(first), _ordered(second)
    distance = numpy.where(one > other, one - other, other - one)
    special_first, special_second = ~numpy.isfinite(first), ~numpy.isfinite(second)
    same = (first == second) | (numpy.isnan(first) & numpy.isnan(second))
    distance = numpy.where((special_first | special_second) & ~same, _INFINITE_DISTANCE, distance)
    return numpy.asarray(numpy.where(same, numpy.uint64(0), distance))


def _ordered(array: numpy.ndarray) -> numpy.ndarray:
    """Each number's place in the row of all numbers of its dtype, both zeros at one place, as uint64."""
    bits = array.dtype.itemsize * 8
    pattern = numpy.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(numpy.uint64).reshape(array.shape)
    half = numpy.uint64(1 << (bits - 1))
    magnitude = pattern & (half - numpy.uint64(1))
    return numpy.asarray(numpy.where(pattern & half, half - magnitude, half + magnitude))


def assert_equal_arrays(
    actual: object,
    expected: object,
    *,
    max_ulp: MaximumUlp = 0,
    relative_tolerance: float = 0.0,
    absolute_tolerance: float = 0.0,
    signed_zeros: bool = True,
    check_dtype: bool = True,
) -> None:
    """Raise if two arrays are not equal; the message shows the first differences.

    Shape and dtype must be equal, integers, booleans and everything else that is not floating point must be equal
    element by element. NaN equals NaN, whatever its sign and payload. Floating point elements may differ by
    ``max_ulp``, or by what the tolerances allow.

    Parameters
    ----------
    actual : array_like
        What was found. Arrays of ``blockarray`` are computed here.
    expected : array_like
        What it should be.
    max_ulp : number or mapping from dtype name to number
        Units in the last place. In a mapping, dtypes that are not named must be equal exactly.
    relative_tolerance, absolute_tolerance : float
        Elements within ``absolute_tolerance + relative_tolerance * abs(expected)`` are equal too.
    signed_zeros : bool
        Whether 0.0 and -0.0 differ.
    check_dtype : bool
        Whether the dtypes must be equal; if not, both are compared in their common dtype.

    Raises
    ------
    AssertionError
        They are not equal.
    TypeError, ValueError
        An argument of this function is wrong.

    Examples
    --------
    >>> import numpy
    >>> assert_equal_arrays(numpy.array([0.1 + 0.2]), numpy.array([0.3]), max_ulp=1)
    >>> assert_equal_arrays(numpy.array([1, 2, 4]), numpy.array([1, 2, 3]))
    Traceback (most recent call last):
        ...
    AssertionError: 1 of 3 elements differ (int64, shape (3,)):
      index  expected  found
        (2)         3      4
    """
    check_max_ulp(max_ulp)
    check_tolerance("relative_tolerance", relative_tolerance)
    check_tolerance("absolute_tolerance", absolute_tolerance)
    found, wanted = numpy.asarray(actual), numpy.asarray(expected)
    if found.shape != wanted.shape:
        raise AssertionError(f"shapes differ: expected {wanted.shape}, found {found.shape}")
    if found.dtype != wanted.dtype:
        if check_dtype:
            raise AssertionError(f"dtypes differ: expected {wanted.dtype.name}, found {found.dtype.name}")
        common = numpy.result_type(found.dtype, wanted.dtype)
        found, wanted = found.astype(common), wanted.astype(common)
    allowed = max_ulp if not isinstance(max_ulp, Mapping) else max_ulp.get(wanted.dtype.name, 0)
    wrong, distance = _differing(found, wanted, allowed, signed_zeros)
    if wrong.any() and (relative_tolerance or absolute_tolerance) and wanted.dtype.kind not in "bOSUmM":
        wrong &= ~_within(found, wanted, relative_tolerance, absolute_tolerance)
    if wrong.any():
        raise AssertionError(_message(found, wanted, wrong, distance, allowed))


def check_max_ulp(max_ulp: MaximumUlp) -> None:
    """Refuse what is not a number of ULP, or a mapping of dtype names to such."""
    if not isinstance(max_ulp, Mapping):
        check_tolerance("max_ulp", max_ulp)
        return
    for name, number in max_ulp.items():
        if not isinstance(name, str):
            raise TypeError(f"max_ulp: expected names of dtypes as keys, such as 'float32', found {name!r}")
        check_tolerance(f"max_ulp[{name!r}]", number)


def check_tolerance(name: str, value: object) -> None:
    """Refuse what is not a real number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, numpy.integer, numpy.floating)):
        raise TypeError(f"{name}: expected a number, found {value!r}")
    if math.isnan(value) or value < 0:
        raise ValueError(f"{name}: expected a number of at least 0, found {value!r}")


def _differing(
    found: numpy.ndarray, wanted: numpy.ndarray, allowed: float, signed_zeros: bool
) -> tuple[numpy.ndarray, numpy.ndarray | None]:
    """Where two arrays of one dtype differ, and by how many ULP if that can be said."""
    floating = wanted.dtype.kind == "c" or is_floating(wanted.dtype)
    if not floating or wanted.dtype.itemsize > (16 if wanted.dtype.kind == "c" else 8):
        unequal = found != wanted
        if floating:  # long double: no integer is as wide
            unequal &= ~(numpy.isnan(found) & numpy.isnan(wanted))
        return numpy.atleast_1d(unequal).reshape(wanted.shape), None
    distance = ulp_distance(found, wanted)
    wrong = distance > allowed
    if signed_zeros:
        parts = (
            [(found.real, wanted.real), (found.imag, wanted.imag)] if wanted.dtype.kind == "c" else [(found, wanted)]
        )
        for one, other in parts:
            wrong = wrong | ((one == 0) & (other == 0) & (numpy.signbit(one) != numpy.signbit(other)))
    return numpy.asarray(wrong), distance


def _within(found: numpy.ndarray, wanted: numpy.ndarray, relative: float, absolute: float) -> numpy.ndarray:
    wide = numpy.complex128 if wanted.dtype.kind == "c" else numpy.float64
    one, other = found.astype(wide), wanted.astype(wide)
    with numpy.errstate(invalid="ignore", over="ignore"):
        close = numpy.abs(one - other) <= absolute + relative * numpy.abs(other)
    return numpy.asarray(close & numpy.isfinite(one) & numpy.isfinite(other))


def _message(
    found: numpy.ndarray, wanted: numpy.ndarray, wrong: numpy.ndarray, distance: numpy.ndarray | None, allowed: float
) -> str:
    count = int(numpy.count_nonzero(wrong))
    head = f"{count} of {wanted.size} elements differ ({wanted.dtype.name}, shape {wanted.shape}"
    if distance is not None:
        largest = distance[wrong].max()
        head += f", at most {allowed:g} ulp allowed, found {_distance_text(largest)}"
        if largest <= allowed:
            head += ", but zeros of different sign"
    rows = [("index", "expected", "found", "ulp")]
    for index in [tuple(map(int, place)) for place in numpy.argwhere(wrong)[:_SHOWN_DIFFERENCES]]:
        apart = "" if distance is None else _distance_text(distance[index])
        rows.append((f"({', '.join(map(str, index))})", _element(wanted[index]), _element(found[index]), apart))
    if distance is None:
        rows = [(*row[:3], "") for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    if count > _SHOWN_DIFFERENCES:
        lines.append(f"  ... and {count - _SHOWN_DIFFERENCES} more")
    return "\n".join([head + "):", *lines])


def _distance_text(distance: numpy.uint64) -> str:
    return "infinitely many" if distance == _INFINITE_DISTANCE else f"{int(distance)}"


def _element(value: object) -> str:
    """The number alone, with all its digits: ``1.5``, not ``np.float64(1.5)``."""
    if isinstance(value, numpy.generic) and value.dtype.kind in "fciub":
        return str(value)
    return repr(value)
