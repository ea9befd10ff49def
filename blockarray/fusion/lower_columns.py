"""Programs that fold many columns at once: accumulators lie in memory beside the first cache's share of each row.

Rows are then read in long contiguous stretches, several at a time, where a program that holds its columns in registers would
touch a few cache lines of every row.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from blockarray.fusion.lower_analysis import FoldGroup, Pass
from blockarray.fusion.lower_combine import identity, merge
from blockarray.fusion.lower_grid import ProgramPart
from blockarray.fusion.lower_stores import numbered, store_all
from blockarray.fusion.lower_values import Lowering, Values, Window
from blockarray.fusion.lower_whole import record, reduce_axes
from codegen.ir.kernel import Value


@dataclass
class _Columns:
    """The lowering of one kernel with the strategy "columns"."""

    lowering: Lowering
    part: ProgramPart
    row: Pass
    memory: dict[FoldGroup, tuple[Value, ...]] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """Columns that are worked on at a time."""
        return self.lowering.schedule.tile[-1]

    def over_columns(self, body: Callable[[Value, bool], None]) -> None:
        """A loop over the program's columns, and one turn for those that do not fill a tile."""
        builder, last = self.lowering.builder, self.lowering.rank - 1
        begin, end = self.part.begin(last), self.part.end(last)
        count = builder.map("subtract", end, begin)
        full = builder.map("add", begin, builder.map("bitwise_and", count, builder.index(-self.step)))
        _loop(self.lowering, begin, full, self.step, lambda column: body(column, False))
        _loop(self.lowering, full, end, self.step, lambda column: body(column, True))

    def window(self, column: Value, is_tail: bool, index: dict[int, Value], rows: int) -> Window:
        """Some rows of some columns."""
        schedule, last = self.lowering.schedule, self.lowering.rank - 1
        offsets, shape, checked = [], [], []
        for axis, row in enumerate(self.lowering.plan.axes):
            if axis == last:
                offsets.append(column)
                shape.append(self.step)
                checked.append(is_tail)
            elif row.reduced:
                offsets.append(index.get(axis, self.lowering.zero))
                shape.append(rows if axis == schedule.blocked and axis in index else 1)
                checked.append(False)
            else:
                offsets.append(self.part.begin(axis))
                shape.append(1)
                checked.append(False)
        return Window(tuple(offsets), tuple(shape), tuple(checked))

    def place(self, column: Value) -> tuple[Value, ...]:
        """Where a column's accumulator lies."""
        lowering = self.lowering
        local = lowering.builder.map("subtract", column, self.part.begin(lowering.rank - 1))
        return (*(lowering.zero,) * (lowering.rank - 1), local)

    def load(self, buffer: Value, column: Value) -> Value:
        """Accumulators of a tile's columns."""
        shape = (*(1,) * (self.lowering.rank - 1), self.step)
        return self.lowering.builder.load(buffer, self.place(column), shape, (False,) * self.lowering.rank)

    def store(self, buffer: Value, column: Value, value: Value) -> None:
        """Accumulators of a tile's columns."""
        self.lowering.builder.store(buffer, self.place(column), value, (False,) * self.lowering.rank)


def lower_columns(lowering: Lowering, part: ProgramPart) -> None:
    """Accumulators at their identity, rows added in, results written."""
    schedule = lowering.schedule
    (row,) = (row for row in lowering.analysis.passes if not row.is_empty)
    columns = _Columns(lowering, part, row)
    _begin(columns)
    axes = [axis for axis, axis_row in enumerate(lowering.plan.axes) if axis_row.reduced and axis != schedule.blocked]
    _over_rows(columns, axes, {})
    columns.over_columns(lambda column, is_tail: _finish(columns, column, is_tail))


def _loop(lowering: Lowering, begin: Value, end: Value, step: int, body: Callable[[Value], None]) -> None:
    def carry_nothing(index: Value) -> tuple[Value, ...]:
        body(index)
        return ()

    lowering.builder.loop(begin, end, step, (), carry_nothing)


def _begin(columns: _Columns) -> None:
    lowering, builder = columns.lowering, columns.lowering.builder
    flat = (1,) * (lowering.rank - 1)
    for group in columns.row.groups:
        columns.memory[group] = tuple(
            builder.allocate(dtype, (*flat, lowering.schedule.width)) for dtype in lowering.fold_dtypes(group)
        )

    def clear(column: Value, _is_tail: bool) -> None:
        for group, buffers in columns.memory.items():
            shape = (*flat, columns.step)
            neutral = identity(builder, group.combiner, lowering.fold_dtypes(group), shape)
            for buffer, value in zip(buffers, neutral, strict=True):
                columns.store(buffer, column, value)

    columns.over_columns(clear)


def _over_rows(columns: _Columns, axes: list[int], index: dict[int, Value]) -> None:
    lowering, part = columns.lowering, columns.part
    builder, blocked = lowering.builder, lowering.schedule.blocked
    if axes:
        first, *rest = axes
        _loop(
            lowering,
            part.begin(first),
            part.end(first),
            1,
            lambda number: _over_rows(columns, rest, {**index, first: number}),
        )
        return
    begin, end = part.begin(blocked), part.end(blocked)
    rows = lowering.schedule.tile[blocked]
    count = builder.map("subtract", end, begin)
    full = builder.map("add", begin, builder.map("bitwise_and", count, builder.index(-rows)))
    _loop(lowering, begin, full, rows, lambda number: _add_rows(columns, {**index, blocked: number}, rows))
    if rows > 1:
        _loop(lowering, full, end, 1, lambda number: _add_rows(columns, {**index, blocked: number}, 1))


def _add_rows(columns: _Columns, index: dict[int, Value], rows: int) -> None:
    lowering = columns.lowering

    def add(column: Value, is_tail: bool) -> None:
        values = Values(lowering, columns.window(column, is_tail, index, rows), {})
        values.compute(columns.row.targets)
        sums = []
        for group, buffers in columns.memory.items():
            parts = reduce_axes(lowering, group, values.fold_operands(group), range(lowering.rank))
            width = (*(1,) * (lowering.rank - 1), columns.step)
            parts = tuple(lowering.builder.broadcast(part, width) for part in parts)
            before = tuple(columns.load(buffer, column) for buffer in buffers)
            sums.append((buffers, merge(lowering.builder, group.combiner, before, parts)))
        for buffers, results in sums:
            for buffer, result in zip(buffers, results, strict=True):
                columns.store(buffer, column, result)
        store_all(lowering, values, numbered(lowering, columns.row.writes))

    columns.over_columns(add)


def _finish(columns: _Columns, column: Value, is_tail: bool) -> None:
    lowering = columns.lowering
    values = Values(lowering, columns.window(column, is_tail, {}, 1), {})
    for group, buffers in columns.memory.items():
        record(values, group, tuple(columns.load(buffer, column) for buffer in buffers))
    store_all(lowering, values, numbered(lowering, lowering.analysis.kept_writes))
