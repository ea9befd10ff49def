"""Folds in a kernel's domain: which of its axes they fold over, and whether its programs can share them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from blockarray.fusion.index_maps import AxisIndices, Extents, Strides
from blockarray.fusion.one_walk import find_one_walk
from blockarray.fusion.plan import Apply, Convert, Fold, RunningFold, Statement, Take
from codegen.target import Target

# A domain of fewer points is gone through by one program as fast as by many.
SMALL_DOMAIN = 1 << 16
# Columns that one program works on when the folded axis is not the contiguous one: some lines of cache on the host, a warp
# on a GPU.
_COLUMNS_PER_HOST_PROGRAM = 64


@dataclass(frozen=True)
class FoldedAxis:
    """A domain axis that runs along a folded axis (numbered among the folded ones) with a step."""

    domain_axis: int
    folded_axis: int
    step: int


@dataclass(frozen=True)
class WantedSplit:
    """A domain axis runs along several folded axes: it should be split, with an inner part of this extent."""

    axis: int
    inner: int


# Pairs of a kept and a folded domain axis, and whether the kept one comes first in what is folded.
AxisOrder = frozenset[tuple[int, int, bool]]


def match_axes(wanted: Sequence[int], axes: tuple[int, ...], extents: Extents) -> list[FoldedAxis] | WantedSplit | None:
    """Let domain axes run along folded axes of the extents `wanted`, both in order; None if they have other points.

    Several domain axes may share a folded axis.
    """
    own = [extents[axis] for axis in axes]
    if own == list(wanted):
        return [FoldedAxis(axis, which, 1) for which, axis in enumerate(axes)]
    if 0 in wanted or 0 in own or prod(own) != prod(wanted):
        return None
    found = []
    which = len(wanted) - 1
    left, step = wanted[which], 1
    for axis in reversed(axes):
        extent = extents[axis]
        if left == 1:
            which -= 1
            left, step = wanted[which], 1
        if left % extent == 0:
            found.append(FoldedAxis(axis, which, step))
            left //= extent
            step *= extent
        elif extent % left == 0:
            return WantedSplit(axis, left)
        else:
            return None
    return found


def order_of_axes(indices: AxisIndices, folded: Sequence[int], matched: Sequence[FoldedAxis]) -> AxisOrder:
    """How the kept axes (`indices` says which axes of the operand they run along) and the folded ones follow each other there."""
    found: set[tuple[int, int, bool]] = set()
    for axis, column in enumerate(indices.columns):
        along = next((k for k, step in enumerate(column) if step), None)
        if along is not None:
            found.update((axis, one.domain_axis, along < folded[one.folded_axis]) for one in matched)
    return frozenset(found)


def is_spread(extents: Extents, group: tuple[int, ...], folds_inside: bool, target: Target) -> bool:
    """Whether a kernel that folds over `group` and uses what comes out at every point keeps the machine busy.

    Parameters
    ----------
    extents : tuple of int
        Of the domain.
    group : tuple of int
        Axes that one program goes through by itself.
    folds_inside : bool
        Whether the contiguous axis is among them.
    target : Target
    """
    if prod(extents) <= SMALL_DOMAIN:
        return True
    kept = prod(extent for axis, extent in enumerate(extents) if axis not in group)
    on_host = target.lanes == 1
    programs = kept if folds_inside else kept // (_COLUMNS_PER_HOST_PROGRAM if on_host else target.lanes)
    # Half of a GPU still moves most of the bytes that the whole one does, and the input is read once instead of twice.
    return programs >= (target.cores if on_host else target.cores // 2)


def folds_needed_inside(
    statements: Sequence[Statement], written: Sequence[tuple[Strides, int]], group: tuple[int, ...]
) -> set[int]:
    """Folds whose result is needed at points of the axes that they fold over: by another fold, or by a value written there.

    Not by a fold that one walk finds together with them.

    Parameters
    ----------
    statements : sequence of Statement
    written : sequence of (strides, statement)
    group : tuple of int
        Axes that are folded over.
    """
    nothing: frozenset[int] = frozenset()
    above: list[frozenset[int]] = []
    found: set[int] = set()
    for position, statement in enumerate(statements):
        used: tuple[int, ...] = ()
        match statement:
            case Fold(operands=operands):
                if find_one_walk(statements, group, position) is None:
                    for one in operands:
                        found |= above[one]
                above.append(frozenset((position,)))
                continue
            case Apply(operands=operands) | Take(positions=operands):
                used = operands
            case Convert(operand=operand) | RunningFold(operand=operand):
                used = (operand,)
        folds = nothing
        for one in used:
            if above[one]:
                folds = folds | above[one]
        above.append(folds)
    for strides, number in written:
        if any(strides[axis] for axis in group):
            found |= above[number]
    return found
