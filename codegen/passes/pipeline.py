"""The passes in order."""

from codegen.ir.kernel import Kernel
from codegen.target import Target


def run(kernel: Kernel, target: Target) -> Kernel:
    """The kernel after all passes."""
    return kernel
