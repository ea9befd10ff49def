"""Constants of expressions as the 8-byte slots that kernels read."""

import struct
from collections.abc import Callable

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType

Number = bool | int | float


def _integer(number: Number) -> int:
    value = int(number) & 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >> 63 else value


def _float64(number: Number) -> int:
    return struct.unpack("<q", struct.pack("<d", number))[0]


def _float32(number: Number) -> int:
    return int(np.float32(number).view(np.uint32))


def _half(dtype: DType) -> Callable[[Number], int]:
    return lambda number: int(np.asarray(number).astype(dtype.numpy).view(np.uint16))


_ENCODERS: dict[DType, Callable[[Number], int]] = {dtype: _integer for dtype in dtypes.ALL if dtype.kind != "float"} | {
    dtypes.float64: _float64,
    dtypes.float32: _float32,
    dtypes.float16: _half(dtypes.float16),
    dtypes.bfloat16: _half(dtypes.bfloat16),
}


def encode(number: Number, dtype: DType) -> int:
    """The slot, as a signed 64-bit integer, that holds `number` as a `dtype`."""
    return _ENCODERS[dtype](number)
