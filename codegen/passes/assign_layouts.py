"""Block form to distributed form: the type of each block says which lanes and registers hold its elements."""

from dataclasses import replace

from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.layout import Layout
from codegen.ir.operations import Operation
from codegen.ir.types import BlockType


def layout_of(shape: tuple[int, ...], layout: Layout) -> Layout:
    """The layout of a block of `shape` in a kernel whose full tile has `layout`.

    A block of lower rank lies in the lanes of the last axes; of higher rank, its first axes lie in no lanes. Where an
    axis is too short for all lanes, the rest hold copies, and its layout counts the lanes that differ.
    """
    missing = len(shape) - layout.rank
    lanes = (1,) * missing + layout.lanes[max(0, -missing) :]
    runs = (1,) * missing + layout.run[max(0, -missing) :]
    held = tuple(min(run, _power_of_two_in(extent)) for run, extent in zip(runs, shape, strict=True))
    spread = tuple(
        min(count, _power_of_two_in(extent // run)) for count, extent, run in zip(lanes, shape, held, strict=True)
    )
    register = min(layout.register, _power_of_two_in(shape[-1]))
    if not layout.group:
        return Layout(spread, held, register)
    groups = (1,) * missing + layout.group[max(0, -missing) :]
    turns = (1,) * missing + layout.turns[max(0, -missing) :]
    group = tuple(min(count, lanes) for count, lanes in zip(groups, spread, strict=True))
    held_turns = tuple(1 if lanes == 1 else count for count, lanes in zip(turns, spread, strict=True))
    return Layout(spread, held, register, group, held_turns)


def _power_of_two_in(number: int) -> int:
    """The largest power of two that divides a number; 1 for 0."""
    return max(1, number & -number)


def assign_layouts(kernel: Kernel) -> Kernel:
    """The kernel with a layout in the type of each block that has axes."""
    return _Assignment(kernel.layout).kernel(kernel)


class _Assignment:
    """The values with layouts that stand for those without."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._new: dict[Value, Value] = {}
        self._types: dict[BlockType, BlockType] = {}

    def kernel(self, kernel: Kernel) -> Kernel:
        return replace(kernel, body=self._body(kernel.body))

    def _body(self, body: Body) -> Body:
        parameters = tuple([self._define(value) for value in body.parameters])
        operations = tuple([self._operation(operation) for operation in body.operations])
        return Body(parameters, operations, self._use(body.yields))

    def _operation(self, operation: Operation) -> Operation:
        operands = self._use(operation.operands)
        results = tuple([self._define(value) for value in operation.results])
        if not operation.bodies:
            if operands == operation.operands and results == operation.results:
                return operation
            return replace(operation, operands=operands, results=results)
        bodies = tuple([self._body(body) for body in operation.bodies])
        return replace(operation, operands=operands, results=results, bodies=bodies)

    def _use(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        new = self._new
        return tuple([new.get(value, value) for value in values])

    def _define(self, value: Value) -> Value:
        kind = value.type
        if not isinstance(kind, BlockType) or not kind.shape:
            return value
        found = self._types.get(kind)
        if found is None:
            found = self._types[kind] = replace(kind, layout=layout_of(kind.shape, self._layout))
        self._new[value] = result = Value(found, value.name)
        return result
