"""Stores of a plan's writes over one window."""

from collections.abc import Iterable, Sequence

from blockarray.fusion.lower_analysis import is_full
from blockarray.fusion.lower_values import Lowering, Values
from blockarray.fusion.plan import Write
from codegen.ir.kernel import Value


def numbered(lowering: Lowering, writes: Iterable[Write]) -> list[tuple[int, Write]]:
    """Writes with their number among the plan's."""
    wanted = list(writes)
    return [(number, write) for number, write in enumerate(lowering.plan.writes) if write in wanted]


def store_all(lowering: Lowering, values: Values, writes: Sequence[tuple[int, Write]]) -> None:
    """Compute what is written, all of it before the first store: a target may be the memory that another value reads."""
    values.compute(write.value for _, write in writes)
    for number, write in writes:
        _store(lowering, values, number, write)


def _store(lowering: Lowering, values: Values, number: int, write: Write) -> None:
    window = values.window
    full = is_full(lowering.plan, lowering.analysis.varies, write)
    offsets: list[Value] = []
    shape: list[int] = []
    checked: list[bool] = []
    for axis, (row, stride) in enumerate(zip(lowering.plan.axes, write.strides, strict=True)):
        moves = stride != 0 and (full or not row.reduced)
        offset = window.offsets[axis] if moves else lowering.zero
        if row.piece and not full:
            offset = lowering.piece_numbers[axis]
        offsets.append(offset)
        shape.append(window.shape[axis] if moves else 1)
        checked.append(moves and window.checked[axis])
    value = values.expanded(write.value, tuple(shape))
    lowering.builder.store(lowering.parameters.targets[number], offsets, value, tuple(checked))
