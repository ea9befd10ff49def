"""Shared memory of a program: arrays of its own, and scratch space for what lanes tell each other."""

from dataclasses import dataclass

from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import InternalCompilerError
from codegen.llvm.context import EmissionContext
from codegen.llvm.hooks import Memory

STATIC_BYTES = 48 * 1024
"""What a kernel may declare; more has to be asked for at the launch."""

DYNAMIC_ALIGNMENT = 1024
"""What the copy engine's pattern of 128 bytes repeats after."""

_ALIGNMENT = 16
SPACE = " addrspace(3)"
CLUSTER_SPACE = " addrspace(7)"


@dataclass(eq=False)
class Scratch:
    """One of two areas that take turns, so that a fold need not wait until the one before it has been read."""

    name: str
    memory: Memory
    used_bytes: int = 0


class SharedMemory:
    """Shared memory that an emission has taken so far."""

    def __init__(self) -> None:
        self._taken = 0
        self._areas: list[Scratch] = []
        self._turn = 0

    def allocate(self, context: EmissionContext, type_: str, count: int, itemsize: int) -> str:
        """An array; returns its address."""
        name = "@" + context.module.names.fresh("shared")
        context.module.add_global(
            f"{name} = internal addrspace(3) global [{max(1, count)} x {type_}] undef, align {_ALIGNMENT}"
        )
        self._take(context, count * itemsize)
        return name

    def scratch(self, context: EmissionContext, nbytes: int) -> Scratch:
        """The area whose turn it is, with room for `nbytes`; ordered by `context.order` like any memory."""
        turn = self._turn % 2
        self._turn += 1
        if turn == len(self._areas):
            name = "@" + context.module.names.fresh("scratch")
            self._areas.append(Scratch(name, Memory(name, SPACE, dtypes.uint8, [0], [1], _ALIGNMENT, private=True)))
        area = self._areas[turn]
        area.used_bytes = max(area.used_bytes, nbytes)
        return area

    def declare(self, context: EmissionContext) -> None:
        """Write the areas, whose sizes are known only now."""
        for area in self._areas:
            context.module.add_global(
                f"{area.name} = internal addrspace(3) global [{area.used_bytes} x i8] undef, align {_ALIGNMENT}"
            )
            self._take(context, area.used_bytes)

    def _take(self, context: EmissionContext, nbytes: int) -> None:
        self._taken += -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        limit = min(STATIC_BYTES, context.target.shared_bytes)
        if self._taken > limit:
            raise InternalCompilerError(
                f"kernel {context.kernel.name}: {self._taken} bytes of shared memory, but a program has {limit}; "
                "use smaller blocks"
            )


def dynamic_base(context: EmissionContext) -> str:
    """Where the memory begins that is asked for at the launch, as an i32 address of shared memory."""
    name = "@dynamic_shared"
    text = f"{name} = external addrspace(3) global [0 x i8], align {DYNAMIC_ALIGNMENT}"
    if text not in context.module.globals:
        context.module.add_global(text)
    return context.once(f"ptrtoint ptr{SPACE} {name} to i32")


def element_address(context: EmissionContext, area: Scratch, dtype: DType, base_bytes: int, element: str) -> str:
    """Address of an i32-numbered element of an array that starts `base_bytes` into a scratch area."""
    offset = context.writer.value(f"mul i32 {element}, {dtype.itemsize}")
    shifted = context.writer.value(f"add i32 {offset}, {base_bytes}") if base_bytes else offset
    return context.writer.value(f"getelementptr i8, ptr{SPACE} {area.name}, i32 {shifted}")
