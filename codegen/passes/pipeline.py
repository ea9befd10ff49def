"""The passes in order, and why they stand in that order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codegen import settings
from codegen.errors import InternalCompilerError, VerificationError
from codegen.ir.kernel import Kernel
from codegen.ir.printer import print_kernel
from codegen.ir.verifier import verify
from codegen.passes.assign_layouts import assign_layouts
from codegen.passes.canonicalize import canonicalize
from codegen.passes.divide_by_invariants import divide_by_invariants
from codegen.passes.hoist_loop_invariants import hoist_loop_invariants
from codegen.passes.merge_duplicates import merge_duplicates
from codegen.passes.remove_bounds_checks import remove_bounds_checks
from codegen.passes.remove_dead_code import remove_dead_code
from codegen.passes.select_matmul import select_matmul
from codegen.passes.separate_edges import separate_edges
from codegen.passes.split_last_turns import split_last_turns
from codegen.target import Target


@dataclass(frozen=True)
class Pass:
    """One row of the table.

    Attributes
    ----------
    name : str
    run : callable
        Gives the kernel after the pass; the target's facts are all that it knows of the machine.
    """

    name: str
    run: Callable[[Kernel, Target], Kernel]


@dataclass(frozen=True)
class Order:
    """One pass stands before another one, because."""

    before: str
    after: str
    because: str


def _on_any_target(function: Callable[[Kernel], Kernel]) -> Pass:
    return Pass(function.__name__, lambda kernel, target: function(kernel))


PASSES: tuple[Pass, ...] = (
    _on_any_target(canonicalize),
    Pass(divide_by_invariants.__name__, divide_by_invariants),
    _on_any_target(merge_duplicates),
    _on_any_target(hoist_loop_invariants),
    Pass("select_matmul", select_matmul),
    _on_any_target(separate_edges),
    _on_any_target(split_last_turns),
    _on_any_target(remove_bounds_checks),
    _on_any_target(remove_dead_code),
    _on_any_target(assign_layouts),
)

ORDERS: tuple[Order, ...] = (
    Order("canonicalize", "merge_duplicates", because="duplicates that are spelled differently become equal first"),
    Order(
        "canonicalize", "divide_by_invariants", because="divisors that are spelled differently become broadcasts first"
    ),
    Order("divide_by_invariants", "merge_duplicates", because="a divisor's inverse is computed once for all quotients"),
    Order("merge_duplicates", "hoist_loop_invariants", because="what is computed once has to be moved once"),
    Order("hoist_loop_invariants", "split_last_turns", because="what stays in a loop is copied with its last turn"),
    Order("hoist_loop_invariants", "separate_edges", because="a window that leaves its loop shows what it depends on"),
    Order("hoist_loop_invariants", "select_matmul", because="only windows and their product are left in the loop then"),
    Order("select_matmul", "separate_edges", because="an instruction looks after its edges by itself, in one loop"),
    Order("select_matmul", "split_last_turns", because="a loop that was split is no product of whole windows any more"),
    Order("separate_edges", "split_last_turns", because="a loop is split where its end is all that is left to check"),
    Order(
        "separate_edges", "remove_bounds_checks", because="the branch says of its first body which checks are needless"
    ),
    Order("split_last_turns", "remove_bounds_checks", because="in the loop over whole turns no check is needed"),
    Order("remove_bounds_checks", "remove_dead_code", because="masks that always hold leave their operands unused"),
    Order("merge_duplicates", "remove_dead_code", because="carried values that became one leave the other unused"),
    Order("remove_dead_code", "assign_layouts", because="types are inferred, and operations made, in block form"),
)


def check_orders(passes: Sequence[Pass], orders: Sequence[Order]) -> None:
    """Raise InternalCompilerError if passes break an order."""
    place = {row.name: number for number, row in enumerate(passes)}
    if len(place) != len(passes):
        raise InternalCompilerError(f"pipeline: a pass is named twice in {[row.name for row in passes]}")
    for order in orders:
        for name in (order.before, order.after):
            if name not in place:
                raise InternalCompilerError(f"pipeline: an order names {name!r}; passes: {', '.join(place)}")
        if place[order.before] > place[order.after]:
            raise InternalCompilerError(
                f"pipeline: expected {order.before} before {order.after}, because {order.because}; found it behind"
            )


check_orders(PASSES, ORDERS)


def run(kernel: Kernel, target: Target) -> Kernel:
    """The kernel after all passes, verified after each of them if the settings ask for that."""
    verifying = settings.current().verify
    for row in PASSES:
        before = kernel
        kernel = row.run(before, target)
        if verifying and kernel is not before:
            _verify_after(row, before, kernel)
    return kernel


def _verify_after(row: Pass, before: Kernel, after: Kernel) -> None:
    try:
        verify(after)
    except VerificationError as error:
        text = print_kernel(before)
        raise VerificationError(f"after pass {row.name}: {error}\nthe kernel before it:\n{text}") from error
