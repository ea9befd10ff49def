"""Folding along an axis: over registers, inside a register, and over lanes, always as a fixed tree."""

from codegen.errors import InternalCompilerError
from codegen.ir.kernel import Value
from codegen.ir.operations import Reduce, Scan
from codegen.llvm import spelling
from codegen.llvm.context import EmissionContext
from codegen.llvm.core import Register
from codegen.llvm.hooks import Combine, Partial
from codegen.scalar.combiners import combiner
from codegen.scalar.function import Algebra
from codegen.scalar.table import TABLE


def combine_of(context: EmissionContext, name: str) -> Combine:
    """The combiner called `name` on registers."""
    row = combiner(name)
    core = context.core

    def merge(left: Partial, right: Partial) -> Partial:
        return as_partial(row.combine(core, left, right))

    def identity(like: Partial) -> Partial:
        numbers = row.identity(tuple(register.dtype for register in like))
        return tuple(
            core.constant_of(register.dtype, register, number) for register, number in zip(like, numbers, strict=True)
        )

    symmetric = row.arity == 1 and name in TABLE and TABLE[name].is_a(Algebra.COMMUTATIVE)
    return Combine(merge, identity, symmetric)


def as_partial(values: tuple) -> Partial:
    """What a combiner returned, which must be registers."""
    for value in values:
        if not isinstance(value, Register):
            raise TypeError(f"a combiner returned {type(value).__name__}, expected registers")
    return values


def partial_at(context: EmissionContext, operands: tuple[Value, ...], number: int) -> Partial:
    """One register of each operand."""
    parts = []
    for operand in operands:
        fragment = context.fragment(operand)
        width = fragment.distribution.width
        parts.append(Register(context.core, fragment.register(number), operand.block.dtype, width))
    return tuple(parts)


def emit_reduce(context: EmissionContext, operation: Reduce) -> None:
    """A combiner folded along an axis."""
    combine = combine_of(context, operation.function)
    source = context.distribution(operation.operands[0].block.shape)
    result = context.distribution(operation.results[0].block.shape)
    split = source.axes[operation.axis]
    partials = []
    for coordinate in result.coordinates():
        line = [source.number(along(coordinate, operation.axis, position)) for position in range(split.registers)]
        partials.append(_fold(context, operation.operands, line, combine))
    if split.width > 1:
        partials = [_fold_inside(context, partial, combine) for partial in partials]
    if split.lanes > 1:
        partials = context.hooks.reduce_lanes(context, split, partials, combine)
    for position, value in enumerate(operation.results):
        context.define(value, [partial[position].name for partial in partials])


def along(coordinate: tuple[int, ...], axis: int, position: int) -> tuple[int, ...]:
    """The coordinate moved to `position` on one axis."""
    return (*coordinate[:axis], position, *coordinate[axis + 1 :])


def _fold(context: EmissionContext, operands: tuple[Value, ...], line: list[int], combine: Combine) -> Partial:
    """Registers folded by halves, in order; each is emitted just before it is needed."""
    if len(line) == 1:
        return partial_at(context, operands, line[0])
    middle = len(line) // 2
    left = _fold(context, operands, line[:middle], combine)
    return combine.merge(left, _fold(context, operands, line[middle:], combine))


def _fold_inside(context: EmissionContext, partial: Partial, combine: Combine) -> Partial:
    """The elements of a register folded: the lower half with the upper half, until one is left."""
    width = partial[0].width
    while width > 1:
        width //= 2
        lower = tuple(context.core.piece(register, 0, width) for register in partial)
        upper = tuple(context.core.piece(register, width, width) for register in partial)
        partial = combine.merge(lower, upper)
    return partial


def emit_scan(context: EmissionContext, operation: Scan) -> None:
    """A running fold: inside each register, over a lane's run, over lanes, then over the repeats of the pattern."""
    combine = combine_of(context, operation.function)
    source = context.distribution(operation.operands[0].block.shape)
    outer = context.distribution(operation.results[-1].block.shape)
    split = source.axes[operation.axis]
    run = split.run if split.lanes > 1 else split.registers
    lines = [
        [source.number(along(coordinate, operation.axis, position)) for position in range(split.registers)]
        for coordinate in outer.coordinates()
    ]
    scanned: dict[int, Partial] = {}
    runs: list[list[int]] = [line[start : start + run] for line in lines for start in range(0, len(line), run)]
    totals = [_scan_run(context, operation.operands, numbers, combine, scanned, split.width) for numbers in runs]
    if split.lanes > 1:
        earlier, totals = context.hooks.scan_lanes(context, split, totals, combine)
        for numbers, before in zip(runs, earlier, strict=True):
            for number in numbers:
                scanned[number] = combine.merge(before, scanned[number])
    per_line = split.registers // run
    ends = []
    for first in range(0, len(runs), per_line):
        ends.append(_carry(runs[first : first + per_line], totals[first : first + per_line], combine, scanned))
    arity = len(operation.operands)
    for position in range(arity):
        names = [scanned[number][position].name for number in range(source.registers)]
        context.define(operation.results[position], names)
        context.define(operation.results[arity + position], [end[position].name for end in ends])


def _scan_run(
    context: EmissionContext,
    operands: tuple[Value, ...],
    numbers: list[int],
    combine: Combine,
    scanned: dict[int, Partial],
    width: int,
) -> Partial:
    """Scan neighbouring registers of one lane into `scanned`; returns the fold of them all."""
    total: Partial | None = None
    for number in numbers:
        partial = _scan_inside(context, partial_at(context, operands, number), combine, width)
        if total is not None:
            partial = combine.merge(_repeated(context, total, width) if width > 1 else total, partial)
        scanned[number] = partial
        total = tuple(context.core.piece(register, width - 1, 1) for register in partial) if width > 1 else partial
    if total is None:
        raise InternalCompilerError("scan: a run without registers")
    return total


def _scan_inside(context: EmissionContext, partial: Partial, combine: Combine, width: int) -> Partial:
    """Scan the elements of a register: fold with the register moved up by 1, 2, 4 … elements."""
    distance = 1
    while distance < width:
        mask = spelling.shuffle_mask([width] * distance + list(range(width - distance)))
        moved = tuple(
            Register(
                context.core,
                context.writer.value(f"shufflevector {register.typed}, {neutral.typed}, {mask}"),
                register.dtype,
                width,
            )
            for register, neutral in zip(partial, combine.identity(partial), strict=True)
        )
        partial = combine.merge(moved, partial)
        distance *= 2
    return partial


def _repeated(context: EmissionContext, partial: Partial, width: int) -> Partial:
    return tuple(
        Register(
            context.core,
            context.splat(spelling.element_type(register.dtype), register.name, width),
            register.dtype,
            width,
        )
        for register in partial
    )


def _carry(runs: list[list[int]], totals: list[Partial], combine: Combine, scanned: dict[int, Partial]) -> Partial:
    """Add to each repeat of the lanes' pattern what came before it; returns the fold of the whole line."""
    before = totals[0]
    for numbers, total in zip(runs[1:], totals[1:], strict=True):
        for number in numbers:
            scanned[number] = combine.merge(before, scanned[number])
        before = combine.merge(before, total)
    return before
