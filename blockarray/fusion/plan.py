"""What a fused kernel computes, before any choice of sizes: a domain, inputs, statements, outputs, and why it ends.

A `KernelPlan` is pure data between the partition of a graph and its lowering to block IR. Values inside it are numbered by the
statement that makes them. Every value has the rank of the domain; along an axis it either varies or is the same everywhere.
"""

from dataclasses import dataclass, field

from codegen.dtypes import DType


@dataclass(frozen=True)
class DomainAxis:
    """One axis of the iteration domain, from the outermost to the innermost in memory order.

    `reduced` axes are folded by every `Fold` of the kernel; all folds of one kernel fold the same axes.

    A reduced axis with a `piece` above 0 is cut into pieces of so many elements (the last one may be shorter). Folds and running folds
    then start anew in each piece. A value that comes from a fold is
    written once per piece: the target's stride along this axis counts pieces.
    """

    extent: int
    reduced: bool = False
    piece: int = 0

    @property
    def pieces(self) -> int:
        """Pieces of the axis; 1 if it is not cut."""
        return -(-self.extent // self.piece) if self.piece else 1


@dataclass(frozen=True)
class Read:
    """An element of an input per point: at ``offset + sum(index * strides)`` elements from the input's start.

    `source` numbers the value in the graph plan's value table. Stride 0 marks an axis along which the read does not vary.
    """

    source: int
    dtype: DType
    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Number:
    """A constant of the expression, passed at run time. `source` numbers it in the value table."""

    source: int
    dtype: DType


@dataclass(frozen=True)
class Literal:
    """A number that is part of the code, whatever the expression's own constants are."""

    number: int | float
    dtype: DType


@dataclass(frozen=True)
class Position:
    """The index of the point along the domain, int64: ``offset + sum(index * strides)``."""

    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Apply:
    """A row of the scalar table on earlier values; ``function`` is its name. `dtype` is the result's."""

    function: str
    operands: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True)
class Convert:
    """NumPy's astype."""

    operand: int
    dtype: DType


@dataclass(frozen=True)
class Fold:
    """A combiner over the reduced axes; float16 and bfloat16 operands were converted to float32 before.

    Combiners of arity 2 with positions (argmax, argmin) get the row-major `Position` over the reduced axes as their second operand.
    `output` says which of the combiner's values the statement stands for.
    """

    combiner: str
    operands: tuple[int, ...]
    output: int
    dtype: DType


@dataclass(frozen=True)
class RunningFold:
    """Inclusive running fold along the kernel's only reduced axis, in order; the value varies along it.

    Partition puts that axis innermost; where another axis is the one that is contiguous in memory, lowering moves it.

    On an axis that is cut into pieces, `before` holds the running folds of whole pieces: a piece starts from the entry of the piece
    before it. The strides of `before` along the cut axis count pieces.
    """

    combiner: str
    operand: int
    dtype: DType
    before: Read | None = None


@dataclass(frozen=True)
class Take:
    """``source[offset + position_0 * strides_0 + …]`` for int64 position values that are inside; `rest` are strides per domain axis of
    the part of the source that is not indexed."""

    source: int
    dtype: DType
    offset: int
    positions: tuple[int, ...]
    position_strides: tuple[int, ...]
    rest: tuple[int, ...]


Statement = Read | Number | Literal | Position | Apply | Convert | Fold | RunningFold | Take


@dataclass(frozen=True)
class Write:
    """A value stored at ``offset + sum(index * strides)`` elements of a target.

    A value that was folded is stored once per point of the kept axes (strides of reduced axes are 0). Along every other axis of
    extent above 1 the target's stride is not 0. `target` numbers the target in the value table.
    """

    target: int
    value: int
    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class KernelPlan:
    """One fused kernel.

    Attributes
    ----------
    name : str
        Readable, made of what it does (``softmax``-like names are not guessed: ``subtract_exp_add``).
    axes : tuple of DomainAxis
    statements : tuple of Statement
        In order; operands are positions of earlier statements.
    writes : tuple of Write
    aliased : frozenset of int
        Sources that may be the same memory as a target (each element is read before it is written).
    operations : tuple of str
        For `explain`: one line per recorded operation, with the line of the program that recorded it.
    reason : str
        Why the kernel ends where it does.
    """

    name: str
    axes: tuple[DomainAxis, ...]
    statements: tuple[Statement, ...]
    writes: tuple[Write, ...]
    aliased: frozenset[int] = frozenset()
    operations: tuple[str, ...] = field(default=(), compare=False)
    reason: str = field(default="", compare=False)

    def varies(self) -> tuple[tuple[bool, ...], ...]:
        """For each statement, along which axes its value varies."""
        rank = len(self.axes)
        found: list[tuple[bool, ...]] = []
        for statement in self.statements:
            match statement:
                case Read(strides=strides) | Position(strides=strides):
                    found.append(tuple(stride != 0 for stride in strides))
                case Number() | Literal():
                    found.append((False,) * rank)
                case Apply(operands=operands):
                    found.append(tuple(any(found[k][axis] for k in operands) for axis in range(rank)))
                case Convert(operand=operand):
                    found.append(found[operand])
                case Fold(operands=operands):
                    kept = tuple(any(found[k][axis] for k in operands) for axis in range(rank))
                    found.append(tuple(a and not axis.reduced for a, axis in zip(kept, self.axes, strict=True)))
                case RunningFold(operand=operand):
                    varies = zip(found[operand], self.axes, strict=True)
                    found.append(tuple(flag or axis.reduced for flag, axis in varies))
                case Take(positions=positions, rest=rest):
                    found.append(
                        tuple(rest[axis] != 0 or any(found[k][axis] for k in positions) for axis in range(rank))
                    )
        return tuple(found)


@dataclass(frozen=True)
class Leaf:
    """A value that exists before the plan runs: number `position` among the leaves of the recording."""

    position: int


@dataclass(frozen=True)
class Fresh:
    """New memory for `elements` of `dtype`. `result` is the number of the recorded node it becomes the value of, or None for a
    temporary (a partial result, or a copy that an overlap needs). `partial` marks what pieces of a cut reduction come to."""

    dtype: DType
    elements: int
    result: int | None
    partial: bool = False


@dataclass(frozen=True)
class Inherited:
    """The memory of leaf `position`, taken over when nothing else can read it any more, else a copy of it; becomes the value of recorded
    node `result` (an `Update`)."""

    position: int
    dtype: DType
    elements: int
    result: int


PlanValue = Leaf | Fresh | Inherited


@dataclass(frozen=True)
class Product:
    """A matrix product step: operands and target by value number, each (offset, shape, strides) in elements; shapes (batch…, M, K),
    (batch…, K, N), (batch…, M, N)."""

    a: int
    b: int
    target: int
    dtype: DType
    a_view: tuple[int, tuple[int, ...], tuple[int, ...]]
    b_view: tuple[int, tuple[int, ...], tuple[int, ...]]
    shape: tuple[int, ...]
    operations: tuple[str, ...] = field(default=(), compare=False)
    reason: str = field(default="", compare=False)


@dataclass(frozen=True)
class Scattering:
    """Elements of `target` at positions replaced one after the other (see the graph's `Scatter`).

    `places` and `value` are value numbers; `value` is None for a function of one operand, `single` says that one value serves all positions,
    `constant` that it is a constant of the expression.
    """

    target: int
    places: int
    value: int | None
    count: int
    elements: int
    dtype: DType
    value_dtype: DType
    working: DType
    function: str | None
    single: bool
    constant: bool
    operations: tuple[str, ...] = field(default=(), compare=False)
    reason: str = field(default="", compare=False)


Step = KernelPlan | Product | Scattering


@dataclass(frozen=True)
class GraphPlan:
    """All steps that compute the roots of a recording, in order, over one table of values."""

    values: tuple[PlanValue, ...]
    steps: tuple[Step, ...]
