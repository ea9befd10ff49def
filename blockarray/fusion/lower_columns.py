"""Programs that fold many columns at once: accumulators lie in memory beside the first cache's share of each row.

Rows are then read in long contiguous stretches, several at a time, where a program that holds its columns in registers would
touch a few cache lines of every row.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from blockarray.fusion.lower_analysis import FoldGroup, Pass, closure
from blockarray.fusion.lower_combine import identity, merge
from blockarray.fusion.lower_grid import ProgramPart
from blockarray.fusion.lower_stores import numbered, store_all
from blockarray.fusion.lower_values import Lowering, Values, Window
from blockarray.fusion.lower_whole import record, reduce_axes
from blockarray.fusion.plan import Fold
from codegen.ir.kernel import Value

Index = dict[int, Value]


@dataclass
class _Columns:
    """The lowering of one kernel with the strategy "columns"."""

    lowering: Lowering
    part: ProgramPart
    full_end: Value
    memory: dict[FoldGroup, tuple[Value, ...]] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The axis that the columns lie along."""
        return self.lowering.rank - 1

    def over_full_tiles(self, body: Callable[[Value, int], None]) -> None:
        """A loop over the program's columns, one tile at a time."""
        step = self.lowering.schedule.tile[-1]
        _loop(self.lowering, self.part.begin(self.last), self.full_end, step, lambda column: body(column, step))

    def over_the_rest(self, body: Callable[[Value, int], None]) -> None:
        """A loop over the columns that do not fill a tile, one register at a time."""
        step = self.lowering.schedule.tail[-1]
        _loop(self.lowering, self.full_end, self.part.end(self.last), step, lambda column: body(column, step))

    def window(self, column: Value, columns: int, index: Index, rows: int) -> Window:
        """Some rows of some columns."""
        schedule = self.lowering.schedule
        is_tail = columns < schedule.tile[-1]
        offsets, shape = [], []
        for axis, row in enumerate(self.lowering.plan.axes):
            if axis == self.last:
                offsets.append(column)
                shape.append(columns)
            elif row.reduced:
                offsets.append(index.get(axis, self.lowering.zero))
                shape.append(rows if axis == schedule.blocked else 1)
            else:
                offsets.append(self.part.begin(axis))
                shape.append(1)
        checked = tuple(is_tail and axis == self.last for axis in range(self.lowering.rank))
        return Window(tuple(offsets), tuple(shape), checked)

    def values(self, column: Value, columns: int, index: Index, rows: int, row: Pass | None) -> Values:
        """Values over a window; folds of earlier passes come from their accumulators."""
        values = Values(self.lowering, self.window(column, columns, index, rows), {})
        plan = self.lowering.plan
        writes = self.lowering.analysis.kept_writes
        targets = row.targets if row is not None else [write.value for write in writes]
        folds = {member: group for group in self.memory for member, _ in group.members}
        own = {member for group in row.groups for member, _ in group.members} if row is not None else set()
        needed = [number for number in closure(plan, targets, folds) if isinstance(plan.statements[number], Fold)]
        if needed:
            raise ValueError(f"kernel {plan.name}: folds {needed} are used in a pass before their own is over")
        used = set(closure(plan, targets)) & (folds.keys() - own)
        for group in dict.fromkeys(folds[number] for number in sorted(used)):
            # All columns have the same where nothing varies along them.
            count = columns if self.varies(group) else 1
            record(values, group, tuple(self.load(buffer, column, count) for buffer in self.memory[group]))
        return values

    def varies(self, group: FoldGroup) -> bool:
        """Whether a fold's results differ between columns."""
        return any(self.lowering.analysis.varies[operand][self.last] for operand in group.operands)

    def place(self, column: Value) -> tuple[Value, ...]:
        """Where a column's accumulator lies."""
        lowering = self.lowering
        local = lowering.builder.map("subtract", column, self.part.begin(self.last))
        return (*(lowering.zero,) * self.last, local)

    def load(self, buffer: Value, column: Value, columns: int) -> Value:
        """Accumulators of some columns."""
        shape = (*(1,) * self.last, columns)
        return self.lowering.builder.load(buffer, self.place(column), shape, (False,) * self.lowering.rank)

    def store(self, buffer: Value, column: Value, value: Value) -> None:
        """Accumulators of some columns."""
        self.lowering.builder.store(buffer, self.place(column), value, (False,) * self.lowering.rank)


def lower_columns(lowering: Lowering, part: ProgramPart) -> None:
    """For each pass: accumulators at their identity, rows added in; then what is written once for a column."""
    columns = _Columns(lowering, part, _end_of_full_tiles(lowering, part))
    for row in lowering.analysis.passes:
        if not row.is_empty:
            _begin(columns, row)
            _over_rows(columns, row)
    for loop in (columns.over_full_tiles, columns.over_the_rest):
        loop(lambda column, count: _finish(columns, column, count))


def _end_of_full_tiles(lowering: Lowering, part: ProgramPart) -> Value:
    builder, last = lowering.builder, lowering.rank - 1
    count = builder.map("subtract", part.end(last), part.begin(last))
    whole = builder.map("bitwise_and", count, builder.index(-lowering.schedule.tile[-1]))
    return builder.map("add", part.begin(last), whole)


def _loop(lowering: Lowering, begin: Value, end: Value, step: int, body: Callable[[Value], None]) -> None:
    def carry_nothing(index: Value) -> tuple[Value, ...]:
        body(index)
        return ()

    lowering.builder.loop(begin, end, step, (), carry_nothing)


def _begin(columns: _Columns, row: Pass) -> None:
    """Allocate the accumulators of a pass and set them to their identity, those of missing columns too."""
    lowering, builder = columns.lowering, columns.lowering.builder
    flat = (1,) * columns.last
    shape = (*flat, lowering.schedule.tile[-1])
    fresh: list[tuple[Value, Value]] = []
    for group in row.groups:
        kinds = lowering.fold_dtypes(group)
        columns.memory[group] = tuple(builder.allocate(dtype, (*flat, lowering.schedule.width)) for dtype in kinds)
        fresh += zip(columns.memory[group], identity(builder, group.combiner, kinds, shape), strict=True)

    def clear(place: Value) -> None:
        for buffer, neutral in fresh:
            offsets = (*(lowering.zero,) * columns.last, place)
            builder.store(buffer, offsets, neutral, (False,) * lowering.rank)

    if fresh:
        width = builder.index(lowering.schedule.width)
        _loop(lowering, lowering.zero, width, lowering.schedule.tile[-1], clear)


def _over_rows(columns: _Columns, row: Pass) -> None:
    """Several rows at a time where columns fill a tile, single rows for what is left of both."""
    lowering, part = columns.lowering, columns.part
    builder, blocked = lowering.builder, lowering.schedule.blocked
    outer = [axis for axis, axis_row in enumerate(lowering.plan.axes) if axis_row.reduced and axis != blocked]
    begin, end = part.begin(blocked), part.end(blocked)
    rows = lowering.schedule.tile[blocked]
    count = builder.map("subtract", end, begin)
    full = builder.map("add", begin, builder.map("bitwise_and", count, builder.index(-rows)))

    def full_columns(index: Index) -> None:
        def some_rows(first: Value, number: int) -> None:
            columns.over_full_tiles(lambda c, n: _add_rows(columns, row, c, n, {**index, blocked: first}, number))

        _loop(lowering, begin, full, rows, lambda first: some_rows(first, rows))
        if rows > 1:
            _loop(lowering, full, end, 1, lambda first: some_rows(first, 1))

    def other_columns(index: Index) -> None:
        def one_row(first: Value) -> None:
            columns.over_the_rest(lambda c, n: _add_rows(columns, row, c, n, {**index, blocked: first}, 1))

        _loop(lowering, begin, end, 1, one_row)

    _nest(columns, outer, {}, full_columns)
    _nest(columns, outer, {}, other_columns)


def _nest(columns: _Columns, axes: list[int], index: Index, body: Callable[[Index], None]) -> None:
    """Loops over the reduced axes before the blocked one."""
    if not axes:
        body(index)
        return
    first, *rest = axes
    begin, end = columns.part.begin(first), columns.part.end(first)
    _loop(columns.lowering, begin, end, 1, lambda number: _nest(columns, rest, {**index, first: number}, body))


def _add_rows(columns: _Columns, row: Pass, column: Value, count: int, index: Index, rows: int) -> None:
    lowering = columns.lowering
    values = columns.values(column, count, index, rows, row)
    values.compute(row.targets)
    width = (*(1,) * columns.last, count)
    results: list[tuple[Value, Value]] = []
    for group in row.groups:
        buffers = columns.memory[group]
        parts = reduce_axes(lowering, group, values.fold_operands(group), range(lowering.rank))
        parts = tuple(lowering.builder.broadcast(part, width) for part in parts)
        before = tuple(columns.load(buffer, column, count) for buffer in buffers)
        results += zip(buffers, merge(lowering.builder, group.combiner, before, parts), strict=True)
    for buffer, result in results:
        columns.store(buffer, column, result)
    store_all(lowering, values, numbered(lowering, row.writes))


def _finish(columns: _Columns, column: Value, count: int) -> None:
    writes = columns.lowering.analysis.kept_writes
    if writes:
        values = columns.values(column, count, {}, 1, None)
        store_all(columns.lowering, values, numbered(columns.lowering, writes))
