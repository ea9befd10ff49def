"""Steps in the making other than plain kernels: updates of a window, matrix products, copies."""

from collections.abc import Sequence

from blockarray.fusion.accesses import Seed
from blockarray.fusion.decisions import Decisions
from blockarray.fusion.expansion import Expansion
from blockarray.fusion.index_maps import Extents, Strides
from blockarray.fusion.value_numbering import Graph
from blockarray.graph.nodes import Cast
from codegen.dtypes import DType, float32

# value number, offset, strides
StridedValue = tuple[int, int, Strides]


class UpdateStep(Expansion):
    """A kernel that writes a window of an array that exists.

    Attributes
    ----------
    base, number : int
        The values before and after.
    replaces_all : bool
        Whether nothing of the base is left, so that it is not needed.
    in_place : bool
        Whether the kernel may write over the memory of the base: it reads no other elements there than those it writes.
    """

    def __init__(
        self,
        decisions: Decisions,
        seeds: Sequence[Seed],
        extents: Extents,
        needs: frozenset[int],
        base: int,
        number: int,
        replaces_all: bool,
    ) -> None:
        Expansion.__init__(self, decisions, seeds, extents, needs=needs)
        self.base = base
        self.number = number
        self.replaces_all = replaces_all
        self.in_place = True


def narrow_operands(graph: Graph, number: int) -> tuple[int, int]:
    """The operands of a matrix product; halves that are only widened to float32 for it, as they are.

    A product of halves adds up in float32 by itself, and gives the same as one of the widened operands.
    """
    a, b = graph.inputs[number]
    if graph.nodes[number].dtype is not float32 or type(graph.nodes[a]) is not Cast or type(graph.nodes[b]) is not Cast:
        return a, b
    (inner_a,), (inner_b,) = graph.inputs[a], graph.inputs[b]
    dtype = graph.nodes[inner_a].dtype
    return (inner_a, inner_b) if dtype.is_half and graph.nodes[inner_b].dtype is dtype else (a, b)


class ProductStep:
    """A matrix product of two strided values."""

    def __init__(self, graph: Graph, number: int, a: StridedValue, b: StridedValue, operand_dtype: DType) -> None:
        self.number = number
        self.operand_dtype = operand_dtype
        self.a = a
        self.b = b
        self.sources = {a[0], b[0]}
        self.reads = {one for one in self.sources if not graph.is_leaf(one)}

    def targets(self) -> tuple[int, ...]:
        """The product."""
        return (self.number,)


class ScatterStep:
    """Elements of an array that exists replaced at positions: all operands are memory of their own.

    Attributes
    ----------
    base, number : int
        The values before and after.
    in_place : bool
        Whether it may write over the memory of the base.
    """

    replaces_all = False

    def __init__(self, graph: Graph, number: int) -> None:
        self.graph = graph
        self.number = number
        self.base, self.places, *values = graph.inputs[number]
        self.value = values[0] if values else None
        operands = {self.places, *values}
        self.in_place = self.base not in operands
        self.sources = {one for one in (self.base, *operands) if not graph.is_constant(one)}
        self.reads = {one for one in self.sources if not graph.is_leaf(one)}

    def targets(self) -> tuple[int, ...]:
        """The value after."""
        return (self.number,)


class CopyStep:
    """A copy of a whole value: for one more result (the position of its recorded node), or for an update to write into."""

    def __init__(self, graph: Graph, source: int, result: int | None, update: int | None = None) -> None:
        self.source = source
        self.result = result
        self.update = update
        self.sources = set() if graph.is_constant(source) else {source}
        self.reads = set() if graph.is_leaf(source) else {source}

    def targets(self) -> tuple[int, ...]:
        """Nothing that another step reads by its number."""
        return ()


StepInMaking = Expansion | ProductStep | ScatterStep | CopyStep
