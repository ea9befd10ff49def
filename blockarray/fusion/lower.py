"""Lowering: a kernel plan becomes a kernel of block IR for a target, with the arguments of its launch."""

from dataclasses import dataclass
from math import gcd

from blockarray.fusion.lower_analysis import Analysis, analyze, arranged, dtype_of, is_full, takes_elements
from blockarray.fusion.lower_columns import lower_columns
from blockarray.fusion.lower_grid import find_part, grid_of, program_count
from blockarray.fusion.lower_parameters import (
    BUFFER_ALIGNMENT,
    Argument,
    Parameters,
    SlotConstant,
    SlotNumber,
    SlotPointer,
)
from blockarray.fusion.lower_rows import lower_rows
from blockarray.fusion.lower_values import Lowering
from blockarray.fusion.lower_whole import lower_whole
from blockarray.fusion.plan import Fold, KernelPlan, Position, Read, RunningFold, Take
from codegen import dtypes
from codegen.ir.builder import Builder
from codegen.ir.kernel import Kernel
from codegen.schedules.choose import PARALLEL_WORK, choose, streams, work_of
from codegen.schedules.schedule import Access, Problem, Schedule
from codegen.target import Target


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel and how to launch it.

    Attributes
    ----------
    kernel : Kernel
    arguments : tuple of Argument
        One for each slot, in order.
    programs : int
    parallel : bool
        Whether there is enough work to share it between threads.
    schedule : Schedule
    """

    kernel: Kernel
    arguments: tuple[Argument, ...]
    programs: int
    parallel: bool
    schedule: Schedule


def lower(plan: KernelPlan, target: Target) -> tuple[LoweredKernel, ...]:
    """Lower a plan for a target.

    Parameters
    ----------
    plan : KernelPlan
    target : Target
        Facts about the machine.

    Returns
    -------
    tuple of LoweredKernel
        To be launched in order; empty if the plan writes nothing.
    """
    if any(axis.extent == 0 and not axis.reduced for axis in plan.axes) or not plan.writes:
        return ()
    plan = arranged(plan)
    analysis = analyze(plan)
    problem = problem_of(plan, analysis)
    schedule = choose(problem, target)
    builder = Builder()
    parameters = Parameters(plan, streams(problem, target))
    lowering = Lowering(builder, plan, analysis, schedule, target, parameters, builder.index(0))
    part = find_part(lowering)
    {"whole": lower_whole, "streaming": lower_rows, "columns": lower_columns}[schedule.strategy](lowering, part)
    kernel = builder.kernel(plan.name, parameters.parameters, grid_of(lowering), schedule.layout)
    is_parallel = work_of(problem) >= PARALLEL_WORK
    lowered = LoweredKernel(kernel, parameters.arguments, program_count(lowering), is_parallel, schedule)
    return (lowered,)


def schedule_of(plan: KernelPlan, target: Target) -> Schedule:
    """The sizes with which a plan would be lowered."""
    plan = arranged(plan)
    return choose(problem_of(plan, analyze(plan)), target)


def problem_of(plan: KernelPlan, analysis: Analysis) -> Problem:
    """What schedules are chosen from."""
    passes = [row for row in analysis.passes if not row.is_empty]
    kept = {statement for row in analysis.passes for statement in row.keep}
    folds = [statement for statement in plan.statements if isinstance(statement, Fold)]
    return Problem(
        extents=tuple(axis.extent for axis in plan.axes),
        reduced=tuple(axis.reduced for axis in plan.axes),
        accesses=_accesses(plan, analysis),
        element_bits=_element_bits(plan),
        cost=analysis.cost,
        pieces=tuple(axis.piece for axis in plan.axes),
        passes=len(passes),
        folds=max((sum(len(group.operands) for group in row.groups) for row in passes), default=0),
        running=any(isinstance(statement, RunningFold) for statement in plan.statements),
        sums=any(fold.combiner in ("add", "multiply") and fold.dtype.kind == "float" for fold in folds),
        kept_bytes=sum(dtype_of(plan.statements[statement]).itemsize for statement in kept),
        gathers=any(takes_elements(plan, group) for row in passes for group in row.groups),
    )


def _accesses(plan: KernelPlan, analysis: Analysis) -> tuple[Access, ...]:
    accesses = []
    for statement in plan.statements:
        if isinstance(statement, Read):
            unit = BUFFER_ALIGNMENT // gcd(BUFFER_ALIGNMENT, statement.dtype.itemsize)
            accesses.append(Access(statement.dtype.itemsize, statement.strides, statement.offset % unit))
    for write in plan.writes:
        itemsize = dtype_of(plan.statements[write.value]).itemsize
        unit = BUFFER_ALIGNMENT // gcd(BUFFER_ALIGNMENT, itemsize)
        full = is_full(plan, analysis.varies, write)
        strides = tuple(
            stride if full or not axis.reduced else 0 for axis, stride in zip(plan.axes, write.strides, strict=True)
        )
        accesses.append(Access(itemsize, strides, write.offset % unit, written=True))
    return tuple(accesses)


def _element_bits(plan: KernelPlan) -> int:
    """Width of what is worked on: that of the widest value, positions and what follows from them alone aside."""
    from_memory: list[bool] = []
    widest = 8
    for statement in plan.statements:
        match statement:
            case Read() | Take():
                from_memory.append(True)
            case Position():
                from_memory.append(False)
            case _:
                operands = _value_operands(statement)
                from_memory.append(not operands or any(from_memory[operand] for operand in operands))
        if from_memory[-1] and dtype_of(statement) is not dtypes.boolean and not _is_position(statement):
            widest = max(widest, dtype_of(statement).bits)
    return widest


def _value_operands(statement: object) -> tuple[int, ...]:
    operands = getattr(statement, "operands", None)
    if operands is not None:
        return tuple(operands)
    operand = getattr(statement, "operand", None)
    return () if operand is None else (operand,)


def _is_position(statement: object) -> bool:
    """Whether a fold gives a position: there is one for a row, not for each point."""
    return isinstance(statement, Fold) and statement.output > 0


__all__ = [
    "Argument",
    "LoweredKernel",
    "SlotConstant",
    "SlotNumber",
    "SlotPointer",
    "lower",
    "problem_of",
    "schedule_of",
]
