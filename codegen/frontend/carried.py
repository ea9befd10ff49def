"""Values that loops hand on from turn to turn and that branches agree on: each has one type."""

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType
from codegen.frontend.blocks import Blocks
from codegen.frontend.diagnostics import Fault
from codegen.frontend.values import LOST_EDGE, Block, Edges, describe, is_number, joined
from codegen.ir.kernel import Value
from codegen.ir.types import BlockType

_OF_NUMBER: dict[type, DType] = {bool: dtypes.boolean, int: dtypes.int64, float: dtypes.float64}


@dataclass(frozen=True, eq=False)
class Carried:
    """The type of a carried value.

    Attributes
    ----------
    name : str
    start : Block or number
        What it begins with.
    dtype : DType
    shape, axes : tuple of int
    weak : type or None
    edges : tuple of Edges
    """

    name: str
    start: Any
    dtype: DType
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    weak: type | None
    edges: tuple[Edges, ...]

    def type_of(self, blocks: Blocks) -> BlockType:
        """The IR's type."""
        return BlockType(self.dtype, blocks.tile_shape(self.shape, self.axes))

    def block(self, value: Value) -> Block:
        """A value of this type."""
        return Block(value, self.shape, self.axes, self.weak, self.edges)

    @property
    def example(self) -> Block:
        """A block of this type, to compare with others."""
        return self.block(Value(BlockType(self.dtype, self.shape)))

    def value_of(self, blocks: Blocks, operand: Any) -> Value:
        """An operand as a value of this type."""
        return blocks.spread(operand, self.dtype, self.shape, self.axes)

    def initial(self, blocks: Blocks) -> Value:
        """The first value."""
        return self.value_of(blocks, self.start)

    def is_like(self, other: "Carried") -> bool:
        """Whether both are the same type."""
        mine, its = (
            (one.dtype, one.shape, one.axes, one.weak, tuple(map(frozenset, one.edges))) for one in (self, other)
        )
        return mine == its


def unchanged(before: Any, after: Any) -> bool:
    """Whether two values of a name are the same one."""
    if before is after:
        return True
    if isinstance(before, Block) or isinstance(after, Block) or type(before) is not type(after):
        return False
    try:
        return bool(before == after)
    except (TypeError, ValueError):
        return False


def joined_state(
    blocks: Blocks, name: str, first: Any, second: Any, when_first: str, when_second: str, start: Any = None
) -> Carried:
    """The type that both values of a name have; Fault if they have none in common.

    Python's numbers, and scalars that adapt as they do, take dtype and shape of the other value.
    """
    for value in (first, second):
        if not isinstance(value, Block) and not is_number(value):
            raise Fault(
                f"`{name}` is {describe(first)} {when_first} and {describe(second)} {when_second}; expected blocks or numbers, "
                "one for each name"
            )
    origin = first if start is None else start
    if _adapts(first) and not _adapts(second):
        first, second = second, first
    if _adapts(first):
        return _of_numbers(name, origin, first, second)
    dtype = _dtype_of(first)
    if not _adapts(second):
        shapes = [value.shape if isinstance(value, Block) else () for value in (first, second)]
        if shapes[0] != shapes[1]:
            raise Fault(
                f"`{name}` has shape {shapes[0]} {when_first} and {shapes[1]} {when_second}; expected one shape, such as that of "
                f"zeros({shapes[1]}, {dtype})"
            )
        if dtype is not _dtype_of(second):
            raise Fault(
                f"`{name}` has dtype {dtype} {when_first} and {_dtype_of(second)} {when_second}; expected one dtype: "
                f"cast(…, {dtype})"
            )
    if not isinstance(first, Block):
        return Carried(name, origin, dtype, (), (), None, ())
    if isinstance(second, Block) and second.shape:
        edges = tuple(joined(a, b) for a, b in zip(first.edges, second.edges, strict=True))
    else:
        edges = first.edges
    return Carried(name, origin, dtype, first.shape, first.axes, None, edges)


def _adapts(value: Any) -> bool:
    return value.weak is not None if isinstance(value, Block) else not isinstance(value, np.generic)


def _dtype_of(value: Any) -> DType:
    if isinstance(value, Block):
        return value.dtype
    return dtypes.of(value.dtype) if isinstance(value, np.generic) else _OF_NUMBER[type(value)]


def _of_numbers(name: str, origin: Any, first: Any, second: Any) -> Carried:
    kinds = [value.weak or int if isinstance(value, Block) else type(value) for value in (first, second)]
    kind = max(kinds, key=lambda one: (bool, int, float).index(one))
    return Carried(name, origin, _OF_NUMBER[kind], (), (), None if kind is bool else kind, ())


def without_inner_edges(block: Block, inner: set[Value]) -> Block:
    """A block as it is seen from outside: edges that only the inside knows are marked as lost."""
    if not any(edge.offset in inner or edge.extent in inner for edges in block.edges for edge in edges):
        return block
    edges = tuple(
        tuple(LOST_EDGE if edge.offset in inner or edge.extent in inner else edge for edge in found)
        for found in block.edges
    )
    return block.with_changes(edges=tuple(joined((), found) for found in edges))


def assigned_names(statements: list[ast.stmt]) -> list[str]:
    """Names that statements assign to, in order."""
    return list(last_assignments(statements))


def last_assignments(statements: list[ast.stmt]) -> dict[str, ast.AST]:
    """For each name that statements assign to, the last place that does."""
    found: dict[str, ast.AST] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            if isinstance(node, ast.FunctionDef):
                found[node.name] = node
            return
        if isinstance(node, ast.comprehension):
            return
        for child in ast.iter_child_nodes(node):
            visit(child)
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        found[part.id] = node.target if isinstance(node, ast.For) else node

    for statement in statements:
        visit(statement)
    return found
