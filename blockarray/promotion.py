"""Result types by NumPy's own resolver, remembered; shapes that broadcast; memory order of results."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from blockarray.graph.nodes import Shape, token
from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.table import TABLE

# What an operand counts as: an array's dtype, or the class of a Python number (which adapts to the arrays beside it).
OperandKind = DType | type


class Resolution(NamedTuple):
    """How a ufunc runs on operands of some kinds.

    `rows` are names of scalar functions, one per output, with the token of each `Map`.
    """

    inputs: tuple[DType, ...]
    rows: tuple[str, ...]
    outputs: tuple[DType, ...]
    tokens: tuple[int, ...]


def numpy_kind(kind: OperandKind) -> np.dtype | type:
    """The kind as NumPy's resolver takes it."""
    if isinstance(kind, DType):
        return kind.numpy
    return dtypes.boolean.numpy if kind is bool else kind


def resolve(
    ufunc: np.ufunc,
    rows: tuple[str, ...],
    kinds: tuple[OperandKind, ...],
    signature: tuple | None = None,
    casting: str = "same_kind",
) -> Resolution | None:
    """The loop that NumPy would run, or None if kernels have no such loop; TypeError with NumPy's text if there is none at all."""
    wanted = tuple(numpy_kind(kind) for kind in kinds) + (None,) * ufunc.nout
    extra = {} if signature is None else {"signature": signature}
    found = ufunc.resolve_dtypes(wanted, casting=casting, **extra)  # type: ignore[arg-type, call-arg]
    inputs = tuple(dtypes.find(dtype) for dtype in found[: ufunc.nin])
    outputs = tuple(dtypes.find(dtype) for dtype in found[ufunc.nin :])
    if None in inputs or None in outputs:
        return None
    known_inputs = tuple(dtype for dtype in inputs if dtype is not None)
    known_outputs = tuple(dtype for dtype in outputs if dtype is not None)
    if len(set(known_inputs)) > 1 and ufunc is not np.ldexp:
        return None  # int64 beside uint64: `ufuncs` compares these by rows of their own
    names = rows
    for name in names:
        row = TABLE.get(name)
        if row is None or not row.takes(row.deciding_operand(known_inputs)):
            return None
    tokens = tuple(token(("map", name, *known_inputs)) for name in names)
    return Resolution(known_inputs, names, known_outputs, tokens)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The common shape; ValueError in NumPy's words if there is none."""
    rank = max(len(shape) for shape in shapes)
    result = [1] * rank
    for shape in shapes:
        skip = rank - len(shape)
        for axis, extent in enumerate(shape):
            if extent == 1:
                continue
            if result[skip + axis] == 1:
                result[skip + axis] = extent
            elif result[skip + axis] != extent:
                listed = " ".join(str(one).replace(" ", "") for one in shapes)
                raise ValueError(f"operands could not be broadcast together with shapes {listed} ")
    return tuple(result)


def result_order(operands: Sequence[tuple[Shape, tuple[int, ...]]], shape: Shape) -> tuple[int, ...] | None:
    """Axes of an elementwise result from the outermost in memory to the innermost, as NumPy's iterator chooses them ("K" order).

    `operands` are shapes and strides; None means row-major.
    """
    rank = len(shape)
    if rank < 2:
        return None
    full: list[list[int]] = []
    for own, strides in operands:
        skip = rank - len(own)
        full.append([0] * skip + [0 if n == 1 else abs(s) for n, s in zip(own, strides, strict=True)])
    axes = list(range(rank))
    for k in range(1, rank):
        place = k
        for j in range(k - 1, -1, -1):
            swap, ambiguous = False, True
            for strides in full:
                inner, outer = strides[axes[place]], strides[axes[j]]
                if inner and outer:
                    if inner <= outer:
                        swap, ambiguous = False, False
                    elif ambiguous:
                        swap, ambiguous = True, False
            if ambiguous:
                continue
            if not swap:
                break
            axes.insert(j, axes.pop(place))
            place = j
    return None if axes == list(range(rank)) else tuple(axes)
