"""Matrix products for machines with many lanes: a tile of the result for each program, both operands staged a slice at a time.

Products on the host go to NumPy's BLAS (see `execution.library_calls`).
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from blockarray.fusion.lower_parameters import (
    Argument,
    SlotNumber,
    SlotPointer,
    alignment_of,
    index_parameter,
)
from blockarray.fusion.plan import Product
from codegen import dtypes
from codegen.compiler import compile_kernel
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import BufferParameter, GridAxis, Kernel, Parameter, Value
from codegen.ir.layout import Layout
from codegen.ir.types import BufferType
from codegen.targets.backend import Backend, Memory

# 16 x 16 lanes; each holds 4 x 4 neighbours of the result, once or twice along both axes.
_LANES = (16, 16)
_RUN = (4, 4)
_SMALL_TILE = 64
_LARGE_TILE = 128
# Elements of the inner axis that are staged at a time: both slices fit into 48 KiB beside each other.
_SLICE = 16


@dataclass(frozen=True)
class LoweredProduct:
    """A product's kernel and how to launch it; see `LoweredKernel`."""

    kernel: Kernel
    arguments: tuple[Argument, ...]
    programs: int


class DeviceProduct:
    """A matrix product that is ready to be launched on a device."""

    __slots__ = ("product", "constants", "_slots", "_pointers", "_programs", "_run")

    def __init__(self, product: Product, device: Backend) -> None:
        lowered = lower_product(product, device.target.cores)
        self.product = product
        self.constants = ()
        self._slots = (ctypes.c_int64 * len(lowered.arguments))()
        self._pointers: list[tuple[int, int, int]] = []
        for position, argument in enumerate(lowered.arguments):
            if isinstance(argument, SlotNumber):
                self._slots[position] = argument.value
            elif isinstance(argument, SlotPointer):
                self._pointers.append((position, argument.value_number, argument.byte_offset))
        self._programs = lowered.programs
        self._run = compile_kernel(lowered.kernel, device).bind(ctypes.addressof(self._slots))

    def run(self, memories: Sequence[Memory]) -> None:
        """Queue the product; `memories` are the values of the plan."""
        if self._programs == 0:
            return
        for position, number, offset in self._pointers:
            self._slots[position] = memories[number].address + offset
        self._run(self._programs)


def bind_device_product(product: Product, device: Backend) -> DeviceProduct:
    """The product as a step that can be run on `device`."""
    return DeviceProduct(product, device)


def lower_product(product: Product, cores: int) -> LoweredProduct:
    """The kernel of a product, for a machine with so many multiprocessors."""
    (*batch, m, n) = product.shape
    k = product.a_view[1][-1]
    tile = _tile(product, cores)
    names = [f"batch{axis}" for axis in range(len(batch))]
    extents = {**dict(zip(names, batch, strict=True)), "m": m, "n": n, "k": k}
    indices = {name: index_parameter(name, extent) for name, extent in extents.items()}
    parameters: list[Parameter] = list(indices.values())
    arguments: list[Argument] = [SlotNumber(extent) for extent in extents.values()]

    def declare(
        name: str, value: int, view: tuple[int, tuple[int, ...], tuple[int, ...]], ends: tuple[str, str]
    ) -> Value:
        offset, shape, strides = view
        is_written = name == "target"
        strides = tuple(0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True))
        known = tuple(stride if stride in (0, 1) else None for stride in strides)
        type_ = BufferType(product.dtype, (*names, *ends), known, alignment_of(product.dtype, offset, strides))
        parameter = BufferParameter(name, type_, is_written)
        parameters.append(parameter)
        arguments.append(SlotPointer(value, offset * product.dtype.itemsize))
        arguments.extend(SlotNumber(stride) for stride in strides if stride not in (0, 1))
        return parameter.value

    a = declare("a", product.a, product.a_view, ("m", "k"))
    b = declare("b", product.b, product.b_view, ("k", "n"))
    target = declare("target", product.target, (0, product.shape, _row_major(product.shape)), ("m", "n"))
    builder = Builder()
    places = tuple(builder.program_index(axis) for axis in range(len(batch)))
    row = builder.map("multiply", builder.program_index(len(batch), "row"), builder.index(tile))
    column = builder.map("multiply", builder.program_index(len(batch) + 1, "column"), builder.index(tile))
    ones = (1,) * len(batch)
    checked = (*(False,) * len(batch), True, True)

    def window(buffer: Value, first: Value, second: Value, shape: tuple[int, int]) -> Value:
        block = builder.load(buffer, (*places, first, second), (*ones, *shape), checked)
        return _widened(builder, builder.reshape(block, shape), product.dtype)

    def add_slice(inner: Value, total: Value) -> tuple[Value, ...]:
        left = window(a, row, inner, (tile, _SLICE))
        right = window(b, inner, column, (_SLICE, tile))
        return (builder.dot(left, right, total),)

    start = builder.constant(_total_dtype(product.dtype), 0, (tile, tile))
    (total,) = builder.loop(builder.index(0), indices["k"].value, _SLICE, [start], add_slice, "inner")
    result = builder.reshape(_narrowed(builder, total, product.dtype), (*ones, tile, tile))
    builder.store(target, (*places, row, column), result, checked)
    grid = (*(GridAxis(name) for name in names), GridAxis("m", tile), GridAxis("n", tile))
    kernel = builder.kernel("matrix_product", parameters, grid, Layout(_LANES, _RUN))
    programs = -(-m // tile) * -(-n // tile)
    for extent in batch:
        programs *= extent
    return LoweredProduct(kernel, tuple(arguments), programs)


def _tile(product: Product, cores: int) -> int:
    """Large tiles read each operand less often; small ones keep all multiprocessors busy, and fit wide elements."""
    programs = 1
    for extent in product.shape[:-2]:
        programs *= extent
    for extent in product.shape[-2:]:
        programs *= -(-extent // _LARGE_TILE)
    is_wide = _total_dtype(product.dtype).itemsize > 4
    if is_wide and len(product.shape) > 2:
        return _SMALL_TILE // 2  # a stack of wide results passes through shared memory once more
    return _SMALL_TILE if is_wide or programs < cores else _LARGE_TILE


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def _total_dtype(dtype: DType) -> DType:
    """What products are summed in: sums of narrow integers wrap around to the same bits however wide they were."""
    if dtype.is_half:
        return dtypes.float32
    return dtypes.int32 if dtype.bits < 32 else dtype


def _widened(builder: Builder, block: Value, dtype: DType) -> Value:
    return builder.cast(block, dtypes.int32) if dtype is dtypes.boolean else block


def _narrowed(builder: Builder, total: Value, dtype: DType) -> Value:
    if dtype is dtypes.boolean:
        return builder.map("not_equal", total, builder.constant(dtypes.int32, 0, total.block.shape))
    return builder.cast(total, dtype)
