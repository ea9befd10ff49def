"""The state of one emission, handed to everything that emits."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from codegen.errors import InternalCompilerError
from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.operations import Cast, Constant, Map, Operation
from codegen.llvm import spelling
from codegen.llvm.core import RegisterCore
from codegen.llvm.fragments import Distribution, Fragment, distribute
from codegen.llvm.functions import Functions
from codegen.llvm.hooks import Emission, Memory
from codegen.llvm.index import IndexFacts
from codegen.llvm.ordering import MemoryOrder
from codegen.llvm.writer import FunctionWriter, ModuleWriter
from codegen.target import Target

# Registers are made on demand, through as many Python calls as a chain of operations is long.
_LONGEST_CHAIN = 32


class EmissionContext:
    """What is known while a kernel is emitted.

    Attributes
    ----------
    kernel : Kernel
    target : Target
    hooks : Emission
    module : ModuleWriter
    functions : Functions
    writer : FunctionWriter
        Of the entry function; set by ``hooks.begin``.
    core : RegisterCore
    values : dict
        Fragment or Memory of each IR value.
    programs : list of str
        Program number along each grid axis.
    facts : IndexFacts
    order : MemoryOrder
    threads : int
        Lanes that are launched: those of the kernel's layout, and perhaps some that only move data.
    entry : object
        What the target's hooks keep between ``begin`` and ``finish``.
    emit_operation : callable
        Emits an operation; the bodies of loops and branches go through it.
    """

    writer: FunctionWriter
    core: RegisterCore

    def __init__(self, kernel: Kernel, target: Target, hooks: Emission) -> None:
        self.kernel = kernel
        self.target = target
        self.hooks = hooks
        self.module = ModuleWriter(target.triple, hooks.attributes(target))
        self.functions = Functions(self.module, target)
        self.values: dict[Value, Fragment | Memory] = {}
        self.programs: list[str] = []
        self.facts = IndexFacts()
        self.order = MemoryOrder()
        self.emit_operation: Callable[[Operation], None] = _not_ready
        self.threads = kernel.layout.lane_count
        self.entry: object = None
        self._layout = replace(kernel.layout, register=hooks.register_elements(kernel, target))
        self._depth: dict[Value, int] = {}
        self._once: dict[str, str] = {}
        self._emitted_on_entry: set[Value] = set()
        self._streaming_note = ""
        self._distributions: dict[tuple[int, ...], Distribution] = {}

    def open_function(self, header: str) -> None:
        """Start writing the entry function."""
        self.writer = FunctionWriter(header, self.module.names)
        self.core = RegisterCore(self.writer, self.functions)

    def once(self, text: str) -> str:
        """The result of an instruction on entry, shared by all who ask for the same text."""
        name = self._once.get(text)
        if name is None:
            name = self._once[text] = self.writer.on_entry(text)
        return name

    def spare(self, type_: str, count: int, alignment: int) -> str:
        """Memory on the stack that nobody reads for its content: where accesses go that must not happen."""
        key = f"{count} spare {type_}"
        name = self._once.get(key)
        if name is None:
            name = self._once[key] = self.writer.stack(type_, count, alignment)
        return name

    def streaming_note(self) -> str:
        """The metadata that stores past the caches refer to."""
        if not self._streaming_note:
            self._streaming_note = self.module.metadata("!{i32 1}")
        return self._streaming_note

    def splat(self, element: str, name: str, width: int) -> str:
        """A register with one element everywhere."""
        if width == 1:
            return name
        if not name.startswith("%"):
            return spelling.splat(element, name, width)
        vector = spelling.vector(element, width)
        single = self.writer.value(f"insertelement {vector} poison, {element} {name}, i64 0")
        return self.writer.value(f"shufflevector {vector} {single}, {vector} poison, <{width} x i32> zeroinitializer")

    def distribution(self, shape: tuple[int, ...]) -> Distribution:
        """How a block of this shape lies in lanes and registers."""
        found = self._distributions.get(shape)
        if found is None:
            found = self._distributions[shape] = distribute(shape, self._layout)
        return found

    def fragment(self, value: Value) -> Fragment:
        """The registers of a block value."""
        found = self.values.get(value)
        if not isinstance(found, Fragment):
            raise InternalCompilerError(f"emitter: {value!r} is used before it is defined, or is no block")
        return found

    def memory(self, value: Value) -> Memory:
        """The memory of a buffer value."""
        found = self.values.get(value)
        if not isinstance(found, Memory):
            raise InternalCompilerError(f"emitter: {value!r} is used before it is defined, or is no buffer")
        return found

    def scalar(self, value: Value) -> str:
        """The register of a scalar value."""
        return self.fragment(value).register(0)

    def define(self, value: Value, names: list[str]) -> Fragment:
        """State the registers of a result."""
        fragment = Fragment(value.block, self.distribution(value.block.shape), names)
        self.values[value] = fragment
        return fragment

    def define_lazily(self, value: Value, operands: Iterable[Value], make: Callable[[int], str]) -> Fragment:
        """State how registers of a result are made from `operands` when they are needed; at once for a scalar."""
        fragment = Fragment(value.block, self.distribution(value.block.shape), None, make)
        self.values[value] = fragment
        depth = 1 + max((self._depth.get(operand, 0) for operand in operands), default=0)
        if not value.block.shape or depth > _LONGEST_CHAIN:
            fragment.force()
            depth = 0
        self._depth[value] = depth
        return fragment

    def force(self, values: Iterable[Value]) -> None:
        """Emit what is outstanding of these values here, because later code may not be reached through here."""
        for value in values:
            found = self.values.get(value)
            if isinstance(found, Fragment):
                found.force()
                self._depth[value] = 0

    def force_for_bodies(self, bodies: Iterable[Body]) -> None:
        """Emit all outer values that bodies use."""
        for body in bodies:
            self.force(body.yields)
            for operation in body.operations:
                self.force(operation.operands)
                self.force_for_bodies(operation.bodies)

    def emit_body(self, body: Body) -> None:
        """Emit a body's operations, but for those that were emitted on entry."""
        for operation in body.operations:
            if not (operation.results and operation.results[0] in self._emitted_on_entry):
                self.emit_operation(operation)

    def emit_scalars_on_entry(self) -> None:
        """Emit here what the kernel computes of its scalar parameters alone: it is the same for all programs."""
        for operation in self.kernel.body.operations:
            is_scalar = isinstance(operation, (Constant, Cast, Map)) and not operation.results[0].block.shape
            if is_scalar and all(operand in self.values for operand in operation.operands):
                self.emit_operation(operation)
                self._emitted_on_entry.update(operation.results)


def _not_ready(operation: Operation) -> None:
    raise InternalCompilerError(f"emitter: {operation.name} before the emission began")
