"""What the entry functions of all targets share: buffers from parameters, and program numbers from the grid."""

from codegen.ir.kernel import BufferParameter, GridAxis
from codegen.llvm.context import EmissionContext
from codegen.llvm.hooks import Memory
from codegen.llvm.index import Index, multiply


def slot_count(buffer: BufferParameter) -> int:
    """Slots that a buffer takes: the pointer, and each stride that is known only at run time."""
    return 1 + sum(stride is None for stride in buffer.type.strides)


def buffer_memory(
    context: EmissionContext, buffer: BufferParameter, pointer: str, space: str, strides: list[str]
) -> Memory:
    """The memory of a buffer parameter; `strides` are the run-time ones, in order."""
    remaining = iter(strides)
    return Memory(
        pointer=pointer,
        space=space,
        dtype=buffer.type.dtype,
        extents=[extent_of(context, extent) for extent in buffer.type.extents],
        strides=[next(remaining) if stride is None else stride for stride in buffer.type.strides],
        alignment=buffer.type.alignment,
        streamed=buffer.streamed,
        constant=buffer.restrict and not buffer.written,
        restrict=buffer.restrict,
    )


def extent_of(context: EmissionContext, extent: str | int) -> Index:
    """An extent as a number or the register of its index parameter."""
    if isinstance(extent, int):
        return extent
    return context.scalar(context.kernel.parameter(extent).value)


def programs_along(context: EmissionContext, axis: GridAxis) -> Index:
    """Programs along a grid axis: the extent divided by the block, rounded up."""
    extent = extent_of(context, axis.extent)
    if isinstance(extent, int):
        return -(-extent // axis.block)
    if axis.block == 1:
        return extent
    raised = context.writer.value(f"add nsw i64 {extent}, {axis.block - 1}")
    return context.writer.value(f"sdiv i64 {raised}, {axis.block}")


def all_programs(context: EmissionContext, counts: list[Index]) -> Index:
    """Programs of the whole grid."""
    total: Index = 1
    for count in counts:
        total = multiply(context.writer, total, count)
    return total


def split_program(context: EmissionContext, program: str, counts: list[Index]) -> list[str]:
    """The numbers along the grid axes of a linear program number; the last axis varies fastest."""
    numbers: list[str] = []
    rest = program
    for count in reversed(counts[1:]):
        numbers.append(context.writer.value(f"urem i64 {rest}, {count}"))
        rest = context.writer.value(f"udiv i64 {rest}, {count}")
    if counts:
        numbers.append(rest)
    return numbers[::-1]


def state_alias_scopes(context: EmissionContext, memories: list[Memory]) -> None:
    """Tell LLVM which buffers overlap no other: each gets a scope; accesses name the scopes that they are not in."""
    alone = [memory for memory in memories if memory.restrict]
    if len(memories) < 2 or not alone:
        return
    domain = context.module.metadata("!{{self}}")
    scopes = {memory: context.module.metadata(f"!{{{{self}}, {domain}}}") for memory in alone}
    for memory in memories:
        others = ", ".join(scope for other, scope in scopes.items() if other is not memory)
        notes = ""
        if memory in scopes:
            own = context.module.metadata(f"!{{{scopes[memory]}}}")
            notes += f", !alias.scope {own}"
        if others:
            notes += f", !noalias {context.module.metadata(f'!{{{others}}}')}"
        memory.load_notes += notes
        memory.store_notes += notes
