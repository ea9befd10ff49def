"""Random graphs: running the plan gives what the nodes give one by one."""

import numpy as np
from graphs import HOST, graphs, leaf_array, values_of, writes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blockarray.fusion.partition import make_plan
from blockarray.fusion.reference import run
from blockarray.graph.nodes import Node
from blockarray.graph.recording import linearize


def assert_plan_agrees(roots: tuple[Node, ...], parts: int, take_over: bool, backwards: bool) -> None:
    recording = linearize(roots)
    wanted = values_of(recording)
    plan = make_plan(recording, HOST)
    found = run(plan, [leaf_array(leaf) for leaf in recording.leaves], take_over, parts, backwards)
    for root, value in zip(roots, wanted, strict=True):
        result = found[recording.nodes.index(root)]
        assert result.dtype == value.dtype
        np.testing.assert_array_equal(result.reshape(root.shape), value)


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(graphs(), st.integers(1, 3), st.booleans(), st.booleans())
def test_plan_of_random_graph_agrees_with_nodes(
    roots: tuple[Node, ...], parts: int, take_over: bool, backwards: bool
) -> None:
    assert_plan_agrees(roots, parts, take_over, backwards)


@settings(max_examples=1000, deadline=None)
@given(writes(), st.integers(1, 4), st.booleans(), st.booleans())
def test_plan_of_random_writes_agrees_with_nodes(
    roots: tuple[Node, ...], parts: int, take_over: bool, backwards: bool
) -> None:
    assert_plan_agrees(roots, parts, take_over, backwards)
