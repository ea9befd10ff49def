"""Move what every turn of a loop computes alike in front of the loop.

::

    for %0, %n step=64 (%i: int64) {              %2 = broadcast %mean shape=(64)
      %2 = broadcast %mean shape=(64)       ->    for %0, %n step=64 (%i: int64) {
      …                                             …
"""

from dataclasses import replace

from codegen.analysis.effects import aliased_buffers, written_buffers
from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.operations import For, Gather, Load, Operation


def hoist_loop_invariants(kernel: Kernel) -> Kernel:
    """The kernel with operations outside of the loops that they do not depend on."""
    written: set[Value] = set()
    for operation in kernel.body.operations:
        written |= written_buffers(operation)
    aliased = aliased_buffers(kernel)
    if not written.isdisjoint(aliased):
        written |= aliased
    operations = _hoisted(kernel.body.operations, frozenset(written))
    return kernel if operations == kernel.body.operations else replace(kernel, body=Body((), operations))


def _hoisted(operations: tuple[Operation, ...], written: frozenset[Value]) -> tuple[Operation, ...]:
    """The operations with those that loops among them can do without in front of the loops."""
    result: list[Operation] = []
    for operation in operations:
        if not operation.bodies:
            result.append(operation)
            continue
        bodies = tuple(_hoisted_body(body, written) for body in operation.bodies)
        if isinstance(operation, For):
            before, inside = _split(bodies[0], written)
            result += before
            bodies = (inside,)
        same = all(new is old for new, old in zip(bodies, operation.bodies, strict=True))
        result.append(operation if same else replace(operation, bodies=bodies))
    return tuple(result)


def _hoisted_body(body: Body, written: frozenset[Value]) -> Body:
    operations = _hoisted(body.operations, written)
    return body if operations == body.operations else Body(body.parameters, operations, body.yields)


def _split(body: Body, written: frozenset[Value]) -> tuple[list[Operation], Body]:
    """Operations of a loop's body that can stand before it, and the body without them."""
    varying = set(body.parameters)
    before: list[Operation] = []
    inside: list[Operation] = []
    for operation in body.operations:
        if varying.isdisjoint(operation.operands) and _may_move(operation, written):
            before.append(operation)
        else:
            inside.append(operation)
            varying.update(operation.results)
    return (before, Body(body.parameters, tuple(inside), body.yields)) if before else ([], body)


def _may_move(operation: Operation, written: frozenset[Value]) -> bool:
    """Whether an operation may run though the loop has no turn, and gives the same at any time.

    A window that is not checked is inside of its buffer in a turn; where there is none, nobody says so.
    """
    if operation.bodies or operation.effect == "write":
        return False
    if operation.effect == "none":
        return True
    if operation.operands[0] in written:
        return False
    if isinstance(operation, Load):
        return all(operation.checked)
    return isinstance(operation, Gather) and operation.checked
