"""Fused multiply-adds of NumPy arrays: ``a * b + c`` rounded once, which NumPy does not have, bit for bit as a machine's.

A float32's product is exact in float64, a float64's is the sum of two of them (T. J. Dekker, "A floating-point technique for
extending the available precision", 1971). What is left to round is summed rounding to odd, which makes the last rounding the
only one that shows (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
odd", 2008).
"""

from fractions import Fraction

import numpy as np

Array = np.ndarray

# Halves of 26 bits: 2**27 + 1 times a number splits it.
_SPLITTER = 2.0**27 + 1.0

# Exponents of products between which no part of Dekker's product overflows or loses a bit to underflow.
_LEAST_EXPONENT, _GREATEST_EXPONENT = -900, 990

# A number is not changed by one that is smaller by this many powers of two, nor is the rounding of the sum.
_NEGLIGIBLE = 120


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` rounded once.

    Parameters
    ----------
    a, b, c : numpy.ndarray
        Of one dtype, float32 or float64; they broadcast.

    Returns
    -------
    numpy.ndarray
        Of that dtype.

    Examples
    --------
    >>> x = np.float64([1 + 2**-30])
    >>> multiply_add(x, x, -x * x) == 2.0**-60
    array([ True])
    """
    with np.errstate(all="ignore"):
        if a.dtype == np.float32:
            wide = _sum_to_odd(a.astype(np.float64) * b, c.astype(np.float64))
            return np.asarray(wide.astype(np.float32))
        shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
        return _of_doubles(*np.broadcast_arrays(*np.atleast_1d(a, b, c))).reshape(shape)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum, and what rounding took (D. E. Knuth)."""
    total = np.asarray(a + b)
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _sum_to_odd(a: Array, b: Array) -> Array:
    """The sum, rounded to the neighbour with an odd last bit where it is not exact."""
    total, rest = _two_sum(a, b)
    pattern = total.view(np.int64)
    moves = (rest != 0) & ((pattern & 1) == 0) & np.isfinite(rest)
    outwards = (rest > 0) == (total > 0)
    return np.asarray(np.where(moves, pattern + np.where(outwards, 1, -1), pattern)).view(np.float64)


def _halves(x: Array) -> tuple[Array, Array]:
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def _of_doubles(a: Array, b: Array, c: Array) -> Array:
    product = a * b
    # A product that is rounded to zero keeps its sign beside a zero.
    plain = np.where((c == 0) & (a != 0) & (b != 0), product, product + c)
    plain = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, plain)
    exponent = np.frexp(a)[1] + np.frexp(b)[1]
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    simple = ~finite | (a == 0) | (b == 0) | (c == 0)
    in_range = (exponent > _LEAST_EXPONENT) & (exponent < _GREATEST_EXPONENT) & (np.abs(c) < 2.0**_GREATEST_EXPONENT)
    # Powers of two balance the factors: neither overflows when it is split.
    shift = np.where(simple | ~in_range, 0, np.frexp(a)[1])
    first, second = np.ldexp(a, -shift), np.ldexp(b, shift)
    (first_high, first_low), (second_high, second_low) = _halves(first), _halves(second)
    lost = first_high * second_high - product
    lost = ((lost + first_high * second_low) + first_low * second_high) + first_low * second_low
    middle, low = _two_sum(c, lost)
    high, rest = _two_sum(product, middle)
    result = high + _sum_to_odd(low, rest)
    vanishes = ~simple & (exponent <= _LEAST_EXPONENT) & (exponent + _NEGLIGIBLE < np.frexp(c)[1])
    result = np.where(simple, plain, np.where(vanishes, c, result))
    for index in zip(*np.nonzero(~simple & ~in_range & ~vanishes), strict=True):
        result[index] = _exactly(float(a[index]), float(b[index]), float(c[index]))
    return np.asarray(result)


def _exactly(a: float, b: float, c: float) -> float:
    """By rational numbers, of whose quotient Python rounds correctly."""
    total = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")
