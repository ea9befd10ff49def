"""What a matrix product asks of its kernel: how its operands lie in memory, and the schedule that follows."""

from math import gcd, prod

from blockarray.fusion.lower_parameters import BUFFER_ALIGNMENT
from blockarray.fusion.plan import Product
from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.products import OperandFacts, operand_facts
from codegen.ir.types import BufferType
from codegen.schedules.matmul import MatmulProblem, MatmulSchedule, choose_matmul
from codegen.target import Target

# What rows of an operand with a single row are apart, so that a tensor map can state it: any multiple of 16 bytes does.
_FRIENDLY_STRIDE = 8

View = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Offset, shape and strides of an operand, in elements."""


def schedule_of(product: Product, target: Target) -> MatmulSchedule:
    """The tiles of a product on a target, and why."""
    (*batch, m, n) = product.shape
    k = product.a_view[1][-1]
    rank = len(product.shape)

    def facts(view: View, inner_axis: int, outer_axis: int) -> OperandFacts:
        return operand_facts(buffer_type_of(product.dtype, friendly_view(view), ("",) * rank), inner_axis, outer_axis)

    a, b = facts(product.a_view, rank - 1, rank - 2), facts(product.b_view, rank - 2, rank - 1)
    return choose_matmul(MatmulProblem(prod(batch), m, n, k, a, b, total_dtype(product.dtype)), target)


def describe_schedule(product: Product, target: Target) -> str:
    """Who computes a product on a target and how, for people."""
    schedule = schedule_of(product, target)
    return "NumPy's BLAS" if target.lanes == 1 and not schedule.instruction else str(schedule)


def friendly_view(view: View) -> View:
    """The view with strides along axes of a single element that change nothing and suit tensor maps.

    Batch axes repeat their element; of a matrix with a single row (or column) neighbours lie side by side along the other axis.
    """
    offset, shape, strides = view
    changed = [0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)]
    for axis, other in ((-1, -2), (-2, -1)):
        if shape[axis] != 1:
            continue
        if strides[other] == 1 or shape[other] == 1:
            changed[axis] = _FRIENDLY_STRIDE * -(-shape[other] // _FRIENDLY_STRIDE)
            changed[other] = 1
        else:
            changed[axis] = 1
        break
    return offset, shape, tuple(changed)


def buffer_type_of(dtype: DType, view: View, extents: tuple[str | int, ...]) -> BufferType:
    """The type of a buffer that is seen through a view; strides of 0 and 1 are part of the code."""
    offset, _, strides = view
    known = tuple(stride if stride in (0, 1) else None for stride in strides)
    return BufferType(dtype, extents, known, _alignment(dtype, offset, strides))


def _alignment(dtype: DType, offset: int, strides: tuple[int, ...]) -> int:
    """Bytes that divide the pointer and every stride but one of 1; no more than an element where one goes backwards.

    Copies of several elements count on rows that go forwards.
    """
    if min(strides) < 0:
        return dtype.itemsize
    outer = list(strides)
    if 1 in outer[-2:]:
        outer.remove(1)
    return max(dtype.itemsize, gcd(BUFFER_ALIGNMENT, offset * dtype.itemsize, *(one * dtype.itemsize for one in outer)))


def total_dtype(dtype: DType) -> DType:
    """What products are summed in: sums of narrow integers wrap around to the same bits however wide they were."""
    if dtype.is_half:
        return dtypes.float32
    return dtypes.int32 if dtype.bits < 32 else dtype
