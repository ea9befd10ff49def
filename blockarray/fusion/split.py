"""Cutting large reductions: pieces of a reduced axis go to different programs, and a second kernel combines what they come to.

A reduction to few results would otherwise run in few programs, and leave most of the machine idle. Running folds of few long rows are
cut as well: the pieces' totals, the running fold of these, then each piece from what came before it.
"""

from dataclasses import dataclass, field, replace

from blockarray.fusion.lower import problem_of
from blockarray.fusion.lower_analysis import (
    Analysis,
    FoldGroup,
    Pass,
    analyze,
    arranged,
    closure,
    dtype_of,
    operands_of,
)
from blockarray.fusion.one_read import in_one_read
from blockarray.fusion.plan import (
    Apply,
    Convert,
    DomainAxis,
    Fold,
    Fresh,
    GraphPlan,
    KernelPlan,
    Literal,
    Number,
    PlanValue,
    Position,
    Read,
    RunningFold,
    Statement,
    Step,
    Take,
    Write,
)
from codegen.dtypes import DType
from codegen.schedules.choose import piece_of
from codegen.target import Target

_PIECES = "pieces of the reduced axis go to different programs"
_TOTALS = "it needs the results of all pieces"


def split(plan: GraphPlan, target: Target) -> GraphPlan:
    """The same plan with its large reductions cut into pieces.

    Parameters
    ----------
    plan : GraphPlan
    target : Target
        How many programs keep the machine busy.

    Returns
    -------
    GraphPlan
        With temporaries for the partial results behind the other values.
    """
    values = list(plan.values)
    steps: list[Step] = []
    for step in plan.steps:
        steps += split_kernel(step, values, target) if isinstance(step, KernelPlan) else [step]
    return GraphPlan(tuple(values), tuple(steps))


def split_kernel(plan: KernelPlan, values: list[PlanValue], target: Target) -> list[KernelPlan]:
    """The kernels that take the place of one; temporaries are appended to `values`."""
    if not any(axis.reduced for axis in plan.axes) or any(axis.extent == 0 for axis in plan.axes):
        return [plan]
    bare = in_one_read(arranged(plan), target)
    axis, piece = _cut(bare, target)
    if not piece:
        return [bare]
    if any(isinstance(statement, RunningFold) for statement in bare.statements):
        return _split_running(bare, values, piece) or [plan]
    return _Cut(bare, analyze(bare), values, axis, piece).kernels()


def _cut(plan: KernelPlan, target: Target) -> tuple[int, int]:
    """The axis to cut, and the length of its pieces; 0 if there are enough programs as it is."""
    problem = problem_of(plan, analyze(plan))
    longest = max((axis for axis in problem.reduced_axes), key=lambda axis: problem.extents[axis], default=0)
    if not problem.reduced_axes or problem.pieces[longest]:
        return 0, 0
    return longest, piece_of(problem, longest, target)


@dataclass
class _Copy:
    """Statements of a new kernel, copied from another one's with other numbers.

    `axes` are the axes of the source that the new kernel has, in order.
    """

    source: KernelPlan
    axes: tuple[int, ...]
    statements: list[Statement] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)

    def add(self, statement: Statement) -> int:
        """Append a statement of the new kernel."""
        self.statements.append(statement)
        return len(self.statements) - 1

    def copy(self, targets: list[int]) -> None:
        """Copy what `targets` need."""
        for number in closure(self.source, targets, self.numbers):
            self.numbers[number] = self.add(self._moved(self.source.statements[number]))

    def pick(self, strides: tuple[int, ...]) -> tuple[int, ...]:
        """Strides along the new kernel's axes."""
        return tuple(strides[axis] for axis in self.axes)

    def write(self, write: Write) -> Write:
        """A write of the source, of the copied value."""
        return replace(write, value=self.numbers[write.value], strides=self.pick(write.strides))

    def _moved(self, statement: Statement) -> Statement:
        operands = tuple(self.numbers[operand] for operand in operands_of(statement))
        match statement:
            case Read() | Position():
                return replace(statement, strides=self.pick(statement.strides))
            case Take():
                return replace(statement, positions=operands, rest=self.pick(statement.rest))
            case Apply() | Fold():
                return replace(statement, operands=operands)
            case Convert() | RunningFold():
                return replace(statement, operand=operands[0])
            case Number() | Literal():
                return statement
        raise TypeError(f"kernel {self.source.name}: a statement of an unknown kind: {statement!r}")


@dataclass
class _Cut:
    """One kernel that is being cut along a reduced axis."""

    plan: KernelPlan
    analysis: Analysis
    values: list[PlanValue]
    axis: int
    piece: int
    results: dict[int, int] = field(default_factory=dict)

    def kernels(self) -> list[KernelPlan]:
        """For each level of folds a kernel over pieces and one that combines them, then what is left."""
        levels = [number for number, row in enumerate(self.analysis.passes) if row.groups]
        steps: list[KernelPlan] = []
        for number in levels:
            row = self.analysis.passes[number]
            partials = {group: self._temporaries(group) for group in row.groups}
            steps.append(self._over_pieces(row, partials))
            steps.append(self._totals(row, partials, is_last=number == levels[-1]))
        behind = [write for row in self.analysis.passes if not row.groups for write in row.writes]
        if behind:
            steps.append(self._points(behind))
        return steps

    @property
    def _kept(self) -> tuple[int, ...]:
        return tuple(number for number, axis in enumerate(self.plan.axes) if not axis.reduced)

    @property
    def _cut_axis(self) -> DomainAxis:
        return replace(self.plan.axes[self.axis], piece=self.piece)

    def _temporary(self, dtype: DType, elements: int) -> int:
        self.values.append(Fresh(dtype, elements, None, partial=True))
        return len(self.values) - 1

    def _temporaries(self, group: FoldGroup) -> tuple[int, ...]:
        """Memory for what each piece comes to."""
        elements = self._strides_by_piece()[1]
        return tuple(self._temporary(dtype_of(self.plan.statements[operand]), elements) for operand in group.operands)

    def _strides_by_piece(self) -> tuple[tuple[int, ...], int]:
        """Row-major strides over the kept axes and the pieces, and how many elements there are."""
        return self._row_major((*self._kept, self.axis))

    def _strides_of_results(self) -> tuple[tuple[int, ...], int]:
        """Row-major strides over the kept axes, and how many elements there are."""
        return self._row_major(self._kept)

    def _row_major(self, axes: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        strides = [0] * len(self.plan.axes)
        elements = 1
        for axis in sorted(axes, reverse=True):
            strides[axis] = elements
            elements *= self._cut_axis.pieces if axis == self.axis else self.plan.axes[axis].extent
        return tuple(strides), elements

    def _copy(self, axes: tuple[int, ...]) -> _Copy:
        """An empty kernel over some axes, in which earlier folds are read from memory."""
        copy = _Copy(self.plan, axes)
        strides = copy.pick(self._strides_of_results()[0])
        for fold, temporary in self.results.items():
            copy.numbers[fold] = copy.add(Read(temporary, dtype_of(self.plan.statements[fold]), 0, strides))
        return copy

    def _kernel(
        self, copy: _Copy, suffix: str, axes: tuple[DomainAxis, ...], writes: list[Write], reason: str
    ) -> KernelPlan:
        bare = KernelPlan(
            f"{self.plan.name}_{suffix}",
            axes,
            tuple(copy.statements),
            tuple(writes),
            self.plan.aliased,
            self.plan.operations,
            reason,
        )
        return _without_unused(bare)

    def _over_pieces(self, row: Pass, partials: dict[FoldGroup, tuple[int, ...]]) -> KernelPlan:
        copy = self._copy(tuple(range(len(self.plan.axes))))
        copy.copy(list(row.targets))
        strides = self._strides_by_piece()[0]
        writes = [copy.write(write) for write in row.writes]
        for group, temporaries in partials.items():
            operands = tuple(copy.numbers[operand] for operand in group.operands)
            for output, temporary in enumerate(temporaries):
                dtype = dtype_of(self.plan.statements[group.operands[output]])
                fold = copy.add(Fold(group.combiner, operands, output, dtype))
                writes.append(Write(temporary, fold, 0, strides))
        axes = tuple(self._cut_axis if k == self.axis else axis for k, axis in enumerate(self.plan.axes))
        return self._kernel(copy, "pieces", axes, writes, _PIECES)

    def _totals(self, row: Pass, partials: dict[FoldGroup, tuple[int, ...]], is_last: bool) -> KernelPlan:
        numbers = tuple(sorted((*self._kept, self.axis)))
        copy = self._copy(numbers)
        by_piece = copy.pick(self._strides_by_piece()[0])
        for group, temporaries in partials.items():
            reads = tuple(
                copy.add(Read(temporary, dtype_of(self.plan.statements[operand]), 0, by_piece))
                for operand, temporary in zip(group.operands, temporaries, strict=True)
            )
            for member, output in group.members:
                dtype = dtype_of(self.plan.statements[member])
                copy.numbers[member] = copy.add(Fold(group.combiner, reads, output, dtype))
        writes = []
        if is_last:
            copy.copy([write.value for write in self.analysis.kept_writes])
            writes = [copy.write(write) for write in self.analysis.kept_writes]
        stored = self._stored_results(row, copy, is_last)
        axes = tuple(
            DomainAxis(self._cut_axis.pieces, True) if number == self.axis else self.plan.axes[number]
            for number in numbers
        )
        reason = self.plan.reason if is_last and not stored else _TOTALS
        return self._kernel(copy, "totals", axes, writes + stored, reason)

    def _stored_results(self, row: Pass, copy: _Copy, is_last: bool) -> list[Write]:
        """Results of this pass that other kernels read."""
        strides, elements = self._strides_of_results()
        later = self.analysis.passes[self.analysis.passes.index(row) + 1 :]
        targets = [target for other in later for target in other.targets]
        if not is_last:
            targets += [write.value for write in self.analysis.kept_writes]
        members = {member for group in row.groups for member, _ in group.members}
        writes = []
        for number in closure(self.plan, targets):
            if number in members:
                self.results[number] = self._temporary(dtype_of(self.plan.statements[number]), elements)
                writes.append(Write(self.results[number], copy.numbers[number], 0, copy.pick(strides)))
        return writes

    def _points(self, behind: list[Write]) -> KernelPlan:
        """What is computed for each point from the folds."""
        copy = self._copy(tuple(range(len(self.plan.axes))))
        copy.copy([write.value for write in behind])
        axes = tuple(replace(axis, reduced=False) for axis in self.plan.axes)
        writes = [copy.write(write) for write in behind]
        return self._kernel(copy, "points", axes, writes, self.plan.reason)


def _without_unused(plan: KernelPlan) -> KernelPlan:
    """The plan with only the statements that its writes need."""
    copy = _Copy(plan, tuple(range(len(plan.axes))))
    copy.copy([write.value for write in plan.writes])
    writes = tuple(copy.write(write) for write in plan.writes)
    return replace(plan, statements=tuple(copy.statements), writes=writes)


def _split_running(plan: KernelPlan, values: list[PlanValue], piece: int) -> list[KernelPlan]:
    """Totals of pieces, the running fold of the totals, then each piece from what came before it; [] if folds depend on folds."""
    running = [n for n, statement in enumerate(plan.statements) if isinstance(statement, RunningFold)]
    behind = [operand for number in running for operand in operands_of(plan.statements[number])]
    below = closure(plan, behind)
    if any(isinstance(statement, Fold) for statement in plan.statements) or set(running) & set(below):
        return []
    (axis,) = (number for number, row in enumerate(plan.axes) if row.reduced)
    cut = replace(plan.axes[axis], piece=piece)
    strides, elements = [1] * len(plan.axes), 1
    for number in reversed(range(len(plan.axes))):
        strides[number] = elements
        elements *= cut.pieces if number == axis else plan.axes[number].extent

    def with_axis(new: DomainAxis) -> tuple[DomainAxis, ...]:
        return tuple(new if number == axis else row for number, row in enumerate(plan.axes))

    totals = _Copy(plan, tuple(range(len(plan.axes))))
    totals.copy(behind)
    combined: list[Statement] = []
    total_writes, combined_writes = [], []
    statements = list(plan.statements)
    for number in running:
        statement = plan.statements[number]
        if not isinstance(statement, RunningFold):
            continue
        values += [Fresh(statement.dtype, elements, None, partial=True)] * 2
        total, before = len(values) - 2, len(values) - 1
        fold = totals.add(Fold(statement.combiner, (totals.numbers[statement.operand],), 0, statement.dtype))
        total_writes.append(Write(total, fold, 0, tuple(strides)))
        combined.append(Read(total, statement.dtype, 0, tuple(strides)))
        combined.append(RunningFold(statement.combiner, len(combined) - 1, statement.dtype))
        combined_writes.append(Write(before, len(combined) - 1, 0, tuple(strides)))
        statements[number] = replace(statement, before=Read(before, statement.dtype, 0, tuple(strides)))
    return [
        KernelPlan(
            f"{plan.name}_pieces",
            with_axis(cut),
            tuple(totals.statements),
            tuple(total_writes),
            plan.aliased,
            plan.operations,
            _PIECES,
        ),
        KernelPlan(
            f"{plan.name}_totals",
            with_axis(DomainAxis(cut.pieces, True)),
            tuple(combined),
            tuple(combined_writes),
            frozenset(),
            plan.operations,
            _TOTALS,
        ),
        replace(plan, axes=with_axis(cut), statements=tuple(statements)),
    ]
