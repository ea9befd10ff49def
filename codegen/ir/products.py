"""Which matmul instruction takes which product: facts of its operands, and what rows of a target ask of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from codegen.dtypes import DType
from codegen.ir.kernel import Body
from codegen.ir.layout import Layout
from codegen.ir.operations import DotLoop
from codegen.ir.types import BufferType
from codegen.target import MatmulInstruction

Contiguous = Literal["inner", "outer", "none"]

MAP_BYTES = 16
"""What divides every address and stride that a tensor map can state."""

MAP_AXES = 5
"""Most axes of a tensor map."""

_REGISTERS_OF_A_ROW = 4

NARROWEST_PANEL = 64
"""Columns of a panel with the 128-byte pattern: what an operand that is contiguous along rows or columns comes in."""


@dataclass(frozen=True)
class OperandFacts:
    """What has to be known of an operand to choose an instruction.

    Attributes
    ----------
    dtype : DType
    contiguous : {"inner", "outer", "none"}
        The axis along which neighbours lie side by side: the one that is summed over, the other one, or neither.
    alignment : int
        Bytes that divide the address and the other strides.
    mapped_axes : int
        Axes that a tensor map of it has; 0 if none can state it.
    """

    dtype: DType
    contiguous: Contiguous
    alignment: int
    mapped_axes: int


def operand_facts(buffer: BufferType, inner_axis: int, outer_axis: int) -> OperandFacts:
    """The facts of a buffer whose axis `inner_axis` is summed over."""
    contiguous: Contiguous = "none"
    if buffer.strides[inner_axis] == 1:
        contiguous = "inner"
    elif buffer.strides[outer_axis] == 1:
        contiguous = "outer"
    other = outer_axis if contiguous == "inner" else inner_axis
    is_mapped = contiguous != "none" and buffer.strides[other] is None
    repeated = sum(stride == 0 for stride in buffer.strides)
    return OperandFacts(buffer.dtype, contiguous, buffer.alignment, buffer.rank - repeated if is_mapped else 0)


def accumulator_layout(row: MatmulInstruction, m: int) -> Layout:
    """How an instruction spreads the rows and columns of a tile: four lanes side by side, eight below one another.

    On the host one lane holds everything, a row in a few machine registers.
    """
    if row.lanes == 1:
        return Layout((1, 1), (1, 1), row.columns[0] // _REGISTERS_OF_A_ROW)
    rows = row.lanes // 4
    return Layout((rows, 4), (1, 2), 1, (8, 4), (m // rows, 1))


def refusal(
    row: MatmulInstruction, m: int, n: int, k: int, a: OperandFacts, b: OperandFacts, accumulator: DType
) -> str:
    """Why an instruction does not take a product of tiles (m, k) and (k, n); empty if it does."""
    if a.dtype.name not in row.operands or b.dtype.name not in row.operands:
        return f"multiplies {' and '.join(row.operands)}, not {a.dtype}"
    if accumulator.name != row.accumulator:
        return f"adds up in {row.accumulator}, not {accumulator}"
    if m not in row.rows or n not in row.columns or k not in row.inner:
        return f"has no tile of {m} x {n} x {k}"
    return _refused_copy(a, "left", m) or _refused_copy(b, "right", n) if row.copies == "tensor maps" else ""


def _refused_copy(operand: OperandFacts, side: str, extent: int) -> str:
    if operand.alignment % MAP_BYTES:
        return f"needs rows at multiples of {MAP_BYTES} bytes, the {side} operand has {operand.alignment}"
    if not 2 <= operand.mapped_axes <= MAP_AXES:
        return f"needs a {side} operand with 2 to {MAP_AXES} axes, one of them contiguous"
    if operand.contiguous == "outer" and extent < NARROWEST_PANEL:
        return f"takes panels of {NARROWEST_PANEL} from a {side} operand that is not contiguous along the summed axis"
    return ""


def dot_loops(body: Body) -> Iterator[DotLoop]:
    """All dot loops of a body and of the bodies in it."""
    for operation in body.operations:
        if isinstance(operation, DotLoop):
            yield operation
        for inner in operation.bodies:
            yield from dot_loops(inner)
