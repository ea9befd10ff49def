"""Words that fold blocks: reductions, positions of extremes, products of blocks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType
from codegen.frontend.blocks import Blocks, NeedsRank
from codegen.frontend.diagnostics import Fault
from codegen.frontend.language import accumulator_dtype, as_row
from codegen.frontend.values import Block, Edges, describe, is_number, joined
from codegen.scalar.combiners import COMBINERS

_ROWS = {
    "sum": "add",
    "prod": "multiply",
    "max": "maximum",
    "min": "minimum",
    "any": "logical_or",
    "all": "logical_and",
}


class FoldingWords:
    """What reductions and `dot` do.

    Attributes
    ----------
    has_dot : bool
        The kernel multiplies blocks.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._builder = blocks.builder
        self.has_dot = False

    def reduce(self, word: str, operand: Any, axis: Any, keepdims: Any) -> Block:
        """A reduction, by the name of its word."""
        block = self._foldable(word, operand)
        axes = self._axes(word, block, axis)
        dtype = block.dtype
        if word in ("any", "all"):
            block = self._as_boolean(block)
        elif word in ("sum", "prod"):
            block = self._blocks.cast(block, _sum_dtype(dtype))
        row = _ROWS[word]
        (neutral,) = COMBINERS[row].identity((block.dtype,))
        value = self._blocks.masked(block, axes, neutral)
        for position in axes:
            if block.shape[position] > 1:
                (value,) = self._builder.reduce(row, [value], block.axes[position])
        if word in ("sum", "prod") and dtype.is_half:
            value = self._builder.cast(value, dtype)
        return self._folded(block, value, axes, bool(keepdims))

    def extreme(self, word: str, operand: Any, axis: Any) -> Block:
        """Position of the greatest or smallest element along an axis."""
        block = self._foldable(word, operand)
        axes = self._axes(word, block, axis)
        if len(axes) != 1:
            raise Fault(f"{word}: expected one axis, found {describe(axis)}", "axis")
        (position,) = axes
        tile = self._blocks.tile_shape(block.shape, block.axes)
        places = Block(self._builder.iota(tile, block.axes[position]), block.shape, block.axes, edges=block.edges)
        numbers = COMBINERS[word].identity((block.dtype, dtypes.int64))
        operands = [
            self._blocks.masked(one.with_changes(padding=None), axes, number)
            for one, number in zip((block, places), numbers, strict=True)
        ]
        _, found = self._builder.reduce(word, operands, block.axes[position])
        return self._folded(block, found, axes, keepdims=False)

    def _foldable(self, word: str, operand: Any) -> Block:
        if not isinstance(operand, Block):
            raise Fault(f"{word}: expected a block, found {describe(operand)}", "value")
        return operand

    def _as_boolean(self, block: Block) -> Block:
        if block.dtype is dtypes.boolean:
            return block
        result = self._blocks.elementwise(np.not_equal, (block, 0))
        return result.with_changes(padding=0 if block.padding == 0 else None)

    def _axes(self, word: str, block: Block, axis: Any) -> tuple[int, ...]:
        rank = len(block.shape)
        if axis is None:
            return tuple(range(rank))
        listed = axis if isinstance(axis, tuple) else (axis,)
        for one in listed:
            if not isinstance(one, (int, np.integer)) or isinstance(one, bool) or not -rank <= one < rank:
                raise Fault(f"{word}: axis {describe(one)} is out of bounds for {describe(block)}", "axis")
        found = tuple(sorted({int(one) % rank for one in listed}))
        if len(found) != len(listed):
            raise Fault(f"{word}: an axis stands twice in {axis}", "axis")
        return found

    def _folded(self, block: Block, value: Any, axes: Sequence[int], keepdims: bool) -> Block:
        """The result of a fold, with its axes of extent 1 kept or not."""
        if keepdims:
            shape = tuple(1 if k in axes else extent for k, extent in enumerate(block.shape))
            edges = tuple(() if k in axes else found for k, found in enumerate(block.edges))
            return Block(value, shape, block.axes, edges=edges)
        kept = [k for k in range(len(block.shape)) if k not in axes]
        if not kept:
            return Block(self._builder.reshape(value, ()))
        return Block(
            value,
            tuple(block.shape[k] for k in kept),
            tuple(block.axes[k] for k in kept),
            edges=tuple(block.edges[k] for k in kept),
        )

    def dot(self, a: Any, b: Any, accumulator: Any) -> Block:
        """A product of blocks."""
        for name, block in (("a", a), ("b", b)):
            if not isinstance(block, Block) or len(block.shape) != 2:
                raise Fault(f"dot: expected blocks with two axes, found {describe(block)}", name)
        if a.shape[1] != b.shape[0]:
            raise Fault(
                f"dot: the blocks have shapes {a.shape} and {b.shape}; expected (M, K) and (K, N), and {a.shape[1]} differs "
                f"from {b.shape[0]}"
            )
        if self._blocks.rank < 2:
            raise NeedsRank(2)
        self.has_dot = True
        common = self._blocks.common_dtype((a, b))
        shape = (a.shape[0], b.shape[1])
        total = self._accumulator(accumulator, shape, common)
        # Booleans are numbers here: products of more than one bit come out of them.
        common = total.dtype if common is dtypes.boolean else common
        placement = self._blocks.last_axes(2)
        builder = self._builder
        # What does not exist along K must add nothing, whatever stands beside it.
        values = []
        for block, inner in ((a, 1), (b, 0)):
            block = self._blocks.cast(self._blocks.placed(block, placement), common)
            values.append(builder.reshape(self._blocks.masked(block, (inner,), 0), block.shape))
        start = builder.reshape(self._blocks.spread(total, total.dtype, shape, placement), shape)
        product = builder.dot(values[0], values[1], start)
        value = builder.reshape(product, self._blocks.tile_shape(shape, placement))
        return Block(
            value, shape, placement, edges=(joined(a.edges[0], _along(total, 0)), joined(b.edges[1], _along(total, 1)))
        )

    def _accumulator(self, accumulator: Any, shape: tuple[int, int], common: DType) -> Block:
        dtype = as_row(accumulator_dtype(common))
        if accumulator is None or is_number(accumulator):
            value = self._blocks.number(0 if accumulator is None else accumulator, dtype)
            return Block(value)
        if not isinstance(accumulator, Block):
            raise Fault(f"dot: expected a block to add to, found {describe(accumulator)}", "accumulator")
        if accumulator.weak is not None:
            return self._blocks.cast(accumulator, dtype)
        if accumulator.shape not in ((), shape):
            raise Fault(f"dot: expected an accumulator of shape {shape}, found {describe(accumulator)}", "accumulator")
        if not np.can_cast(common.numpy, accumulator.dtype.numpy, "same_kind"):
            raise Fault(f"dot: products of {common} cannot be summed in {describe(accumulator)}", "accumulator")
        return accumulator


def _along(block: Block, axis: int) -> Edges:
    return block.edges[axis] if block.shape else ()


def _sum_dtype(dtype: DType) -> DType:
    """What NumPy sums in; halves in float32 on the way."""
    if dtype.is_half:
        return dtypes.float32
    if dtype.kind == "float":
        return dtype
    return dtypes.uint64 if dtype.kind == "unsigned" else dtypes.int64
