"""What must hold in a kernel: values are defined before they are used, types are those that operations infer, bodies end rightly."""

from codegen.errors import VerificationError
from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.printer import print_operation


def verify(kernel: Kernel) -> None:
    """Raise VerificationError, naming the operation, if `kernel` breaks a rule."""
    names = [parameter.name for parameter in kernel.parameters]
    if len(set(names)) != len(names):
        raise VerificationError(f"kernel {kernel.name}: expected parameter names to differ, found {names}")
    known = {parameter.value for parameter in kernel.parameters}
    if kernel.body.parameters or kernel.body.yields:
        raise VerificationError(f"kernel {kernel.name}: expected a body without parameters and yields")
    _verify_body(kernel.name, kernel.body, known)


def _verify_body(kernel: str, body: Body, outside: set[Value]) -> None:
    known = outside | set(body.parameters)
    for operation in body.operations:
        for operand in operation.operands:
            if operand not in known:
                raise VerificationError(f"kernel {kernel}: {operation.name} uses {operand!r} before it is defined")
        for inner in operation.bodies:
            _verify_body(kernel, inner, known)
        expected = operation.infer()
        found = tuple(value.type for value in operation.results)
        if expected != found:
            raise VerificationError(
                f"kernel {kernel}: `{print_operation(operation)}` infers {expected}, but its results are {found}"
            )
        known.update(operation.results)
    for value in body.yields:
        if value not in known:
            raise VerificationError(f"kernel {kernel}: a body yields {value!r}, which it does not define")
