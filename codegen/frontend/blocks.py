"""Operations on blocks with NumPy's rules: promotion, broadcasting, placement along the tile's axes, edges."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType
from codegen.frontend.diagnostics import Fault
from codegen.frontend.values import Block, Edge, Edges, Number, describe, is_number, joined
from codegen.ir.builder import Builder
from codegen.ir.kernel import Value
from codegen.ir.operations import Operation
from codegen.scalar.ufunc_loops import MIRRORED, OUTSIDE_ANSWERS, SIGNED_UNSIGNED, OperandKind, find_loop

Operand = Any
Shape = tuple[int, ...]

_WEAK_OF_KIND = {"signed": int, "float": float}
_POWERS = {2: "square", 0.5: "sqrt", 1: "positive", -1: "reciprocal"}
_STAY_FROM_ZERO = frozenset(("add", "multiply", "floor_divide", "remainder", "maximum", "minimum", "right_shift"))


class NeedsRank(Exception):
    """The tile must have more axes: the kernel is translated again."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank)
        self.rank = rank


class KernelBuilder(Builder):
    """A builder whose innermost body can be dropped."""

    def operations(self) -> list[Operation]:
        """Those of the innermost body so far."""
        return self._open[-1]

    def open_body(self) -> None:
        """Begin operations that `close_body` drops."""
        self._open.append([])

    def close_body(self) -> list[Operation]:
        """Drop the operations since `open_body`, and give them back."""
        return self._open.pop()


class Blocks:
    """Makes operations on blocks through a builder.

    Parameters
    ----------
    builder : KernelBuilder
    rank : int
        Axes of the kernel's tile.

    Attributes
    ----------
    highest_rank : int
        Axes of the block that has most.
    """

    def __init__(self, builder: KernelBuilder, rank: int) -> None:
        self.builder = builder
        self.rank = rank
        self.highest_rank = 0

    # --- numbers

    def number(self, number: Any, dtype: DType) -> Value:
        """A static number as a scalar of `dtype`."""
        plain = number.item() if isinstance(number, np.generic) else number
        if dtype.kind == "float":
            return self.builder.constant(dtype, float(plain))
        if dtype.kind == "boolean":
            return self.builder.constant(dtype, bool(plain))
        if isinstance(plain, float) and not (np.isfinite(plain) and plain.is_integer()):
            raise Fault(f"{plain!r} is no {dtype}; expected an integer, or cast the other operand to a float dtype")
        low = -(1 << (dtype.bits - 1)) if dtype.kind == "signed" else 0
        if not low <= plain < low + (1 << dtype.bits):
            raise Fault(f"Python integer {plain} out of bounds for {dtype}")
        return self.builder.constant(dtype, int(plain))

    def scalar(self, operand: Operand, dtype: DType) -> Value:
        """A number or scalar block in `dtype`."""
        if isinstance(operand, Block):
            return self.builder.cast(operand.value, dtype)
        return self.number(operand, dtype)

    def kind_of(self, operand: Operand) -> OperandKind:
        """What an operand counts as in promotion."""
        if isinstance(operand, Block):
            return operand.kind
        if isinstance(operand, np.generic):
            return dtypes.of(operand.dtype)
        if isinstance(operand, (bool, int, float)):
            return type(operand)
        advice = "; pass it as a parameter, and load a block of it" if getattr(operand, "shape", ()) else ""
        raise Fault(f"expected a block or a number, found {describe(operand)}{advice}")

    def index(self, operand: Operand) -> Block:
        """An int64 scalar for offsets and bounds."""
        if isinstance(operand, (int, np.integer)) and not isinstance(operand, (bool, np.bool_)):
            return Block(self.builder.index(int(operand)), weak=int, from_zero=int(operand) >= 0)
        if not isinstance(operand, Block):
            raise Fault(f"expected an integer, found {describe(operand)}")
        if operand.shape or operand.dtype.kind not in ("signed", "unsigned"):
            raise Fault(f"expected an integer scalar, found {describe(operand)}")
        return operand.with_changes(value=self.builder.cast(operand.value, dtypes.int64))

    # --- elementwise

    def elementwise(self, ufunc: np.ufunc, operands: Sequence[Operand]) -> Any:
        """A universal function on blocks and numbers; a tuple if it has several results."""
        if len(operands) != ufunc.nin:
            raise Fault(f"{ufunc.__name__}: expected {ufunc.nin} operands, found {len(operands)}")
        if ufunc is np.power:
            operands, ufunc = self._power(operands)
        kinds = tuple(map(self.kind_of, operands))
        try:
            loop = find_loop(ufunc, tuple(map(_settled, kinds)) if _all_weak(kinds) else kinds)
        except TypeError as error:
            found = ", ".join(map(describe, operands))
            raise Fault(f"{error}; the operands are {found}") from None
        if loop is None:
            compared = self._compare_signs(ufunc.__name__, operands)
            if compared is not None:
                return compared
            found = ", ".join(str(kind if isinstance(kind, DType) else kind.__name__) for kind in kinds)
            raise Fault(
                f"{ufunc.__name__}: kernels have no such function of {found}; cast the operands to another dtype first"
            )
        outside = self._compare_outside(ufunc.__name__, operands, loop.inputs)
        if outside is not None:
            return outside
        shape, axes = self.common(operands)
        values = [
            self.spread(operand, dtype, shape, axes) for operand, dtype in zip(operands, loop.inputs, strict=True)
        ]
        results = []
        for row, dtype in zip(loop.rows, loop.outputs, strict=True):
            value = self.builder.cast(self.builder.map(row, *values), dtype)
            results.append(Block(value, shape, axes, edges=self._common_edges(operands, shape)))
        if len(results) > 1:
            return tuple(results)
        (result,) = results
        return result if shape else self._known_of_scalar(ufunc.__name__, operands, kinds, result)

    def _power(self, operands: Sequence[Operand]) -> tuple[Sequence[Operand], np.ufunc]:
        """NumPy's array power: small exact exponents go to cheaper functions."""
        base, exponent = operands
        if not is_number(exponent):
            return operands, np.power
        kind = base.dtype.kind if isinstance(base, Block) else ""
        if kind in ("signed", "unsigned") and isinstance(exponent, (int, np.integer)) and exponent < 0:
            raise Fault("Integers to negative integer powers are not allowed.")
        name = _POWERS.get(exponent) if type(exponent) in (int, float) else None
        if kind == "float" and name is not None:
            return (base,), getattr(np, name)
        if name == "square" and kind in ("signed", "unsigned") and type(exponent) is int:
            return (base,), np.square
        return operands, np.power

    def _known_of_scalar(self, name: str, operands: Sequence[Operand], kinds: tuple, result: Block) -> Block:
        """What is known of a scalar: whether it adapts, its sign, how it follows from the program's index."""
        weak = None
        if all(kind in (int, float) for kind in kinds):
            weak = _WEAK_OF_KIND.get(result.dtype.kind)
        from_zero = name in _STAY_FROM_ZERO and all(map(_is_from_zero, operands))
        program = None
        if name == "multiply":
            for one, other in (operands, tuple(reversed(operands))):
                if isinstance(one, Block) and one.program and isinstance(other, int):
                    program = (one.program[0], one.program[1] * other)
        return result.with_changes(weak=weak, from_zero=from_zero, program=program)

    def _compare_signs(self, name: str, operands: Sequence[Operand]) -> Block | None:
        """int64 beside uint64: no dtype holds both, so a row compares them."""
        if name not in SIGNED_UNSIGNED or not all(isinstance(one, Block) for one in operands):
            return None
        a, b = operands
        if {a.dtype.kind, b.dtype.kind} != {"signed", "unsigned"}:
            return None
        if a.dtype.kind == "unsigned":
            a, b, name = b, a, MIRRORED.get(name, name)
        row, negated = SIGNED_UNSIGNED[name]
        shape, axes = self.common((a, b))
        left = self.spread(a, dtypes.int64, shape, axes)
        value = self.builder.map(f"{row}_signed_unsigned", left, self.spread(b, dtypes.uint64, shape, axes))
        value = self.builder.map("logical_not", value) if negated else value
        return Block(value, shape, axes, edges=self._common_edges(operands, shape))

    def _compare_outside(self, name: str, operands: Sequence[Operand], inputs: tuple[DType, ...]) -> Block | None:
        """Comparison with a Python integer that the other operand's dtype does not hold: known without the data."""
        if name not in OUTSIDE_ANSWERS:
            return None
        for position, (operand, dtype) in enumerate(zip(operands, inputs, strict=True)):
            other = operands[1 - position]
            if type(operand) is not int or dtype.kind not in ("signed", "unsigned") or not isinstance(other, Block):
                continue
            low = -(1 << (dtype.bits - 1)) if dtype.kind == "signed" else 0
            if low <= operand < low + (1 << dtype.bits):
                continue
            above = operand > 0
            if position == 0 and name not in ("equal", "not_equal"):
                above = not above
            answer = OUTSIDE_ANSWERS[name][0 if above else 1]
            value = self.builder.constant(dtypes.boolean, answer, other.value.block.shape)
            return other.plain(value)
        return None

    def where(self, condition: Operand, a: Operand, b: Operand) -> Block:
        """A choice, element by element."""
        if self.kind_of(condition) not in (bool, dtypes.boolean):
            condition = self.elementwise(np.not_equal, (condition, 0))
        dtype = self.common_dtype((a, b))
        operands = (condition, a, b)
        shape, axes = self.common(operands)
        chosen = self.spread(condition, dtypes.boolean, shape, axes)
        value = self.builder.map(
            "where", chosen, self.spread(a, dtype, shape, axes), self.spread(b, dtype, shape, axes)
        )
        return Block(value, shape, axes, self._weak((a, b), shape, dtype), self._common_edges(operands, shape))

    def _weak(self, operands: Sequence[Operand], shape: Shape, dtype: DType) -> type | None:
        adapts = not shape and all(self.kind_of(operand) in (int, float) for operand in operands)
        return _WEAK_OF_KIND.get(dtype.kind) if adapts else None

    def common_dtype(self, operands: Sequence[Operand]) -> DType:
        """NumPy's result type."""
        kinds = [self.kind_of(operand) for operand in operands]
        examples = [kind.numpy if isinstance(kind, DType) else kind(0) for kind in kinds]
        try:
            return dtypes.of(np.result_type(*examples))
        except TypeError as error:
            raise Fault(str(error)) from None

    def cast(self, operand: Operand, dtype: DType) -> Block:
        """A block in another dtype."""
        if not isinstance(operand, Block):
            return Block(self.number(operand, dtype))
        value = self.builder.cast(operand.value, dtype)
        padding = operand.padding if operand.padding in (0, 1) else None
        return operand.plain(value).with_changes(padding=padding, from_zero=operand.from_zero and dtype.bits == 64)

    # --- shapes and placement

    def tile_shape(self, shape: Shape, axes: tuple[int, ...]) -> Shape:
        """The IR's shape of a block."""
        self.highest_rank = max(self.highest_rank, len(shape))
        if not shape:
            return ()
        result = [1] * self.rank
        for extent, axis in zip(shape, axes, strict=True):
            result[axis] = extent
        return tuple(result)

    def last_axes(self, count: int) -> tuple[int, ...]:
        """The last axes of the tile: where blocks lie if nothing else is said."""
        if count > self.rank:
            raise NeedsRank(count)
        return tuple(range(self.rank - count, self.rank))

    def common(self, operands: Sequence[Operand]) -> tuple[Shape, tuple[int, ...]]:
        """Shape and placement of what operands broadcast to; ValueError's text of NumPy in a Fault if they do not."""
        shapes = [operand.shape if isinstance(operand, Block) else () for operand in operands]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            listed = " ".join(str(one).replace(" ", "") for one in shapes)
            raise Fault(
                f"operands could not be broadcast together with shapes {listed}; blocks broadcast as NumPy's arrays do, "
                "x[:, None] adds an axis of extent 1"
            ) from None
        if not shape:
            return (), ()
        # What cannot be loaded again stays where it is.
        blocks = [one for one in operands if isinstance(one, Block) and one.shape]
        blocks.sort(key=lambda one: one.reload is not None)
        places: list[int | None] = [None] * len(shape)
        for certain in (True, False):
            for block in blocks:
                skip = len(shape) - len(block.shape)
                for position, (extent, axis) in enumerate(zip(block.shape, block.axes, strict=True)):
                    is_free = places[skip + position] is None and axis not in places
                    if is_free and (extent > 1) is certain:
                        places[skip + position] = axis
        return shape, self._filled(places)

    def _filled(self, places: list[int | None]) -> tuple[int, ...]:
        """Places for axes that have none: a free axis between the neighbours if there is one."""
        if len(places) > self.rank:
            raise NeedsRank(len(places))
        self.highest_rank = max(self.highest_rank, len(places))
        free = [axis for axis in range(self.rank) if axis not in places]
        for position in reversed(range(len(places))):
            if places[position] is not None:
                continue
            right = next((place for place in places[position + 1 :] if place is not None), self.rank)
            left = next((place for place in reversed(places[:position]) if place is not None), -1)
            between = [axis for axis in free if left < axis < right]
            places[position] = between[-1] if between else free[-1]
            free.remove(places[position])  # type: ignore[arg-type]
        return tuple(place for place in places if place is not None)

    def _common_edges(self, operands: Sequence[Operand], shape: Shape) -> tuple[Edges, ...]:
        edges: list[Edges] = [()] * len(shape)
        for operand in operands:
            if not isinstance(operand, Block):
                continue
            skip = len(shape) - len(operand.shape)
            for position, (extent, found) in enumerate(zip(operand.shape, operand.edges, strict=True)):
                if extent == shape[skip + position]:
                    edges[skip + position] = joined(edges[skip + position], found)
        return tuple(edges)

    def spread(self, operand: Operand, dtype: DType, shape: Shape, axes: tuple[int, ...]) -> Value:
        """An operand in `dtype`, repeated to a shape that lies along `axes`."""
        if not isinstance(operand, Block):
            return self.builder.broadcast(self.number(operand, dtype), self.tile_shape(shape, axes))
        if operand.shape:
            operand = self.placed(operand, axes[len(shape) - len(operand.shape) :])
        return self.builder.broadcast(self.builder.cast(operand.value, dtype), self.tile_shape(shape, axes))

    def placed(self, block: Block, axes: tuple[int, ...]) -> Block:
        """A block along other axes: loaded again if it comes straight from memory, else moved through memory of the program."""
        if all(extent == 1 or old == new for extent, old, new in zip(block.shape, block.axes, axes, strict=True)):
            return block.with_changes(axes=axes)
        if block.reload is not None:
            return block.reload(axes)
        wanted = self.tile_shape(block.shape, axes)
        old = [axis for extent, axis in zip(block.shape, block.axes, strict=True) if extent > 1]
        new = [axis for extent, axis in zip(block.shape, axes, strict=True) if extent > 1]
        in_order = sorted(range(len(old)), key=lambda k: old[k]) == sorted(range(len(new)), key=lambda k: new[k])
        moved = self.builder.reshape(block.value, wanted) if in_order else self._permuted(block, axes)
        return block.with_changes(value=moved, axes=axes)

    def _permuted(self, block: Block, axes: tuple[int, ...]) -> Value:
        builder, held = self.builder, block.value.block
        wanted = self.tile_shape(block.shape, axes)
        memory = builder.allocate(held.dtype, held.shape, "turned")
        zero = builder.index(0)
        unchecked = (False,) * self.rank
        builder.store(memory, (zero,) * self.rank, block.value, unchecked)
        source = dict(zip(block.axes, axes, strict=True))
        indices = []
        for axis in range(self.rank):
            if held.shape[axis] > 1:
                indices.append(builder.iota(wanted, source[axis]))
            else:
                indices.append(builder.constant(dtypes.int64, 0, wanted))
        return builder.gather(memory, indices, checked=False)

    def with_new_axis(self, block: Block, position: int) -> Block:
        """An axis of extent 1 before the axis at `position`."""
        if not block.shape:
            value = self.builder.reshape(block.value, (1,) * self.rank)
            return Block(value, (1,), self.last_axes(1))
        if len(block.shape) == self.rank:
            raise NeedsRank(self.rank + 1)
        shape = (*block.shape[:position], 1, *block.shape[position:])
        edges = (*block.edges[:position], (), *block.edges[position:])
        inner = block.reload
        reload = None
        if inner is not None:
            # The block is loaded where its other axes are wanted; the new one takes any place.
            def reload(axes: tuple[int, ...]) -> Block:
                return self.with_new_axis(inner((*axes[:position], *axes[position + 1 :])), position)

        places: list[int | None] = [*block.axes[:position], None, *block.axes[position:]]
        axes = self._filled(places)
        if list(axes) != sorted(axes) and list(block.axes) == sorted(block.axes):
            # No axis is free there: make room by moving the others to where they fit in order.
            ordered = self.last_axes(len(shape))
            block = self.placed(block, (*ordered[:position], *ordered[position + 1 :]))
            axes = ordered
        return Block(block.value, shape, axes, edges=edges, padding=block.padding, reload=reload)

    def transposed(self, block: Block, order: tuple[int, ...]) -> Block:
        """Axes in another order; nothing moves until it has to."""
        inner = block.reload
        reload = None
        if inner is not None:
            back = tuple(order.index(axis) for axis in range(len(order)))

            def reload(axes: tuple[int, ...]) -> Block:
                return self.transposed(inner(tuple(axes[place] for place in back)), order)

        shape = tuple(block.shape[axis] for axis in order)
        axes = tuple(block.axes[axis] for axis in order)
        edges = tuple(block.edges[axis] for axis in order)
        return Block(block.value, shape, axes, edges=edges, padding=block.padding, reload=reload)

    def repeated(self, operand: Operand, shape: Shape) -> Block:
        """A block or number repeated to a shape."""
        dtype = operand.dtype if isinstance(operand, Block) else self.common_dtype((operand,))
        if isinstance(operand, Block) and operand.shape == shape:
            return operand
        places: list[int | None] = [None] * len(shape)
        if isinstance(operand, Block) and operand.shape:
            if len(operand.shape) > len(shape):
                raise Fault(f"a block of shape {operand.shape} cannot be broadcast to {shape}")
            places[len(shape) - len(operand.shape) :] = operand.axes
        for mine, wanted in zip(reversed(getattr(operand, "shape", ())), reversed(shape), strict=False):
            if mine not in (1, wanted):
                raise Fault(f"a block of shape {operand.shape} cannot be broadcast to {shape}")
        axes = self._filled(places)
        return Block(self.spread(operand, dtype, shape, axes), shape, axes, edges=self._common_edges((operand,), shape))

    # --- edges

    def masked(self, block: Block, axes: Sequence[int], number: Number) -> Value:
        """The block's value with `number` for elements that do not exist along some of its axes."""
        builder, value = self.builder, block.value
        if block.padding is not None and block.padding == number:
            return value
        tile = self.tile_shape(block.shape, block.axes)
        for position in axes:
            for edge in block.edges[position]:
                if edge.is_lost:
                    raise Fault(
                        "the block was loaded across an array's edge inside of a loop or branch, and which of its elements exist is "
                        "not known here; say what the others count as: load(array, offsets, shape, fill=…)"
                    )
                inside = builder.broadcast(self._inside(edge, block, position), tile)
                filler = bool(number) if block.dtype.kind == "boolean" else number
                value = builder.map("where", inside, value, builder.constant(block.dtype, filler, tile))
        return value

    def _inside(self, edge: Edge, block: Block, position: int) -> Value:
        builder = self.builder
        flat = [1] * self.rank
        flat[block.axes[position]] = block.shape[position]
        shape = tuple(flat)
        places = builder.iota(shape, block.axes[position])
        end, offset = (
            builder.index(place) if isinstance(place, int) else place for place in (edge.extent, edge.offset)
        )
        left = builder.map("subtract", end, offset)
        inside = builder.map("less", places, builder.broadcast(left, shape))
        if edge.from_zero:
            return inside
        first = builder.map("subtract", builder.index(0), offset)
        above = builder.map("greater_equal", places, builder.broadcast(first, shape))
        return builder.map("logical_and", inside, above)


def _all_weak(kinds: Sequence[OperandKind]) -> bool:
    return not any(isinstance(kind, DType) for kind in kinds)


def _settled(kind: OperandKind) -> OperandKind:
    """What Python's numbers are if no array stands beside them: NumPy compares two of them as objects."""
    return {int: dtypes.int64, float: dtypes.float64}.get(kind, kind) if isinstance(kind, type) else kind


def _is_from_zero(operand: Operand) -> bool:
    if isinstance(operand, Block):
        return operand.from_zero
    return isinstance(operand, (int, np.integer)) and int(operand) >= 0
