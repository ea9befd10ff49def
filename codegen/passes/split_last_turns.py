"""Take the last turn off loops whose windows are checked against nothing but the loop's own end.

::

    for %0, %n step=64 (%i: int64) {             for %0, %whole step=64 (%i: int64) {
      %1 = load %x, %i shape=(64) …        ->      %1 = load %x, %i shape=(64) …
    }                                            }
                                                 for %whole, %n step=64 (%i: int64) { … }

where `whole` is the last multiple of 64 up to n: in the first loop no check is needed.
"""

from collections.abc import Iterator, Sequence

from codegen.analysis.index_bounds import window_axes
from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.operations import For, Load, Operation, Store
from codegen.ir.rewriter import copy_body
from codegen.passes.bounds_rewriter import BoundsRewriter
from codegen.passes.remove_bounds_checks import needed_checks

# A loop of fewer turns is what a schedule has left over from full tiles; to split it again only adds code.
_FEWEST_TURNS = 4


def split_last_turns(kernel: Kernel) -> Kernel:
    """The kernel with a loop for full turns, and one for what is left, where that makes checks unnecessary."""
    return BoundsRewriter(kernel, _split).rewrite(kernel)


def _split(rewriter: BoundsRewriter, operation: Operation) -> Sequence[Value] | None:
    if not isinstance(operation, For) or not _is_worth_it(rewriter, operation):
        return None
    begin, end, *initial = operation.operands
    whole = rewriter.map("bitwise_and", rewriter.map("subtract", end, begin), rewriter.index(-operation.step))
    middle = rewriter.map("add", begin, whole)
    (body,) = operation.bodies
    names = [value.name for value in operation.results]
    carried: Sequence[Value] = initial
    for first, last in ((begin, middle), (middle, end)):
        loop = For(operands=(first, last, *carried), bodies=(copy_body(body, {}),), step=operation.step)
        carried = rewriter.add(loop, names).results
    return carried


def _is_worth_it(rewriter: BoundsRewriter, loop: For) -> bool:
    bounds = rewriter.bounds
    begin, end = (bounds.sum_of(value) for value in loop.operands[:2])
    if loop.step & (loop.step - 1) or not bounds.is_not_negative(end.plus(begin, -1)):
        return False
    turns = bounds.longest_loop(loop)
    if turns is not None and turns <= _FEWEST_TURNS:
        return False
    with bounds.in_turn_of(loop):
        windows = [window for window in _windows(loop.bodies[0]) if any(needed_checks(rewriter, window))]
        return bool(windows) and all(_ends_with(rewriter, loop, window) for window in windows)


def _ends_with(rewriter: BoundsRewriter, loop: For, window: Load | Store) -> bool:
    """Whether a turn that is whole has this window inside of the buffer, on all axes that need a check."""
    bounds = rewriter.bounds
    index, end = loop.bodies[0].parameters[0], bounds.sum_of(loop.operands[1])
    for axis, needed in zip(window_axes(window), needed_checks(rewriter, window), strict=True):
        if not needed:
            continue
        fits = axis.offset is index and axis.length <= loop.step
        if not fits or not bounds.is_not_negative(bounds.extent(axis.extent).plus(end, -1)):
            return False
    return bounds.is_not_negative(bounds.sum_of(loop.operands[0]))


def _windows(body: Body) -> Iterator[Load | Store]:
    for operation in body.operations:
        if isinstance(operation, (Load, Store)):
            yield operation
        for inner in operation.bodies:
            yield from _windows(inner)
