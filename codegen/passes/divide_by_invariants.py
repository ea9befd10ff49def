"""Divide many integers by one number through its inverse, which is computed once.

::

    %d = broadcast %divisor shape=(64)           %m = division_multiplier %divisor
    %q = floor_divide %x, %d                ->   %s = division_shift %divisor
                                                 %d = broadcast %divisor shape=(64)
                                                 %q = floor_divide_by %x, %d, (broadcasts of %m and %s)
"""

from codegen.ir.kernel import Kernel, Value
from codegen.ir.operations import Broadcast, Map, Operation
from codegen.ir.rewriter import Rewriter
from codegen.target import Target

DIVISIONS = frozenset(("floor_divide", "remainder", "fmod", "truncated_divide"))
"""Rows for which there is one with ``_by`` behind its name, which takes the inverse too."""


def divide_by_invariants(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with divisions by scalars of the launch replaced.

    The inverse takes as long as some tens of divisions: it pays where one thread divides many elements, as on a host.
    """
    return kernel if target.lanes > 1 else Rewriter(_divide).rewrite(kernel)


def _divide(rewriter: Rewriter, operation: Operation) -> tuple[Value, ...] | None:
    """``floor_divide(x, broadcast d) -> floor_divide_by(x, broadcast d, inverse of d)``."""
    if not isinstance(operation, Map) or operation.function not in DIVISIONS:
        return None
    x, divisor = operation.operands
    origin = rewriter.definition(divisor)
    if x.block.dtype.kind == "float" or not isinstance(origin, Broadcast):
        return None
    (scalar,) = origin.operands
    if scalar.block.shape:
        return None
    inverse = [
        rewriter.broadcast(rewriter.map(name, scalar), x.block.shape)
        for name in ("division_multiplier", "division_shift")
    ]
    return (rewriter.map(f"{operation.function}_by", x, divisor, *inverse),)
