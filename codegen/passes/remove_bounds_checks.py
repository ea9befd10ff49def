"""Drop checks of windows that are proved to lie inside of their buffers, and masks that are proved to hold everywhere.

::

    %i: int64 = map multiply %program, %16            %i: int64 = map multiply %program, %16
    %1 = load %x, %i shape=(16) checked=(true)   ->   %1 = load %x, %i shape=(16) checked=(false)

for an extent of x that 16 divides, in programs over blocks of 16.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from codegen.analysis.index_bounds import window_axes
from codegen.ir.kernel import Kernel, Value
from codegen.ir.operations import Load, Map, Operation, Store
from codegen.passes.bounds_rewriter import BoundsRewriter
from codegen.passes.canonicalize import canonical

_COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal"})


def remove_bounds_checks(kernel: Kernel) -> Kernel:
    """The kernel without checks that never find anything, in canonical form."""
    return BoundsRewriter(kernel, _simplify).rewrite(kernel)


def _simplify(rewriter: BoundsRewriter, operation: Operation) -> Sequence[Value] | None:
    rule = _RULES.get(type(operation))
    found = None if rule is None else rule(rewriter, operation)
    return canonical(rewriter, operation) if found is None else found


def _load(rewriter: BoundsRewriter, operation: Load) -> Sequence[Value] | None:
    """``load checked=(true) -> load checked=(false)`` for a window inside of the buffer."""
    checked = needed_checks(rewriter, operation)
    if checked == operation.checked:
        return None
    new = replace(operation, checked=checked, fill=operation.fill if any(checked) else 0)
    return rewriter.add(new, [operation.result.name]).results


def _store(rewriter: BoundsRewriter, operation: Store) -> Sequence[Value] | None:
    """``store checked=(true) -> store checked=(false)`` for a window inside of the buffer."""
    checked = needed_checks(rewriter, operation)
    if checked == operation.checked:
        return None
    rewriter.add(replace(operation, checked=checked))
    return ()


def needed_checks(rewriter: BoundsRewriter, operation: Load | Store) -> tuple[bool, ...]:
    """The axes on which a window is checked, and not proved to be inside."""
    if not any(operation.checked):
        return operation.checked
    return tuple(
        [
            checked and not rewriter.bounds.is_window_inside(axis.offset, axis.length, axis.extent)
            for checked, axis in zip(operation.checked, window_axes(operation), strict=True)
        ]
    )


def _comparison(rewriter: BoundsRewriter, operation: Map) -> Sequence[Value] | None:
    """``iota < 16 -> true`` for a block of 16."""
    if operation.function not in _COMPARISONS:
        return None
    known = rewriter.bounds.known_comparison(operation)
    if known is None:
        return None
    block = operation.result.block
    return (rewriter.constant(block.dtype, known, block.shape),)


_RULES: Mapping[type[Operation], Callable[..., Sequence[Value] | None]] = {
    Load: _load,
    Store: _store,
    Map: _comparison,
}
