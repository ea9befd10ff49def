"""Give programs whose windows all lie inside of their buffers code of their own, without checks.

::

    %1 = load %x, %i shape=(64) checked=(true)        %inside = %i + 64 <= %n
    …                                            ->   if %inside { the same } else { the same }

`remove_bounds_checks` then drops the checks in the first body.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codegen.analysis.effects import count_operations
from codegen.analysis.index_bounds import IndexBounds, WindowAxis, window_axes
from codegen.ir.builder import Builder
from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.operations import Allocate, Load, Map, Operation, ProgramIndex, Store
from codegen.ir.products import dot_loops
from codegen.ir.rewriter import copy_body
from codegen.ir.types import BlockType

# Beyond that the time to compile the code twice is more than what checks take in most runs.
_MOST_OPERATIONS = 120


def separate_edges(kernel: Kernel) -> Kernel:
    """The kernel with a branch around all that it does, where that makes checks unnecessary in most programs."""
    if count_operations(kernel.body) > _MOST_OPERATIONS or any(dot_loops(kernel.body)):
        return kernel
    edges = _Edges(kernel)
    conditions = edges.conditions()
    if not conditions:
        return kernel
    first = [operation for operation in kernel.body.operations if edges.is_first(operation)]
    rest = Body((), tuple(operation for operation in kernel.body.operations if not edges.is_first(operation)))
    builder = _Copier()
    for operation in first:
        builder.keep(operation)
    inside = _all(builder, [row.build(builder, edges.extents) for row in conditions])
    builder.branch(inside, lambda: builder.keep_all(copy_body(rest, {})), lambda: builder.keep_all(rest))
    return builder.kernel(kernel.name, kernel.parameters, kernel.grid, kernel.layout)


class _Copier(Builder):
    """A builder that also takes operations that exist."""

    def keep(self, operation: Operation) -> None:
        """Append an operation with the results that it has."""
        self._open[-1].append(operation)

    def keep_all(self, body: Body) -> tuple[Value, ...]:
        """Append the operations of a body; what it yields."""
        for operation in body.operations:
            self.keep(operation)
        return body.yields


@dataclass(frozen=True)
class _Condition:
    """``0 <= offset`` (unless known) and ``offset + length <= extent``."""

    axis: WindowAxis
    from_zero: bool

    def build(self, builder: Builder, extents: dict[str, Value]) -> Value:
        """The condition as a boolean scalar."""
        axis = self.axis
        extent = builder.index(axis.extent) if isinstance(axis.extent, int) else extents[axis.extent]
        end = builder.map("add", axis.offset, builder.index(axis.length))
        below = builder.map("less_equal", end, extent)
        if self.from_zero:
            return below
        return builder.map("logical_and", below, builder.map("less_equal", builder.index(0), axis.offset))


def _all(builder: Builder, conditions: Sequence[Value]) -> Value:
    first, *others = conditions
    for other in others:
        first = builder.map("logical_and", first, other)
    return first


class _Edges:
    """The checks of a kernel that a look at the program's number decides."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._bounds = IndexBounds(kernel)
        self._scalars: dict[Value, Operation] = {}
        self._needed: set[Operation] = set()
        self.extents = {parameter.name: parameter.value for parameter in kernel.parameters}
        self._known = {parameter.value for parameter in kernel.parameters}
        for operation in kernel.body.operations:
            self._bounds.walk(operation)
            if _is_index_arithmetic(operation):
                self._scalars.update(dict.fromkeys(operation.results, operation))

    def is_first(self, operation: Operation) -> bool:
        """Whether an operation stands before the branch: what is needed there, and memory, which both bodies share."""
        return operation in self._needed or isinstance(operation, Allocate)

    def conditions(self) -> list[_Condition]:
        """What makes windows lie inside; nothing if it is not worth a branch."""
        rows: dict[tuple[Value, str | int], WindowAxis] = {}
        is_worth_it = False
        for window in _windows(self._kernel.body):
            axes = [axis for axis in window_axes(window) if axis.checked and not self._is_inside(axis)]
            decided = [axis for axis in axes if self._is_decided(axis)]
            for axis in decided:
                key = (axis.offset, axis.extent)
                if key not in rows or rows[key].length < axis.length:
                    rows[key] = axis
            is_worth_it |= bool(axes) and len(decided) == len(axes) and self._gains(window)
        if not is_worth_it:
            return []
        for axis in rows.values():
            self._need(axis.offset)
        # What is the same in all programs stands there too: the host computes it once for many of them.
        for value, operation in self._scalars.items():
            if isinstance(operation, Map) and self._is_of_launch(value):
                self._need(value)
        return [
            _Condition(axis, self._bounds.is_not_negative(self._bounds.sum_of(axis.offset))) for axis in rows.values()
        ]

    def _is_inside(self, axis: WindowAxis) -> bool:
        return self._bounds.is_window_inside(axis.offset, axis.length, axis.extent)

    def _is_decided(self, axis: WindowAxis) -> bool:
        """Whether the offset varies with the program, and follows from its number and parameters alone.

        A window whose place is the same in all programs is as long as it is because its buffer is shorter.
        """
        if isinstance(axis.extent, int) and axis.extent < axis.length:
            return False
        return self._bounds.sum_of(axis.offset).number is None and self._is_scalar(axis.offset)

    def _is_scalar(self, value: Value) -> bool:
        if value in self._known:
            return True
        operation = self._scalars.get(value)
        return operation is not None and all(map(self._is_scalar, operation.operands))

    def _is_of_launch(self, value: Value) -> bool:
        """Whether a scalar follows from parameters alone."""
        if value in self._known:
            return True
        operation = self._scalars.get(value)
        if operation is None or isinstance(operation, ProgramIndex):
            return False
        return all(map(self._is_of_launch, operation.operands))

    def _need(self, value: Value) -> None:
        operation = self._scalars.get(value)
        if operation is None or operation in self._needed:
            return
        self._needed.add(operation)
        for operand in operation.operands:
            self._need(operand)

    def _gains(self, window: Load | Store) -> bool:
        """Whether accesses are cheaper without a check.

        In lanes, each has a predicate at no cost, but moves a run of neighbours at once only if the extent is known to
        consist of whole runs, or nothing is checked.
        """
        layout = self._kernel.layout
        if layout.lane_count == 1:
            return True
        if not layout.rank or layout.run[-1] == 1:
            return False
        last = window_axes(window)[-1]
        buffer = window.operands[0].buffer
        movable = buffer.strides[-1] == 1 and buffer.alignment > buffer.dtype.itemsize
        return last.checked and movable and self._bounds.divisor(self._bounds.extent(last.extent)) % layout.run[-1] != 0


def _is_index_arithmetic(operation: Operation) -> bool:
    """Whether an operation computes scalars from scalars, and nothing else."""
    if operation.effect != "none" or operation.bodies:
        return False
    return all(
        isinstance(value.type, BlockType) and not value.type.shape
        for value in (*operation.operands, *operation.results)
    )


def _windows(body: Body) -> Iterator[Load | Store]:
    for operation in body.operations:
        if isinstance(operation, (Load, Store)):
            yield operation
        for inner in operation.bodies:
            yield from _windows(inner)
