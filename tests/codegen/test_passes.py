"""Each pass on a kernel that shows what it is for, what passes must leave alone, and the table of the pipeline."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_texts import body_text, kernel_of

from codegen.analysis.index_bounds import IndexBounds
from codegen.errors import InternalCompilerError, VerificationError
from codegen.ir.kernel import Body, Kernel
from codegen.ir.layout import Layout
from codegen.ir.operations import For, Load, Map
from codegen.ir.parser import parse
from codegen.ir.printer import print_kernel
from codegen.passes import pipeline
from codegen.passes.assign_layouts import assign_layouts, layout_of
from codegen.passes.hoist_loop_invariants import hoist_loop_invariants
from codegen.passes.merge_duplicates import merge_duplicates
from codegen.passes.pipeline import Order, Pass
from codegen.passes.remove_bounds_checks import remove_bounds_checks
from codegen.passes.remove_dead_code import remove_dead_code
from codegen.passes.separate_edges import separate_edges
from codegen.passes.split_last_turns import split_last_turns
from codegen.settings import override
from codegen.target import Target

HOST = Target("cpu", "x86_64-unknown-linux-gnu", "x86-64", "", 128, 1, 1, 1 << 16, frozenset())


def test_merge_duplicates() -> None:
    kernel = kernel_of("""
%a = map negative %v
%v2 = load %x, %place shape=(16) checked=(true) fill=0
%b = map negative %v2
%w = map add %a, %b
store %y, %place, %w checked=(true)
""")
    assert body_text(merge_duplicates(kernel)) == (
        "%a: float32[16] = map negative %v\n%w: float32[16] = map add %a, %a\nstore %y, %place, %w checked=(true)"
    )


def test_merge_duplicates_tells_numbers_apart() -> None:
    lines = "\n".join(
        f"%c{k} = constant dtype=float32 number={n} shape=(16)" for k, n in enumerate(("0.0", "-0.0", "0", "false"))
    )
    kernel = kernel_of(lines)
    assert merge_duplicates(kernel) is kernel
    twice = kernel_of(
        "%a = constant dtype=float32 number=nan shape=(16)\n%b = constant dtype=float32 number=nan shape=(16)"
    )
    assert len(merge_duplicates(twice).body.operations) == len(twice.body.operations) - 1


def test_a_load_behind_a_write_is_another_load() -> None:
    kernel = kernel_of("""
%a = load %y, %place shape=(16) checked=(true) fill=0
store %y, %place, %v checked=(true)
%b = load %y, %place shape=(16) checked=(true) fill=0
%w = map add %a, %b
store %y, %place, %w checked=(true)
""")
    assert merge_duplicates(kernel) is kernel


def test_a_load_in_a_loop_that_writes_is_another_load() -> None:
    kernel = kernel_of("""
%a = load %y, %place shape=(16) checked=(true) fill=0
for %zero, %n step=1 (%i) {
%b = load %y, %place shape=(16) checked=(true) fill=0
%w = map add %a, %b
store %y, %place, %w checked=(true)
}
""")
    assert merge_duplicates(kernel) is kernel
    assert hoist_loop_invariants(kernel) is kernel


def test_writes_to_memory_that_two_buffers_may_share() -> None:
    text = print_kernel(
        kernel_of("""
%a = load %x, %place shape=(16) checked=(true) fill=0
store %y, %place, %v checked=(true)
%b = load %x, %place shape=(16) checked=(true) fill=0
%w = map add %a, %b
store %y, %place, %w checked=(true)
""")
    )
    apart = parse(text)
    together = parse(
        text.replace("strides (1) align 4\n  y", "strides (1) align 4 aliased\n  y").replace(
            "4 written\n  even", "4 written aliased\n  even"
        )
    )
    assert sum(isinstance(row, Load) for row in merge_duplicates(apart).body.operations) == 1
    assert sum(isinstance(row, Load) for row in merge_duplicates(together).body.operations) == 2


def test_remove_dead_code() -> None:
    kernel = kernel_of("""
%unused = map negative %v
%k = allocate dtype=float32 shape=(16)
%s, %t = for %zero, %n, %v, %v step=1 (%i, %p, %q) {
%a = map add %p, %p
%b = map add %q, %p
yield %a, %b
}
%r = for %zero, %n, %v step=1 (%j, %z) {
yield %z
}
store %y, %place, %s checked=(true)
""")
    assert body_text(remove_dead_code(kernel)) == (
        "%s: float32[16] = for %zero, %n, %v step=1 (%i: int64, %p: float32[16]) {\n"
        "  %a: float32[16] = map add %p, %p\n"
        "  yield %a\n"
        "}\n"
        "store %y, %place, %s checked=(true)"
    )


def test_carried_values_that_others_need_are_not_dead() -> None:
    kernel = kernel_of("""
%s, %t, %u = for %zero, %n, %v, %v, %v step=1 (%i, %p, %q, %r) {
%a = map add %p, %q
%b = map negative %r
yield %a, %b, %r
}
store %y, %place, %s checked=(true)
""")
    assert remove_dead_code(kernel).body.operations[-2].bodies == kernel.body.operations[-2].bodies


def test_dead_results_of_branches() -> None:
    kernel = kernel_of("""
%c = map less %program, %tile
%a, %b = if %c {
%p = map negative %v
%q = map square %v
yield %p, %q
} else {
yield %v, %v
}
store %y, %place, %a checked=(true)
""")
    assert "square" not in print_kernel(remove_dead_code(kernel))
    assert "%a: float32[16] = if %c" in print_kernel(remove_dead_code(kernel))


def test_hoist_loop_invariants() -> None:
    kernel = kernel_of("""
%w = for %zero, %n, %v step=1 (%i, %p) {
%s = broadcast %f shape=(16)
%e = map exp %s
%u = load %x, %place shape=(16) checked=(true) fill=0
%r = load %x, %place shape=(16) checked=(false) fill=0
%g = load %y, %place shape=(16) checked=(true) fill=0
%o = load %x, %i shape=(16) checked=(true) fill=0
%a = map add %e, %p
yield %a
}
store %y, %place, %w checked=(true)
""")
    assert body_text(hoist_loop_invariants(kernel)) == (
        "%s: float32[16] = broadcast %f shape=(16)\n"
        "%e: float32[16] = map exp %s\n"
        "%u: float32[16] = load %x, %place shape=(16) checked=(true) fill=0\n"
        "%w: float32[16] = for %zero, %n, %v step=1 (%i: int64, %p: float32[16]) {\n"
        "  %r: float32[16] = load %x, %place shape=(16) checked=(false) fill=0\n"
        "  %g: float32[16] = load %y, %place shape=(16) checked=(true) fill=0\n"
        "  %o: float32[16] = load %x, %i shape=(16) checked=(true) fill=0\n"
        "  %a: float32[16] = map add %e, %p\n"
        "  yield %a\n"
        "}\n"
        "store %y, %place, %w checked=(true)"
    )


def test_hoisted_through_two_loops() -> None:
    kernel = kernel_of("""
for %zero, %n step=1 (%i) {
for %zero, %n step=1 (%j) {
%s = broadcast %f shape=(16)
%t = broadcast %i shape=(16)
}
}
""")
    assert body_text(hoist_loop_invariants(kernel)).splitlines()[:3] == [
        "%s: float32[16] = broadcast %f shape=(16)",
        "for %zero, %n step=1 (%i: int64) {",
        "  %t: int64[16] = broadcast %i shape=(16)",
    ]


def test_separate_edges() -> None:
    kernel = kernel_of("%w = map negative %v\nstore %y, %place, %w checked=(true)")
    assert body_text(separate_edges(kernel)) == (
        "%0: int64 = constant dtype=int64 number=16 shape=()\n"
        "%1: int64 = map add %place, %0\n"
        "%2: bool = map less_equal %1, %n\n"
        "if %2 {\n"
        "  %zero: int64 = constant dtype=int64 number=0 shape=()\n"
        "  %v: float32[16] = load %x, %place shape=(16) checked=(true) fill=0\n"
        "  %w: float32[16] = map negative %v\n"
        "  store %y, %place, %w checked=(true)\n"
        "} else {\n"
        "  %zero.2: int64 = constant dtype=int64 number=0 shape=()\n"
        "  %v.2: float32[16] = load %x, %place shape=(16) checked=(true) fill=0\n"
        "  %w.2: float32[16] = map negative %v.2\n"
        "  store %y, %place, %w.2 checked=(true)\n"
        "}"
    )


def test_separate_edges_asks_for_both_ends_of_shifted_windows() -> None:
    kernel = kernel_of("""
%back = constant dtype=int64 number=-2 shape=()
%before = map add %place, %back
%u = load %x, %before shape=(16) checked=(true) fill=0
%w = map add %u, %v
store %y, %place, %w checked=(true)
""")
    text = print_kernel(pipeline.run(kernel, HOST))
    assert "map less_equal %" in text and "map logical_and" in text
    assert text.count("checked=(false)") == text.count("checked=(true)") == 3


def with_layout(kernel: Kernel, layout: Layout) -> Kernel:
    return replace(kernel, layout=layout)


def test_lanes_take_a_branch_only_for_wider_accesses() -> None:
    kernel = kernel_of("%w = map negative %v\nstore %y, %place, %w checked=(true)")
    wide = parse(print_kernel(kernel).replace("strides (1) align 4", "strides (1) align 16"))
    assert separate_edges(with_layout(kernel, Layout((4,), (4,)))).body == kernel.body
    assert separate_edges(with_layout(wide, Layout((16,), (1,)))).body == wide.body
    assert separate_edges(with_layout(wide, Layout((4,), (4,)))).body != wide.body
    whole_runs = parse(print_kernel(wide).replace("n: index", "n: index divisible 4"))
    assert separate_edges(with_layout(whole_runs, Layout((4,), (4,)))).body == whole_runs.body


def test_a_window_at_the_same_place_in_all_programs_takes_no_branch() -> None:
    text = print_kernel(kernel_of("")).replace("load %x, %place", "load %x, %zero")
    kernel = parse(text)
    assert separate_edges(kernel) is kernel


def test_large_kernels_are_not_copied() -> None:
    chain = "%w0 = map negative %v\n" + "\n".join(f"%w{k + 1} = map negative %w{k}" for k in range(120))
    kernel = kernel_of(f"{chain}\nstore %y, %place, %w120 checked=(true)")
    assert separate_edges(kernel) is kernel


STREAM = """
%w = for %zero, %n, %v step=16 (%i, %p) {
%u = load %x, %i shape=(16) checked=(true) fill=0
%q = map add %p, %u
yield %q
}
store %y, %place, %w checked=(true)
"""


def test_split_last_turns() -> None:
    assert body_text(split_last_turns(kernel_of(STREAM))) == (
        "%0: int64 = map subtract %n, %zero\n"
        "%1: int64 = constant dtype=int64 number=-16 shape=()\n"
        "%2: int64 = map bitwise_and %0, %1\n"
        "%3: int64 = map add %zero, %2\n"
        "%w: float32[16] = for %zero, %3, %v step=16 (%i: int64, %p: float32[16]) {\n"
        "  %u: float32[16] = load %x, %i shape=(16) checked=(true) fill=0\n"
        "  %q: float32[16] = map add %p, %u\n"
        "  yield %q\n"
        "}\n"
        "%w.2: float32[16] = for %3, %n, %w step=16 (%i.2: int64, %p.2: float32[16]) {\n"
        "  %u.2: float32[16] = load %x, %i.2 shape=(16) checked=(true) fill=0\n"
        "  %q.2: float32[16] = map add %p.2, %u.2\n"
        "  yield %q.2\n"
        "}\n"
        "store %y, %place, %w.2 checked=(true)"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%n, %v step=16", "%m, %v step=16"),  # 16 divides m, so no check is needed (below, of a)
        ("%n, %v step=16", "%n, %v step=12"),
        ("shape=(16) checked=(true) fill=0\n%q", "shape=(16) checked=(false) fill=0\n%q"),
        ("load %x, %i shape", "load %x, %place shape"),
        ("for %zero, %n", "for %near, %n"),
        ("for %zero, %n", "for %tile, %n"),  # n may be less than 16, and whole turns of nothing would be negative
    ],
)
def test_loops_that_are_not_split(old: str, new: str) -> None:
    near = "%less = constant dtype=int64 number=-64 shape=()\n%near = map bitwise_and %n, %less\n"
    text = (near if "%near" in new else "") + STREAM.replace(old, new)
    kernel = kernel_of(text.replace("load %x, %i", "load %even, %i") if "%m" in new else text)
    assert split_last_turns(kernel) is kernel


def checks_of(kernel: Kernel) -> list[tuple[bool, ...]]:
    """`checked` of all loads in order, those in bodies too."""

    def collect(body: Body) -> list[tuple[bool, ...]]:
        found = []
        for operation in body.operations:
            if isinstance(operation, Load):
                found.append(operation.checked)
            for inner in operation.bodies:
                found += collect(inner)
        return found

    return collect(kernel.body)


def test_remove_bounds_checks_in_loops_over_whole_turns() -> None:
    kernel = remove_bounds_checks(split_last_turns(kernel_of(STREAM)))
    assert checks_of(kernel) == [(True,), (False,), (True,)]


def test_remove_bounds_checks_by_divisibility() -> None:
    text = print_kernel(kernel_of("%u = load %even, %place shape=(16) checked=(true) fill=7"))
    by_m = parse(text.replace("grid (n by 16)", "grid (m by 16)"))
    assert checks_of(remove_bounds_checks(by_m)) == [(True,), (False,)]
    assert remove_bounds_checks(by_m).body.operations[-1].fill == 0
    assert checks_of(remove_bounds_checks(parse(text))) == [(True,), (True,)]
    by_more = parse(text.replace("grid (n by 16)", "grid (m by 32)"))
    assert checks_of(remove_bounds_checks(by_more)) == [(True,), (True,)]


def test_masks_that_always_hold_go_too() -> None:
    masked = STREAM.replace(
        "%q = map add %p, %u",
        """%left = map subtract %n, %i
%b = broadcast %left shape=(16)
%k = iota shape=(16) axis=0
%inside = map less %k, %b
%none = constant dtype=float32 number=0.0 shape=(16)
%u2 = map where %inside, %u, %none
%q = map add %p, %u2""",
    )
    text = print_kernel(pipeline.run(kernel_of(masked), HOST))
    # The first program-wide body has two loops, of which only the second masks; the other body is as it was.
    first, other = text.split("} else {")
    assert (first.count("map where"), other.count("map where")) == (1, 1)


def test_loops_say_nothing_outside_of_them() -> None:
    # Were there a turn, n would be at least 16; behind the loop nobody knows.
    kernel = kernel_of(STREAM.replace("store %y", "%z = load %x, %zero shape=(16) checked=(true) fill=0\nstore %y"))
    kernel = remove_bounds_checks(split_last_turns(kernel))
    assert checks_of(kernel)[-1] == (True,)


def test_conditions_say_nothing_in_the_other_body() -> None:
    kernel = kernel_of("""
%c = map less_equal %tile, %n
if %c {
%p = load %x, %zero shape=(16) checked=(true) fill=0
} else {
%q = load %x, %zero shape=(16) checked=(true) fill=0
}
%r = load %x, %zero shape=(16) checked=(true) fill=0
""")
    assert checks_of(remove_bounds_checks(kernel)) == [(True,), (False,), (True,), (True,)]


def test_comparisons_of_transposed_indices_are_kept() -> None:
    kernel = parse("""
kernel square(
  y: buffer bool[4, 4] strides (4, 1) align 1 written
  z: buffer int64[4, 1] strides (1, 1) align 8
) grid () layout lanes 1x1 run 1x1 register 4 {
  %0 = constant dtype=int64 number=0 shape=()
  %column = load %z, %0, %0 shape=(4, 1) checked=(false, false) fill=0
  %row = reshape %column shape=(1, 4)
  %a = broadcast %column shape=(4, 4)
  %b = broadcast %row shape=(4, 4)
  %c = map less_equal %a, %b
  store %y, %0, %0, %c checked=(false, false)
}
""")
    assert any(isinstance(row, Map) for row in remove_bounds_checks(kernel).body.operations)


def test_assign_layouts() -> None:
    kernel = kernel_of("%t = reduce add %v axis=0")
    text = print_kernel(assign_layouts(with_layout(kernel, Layout((4,), (2,), 1))))
    assert "%v: float32[16] @ lanes 4 run 2 register 1 = load" in text
    assert "%t: float32[1] @ lanes 1 run 1 register 1 = reduce" in text
    assert "%place: int64 = map" in text


@settings(deadline=None)
@given(st.sampled_from((1, 2, 4)), st.sampled_from((1, 2, 8)), st.sampled_from((1, 2, 4, 16, 64)))
def test_layouts_hold_each_element_once(run: int, lanes: int, extent: int) -> None:
    layout = layout_of((extent,), Layout((lanes,), (run,)))
    (spread,), (held,) = layout.lanes, layout.run
    repeats = extent // (spread * held)
    places = [(r * spread + lane) * held + k for r in range(repeats) for lane in range(spread) for k in range(held)]
    assert sorted(places) == list(range(extent))


def test_index_bounds_of_loops() -> None:
    kernel = kernel_of("%a = map bitwise_and %n, %tile")
    bounds = IndexBounds(kernel)
    for operation in kernel.body.operations:
        bounds.walk(operation)
    place, n = bounds.sum_of(kernel.body.operations[3].result), bounds.extent("n")
    assert bounds.is_not_negative(n.plus(place, -1).shifted(-1))
    assert not bounds.is_not_negative(n.plus(place, -1).shifted(-2))
    assert not bounds.is_not_negative(place.shifted(-1))
    assert bounds.divisor(place) == 16
    assert bounds.divisor(bounds.extent("m")) == 16


def test_longest_loop() -> None:
    text = "%c = constant dtype=int64 number=-64 shape=()\n%b = map bitwise_and %n, %c\nfor %b, %n step=16 (%i) {\n}\nfor %zero, %n step=16 (%j) {\n}"
    kernel = kernel_of(text)
    bounds = IndexBounds(kernel)
    for operation in kernel.body.operations:
        bounds.walk(operation)
    loops = [row for row in kernel.body.operations if isinstance(row, For)]
    assert [bounds.longest_loop(loop) for loop in loops] == [4, None]


def test_passes_stand_in_the_order_that_is_asked_for() -> None:
    pipeline.check_orders(pipeline.PASSES, pipeline.ORDERS)
    for order in pipeline.ORDERS:
        assert order.because
        with pytest.raises(InternalCompilerError, match=order.because):
            pipeline.check_orders(tuple(reversed(pipeline.PASSES)), [order])


def test_orders_name_passes() -> None:
    with pytest.raises(InternalCompilerError, match="an order names 'tidy'"):
        pipeline.check_orders(pipeline.PASSES, [Order("tidy", "canonicalize", because="it is nicer")])
    with pytest.raises(InternalCompilerError, match="a pass is named twice"):
        pipeline.check_orders(pipeline.PASSES * 2, [])


def test_passes_that_find_nothing_return_the_kernel_itself() -> None:
    kernel = remove_dead_code(kernel_of("store %y, %place, %v checked=(true)"))
    for row in pipeline.PASSES:
        if row.name not in ("assign_layouts", "separate_edges"):
            assert row.run(kernel, HOST) is kernel, row.name


def test_a_pass_that_breaks_a_kernel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(kernel: Kernel, target: Target) -> Kernel:
        return replace(kernel, body=Body((), kernel.body.operations[2:]))

    monkeypatch.setattr(pipeline, "PASSES", (Pass("breaks", breaks),))
    with override(verify=True), pytest.raises(VerificationError) as caught:
        pipeline.run(kernel_of(""), HOST)
    message = str(caught.value)
    assert message.startswith("after pass breaks: kernel example: ")
    assert "the kernel before it:\nkernel example(" in message
