"""A rewriter that knows bounds of the index values it has passed."""

from collections.abc import Sequence

from codegen.analysis.index_bounds import IndexBounds
from codegen.ir.builder import SomeOperation
from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.operations import For, If, Operation
from codegen.ir.rewriter import Rewriter, Rule


class BoundsRewriter(Rewriter):
    """Walks a kernel and takes up each operation that a rule leaves, or adds; in a branch its condition is known.

    Parameters
    ----------
    kernel : Kernel
        The kernel that will be rewritten.
    rule : callable
        See `codegen.ir.rewriter.Rule`.
    """

    def __init__(self, kernel: Kernel, rule: Rule) -> None:
        super().__init__(_take_up)
        self.bounds = IndexBounds(kernel)
        self.rule = rule
        self._conditions: dict[Body, Value] = {}
        self._loops: dict[Body, For] = {}

    def add(self, operation: SomeOperation, names: Sequence[str] = ()) -> SomeOperation:
        """Append a new operation; see `Builder.add`."""
        added = super().add(operation, names)
        self.bounds.walk(added)
        return added

    def body(self, body: Body) -> Body:
        """An old body rewritten; in the first body of a branch its condition holds, in a loop's its index is in range."""
        condition = self._conditions.pop(body, None)
        if condition is not None:
            with self.bounds.assuming(condition):
                return super().body(body)
        loop = self._loops.pop(body, None)
        if loop is not None:
            with self.bounds.in_turn_of(loop):
                return super().body(body)
        return super().body(body)

    def remember(self, operation: Operation) -> None:
        """Take up an operation that stays."""
        self.bounds.walk(operation)
        if isinstance(operation, If):
            self._conditions[operation.bodies[0]] = operation.operands[0]
        elif isinstance(operation, For):
            self._loops[operation.bodies[0]] = operation


def _take_up(rewriter: BoundsRewriter, operation: Operation) -> Sequence[Value] | None:
    found = rewriter.rule(rewriter, operation)
    if found is None:
        rewriter.remember(operation)
    return found
