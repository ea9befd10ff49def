"""Programs that hold their whole part of the reduced axes at once: elementwise work, and rows that fit into registers."""

from blockarray.fusion.lower_analysis import FoldGroup
from blockarray.fusion.lower_grid import ProgramPart
from blockarray.fusion.lower_stores import store_all
from blockarray.fusion.lower_values import Lowering, Values, Window
from codegen.ir.kernel import Value


def lower_whole(lowering: Lowering, part: ProgramPart) -> None:
    """Straight code: loads, folds in the order in which they depend on one another, stores."""
    schedule, plan = lowering.schedule, lowering.plan
    reduced = [axis for axis, row in enumerate(plan.axes) if row.reduced]
    # A row of exactly a tile's length needs no checks and no masks; other lengths get other code.
    exact = [axis for axis in reduced if plan.axes[axis].extent == schedule.tile[axis]]
    window = Window(
        offsets=tuple(part.begin(axis) for axis in range(lowering.rank)),
        shape=schedule.tile,
        checked=tuple(extent > 1 and axis not in exact for axis, extent in enumerate(schedule.tile)),
        ends={axis: part.end(axis) for axis in reduced},
    )
    values = Values(lowering, window, {})
    for row in lowering.analysis.passes:
        for group in row.groups:
            values.compute(group.operands)
            fold_whole(lowering, values, group)
    writes = list(enumerate(plan.writes))
    store_all(lowering, values, writes)


def fold_whole(lowering: Lowering, values: Values, group: FoldGroup) -> None:
    """Fold a window along all reduced axes; the results become known."""
    parts = values.fold_operands(group)
    record(values, group, reduce_axes(lowering, group, parts, range(lowering.rank)))


def reduce_axes(
    lowering: Lowering, group: FoldGroup, parts: tuple[Value, ...], axes: range | tuple[int, ...]
) -> tuple[Value, ...]:
    """Fold blocks along those of `axes` that are reduced and longer than 1, the innermost first."""
    for axis in reversed(axes):
        if lowering.plan.axes[axis].reduced and parts[0].block.shape[axis] > 1:
            parts = lowering.builder.reduce(group.combiner, parts, axis)
    return parts


def record(values: Values, group: FoldGroup, parts: tuple[Value, ...]) -> None:
    """State what a fold came to."""
    for statement, output in group.members:
        values.known[statement] = parts[output]
