"""Rewriter: walks a kernel forward, hands each operation to a rule, and builds the kernel that comes out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codegen.ir.builder import Builder, SomeOperation
from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.operations import Operation

Rule = Callable[[Any, Operation], Sequence[Value] | None]
"""Gives the values that take the place of an operation's results, or None to keep the operation.

The operation that a rule sees has its new operands already. What a rule adds through the rewriter stands before it.
"""


class Rewriter(Builder):
    """A builder that copies a kernel and forwards replaced values.

    What a rule leaves alone is shared with the old kernel, values too; they say nothing about where they are defined.

    Parameters
    ----------
    rule : callable
        See `Rule`.
    """

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.changed = False
        self._rule = rule
        self._forward: dict[Value, Value] = {}
        self._definitions: dict[Value, Operation] = {}

    def rewrite(self, kernel: Kernel) -> Kernel:
        """The kernel after the rule; the same object if the rule changed nothing."""
        for operation in kernel.body.operations:
            self._visit(operation)
        if not self.changed:
            return kernel
        return self.kernel(kernel.name, kernel.parameters, kernel.grid, kernel.layout)

    def add(self, operation: SomeOperation, names: Sequence[str] = ()) -> SomeOperation:
        """Append a new operation; see `Builder.add`."""
        return self._record(super().add(operation, names))

    def definition(self, value: Value) -> Operation | None:
        """The operation that defines a value in the new kernel; None for parameters of kernels and bodies."""
        return self._definitions.get(value)

    def forwarded(self, values: Sequence[Value]) -> tuple[Value, ...]:
        """What stands for values of the old kernel in the new one."""
        forward = self._forward
        return tuple([forward.get(value, value) for value in values])

    def inline(self, body: Body) -> tuple[Value, ...]:
        """Put the operations of an old body, which has no parameters, here; what its yields have become."""
        for operation in body.operations:
            self._visit(operation)
        return self.forwarded(body.yields)

    def body(self, body: Body) -> Body:
        """An old body rewritten; the same object if nothing in it changed."""
        before = self.changed
        self.changed = False
        new = self._nested(body.parameters, lambda: self.inline(body))
        if not self.changed and new.yields == body.yields:
            new = body
        self.changed = before or new is not body
        return new

    def _visit(self, operation: Operation) -> None:
        self.location = operation.location
        current = operation
        operands = self.forwarded(operation.operands)
        if operands != operation.operands:
            current = replace(current, operands=operands)
        replacements = self._rule(self, current)
        if replacements is not None:
            self.changed = True
            self._forward.update(zip(operation.results, replacements, strict=True))
            return
        if operation.bodies:
            bodies = tuple(self.body(body) for body in operation.bodies)
            if any(new is not old for new, old in zip(bodies, operation.bodies, strict=True)):
                current = replace(current, bodies=bodies)
        if current is not operation:
            self.changed = True
        self._open[-1].append(current)
        self._record(current)

    def _record(self, operation: SomeOperation) -> SomeOperation:
        for value in operation.results:
            self._definitions[value] = operation
        return operation


def rewrite(kernel: Kernel, rule: Rule) -> Kernel:
    """Apply a rule to every operation of a kernel, from its beginning on, those in bodies after the one around them."""
    return Rewriter(rule).rewrite(kernel)


def copy_operation(operation: Operation, renamed: dict[Value, Value]) -> Operation:
    """An operation with results and body parameters of its own; `renamed` maps old values to new ones and grows."""
    bodies = tuple(copy_body(body, renamed) for body in operation.bodies)
    results = tuple(_fresh(value, renamed) for value in operation.results)
    operands = _renamed(operation.operands, renamed)
    return replace(operation, operands=operands, results=results, bodies=bodies)


def copy_body(body: Body, renamed: dict[Value, Value]) -> Body:
    """A body with values of its own throughout; `renamed` maps old values to new ones and grows."""
    parameters = tuple(_fresh(value, renamed) for value in body.parameters)
    operations = tuple(copy_operation(operation, renamed) for operation in body.operations)
    return Body(parameters, operations, _renamed(body.yields, renamed))


def _fresh(value: Value, renamed: dict[Value, Value]) -> Value:
    renamed[value] = Value(value.type, value.name)
    return renamed[value]


def _renamed(values: tuple[Value, ...], renamed: Mapping[Value, Value]) -> tuple[Value, ...]:
    return tuple(renamed.get(value, value) for value in values)
