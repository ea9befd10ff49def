"""Variances and sums of exponentials over rows that no cache holds: one walk over memory, and what NumPy says."""

from dataclasses import replace

import numpy as np
import pytest
from plans import HOST, compare, evaluate_plan, run_as_ptx, run_on_host

import blockarray
from blockarray.fusion.lower import schedule_of
from blockarray.fusion.lower_analysis import analyze
from blockarray.fusion.one_read import in_one_read
from blockarray.fusion.plan import Apply, DomainAxis, Fold, KernelPlan, Number, Read, Statement, Write
from codegen import dtypes
from codegen.targets.nvptx.description import nvptx_target

F32 = dtypes.float32
GPU = nvptx_target("sm_90a")
SMALL_CACHE = replace(HOST.target, cache_bytes=256)
SHARED = 20_000  # columns that lanes cannot hold
ROWS = 3


def rows_plan(columns: int, statements: tuple[Statement, ...], per_row: int, per_point: int | None) -> KernelPlan:
    """A kernel over rows; source 0 is read, 1 gets a value for each row, 2 for each point, 3 is the number of columns."""
    writes = [Write(1, per_row, 0, (1, 0))]
    if per_point is not None:
        writes.append(Write(2, per_point, 0, (columns, 1)))
    return KernelPlan("rows", (DomainAxis(ROWS), DomainAxis(columns, True)), statements, tuple(writes))


def variance(columns: int, scaled: bool) -> KernelPlan:
    statements: tuple[Statement, ...] = (
        Read(0, F32, 0, (columns, 1)),
        Fold("add", (0,), 0, F32),
        Number(3, F32),
        Apply("divide", (1, 2), F32),
        Apply("subtract", (0, 3), F32),
        Apply("multiply", (4, 4), F32),
        Fold("add", (5,), 0, F32),
        Apply("divide", (6, 2), F32),
        Apply("divide", (4, 7), F32),
    )
    return rows_plan(columns, statements, 7, 8 if scaled else None)


def exponentials(columns: int, scaled: bool) -> KernelPlan:
    statements: tuple[Statement, ...] = (
        Read(0, F32, 0, (columns, 1)),
        Fold("maximum", (0,), 0, F32),
        Apply("subtract", (0, 1), F32),
        Apply("exp", (2,), F32),
        Fold("add", (3,), 0, F32),
        Apply("log", (4,), F32),
        Apply("add", (5, 1), F32),
        Apply("divide", (3, 4), F32),
    )
    return rows_plan(columns, statements, 6, 7 if scaled else None)


def memory_of(x: np.ndarray) -> dict[int, np.ndarray]:
    columns = x.size // ROWS
    return {
        0: x.astype(np.float32).ravel(),
        1: np.zeros(ROWS, np.float32),
        2: np.zeros(x.size, np.float32),
        3: np.array([columns], np.float32),
    }


def walks(plan: KernelPlan) -> int:
    """Walks over the reduced axes that compute folds."""
    return sum(bool(row.groups) for row in analyze(plan).passes)


def check(plan: KernelPlan, x: np.ndarray, on_host: bool) -> None:
    target = SMALL_CACHE if on_host else GPU
    rewritten = in_one_read(plan, target)
    assert (walks(plan), walks(rewritten)) == (2, 1)
    assert schedule_of(rewritten, target).windows > 1
    memory = memory_of(x)
    expected = evaluate_plan(plan, memory)
    found = run_on_host(rewritten, memory) if on_host else run_as_ptx(rewritten, memory, target)
    compare(expected, {number: found[number] for number in expected}, 2e-6)


@pytest.mark.parametrize("make", [variance, exponentials])
@pytest.mark.parametrize("scaled", [False, True], ids=["folds", "points"])
@pytest.mark.parametrize("columns", [SHARED, SHARED + 7, 977])
def test_rows_on_the_host(make: object, scaled: bool, columns: int) -> None:
    x = np.random.default_rng(columns).normal(3.0, 2.0, (ROWS, columns))
    check(make(columns, scaled), x, on_host=True)  # type: ignore[operator]


@pytest.mark.parametrize("make", [variance, exponentials])
def test_rows_as_ptx(make: object) -> None:
    x = np.random.default_rng(1).normal(3.0, 2.0, (ROWS, SHARED + 8))
    check(make(SHARED + 8, False), x, on_host=False)  # type: ignore[operator]


@pytest.mark.parametrize("make", [variance, exponentials])
@pytest.mark.parametrize("columns", [65_536, 40_003])
def test_rows_in_the_registers_of_several_blocks(make: object, columns: int) -> None:
    x = np.random.default_rng(1).normal(3.0, 2.0, (ROWS, columns))
    plan = make(columns, True)  # type: ignore[operator]
    assert in_one_read(plan, GPU) is plan
    schedule = schedule_of(plan, GPU)
    assert schedule.strategy == "whole" and GPU.max_lanes_per_program < schedule.layout.lane_count
    memory = memory_of(x)
    expected = evaluate_plan(plan, memory)
    found = run_as_ptx(plan, memory, GPU)
    compare(expected, {number: found[number] for number in expected}, 2e-6)
    without_clusters = schedule_of(plan, nvptx_target("sm_80"))
    assert without_clusters.strategy == "streaming"


@pytest.mark.parametrize("on_host", [True, False], ids=["host", "ptx"])
def test_rows_with_infinities(on_host: bool) -> None:
    x = np.random.default_rng(1).normal(size=(ROWS, SHARED))
    x[0, : SHARED - 3] = -np.inf
    x[1, :] = -np.inf
    x[2, 4567] = np.inf
    check(exponentials(SHARED, False), x, on_host)


def test_rows_that_a_cache_holds_are_walked_over_again() -> None:
    plan = variance(977, True)
    assert in_one_read(plan, HOST.target) is plan
    assert in_one_read(plan, GPU) is plan


def test_deviations_from_something_else_than_the_mean() -> None:
    columns = SHARED
    x = np.random.default_rng(2).normal(100.0, 1.0, (ROWS, columns))
    plan = variance(columns, False)
    # from the largest element
    statements = (plan.statements[0], Fold("maximum", (0,), 0, F32), *plan.statements[2:])
    statements = (*statements[:3], Apply("multiply", (1, 2), F32), *statements[4:])
    check(replace(plan, statements=statements), x, on_host=True)


@pytest.mark.parametrize("offset", [0.0, 1e4, -3e6])
def test_variance_of_a_large_array_far_from_zero(offset: float) -> None:
    x = (np.random.default_rng(3).normal(size=1_500_000) + offset).astype(np.float32)
    exact = x.astype(np.float64).var()
    found = float(blockarray.array(x).var())
    numpy_error = abs(float(x.var()) - exact)
    assert abs(found - exact) <= max(2 * numpy_error, 1e-5 * exact)


def test_variance_of_data_with_infinities_is_nan() -> None:
    x = np.ones(1_500_000, np.float32)
    x[77] = np.inf
    assert np.isnan(float(blockarray.array(x).var()))
