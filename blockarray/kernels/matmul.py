"""Matrix products for machines with many lanes: a tile of the result for each program, both operands staged a slice at a time.

Products on the host go to NumPy's BLAS (see `execution.library_calls`).
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from blockarray.fusion.lower_parameters import (
    Argument,
    SlotNumber,
    SlotPointer,
    alignment_of,
    index_parameter,
)
from blockarray.fusion.plan import Product
from blockarray.graph.nodes import row_major_strides
from codegen.compiler import compile_kernel
from codegen.frontend.language import (
    Static,
    accumulator_dtype,
    cast,
    dot,
    extent,
    load,
    program_index,
    store,
    zeros,
)
from codegen.frontend.parameters import ExtentSlot, PointerSlot, StrideSlot
from codegen.frontend.signature import ArgumentKind, ArrayKind, Specialisation, StaticKind
from codegen.frontend.translator import translate
from codegen.ir.kernel import Kernel
from codegen.target import Target
from codegen.targets.backend import Backend, Memory

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
        lowered = lower_product(product, device.target)
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


def matrix_product(a, b, c, *, tile_m: Static, tile_n: Static, tile_k: Static):  # type: ignore[no-untyped-def]
    """``a @ b`` for stacks of matrices: one tile of `c` for each program."""
    stack = [program_index(axis) for axis in range(c.ndim - 2)]
    row = program_index(c.ndim - 2) * tile_m
    column = program_index(c.ndim - 1) * tile_n
    total = zeros((tile_m, tile_n), accumulator_dtype(a.dtype))
    for k in range(0, extent(a, -1), tile_k):
        left = load(a, (*stack, row, k), (tile_m, tile_k))
        right = load(b, (*stack, k, column), (tile_k, tile_n))
        total = dot(left, right, total)
    store(c, (*stack, row, column), cast(total, c.dtype))


def lower_product(product: Product, target: Target) -> LoweredProduct:
    """The kernel of a product, for a machine with these facts."""
    (*batch, m, n) = product.shape
    k = product.a_view[1][-1]
    tile = _tile(product, target.cores)
    stack = tuple(f"batch{axis}" for axis in range(len(batch)))
    extents = {**dict(zip(stack, batch, strict=True)), "m": m, "n": n, "k": k}
    views = {
        "a": (product.a, product.a_view, ("m", "k")),
        "b": (product.b, product.b_view, ("k", "n")),
        "c": (product.target, (0, product.shape, row_major_strides(product.shape)), ("m", "n")),
    }
    strides: dict[str, tuple[int, ...]] = {}
    kinds: list[tuple[str, ArgumentKind]] = []
    for name, (_, (offset, shape, steps), ends) in views.items():
        strides[name] = steps = tuple(0 if n == 1 else step for n, step in zip(shape, steps, strict=True))
        known = tuple(step if step in (0, 1) else None for step in steps)
        alignment = alignment_of(product.dtype, offset, steps)
        kinds.append((name, ArrayKind(product.dtype, (*stack, *ends), known, alignment)))
    sizes = {"tile_m": tile, "tile_n": tile, "tile_k": _SLICE}
    kinds += [(name, StaticKind(size)) for name, size in sizes.items()]
    divisors = tuple((name, index_parameter(name, extent).divisible) for name, extent in extents.items())
    found = translate(matrix_product, Specialisation(tuple(kinds), divisors, frozenset("ab")), target)
    arguments: list[Argument] = []
    for slot in found.slots:
        match slot:
            case ExtentSlot(name=name):
                arguments.append(SlotNumber(extents[name]))
            case PointerSlot(parameter=name):
                number, (offset, _, _), _ = views[name]
                arguments.append(SlotPointer(number, offset * product.dtype.itemsize))
            case StrideSlot(parameter=name, axis=axis):
                arguments.append(SlotNumber(strides[name][axis]))
    programs = prod(batch) * -(-m // tile) * -(-n // tile)
    return LoweredProduct(found.kernel, tuple(arguments), programs)


def _tile(product: Product, cores: int) -> int:
    """Large tiles read each operand less often; small ones keep all multiprocessors busy, and fit wide elements."""
    programs = prod(product.shape[:-2]) * prod(-(-length // _LARGE_TILE) for length in product.shape[-2:])
    is_wide = accumulator_dtype(product.dtype).itemsize > 4
    if is_wide and len(product.shape) > 2:
        return _SMALL_TILE // 2  # a stack of wide results passes through shared memory once more
    return _SMALL_TILE if is_wide or programs < cores else _LARGE_TILE
