"""Drop operations whose results nobody uses and that change no memory, and carried values that only carry themselves."""

from dataclasses import replace

from codegen.analysis.effects import has_effect
from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.operations import For, If, Operation


def remove_dead_code(kernel: Kernel) -> Kernel:
    """The kernel without what has no effect."""
    used: set[Value] = set()
    operations = _live(kernel.body.operations, used)
    if operations == kernel.body.operations:
        return kernel
    return replace(kernel, body=Body((), operations))


def _live(operations: tuple[Operation, ...], used: set[Value]) -> tuple[Operation, ...]:
    """The operations that are needed for the values in `used`, which grows by the operands of those."""
    kept: list[Operation] = []
    for operation in reversed(operations):
        if not has_effect(operation) and used.isdisjoint(operation.results):
            continue
        if isinstance(operation, For):
            operation = _live_loop(operation, used)
        elif isinstance(operation, If):
            operation = _live_branch(operation, used)
        used.update(operation.operands)
        kept.append(operation)
    kept.reverse()
    return tuple(kept)


def _live_loop(loop: For, used: set[Value]) -> For:
    """The loop with those carried values that a result, an effect or another of them needs."""
    (body,) = loop.bodies
    carried = body.parameters[1:]
    live = {position for position, value in enumerate(loop.results) if value in used}
    while True:
        inside = {body.yields[position] for position in live}
        operations = _live(body.operations, inside)
        needed = live | {position for position, value in enumerate(carried) if value in inside}
        if needed == live:
            break
        live = needed
    used |= inside
    if len(live) == len(carried) and operations == body.operations:
        return loop
    order = sorted(live)
    new_body = Body(
        (body.parameters[0], *(carried[position] for position in order)),
        operations,
        tuple(body.yields[position] for position in order),
    )
    return replace(
        loop,
        operands=(*loop.operands[:2], *(loop.operands[2 + position] for position in order)),
        results=tuple(loop.results[position] for position in order),
        bodies=(new_body,),
    )


def _live_branch(branch: If, used: set[Value]) -> If:
    """The branch with the results that are needed."""
    order = [position for position, value in enumerate(branch.results) if value in used]
    bodies = []
    for body in branch.bodies:
        yields = tuple(body.yields[position] for position in order)
        inside = set(yields)
        operations = _live(body.operations, inside)
        used |= inside
        same = operations == body.operations and len(order) == len(body.yields)
        bodies.append(body if same else Body((), operations, yields))
    if all(new is old for new, old in zip(bodies, branch.bodies, strict=True)):
        return branch
    return replace(branch, results=tuple(branch.results[position] for position in order), bodies=tuple(bodies))
