"""Random valid kernels with arguments to run them on, as a Hypothesis strategy.

Kernels are of the kinds that lowering makes: chains of elementwise operations over tiles, rows that a loop goes over tile by
tile, folds, branches, masks at edges, windows that are shifted, strided, reversed and broadcast, gathers, private memory.
"""

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import BufferParameter, GridAxis, IndexParameter, Kernel, Parameter, ScalarParameter, Value
from codegen.ir.layout import Layout
from codegen.ir.printer import print_kernel
from codegen.ir.types import BufferType

Arguments = dict[str, "np.ndarray | int | float | bool"]

ITEMS = (
    dtypes.boolean,
    dtypes.int8,
    dtypes.uint16,
    dtypes.int32,
    dtypes.int64,
    dtypes.float16,
    dtypes.float32,
    dtypes.float64,
)
LAYOUTS = (Layout((1, 1), (1, 1), 8), Layout((1, 8), (1, 2)), Layout((2, 4), (1, 1)))
TILES = ((1, 16), (4, 8), (2, 32))
UNARY = {
    "float": ("negative", "absolute", "sqrt", "floor", "positive"),
    "signed": ("negative", "absolute", "invert"),
    "unsigned": ("invert", "square"),
    "boolean": ("logical_not",),
}
BINARY = {
    "float": ("add", "subtract", "multiply", "divide", "maximum"),
    "signed": ("add", "subtract", "multiply", "minimum", "bitwise_and", "floor_divide", "left_shift"),
    "unsigned": ("add", "multiply", "bitwise_or", "remainder", "right_shift"),
    "boolean": ("logical_and", "logical_or", "logical_xor"),
}
FOLDS = {
    "float": ("add", "maximum"),
    "signed": ("add", "bitwise_xor"),
    "unsigned": ("add", "minimum"),
    "boolean": ("logical_or", "logical_and"),
}
NEUTRAL = {"float": (1.0, 0.0, -0.0, 2.5), "signed": (0, 1, -1, 3), "unsigned": (0, 1, 5), "boolean": (False, True)}


class RandomKernel:
    """A kernel and what makes its arguments; `arguments` gives fresh equal ones at each call."""

    def __init__(self, kernel: Kernel, arguments: Callable[[], Arguments]) -> None:
        self.kernel = kernel
        self.arguments = arguments

    def __repr__(self) -> str:
        return print_kernel(self.kernel)


@st.composite
def random_kernels(draw: st.DrawFn, layouts: Sequence[Layout] = LAYOUTS) -> RandomKernel:
    """Kernels of rank 2 with one of the layouts."""
    maker = _Maker(draw, draw(st.sampled_from(layouts)))
    return maker.make()


class _Maker:
    def __init__(self, draw: st.DrawFn, layout: Layout) -> None:
        self._draw = draw
        self._layout = layout
        self.tile = draw(st.sampled_from(TILES))
        self._builder = Builder()
        self._buffers: list[tuple[BufferParameter, Callable[[], np.ndarray]]] = []
        self._scalars: list[tuple[ScalarParameter, int]] = []
        self._pool: list[Value] = []
        divisor = draw(st.sampled_from((1, 1, self.tile[1])))
        self._sizes = (draw(st.integers(0, 9)), divisor * draw(st.integers(0, 70 // divisor)))
        self._rows = IndexParameter("rows")
        self._columns = IndexParameter("columns", divisor)
        self._streams = draw(st.booleans())
        self._seed = draw(st.integers(0, 999))

    def make(self) -> RandomKernel:
        """The kernel, and what makes its arguments."""
        builder = self._builder
        row = builder.map("multiply", builder.program_index(0, "row"), builder.index(self.tile[0]))
        if self._streams:
            self._stream(row)
        else:
            column = builder.map("multiply", builder.program_index(1), builder.index(self.tile[1]))
            self._store(self._steps(row, column, 6), row, column)
        grid = [GridAxis("rows", self.tile[0]), GridAxis("columns", self.tile[1])]
        parameters: list[Parameter] = [self._rows, self._columns]
        parameters += [scalar for scalar, _ in self._scalars] + [buffer for buffer, _ in self._buffers]
        kernel = builder.kernel("random", parameters, grid[: 1 if self._streams else 2], self._layout)
        return RandomKernel(kernel, self._arguments)

    def _arguments(self) -> Arguments:
        result: Arguments = {"rows": self._sizes[0], "columns": self._sizes[1]}
        result |= {scalar.name: number for scalar, number in self._scalars}
        return result | {buffer.name: make() for buffer, make in self._buffers}

    def _stream(self, row: Value) -> None:
        """A fold over the columns, then a pass that uses it."""
        builder, zero = self._builder, self._builder.index(0)
        dtype = self._pick(ITEMS)
        fold = self._pick(FOLDS[dtype.kind])
        first = self._identity(fold, dtype)
        start = builder.constant(dtype, first, self.tile)

        def turn(column: Value, total: Value) -> tuple[Value]:
            value = self._as(self._masked(self._steps(row, column, 3), column, dtype, first), dtype)
            self._pool = []
            return (builder.map(fold, total, value),)

        (total,) = builder.loop(zero, self._columns.value, self.tile[1], [start], turn, "column")
        (folded,) = builder.reduce(fold, [total], 1)
        spread = builder.broadcast(folded, self.tile)

        def second(column: Value) -> tuple[()]:
            self._pool = [spread]
            self._store(self._steps(row, column, 3), row, column)
            self._pool = []
            return ()

        builder.loop(zero, self._columns.value, self.tile[1], [], second)

    def _identity(self, fold: str, dtype: DType) -> int | float | bool:
        if fold == "maximum":
            return float("-inf")
        if fold == "minimum":
            return 2**dtype.bits - 1
        return fold == "logical_and" if dtype.kind == "boolean" else 0

    def _masked(self, value: Value, column: Value, dtype: DType, neutral: int | float | bool) -> Value:
        """The value where the tile is inside of the columns, else the neutral number."""
        builder = self._builder
        left = builder.broadcast(builder.map("subtract", self._columns.value, column), self.tile)
        inside = builder.map("less", builder.iota(self.tile, 1), left)
        return builder.map("where", inside, self._as(value, dtype), builder.constant(dtype, neutral, self.tile))

    def _steps(self, row: Value, column: Value, count: int) -> Value:
        """A chain of operations on new inputs; its last value."""
        self._pool.append(self._load(row, column))
        kinds = (self._unary, self._binary, self._with_constant, self._comparison, self._cast, self._branch)
        for _ in range(self._draw(st.integers(1, count))):
            if self._draw(st.integers(0, 3)) == 0:
                self._pool.append(self._load(row, column))
            self._pool.append(self._pick(kinds)(self._pick(self._pool)))
        return self._pool[-1]

    def _pick(self, options: Sequence) -> object:
        return self._draw(st.sampled_from(options))

    def _as(self, value: Value, dtype: DType) -> Value:
        return self._builder.cast(value, dtype)

    def _unary(self, value: Value) -> Value:
        return self._builder.map(self._pick(UNARY[value.block.dtype.kind]), value)

    def _binary(self, value: Value) -> Value:
        other = self._as(self._pick(self._pool), value.block.dtype)
        return self._builder.map(self._pick(BINARY[value.block.dtype.kind]), value, other)

    def _with_constant(self, value: Value) -> Value:
        """An operand that is a number, known when compiled or not: rules look for those."""
        dtype = value.block.dtype
        function = self._pick(BINARY[dtype.kind])
        if self._draw(st.booleans()):
            number = self._pick(NEUTRAL[dtype.kind])
            constant = self._builder.constant(dtype, number, self.tile)
        else:
            scalar = ScalarParameter(f"c{len(self._scalars)}", dtype)
            self._scalars.append((scalar, self._draw(st.integers(0, 1))))
            constant = self._builder.broadcast(scalar.value, self.tile)
        operands = (value, constant) if self._draw(st.booleans()) else (constant, value)
        return self._builder.map(function, *operands)

    def _comparison(self, value: Value) -> Value:
        """A choice by a comparison."""
        other = self._as(self._pick(self._pool), value.block.dtype)
        condition = self._builder.map(self._pick(("less", "equal", "greater_equal")), value, other)
        return self._builder.map("where", condition, other, value)

    def _cast(self, value: Value) -> Value:
        # A float that an integer cannot hold has no meaning that vector loops and single elements agree on.
        options = [row for row in ITEMS if value.block.dtype.kind != "float" or row.kind in ("float", "boolean")]
        return self._as(value, self._pick(options))

    def _branch(self, value: Value) -> Value:
        """A value that depends on how many rows there are."""
        condition = self._builder.map("less", self._rows.value, self._builder.index(self._draw(st.integers(0, 9))))
        return self._builder.branch(condition, lambda: [self._unary(value)], lambda: [self._keep_dtype(value)])[0]

    def _keep_dtype(self, value: Value) -> Value:
        return self._builder.map(self._pick(UNARY[value.block.dtype.kind]), value)

    def _load(self, row: Value, column: Value) -> Value:
        """A window of a new input: the tile, shifted, or one row or column of it repeated."""
        builder = self._builder
        kind = self._pick(("whole", "whole", "shifted", "row", "column", "gathered"))
        dtype = self._pick(ITEMS)
        shape = {"row": (1, self.tile[1]), "column": (self.tile[0], 1)}.get(kind, self.tile)
        extents = {"row": (1, "columns"), "column": ("rows", 1)}.get(kind, ("rows", "columns"))
        buffer = self._input(dtype, extents)
        zero = builder.index(0)
        offsets = [zero if extent == 1 else place for extent, place in zip(extents, (row, column), strict=True)]
        if kind == "gathered":
            return self._gather(buffer, row, column)
        if kind == "shifted":
            shift = self._draw(st.integers(-3, 3))
            offsets[1] = builder.map("add", offsets[1], builder.index(shift))
        checked = tuple(extent != 1 for extent in extents)
        loaded = builder.load(buffer, offsets, shape, checked, self._pick((0, 1)))
        return builder.broadcast(loaded, self.tile)

    def _gather(self, buffer: Value, row: Value, column: Value) -> Value:
        """Elements of the tile in another order: columns twice as far apart."""
        builder = self._builder
        rows = builder.map("add", builder.iota(self.tile, 0), builder.broadcast(row, self.tile))
        twice = builder.map("multiply", builder.iota(self.tile, 1), builder.constant(dtypes.int64, 2, self.tile))
        columns = builder.map("add", twice, builder.broadcast(column, self.tile))
        return builder.gather(buffer, [rows, columns])

    def _input(self, dtype: DType, extents: tuple[str | int, str | int]) -> Value:
        sizes = tuple(extent if isinstance(extent, int) else self._size(extent) for extent in extents)
        form = self._pick(("plain", "reversed", "apart", "repeated"))
        seed = self._seed + len(self._buffers)
        strides: tuple[int | None, int | None] = {"plain": (None, 1), "repeated": (0, 1)}.get(form, (None, None))
        parameter = BufferParameter(
            f"x{len(self._buffers)}", BufferType(dtype, extents, strides, dtype.itemsize), restrict=True
        )
        self._buffers.append((parameter, lambda: _array(dtype, sizes, form, seed)))
        return parameter.value

    def _size(self, extent: str) -> int:
        return self._sizes[0] if extent == "rows" else self._sizes[1]

    def _store(self, value: Value, row: Value, column: Value) -> None:
        dtype = value.block.dtype
        sizes = self._sizes
        parameter = BufferParameter(
            f"y{len(self._buffers)}",
            BufferType(dtype, ("rows", "columns"), (None, 1), dtype.itemsize),
            written=True,
        )
        self._buffers.append((parameter, lambda: np.zeros(sizes, dtype.numpy)))
        if self._draw(st.booleans()):
            zero = self._builder.index(0)
            kept = self._builder.allocate(dtype, self.tile, "kept")
            self._builder.store(kept, [zero, zero], value, (False, False))
            value = self._builder.load(kept, [zero, zero], self.tile, (False, False))
        self._builder.store(parameter.value, [row, column], value)
        if self._draw(st.booleans()):
            self._update(parameter.value, row, column)

    def _update(self, buffer: Value, row: Value, column: Value) -> None:
        """Read back what was written and write again, twice, so that equal loads give different values."""
        for _ in range(2):
            value = self._builder.load(buffer, [row, column], self.tile)
            self._builder.store(buffer, [row, column], self._as(self._unary(value), buffer.buffer.dtype))
        value = self._builder.load(buffer, [row, column], self.tile)
        self._builder.store(buffer, [row, column], self._binary_with_itself(value))

    def _binary_with_itself(self, value: Value) -> Value:
        return self._builder.map(self._pick(BINARY[value.block.dtype.kind]), value, value)


def _array(dtype: DType, sizes: tuple[int, ...], form: str, seed: int) -> np.ndarray:
    """An input with its elements laid out in some way."""
    generator = np.random.default_rng(seed)
    count = (sizes[0], 2 * sizes[1]) if form == "apart" else sizes
    if dtype.kind == "float":
        plain = generator.normal(0, 3, count)
        plain[generator.random(count) < 0.1] = -0.0
        plain[generator.random(count) < 0.05] = np.nan
    elif dtype.kind == "boolean":
        plain = generator.integers(0, 2, count)
    else:
        plain = generator.integers(0 if dtype.kind == "unsigned" else -100, 100, count)
    array = plain.astype(dtype.numpy)
    if form == "apart":
        return array[:, ::2]
    if form == "reversed":
        return array[::-1, ::-1]
    if form == "repeated" and sizes[0]:
        return np.broadcast_to(array[0], sizes)
    return array


def same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether arrays hold the same elements: signs of zeros count, payloads and signs of NaN do not."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if first.dtype.kind in "biu":
        return bool(np.array_equal(first, second))
    both_nan = np.isnan(first) & np.isnan(second)
    return bool(np.all(both_nan | ((first == second) & (np.signbit(first) == np.signbit(second)))))
