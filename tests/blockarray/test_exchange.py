"""Running folds whose pieces hand on what they come to while they run."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from plan_strategies import Memory, running_plans
from plans import HOST, compare, evaluate_plan, run_as_ptx, run_in_interpreter
from test_split import cut

from blockarray.fusion.lower import lower
from blockarray.fusion.plan import Apply, DomainAxis, KernelPlan, Read, RunningFold, Write
from codegen import dtypes
from codegen.ir.parser import parse
from codegen.ir.printer import print_kernel
from codegen.schedules.schedule import Problem
from codegen.target import Target
from codegen.targets.nvptx.description import nvptx_target

GPU = replace(nvptx_target("sm_90a"), cores=4)
F32 = dtypes.float32
IN_SHORT_PIECES = mock.patch("blockarray.fusion.split.exchanged_elements", lambda problem: 128)


def any_piece(problem: Problem, axis: int, target: Target) -> int:
    """Cut whatever is longer than a piece."""
    return 128 if problem.extents[axis] > 128 else 0


ALWAYS_CUT = mock.patch("blockarray.fusion.split.piece_of", any_piece)


def running_rows(rows: int, columns: int, combiner: str = "add") -> KernelPlan:
    """A running fold of squares along rows."""
    statements = (Read(0, F32, 0, (columns, 1)), Apply("multiply", (0, 0), F32), RunningFold(combiner, 1, F32))
    axes = (DomainAxis(rows), DomainAxis(columns, True))
    return KernelPlan("rows", axes, statements, (Write(1, 2, 0, (columns, 1)),))


def kernels_of(plan: KernelPlan, memory: Memory) -> tuple[list[KernelPlan], Memory]:
    found, extended = cut(plan, memory, GPU)
    kernels = [step for step in found.steps if isinstance(step, KernelPlan)]
    assert [kernel.name for kernel in kernels] == ["rows_clear", "rows"]
    for number in range(len(memory), len(extended)):
        extended[number][...] = 77
    return kernels, extended


@ALWAYS_CUT
@IN_SHORT_PIECES
@pytest.mark.parametrize(("rows", "columns"), [(1, 5000), (3, 4097), (2, 130)])
@pytest.mark.parametrize("combiner", ["add", "maximum"])
def test_rows_as_ptx(rows: int, columns: int, combiner: str) -> None:
    plan = running_rows(rows, columns, combiner)
    x = np.random.default_rng(columns).normal(size=rows * columns).astype(np.float32)
    memory = {0: x, 1: np.zeros(x.size, np.float32)}
    expected = evaluate_plan(plan, memory)
    kernels, found = kernels_of(plan, memory)
    for kernel in kernels:
        found = run_as_ptx(kernel, found, GPU)
    compare(expected, {number: found[number] for number in expected}, 1e-5)


@ALWAYS_CUT
@IN_SHORT_PIECES
def test_all_levels_in_the_interpreter() -> None:
    plan = running_rows(1, 128 * 1100 + 3)
    x = np.random.default_rng(1).normal(size=plan.axes[1].extent).astype(np.float32)
    memory = {0: x, 1: np.zeros(x.size, np.float32)}
    kernels, found = kernels_of(plan, memory)
    for kernel in kernels:
        found = run_in_interpreter(kernel, found, GPU)
    exact = np.cumsum(x.astype(np.float64) ** 2)
    np.testing.assert_allclose(found[1], exact, rtol=2e-5)


@ALWAYS_CUT
@IN_SHORT_PIECES
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(running_plans(600))
def test_random_plans_as_ptx(case: tuple[KernelPlan, Memory]) -> None:
    plan, memory = case
    expected = evaluate_plan(plan, memory)
    found, result = cut(plan, memory, GPU)
    for step in found.steps:
        assert isinstance(step, KernelPlan)
        result = run_as_ptx(step, result, GPU)
    compare(expected, {number: result[number] for number in expected}, 1e-4)


def test_few_long_rows_are_read_once() -> None:
    plan = running_rows(1, 1 << 22)
    memory = {0: np.zeros(1, np.float32), 1: np.zeros(1, np.float32)}
    found, _ = cut(plan, memory, GPU)
    assert [step.name for step in found.steps] == ["rows_clear", "rows"]
    kernel = found.steps[1]
    assert isinstance(kernel, KernelPlan) and kernel.axes[-1].piece == 4096
    (lowered,) = lower(kernel, GPU)
    text = print_kernel(lowered.kernel)
    assert text.count("scan_programs") == 1
    assert print_kernel(parse(text)) == text


def test_kernels_that_the_host_runs_do_not_wait_for_one_another() -> None:
    plan = running_rows(1, 1 << 22)
    memory = {0: np.zeros(1, np.float32), 1: np.zeros(1, np.float32)}
    found, _ = cut(plan, memory, HOST.target)
    assert [step.name for step in found.steps] == ["rows_pieces", "rows_totals", "rows"]
