"""Loops and branches."""

from math import gcd

from codegen.ir.kernel import Body, Value
from codegen.ir.operations import For, If, Operation, Scatter, Store
from codegen.llvm import spelling
from codegen.llvm.context import EmissionContext
from codegen.llvm.hooks import Memory
from codegen.llvm.writer import Phi


def emit_for(context: EmissionContext, operation: For) -> None:
    """A counted loop whose test stands at its end, behind a guard: LLVM hoists out of this form without rotating it."""
    writer = context.writer
    begin, end, *carried = operation.operands
    (body,) = operation.bodies
    index, *parameters = body.parameters
    _leave_straight_line(context, operation.bodies)
    initial = [context.fragment(value).force() for value in carried]
    first, limit = context.scalar(begin), context.scalar(end)
    turn, leave = writer.new_label("loop"), writer.new_label("done")
    guard = writer.block
    writer.branch(writer.value(f"icmp slt i64 {first}, {limit}"), turn, leave)
    writer.start(turn)
    counter = writer.phi("i64")
    counter.add(first, guard)
    context.define(index, [counter.name])
    context.facts.state(index, gcd(context.facts.divisor(begin), operation.step), context.facts.is_from_zero(begin))
    nodes = [_phis(context, value, names, guard) for value, names in zip(parameters, initial, strict=True)]
    context.order.in_loop(lambda: _emit_and_settle(context, body))
    following = [context.fragment(value).force() for value in body.yields]
    latch = writer.block
    advanced = writer.value(f"add nsw i64 {counter.name}, {operation.step}")
    counter.add(advanced, latch)
    for row, names in zip(nodes, following, strict=True):
        _arrive(row, names, latch)
    writer.branch(writer.value(f"icmp slt i64 {advanced}, {limit}"), turn, leave)
    writer.start(leave)
    for result, before, after in zip(operation.results, initial, following, strict=True):
        row = _phis(context, result, before, guard)
        _arrive(row, after, latch)


def emit_if(context: EmissionContext, operation: If) -> None:
    """One of two bodies."""
    writer = context.writer
    (condition,) = operation.operands
    _leave_straight_line(context, operation.bodies)
    chosen = context.scalar(condition)
    labels = [writer.new_label("then"), writer.new_label("otherwise")]
    join = writer.new_label("join")
    writer.branch(chosen, labels[0], labels[1])
    ends: list[tuple[str, list[list[str]]]] = []

    def branch(label: str, body: Body) -> None:
        writer.start(label)
        _emit_and_settle(context, body)
        ends.append((writer.block, [context.fragment(value).force() for value in body.yields]))
        writer.jump(join)

    first, second = operation.bodies
    context.order.in_branches(lambda: branch(labels[0], first), lambda: branch(labels[1], second))
    writer.start(join)
    for position, result in enumerate(operation.results):
        (block, yields), *others = ends
        row = _phis(context, result, yields[position], block)
        for other_block, other_yields in others:
            _arrive(row, other_yields[position], other_block)


def _emit_and_settle(context: EmissionContext, body: Body) -> None:
    context.emit_body(body)
    context.force(body.yields)


def _leave_straight_line(context: EmissionContext, bodies: tuple[Body, ...]) -> None:
    """Emit here what the bodies will need, and loads that must not come to stand behind a store of theirs."""
    context.force_for_bodies(bodies)
    context.order.settle(_written_outside(context, bodies))


def _written_outside(context: EmissionContext, bodies: tuple[Body, ...]) -> list[Memory]:
    """Memory that bodies write and that existed before them."""
    found = []
    for body in bodies:
        for operation in body.operations:
            if _writes(operation) and isinstance(context.values.get(operation.operands[0]), Memory):
                found.append(context.memory(operation.operands[0]))
            found += _written_outside(context, operation.bodies)
    return found


def _writes(operation: Operation) -> bool:
    return isinstance(operation, (Store, Scatter))


def _phis(context: EmissionContext, value: Value, names: list[str], block: str) -> list[Phi]:
    """Define `value` by phi nodes, one for each register, with the registers that arrive from one block."""
    distribution = context.distribution(value.block.shape)
    type_ = spelling.register_type(value.block.dtype, distribution.width)
    nodes = [context.writer.phi(type_) for _ in names]
    context.define(value, [node.name for node in nodes])
    _arrive(nodes, names, block)
    return nodes


def _arrive(nodes: list[Phi], names: list[str], block: str) -> None:
    for node, name in zip(nodes, names, strict=True):
        node.add(name, block)
