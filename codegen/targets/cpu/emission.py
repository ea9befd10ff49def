"""Emission hooks of the host: one lane, vector registers, a loop over programs."""

from collections.abc import Iterator

from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import InternalCompilerError
from codegen.ir.kernel import Body, BufferParameter, IndexParameter, Kernel, Parameter, ScalarParameter, Value
from codegen.ir.operations import DotLoop
from codegen.ir.types import BlockType
from codegen.llvm import spelling
from codegen.llvm.context import EmissionContext
from codegen.llvm.entry import (
    buffer_memory,
    programs_along,
    slot_count,
    split_program,
    state_alias_scopes,
)
from codegen.llvm.fragments import AxisSplit
from codegen.llvm.hooks import Access, Combine, Emission, Memory, Partial
from codegen.llvm.index import Index, add, multiply
from codegen.llvm.writer import Phi
from codegen.target import Target
from codegen.targets.cpu.panel_products import emit_panel_product

_STACK_ALIGNMENT = 64
LINE_BYTES = 64
"""Of a cache: less than a line past the caches would be written at once, each time."""
_MACHINE_REGISTERS = 4


class _ProgramLoop:
    """The loop over programs while it is open."""

    def __init__(self, counts: list[Index], linear: Phi, numbers: list[Phi], body: str, leave: str) -> None:
        self.counts = counts
        self.linear = linear
        self.numbers = numbers
        self.body = body
        self.leave = leave


class HostEmission(Emission):
    """A kernel becomes ``void NAME(int64_t *slots, int64_t begin, int64_t end)``."""

    def register_elements(self, kernel: Kernel, target: Target) -> int:
        """Several machine registers as one, which LLVM takes apart again, instruction by instruction.

        So neighbouring instructions do not wait for each other. On chains of some hundred dependent instructions
        (exponential, logarithm and what lies between) 4 were 1.4 to 1.6 times as fast as 1, with 32 and with 16
        registers; on short chains it makes no difference.
        """
        widest = max((value.block.dtype.bits for value in _blocks(kernel.body)), default=8)
        together = _MACHINE_REGISTERS * target.register_bits // widest
        return max(kernel.layout.register, min(_MACHINE_REGISTERS * kernel.layout.register, together))

    def attributes(self, target: Target) -> str:
        """The processor; full vector width stays legal where LLVM would by itself prefer half of it."""
        return (
            f'nounwind "target-cpu"="{target.cpu}" "target-features"="{target.features}" '
            f'"prefer-vector-width"="{target.register_bits}" "min-legal-vector-width"="{target.register_bits}"'
        )

    def begin(self, context: EmissionContext) -> None:
        """Read the slots, then start the loop over programs."""
        context.open_function(f"define void @{context.kernel.name}(ptr %slots, i64 %begin, i64 %end) #0")
        slot = 0
        for parameter in context.kernel.parameters:
            if not isinstance(parameter, BufferParameter):
                self._read_number(context, parameter, slot)
            slot += slot_count(parameter) if isinstance(parameter, BufferParameter) else 1
        self._read_buffers(context)
        writer = context.writer
        setup, body, leave = (writer.new_label(name) for name in ("setup", "program", "finished"))
        writer.branch(writer.value("icmp slt i64 %begin, %end"), setup, leave)
        writer.start(setup)
        counts = [programs_along(context, axis) for axis in context.kernel.grid]
        starts = split_program(context, "%begin", counts)
        context.emit_scalars_on_entry()
        before = writer.block
        writer.jump(body)
        writer.start(body)
        linear = writer.phi("i64")
        linear.add("%begin", before)
        numbers = []
        if len(counts) > 1:
            numbers = [writer.phi("i64") for _ in counts]
            for number, start in zip(numbers, starts, strict=True):
                number.add(start, before)
        context.programs = [number.name for number in numbers] or [linear.name]
        context.entry = _ProgramLoop(counts, linear, numbers, body, leave)

    def finish(self, context: EmissionContext) -> None:
        """Go to the next program, or return."""
        writer = context.writer
        loop = context.entry
        if not isinstance(loop, _ProgramLoop):
            raise InternalCompilerError("emitter: the loop over programs was not opened")
        carry = "1"
        advanced: list[str] = []
        for number, count in reversed(list(zip(loop.numbers, loop.counts, strict=False))[1:]):
            raised = writer.value(f"add nsw i64 {number.name}, {carry}")
            wraps = writer.value(f"icmp eq i64 {raised}, {count}")
            advanced.append(writer.value(f"select i1 {wraps}, i64 0, i64 {raised}"))
            carry = writer.value(f"zext i1 {wraps} to i64")
        if loop.numbers:
            advanced.append(writer.value(f"add nsw i64 {loop.numbers[0].name}, {carry}"))
        following = writer.value(f"add nsw i64 {loop.linear.name}, 1")
        loop.linear.add(following, writer.block)
        for number, name in zip(loop.numbers, reversed(advanced), strict=True):
            number.add(name, writer.block)
        writer.branch(writer.value(f"icmp slt i64 {following}, %end"), loop.body, loop.leave)
        writer.start(loop.leave)
        writer.line("ret void")
        context.module.add_function(writer.text())

    def _read_number(self, context: EmissionContext, parameter: Parameter, slot: int) -> None:
        pointer = _slot(context, slot)
        writer = context.writer
        if isinstance(parameter, IndexParameter):
            context.define(parameter.value, [writer.value(f"load i64, ptr {pointer}, align 8")])
            context.facts.state(parameter.value, parameter.divisible, from_zero=True)
            return
        if not isinstance(parameter, ScalarParameter):
            raise InternalCompilerError(f"emitter: parameter {parameter.name} has no known kind")
        type_ = spelling.memory_type(parameter.dtype)
        name = writer.value(f"load {type_}, ptr {pointer}, align 8")
        context.define(parameter.value, [_to_register(context, parameter.dtype, name, 1)])

    def _read_buffers(self, context: EmissionContext) -> None:
        slot = 0
        memories = []
        for parameter in context.kernel.parameters:
            if isinstance(parameter, BufferParameter):
                names = [
                    context.writer.value(f"load {type_}, ptr {_slot(context, slot + position)}, align 8")
                    for position, type_ in enumerate(["ptr"] + ["i64"] * (slot_count(parameter) - 1))
                ]
                memory = buffer_memory(context, parameter, names[0], "", names[1:])
                context.values[parameter.value] = memory
                memories.append(memory)
            slot += slot_count(parameter) if isinstance(parameter, BufferParameter) else 1
        state_alias_scopes(context, memories)

    def lane(self, context: EmissionContext, axis: AxisSplit) -> Index:
        """The only one."""
        return 0

    def owner(self, context: EmissionContext, axes: tuple[AxisSplit, ...]) -> str | None:
        """The only lane stores everything."""
        return None

    def accesses_per_load(self, memory: Memory, run: int, alignment: int) -> int:
        """One register for each access."""
        return 1

    def reduce_lanes(
        self, context: EmissionContext, axis: AxisSplit, partials: list[Partial], combine: Combine
    ) -> list[Partial]:
        """Nothing to fold: layouts of the host have one lane."""
        raise InternalCompilerError(f"layout: {axis.all_lanes} lanes along an axis on the host; expected 1")

    def scan_lanes(
        self, context: EmissionContext, axis: AxisSplit, partials: list[Partial], combine: Combine
    ) -> tuple[list[Partial], list[Partial]]:
        """Nothing to scan: layouts of the host have one lane."""
        raise InternalCompilerError(f"layout: {axis.all_lanes} lanes along an axis on the host; expected 1")

    def allocate(self, context: EmissionContext, dtype: DType, count: int) -> tuple[str, str]:
        """An array on the stack."""
        return context.writer.stack(spelling.memory_type(dtype), max(1, count), _STACK_ALIGNMENT), ""

    def multiply_windows(self, context: EmissionContext, product: DotLoop) -> None:
        """By registers over panels."""
        emit_panel_product(context, product)

    def barrier(self, context: EmissionContext) -> None:
        """One lane waits for nobody."""

    def load(self, context: EmissionContext, access: Access, fill: bool | int | float) -> list[str]:
        """One register."""
        if access.is_whole:
            return [_load_whole(context, access.memory, access.pointer, access.count, access.stride, access.alignment)]
        if access.last is None:
            return [_load_all_or_none(context, access, fill)]
        if access.stride == 1 and _has_masks(context.target, access.memory.dtype):
            return [_load_masked(context, access, fill)]
        if access.stride == 0:
            return [_load_repeated(context, access, fill)]
        return [_load_by_loop(context, access, fill)]

    def store(self, context: EmissionContext, access: Access, registers: list[str], owner: str | None) -> None:
        """One register."""
        (register,) = registers
        value = _to_memory(context, access.memory.dtype, register, access.count)
        if access.last is None:
            _store_all_or_none(context, access, value)
        elif access.stride == 1 and _has_masks(context.target, access.memory.dtype):
            _store_masked(context, access, value)
        else:
            _store_by_loop(context, access, value)


def _blocks(body: Body) -> Iterator[Value]:
    """Blocks with axes that a body computes."""
    for operation in body.operations:
        for value in operation.results:
            if isinstance(value.type, BlockType) and value.type.shape:
                yield value
        for inner in operation.bodies:
            yield from _blocks(inner)


def _slot(context: EmissionContext, slot: int) -> str:
    return context.writer.value(f"getelementptr i64, ptr %slots, i64 {slot}")


def _to_register(context: EmissionContext, dtype: DType, name: str, width: int) -> str:
    """A loaded value as it is in registers: booleans are bytes in memory, any byte but 0 is true."""
    if dtype is not dtypes.boolean:
        return name
    return context.writer.value(f"icmp ne {spelling.vector('i8', width)} {name}, {spelling.splat('i8', '0', width)}")


def _to_memory(context: EmissionContext, dtype: DType, name: str, width: int) -> str:
    if dtype is not dtypes.boolean:
        return name
    return context.writer.value(f"zext {spelling.vector('i1', width)} {name} to {spelling.vector('i8', width)}")


def _has_masks(target: Target, dtype: DType) -> bool:
    """Whether the processor loads and stores vectors of such elements under a mask."""
    features = target.features.split(",")
    if dtype.bits >= 32:
        return "+avx2" in features or "+avx512f" in features
    return "+avx512bw" in features


def _element(context: EmissionContext, memory: Memory, pointer: str, elements: Index) -> str:
    if elements == 0:
        return pointer
    return context.writer.value(f"getelementptr {spelling.memory_type(memory.dtype)}, ptr {pointer}, i64 {elements}")


def _strided(context: EmissionContext, memory: Memory, pointer: str, count: int, stride: Index) -> list[str]:
    """Addresses of elements that are no neighbours: from every fourth one, the next three by common offsets."""
    steps = [multiply(context.writer, stride, position) for position in range(min(5, count))]
    addresses: list[str] = []
    for position in range(count):
        if position and position % 4 == 0:
            pointer = _element(context, memory, pointer, steps[4])
        addresses.append(_element(context, memory, pointer, steps[position % 4]))
    return addresses


def _load_whole(
    context: EmissionContext, memory: Memory, pointer: str, count: int, stride: Index, alignment: int
) -> str:
    """All elements exist."""
    writer = context.writer
    element = spelling.memory_type(memory.dtype)
    type_ = spelling.vector(element, count)
    notes = memory.load_notes
    itemsize = memory.dtype.itemsize
    if count == 1 or stride == 1:
        name = writer.value(f"load {type_}, ptr {pointer}, align {alignment}{notes}")
    elif stride == 0:
        single = writer.value(f"load {element}, ptr {pointer}, align {itemsize}{notes}")
        name = context.splat(element, single, count)
    elif stride == -1:
        lowest = _element(context, memory, pointer, 1 - count)
        forwards = writer.value(f"load {type_}, ptr {lowest}, align {itemsize}{notes}")
        name = _reversed(context, type_, forwards, count)
    else:
        name = "poison"
        for position, address in enumerate(_strided(context, memory, pointer, count, stride)):
            single = writer.value(f"load {element}, ptr {address}, align {itemsize}{notes}")
            name = writer.value(f"insertelement {type_} {name}, {element} {single}, i64 {position}")
    return _to_register(context, memory.dtype, name, count)


def _reversed(context: EmissionContext, type_: str, name: str, count: int) -> str:
    mask = spelling.shuffle_mask(list(reversed(range(count))))
    return context.writer.value(f"shufflevector {type_} {name}, {type_} poison, {mask}")


def _spare(context: EmissionContext, access: Access) -> str:
    """Memory that an access which must not happen is sent to."""
    return context.spare(spelling.memory_type(access.memory.dtype), access.count, _STACK_ALIGNMENT)


def _load_all_or_none(context: EmissionContext, access: Access, fill: bool | int | float) -> str:
    writer, dtype = context.writer, access.memory.dtype
    pointer = writer.value(f"select i1 {access.inside}, ptr {access.pointer}, ptr {_spare(context, access)}")
    stride: Index = access.stride
    if access.count > 1 and stride not in (0, 1):
        stride = writer.value(f"select i1 {access.inside}, i64 {stride}, i64 0")
    loaded = _load_whole(context, access.memory, pointer, access.count, stride, dtype.itemsize)
    type_ = spelling.register_type(dtype, access.count)
    literal = spelling.literal(dtype, fill, access.count)
    return writer.value(f"select i1 {access.inside}, {type_} {loaded}, {type_} {literal}")


def _clamped(context: EmissionContext, access: Access) -> tuple[Index, Index]:
    """The bounds of an access held between 0 and the number of elements; the end is 0 if nothing is inside."""
    if access.first is None or access.last is None:
        raise InternalCompilerError("emitter: a partial access without bounds")
    first = _between(context, access.first, access.count)
    last = _between(context, access.last, access.count)
    if access.inside is not None:
        last = context.writer.value(f"select i1 {access.inside}, i64 {last}, i64 0")
    return first, last


def _between(context: EmissionContext, index: Index, count: int) -> Index:
    if isinstance(index, int):
        return min(max(index, 0), count)
    for name in ("llvm.smin.i64", "llvm.smax.i64"):
        context.module.declare(f"@{name}", f"i64 @{name}(i64, i64)")
    lowered = context.writer.value(f"call i64 @llvm.smin.i64(i64 {index}, i64 {count})")
    return context.writer.value(f"call i64 @llvm.smax.i64(i64 {lowered}, i64 0)")


def _mask(context: EmissionContext, access: Access) -> str:
    """Which elements are inside."""
    first, last = _clamped(context, access)
    type_ = spelling.vector("i32", access.count)
    positions = spelling.sequence(0, access.count, "i32")
    mask = context.writer.value(f"icmp ult {type_} {positions}, {_narrow_splat(context, last, access.count)}")
    if first == 0:
        return mask
    behind = context.writer.value(f"icmp uge {type_} {positions}, {_narrow_splat(context, first, access.count)}")
    return context.writer.value(f"and {spelling.vector('i1', access.count)} {mask}, {behind}")


def _narrow_splat(context: EmissionContext, index: Index, count: int) -> str:
    if isinstance(index, int):
        return spelling.splat("i32", str(index), count)
    return context.splat("i32", context.writer.value(f"trunc i64 {index} to i32"), count)


def _load_masked(context: EmissionContext, access: Access, fill: bool | int | float) -> str:
    dtype, count = access.memory.dtype, access.count
    element = spelling.memory_type(dtype)
    type_, mask_type = spelling.vector(element, count), spelling.vector("i1", count)
    name = f"@llvm.masked.load.{spelling.mangled(element, count)}.p0"
    context.module.declare(name, f"{type_} {name}(ptr, i32, {mask_type}, {type_})")
    literal = spelling.number(dtype, fill) if dtype is not dtypes.boolean else str(int(bool(fill)))
    operands = (
        f"ptr {access.pointer}, i32 {dtype.itemsize}, {mask_type} {_mask(context, access)}, "
        f"{type_} {spelling.splat(element, literal, count)}"
    )
    loaded = context.writer.value(f"call {type_} {name}({operands}){access.memory.load_notes}")
    return _to_register(context, dtype, loaded, count)


def _load_repeated(context: EmissionContext, access: Access, fill: bool | int | float) -> str:
    """One element, repeated where it is inside."""
    writer, dtype, count = context.writer, access.memory.dtype, access.count
    first, last = _clamped(context, access)
    some = writer.value(f"icmp slt i64 {first}, {last}")
    pointer = writer.value(f"select i1 {some}, ptr {access.pointer}, ptr {_spare(context, access)}")
    loaded = _load_whole(context, access.memory, pointer, count, 0, dtype.itemsize)
    type_ = spelling.register_type(dtype, count)
    mask = f"{spelling.vector('i1', count)} {_mask(context, access)}"
    return writer.value(f"select {mask}, {type_} {loaded}, {type_} {spelling.literal(dtype, fill, count)}")


def _for_elements(context: EmissionContext, access: Access, local: str, into_local: bool) -> None:
    """Copy the elements that are inside between the buffer and `local`, one by one: edges are few."""
    writer, memory = context.writer, access.memory
    first, last = _clamped(context, access)
    turn, leave = writer.new_label("element"), writer.new_label("elements")
    before = writer.block
    writer.branch(writer.value(f"icmp slt i64 {first}, {last}"), turn, leave)
    writer.start(turn)
    position = writer.phi("i64")
    position.add(str(first), before)
    outside = _element(context, memory, access.pointer, multiply(writer, position.name, access.stride))
    inside = _element(context, memory, local, position.name)
    source, target = (outside, inside) if into_local else (inside, outside)
    type_, itemsize = spelling.memory_type(memory.dtype), memory.dtype.itemsize
    moved = writer.value(f"load {type_}, ptr {source}, align {itemsize}")
    writer.line(f"store {type_} {moved}, ptr {target}, align {itemsize}")
    following = add(writer, position.name, 1)
    position.add(str(following), turn)
    writer.branch(writer.value(f"icmp slt i64 {following}, {last}"), turn, leave)
    writer.start(leave)


def _load_by_loop(context: EmissionContext, access: Access, fill: bool | int | float) -> str:
    writer, dtype, count = context.writer, access.memory.dtype, access.count
    type_ = spelling.vector(spelling.memory_type(dtype), count)
    local = writer.stack(spelling.memory_type(dtype), count, _STACK_ALIGNMENT)
    filled = spelling.literal(dtype, fill, count)
    if dtype is dtypes.boolean:
        filled = spelling.splat("i8", str(int(bool(fill))), count)
    writer.line(f"store {type_} {filled}, ptr {local}, align {_STACK_ALIGNMENT}")
    _for_elements(context, access, local, into_local=True)
    loaded = writer.value(f"load {type_}, ptr {local}, align {_STACK_ALIGNMENT}")
    return _to_register(context, dtype, loaded, count)


def _store_by_loop(context: EmissionContext, access: Access, value: str) -> None:
    local = context.writer.stack(spelling.memory_type(access.memory.dtype), access.count, _STACK_ALIGNMENT)
    type_ = spelling.vector(spelling.memory_type(access.memory.dtype), access.count)
    context.writer.line(f"store {type_} {value}, ptr {local}, align {_STACK_ALIGNMENT}")
    _for_elements(context, access, local, into_local=False)


def _store_masked(context: EmissionContext, access: Access, value: str) -> None:
    dtype, count = access.memory.dtype, access.count
    element = spelling.memory_type(dtype)
    type_, mask_type = spelling.vector(element, count), spelling.vector("i1", count)
    name = f"@llvm.masked.store.{spelling.mangled(element, count)}.p0"
    context.module.declare(name, f"void {name}({type_}, ptr, i32, {mask_type})")
    operands = f"{type_} {value}, ptr {access.pointer}, i32 {dtype.itemsize}, {mask_type} {_mask(context, access)}"
    context.writer.line(f"call void {name}({operands}){access.memory.store_notes}")


def _store_all_or_none(context: EmissionContext, access: Access, value: str) -> None:
    writer, memory = context.writer, access.memory
    pointer, stride, alignment = access.pointer, access.stride, access.alignment
    if access.inside is not None:
        pointer = writer.value(f"select i1 {access.inside}, ptr {pointer}, ptr {_spare(context, access)}")
        alignment = memory.dtype.itemsize
        if access.count > 1 and stride not in (0, 1):
            stride = writer.value(f"select i1 {access.inside}, i64 {stride}, i64 0")
    element = spelling.memory_type(memory.dtype)
    type_ = spelling.vector(element, access.count)
    itemsize, notes = memory.dtype.itemsize, memory.store_notes
    if access.inside is not None:
        notes = ""
    elif memory.streamed and stride == 1 and alignment % LINE_BYTES == 0 and access.count * itemsize % LINE_BYTES == 0:
        notes += f", !nontemporal {context.streaming_note()}"
    if access.count == 1 or stride == 1:
        writer.line(f"store {type_} {value}, ptr {pointer}, align {alignment}{notes}")
        return
    if stride == -1:
        lowest = _element(context, memory, pointer, 1 - access.count)
        turned = _reversed(context, type_, value, access.count)
        writer.line(f"store {type_} {turned}, ptr {lowest}, align {itemsize}{notes}")
        return
    for position, address in enumerate(_strided(context, memory, pointer, access.count, stride)):
        single = writer.value(f"extractelement {type_} {value}, i64 {position}")
        writer.line(f"store {element} {single}, ptr {address}, align {itemsize}{notes}")
