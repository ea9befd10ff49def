"""How a kernel is launched: threads, shared memory, tensor maps. Emission and launch read the same plan off a kernel."""

from dataclasses import dataclass

from codegen.errors import InternalCompilerError
from codegen.ir.kernel import BufferParameter, Kernel, Value
from codegen.ir.operations import DotLoop, Store
from codegen.ir.products import MAP_AXES, MAP_BYTES, NARROWEST_PANEL, dot_loops, operand_facts
from codegen.target import MatmulInstruction, Target
from codegen.targets.nvptx.description import blocks_of_program

PANEL = NARROWEST_PANEL
"""Elements of 2 bytes in a row of 128 bytes, the widest that the copy engine swizzles."""

PANEL_BYTES = PANEL * PANEL * 2
GROUP_THREADS = 128
"""A warp group: four warps that issue `wgmma` together."""

GROUP_ROWS = 64
STAGING_BUFFERS = 2
MAP_SIZE = 128
"""Bytes of a tensor map."""

BARRIER_BYTES = 8
ACCUMULATOR_BYTES = 4

MOST_SHARERS = 8
"""Thread blocks of the largest cluster that every device takes."""

CLUSTERS = (2,)
"""Thread blocks of a cluster that share operands."""

REGISTERS = 65536
"""Of a multiprocessor, which a thread block with this much work has for itself."""

PRODUCER_REGISTERS = 40
CONSUMER_REGISTERS = 232
_MOST_STAGES = 8
_LEAST_STAGES = 3
_WARP_STAGES = 4
_PITCH_PADDING = 16


@dataclass(frozen=True)
class TensorMap:
    """A view of a buffer parameter that the copy engine moves boxes of.

    Attributes
    ----------
    parameter : BufferParameter
    axes : tuple of int
        The buffer's axes, the contiguous one first; axes that repeat the same elements are left out.
    box : tuple of int
        Elements of a box along each of `axes`.
    """

    parameter: BufferParameter
    axes: tuple[int, ...]
    box: tuple[int, ...]


@dataclass(frozen=True)
class Ring:
    """Shared memory of a product whose operands the copy engine brings: stages that are filled and emptied in turn.

    Attributes
    ----------
    product : DotLoop
    a_map, b_map : TensorMap
    a_inner, b_inner : bool
        The operand is contiguous along the summed axis.
    stages : int
    a_bytes, b_bytes : int
        Of one stage.
    stores : dict
        The tensor map of each store that goes through shared memory.
    together : int
        Thread blocks of a cluster: tiles below one another, each of which brings its share of the right operand to all.
    sharers : int
        Thread blocks of a cluster that share the sum of one tile; the first of them gets the others' parts and goes on alone.
    """

    product: DotLoop
    a_map: TensorMap
    b_map: TensorMap
    a_inner: bool
    b_inner: bool
    stages: int
    a_bytes: int
    b_bytes: int
    stores: dict[Store, TensorMap]
    together: int = 1
    sharers: int = 1

    @property
    def cluster(self) -> int:
        """Thread blocks that run side by side and reach each other's shared memory."""
        return self.together * self.sharers

    @property
    def stage_bytes(self) -> int:
        """Both operands of one stage."""
        return self.a_bytes + self.b_bytes

    @property
    def staging_start(self) -> int:
        """Where tiles of the result are laid down to be stored."""
        return self.stages * self.stage_bytes

    @property
    def parts_start(self) -> int:
        """Where the parts of a sum arrive that other blocks of the cluster computed."""
        return self.staging_start + staging_bytes(self.stores)

    @property
    def part_bytes(self) -> int:
        """Of one of these parts: the accumulators of a tile."""
        m, n = self.product.accumulator.block.shape
        return m * n * ACCUMULATOR_BYTES

    @property
    def barriers_start(self) -> int:
        """Where the barriers lie: one for each full stage, one for each empty one, and one for parts that have arrived."""
        return self.parts_start + (self.sharers - 1) * self.part_bytes

    @property
    def arrived(self) -> int:
        """Where the barrier for parts lies."""
        return self.barriers_start + 2 * self.stages * BARRIER_BYTES

    @property
    def shared_bytes(self) -> int:
        """All of it."""
        return self.arrived + BARRIER_BYTES

    @property
    def maps(self) -> tuple[TensorMap, ...]:
        """All tensor maps, in the order of the entry function's parameters."""
        return (self.a_map, self.b_map, *self.stores.values())


@dataclass(frozen=True)
class LaunchPlan:
    """How a kernel is launched.

    Attributes
    ----------
    threads : int
        Of a thread block.
    dynamic_shared_bytes : int
    ring : Ring or None
        The kernel's thread blocks stay and take tile after tile.
    blocks : int
        Thread blocks of a program, a cluster if they are several.
    """

    threads: int
    dynamic_shared_bytes: int = 0
    ring: Ring | None = None
    blocks: int = 1

    @property
    def cluster(self) -> int:
        """Thread blocks of a cluster."""
        return self.blocks if self.ring is None else self.ring.cluster


def launch_plan(kernel: Kernel, target: Target) -> LaunchPlan:
    """The plan of a kernel after all passes.

    Raises
    ------
    InternalCompilerError
        The kernel needs more shared memory or registers than the target has: it would not start, or hang.
    """
    lanes = kernel.layout.lane_count
    products = list(dot_loops(kernel.body))
    rows = [target.matmul_instruction(product.instruction) for product in products]
    if not any(row.copies == "tensor maps" for row in rows):
        needed = max((warp_ring_bytes(product) for product in products), default=0)
        _require_shared(kernel, needed, target)
        blocks = blocks_of_program(lanes)
        return LaunchPlan(lanes // blocks, needed, blocks=blocks)
    if len(products) != 1 or products[0] not in kernel.body.operations:
        raise InternalCompilerError(
            f"kernel {kernel.name}: a product with tensor maps has to be the only one, outside of loops"
        )
    ring = _ring(kernel, products[0], rows[0], target)
    _require_shared(kernel, ring.shared_bytes, target)
    threads = rows[0].lanes + GROUP_THREADS
    held = GROUP_THREADS * PRODUCER_REGISTERS + rows[0].lanes * CONSUMER_REGISTERS
    if held > REGISTERS:
        raise InternalCompilerError(
            f"kernel {kernel.name}: {held} registers are asked for, a multiprocessor has {REGISTERS}"
        )
    return LaunchPlan(threads, ring.shared_bytes, ring)


def _require_shared(kernel: Kernel, needed: int, target: Target) -> None:
    if needed > target.shared_bytes:
        raise InternalCompilerError(
            f"kernel {kernel.name}: {needed} bytes of shared memory, but a program has {target.shared_bytes}; use smaller tiles"
        )


def staging_bytes(stores: dict[Store, TensorMap]) -> int:
    """Shared memory through which tiles are stored: panels of both consumer groups, two each."""
    return 2 * STAGING_BUFFERS * PANEL_BYTES if stores else 0


def _ring(kernel: Kernel, product: DotLoop, row: MatmulInstruction, target: Target) -> Ring:
    parameters = {one.value: one for one in kernel.parameters if isinstance(one, BufferParameter)}
    (a_row, a_k), (b_k, b_column) = product.a_axes, product.b_axes
    m, n = product.accumulator.block.shape
    a_map, a_inner = _operand_map(parameters[product.a], a_k, a_row, m, product.step)
    together = _together(kernel, n)
    b_map, b_inner = _operand_map(parameters[product.b], b_k, b_column, n // together, product.step)
    a_bytes, b_bytes = m * product.step * 2, n * product.step * 2
    stores = _stores(kernel, parameters, (m, n))
    sharers = kernel.grid[0].together if kernel.grid[0].extent == 1 and together == 1 else 1
    if sharers > MOST_SHARERS:
        raise InternalCompilerError(
            f"kernel {kernel.name}: {sharers} blocks share a sum, expected at most {MOST_SHARERS}"
        )
    left = target.shared_bytes - staging_bytes(stores) - (sharers - 1) * m * n * ACCUMULATOR_BYTES - BARRIER_BYTES
    stages = min(_MOST_STAGES, left // (a_bytes + b_bytes + 2 * BARRIER_BYTES))
    if stages < _LEAST_STAGES:
        raise InternalCompilerError(
            f"kernel {kernel.name}: {stages} stages fit into shared memory, expected {_LEAST_STAGES}"
        )
    return Ring(product, a_map, b_map, a_inner, b_inner, stages, a_bytes, b_bytes, stores, together, sharers)


def _together(kernel: Kernel, columns: int) -> int:
    """Blocks of a cluster: as many as the grid's rows allow, if each has whole panels to bring."""
    wanted = kernel.grid[-2].together if len(kernel.grid) > 1 and kernel.grid[-2].block > 1 else 1
    return wanted if wanted in CLUSTERS and columns % (wanted * PANEL) == 0 else 1


def _operand_map(
    parameter: BufferParameter, inner_axis: int, outer_axis: int, outer: int, inner: int
) -> tuple[TensorMap, bool]:
    is_inner = operand_facts(parameter.type, inner_axis, outer_axis).contiguous == "inner"
    first, second = (inner_axis, outer_axis) if is_inner else (outer_axis, inner_axis)
    axes = (first, second, *_batch_axes(parameter, (first, second)))
    box = (PANEL, outer if is_inner else inner)
    return TensorMap(parameter, axes, box + (1,) * (len(axes) - 2)), is_inner


def _batch_axes(parameter: BufferParameter, matrix: tuple[int, int]) -> list[int]:
    strides = parameter.type.strides
    return [axis for axis in reversed(range(len(strides))) if axis not in matrix and strides[axis] != 0]


def _stores(kernel: Kernel, parameters: dict[Value, BufferParameter], tile: tuple[int, ...]) -> dict[Store, TensorMap]:
    """Stores of whole tiles that the copy engine can make."""
    found = {}
    for operation in kernel.body.operations:
        if not isinstance(operation, Store) or operation.operands[0] not in parameters:
            continue
        parameter = parameters[operation.operands[0]]
        type_, shape = parameter.type, operation.operands[-1].block.shape
        rank = type_.rank
        if rank < 2 or shape[-2:] != tile or tile[1] < PANEL or type_.dtype.itemsize != 2:
            continue
        axes = (rank - 1, rank - 2, *_batch_axes(parameter, (rank - 2, rank - 1)))
        whole = len(axes) == rank <= MAP_AXES and type_.strides[-1] == 1 and type_.strides[-2] is None
        if whole and type_.alignment % MAP_BYTES == 0:
            found[operation] = TensorMap(parameter, axes, (PANEL, GROUP_ROWS, *(1,) * (rank - 2)))
    return found


@dataclass(frozen=True)
class WarpSide:
    """An operand in shared memory as warps read it: lines of neighbours, with padding that spreads them over the banks.

    Attributes
    ----------
    is_inner : bool
        Lines run along the summed axis, one for each row (column) of the result; else the other way round.
    lines, length : int
        Lines, and elements of each.
    start : int
        Bytes from the stage's start.
    """

    is_inner: bool
    lines: int
    length: int
    start: int

    @property
    def pitch(self) -> int:
        """Bytes from one line to the next."""
        return self.length * 2 + _PITCH_PADDING

    @property
    def nbytes(self) -> int:
        """Of one stage."""
        return self.lines * self.pitch


def warp_sides(product: DotLoop) -> tuple[WarpSide, WarpSide]:
    """Where the operands of a product lie in a stage."""
    (a_row, a_k), (b_k, b_column) = product.a_axes, product.b_axes
    m, n = product.accumulator.block.shape
    a_inner = operand_facts(product.a.buffer, a_k, a_row).contiguous != "outer"
    b_inner = operand_facts(product.b.buffer, b_k, b_column).contiguous == "inner"
    a = WarpSide(a_inner, *((m, product.step) if a_inner else (product.step, m)), 0)
    b = WarpSide(b_inner, *((n, product.step) if b_inner else (product.step, n)), a.nbytes)
    return a, b


def warp_stages(product: DotLoop) -> int:
    """Stages of a product whose lanes copy the operands."""
    return _WARP_STAGES if sum(side.nbytes for side in warp_sides(product)) <= 12 << 10 else _WARP_STAGES - 1


def warp_ring_bytes(product: DotLoop) -> int:
    """Shared memory of a product whose lanes copy the operands."""
    return warp_stages(product) * sum(side.nbytes for side in warp_sides(product))
