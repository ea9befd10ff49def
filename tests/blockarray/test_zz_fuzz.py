"""Plans of all kinds, lowered for both targets and run, against NumPy."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_strategies import Memory, elementwise_plans, folding_plans, running_plans
from plans import HOST, compare, evaluate_plan, run_as_ptx, run_in_interpreter, run_on_host

from blockarray.fusion.plan import KernelPlan
from codegen.target import Target
from codegen.targets.nvptx.description import nvptx_target

GPU = nvptx_target("sm_90a")
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
THOROUGH = settings(QUICK, max_examples=500)

Case = tuple[KernelPlan, Memory]


@THOROUGH
@given(elementwise_plans(4000))
def test_elementwise_on_the_host(case: Case) -> None:
    plan, memory = case
    compare(evaluate_plan(plan, memory), run_on_host(plan, memory))


@THOROUGH
@given(folding_plans(2000))
def test_folds_on_the_host(case: Case) -> None:
    plan, memory = case
    compare(evaluate_plan(plan, memory), run_on_host(plan, memory))


@THOROUGH
@given(running_plans(1500))
def test_running_folds_on_the_host(case: Case) -> None:
    plan, memory = case
    compare(evaluate_plan(plan, memory), run_on_host(plan, memory))


@QUICK
@given(elementwise_plans(1000))
def test_elementwise_as_ptx(case: Case) -> None:
    plan, memory = case
    compare(evaluate_plan(plan, memory), run_as_ptx(plan, memory, GPU))


@QUICK
@given(folding_plans(800))
def test_folds_as_ptx(case: Case) -> None:
    plan, memory = case
    compare(evaluate_plan(plan, memory), run_as_ptx(plan, memory, GPU))


@QUICK
@given(running_plans(600))
def test_running_folds_as_ptx(case: Case) -> None:
    plan, memory = case
    compare(evaluate_plan(plan, memory), run_as_ptx(plan, memory, GPU))


@pytest.mark.parametrize("target", [HOST.target, GPU], ids=["cpu", "nvptx"])
@pytest.mark.parametrize("plans", [elementwise_plans(300), folding_plans(300), running_plans(300)])
@QUICK
@given(data=st.data())
def test_in_the_interpreter(target: Target, plans: st.SearchStrategy[Case], data: st.DataObject) -> None:
    plan, memory = data.draw(plans)
    compare(evaluate_plan(plan, memory), run_in_interpreter(plan, memory, target))
