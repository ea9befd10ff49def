"""Plans of typical expressions: how many kernels, over which domains, what is stored and why."""

import sys

import numpy as np
import pytest
from graphs import (
    HOST,
    NO_DEVICE,
    apply,
    constant,
    fold,
    leaf_array,
    positions,
    source,
    view_like,
    window_of,
)

from blockarray.fusion.explain import explain_plan
from blockarray.fusion.partition import make_plan
from blockarray.fusion.plan import Fresh, GraphPlan, Inherited, KernelPlan, Product
from blockarray.fusion.reference import run
from blockarray.fusion.split import split
from blockarray.graph import reference
from blockarray.graph.nodes import Cast, Contract, Gather, Iota, Node, Scan, Update, View
from blockarray.graph.recording import linearize
from codegen import dtypes

RANDOM = np.random.default_rng(1)
ASKED = "its result was asked for"
OTHER_AXES = "it folds over other axes than the kernel that uses it"
ANOTHER_AXIS = "the folded value is used along another axis of what was folded"
EVERY_PROGRAM = "every program needs the folded value, and the rows are too few to share them among the cores"


def random(*shape: int, dtype: str = "float64") -> Node:
    return source(RANDOM.random(shape).astype(dtype))


def number(value: float, like: Node) -> Node:
    return constant(value, like.dtype)


def mean(x: Node, *axes: int) -> Node:
    count = int(np.prod([x.shape[axis] for axis in axes]))
    return apply("divide", fold("add", x, *axes), number(count, x))


def squeezed(x: Node) -> Node:
    """Without axes of extent 1."""
    return view_like(x, positions(x).squeeze())


def variance(x: Node, *axes: int) -> Node:
    deviation = apply("subtract", x, mean(x, *axes))
    return mean(apply("square", deviation), *axes)


def z_score(x: Node, *axes: int) -> Node:
    return apply("divide", apply("subtract", x, mean(x, *axes)), apply("sqrt", variance(x, *axes)))


def softmax(x: Node, axis: int) -> Node:
    powers = apply("exp", apply("subtract", x, fold("maximum", x, axis)))
    return apply("divide", powers, fold("add", powers, axis))


def checked_plan(*roots: Node) -> GraphPlan:
    """The plan, whose results were found to agree with the nodes."""
    recording = linearize(roots)
    plan = make_plan(recording, HOST)
    wanted = reference.evaluate(recording, leaf_array)
    leaves = [leaf_array(leaf) for leaf in recording.leaves]
    for take_over in (True, False):
        found = run(plan, leaves, take_over)
        for root, value in zip(roots, wanted, strict=True):
            result = found[recording.nodes.index(root)].reshape(root.shape)
            tolerance = 1e-4 if value.dtype == np.float32 else 1e-9
            np.testing.assert_allclose(result, value, rtol=tolerance, atol=tolerance)
    return plan


def temporaries(plan: GraphPlan) -> int:
    return sum(isinstance(value, Fresh) and value.result is None for value in plan.values)


def text(plan: GraphPlan) -> list[str]:
    """A line for each step."""
    lines = []
    for step in plan.steps:
        if isinstance(step, Product):
            lines.append(f"product {list(step.shape)}: {step.reason}")
            continue
        axes = ", ".join(f"fold {axis.extent}" if axis.reduced else str(axis.extent) for axis in step.axes)
        lines.append(f"{step.name} [{axes}] -> {len(step.writes)}: {step.reason}")
    return lines


# -- one kernel --------------------------------------------------------------------------------------------------------


def test_softmax_is_one_kernel_over_rows() -> None:
    plan = checked_plan(softmax(random(40, 60), 1))
    assert text(plan) == [f"fold_maximum_subtract_exp_fold_add_divide [40, fold 60] -> 1: {ASKED}"]
    assert temporaries(plan) == 0


def test_softmax_over_columns_folds_the_outer_axis() -> None:
    plan = checked_plan(softmax(random(40, 60), 0))
    assert text(plan) == [f"fold_maximum_subtract_exp_fold_add_divide [fold 40, 60] -> 1: {ASKED}"]


def test_z_score_is_one_kernel() -> None:
    plan = checked_plan(z_score(random(40, 60), 1))
    assert text(plan) == [f"fold_add_divide_subtract_square_sqrt [40, fold 60] -> 1: {ASKED}"]


def test_layer_norm_with_affine_is_one_kernel() -> None:
    x, scale, shift = random(6, 40, 60), random(60), random(60)
    plan = checked_plan(apply("add", apply("multiply", z_score(x, 2), scale), shift))
    assert text(plan) == [f"fold_add_divide_subtract_square_sqrt_multiply_add [240, fold 60] -> 1: {ASKED}"]


def test_variance_is_one_kernel_without_the_kept_axis() -> None:
    x = random(40, 60)
    assert text(checked_plan(squeezed(variance(x, 1)))) == [
        f"fold_add_divide_subtract_square [40, fold 60] -> 1: {ASKED}"
    ]


def test_logsumexp_is_one_kernel() -> None:
    x = random(40, 60)
    largest = fold("maximum", x, 1)
    total = fold("add", apply("exp", apply("subtract", x, largest)), 1)
    plan = checked_plan(squeezed(apply("add", apply("log", total), largest)))
    # A function's name is in the kernel's once.
    assert text(plan) == [f"fold_maximum_subtract_exp_fold_add_log_add [40, fold 60] -> 1: {ASKED}"]


def test_root_of_sum_of_squares_folds_everything_in_one_kernel() -> None:
    plan = checked_plan(apply("sqrt", fold("add", apply("square", random(40, 60)), 0, 1)))
    assert text(plan) == [f"square_fold_add_sqrt [fold 2400] -> 1: {ASKED}"]


def test_large_root_of_sum_of_squares_is_two_kernels_when_it_is_cut() -> None:
    x = random(2000, 1000, dtype="float32")
    recording = linearize((apply("sqrt", fold("add", apply("square", x), 0, 1)),))
    plan = split(make_plan(recording, HOST), HOST)
    explanation = explain_plan(plan, recording)
    assert len(explanation.kernels) == 2
    assert explanation.temporaries == 0 and explanation.temporary_bytes == 0
    assert len(explanation.partial_results) == 1


def test_chain_of_thirty_operations_is_one_kernel_over_one_axis() -> None:
    x, y = random(30, 20, 10), random(30, 20, 10)
    for _ in range(15):
        x = apply("add", apply("multiply", x, y), number(0.5, x))
    plan = checked_plan(x)
    assert text(plan) == [f"multiply_add [6000] -> 1: {ASKED}"]


def test_stencil_of_shifted_slices_is_one_kernel() -> None:
    x = random(30, 40)
    where = positions(x)
    parts = (where[1:-1, 1:-1], where[2:, 1:-1], where[:-2, 1:-1], where[1:-1, 2:], where[1:-1, :-2])
    centre, *around = (view_like(x, part) for part in parts)
    total = centre
    for part in around:
        total = apply("add", total, part)
    assert text(checked_plan(total)) == [f"add [28, 38] -> 1: {ASKED}"]


def test_two_outputs_of_one_input_are_one_kernel() -> None:
    x, y = random(40, 60), random(40, 60)
    plan = checked_plan(apply("add", x, y), apply("multiply", x, y))
    assert text(plan) == [f"multiply_add [2400] -> 2: {ASKED}"]


def test_row_results_and_full_results_share_a_kernel() -> None:
    x = random(40, 60)
    average, spread = mean(x, 1), variance(x, 1)
    plan = checked_plan(average, spread, z_score(x, 1))
    assert text(plan) == [f"fold_add_divide_subtract_square_sqrt [40, fold 60] -> 3: {ASKED}"]


def test_folds_of_one_array_over_one_axis_share_a_kernel() -> None:
    x = random(40, 60)
    plan = checked_plan(squeezed(fold("add", x, 1)), squeezed(fold("maximum", x, 1)), fold("argmax", x, 1, output=1))
    assert len(plan.steps) == 1 and len(plan.steps[0].writes) == 3


def test_array_and_its_transpose_are_read_by_one_kernel() -> None:
    x = random(30, 30)
    across = view_like(x, positions(x).T)
    assert text(checked_plan(apply("add", x, across))) == [f"add [30, 30] -> 1: {ASKED}"]


def test_row_result_that_is_broadcast_is_a_kernel_of_its_own() -> None:
    x, row = random(40, 60), random(60)
    double = apply("exp", row)
    plan = checked_plan(double, apply("add", x, double))
    assert text(plan) == [f"exp [60] -> 1: {ASKED}", f"add [40, 60] -> 1: {ASKED}"]


def test_fold_over_an_empty_axis_feeds_a_broadcast() -> None:
    empty, row = source(np.zeros((3, 0))), random(3)
    total = fold("add", apply("add", empty, number(1, empty)), 1)
    plan = checked_plan(apply("add", squeezed_last(total), row))
    assert len(plan.steps) == 1


def test_row_values_beside_a_fold_over_an_empty_axis_keep_their_place() -> None:
    x = random(4)
    taken = Gather(x, (source(np.array([2, 0, 3])),))
    last = view_like(taken, positions(taken)[2:])
    none = View(last, 0, (0,), (0,))
    checked_plan(apply("add", last, fold("add", none, 0)))


def squeezed_last(x: Node) -> Node:
    return view_like(x, positions(x)[..., 0])


def test_results_without_elements_need_no_kernel() -> None:
    empty = source(np.zeros((3, 0)))
    plan = checked_plan(apply("add", empty, number(1, empty)))
    assert plan.steps == ()


# -- views -------------------------------------------------------------------------------------------------------------


def test_views_of_computed_values_are_pushed_to_the_inputs() -> None:
    x, y = random(12, 10), random(12, 10)
    total = apply("add", x, y)
    turned = view_like(total, positions(total)[::-2, 3:].T)
    again = view_like(turned, positions(turned)[1:, ::-1])
    plan = checked_plan(apply("negative", again))
    assert temporaries(plan) == 0 and len(plan.steps) == 1
    assert sum(axis.extent for axis in plan.steps[0].axes) == 12  # 6 by 6: only what is used is computed


def test_reshapes_of_computed_values_are_pushed_to_the_inputs() -> None:
    x, row = random(12, 10), random(10)
    flat = view_like(apply("add", x, row), np.arange(120))
    assert text(checked_plan(apply("negative", flat))) == [f"add_negative [12, 10] -> 1: {ASKED}"]
    split_up = view_like(apply("add", x, row), np.arange(120).reshape(3, 4, 10))
    assert text(checked_plan(split_up)) == [f"add [12, 10] -> 1: {ASKED}"]
    joined = view_like(apply("exp", x), np.arange(120).reshape(8, 15))
    assert text(checked_plan(joined)) == [f"exp [120] -> 1: {ASKED}"]


def test_fold_over_a_flattened_array_runs_along_its_axes() -> None:
    x, row = random(12, 10), random(10)
    flat = view_like(apply("add", x, row), np.arange(120))
    assert text(checked_plan(apply("subtract", flat, fold("add", flat, 0)))) == [
        f"add_fold_add_subtract [fold 12, fold 10] -> 1: {ASKED}"
    ]
    place = fold("argmax", flat, 0, output=1)
    assert text(checked_plan(apply("add", Cast(flat, dtypes.int64), place)))[-1].endswith(
        f"[fold 12, fold 10] -> 1: {ASKED}"
    )
    # An axis of the domain that runs along several folded ones is split.
    both = apply("add", x, row)
    total = view_like(fold("add", both, 0, 1), np.zeros(1, np.int64))
    assert len(checked_plan(apply("subtract", random(120), total)).steps) == 1


def test_written_elements_are_contiguous_where_reading_and_writing_differ() -> None:
    x = random(4, 1000)
    (kernel,) = checked_plan(view_like(x, positions(x).T)).steps
    assert kernel.writes[0].strides == (4, 1)
    assert kernel.statements[0].strides == (1, 1000)


def test_reshape_that_cuts_rows_of_a_broadcast_stores_it_first() -> None:
    x, row = random(6, 4), random(4)
    other = view_like(apply("add", x, row), np.arange(24).reshape(8, 3))
    plan = checked_plan(fold("add", other, 0))
    assert text(plan) == [
        "add [6, 4] -> 1: a view of it takes elements that no strides describe before it is stored",
        f"fold_add [fold 8, 3] -> 1: {ASKED}",
    ]


def test_elements_that_a_view_leaves_out_are_not_folded() -> None:
    x = random(40, 60)
    sums = squeezed(fold("add", x, 1))
    plan = checked_plan(view_like(sums, positions(sums)[2:5]))
    assert text(plan) == [f"fold_add [3, fold 60] -> 1: {ASKED}"]


def test_reversed_input_of_a_fold_is_read_forwards() -> None:
    x = random(60)
    plan = checked_plan(fold("add", view_like(x, positions(x)[::-1]), 0))
    (read,) = [one for one in plan.steps[0].statements if type(one).__name__ == "Read"]
    assert (read.offset, read.strides) == (0, (1,))


# -- more than one kernel ----------------------------------------------------------------------------------------------


def test_folds_over_different_axes_are_kernels_of_their_own() -> None:
    x = random(6, 7, 8)
    two = apply("subtract", apply("subtract", x, mean(x, 0)), mean(x, 1, 2))
    plan = checked_plan(apply("add", two, mean(x, 0, 1, 2)))
    assert [line.split(": ")[1] for line in text(plan)].count(ASKED) == 1
    assert len(plan.steps) == 3


def test_fold_of_what_a_fold_was_spread_over_ends_a_kernel() -> None:
    x = random(40, 60)
    plan = checked_plan(fold("add", apply("exp", z_score(x, 1)), 0, 1))
    assert text(plan) == [
        f"fold_add_divide_subtract_square_sqrt_exp [40, fold 60] -> 1: {OTHER_AXES}",
        f"fold_add [fold 40] -> 1: {ASKED}",
    ]


def test_fold_used_along_another_axis_ends_a_kernel() -> None:
    x = random(30, 30)
    down = fold("add", x, 0)
    across = view_like(down, positions(down).T)
    assert text(checked_plan(apply("subtract", x, across))) == [
        f"fold_add [fold 30, 30] -> 1: {ANOTHER_AXIS}",
        f"subtract [30, 30] -> 1: {ASKED}",
    ]


def test_row_sums_and_column_sums_are_not_read_by_one_kernel() -> None:
    x = random(30, 30)
    plan = checked_plan(apply("add", squeezed(fold("add", x, 0)), squeezed(fold("add", x, 1))))
    assert [line.split(" -> ")[0] for line in text(plan)] == ["fold_add [30, fold 30]", "fold_add_add [fold 30, 30]"]


def test_large_array_minus_its_mean_shares_the_fold_among_cores() -> None:
    x = random(300, 400)
    plan = checked_plan(apply("subtract", x, mean(x, 0, 1)))
    assert text(plan) == [
        f"fold_add [fold 120000] -> 1: {EVERY_PROGRAM}",
        f"divide_subtract [120000] -> 1: {ASKED}",
    ]
    small = random(30, 40)
    assert len(checked_plan(apply("subtract", small, mean(small, 0, 1))).steps) == 1


def test_expensive_value_seen_through_many_views_is_stored_once() -> None:
    x = random(100_000)
    waves = apply("sin", x)
    total: Node = view_like(waves, positions(waves)[3:])
    for shift in (2, 1, 0):
        total = apply("add", total, view_like(waves, positions(waves)[shift : shift - 3]))
    plan = checked_plan(total)
    assert [line.split(" [")[0] for line in text(plan)] == ["sin", "add"]
    assert temporaries(plan) == 1


def test_cheap_value_seen_through_many_views_is_computed_again() -> None:
    x = random(100_000)
    double = apply("add", x, x)
    parts = (view_like(double, positions(double)[1:]), view_like(double, positions(double)[:-1]))
    assert len(checked_plan(apply("multiply", *parts)).steps) == 1


def test_expensive_value_of_two_kernels_is_one_more_output() -> None:
    x = random(400, 500)
    waves = apply("sin", x)
    plan = checked_plan(fold("add", waves, 1), fold("maximum", waves, 0))
    assert sum("sin" in step.name for step in plan.steps) == 1
    assert temporaries(plan) == 1 and len(plan.steps) == 2


def test_value_that_is_a_result_and_needed_along_two_ways_makes_no_circle() -> None:
    x = random(40, 50)
    shifted = apply("exp", x)
    scaled = apply("multiply", shifted, mean(shifted, 0))
    plan = checked_plan(shifted, apply("subtract", scaled, view_like(scaled, positions(scaled)[:, ::-1])))
    assert plan.steps


def test_gather_takes_from_stored_values_at_computed_positions() -> None:
    x = random(50, 4)
    where = apply(
        "remainder", apply("multiply", Iota(30, NO_DEVICE), constant(7, dtypes.int64)), constant(50, dtypes.int64)
    )
    assert text(checked_plan(apply("negative", Gather(x, (where,))))) == [
        f"iota_multiply_remainder_take_negative [30, 4] -> 1: {ASKED}"
    ]
    computed = apply("exp", x)
    plan = checked_plan(Gather(computed, (where,)))
    assert text(plan)[0] == "exp [200] -> 1: elements are taken from it by position"
    turned = view_like(x, positions(x).T)
    assert len(checked_plan(Gather(turned, (source(np.array([3, 0])),))).steps) == 1


def test_running_fold_is_a_kernel_of_its_own() -> None:
    x = random(20, 30)
    plan = checked_plan(apply("negative", Scan("add", apply("exp", x), 0)))
    assert text(plan) == [
        "exp_running_add [30, fold 20] -> 1: a running fold is a kernel of its own",
        f"negative [600] -> 1: {ASKED}",
    ]


def test_products_read_views_and_stored_values() -> None:
    x, y = random(5, 6), random(7, 6)
    across = view_like(y, positions(y).T)
    plan = checked_plan(Contract(x, across))
    assert text(plan) == [f"product [5, 7]: {ASKED}"]
    assert plan.steps[0].b_view == (0, (6, 7), (1, 6))
    plan = checked_plan(apply("exp", Contract(apply("exp", x), across)))
    assert [line.split(":")[0] for line in text(plan)] == ["exp [30] -> 1", "product [5, 7]", "exp [35] -> 1"]


def test_work_recorded_twice_is_done_once() -> None:
    x = random(20, 30)
    first, second = apply("exp", x), apply("exp", x)
    plan = checked_plan(apply("add", first, second))
    assert [type(one).__name__ for one in plan.steps[0].statements] == ["Read", "Apply", "Apply"]
    plan = checked_plan(first, second)
    assert len(plan.steps) == 1 and len(plan.steps[0].writes) == 2


def test_results_that_exist_already_are_copied() -> None:
    x = random(20, 30)
    assert text(checked_plan(Cast(x, dtypes.float64))) == [
        "copy [600] -> 1: the same value is asked for twice, or exists already"
    ]


# -- updates -----------------------------------------------------------------------------------------------------------


def shifted_sum(x: Node) -> Update:
    """x[1:] += x[:-1]"""
    where = positions(x)
    value = apply("add", view_like(x, where[1:]), view_like(x, where[:-1]))
    return Update(x, value, *window_of(x, where[1:]))


def test_overlapping_update_goes_through_a_temporary() -> None:
    plan = checked_plan(shifted_sum(random(1000)))
    assert text(plan) == [
        "add [999] -> 1: the written elements overlap others that are read",
        f"copy [999] -> 1: {ASKED}",
    ]
    assert temporaries(plan) == 1
    assert any(isinstance(value, Inherited) for value in plan.values)


def test_update_that_reads_what_it_writes_is_in_place() -> None:
    x = random(1000)
    window = window_of(x, positions(x)[1:])
    plan = checked_plan(Update(x, apply("multiply", View(x, *window), number(0.5, x)), *window))
    assert text(plan) == [f"multiply [999] -> 1: {ASKED}"]
    (kernel,) = plan.steps
    assert isinstance(kernel, KernelPlan) and len(kernel.aliased) == 1


def test_updates_one_after_the_other_stay_in_one_memory() -> None:
    x: Node = random(100)
    for turn in range(20):
        window = window_of(x, positions(x)[turn : turn + 5])
        x = Update(x, apply("add", View(x, *window), number(turn, x)), *window)
    plan = checked_plan(x)
    assert len(plan.steps) == 20
    assert [type(value).__name__ for value in plan.values].count("Inherited") == 1
    assert not any(isinstance(value, Fresh) for value in plan.values)


def test_old_value_that_is_still_asked_for_is_kept() -> None:
    x = random(100)
    first = Update(x, number(1, x), *window_of(x, positions(x)[3:7]))
    second = Update(first, number(2, x), *window_of(x, positions(x)[5:9]))
    plan = checked_plan(first, second)
    assert "copy [100] -> 1: an update writes into a copy, because the old value is still read" in text(plan)


def test_reader_of_the_old_value_runs_before_the_update() -> None:
    x = random(100)
    reader = apply("negative", x)
    plan = checked_plan(reader, Update(x, number(1, x), *window_of(x, positions(x)[3:7])))
    assert [len(step.writes) for step in plan.steps] == [1, 1]
    assert plan.steps[0].name == "negative"


def test_exchange_of_two_windows_stores_the_smaller_value() -> None:
    x = random(100)
    where = positions(x)
    left, right = window_of(x, where[10:15]), window_of(x, where[50:55])
    first = Update(x, View(x, *right), *left)
    plan = checked_plan(Update(first, View(x, *left), *right))
    assert "copy [5] -> 1: it reads elements that an earlier update overwrites" in text(plan)
    assert not any("[100]" in line for line in text(plan))


def test_windows_known_to_be_apart_need_no_temporary() -> None:
    x = random(30, 40)
    where = positions(x)
    for target, read in ((where[0], where[1]), (where[:, 0], where[:, 1]), (where[:, ::2], where[:, 1::2])):
        plan = checked_plan(Update(x, view_like(x, read), *window_of(x, target)))
        assert len(plan.steps) == 1 and temporaries(plan) == 0


def test_array_plus_its_transpose_in_place() -> None:
    x = random(30, 30)
    total = apply("add", x, view_like(x, positions(x).T))
    plan = checked_plan(Update(x, total, 0, (30, 30), (30, 1)))
    assert text(plan) == [f"add [30, 30] -> 1: {ASKED}"]


def test_update_of_a_computed_array_writes_into_its_memory() -> None:
    zeros = View(constant(0.0, dtypes.float64), 0, (40,), (0,))
    plan = checked_plan(Update(zeros, constant(1.0, dtypes.float64), 3, (5,), (1,)))
    assert text(plan) == ["copy [40] -> 1: an array is written in place", f"copy [5] -> 1: {ASKED}"]
    assert temporaries(plan) == 0


# -- size --------------------------------------------------------------------------------------------------------------


def test_long_chain_is_cut_into_kernels_within_the_limits() -> None:
    x, y = random(50), random(50)
    for _ in range(400):
        x = apply("add", apply("multiply", x, number(0.5, x)), y)
    plan = checked_plan(x)
    assert all(len(step.statements) <= 150 for step in plan.steps)
    assert 6 <= len(plan.steps) <= 20
    assert all("at most 150 statements and 24 buffers" in step.reason for step in plan.steps[:-1])


@pytest.mark.parametrize("balanced", [False, True])
def test_sum_of_a_hundred_arrays_has_at_most_24_buffers_a_kernel(balanced: bool) -> None:
    parts: list[Node] = [random(20) for _ in range(100)]
    while len(parts) > 1:
        if balanced:
            parts = [
                apply("add", *parts[k : k + 2]) if len(parts[k : k + 2]) == 2 else parts[k]
                for k in range(0, len(parts), 2)
            ]
        else:
            parts = [apply("add", parts[0], parts[1]), *parts[2:]]
    plan = checked_plan(parts[0])
    for step in plan.steps:
        sources = {one.source for one in step.statements if type(one).__name__ == "Read"}
        assert len(sources) + len(step.writes) <= 24


def test_value_doubled_a_hundred_times_is_linear() -> None:
    x = random(20)
    total: Node = x
    for turn in range(100):
        total = apply("multiply", apply("add", total, total), number(0.5, x))
        if turn % 3 == 0:
            total = apply("maximum", total, view_like(total, positions(total)[::-1]))
    plan = checked_plan(total)
    assert sum(len(step.statements) for step in plan.steps) < 2000


def test_nested_stencils_do_not_multiply_without_end() -> None:
    x: Node = random(60, 60)
    for _ in range(12):
        where = positions(x)
        parts = (where[1:-1, 1:-1], where[2:, 1:-1], where[:-2, 1:-1], where[1:-1, 2:], where[1:-1, :-2])
        first, *others = (view_like(x, part) for part in parts)
        for part in others:
            first = apply("add", first, part)
        x = first
    plan = checked_plan(x)
    assert sum(len(step.statements) for step in plan.steps) < 1500
    assert all(len(step.statements) <= 150 for step in plan.steps)


# -- explanations ------------------------------------------------------------------------------------------------------


def test_explanation_counts_bytes_and_names_operations() -> None:
    x = random(40, 60, dtype="float32")
    root = softmax(x, 1)
    recording = linearize((root,))
    explanation = explain_plan(make_plan(recording, HOST), recording)
    (kernel,) = explanation.kernels
    assert (kernel.bytes_read, kernel.bytes_written) == (40 * 60 * 4, 40 * 60 * 4)
    assert kernel.operations == (
        "maximum over axes (1,) -> float32[40, 1]",
        "subtract -> float32[40, 60]",
        "exp -> float32[40, 60]",
        "add over axes (1,) -> float32[40, 1]",
        "divide -> float32[40, 60]",
    )
    assert explanation.temporaries == 0
    assert str(explanation).startswith(
        "1 kernel, 0 temporary arrays\n"
        "0: fold_maximum_subtract_exp_fold_add_divide  [40, fold 60]  reads 9.375 KiB, writes 9.375 KiB\n"
    )
    assert "  ends here: its result was asked for\n  schedule: " in str(explanation)


def test_explanation_lists_temporaries() -> None:
    recording = linearize((shifted_sum(random(1000)),))
    explanation = explain_plan(make_plan(recording, HOST), recording)
    assert explanation.temporary_bytes == 999 * 8
    assert explanation.kernels[0].bytes_read == 1000 * 8  # the two slices share all but one element
    assert "temporary array: float64, 999 elements, 7.805 KiB: the written elements overlap" in str(explanation)


def test_operations_name_the_line_that_recorded_them() -> None:
    root = apply("exp", random(4))
    root.record(sys._getframe())
    recording = linearize((root,))
    (kernel,) = make_plan(recording, HOST).steps
    assert kernel.operations[0].startswith("exp -> float64[4]  at test_partition.py:")
