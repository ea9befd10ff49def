"""Reductions cut into pieces give what they gave whole."""

from dataclasses import replace
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, given, settings
from plan_strategies import Memory, folding_plans, running_plans
from plans import HOST, Values, compare, evaluate_plan, run_as_ptx, run_on_host

from blockarray.fusion.plan import (
    Apply,
    DomainAxis,
    Fold,
    Fresh,
    GraphPlan,
    KernelPlan,
    Number,
    Position,
    Read,
    RunningFold,
    Write,
)
from blockarray.fusion.split import split
from codegen import dtypes
from codegen.dtypes import of
from codegen.schedules.schedule import Problem
from codegen.target import Target
from codegen.targets.nvptx.description import nvptx_target

GPU = nvptx_target("sm_90a")
QUICK = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
THOROUGH = settings(QUICK, max_examples=60)

Case = tuple[KernelPlan, Memory]


def short_pieces(problem: Problem, axis: int, target: Target) -> int:
    """Pieces of 64, whatever the machine."""
    return 64 if problem.extents[axis] >= 128 else 0


def cut(plan: KernelPlan, memory: Values, target: Target) -> tuple[GraphPlan, Values]:
    """The plan after splitting, and memory with its temporaries."""
    values = tuple(Fresh(of(array.dtype), array.size, None) for _, array in sorted(memory.items()))
    found = split(GraphPlan(values, (plan,)), target)
    extended = dict(memory)
    for number in range(len(values), len(found.values)):
        value = found.values[number]
        assert isinstance(value, Fresh) and value.result is None
        extended[number] = np.zeros(value.elements, value.dtype.numpy)
    return found, extended


def check(plan: KernelPlan, memory: Values, target: Target, on_host: bool, tolerance: float = 0.0) -> GraphPlan:
    """Run all kernels of the split plan one after the other."""
    expected = evaluate_plan(plan, memory)
    found, result = cut(plan, memory, target)
    for step in found.steps:
        assert isinstance(step, KernelPlan)
        result = run_on_host(step, result) if on_host else run_as_ptx(step, result, target)
    compare(expected, {number: result[number] for number in expected}, tolerance)
    return found


IN_PIECES_OF_64 = mock.patch("blockarray.fusion.split.piece_of", short_pieces)


@IN_PIECES_OF_64
@THOROUGH
@given(folding_plans(2000))
def test_folds_on_the_host(case: Case) -> None:
    check(*case, HOST.target, on_host=True)


@IN_PIECES_OF_64
@THOROUGH
@given(running_plans(1500))
def test_running_folds_on_the_host(case: Case) -> None:
    check(*case, HOST.target, on_host=True)


@IN_PIECES_OF_64
@QUICK
@given(folding_plans(800))
def test_folds_as_ptx(case: Case) -> None:
    check(*case, GPU, on_host=False)


@IN_PIECES_OF_64
@QUICK
@given(running_plans(600))
def test_running_folds_as_ptx(case: Case) -> None:
    check(*case, GPU, on_host=False)


COUNT = 600_001


def row(*statements: object, writes: tuple[Write, ...]) -> KernelPlan:
    """A plan over one long reduced axis."""
    return KernelPlan("row", (DomainAxis(COUNT, True),), tuple(statements), writes)  # type: ignore[arg-type]


def numbers(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random(COUNT, np.float32)


X = Read(0, dtypes.float32, 0, (1,))


def test_long_sum_takes_two_kernels_and_is_accurate() -> None:
    plan = row(X, Fold("add", (0,), 0, dtypes.float32), writes=(Write(1, 1, 0, (0,)),))
    x = numbers()
    memory = {0: x, 1: np.zeros(1, np.float32)}
    found, result = cut(plan, memory, HOST.target)
    assert [step.name for step in found.steps] == ["row_pieces", "row_totals"]
    for step in found.steps:
        result = run_on_host(step, result)
    exact = x.astype(np.float64).sum()
    assert abs(float(result[1][0]) - exact) <= 3 * np.spacing(np.float32(exact))


def test_variance_and_scaled_elements_take_three_kernels_or_five_in_a_cache() -> None:
    plan = row(
        X,
        Fold("add", (0,), 0, dtypes.float32),
        Number(2, dtypes.float32),
        Apply("divide", (1, 2), dtypes.float32),
        Apply("subtract", (0, 3), dtypes.float32),
        Apply("square", (4,), dtypes.float32),
        Fold("add", (5,), 0, dtypes.float32),
        Apply("divide", (6, 2), dtypes.float32),
        Apply("sqrt", (7,), dtypes.float32),
        Apply("divide", (4, 8), dtypes.float32),
        writes=(Write(1, 9, 0, (1,)), Write(3, 8, 0, (0,))),
    )
    memory = {
        0: numbers(),
        1: np.zeros(COUNT, np.float32),
        2: np.array([COUNT], np.float32),
        3: np.zeros(1, np.float32),
    }
    found = check(plan, memory, replace(HOST.target, cache_bytes=1 << 10), on_host=True, tolerance=1e-5)
    names = [step.name for step in found.steps if isinstance(step, KernelPlan)]
    assert names == ["row_pieces", "row_totals", "row_points"]
    in_cache = check(plan, memory, replace(HOST.target, cache_bytes=1 << 40), on_host=True, tolerance=1e-5)
    names = [step.name for step in in_cache.steps if isinstance(step, KernelPlan)]
    assert names == ["row_pieces", "row_totals", "row_pieces", "row_totals", "row_points"]


def test_position_of_the_smallest() -> None:
    x = numbers()
    x[[5000, 400_000]] = -1
    plan = row(X, Position(0, (1,)), Fold("argmin", (0, 1), 1, dtypes.int64), writes=(Write(1, 2, 0, (0,)),))
    memory = {0: x, 1: np.zeros(1, np.int64)}
    check(plan, memory, HOST.target, on_host=True)


def test_position_of_the_first_nan() -> None:
    x = numbers()
    x[[123_456, 400_000]] = np.nan
    plan = row(X, Position(0, (1,)), Fold("argmax", (0, 1), 1, dtypes.int64), writes=(Write(1, 2, 0, (0,)),))
    memory = {0: x, 1: np.zeros(1, np.int64)}
    check(plan, memory, HOST.target, on_host=True)


def test_running_sum_of_one_long_row_takes_three_kernels() -> None:
    plan = row(X, RunningFold("add", 0, dtypes.float32), writes=(Write(1, 1, 0, (1,)),))
    memory = {0: numbers(), 1: np.zeros(COUNT, np.float32)}
    found = check(plan, memory, HOST.target, on_host=True, tolerance=1e-5)
    assert len(found.steps) == 3


def test_many_rows_are_not_cut() -> None:
    axes = (DomainAxis(1000), DomainAxis(1000, True))
    statements = (Read(0, dtypes.float32, 0, (1000, 1)), Fold("add", (0,), 0, dtypes.float32))
    plan = KernelPlan("rows", axes, statements, (Write(1, 1, 0, (1, 0)),))
    memory = {0: np.zeros(10**6, np.float32), 1: np.zeros(1000, np.float32)}
    assert cut(plan, memory, HOST.target)[0].steps == (plan,)
