"""What a graph plan means: its steps run with NumPy, one kernel after the other, without any compiler.

Kernels run in parts of their kept axes, each part reading before it writes, as programs do: a kernel that reads what another of its
programs writes is found out.
"""

from collections.abc import Mapping, Sequence
from itertools import product as combinations
from math import prod

import numpy as np

from blockarray.fusion.plan import (
    Apply,
    Convert,
    Fold,
    Fresh,
    GraphPlan,
    Inherited,
    KernelPlan,
    Leaf,
    Literal,
    Number,
    Position,
    Product,
    Read,
    RunningFold,
    Scattering,
    Statement,
    Take,
)
from blockarray.graph.reference import apply_function, convert, fold, product, running_fold, scatter, strided_view

Array = np.ndarray
Memory = list[Array]


def run(
    plan: GraphPlan, leaves: Sequence[Array], take_over: bool = True, parts: int = 2, backwards: bool = False
) -> dict[int, Array]:
    """Run a plan.

    Parameters
    ----------
    plan : GraphPlan
    leaves : sequence of numpy.ndarray
        Values of the recording's leaves, constants as arrays of shape (). They are not changed.
    take_over : bool
        Whether inherited memory is the leaf's own (as when nothing else can read it), or a copy of it.
    parts : int
        In how many parts a kernel is run along each kept axis.
    backwards : bool
        Whether the parts run from the last to the first.

    Returns
    -------
    dict from int to numpy.ndarray
        For each result the flat value, by the number of its recorded node.
    """
    own = [np.array(leaf).reshape(-1) for leaf in leaves]
    memory: Memory = []
    for value in plan.values:
        match value:
            case Leaf(position=position):
                memory.append(own[position])
            case Inherited(position=position):
                memory.append(own[position] if take_over else own[position].copy())
            case Fresh(dtype=dtype, elements=elements):
                # Not zeros: an element that no step writes must show.
                memory.append(np.full(elements, 77, dtype.numpy))
    for step in plan.steps:
        if isinstance(step, Product):
            run_product(step, memory)
        elif isinstance(step, Scattering):
            value = None if step.value is None else memory[step.value]
            scatter(memory[step.target], memory[step.places], value, step.function, step.working)
        else:
            _run_kernel(step, memory, parts, backwards)
    return {
        value.result: memory[number]
        for number, value in enumerate(plan.values)
        if isinstance(value, Fresh | Inherited) and value.result is not None
    }


def run_product(step: Product, memory: Sequence[Array] | Mapping[int, Array]) -> None:
    """Compute a matrix product step; `memory` has the flat values by number."""
    a, b = (strided_view(memory[number], *view) for number, view in ((step.a, step.a_view), (step.b, step.b_view)))
    memory[step.target].reshape(step.shape)[...] = product(a, b)


def _run_kernel(kernel: KernelPlan, memory: Memory, parts: int, backwards: bool) -> None:
    pieces = []
    for axis in kernel.axes:
        along = np.arange(axis.extent, dtype=np.int64)
        count = 1 if axis.reduced else max(min(parts, axis.extent), 1)
        pieces.append(np.array_split(along, count))
    programs = list(combinations(*pieces))
    for points in reversed(programs) if backwards else programs:
        _run_part(kernel, memory, points)


def _run_part(kernel: KernelPlan, memory: Memory, points: tuple[Array, ...]) -> None:
    values: list[Array] = []
    for statement in kernel.statements:
        values.append(_value(statement, kernel, values, memory, points))
    reduced = [axis for axis, one in enumerate(kernel.axes) if one.reduced]
    for write in kernel.writes:
        value = values[write.value]
        shape = []
        for axis, (stride, along) in enumerate(zip(write.strides, points, strict=True)):
            if stride == 0 and len(along) > 1 and axis not in reduced:
                raise ValueError(f"{kernel.name}: a write does not move along axis {axis}, which is not folded over")
            shape.append(len(along) if stride else min(len(along), 1) if axis not in reduced else 1)
        if any(size > wanted for size, wanted in zip(value.shape, shape, strict=True)):
            raise ValueError(f"{kernel.name}: a value of shape {value.shape} is written to points {tuple(shape)}")
        places = np.broadcast_to(_places(write.offset, write.strides, points), shape)
        target = memory[write.target]
        _check_inside(kernel, places, target)
        target[places] = np.broadcast_to(value, shape)


def _places(offset: int, strides: tuple[int, ...], points: tuple[Array, ...]) -> Array:
    rank = len(points)
    total = np.full((1,) * rank, offset, np.int64)
    for axis, (stride, along) in enumerate(zip(strides, points, strict=True)):
        if stride:
            total = total + (stride * along).reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))
    return total


def _check_inside(kernel: KernelPlan, places: Array, target: Array) -> None:
    if places.size and not (0 <= places.min() and places.max() < target.size):
        raise IndexError(
            f"{kernel.name}: elements {places.min()} to {places.max()} of an array of {target.size} elements are accessed"
        )


def _load(kernel: KernelPlan, places: Array, source: Array) -> Array:
    if source.size == 0:
        if places.size:
            raise IndexError(f"{kernel.name}: {places.size} elements of an array without elements are read")
        return np.zeros(places.shape, source.dtype)
    _check_inside(kernel, places, source)
    return source[places]


def _value(
    statement: Statement, kernel: KernelPlan, values: list[Array], memory: Memory, points: tuple[Array, ...]
) -> Array:
    match statement:
        case Read(source=source, offset=offset, strides=strides):
            return _load(kernel, _places(offset, strides, points), memory[source])
        case Number(source=source):
            return memory[source].reshape((1,) * len(points))
        case Literal(number=number, dtype=dtype):
            return np.full((1,) * len(points), number, dtype.numpy)
        case Position(offset=offset, strides=strides):
            return _places(offset, strides, points)
        case Apply(function=function, operands=operands, dtype=dtype):
            return apply_function(function, [values[one] for one in operands], dtype)
        case Convert(operand=operand, dtype=dtype):
            return convert(values[operand], dtype)
        case Fold():
            return _folded(statement, kernel, values, points)
        case RunningFold(combiner=combiner, operand=operand):
            full = _along_reduced(values[operand], kernel, points)
            return running_fold(combiner, full, len(points) - 1)
        case Take():
            places = _places(statement.offset, statement.rest, points)
            for one, stride in zip(statement.positions, statement.position_strides, strict=True):
                places = places + values[one] * stride
            return _load(kernel, places, memory[statement.source])
    raise TypeError(f"{type(statement).__name__} is no statement of a kernel plan")


def _along_reduced(value: Array, kernel: KernelPlan, points: tuple[Array, ...]) -> Array:
    shape = tuple(
        len(along) if axis.reduced else size for size, along, axis in zip(value.shape, points, kernel.axes, strict=True)
    )
    return np.broadcast_to(value, shape)


def _folded(statement: Fold, kernel: KernelPlan, values: list[Array], points: tuple[Array, ...]) -> Array:
    axes = tuple(axis for axis, one in enumerate(kernel.axes) if one.reduced)
    operand = _along_reduced(values[statement.operands[0]], kernel, points)
    if len(statement.operands) == 1:
        found = fold(statement.combiner, operand, axes, statement.output)
        return found if found.dtype == statement.dtype.numpy else convert(found, statement.dtype)
    positions = np.broadcast_to(_along_reduced(values[statement.operands[1]], kernel, points), operand.shape)
    kept = [axis for axis in range(operand.ndim) if axis not in axes]
    rows = prod(operand.shape[axis] for axis in kept)
    order = (*kept, *axes)
    flat = operand.transpose(order).reshape(rows, -1)
    numbers = positions.transpose(order).reshape(rows, -1)
    # The order of the axes in the kernel is not that of the positions: sort, then the first of equals wins.
    by_position = np.argsort(numbers, axis=1, kind="stable")
    flat = np.take_along_axis(flat, by_position, axis=1)
    numbers = np.take_along_axis(numbers, by_position, axis=1)
    best = getattr(np, statement.combiner)(flat, axis=1)[:, None]
    found = np.take_along_axis(numbers if statement.output == 1 else flat, best, axis=1)
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(operand.shape))
    return convert(found.reshape(shape), statement.dtype)
