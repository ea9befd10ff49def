"""Programs that go over the reduced axes tile by tile, in as many passes as folds depend on one another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from blockarray.fusion.lower_analysis import FoldGroup, Pass, closure, takes_elements
from blockarray.fusion.lower_combine import finds_positions, gather, identity, merge, merge_later
from blockarray.fusion.lower_grid import ProgramPart
from blockarray.fusion.lower_stores import numbered, store_all
from blockarray.fusion.lower_values import Lowering, Values, Window
from blockarray.fusion.lower_whole import record, reduce_axes
from blockarray.fusion.plan import Fold, Position, RunningFold
from codegen.ir.kernel import Value

Blocks = tuple[Value, ...]


@dataclass(frozen=True)
class _State:
    """What a loop carries: accumulators of full tiles, of the tiles behind them, and running folds."""

    main: tuple[Blocks, ...]
    tail: tuple[Blocks, ...]
    running: Blocks

    def flat(self) -> Blocks:
        """All blocks in order."""
        blocks = [block for partial in (*self.main, *self.tail) for block in partial]
        return (*blocks, *self.running)

    def filled(self, blocks: Sequence[Value]) -> "_State":
        """A state of the same form with other blocks."""
        remaining = iter(blocks)
        main = tuple(tuple(next(remaining) for _ in partial) for partial in self.main)
        tail = tuple(tuple(next(remaining) for _ in partial) for partial in self.tail)
        return _State(main, tail, tuple(remaining))


class StreamingRows:
    """The lowering of one kernel with the strategy "streaming".

    Attributes
    ----------
    lowering : Lowering
    part : ProgramPart
    row_values : Values
        What is the same along the reduced axes; folds come to it when their pass is over.
    kept : dict of int to Value
        Memory with values of the row that earlier passes computed.
    allocated : dict of int to Value
        The same, and that of the pass that is being lowered.
    """

    def __init__(self, lowering: Lowering, part: ProgramPart) -> None:
        self.lowering = lowering
        self._builder = lowering.builder
        self._schedule = lowering.schedule
        self.part = part
        self._axes = [axis for axis, row in enumerate(lowering.plan.axes) if row.reduced]
        self.row_values = Values(lowering, self._row_window(), {})
        self.kept: dict[int, Value] = {}
        self.allocated: dict[int, Value] = {}
        self._full_end = self._end_of_full_tiles()

    def lower(self) -> None:
        """All passes, then what is written once for a row."""
        for row in self.lowering.analysis.passes:
            if not row.is_empty:
                self._lower_pass(row)
        store_all(self.lowering, self.row_values, numbered(self.lowering, self.lowering.analysis.kept_writes))

    def _end_of_full_tiles(self) -> Value:
        """Where the last tile that does not reach beyond the blocked axis' end stops."""
        builder, blocked = self._builder, self._schedule.blocked
        begin, end, tile = self.part.begin(blocked), self.part.end(blocked), self._schedule.tile[blocked]
        if begin is self.lowering.zero:
            return builder.map("bitwise_and", end, builder.index(-tile))
        return self._end_of_whole(begin, end, tile)

    def _row_window(self) -> Window:
        """The program's part of the kept axes; the reduced axes do not matter."""
        tile, zero = self._schedule.tile, self.lowering.zero
        reduced = set(self._axes)
        return Window(
            offsets=tuple(zero if axis in reduced else self.part.begin(axis) for axis in range(len(tile))),
            shape=tuple(1 if axis in reduced else extent for axis, extent in enumerate(tile)),
            checked=tuple(axis not in reduced and extent > 1 for axis, extent in enumerate(tile)),
        )

    def window(self, index: dict[int, Value], tile: tuple[int, ...], is_tail: bool) -> Window:
        """One tile of the domain; `index` says where it begins on the reduced axes."""
        blocked = self._schedule.blocked
        row = self.row_values.window
        return replace(
            row,
            offsets=tuple(index.get(axis, offset) for axis, offset in enumerate(row.offsets)),
            shape=tuple(tile[axis] if axis in index else extent for axis, extent in enumerate(row.shape)),
            checked=tuple(
                is_tail and tile[axis] > 1 if axis == blocked else check for axis, check in enumerate(row.checked)
            ),
            ends={blocked: self.part.end(blocked)} if is_tail else {},
        )

    def _lower_pass(self, row: Pass) -> None:
        keep = row.keep if self._schedule.kept_elements else ()
        row = replace(row, keep=keep)
        self._prepare_row_values(row)
        for statement in keep:
            self._allocate_kept(statement)
        running = self._running_folds(row)
        state = self._first_state(row, running)
        outer = [axis for axis in self._axes if axis != self._schedule.blocked]
        turn = _Turn(self, row, running)
        state = self._nest(outer, {}, state, turn)
        for number, group in enumerate(row.groups):
            record(self.row_values, group, self._folded(group, state, number))
        for statement in row.keep:
            self.kept[statement] = self.allocated[statement]

    def _prepare_row_values(self, row: Pass) -> None:
        """Compute what does not vary along the reduced axes once, before the loops."""
        lowering = self.lowering
        available = {*self.row_values.known, *self.kept}
        needed = closure(lowering.plan, row.targets, available)
        self.row_values.compute(
            number
            for number in needed
            if not lowering.analysis.full[number] and not isinstance(lowering.plan.statements[number], Fold)
        )

    def _allocate_kept(self, statement: int) -> None:
        blocked = self._schedule.blocked
        varies = self.lowering.analysis.varies[statement]
        shape = tuple(
            self._schedule.kept_elements if axis == blocked else extent if varies[axis] else 1
            for axis, extent in enumerate(self._schedule.tile)
        )
        self.allocated[statement] = self._builder.allocate(self.lowering.dtype(statement), shape, f"kept{statement}")

    def _running_folds(self, row: Pass) -> tuple[int, ...]:
        plan = self.lowering.plan
        available = {*self.row_values.known, *self.kept}
        needed = closure(plan, row.targets, available)
        return tuple(number for number in needed if isinstance(plan.statements[number], RunningFold))

    def _first_state(self, row: Pass, running: tuple[int, ...]) -> _State:
        main = tuple(self._fresh(group, self._schedule.tile) for group in row.groups)
        tail = () if self._shares_accumulators else tuple(self._fresh(g, self._schedule.tail) for g in row.groups)
        return _State(main, tail, tuple(self.row_values.first_carry(number) for number in running))

    @property
    def _shares_accumulators(self) -> bool:
        """Whether tiles and what is left behind them are folded into the same accumulators."""
        return not self._schedule.deferred or self._schedule.tile == self._schedule.tail

    def _fresh(self, group: FoldGroup, tile: tuple[int, ...]) -> Blocks:
        """Accumulators that nothing has been added to."""
        varies = [self.lowering.analysis.varies[operand] for operand in group.operands]
        blocked = self._schedule.blocked
        shape = []
        for axis, row in enumerate(self.lowering.plan.axes):
            if row.reduced:
                shape.append(tile[axis] if axis == blocked and self._schedule.deferred else 1)
            else:
                shape.append(tile[axis] if any(flags[axis] for flags in varies) else 1)
        blocks = identity(self._builder, group.combiner, self.lowering.fold_dtypes(group), tuple(shape))
        if not self.is_in_order(group):
            return blocks
        return (blocks[0], self._first_positions(group, tuple(shape)))

    def is_in_order(self, group: FoldGroup) -> bool:
        """Whether a fold looks for a position, and the loops meet positions in ascending order."""
        position = self.lowering.plan.statements[group.operands[-1]]
        if not finds_positions(group.combiner) or not isinstance(position, Position):
            return False
        reach = 1
        for axis in reversed(self._axes):
            if position.strides[axis] < reach:
                return False
            reach = position.strides[axis] * self.lowering.plan.axes[axis].extent
        return True

    def _first_positions(self, group: FoldGroup, shape: tuple[int, ...]) -> Value:
        """Positions of the first elements that go into each accumulator."""
        begins = {axis: self.part.begin(axis) for axis in self._axes}
        window = self.window(begins, shape, is_tail=False)
        values = Values(self.lowering, replace(window, shape=shape), {})
        values.compute(group.operands[1:])
        return values.expanded(group.operands[1], shape)

    def _nest(self, axes: list[int], index: dict[int, Value], state: _State, turn: "_Turn") -> _State:
        """Loops over all reduced axes but the blocked one, then its own."""
        if not axes:
            return self._blocked_loops(index, state, turn)
        first, *rest = axes
        results = self._builder.loop(
            self.part.begin(first),
            self.part.end(first),
            1,
            state.flat(),
            lambda number, *carried: self._nest(rest, {**index, first: number}, state.filled(carried), turn).flat(),
            f"index{first}",
        )
        return state.filled(results)

    def _blocked_loops(self, index: dict[int, Value], state: _State, turn: "_Turn") -> _State:
        """The loop over full tiles, then one over what is left."""
        blocked = self._schedule.blocked
        begin, end = self.part.begin(blocked), self.part.end(blocked)
        tile = self._schedule.tile[blocked]
        if tile == 1:
            return self._loop(begin, end, 1, state, lambda number, inner: turn.main({**index, blocked: number}, inner))
        tail = state.tail
        state = replace(state, tail=())
        if self._schedule.windows > 1:
            stride = tile * self._schedule.windows
            several_end = self._end_of_whole(begin, self._full_end, stride)
            state = self._full_tiles(index, begin, several_end, stride, state, turn.row, turn.several)
            begin = several_end
        state = self._full_tiles(index, begin, self._full_end, tile, state, turn.row, turn.main)
        main = state.main
        if tail:
            state = _State((), tail, state.running)
        step = self._schedule.tail[blocked]
        state = self._loop(
            self._full_end, end, step, state, lambda number, inner: turn.tail({**index, blocked: number}, inner)
        )
        return replace(state, main=main) if tail else state

    def _end_of_whole(self, begin: Value, end: Value, step: int) -> Value:
        """Where the last whole step between two indices stops; steps are powers of two."""
        builder = self._builder
        count = builder.map("bitwise_and", builder.map("subtract", end, begin), builder.index(-step))
        return builder.map("add", begin, count)

    def _full_tiles(
        self,
        index: dict[int, Value],
        begin: Value,
        end: Value,
        step: int,
        state: _State,
        row: Pass,
        turn: Callable[[dict[int, Value], _State], _State],
    ) -> _State:
        """The loop over full tiles. Some turns go into fresh accumulators, which are then added to the total: short chains of
        roundings."""
        builder, blocked, steps = self._builder, self._schedule.blocked, self._schedule.steps
        if steps == 1 or not state.main:
            return self._loop(begin, end, step, state, lambda number, inner: turn({**index, blocked: number}, inner))
        combiners = [group.combiner for group in row.groups]

        def some_turns(first: Value, outer: _State) -> _State:
            limit = builder.map("minimum", builder.map("add", first, builder.index(step * steps)), end)
            fresh = replace(outer, main=tuple(self._fresh(group, self._schedule.tile) for group in row.groups))
            inner = self._loop(first, limit, step, fresh, lambda number, state: turn({**index, blocked: number}, state))
            merged = tuple(
                merge(builder, name, total, part)
                for name, total, part in zip(combiners, outer.main, inner.main, strict=True)
            )
            return replace(inner, main=merged)

        return self._loop(begin, end, step * steps, state, some_turns)

    def _loop(
        self, begin: Value, end: Value, step: int, state: _State, body: Callable[[Value, _State], _State]
    ) -> _State:
        results = self._builder.loop(
            begin, end, step, state.flat(), lambda number, *carried: body(number, state.filled(carried)).flat()
        )
        return state.filled(results)

    def _folded(self, group: FoldGroup, state: _State, number: int) -> Blocks:
        """What the accumulators of a fold come to."""
        axes = range(self.lowering.rank)
        result = reduce_axes(self.lowering, group, state.main[number], axes)
        if not state.tail:
            return result
        rest = reduce_axes(self.lowering, group, state.tail[number], axes)
        return merge(self._builder, group.combiner, result, rest)


class _Turn:
    """The body of the innermost loop."""

    def __init__(self, rows: StreamingRows, row: Pass, running: tuple[int, ...]) -> None:
        self._rows = rows
        self._lowering = rows.lowering
        self._running = running
        self.row = row

    def main(self, index: dict[int, Value], state: _State) -> _State:
        """A full tile."""
        accumulators, running = self._turn(index, self._lowering.schedule.tile, False, state.main, state.running)
        return replace(state, main=accumulators, running=running)

    def tail(self, index: dict[int, Value], state: _State) -> _State:
        """A tile that may reach beyond the end."""
        tile = self._lowering.schedule.tail
        if not state.tail:
            accumulators, running = self._turn(index, tile, True, state.main, state.running)
            return replace(state, main=accumulators, running=running)
        accumulators, running = self._turn(index, tile, True, state.tail, state.running)
        return replace(state, tail=accumulators, running=running)

    def several(self, index: dict[int, Value], state: _State) -> _State:
        """Full tiles side by side: all are read before any is folded."""
        builder, schedule = self._lowering.builder, self._lowering.schedule
        step = schedule.tile[schedule.blocked]
        places = [index] + [
            {**index, schedule.blocked: builder.map("add", index[schedule.blocked], builder.index(number * step))}
            for number in range(1, schedule.windows)
        ]
        tiles = [self._values(place, schedule.tile, False, state.running) for place in places]
        folded = tuple(
            self._accumulate_all(tiles, group, partial)
            for group, partial in zip(self.row.groups, state.main, strict=True)
        )
        for values in tiles:
            self._store(values)
        return replace(state, main=folded)

    def _turn(
        self,
        index: dict[int, Value],
        tile: tuple[int, ...],
        is_tail: bool,
        accumulators: tuple[Blocks, ...],
        running: Blocks,
    ) -> tuple[tuple[Blocks, ...], Blocks]:
        values = self._values(index, tile, is_tail, running)
        folded = tuple(
            self._accumulate(values, group, partial)
            for group, partial in zip(self.row.groups, accumulators, strict=True)
        )
        self._store(values)
        return folded, tuple(values.carries[number] for number in self._running)

    def _values(self, index: dict[int, Value], tile: tuple[int, ...], is_tail: bool, running: Blocks) -> Values:
        """What the pass needs of one tile."""
        rows, lowering = self._rows, self._lowering
        window = rows.window(index, tile, is_tail)
        blocked = lowering.schedule.blocked
        offset = index[blocked]
        if lowering.plan.axes[blocked].piece and (rows.kept or self.row.keep):
            offset = lowering.builder.map("subtract", offset, rows.part.begin(blocked))
        carries = dict(zip(self._running, running, strict=True))
        values = Values(lowering, window, rows.row_values.known, rows.kept, offset, carries)
        values.compute(self.row.targets)
        return values

    def _store(self, values: Values) -> None:
        """Write, and keep for later passes, what the pass should."""
        lowering = self._lowering
        for statement in self.row.keep:
            buffer = self._rows.allocated[statement]
            block = values.expanded(statement, values.shape_of(statement))
            lowering.builder.store(buffer, values.kept_offsets(), block, (False,) * lowering.rank)
        store_all(lowering, values, numbered(lowering, self.row.writes))

    def _accumulate_all(self, tiles: list[Values], group: FoldGroup, partial: Blocks) -> Blocks:
        builder, name = self._lowering.builder, group.combiner
        parts = [values.fold_operands(group) for values in tiles]
        if takes_elements(self._lowering.plan, group):
            return gather(builder, name, partial, [part[0] for part in parts])
        if self._rows.is_in_order(group):
            for part in parts:
                partial = merge_later(builder, name, partial, part)
            return partial
        while len(parts) > 1:
            parts = [merge(builder, name, left, right) for left, right in zip(parts[::2], parts[1::2], strict=True)]
        return merge(builder, name, partial, parts[0])

    def _accumulate(self, values: Values, group: FoldGroup, partial: Blocks) -> Blocks:
        lowering = self._lowering
        parts = values.fold_operands(group)
        if not lowering.schedule.deferred:
            parts = reduce_axes(lowering, group, parts, range(lowering.rank))
        if self._rows.is_in_order(group):
            return merge_later(lowering.builder, group.combiner, partial, parts)
        return merge(lowering.builder, group.combiner, partial, parts)


def lower_rows(lowering: Lowering, part: ProgramPart) -> None:
    """Loops over the reduced axes."""
    StreamingRows(lowering, part).lower()
