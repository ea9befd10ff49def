"""Reduction of huge arguments of trigonometric functions: Payne and Hanek's method in 64-bit integers.

M. Payne, R. Hanek, "Radian reduction for trigonometric functions" (1983): of the product of the argument and 2/pi only
the quotient modulo 4 and the bits behind the point matter, so the bits of 2/pi that give multiples of 4 are skipped.
"""

from codegen import dtypes
from codegen.scalar.function import CoreFunctions, ScalarValue
from codegen.scalar.integer import high_product

# 2/pi in words of 64 bits, the point before the first, preceded by a word of zeros for arguments that skip nothing
TWO_OVER_PI = (
    0x0000000000000000,
    0xA2F9836E4E441529,
    0xFC2757D1F534DDC0,
    0xDB6295993C439041,
    0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0,
    0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484,
    0xE99C7026B45F7E41,
    0x3991D639835339F4,
    0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F,
    0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
)

# pi/2 in two parts, the first of 21 bits: its product with an integer of 32 bits is exact
_HALF_PI_HIGH = 1.570796012878418
_HALF_PI_LOW = 3.139164786504813e-07
_HALF_PI = 1.5707963267948966


def _four_words_from(core: CoreFunctions, first: ScalarValue) -> list[ScalarValue]:
    """Four consecutive words of 2/pi; by selection, as there is no look-up in a table per element."""
    words = [core.constant_of(dtypes.uint64, first, word) for word in TWO_OVER_PI]
    for step in (16, 8, 4, 2, 1):
        skipped = (first & step) != 0
        needed = min(len(words), step + 3)
        words = [
            core.where(skipped, words[i + step], words[i]) if i + step < len(words) else words[i] for i in range(needed)
        ]
    return words


def reduce_huge(core: CoreFunctions, x: ScalarValue) -> tuple[ScalarValue, ScalarValue, ScalarValue]:
    """``x = n pi/2 + r`` for a finite float64 of at least 2**20.

    Returns
    -------
    tuple
        r with ``|r| <= pi/4``, what its rounding lost, and the lowest bits of n (a uint64); anything for other values of x.
    """
    pattern = core.bits(x)
    mantissa = (pattern & (2**52 - 1)) | 2**52
    # x = mantissa * 2**(field - 1075); the first bit that matters is worth 2**-(field - 1076), behind 64 zeros
    offset = (pattern >> 52) - (1075 + 2 - 64)
    words = _four_words_from(core, offset >> 6)
    shift = offset & 63
    window = [
        (upper << shift) | ((lower >> 1) >> (63 - shift)) for upper, lower in zip(words[:3], words[1:], strict=True)
    ]
    # mantissa * window modulo 2**192, without the lowest word, whose carry is too small to matter
    partial = mantissa * window[1]
    low = high_product(core, mantissa, window[2]) + partial
    carry = core.convert(low < partial, dtypes.uint64)
    high = high_product(core, mantissa, window[1]) + mantissa * window[0] + carry

    # the two leading bits are n modulo 4, what follows is a fraction of a quarter turn: taken as a signed number, which
    # rounds n to nearest
    fraction = core.from_bits((high << 2) | (low >> 62), dtypes.int64)
    quotient = (high >> 62) + core.convert(fraction < 0, dtypes.uint64)
    upper = core.convert(fraction >> 32, dtypes.float64) * 2.0**-32
    lower = core.convert(core.from_bits(core.bits(fraction) & (2**32 - 1), dtypes.int64), dtypes.float64) * 2.0**-64
    lower = lower + core.convert(core.from_bits((low << 2) >> 1, dtypes.int64), dtypes.float64) * 2.0**-127
    large, small = upper * _HALF_PI_HIGH, upper * _HALF_PI_LOW + lower * _HALF_PI
    rest = large + small
    return rest, (large - rest) + small, quotient
