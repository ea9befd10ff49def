"""What operations do to memory, the bodies of loops and branches included."""

from codegen.ir.kernel import Body, BufferParameter, Kernel, Value
from codegen.ir.operations import Operation
from codegen.ir.types import BufferType


def has_effect(operation: Operation) -> bool:
    """Whether an operation changes memory that exists outside of it, so that it must stay even if unused.

    An operation that writes changes a buffer among its operands; one without such an operand makes the memory that it
    writes, and nobody misses that when no operation uses it.
    """
    if operation.effect == "write" and any(isinstance(value.type, BufferType) for value in operation.operands):
        return True
    return any(has_effect(inner) for body in operation.bodies for inner in body.operations)


def written_buffers(operation: Operation) -> set[Value]:
    """Buffers that an operation, or one in its bodies, writes."""
    found: set[Value] = set()
    if operation.effect == "write":
        found.update(value for value in operation.operands if isinstance(value.type, BufferType))
    for body in operation.bodies:
        for inner in body.operations:
            found |= written_buffers(inner)
    return found


def aliased_buffers(kernel: Kernel) -> frozenset[Value]:
    """Parameters whose memory may be that of another one of them."""
    return frozenset(
        parameter.value
        for parameter in kernel.parameters
        if isinstance(parameter, BufferParameter) and not parameter.restrict
    )


def count_operations(body: Body) -> int:
    """Operations of a body and of the bodies in it."""
    return sum(1 + sum(count_operations(inner) for inner in operation.bodies) for operation in body.operations)
