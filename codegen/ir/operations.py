"""The operations of block IR. Each is a frozen dataclass: operands, attributes, results, and bodies for control flow.

An operation infers the types of its results from its operands and attributes; nobody asserts a type. Operands and results are
values; every other field is an attribute, and takes part in the text form in the order in which it is declared.
"""

from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal

from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import VerificationError
from codegen.ir.kernel import Body, Value
from codegen.ir.location import Location
from codegen.ir.types import INDEX, BlockType, BufferType, Type
from codegen.scalar.combiners import COMBINERS
from codegen.scalar.table import TABLE

Effect = Literal["none", "read", "write"]
_STRUCTURE = ("operands", "results", "bodies", "location")


def _require(condition: bool, operation: str, expected: str, found: object) -> None:
    if not condition:
        raise VerificationError(f"{operation}: expected {expected}, found {found}")


def _block(value: Value, operation: str) -> BlockType:
    _require(isinstance(value.type, BlockType), operation, "a block operand", value.type)
    return value.block


def _buffer(value: Value, operation: str) -> BufferType:
    _require(isinstance(value.type, BufferType), operation, "a buffer operand", value.type)
    return value.buffer


@dataclass(frozen=True, eq=False, kw_only=True)
class Operation:
    """Base of all operations."""

    operands: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    bodies: tuple[Body, ...] = ()
    location: Location | None = None

    name: ClassVar[str] = ""
    effect: ClassVar[Effect] = "none"

    def infer(self) -> tuple[Type, ...]:
        """Types of the results; raises VerificationError if operands or attributes do not fit."""
        raise TypeError(f"{type(self).__name__} states no types")

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def attributes(self) -> dict[str, object]:
        """Attribute names and values, in declaration order."""
        return {name: getattr(self, name) for name in attribute_names(type(self))}

    def with_parts(self, operands: tuple[Value, ...], bodies: tuple[Body, ...] | None = None) -> "Operation":
        """The same operation on other operands (and bodies), with fresh results of re-inferred types."""
        bare = replace(self, operands=operands, bodies=self.bodies if bodies is None else bodies, results=())
        names = [value.name for value in self.results]
        return replace(bare, results=tuple(Value(kind, name) for kind, name in zip(bare.infer(), names, strict=True)))


def attribute_names(operation: type[Operation]) -> tuple[str, ...]:
    """Names of the attributes of a class of operations, in declaration order."""
    names = _ATTRIBUTE_NAMES.get(operation)
    if names is None:
        names = tuple(row.name for row in fields(operation) if row.name not in _STRUCTURE)
        _ATTRIBUTE_NAMES[operation] = names
    return names


# Asking dataclasses for fields takes longer than printing an operation.
_ATTRIBUTE_NAMES: dict[type[Operation], tuple[str, ...]] = {}


@dataclass(frozen=True, eq=False, kw_only=True)
class Constant(Operation):
    """A block filled with one number, written exactly (NaN payloads aside)."""

    dtype: DType
    number: bool | int | float
    shape: tuple[int, ...] = ()
    name: ClassVar[str] = "constant"

    def infer(self) -> tuple[Type, ...]:
        return (BlockType(self.dtype, self.shape),)


@dataclass(frozen=True, eq=False, kw_only=True)
class Iota(Operation):
    """0, 1, 2 … along `axis`, int64, repeated along the other axes."""

    shape: tuple[int, ...]
    axis: int
    name: ClassVar[str] = "iota"

    def infer(self) -> tuple[Type, ...]:
        _require(0 <= self.axis < len(self.shape), self.name, f"an axis of {self.shape}", self.axis)
        return (BlockType(dtypes.int64, self.shape),)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cast(Operation):
    """Conversion with NumPy's astype semantics."""

    dtype: DType
    name: ClassVar[str] = "cast"

    def infer(self) -> tuple[Type, ...]:
        (value,) = self.operands
        return (_block(value, self.name).with_dtype(self.dtype),)


@dataclass(frozen=True, eq=False, kw_only=True)
class Map(Operation):
    """A row of the scalar table applied elementwise; operands have one shape."""

    function: str
    name: ClassVar[str] = "map"

    def infer(self) -> tuple[Type, ...]:
        row = TABLE.get(self.function)
        if row is None:
            raise VerificationError(f"map: no row of the scalar table is called {self.function!r}")
        if len(self.operands) != row.arity:
            raise VerificationError(f"{self.function}: expected {row.arity} operands, found {len(self.operands)}")
        blocks = [_block(value, self.function) for value in self.operands]
        shape = blocks[0].shape
        for block in blocks:
            if block.shape != shape:
                found = ", ".join(str(block) for block in blocks)
                raise VerificationError(f"{self.function}: expected operands of one shape, found {found}")
        try:
            dtype = row.result_dtype(*(block.dtype for block in blocks))
        except TypeError as error:
            raise VerificationError(str(error)) from None
        return (blocks[0].with_dtype(dtype),)


@dataclass(frozen=True, eq=False, kw_only=True)
class Broadcast(Operation):
    """Axes of extent 1 repeated to `shape`; a scalar to any shape."""

    shape: tuple[int, ...]
    name: ClassVar[str] = "broadcast"

    def infer(self) -> tuple[Type, ...]:
        (value,) = self.operands
        block = _block(value, self.name)
        if block.shape:
            fits = block.rank == len(self.shape) and all(
                a in (1, b) for a, b in zip(block.shape, self.shape, strict=False)
            )
            _require(fits, self.name, f"a block that broadcasts to {self.shape}", block)
        return (block.with_shape(self.shape),)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reshape(Operation):
    """Axes of extent 1 added or removed; a block with a single element may become a scalar."""

    shape: tuple[int, ...]
    name: ClassVar[str] = "reshape"

    def infer(self) -> tuple[Type, ...]:
        (value,) = self.operands
        block = _block(value, self.name)
        same = [n for n in block.shape if n != 1] == [n for n in self.shape if n != 1]
        _require(same, self.name, f"the axes of {block} with unit axes added or removed", self.shape)
        return (block.with_shape(self.shape),)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduce(Operation):
    """A combiner folded along `axis`, which keeps extent 1; as many results as operands."""

    function: str
    axis: int
    name: ClassVar[str] = "reduce"

    def infer(self) -> tuple[Type, ...]:
        return tuple(_folded(self, value) for value in self.operands)


@dataclass(frozen=True, eq=False, kw_only=True)
class Scan(Operation):
    """Inclusive running fold along `axis`; results: the scanned operands, then the totals (extent 1 on `axis`)."""

    function: str
    axis: int
    name: ClassVar[str] = "scan"

    def infer(self) -> tuple[Type, ...]:
        totals = tuple(_folded(self, value) for value in self.operands)
        return tuple(value.type for value in self.operands) + totals


def _folded(operation: Reduce | Scan, value: Value) -> BlockType:
    combiner = COMBINERS.get(operation.function)
    if combiner is None:
        raise VerificationError(f"{operation.name}: no combiner is called {operation.function!r}")
    arity = combiner.arity
    _require(len(operation.operands) == arity, operation.function, f"{arity} operands", len(operation.operands))
    block = _block(value, operation.function)
    _require(0 <= operation.axis < block.rank, operation.function, f"an axis of {block}", operation.axis)
    return block.with_shape(block.shape[: operation.axis] + (1,) + block.shape[operation.axis + 1 :])


@dataclass(frozen=True, eq=False, kw_only=True)
class Dot(Operation):
    """``a @ b + accumulator`` for blocks (M, K), (K, N), (M, N); products and sums in the accumulator's dtype."""

    name: ClassVar[str] = "dot"

    def infer(self) -> tuple[Type, ...]:
        a, b, accumulator = (_block(value, self.name) for value in self.operands)
        fits = a.rank == b.rank == accumulator.rank == 2 and a.shape[1] == b.shape[0]
        fits = fits and accumulator.shape == (a.shape[0], b.shape[1]) and a.dtype is b.dtype
        _require(fits, self.name, "blocks (M, K), (K, N), (M, N)", f"{a}, {b}, {accumulator}")
        return (accumulator,)


@dataclass(frozen=True, eq=False, kw_only=True)
class DotLoop(Operation):
    """Products of windows summed up along an axis: what a loop of two loads and a `dot` computes, as one operation.

    Operands: begin, end, accumulator, then buffer `a` with one offset for each axis but its inner one, then `b` likewise.
    For ``inner = begin, begin + step, … < end`` the windows at `inner` are multiplied, and added to the accumulator. Both
    windows have exactly two axes longer than 1: (M, K) of `a`, (K, N) of `b`, with K equal to `step`. Elements outside of a
    buffer count as 0.

    `instruction` names the row of the target's matmul instructions that computes it.
    """

    step: int
    a_shape: tuple[int, ...]
    b_shape: tuple[int, ...]
    instruction: str
    name: ClassVar[str] = "dot_loop"
    effect: ClassVar[Effect] = "read"

    @property
    def a(self) -> Value:
        """The left buffer."""
        return self.operands[3]

    @property
    def b(self) -> Value:
        """The right buffer."""
        return self.operands[3 + len(self.a_shape)]

    @property
    def accumulator(self) -> Value:
        """What the products are added to."""
        return self.operands[2]

    @property
    def a_axes(self) -> tuple[int, int]:
        """Axes of `a` along which rows of the result and the inner extent lie."""
        return _long_axes(self.a_shape)

    @property
    def b_axes(self) -> tuple[int, int]:
        """Axes of `b` along which the inner extent and columns of the result lie."""
        return _long_axes(self.b_shape)

    @property
    def a_offsets(self) -> tuple[Value | None, ...]:
        """Offsets of the window of `a`; None on its inner axis."""
        rank = len(self.a_shape)
        return _with_gap(self.operands[4 : 3 + rank], self.a_axes[1])

    @property
    def b_offsets(self) -> tuple[Value | None, ...]:
        """Offsets of the window of `b`; None on its inner axis."""
        return _with_gap(self.operands[4 + len(self.a_shape) :], self.b_axes[0])

    def infer(self) -> tuple[Type, ...]:
        begin, end, accumulator, *_ = self.operands
        _require(begin.type == INDEX == end.type, self.name, "int64 bounds", f"{begin.type}, {end.type}")
        for shape in (self.a_shape, self.b_shape):
            _require(sum(extent > 1 for extent in shape) == 2, self.name, "windows with two long axes", shape)
        count = 3 + len(self.a_shape) + len(self.b_shape)
        _require(len(self.operands) == count, self.name, f"{count} operands", len(self.operands))
        a, b = _buffer(self.a, self.name), _buffer(self.b, self.name)
        _require(a.rank == len(self.a_shape), self.name, f"a window of rank {a.rank}", self.a_shape)
        _require(b.rank == len(self.b_shape), self.name, f"a window of rank {b.rank}", self.b_shape)
        for offset in (*self.operands[4 : 3 + a.rank], *self.operands[4 + a.rank :]):
            _require(offset.type == INDEX, self.name, "int64 scalar offsets", offset.type)
        m, k = (self.a_shape[axis] for axis in self.a_axes)
        inner, n = (self.b_shape[axis] for axis in self.b_axes)
        block = _block(accumulator, self.name)
        fits = k == inner == self.step and block.shape == (m, n) and a.dtype is b.dtype
        _require(
            fits,
            self.name,
            f"windows (M, {self.step}), ({self.step}, N) and an accumulator (M, N)",
            f"{a}, {b}, {block}",
        )
        return (block,)


def _long_axes(shape: tuple[int, ...]) -> tuple[int, int]:
    first, second = (axis for axis, extent in enumerate(shape) if extent > 1)
    return first, second


def _with_gap(values: tuple[Value, ...], axis: int) -> tuple[Value | None, ...]:
    return (*values[:axis], None, *values[axis:])


def _window(operation: "Load | Store", shape: tuple[int, ...], buffer: BufferType, offsets: tuple[Value, ...]) -> None:
    name = operation.name
    _require(len(offsets) == buffer.rank, name, f"{buffer.rank} offsets", len(offsets))
    _require(len(shape) == buffer.rank, name, f"a window of rank {buffer.rank}", shape)
    _require(len(operation.checked) == buffer.rank, name, f"{buffer.rank} checks", operation.checked)
    for offset in offsets:
        _require(offset.type == INDEX, name, "int64 scalar offsets", offset.type)


@dataclass(frozen=True, eq=False, kw_only=True)
class Load(Operation):
    """A window of a buffer: operands buffer, then one offset per axis. Outside the buffer a checked axis gives `fill`.

    `checked` is True for each axis on which the window may pass the buffer's extent.
    """

    shape: tuple[int, ...]
    checked: tuple[bool, ...]
    fill: bool | int | float = 0
    name: ClassVar[str] = "load"
    effect: ClassVar[Effect] = "read"

    def infer(self) -> tuple[Type, ...]:
        buffer = _buffer(self.operands[0], self.name)
        _window(self, self.shape, buffer, self.operands[1:])
        return (BlockType(buffer.dtype, self.shape),)


@dataclass(frozen=True, eq=False, kw_only=True)
class Store(Operation):
    """A block written to a window: operands buffer, one offset per axis, value. Outside the buffer nothing happens."""

    checked: tuple[bool, ...]
    name: ClassVar[str] = "store"
    effect: ClassVar[Effect] = "write"

    def infer(self) -> tuple[Type, ...]:
        buffer = _buffer(self.operands[0], self.name)
        value = _block(self.operands[-1], self.name)
        _require(value.dtype is buffer.dtype, self.name, f"a value of {buffer.dtype}", value)
        _window(self, value.shape, buffer, self.operands[1:-1])
        return ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Gather(Operation):
    """Elements at computed positions: operands buffer, then one int64 block per axis, all of one shape.

    With `checked`, a position outside the buffer gives `fill`; without, positions must be inside.
    """

    checked: bool = True
    fill: bool | int | float = 0
    name: ClassVar[str] = "gather"
    effect: ClassVar[Effect] = "read"

    def infer(self) -> tuple[Type, ...]:
        buffer, positions = _positions(self, self.operands[1:])
        return (BlockType(buffer.dtype, positions.shape),)


@dataclass(frozen=True, eq=False, kw_only=True)
class Scatter(Operation):
    """Elements written to computed positions: operands buffer, one int64 block per axis, value; no position twice.

    A position outside the buffer is skipped.
    """

    name: ClassVar[str] = "scatter"
    effect: ClassVar[Effect] = "write"

    def infer(self) -> tuple[Type, ...]:
        buffer, positions = _positions(self, self.operands[1:-1])
        value = _block(self.operands[-1], self.name)
        _require(value.dtype is buffer.dtype, self.name, f"a value of {buffer.dtype}", value)
        _require(value.shape == positions.shape, self.name, f"a value of shape {positions.shape}", value)
        return ()


def _positions(operation: Gather | Scatter, indices: tuple[Value, ...]) -> tuple[BufferType, BlockType]:
    buffer = _buffer(operation.operands[0], operation.name)
    blocks = [_block(value, operation.name) for value in indices]
    _require(len(blocks) == buffer.rank > 0, operation.name, f"{buffer.rank} index blocks", len(blocks))
    for block in blocks:
        same = block.dtype is dtypes.int64 and block.shape == blocks[0].shape
        _require(same, operation.name, "int64 index blocks of one shape", block)
    return buffer, blocks[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class Allocate(Operation):
    """Memory private to the program, row-major, uninitialised: stack on the host, shared memory on a GPU."""

    dtype: DType
    shape: tuple[int, ...]
    name: ClassVar[str] = "allocate"
    effect: ClassVar[Effect] = "write"

    def infer(self) -> tuple[Type, ...]:
        strides: list[int | None] = []
        step = 1
        for extent in reversed(self.shape):
            strides.insert(0, step)
            step *= extent
        return (BufferType(self.dtype, self.shape, tuple(strides), max(16, self.dtype.itemsize)),)


@dataclass(frozen=True, eq=False, kw_only=True)
class ProgramIndex(Operation):
    """Number of this program along a grid axis, int64."""

    axis: int
    name: ClassVar[str] = "program_index"

    def infer(self) -> tuple[Type, ...]:
        return (INDEX,)


@dataclass(frozen=True, eq=False, kw_only=True)
class For(Operation):
    """A counted loop. Operands: begin, end, then the initial carried values. Body parameters: index, carried values.

    Runs with index = begin, begin + step, … while index < end; the results are the carried values of the last turn.
    """

    step: int
    name: ClassVar[str] = "for"
    effect: ClassVar[Effect] = "none"

    def infer(self) -> tuple[Type, ...]:
        _require(self.step > 0, self.name, "a positive step", self.step)
        begin, end, *carried = self.operands
        _require(begin.type == INDEX == end.type, self.name, "int64 bounds", f"{begin.type}, {end.type}")
        (body,) = self.bodies
        kinds = tuple(value.type for value in carried)
        inside = tuple(value.type for value in body.parameters)
        _require(inside == (INDEX, *kinds), self.name, f"body parameters {(INDEX, *kinds)}", inside)
        handed = tuple(value.type for value in body.yields)
        _require(handed == kinds, self.name, f"a body that yields {kinds}", handed)
        return kinds


@dataclass(frozen=True, eq=False, kw_only=True)
class If(Operation):
    """One of two bodies by a scalar condition; both yield values of the same types."""

    name: ClassVar[str] = "if"

    def infer(self) -> tuple[Type, ...]:
        (condition,) = self.operands
        scalar = _block(condition, self.name)
        _require(scalar == BlockType(dtypes.boolean), self.name, "a boolean scalar", scalar)
        first, second = (tuple(value.type for value in body.yields) for body in self.bodies)
        _require(first == second, self.name, f"both bodies to yield {first}", second)
        return first


OPERATIONS: dict[str, type[Operation]] = {
    row.name: row
    for row in (
        Constant, Iota, Cast, Map, Broadcast, Reshape, Reduce, Scan, Dot, DotLoop, Load, Store,
        Gather, Scatter, Allocate, ProgramIndex, For, If,
    )
}  # fmt: skip
