"""The layout of a kernel whose blocks are given: how its tile is spread over lanes and registers."""

from collections.abc import Iterator, Sequence
from math import prod

from codegen import dtypes
from codegen.ir.layout import Layout
from codegen.ir.operations import Allocate, Dot, Operation
from codegen.ir.types import BlockType
from codegen.schedules.schedule import power_of_two_to
from codegen.target import Target

_LANES = 256
_FEWEST_LANES = 32
_RUN_BYTES = 16
# Elements of the largest block that a lane should hold at most, if there are more lanes to be had.
_ELEMENTS_PER_LANE = 32
# Lanes along both axes of a product, and neighbours of the result that each holds.
_PRODUCT_LANES = 16
_PRODUCT_RUN = 4


def layout_of_blocks(operations: Sequence[Operation], rank: int, target: Target) -> Layout:
    """A layout for a kernel with these operations and tiles of `rank` axes."""
    blocks = [
        block
        for operation in _all(operations)
        if not isinstance(operation, Allocate)
        for value in operation.results
        if isinstance(block := value.type, BlockType) and block.shape
    ]
    ones = (1,) * rank
    # Positions in int64 are for masks and addresses; what is computed with decides.
    data = [block for block in blocks if block.dtype is not dtypes.int64] or blocks
    widest = max((block.dtype.bits for block in data), default=8)
    if target.lanes == 1:
        return Layout(ones, ones, max(1, target.register_bits // widest))
    products = [operation.result.block.shape for operation in _all(operations) if isinstance(operation, Dot)]
    if products:
        return _for_products(products, rank)
    tile = [1] * rank
    for block in blocks:
        for axis, extent in enumerate(reversed(block.shape)):
            tile[rank - 1 - axis] = max(tile[rank - 1 - axis], extent)
    return _for_tile(tile, min((block.dtype.bits for block in data if block.dtype.bits > 8), default=32), target)


def _for_tile(tile: list[int], bits: int, target: Target) -> Layout:
    """Runs of neighbours along the last axis, lanes from the last axis on."""
    elements = prod(tile)
    run = min(tile[-1], _RUN_BYTES * 8 // bits, max(1, elements // _FEWEST_LANES))
    lanes = max(_FEWEST_LANES, min(_LANES, elements // run))
    lanes = min(target.max_lanes_per_program, max(lanes, power_of_two_to(max(1, elements // _ELEMENTS_PER_LANE))))
    spread = [1] * len(tile)
    for axis in reversed(range(len(tile))):
        held = run if axis == len(tile) - 1 else 1
        spread[axis] = max(1, min(lanes, tile[axis] // held))
        lanes //= spread[axis]
    # Lanes that have nothing to hold keep copies: a program is never less than a warp.
    spread[0] *= max(1, _FEWEST_LANES // prod(spread))
    return Layout(tuple(spread), (*(1,) * (len(tile) - 1), run))


def _for_products(products: Sequence[tuple[int, ...]], rank: int) -> Layout:
    """Squares of the result for each lane, all lanes along both axes."""
    lanes, run = [1] * rank, [1] * rank
    for axis in (-2, -1):
        extent = max(shape[axis] for shape in products)
        run[axis] = min(_PRODUCT_RUN, max(1, extent // _PRODUCT_LANES))
        lanes[axis] = min(_PRODUCT_LANES, max(1, extent // run[axis]))
    lanes[-1] *= max(1, _FEWEST_LANES // prod(lanes))
    return Layout(tuple(lanes), tuple(run))


def _all(operations: Sequence[Operation]) -> Iterator[Operation]:
    for operation in operations:
        yield operation
        for body in operation.bodies:
            yield from _all(body.operations)
