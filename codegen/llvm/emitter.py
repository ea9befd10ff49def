"""From a kernel to the text of an LLVM module, for every target."""

from collections.abc import Callable, Mapping
from typing import Any

from codegen.errors import InternalCompilerError
from codegen.ir.kernel import Kernel
from codegen.ir.operations import (
    Allocate,
    Broadcast,
    Cast,
    Constant,
    Dot,
    DotLoop,
    For,
    Gather,
    If,
    Iota,
    Load,
    Map,
    Operation,
    ProgramIndex,
    Reduce,
    Reshape,
    Scan,
    Scatter,
    Store,
)
from codegen.llvm.context import EmissionContext
from codegen.llvm.control import emit_for, emit_if
from codegen.llvm.elementwise import (
    emit_broadcast,
    emit_cast,
    emit_constant,
    emit_iota,
    emit_map,
    emit_program_index,
    emit_reshape,
)
from codegen.llvm.hooks import Emission
from codegen.llvm.memory import emit_allocate, emit_load, emit_store
from codegen.llvm.positions import emit_gather, emit_scatter
from codegen.llvm.products import emit_dot, emit_dot_loop
from codegen.llvm.reductions import emit_reduce, emit_scan
from codegen.target import Target

# An emitter takes the operation class that it stands for, which a mapping of classes to callables cannot say.
EMITTERS: Mapping[type[Operation], Callable[[EmissionContext, Any], None]] = {
    Constant: emit_constant,
    Iota: emit_iota,
    Cast: emit_cast,
    Map: emit_map,
    Broadcast: emit_broadcast,
    Reshape: emit_reshape,
    Reduce: emit_reduce,
    Scan: emit_scan,
    Dot: emit_dot,
    DotLoop: emit_dot_loop,
    Gather: emit_gather,
    Scatter: emit_scatter,
    Load: emit_load,
    Store: emit_store,
    Allocate: emit_allocate,
    ProgramIndex: emit_program_index,
    For: emit_for,
    If: emit_if,
}


def emit(kernel: Kernel, target: Target, hooks: Emission) -> str:
    """The LLVM module of a kernel, as text.

    Parameters
    ----------
    kernel : Kernel
        Verified, in block or distributed form.
    target : Target
    hooks : Emission
        Of the same target.

    Returns
    -------
    str
        A module with one external function, called as the kernel is.
    """
    context = EmissionContext(kernel, target, hooks)

    def emit_operation(operation: Operation) -> None:
        emitter = EMITTERS.get(type(operation))
        if emitter is None:
            raise InternalCompilerError(f"emitter: no way to emit `{operation.name}` is known")
        emitter(context, operation)

    context.emit_operation = emit_operation
    hooks.begin(context)
    context.emit_body(kernel.body)
    hooks.finish(context)
    return context.module.text()
