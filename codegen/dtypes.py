"""The element types of blocks and buffers: one row each, interned, compared by identity."""

from dataclasses import dataclass
from typing import Literal

import ml_dtypes
import numpy as np

Kind = Literal["boolean", "signed", "unsigned", "float"]


@dataclass(frozen=True, eq=False)
class DType:
    """One element type.

    Attributes
    ----------
    name : str
        NumPy's name of it (``bool``, ``int8`` … ``float64``, ``bfloat16``).
    numpy : numpy.dtype
        The same type in NumPy, native byte order.
    kind : {"boolean", "signed", "unsigned", "float"}
    bits : int
        Width in memory, in bits (a boolean takes a byte there and one bit in a register).
    """

    name: str
    numpy: np.dtype
    kind: Kind
    bits: int

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return self.bits // 8

    @property
    def is_half(self) -> bool:
        """Whether arithmetic widens to float32 and rounds back, as NumPy does."""
        return self.kind == "float" and self.bits == 16

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return by_name, (self.name,)


boolean = DType("bool", np.dtype(np.bool_), "boolean", 8)
int8 = DType("int8", np.dtype(np.int8), "signed", 8)
int16 = DType("int16", np.dtype(np.int16), "signed", 16)
int32 = DType("int32", np.dtype(np.int32), "signed", 32)
int64 = DType("int64", np.dtype(np.int64), "signed", 64)
uint8 = DType("uint8", np.dtype(np.uint8), "unsigned", 8)
uint16 = DType("uint16", np.dtype(np.uint16), "unsigned", 16)
uint32 = DType("uint32", np.dtype(np.uint32), "unsigned", 32)
uint64 = DType("uint64", np.dtype(np.uint64), "unsigned", 64)
float16 = DType("float16", np.dtype(np.float16), "float", 16)
bfloat16 = DType("bfloat16", np.dtype(ml_dtypes.bfloat16), "float", 16)
float32 = DType("float32", np.dtype(np.float32), "float", 32)
float64 = DType("float64", np.dtype(np.float64), "float", 64)

ALL = (boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64)
_BY_NAME = {row.name: row for row in ALL}
_BY_NUMPY = {row.numpy: row for row in ALL}


def by_name(name: str) -> DType:
    """The row called `name`; KeyError names the known ones."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise KeyError(f"no dtype is called {name!r}; known: {', '.join(_BY_NAME)}") from None


def of(dtype: np.dtype) -> DType:
    """The row of a NumPy dtype (native byte order); TypeError if kernels have no such elements."""
    row = find(dtype)
    if row is None:
        raise TypeError(f"kernels have no elements of dtype {dtype!r}; they have {', '.join(_BY_NAME)}")
    return row


def find(dtype: np.dtype) -> DType | None:
    """The row of a NumPy dtype, or None. C's two names of one 64-bit integer are one row."""
    row = _BY_NUMPY.get(dtype)
    if row is None and dtype.kind in "iu" and dtype.isnative:
        row = _BY_NAME.get(f"{'int' if dtype.kind == 'i' else 'uint'}{8 * dtype.itemsize}")
    return row


def unsigned_of_width(bits: int) -> DType:
    """The unsigned integer of the same width, in bits."""
    return _BY_NAME[f"uint{bits}"]


def signed_of_width(bits: int) -> DType:
    """The signed integer of the same width, in bits."""
    return _BY_NAME[f"int{bits}"]
