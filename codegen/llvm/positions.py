"""Gather and scatter: elements at computed positions, one by one."""

from codegen.ir.kernel import Value
from codegen.ir.operations import Gather, Scatter
from codegen.llvm import spelling
from codegen.llvm.context import EmissionContext
from codegen.llvm.fragments import Fragment
from codegen.llvm.hooks import Access, Memory


class _Positions:
    """The elements that one register of every index block points at."""

    def __init__(
        self, context: EmissionContext, memory: Memory, indices: tuple[Value, ...], number: int, checked: bool
    ) -> None:
        self._context = context
        self._memory = memory
        self._width = context.distribution(indices[0].block.shape).width
        self._type = spelling.vector("i64", self._width)
        self._elements = ""
        self._inside = ""
        for axis, index in enumerate(indices):
            self._add(axis, context.fragment(index).register(number), checked)

    def _add(self, axis: int, name: str, checked: bool) -> None:
        writer = self._context.writer
        stride = self._context.splat("i64", str(self._memory.strides[axis]), self._width)
        elements = writer.value(f"mul {self._type} {name}, {stride}")
        self._elements = writer.value(f"add {self._type} {self._elements}, {elements}") if self._elements else elements
        if not checked:
            return
        extent = self._context.splat("i64", str(self._memory.extents[axis]), self._width)
        inside = writer.value(f"icmp ult {self._type} {name}, {extent}")
        mask_type = spelling.vector("i1", self._width)
        self._inside = writer.value(f"and {mask_type} {self._inside}, {inside}") if self._inside else inside

    def access(self, position: int) -> Access:
        """The element that one position of the registers points at."""
        writer, memory = self._context.writer, self._memory
        element = self._one(self._type, self._elements, position)
        type_ = spelling.memory_type(memory.dtype)
        pointer = writer.value(f"getelementptr {type_}, ptr{memory.space} {memory.pointer}, i64 {element}")
        inside = self._one(spelling.vector("i1", self._width), self._inside, position) if self._inside else None
        return Access(memory, pointer, 1, 1, memory.dtype.itemsize, inside)

    def _one(self, type_: str, name: str, position: int) -> str:
        if self._width == 1:
            return name
        return self._context.writer.value(f"extractelement {type_} {name}, i64 {position}")


def emit_gather(context: EmissionContext, operation: Gather) -> None:
    """Elements at computed positions into registers."""
    buffer, *indices = operation.operands
    memory = context.memory(buffer)
    distribution = context.distribution(operation.result.block.shape)
    width = distribution.width
    element = spelling.element_type(memory.dtype)
    context.order.before_read(memory, operation)

    def make(number: int) -> str:
        positions = _Positions(context, memory, tuple(indices), number, operation.checked)
        if width == 1:
            return context.hooks.load(context, positions.access(0), operation.fill)[0]
        register = "poison"
        for position in range(width):
            (name,) = context.hooks.load(context, positions.access(position), operation.fill)
            register = context.writer.value(
                f"insertelement {spelling.vector(element, width)} {register}, {element} {name}, i64 {position}"
            )
        return register

    fragment = Fragment(operation.result.block, distribution, None, make)
    context.values[operation.result] = fragment
    if context.hooks.loads_early(context, memory) or not operation.result.block.shape:
        fragment.force()
    else:
        context.order.wait(memory, fragment)


def emit_scatter(context: EmissionContext, operation: Scatter) -> None:
    """Registers to computed positions."""
    buffer, *indices, value = operation.operands
    memory = context.memory(buffer)
    fragment = context.fragment(value)
    distribution = fragment.distribution
    element = spelling.element_type(memory.dtype)
    vector = spelling.vector(element, distribution.width)
    context.order.before_write(memory, operation)
    owner = context.hooks.owner(context, distribution.axes)
    for number in range(distribution.registers):
        register = fragment.register(number)
        positions = _Positions(context, memory, tuple(indices), number, checked=True)
        for position in range(distribution.width):
            single = register
            if distribution.width > 1:
                single = context.writer.value(f"extractelement {vector} {register}, i64 {position}")
            context.hooks.store(context, positions.access(position), [single], owner)
