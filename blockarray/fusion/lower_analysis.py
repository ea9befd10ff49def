"""What the lowering has to know of a plan: which statement belongs to which pass over the reduced axes, and what it costs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from blockarray.fusion.plan import (
    Apply,
    Convert,
    DomainAxis,
    Fold,
    KernelPlan,
    Literal,
    Position,
    Read,
    RunningFold,
    Statement,
    Take,
    Write,
)
from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.combiners import combiner
from codegen.scalar.table import function

# Values of a row that took at least this much work (in additions) are kept for a later pass: a load and a store cost less.
KEPT_COST = 12.0
_GATHER_COST = 4.0


@dataclass(frozen=True)
class FoldGroup:
    """Folds of one combiner over the same operands, which are computed together.

    `members` are the statements with the output of the combiner that each stands for.
    """

    combiner: str
    operands: tuple[int, ...]
    members: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Pass:
    """One walk over the reduced axes: the folds that it computes, and the writes of values that vary along these axes."""

    groups: tuple[FoldGroup, ...]
    writes: tuple[Write, ...]
    keep: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.groups and not self.writes

    @property
    def targets(self) -> tuple[int, ...]:
        """Statements that it needs for each point."""
        operands = [operand for group in self.groups for operand in group.operands]
        return tuple(dict.fromkeys([*operands, *(write.value for write in self.writes), *self.keep]))


@dataclass(frozen=True)
class Analysis:
    """Facts about a plan.

    Attributes
    ----------
    varies : tuple
        See `KernelPlan.varies`.
    full : tuple of bool
        For each statement, whether it varies along a reduced axis.
    passes : tuple of Pass
    kept_writes : tuple of Write
        Writes of values that are the same along all reduced axes.
    cost : float
        Work for one point, in additions, over all passes.
    """

    varies: tuple[tuple[bool, ...], ...]
    full: tuple[bool, ...]
    passes: tuple[Pass, ...]
    kept_writes: tuple[Write, ...]
    cost: float


def operands_of(statement: Statement) -> tuple[int, ...]:
    """Earlier statements that a statement uses."""
    match statement:
        case Apply(operands=operands) | Fold(operands=operands):
            return operands
        case Convert(operand=operand) | RunningFold(operand=operand):
            return (operand,)
        case Take(positions=positions):
            return positions
    return ()


def dtype_of(statement: Statement) -> DType:
    """Element type of a statement's value."""
    return dtypes.int64 if isinstance(statement, Position) else statement.dtype


def cost_of(statement: Statement) -> float:
    """Work of one statement for one point, in additions."""
    match statement:
        case Apply(function=name):
            return function(name).expensive
        case Convert() | Fold() | RunningFold():
            return 1.0
        case Take():
            return _GATHER_COST
    return 0.0


def closure(plan: KernelPlan, targets: Iterable[int], given: Iterable[int] = ()) -> list[int]:
    """The statements needed for `targets` in order, without those that are `given` and what only they need."""
    have = set(given)
    found: set[int] = set()
    waiting = [target for target in targets if target not in have]
    while waiting:
        number = waiting.pop()
        if number in found:
            continue
        found.add(number)
        waiting += [operand for operand in operands_of(plan.statements[number]) if operand not in have]
    return sorted(found)


def levels_of(plan: KernelPlan) -> tuple[int, ...]:
    """For each statement, how many folds that depend on one another stand before it."""
    levels: list[int] = []
    for statement in plan.statements:
        level = max((levels[operand] for operand in operands_of(statement)), default=0)
        levels.append(level + 1 if isinstance(statement, Fold) else level)
    return tuple(levels)


def is_full(plan: KernelPlan, varies: tuple[tuple[bool, ...], ...], write: Write) -> bool:
    """Whether a write stores a value for each point, not once for all points along the reduced axes."""
    reduced = [number for number, axis in enumerate(plan.axes) if axis.reduced]
    if any(varies[write.value][number] for number in reduced):
        return True
    if not any(write.strides[number] for number in reduced):
        return False
    # Along a cut axis the strides of a folded value count pieces.
    is_cut = any(plan.axes[number].piece for number in reduced)
    return not (is_cut and any(isinstance(plan.statements[n], Fold) for n in closure(plan, [write.value])))


def groups_of(plan: KernelPlan, statements: Iterable[int]) -> tuple[FoldGroup, ...]:
    """The folds among `statements`, those with equal combiner and operands together."""
    found: dict[tuple[str, tuple[int, ...]], list[tuple[int, int]]] = {}
    for number in statements:
        statement = plan.statements[number]
        if isinstance(statement, Fold):
            found.setdefault((statement.combiner, statement.operands), []).append((number, statement.output))
    return tuple(FoldGroup(combiner, operands, tuple(members)) for (combiner, operands), members in found.items())


def takes_elements(plan: KernelPlan, group: FoldGroup) -> bool:
    """Whether a fold is over single elements, and its combiner takes several of them at a time."""
    row = combiner(group.combiner)
    if row.gather is None:
        return False
    rest = [plan.statements[operand] for operand in group.operands[1:]]
    return tuple(one.number for one in rest if isinstance(one, Literal)) == row.rest


def analyze(plan: KernelPlan) -> Analysis:
    """Sort the statements of a plan into passes."""
    varies = plan.varies()
    full = tuple(any(flag and axis.reduced for flag, axis in zip(row, plan.axes, strict=True)) for row in varies)
    levels = levels_of(plan)
    needed = closure(plan, [write.value for write in plan.writes])
    folds = [number for number in needed if isinstance(plan.statements[number], Fold)]
    full_writes = [write for write in plan.writes if is_full(plan, varies, write)]
    kept_writes = tuple(write for write in plan.writes if write not in full_writes)
    count = max([0, *(levels[number] for number in folds), *(levels[write.value] + 1 for write in full_writes)])
    passes = []
    for number in range(count):
        groups = groups_of(plan, [fold for fold in folds if levels[fold] == number + 1])
        # Memory that is read again in a later pass must not have been overwritten before.
        writes = [write for write in full_writes if (count - 1 if plan.aliased else levels[write.value]) == number]
        passes.append(Pass(groups, tuple(writes), ()))
    kept, cost = _keep(plan, passes, full)
    if not any(axis.reduced for axis in plan.axes):
        cost = sum(cost_of(plan.statements[number]) for number in needed if any(varies[number]))
    return Analysis(varies, full, kept, kept_writes, cost)


def _keep(plan: KernelPlan, passes: list[Pass], full: tuple[bool, ...]) -> tuple[tuple[Pass, ...], float]:
    """Find what is worth keeping from one pass to a later one; returns the passes and the work of all of them."""
    work = _work_below(plan, full)
    folds = [number for number, statement in enumerate(plan.statements) if isinstance(statement, Fold)]
    computed_in: dict[int, int] = {}
    keep: list[list[int]] = [[] for _ in passes]
    total = 0.0
    for number, row in enumerate(passes):
        waiting = [target for target in row.targets if full[target]]
        seen: set[int] = set()
        while waiting:
            statement = waiting.pop()
            if statement in seen or not full[statement] or statement in folds:
                continue
            seen.add(statement)
            earlier = computed_in.get(statement)
            if earlier is not None and work[statement] >= KEPT_COST:
                if statement not in keep[earlier]:
                    keep[earlier].append(statement)
                continue
            total += cost_of(plan.statements[statement])
            waiting += operands_of(plan.statements[statement])
        total += len(row.groups)
        for statement in seen:
            computed_in.setdefault(statement, number)
    marked = tuple(replace(row, keep=tuple(sorted(names))) for row, names in zip(passes, keep, strict=True))
    return marked, total


def _work_below(plan: KernelPlan, full: tuple[bool, ...]) -> list[float]:
    """For each statement the work to compute it anew for one point, from what is in memory."""
    work: list[float] = []
    for statement, is_full_value in zip(plan.statements, full, strict=True):
        own = cost_of(statement) + sum(work[operand] for operand in dict.fromkeys(operands_of(statement)))
        work.append(own if is_full_value else 0.0)
    return work


def arranged(plan: KernelPlan) -> KernelPlan:
    """The same plan with its axes as lowering wants them.

    Axes of extent 1 are left out (one stays if there is none else). The axis of a running fold stands before an axis that is
    contiguous in memory where it is not contiguous itself: then many rows run side by side, each in its own column.
    """
    keep = [number for number, axis in enumerate(plan.axes) if axis.extent != 1]
    keep = _with_running_axis_moved(plan, keep)
    if keep == list(range(len(plan.axes))) and keep:
        return plan
    folds_nothing = not any(plan.axes[number].reduced for number in keep)

    def pick(strides: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(strides[number] for number in keep) or (0,)

    statements: list[Statement] = []
    for statement in plan.statements:
        match statement:
            case Read() | Position():
                statements.append(replace(statement, strides=pick(statement.strides)))
            case Take():
                statements.append(replace(statement, rest=pick(statement.rest)))
            case Fold(operands=operands, output=output, dtype=dtype) if folds_nothing:
                statements.append(Convert(operands[output], dtype))
            case RunningFold(operand=operand, dtype=dtype) if folds_nothing:
                statements.append(Convert(operand, dtype))
            case RunningFold(before=Read() as before):
                statements.append(replace(statement, before=replace(before, strides=pick(before.strides))))
            case _:
                statements.append(statement)
    axes = tuple(plan.axes[number] for number in keep) or (DomainAxis(1),)
    writes = tuple(replace(write, strides=pick(write.strides)) for write in plan.writes)
    return replace(plan, axes=axes, statements=tuple(statements), writes=writes)


def _with_running_axis_moved(plan: KernelPlan, keep: list[int]) -> list[int]:
    """The axes in an order with a contiguous one last, if there is a running fold along an axis that is not contiguous."""
    if len(keep) < 2 or not any(isinstance(statement, RunningFold) for statement in plan.statements):
        return keep
    contiguous = dict.fromkeys(keep, 0)
    for dtype, strides in _memory_accesses(plan):
        for axis in keep:
            contiguous[axis] += dtype.itemsize if abs(strides[axis]) == 1 else 0
    best = max(keep, key=lambda axis: contiguous[axis])
    running = keep[-1]
    if not plan.axes[running].reduced or contiguous[best] <= contiguous[running]:
        return keep
    return [*(axis for axis in keep if axis not in (best, running)), running, best]


def _memory_accesses(plan: KernelPlan) -> list[tuple[DType, tuple[int, ...]]]:
    reads = [(row.dtype, row.strides) for row in plan.statements if isinstance(row, Read)]
    return reads + [(dtype_of(plan.statements[write.value]), write.strides) for write in plan.writes]
