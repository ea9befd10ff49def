"""Result types by NumPy's own resolver, remembered; shapes that broadcast; memory order of results."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from blockarray.graph.nodes import Shape, token
from codegen.dtypes import DType
from codegen.scalar.ufunc_loops import OperandKind, find_loop


class Resolution(NamedTuple):
    """How a ufunc runs on operands of some kinds.

    `rows` are names of scalar functions, one per output, with the token of each `Map`.
    """

    inputs: tuple[DType, ...]
    rows: tuple[str, ...]
    outputs: tuple[DType, ...]
    tokens: tuple[int, ...]


def resolve(
    ufunc: np.ufunc,
    rows: tuple[str, ...],
    kinds: tuple[OperandKind, ...],
    signature: tuple | None = None,
    casting: str = "same_kind",
) -> Resolution | None:
    """The loop that NumPy would run, or None if kernels have no such loop; TypeError with NumPy's text if there is none at all."""
    found = find_loop(ufunc, kinds, rows, signature, casting)
    if found is None:
        return None
    tokens = tuple(token(("map", name, *found.inputs)) for name in found.rows)
    return Resolution(found.inputs, found.rows, found.outputs, tokens)


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
