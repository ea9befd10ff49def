"""Constants of expressions in the 8-byte slots that kernels read."""

import ctypes
from collections.abc import Callable

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType

Number = bool | int | float
SetNumber = Callable[[int, Number], None]


class NumberSlots:
    """Slots seen as numbers of each kind, so that writing one converts it.

    Parameters
    ----------
    slots : ctypes array of c_int64
    count : int
    """

    def __init__(self, slots: ctypes.Array, count: int) -> None:
        # An int64 slot takes any Python integer modulo 2**64, so it holds unsigned ones as well.
        self._integers = slots
        self._doubles = (ctypes.c_double * count).from_buffer(slots)
        self._singles = (ctypes.c_float * (2 * count)).from_buffer(slots)

    def setter(self, dtype: DType, position: int) -> tuple[SetNumber, int]:
        """A function and the index to call it with, then the number."""
        if dtype is dtypes.float64:
            return self._doubles.__setitem__, position
        if dtype is dtypes.float32:
            return self._singles.__setitem__, 2 * position
        if dtype.is_half:
            return self._half_setter(dtype), position
        return self._integers.__setitem__, position

    def _half_setter(self, dtype: DType) -> SetNumber:
        integers = self._integers

        def put(position: int, number: Number) -> None:
            with np.errstate(over="ignore"):
                integers[position] = int(np.asarray(number).astype(dtype.numpy).view(np.uint16))

        return put
