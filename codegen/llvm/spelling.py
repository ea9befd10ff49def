"""How types and numbers are spelled in LLVM's text."""

import struct

import ml_dtypes
import numpy as np

from codegen import dtypes
from codegen.dtypes import DType

Number = bool | int | float

# Halves live in registers as bit patterns: arithmetic on them always widens first, and LLVM's own half and bfloat types
# would turn every unsupported conversion into a library call.
_REGISTER = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "float16": "i16",
    "bfloat16": "i16",
    "float32": "float",
    "float64": "double",
}
_SUFFIX = {"i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "float": "f32", "double": "f64"}


def element_type(dtype: DType) -> str:
    """Type of one element in a register."""
    return _REGISTER[dtype.name]


def memory_type(dtype: DType) -> str:
    """Type of one element in memory: a boolean takes a byte there."""
    return "i8" if dtype is dtypes.boolean else _REGISTER[dtype.name]


def vector(element: str, width: int) -> str:
    """A register of `width` elements; the element itself for width 1."""
    return element if width == 1 else f"<{width} x {element}>"


def register_type(dtype: DType, width: int) -> str:
    """Type of a register that holds `width` elements."""
    return vector(_REGISTER[dtype.name], width)


def mangled(element: str, width: int) -> str:
    """Type suffix of an overloaded intrinsic: ``v8f32``, ``i64``."""
    suffix = _SUFFIX[element]
    return suffix if width == 1 else f"v{width}{suffix}"


def number(dtype: DType, value: Number) -> str:
    """One element written exactly."""
    if dtype is dtypes.boolean:
        return "true" if value else "false"
    if dtype is dtypes.float16:
        return str(int(np.float64(value).astype(np.float16).view(np.uint16)))
    if dtype is dtypes.bfloat16:
        return str(int(np.float64(value).astype(ml_dtypes.bfloat16).view(np.uint16)))
    if dtype.kind == "float":
        return _float(float(value) if dtype is dtypes.float64 else _rounded_to_float32(value))
    return str(int(value) & (2**dtype.bits - 1))


def _rounded_to_float32(value: Number) -> float:
    with np.errstate(over="ignore"):
        return float(np.float64(value).astype(np.float32))


def _float(value: float) -> str:
    """LLVM writes float and double constants alike: the 64 bits of the double in hexadecimal."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def to_bytes(dtype: DType, value: Number) -> bytes:
    """One element as it lies in memory."""
    if dtype.kind == "float" or dtype is dtypes.boolean:
        with np.errstate(over="ignore"):
            return np.array([value]).astype(dtype.numpy).tobytes()
    return (int(value) & (2**dtype.bits - 1)).to_bytes(dtype.itemsize, "little")


def splat(element: str, literal: str, width: int) -> str:
    """A constant register with one literal in every element."""
    return literal if width == 1 else f"splat ({element} {literal})"


def literal(dtype: DType, value: Number, width: int) -> str:
    """A constant register filled with `value`."""
    return splat(_REGISTER[dtype.name], number(dtype, value), width)


def sequence(first: int, width: int, element: str = "i64") -> str:
    """The constant register ``first, first + 1, …``."""
    if width == 1:
        return str(first)
    return "<" + ", ".join(f"{element} {first + position}" for position in range(width)) + ">"


def shuffle_mask(indices: list[int]) -> str:
    """A mask of shufflevector."""
    return f"<{len(indices)} x i32> <" + ", ".join(f"i32 {index}" for index in indices) + ">"
