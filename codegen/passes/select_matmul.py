"""Recognise a loop that multiplies windows, and give it to a matmul instruction of the target.

::

    %total = for %begin, %end, %zero step=64 (%inner, %sum) {
      %1 = load %a, %row, %inner shape=(128, 64)
      %2 = load %b, %inner, %column shape=(64, 256)         ->  %total = dot_loop %begin, %end, %zero, %a, %row, %b, %column
      %3 = dot %1, %2, %sum
      yield %3
    }

The layout of the kernel becomes that of the instruction's accumulators. A kernel whose blocks do not fit it is left as it is.
"""

from dataclasses import replace

from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.operations import (
    Broadcast,
    Cast,
    Constant,
    Dot,
    DotLoop,
    For,
    Iota,
    Load,
    Map,
    Operation,
    ProgramIndex,
    Reshape,
    Store,
)
from codegen.ir.products import accumulator_layout, operand_facts, refusal
from codegen.target import MatmulInstruction, Target

# What may stand around the loop: operations that leave every element where it is.
_AROUND = (Broadcast, Cast, Constant, Iota, Load, Map, ProgramIndex, Reshape, Store)


def select_matmul(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with its product on the first instruction of the target that takes it."""
    loops = [operation for operation in kernel.body.operations if isinstance(operation, For)]
    if len(loops) != 1 or not target.matmul_instructions:
        return kernel
    (loop,) = loops
    if not all(operation is loop or isinstance(operation, _AROUND) for operation in kernel.body.operations):
        return kernel
    for row in target.matmul_instructions:
        product = dot_loop_of(loop, row)
        if product is None:
            continue
        shape = product.accumulator.block.shape
        if _fits(kernel, loop, shape) and (row.copies != "tensor maps" or _is_separable(kernel, product)):
            operations = tuple(product if operation is loop else operation for operation in kernel.body.operations)
            return replace(kernel, body=Body((), operations), layout=accumulator_layout(row, shape[0]))
    return kernel


def dot_loop_of(loop: For, row: MatmulInstruction) -> DotLoop | None:
    """The loop as a product on an instruction; None if it is none, or the instruction does not take it."""
    begin, end, *carried = loop.operands
    (body,) = loop.bodies
    definitions = {value: operation for operation in body.operations for value in operation.results}
    if len(carried) != 1 or len(body.yields) != 1:
        return None
    inner, total = body.parameters
    dot = definitions.get(body.yields[0])
    if not isinstance(dot, Dot) or dot.operands[2] is not total:
        return None
    left, right = (_window_of(definitions, operand) for operand in dot.operands[:2])
    if left is None or right is None:
        return None
    used = {dot, *left.operations, *right.operations}
    if len(used) != len(body.operations):
        return None
    a_offsets, b_offsets = left.outer_offsets(1, inner), right.outer_offsets(0, inner)
    if a_offsets is None or b_offsets is None:
        return None
    a, b = left.load.operands[0], right.load.operands[0]
    (m, k), (_, n) = left.block, right.block
    facts = (operand_facts(a.buffer, left.axes[1], left.axes[0]), operand_facts(b.buffer, *right.axes))
    if k != loop.step or refusal(row, m, n, k, *facts, total.block.dtype):
        return None
    return DotLoop(
        operands=(begin, end, carried[0], a, *a_offsets, b, *b_offsets),
        results=loop.results,
        location=loop.location,
        step=loop.step,
        a_shape=left.load.shape,
        b_shape=right.load.shape,
        instruction=row.name,
    )


class _Window:
    """An operand of a product that is loaded in the loop."""

    def __init__(self, load: Load, block: tuple[int, int], operations: tuple[Operation, ...]) -> None:
        self.load = load
        self.block = block
        self.operations = operations
        first, second = (axis for axis, extent in enumerate(load.shape) if extent > 1)
        self.axes = (first, second)

    def outer_offsets(self, side: int, inner: Value) -> tuple[Value, ...] | None:
        """The offsets but for the inner axis, which has to be where the loop is; None if it is elsewhere."""
        axis = self.axes[side]
        offsets = self.load.operands[1:]
        others = (*offsets[:axis], *offsets[axis + 1 :])
        return None if offsets[axis] is not inner or inner in others else others


def _window_of(definitions: dict[Value, Operation], value: Value) -> _Window | None:
    operation = definitions.get(value)
    between: list[Operation] = []
    while isinstance(operation, Reshape):
        between.append(operation)
        operation = definitions.get(operation.operands[0])
    if not isinstance(operation, Load) or operation.fill != 0 or sum(extent > 1 for extent in operation.shape) != 2:
        return None
    first, second = value.block.shape
    return _Window(operation, (first, second), (operation, *between))


def _fits(kernel: Kernel, loop: For, shape: tuple[int, ...]) -> bool:
    """Whether every block around the loop has, on each axis of the tile, the tile's extent or 1."""
    for operation in kernel.body.operations:
        if operation is loop:
            continue
        for value in (*operation.operands, *operation.results):
            if not value.is_block or not value.block.shape:
                continue
            *batch, rows, columns = (1, 1, *value.block.shape)[-max(2, value.block.rank) :]
            if any(extent != 1 for extent in batch) or rows not in (1, shape[0]) or columns not in (1, shape[1]):
                return False
    return True


def _is_separable(kernel: Kernel, product: DotLoop) -> bool:
    """Whether lanes that only move data can find the windows by themselves: scalars without reads of memory."""
    definitions = {value: operation for operation in kernel.body.operations for value in operation.results}
    waiting = [value for value in product.operands if value is not product.accumulator]
    while waiting:
        operation = definitions.get(waiting.pop())
        if operation is None:
            continue
        if operation.effect != "none" or operation.bodies:
            return False
        waiting += operation.operands
    return True
