"""Words that touch memory or the grid: windows loaded and stored, extents, the program's place."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from codegen.dtypes import DType
from codegen.frontend.blocks import Blocks
from codegen.frontend.diagnostics import Fault
from codegen.frontend.parameters import KernelParameters
from codegen.frontend.values import ArrayReference, Block, Edge, Edges, describe, is_number, is_static
from codegen.ir.kernel import GridAxis, Value

Shape = tuple[int, ...]

# The largest tile that registers of a GPU's program hold is 256 by 256.
MOST_ELEMENTS = 1 << 16


class MemoryWords:
    """What `program_index`, `extent`, `load` and `store` do.

    Attributes
    ----------
    grid_candidates : dict
        For each grid axis, the extents and lengths that stores cover with it.
    used_axes : set of int
        Grid axes that the kernel asks for.
    """

    def __init__(
        self, blocks: Blocks, parameters: KernelParameters, inputs: frozenset[str], grid_axes: int | None
    ) -> None:
        self._blocks = blocks
        self._builder = blocks.builder
        self._parameters = parameters
        self._inputs = inputs
        self._grid_axes = grid_axes
        self._indices: dict[int, Block] = {}
        self.grid_candidates: dict[int, list[GridAxis]] = {}
        self.used_axes: set[int] = set()

    def program_index(self, axis: Any) -> Block:
        """The program's number along a grid axis."""
        if not isinstance(axis, int) or isinstance(axis, bool) or axis < 0:
            raise Fault(f"program_index: expected a static axis from 0 on, found {describe(axis)}", "axis")
        if self._grid_axes is not None and axis >= self._grid_axes:
            raise Fault(f"program_index: axis {axis} of a grid that was given with {self._grid_axes} axes", "axis")
        self.used_axes.add(axis)
        value = self._builder.program_index(axis)
        return Block(value, weak=int, from_zero=True, program=(axis, 1))

    def extent(self, array: Any, axis: Any) -> Block | int:
        """The length of an axis."""
        if not isinstance(array, ArrayReference):
            raise Fault(f"extent: expected an array parameter, found {describe(array)}", "array")
        rank = len(array.extents)
        if not isinstance(axis, (int, np.integer)) or not -rank <= axis < rank:
            raise Fault(f"extent: expected a static axis of {array}, found {describe(axis)}", "axis")
        found = self._parameters.extent(array.extents[axis])
        return found if isinstance(found, int) else Block(found, weak=int, from_zero=True)

    def part(self, array: ArrayReference, indices: Sequence[Any]) -> ArrayReference:
        """An array with its leading axes at fixed indices."""
        if len(indices) > len(array.extents):
            raise Fault(f"too many indices: {array} was indexed with {len(indices)}")
        for index in indices:
            if not isinstance(index, (int, Block)):
                raise Fault(
                    f"an array in memory takes integers for its leading axes here, found {describe(index)}; use load(array, "
                    "offsets, shape) for a block of it"
                )
        leading = (*array.leading, *indices)
        return ArrayReference(array.name, array.dtype, array.extents[len(indices) :], leading)

    def load(self, array: Any, offsets: Any, shape: Any, fill: Any) -> Block:
        """A window as a block."""
        array, places = self._window("load", array, offsets)
        wanted = block_shape(shape, "load")
        if len(wanted) > len(array.extents):
            raise Fault(f"load: a window of shape {wanted} has more axes than {array}", "shape")
        filler = self._fill(fill, array.dtype)
        places = [*array.leading, *places]
        return self._loaded(array, places, wanted, filler, self._blocks.last_axes(len(wanted)))

    def _fill(self, fill: Any, dtype: DType) -> Any:
        if fill is None:
            return None
        if not is_number(fill):
            raise Fault(f"load: expected a static number to fill with, found {describe(fill)}", "fill")
        plain = fill.item() if isinstance(fill, np.generic) else fill
        if dtype.kind == "float":
            return float(plain)
        if dtype.kind == "boolean":
            return bool(plain)
        if plain != int(plain) or int(np.array(int(plain)).astype(dtype.numpy)) != int(plain):
            raise Fault(f"load: cannot fill {dtype} elements with {plain!r}", "fill")
        return int(plain)

    def _loaded(
        self, array: ArrayReference, places: list[Block | int], shape: Shape, fill: Any, axes: tuple[int, ...]
    ) -> Block:
        view = self._arranged(len(places), len(shape), axes)
        buffer = self._parameters.buffer(array, view)
        tile = self._blocks.tile_shape(shape, axes)
        indices = [self._blocks.index(place) for place in places]
        offsets = [self._builder.index(0) if axis is None else indices[axis].value for axis in view]
        checked = tuple(axis is not None for axis in view)
        window = (1,) * (len(view) - len(tile)) + tile
        value = self._builder.load(buffer, offsets, window, checked, 0 if fill is None else fill)
        value = self._builder.reshape(value, tile)
        if not shape:
            return Block(value)
        edges: tuple[Edges, ...] = ((),) * len(shape)
        if fill is None:
            skip = len(places) - len(shape)
            edges = tuple(
                (Edge(_place_of(place, index), self._parameters.extent(extent), index.from_zero),)
                for place, index, extent in zip(
                    places[skip:], indices[skip:], array.extents[-len(shape) :], strict=True
                )
            )
        is_constant = array.name in self._inputs

        def again(other: tuple[int, ...]) -> Block:
            return self._loaded(array, list(places), shape, fill, other)

        return Block(
            value, shape, axes, edges=edges, padding=0 if fill is None else fill, reload=again if is_constant else None
        )

    def _arranged(self, rank: int, count: int, axes: tuple[int, ...]) -> tuple[int | None, ...]:
        """The array's axis for each axis of a window: its last `count` along `axes` of the tile, the others where there is room.

        What the tile has no room for stands before it.
        """
        places: list[int | None] = [None] * self._blocks.rank
        skip = rank - count
        for position, axis in enumerate(axes):
            places[axis] = skip + position
        free = [axis for axis in range(self._blocks.rank) if places[axis] is None]
        outside = max(0, skip - len(free))
        for position, axis in zip(range(outside, skip), free[len(free) - (skip - outside) :], strict=True):
            places[axis] = position
        return (*range(outside), *places)

    def store(self, array: Any, offsets: Any, value: Any) -> None:
        """A block into a window."""
        array, window = self._window("store", array, offsets)
        if array.name in self._inputs:
            raise Fault(
                f"store: {array.name} is an input and must not be written; outputs stand behind -> in the kernel's shapes",
                "array",
            )
        places = [*array.leading, *window]
        shape = value.shape if isinstance(value, Block) else ()
        if len(shape) > len(array.extents):
            raise Fault(f"store: a block of shape {shape} has more axes than {array}", "value")
        block = self._stored_value(array, value)
        axes = self._blocks.last_axes(len(shape))
        if shape:
            block = self._blocks.placed(block, axes)
        view = self._arranged(len(places), len(shape), axes)
        self._parameters.stored.add(array.name)
        buffer = self._parameters.buffer(array, view)
        indices = [self._blocks.index(place) for place in places]
        offsets = [self._builder.index(0) if axis is None else indices[axis].value for axis in view]
        tile = self._blocks.tile_shape(shape, axes)
        stored = self._builder.reshape(block.value, (1,) * (len(view) - len(tile)) + tile)
        self._builder.store(buffer, offsets, stored, tuple(axis is not None for axis in view))
        lengths = (1,) * (len(places) - len(shape)) + shape
        extents = (*self._leading_extents(array), *array.extents)
        for index, length, extent in zip(indices, lengths, extents, strict=True):
            if index.program is not None and index.program[1] == length:
                candidate = GridAxis(extent, length)
                known = self.grid_candidates.setdefault(index.program[0], [])
                if candidate not in known:
                    known.append(candidate)

    def _leading_extents(self, array: ArrayReference) -> tuple[str | int, ...]:
        return self._parameters.extents_of(array.name)[: len(array.leading)]

    def _stored_value(self, array: ArrayReference, value: Any) -> Block:
        blocks, dtype = self._blocks, array.dtype
        if not isinstance(value, Block):
            if not is_number(value):
                raise Fault(f"store: expected a block or a number, found {describe(value)}", "value")
            return Block(blocks.number(value, dtype))
        if value.weak is None and not np.can_cast(value.dtype.numpy, dtype.numpy, "same_kind"):
            raise Fault(
                f"store: cannot put {describe(value)} into {array}; convert it first: cast(value, {dtype})", "value"
            )
        if value.weak is float and dtype.kind != "float":
            raise Fault(f"store: cannot put {value} into {array}; convert it first: cast(value, {dtype})", "value")
        return blocks.cast(value, dtype)

    def _window(self, word: str, array: Any, offsets: Any) -> tuple[ArrayReference, list[Any]]:
        if not isinstance(array, ArrayReference):
            raise Fault(f"{word}: expected an array parameter, found {describe(array)}", "array")
        places = list(offsets) if isinstance(offsets, (tuple, list)) else [offsets]
        rank = len(array.extents)
        if len(places) != rank:
            count = f"{len(places)} offset{'' if len(places) == 1 else 's'}"
            raise Fault(f"{word}: {count} for {array}; expected one for each axis", "offsets")
        for place in places:
            try:
                self._blocks.index(place)
            except Fault as fault:
                raise Fault(f"{word}: an offset is wrong: {fault}", "offsets") from None
        return array, places


def _place_of(place: Block | int, index: Block) -> Value | int:
    """An offset as edges name it: a static one is the same wherever it is written."""
    return int(place) if isinstance(place, (int, np.integer)) else index.value


def block_shape(shape: Any, word: str) -> Shape:
    """The shape of a block: static extents that are powers of two."""
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for extent in extents:
        if not is_static(extent):
            raise Fault(
                f"{word}: a block's shape must be known when the kernel is compiled, found {describe(extent)}; make it a Static "
                "parameter",
                "shape",
            )
        if not isinstance(extent, (int, np.integer)) or isinstance(extent, bool):
            raise Fault(f"{word}: expected integers in a block's shape, found {describe(extent)}", "shape")
        if extent < 1 or int(extent) & (int(extent) - 1):
            raise Fault(f"{word}: a block's extents are powers of two, found {extent} in {extents}", "shape")
    if prod(map(int, extents)) > MOST_ELEMENTS:
        raise Fault(
            f"{word}: a block of shape {extents} has more elements than a program can hold ({MOST_ELEMENTS}); take smaller ones, in a "
            "loop or in more programs",
            "shape",
        )
    return tuple(map(int, extents))
