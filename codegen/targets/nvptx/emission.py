"""Emission hooks of NVIDIA GPUs: one program is a thread block, a register holds one element of one lane."""

from dataclasses import dataclass, field

from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import InternalCompilerError
from codegen.ir.kernel import Body, BufferParameter, IndexParameter, Kernel, Parameter, ScalarParameter
from codegen.ir.operations import DotLoop, For, Store
from codegen.llvm import spelling
from codegen.llvm.context import EmissionContext
from codegen.llvm.entry import (
    all_programs,
    buffer_memory,
    programs_along,
    slot_count,
    split_program,
    state_alias_scopes,
)
from codegen.llvm.fragments import AxisSplit
from codegen.llvm.hooks import Access, Combine, Emission, Memory, Partial
from codegen.llvm.index import Index
from codegen.target import Target
from codegen.targets.nvptx import lanes
from codegen.targets.nvptx.access import load_elements, store_elements
from codegen.targets.nvptx.launch_plan import MAP_SIZE, LaunchPlan, launch_plan
from codegen.targets.nvptx.ring_products import (
    RingState,
    close_ring,
    consumers_barrier,
    emit_ring_product,
    map_parameter,
    open_ring,
    store_through_shared,
)
from codegen.targets.nvptx.shared import SharedMemory
from codegen.targets.nvptx.warp_products import emit_warp_product

_ACCESS_BYTES = 16


@dataclass
class _Entry:
    """What one emission keeps: shared memory so far, where a superfluous program leaves, and whether lanes have met in code
    without loops."""

    plan: LaunchPlan
    shared: SharedMemory = field(default_factory=SharedMemory)
    leave: str = ""
    ring: RingState | None = None
    has_loops: bool = False
    has_met: bool = False


class NvptxEmission(Emission):
    """A kernel becomes an entry function with one parameter for each slot, for one thread block per program."""

    fuses_products = True

    def register_elements(self, kernel: Kernel, target: Target) -> int:
        """One: a lane's register holds one element."""
        return 1

    def attributes(self, target: Target) -> str:
        """Denormals stay, nothing contracts: LLVM's defaults; `convergent` keeps lanes together at shuffles."""
        return "nounwind convergent"

    def begin(self, context: EmissionContext) -> None:
        """Declare the parameters, find the program's numbers, and send superfluous programs away."""
        kernel = context.kernel
        declared: list[str] = []
        for parameter in kernel.parameters:
            declared += _declarations(parameter, len(declared))
        plan = launch_plan(kernel, context.target)
        context.threads = plan.threads
        lane_count = kernel.layout.lane_count
        most = context.target.max_lanes_per_program
        if plan.ring is None:
            most = max(most, context.target.clustered_lanes)
        if max(plan.threads, lane_count) > most:
            raise InternalCompilerError(
                f"layout: {max(plan.threads, lane_count)} lanes in a program, but {context.target.cpu} has at most {most}"
            )
        notes = f'"nvvm.maxntid"="{plan.threads}"'
        if plan.ring is not None:
            maps = range(len(plan.ring.maps))
            declared += [f'ptr byval([{MAP_SIZE} x i8]) align 64 "nvvm.grid_constant" {map_parameter(n)}' for n in maps]
            notes += ' "nvvm.minctasm"="1"'
        if plan.cluster > 1:
            notes += f' "nvvm.cluster_dim"="{plan.cluster},1,1"'
        context.open_function(f"define ptx_kernel void @{kernel.name}({', '.join(declared)}) #0 {notes}")
        entry = _Entry(plan, has_loops=_has_loops(kernel.body))
        context.entry = entry
        context.order.barrier = lambda: self.barrier(context)
        self._define_parameters(context)
        writer = context.writer
        counts = [programs_along(context, axis) for axis in kernel.grid]
        if plan.ring is not None:
            entry.ring = open_ring(context, plan.ring, counts)
            return
        program = _linear_program(context, plan.blocks)
        total = all_programs(context, counts)
        body, entry.leave = writer.new_label("program"), writer.new_label("finished")
        writer.branch(writer.value(f"icmp ult i64 {program}, {total}"), body, entry.leave)
        writer.start(body)
        context.programs = split_program(context, program, counts)
        if plan.blocks > 1:
            # No block may write into the memory of another one that has not begun.
            self.barrier(context)
            entry.has_met = False

    def finish(self, context: EmissionContext) -> None:
        """Return, and declare the shared memory that was used."""
        writer, entry = context.writer, _entry(context)
        if entry.ring is not None:
            close_ring(context, entry.ring)
        else:
            writer.jump(entry.leave)
            writer.start(entry.leave)
            writer.line("ret void")
        context.module.add_function(writer.text())
        entry.shared.declare(context)

    def _define_parameters(self, context: EmissionContext) -> None:
        slot = 0
        buffers: list[tuple[BufferParameter, int]] = []
        for parameter in context.kernel.parameters:
            if isinstance(parameter, BufferParameter):
                buffers.append((parameter, slot))
                slot += slot_count(parameter)
                continue
            self._define_number(context, parameter, f"%p{slot}")
            slot += 1
        memories = []
        for buffer, first in buffers:
            strides = [f"%p{first + position}" for position in range(1, slot_count(buffer))]
            memory = buffer_memory(context, buffer, f"%p{first}", " addrspace(1)", strides)
            context.values[buffer.value] = memory
            memories.append(memory)
        state_alias_scopes(context, memories)
        for memory in memories:
            if memory.constant:
                memory.load_notes += ", !invariant.load !0"

    def _define_number(self, context: EmissionContext, parameter: Parameter, name: str) -> None:
        if isinstance(parameter, IndexParameter):
            context.facts.state(parameter.value, parameter.divisible, from_zero=True)
        elif isinstance(parameter, ScalarParameter) and parameter.dtype is dtypes.boolean:
            name = context.writer.value(f"icmp ne i8 {name}, 0")
        context.define(parameter.value, [name])

    def lane(self, context: EmissionContext, axis: AxisSplit) -> Index:
        """A few bits of the thread's number."""
        if axis.lanes == 1:
            return 0
        index = lanes.lane_bits(context, axis.lane_stride, axis.lanes)
        return context.once(f"zext i32 {index} to i64")

    def owner(self, context: EmissionContext, axes: tuple[AxisSplit, ...]) -> str | None:
        """Lane 0 of all axes along which the block lies in more than one lane."""
        condition: str | None = None
        below = 1
        for axis in reversed(axes):
            copies = axis.all_lanes // axis.lanes
            if copies > 1:
                condition = lanes.both_on_entry(
                    context, condition, lanes.lane_bits(context, axis.lane_stride * axis.lanes, copies)
                )
            below *= axis.all_lanes
        copies = context.kernel.layout.lane_count // below
        if copies > 1:
            condition = lanes.both_on_entry(context, condition, lanes.lane_bits(context, below, copies))
        return condition

    def accesses_per_load(self, memory: Memory, run: int, alignment: int) -> int:
        """As many neighbours as 16 bytes and the alignment allow."""
        itemsize = memory.dtype.itemsize
        several = 1
        while several * 2 <= run and several * 2 * itemsize <= min(_ACCESS_BYTES, alignment):
            several *= 2
        return several

    def loads_early(self, context: EmissionContext, memory: Memory) -> bool:
        """As long as lanes have not met.

        What a row is multiplied with when its folds are known is loaded element by element then. All at once, or moved to
        the beginning by the assembler, it would take the registers of another block: a layer norm of rows of 8192 ran at
        0.65 of the copy bandwidth of an H200 so, and at 0.99 with half as much to load.
        """
        entry = _entry(context)
        return not memory.constant or entry.has_loops or not entry.has_met

    def load(self, context: EmissionContext, access: Access, fill: bool | int | float) -> list[str]:
        """The elements of one lane."""
        return load_elements(context, access, fill, pinned=not self.loads_early(context, access.memory))

    def store(self, context: EmissionContext, access: Access, registers: list[str], owner: str | None) -> None:
        """The elements of one lane."""
        store_elements(context, access, registers, owner)

    def multiply_windows(self, context: EmissionContext, product: DotLoop) -> None:
        """By the tensor cores: warps that copy for themselves, or groups that are fed by the copy engine."""
        ring = _entry(context).ring
        if ring is None:
            emit_warp_product(context, product)
        else:
            emit_ring_product(context, ring, product)

    def store_tile(self, context: EmissionContext, operation: Store) -> bool:
        """A whole tile of 2-byte elements goes through the copy engine where a tensor map can state its buffer."""
        ring = _entry(context).ring
        if ring is None or operation not in ring.ring.stores:
            return False
        map_ = ring.ring.stores[operation]
        number = ring.ring.maps.index(map_)
        _, *offsets, value = operation.operands
        buffer = context.memory(operation.operands[0])
        context.order.before_write(buffer, operation)
        places = [context.writer.value(f"trunc i64 {context.scalar(offsets[axis])} to i32") for axis in map_.axes]
        store_through_shared(context, ring, number, context.fragment(value).force(), places)
        return True

    def allocate(self, context: EmissionContext, dtype: DType, count: int) -> tuple[str, str]:
        """An array in shared memory."""
        if _entry(context).plan.blocks > 1:
            raise InternalCompilerError(f"kernel {context.kernel.name}: the blocks of a cluster share no array")
        return _entry(context).shared.allocate(context, spelling.memory_type(dtype), count, dtype.itemsize), (
            " addrspace(3)"
        )

    def reduce_lanes(
        self, context: EmissionContext, axis: AxisSplit, partials: list[Partial], combine: Combine
    ) -> list[Partial]:
        """Shuffles inside a warp, then shared memory."""
        return lanes.reduce_lanes(context, _entry(context).shared, axis, partials, combine)

    def scan_lanes(
        self, context: EmissionContext, axis: AxisSplit, partials: list[Partial], combine: Combine
    ) -> tuple[list[Partial], list[Partial]]:
        """Shuffles inside a warp, then shared memory."""
        return lanes.scan_lanes(context, _entry(context).shared, axis, partials, combine)

    def barrier(self, context: EmissionContext) -> None:
        """A barrier of those lanes of the thread block that hold blocks, or of all thread blocks of the program."""
        _entry(context).has_met = True
        if _entry(context).plan.blocks > 1:
            for step in ("arrive", "wait"):
                name = f"@llvm.nvvm.barrier.cluster.{step}.aligned"
                context.module.declare(name, f"void {name}()")
                context.writer.line(f"call void {name}()")
            return
        if _entry(context).ring is not None:
            consumers_barrier(context)
            return
        context.module.declare("@llvm.nvvm.barrier0", "void @llvm.nvvm.barrier0()")
        context.writer.line("call void @llvm.nvvm.barrier0()")


def _has_loops(body: Body) -> bool:
    return any(isinstance(one, For) or any(map(_has_loops, one.bodies)) for one in body.operations)


def _entry(context: EmissionContext) -> _Entry:
    if not isinstance(context.entry, _Entry):
        raise InternalCompilerError("emitter: the entry function was not begun by the hooks of this target")
    return context.entry


def _declarations(parameter: Parameter, slot: int) -> list[str]:
    """The parameters of the entry function that a kernel parameter becomes, one for each of its slots."""
    if isinstance(parameter, IndexParameter):
        return [f"i64 %p{slot}"]
    if isinstance(parameter, ScalarParameter):
        return [f"{spelling.memory_type(parameter.dtype)} %p{slot}"]
    alone = " noalias" if parameter.restrict else ""
    constant = " readonly" if not parameter.written else ""
    pointer = f"ptr addrspace(1){alone}{constant} align {parameter.type.alignment} %p{slot}"
    return [pointer, *(f"i64 %p{slot + position}" for position in range(1, slot_count(parameter)))]


def _linear_program(context: EmissionContext, blocks: int) -> str:
    """The number of this program, of so many thread blocks; a grid with more than 2**31 - 1 blocks has a second axis."""
    parts = []
    for name in ("ctaid.x", "ctaid.y", "nctaid.x"):
        parts.append(context.once(f"zext i32 {lanes.special_register(context, name)} to i64"))
    row = context.writer.value(f"mul nsw i64 {parts[1]}, {parts[2]}")
    block = context.writer.value(f"add nsw i64 {row}, {parts[0]}")
    return block if blocks == 1 else context.writer.value(f"lshr i64 {block}, {blocks.bit_length() - 1}")
