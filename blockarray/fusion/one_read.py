"""Kernels with folds that depend on other folds, rewritten so that one walk over memory finds both (see `one_walk`)."""

from dataclasses import replace

from blockarray.fusion.lower import problem_of, schedule_of
from blockarray.fusion.lower_analysis import analyze, dtype_of, operands_of
from blockarray.fusion.one_walk import OneWalk, find_one_walk
from blockarray.fusion.plan import (
    Apply,
    Convert,
    Fold,
    KernelPlan,
    Literal,
    Number,
    Position,
    Read,
    RunningFold,
    Statement,
    Take,
    Write,
)
from codegen.dtypes import DType
from codegen.scalar.combiners import combiner
from codegen.target import Target


def in_one_read(plan: KernelPlan, target: Target) -> KernelPlan:
    """The same plan with fewer walks over its reduced axes, where these would read memory again.

    Parameters
    ----------
    plan : KernelPlan
        With its axes as lowering wants them.
    target : Target
        Its schedules hold rows in registers, or do not; its caches hold them, or do not.

    Returns
    -------
    KernelPlan
        Other bits, with errors of the same size: deviations are taken from means of parts, which are then merged.
    """
    reduced = [axis for axis, row in enumerate(plan.axes) if row.reduced]
    found: dict[int, OneWalk] = {}
    for number in range(len(plan.statements)):
        way = find_one_walk(plan.statements, reduced, number)
        if way is not None:
            found[number] = way
    if not found or not _reads_again(plan, target):
        return plan
    return _Rewriting(plan, found).result()


def _reads_again(plan: KernelPlan, target: Target) -> bool:
    """Whether a second walk over the reduced axes would go to memory, not to registers or a cache."""
    schedule = schedule_of(plan, target)
    if schedule.strategy == "whole":
        return False
    if target.lanes > 1:
        return True
    problem = problem_of(plan, analyze(plan))
    row = problem.points // max(1, problem.kept_points)
    read_bytes = sum(access.itemsize for access in problem.accesses if not access.written)
    return schedule.strategy == "streaming" and row * read_bytes > target.cache_bytes


class _Rewriting:
    """A plan that is copied with some folds replaced."""

    def __init__(self, plan: KernelPlan, found: dict[int, OneWalk]) -> None:
        self._plan = plan
        self._found = found
        self._statements: list[Statement] = []
        self._numbers: dict[int, int] = {}
        self._literals: dict[tuple[int, DType], int] = {}
        self._first: dict[int, int] = {}
        self._reduced = [axis for axis, row in enumerate(plan.axes) if row.reduced]

    def result(self) -> KernelPlan:
        """The new plan; statements that nothing needs any more stay, and are never computed."""
        for number, statement in enumerate(self._plan.statements):
            self._numbers[number] = self._fold_or_copy(number, statement)
        writes = tuple(self._moved(write) for write in self._plan.writes)
        return replace(self._plan, statements=tuple(self._statements), writes=writes)

    def _add(self, statement: Statement) -> int:
        self._statements.append(statement)
        return len(self._statements) - 1

    def _literal(self, number: int, dtype: DType) -> int:
        key = (number, dtype)
        if key not in self._literals:
            self._literals[key] = self._add(Literal(number, dtype))
        return self._literals[key]

    def _moved(self, write: Write) -> Write:
        return replace(write, value=self._numbers[write.value])

    def _fold_or_copy(self, number: int, statement: Statement) -> int:
        way = self._found.get(number)
        if way is None:
            return self._add(self._copied(statement))
        if way.combiner == "welford":
            return self._moments(way)
        return self._sum_below_top(way)

    def _copied(self, statement: Statement) -> Statement:
        operands = tuple(self._numbers[operand] for operand in operands_of(statement))
        match statement:
            case Apply() | Fold():
                return replace(statement, operands=operands)
            case Convert() | RunningFold():
                return replace(statement, operand=operands[0])
            case Take():
                return replace(statement, positions=operands)
        return statement

    def _folds(self, way: OneWalk, elements: int, dtype: DType) -> tuple[int, ...]:
        """The folds of all values of the combiner over elements, which are numbered in the new plan."""
        row = combiner(way.combiner)
        operands = (elements, *(self._literal(number, dtype) for number in row.rest))
        return tuple(self._add(Fold(row.name, operands, output, dtype)) for output in range(row.arity))

    def _first_of_row(self, number: int) -> int:
        """What a statement is at the beginning of the reduced axes."""
        if number not in self._first:
            below = tuple(self._first_of_row(operand) for operand in operands_of(self._plan.statements[number]))
            self._first[number] = self._add(self._at_first(self._plan.statements[number], below))
        return self._first[number]

    def _at_first(self, statement: Statement, operands: tuple[int, ...]) -> Statement:
        match statement:
            case Read() | Position():
                return replace(statement, strides=self._without_reduced(statement.strides))
            case Take():
                return replace(statement, positions=operands, rest=self._without_reduced(statement.rest))
            case Apply():
                return replace(statement, operands=operands)
            case Convert():
                return replace(statement, operand=operands[0])
            case Number() | Literal():
                return statement
        raise TypeError(f"kernel {self._plan.name}: {type(statement).__name__} among the elements of a fold")

    def _without_reduced(self, strides: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(0 if axis in self._reduced else stride for axis, stride in enumerate(strides))

    def _moments(self, way: OneWalk) -> int:
        """The sum of squared deviations from the kept value.

        All elements are taken relative to the first one: means of parts are then no larger than deviations, and merging them
        loses nothing where the data lie far from zero.
        """
        dtype = dtype_of(self._plan.statements[way.elements])
        first = self._first_of_row(way.elements)
        elements = self._add(Apply("subtract", (self._numbers[way.elements], first), dtype))
        mean, squares, count = self._folds(way, elements, dtype)
        kept = self._add(Apply("subtract", (self._numbers[way.kept], first), dtype))
        difference = self._add(Apply("subtract", (mean, kept), dtype))
        shift = self._add(Apply("square", (difference,), dtype))
        return self._add(Apply("add", (squares, self._add(Apply("multiply", (count, shift), dtype))), dtype))

    def _sum_below_top(self, way: OneWalk) -> int:
        dtype = dtype_of(self._plan.statements[way.elements])
        _, total = self._folds(way, self._numbers[way.elements], dtype)
        # NaN if the maximum is infinite, as the difference of two infinities is.
        top = self._numbers[way.kept]
        return self._add(Apply("add", (total, self._add(Apply("subtract", (top, top), dtype))), dtype))
