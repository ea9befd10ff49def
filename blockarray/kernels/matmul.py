"""Matrix products on a device: one loop of window loads and `dot`, which the compiler gives to a matmul instruction.

Float32, float64 and integers have none: a tile of the result for each program then, both operands staged a slice at a time.
Products on the host go to NumPy's BLAS where that has the dtype (see `execution.library_calls`).
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from blockarray.fusion.lower_parameters import (
    BUFFER_ALIGNMENT,
    Argument,
    SlotNumber,
    SlotPointer,
    index_parameter,
)
from blockarray.fusion.plan import Product
from blockarray.fusion.products import View, buffer_type_of, friendly_view, schedule_of, total_dtype
from codegen import dtypes
from codegen.compiler import compile_kernel
from codegen.dtypes import DType
from codegen.frontend.language import Static, accumulator_dtype, cast, dot, extent, load, program_index, store, zeros
from codegen.frontend.parameters import ExtentSlot, PointerSlot, ScalarSlot, StrideSlot
from codegen.frontend.signature import ArgumentKind, ArrayKind, IndexKind, Specialisation, StaticKind
from codegen.frontend.translator import translate
from codegen.ir.builder import Builder
from codegen.ir.kernel import BufferParameter, GridAxis, IndexParameter, Kernel
from codegen.ir.layout import Layout
from codegen.ir.products import accumulator_layout
from codegen.ir.types import BufferType
from codegen.schedules.choose import PARALLEL_WORK
from codegen.schedules.matmul import MatmulSchedule
from codegen.target import Target
from codegen.targets.backend import Backend, Memory

# 16 x 16 lanes; each holds 4 x 4 neighbours of the result, once or twice along both axes.
_LANES = (16, 16)
_RUN = (4, 4)
_SMALL_TILE = 64
_LARGE_TILE = 128
# Elements of the inner axis that are staged at a time: both slices fit into 48 KiB beside each other.
_SLICE = 16

# The kernel that adds parts of a sum together: lanes, and neighbours that each holds.
_SUM_LANES = 128
_SUM_RUN = 4


@dataclass(frozen=True)
class LoweredProduct:
    """A product's kernel and how to launch it; see `LoweredKernel`. Value `PARTS` are the parts of sums, if any.

    `parallel` says whether the work is worth waking other threads of the host for.
    """

    kernel: Kernel
    arguments: tuple[Argument, ...]
    programs: int
    parallel: bool = True


class _Bound:
    """A kernel with its slots."""

    __slots__ = ("_slots", "_pointers", "_programs", "_parallel", "_run")

    def __init__(self, lowered: LoweredProduct, device: Backend) -> None:
        self._slots = (ctypes.c_int64 * len(lowered.arguments))()
        self._pointers: list[tuple[int, int, int]] = []
        for position, argument in enumerate(lowered.arguments):
            if isinstance(argument, SlotNumber):
                self._slots[position] = argument.value
            elif isinstance(argument, SlotPointer):
                self._pointers.append((position, argument.value_number, argument.byte_offset))
        self._programs = lowered.programs
        self._parallel = lowered.parallel
        self._run = compile_kernel(lowered.kernel, device).bind(ctypes.addressof(self._slots))

    def run(self, memories: Sequence[Memory], parts: Memory | None) -> None:
        for position, number, offset in self._pointers:
            memory = memories[number] if number >= 0 else parts
            assert memory is not None
            self._slots[position] = memory.address + offset
        self._run(self._programs, self._parallel)


class DeviceProduct:
    """A matrix product that is ready to be launched on a device."""

    __slots__ = ("product", "constants", "schedule", "_device", "_kernels", "_parts_bytes")

    def __init__(self, product: Product, device: Backend, schedule: MatmulSchedule | None = None) -> None:
        self.product = product
        self.constants = ()
        self.schedule = schedule or schedule_of(product, device.target)
        self._device = device
        self._kernels = [
            _Bound(one, device) for one in lower_product(product, device.target, self.schedule) if one.programs
        ]
        self._parts_bytes = 0
        if self.schedule.parts > 1:
            self._parts_bytes = self.schedule.parts * prod(product.shape) * dtypes.float32.itemsize

    def run(self, memories: Sequence[Memory]) -> None:
        """Queue the product; `memories` are the values of the plan."""
        # Memory that goes back to the pool at the end is used next behind these kernels, on the same stream.
        parts = self._device.allocate(self._parts_bytes) if self._parts_bytes else None
        for kernel in self._kernels:
            kernel.run(memories, parts)


PARTS = -1
"""The number that stands for the parts of sums among the values of a plan."""


def _swapped(view: View) -> View:
    offset, shape, strides = view
    return offset, (*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2])


def lower_product(product: Product, target: Target, schedule: MatmulSchedule | None = None) -> list[LoweredProduct]:
    """The kernels of a product, in the order in which they run."""
    chosen = schedule or schedule_of(product, target)
    whole = (0, product.shape, _row_major(product.shape))
    a, b, result = (product.a, product.a_view), (product.b, product.b_view), (product.target, whole)
    if chosen.swapped:
        a, b, result = ((number, _swapped(view)) for number, view in (b, a, result))
    layout = Layout(_LANES, _RUN)
    if chosen.instruction:
        layout = accumulator_layout(target.matmul_instruction(chosen.instruction), chosen.m)
    else:
        tile = _tile(product, target.cores)
        chosen = MatmulSchedule("", tile, tile, _SLICE)
    if chosen.parts == 1:
        return [_lower(product.operand_dtype, product.dtype, a, b, result, chosen, layout, target)]
    parts_view = (0, (chosen.parts, *result[1][1]), (prod(product.shape), *result[1][2]))
    return [
        _lower(product.operand_dtype, dtypes.float32, a, b, (PARTS, parts_view), chosen, layout, target),
        _lower_sum(product, chosen.parts),
    ]


def matrix_product(a, b, c, part_length, *, tile_m: Static, tile_n: Static, tile_k: Static, first_axis: Static):  # type: ignore[no-untyped-def]
    """``a @ b`` for stacks of matrices: one tile of `c` for each program; a further leading axis of `c` takes parts of the sums."""
    indices = [program_index(first_axis + axis) for axis in range(c.ndim)]  # type: ignore[operator]
    stack, row, column = indices[:-2], indices[-2] * tile_m, indices[-1] * tile_n
    begin, end = 0, extent(a, -1)
    if c.ndim > a.ndim:
        begin = stack[0] * part_length
        end = np.minimum(end, begin + part_length)
    places = stack[c.ndim - a.ndim :]
    total = zeros((tile_m, tile_n), accumulator_dtype(a.dtype))
    for k in range(begin, end, tile_k):
        left = load(a, (*places, row, k), (tile_m, tile_k))
        right = load(b, (*places, k, column), (tile_k, tile_n))
        total = dot(left, right, total)
    store(c, (*stack, row, column), cast(total, c.dtype))


def _lower(
    dtype: DType,
    result_dtype: DType,
    a: tuple[int, View],
    b: tuple[int, View],
    result: tuple[int, View],
    schedule: MatmulSchedule,
    layout: Layout,
    target: Target,
) -> LoweredProduct:
    """The kernel of a product: a loop over slices of the summed axis."""
    (*batch, m, k), n = a[1][1], b[1][1][-1]
    names = tuple(f"batch{axis}" for axis in range(len(batch)))
    counted = ("parts",) if schedule.parts > 1 else ()
    extents = {**dict(zip(names, batch, strict=True)), "m": m, "n": n, "k": k}
    extents.update(dict.fromkeys(counted, schedule.parts))
    numbers = {"a": a[0], "b": b[0], "c": result[0]}
    views = {"a": friendly_view(a[1]), "b": friendly_view(b[1]), "c": friendly_view(result[1])}
    axes = {"a": (*names, "m", "k"), "b": (*names, "k", "n"), "c": (*counted, *names, "m", "n")}
    kinds: list[tuple[str, ArgumentKind]] = []
    for name, view in views.items():
        type_ = buffer_type_of(result_dtype if name == "c" else dtype, view, axes[name])
        kinds.append((name, ArrayKind(type_.dtype, type_.extents, type_.strides, type_.alignment)))
    kinds.append(("part_length", IndexKind(schedule.k) if counted else StaticKind(None)))
    sizes = {"tile_m": schedule.m, "tile_n": schedule.n, "tile_k": schedule.k, "first_axis": int(schedule.sharers > 1)}
    kinds += [(name, StaticKind(size)) for name, size in sizes.items()]
    divisors = tuple((name, index_parameter(name, extent).divisible) for name, extent in extents.items())
    found = translate(matrix_product, Specialisation(tuple(kinds), divisors, frozenset("ab")), target)
    arguments: list[Argument] = []
    for slot in found.slots:
        match slot:
            case ExtentSlot(name=name):
                arguments.append(SlotNumber(extents[name]))
            case ScalarSlot():
                arguments.append(SlotNumber(-(-k // (schedule.parts * schedule.k)) * schedule.k))
            case PointerSlot(parameter=name):
                itemsize = (result_dtype if name == "c" else dtype).itemsize
                arguments.append(SlotPointer(numbers[name], views[name][0] * itemsize))
            case StrideSlot(parameter=name, axis=axis):
                arguments.append(SlotNumber(views[name][2][axis]))
    together = {"m": schedule.together, 1: schedule.sharers}
    grid = tuple(replace(axis, together=together.get(axis.extent, 1)) for axis in found.kernel.grid)
    programs = -(-m // schedule.m) * -(-n // schedule.n) * prod(batch) * schedule.parts
    kernel = replace(found.kernel, grid=grid, layout=layout)
    return LoweredProduct(kernel, tuple(arguments), programs, m * n * k * prod(batch) >= PARALLEL_WORK)


def _lower_sum(product: Product, count: int) -> LoweredProduct:
    """The kernel that adds the parts of all sums together, in the order of the parts."""
    elements = prod(product.shape)
    extent, parts = index_parameter("elements", elements), IndexParameter("parts")
    source = BufferParameter(
        "parts_of_sums", buffer_type_of(dtypes.float32, (0, (count, elements), (elements, 1)), ("parts", "elements"))
    )
    flat = BufferType(product.dtype, (1, "elements"), (0, 1), BUFFER_ALIGNMENT)
    target = BufferParameter("target", flat, True)
    block = _SUM_LANES * _SUM_RUN
    builder = Builder()
    zero = builder.index(0)
    place = builder.map("multiply", builder.program_index(0), builder.index(block))
    totals = builder.load(source.value, (zero, place), (1, block), (False, True))
    for number in range(1, count):
        part = builder.load(source.value, (builder.index(number), place), (1, block), (False, True))
        totals = builder.map("add", totals, part)
    builder.store(target.value, (zero, place), builder.cast(totals, product.dtype), (False, True))
    parameters = (extent, parts, source, target)
    layout = Layout((1, _SUM_LANES), (1, _SUM_RUN))
    kernel = builder.kernel("sum_of_parts", parameters, (GridAxis("elements", block),), layout)
    arguments = (
        SlotNumber(elements), SlotNumber(count), SlotPointer(PARTS, 0), SlotNumber(elements), SlotPointer(product.target, 0),
    )  # fmt: skip
    return LoweredProduct(kernel, arguments, -(-elements // block))


def _tile(product: Product, cores: int) -> int:
    """Large tiles read each operand less often; small ones keep all multiprocessors busy, and fit wide elements."""
    programs = prod(product.shape[:-2]) * prod(-(-length // _LARGE_TILE) for length in product.shape[-2:])
    is_wide = total_dtype(product.dtype).itemsize > 4
    if is_wide and len(product.shape) > 2:
        return _SMALL_TILE // 2  # a stack of wide results passes through shared memory once more
    return _SMALL_TILE if is_wide or programs < cores else _LARGE_TILE


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)
