"""Random graphs: running the plan gives what the nodes give one by one."""

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from blockarray.fusion.partition import make_plan
from blockarray.fusion.reference import run
from blockarray.graph import reference
from blockarray.graph.nodes import Node
from blockarray.graph.recording import Recording, linearize
from tests.blockarray.graphs import HOST, graphs, leaf_array, writes

# Sums of integers below this are exact in float64 and do not depend on the order of additions.
_EXACT = {"float64": 2.0**50, "float32": 2.0**22, "float16": 2.0**10}


def values_of(recording: Recording) -> list[np.ndarray]:
    """The value of every pending node; only graphs whose floats stay exact integers are kept."""
    pending = tuple(node for node in recording.nodes if not node.is_leaf)
    everything = Recording(recording.nodes, recording.leaves, pending, ())
    values = reference.evaluate(everything, leaf_array)
    for node, value in zip(pending, values, strict=True):
        if node.dtype.kind == "float" and value.size:
            assume(bool(np.isfinite(value).all()))
            assume(float(np.abs(value.astype(np.float64)).max()) < _EXACT[node.dtype.name])
    by_node = dict(zip(pending, values, strict=True))
    return [by_node[root] for root in recording.roots]


def assert_plan_agrees(roots: tuple[Node, ...], parts: int, take_over: bool, backwards: bool) -> None:
    recording = linearize(roots)
    wanted = values_of(recording)
    plan = make_plan(recording, HOST)
    found = run(plan, [leaf_array(leaf) for leaf in recording.leaves], take_over, parts, backwards)
    for root, value in zip(roots, wanted, strict=True):
        result = found[recording.nodes.index(root)]
        assert result.dtype == value.dtype
        np.testing.assert_array_equal(result.reshape(root.shape), value)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(graphs(), st.integers(1, 3), st.booleans(), st.booleans())
def test_plan_of_random_graph_agrees_with_nodes(
    roots: tuple[Node, ...], parts: int, take_over: bool, backwards: bool
) -> None:
    assert_plan_agrees(roots, parts, take_over, backwards)


@settings(max_examples=400, deadline=None)
@given(writes(), st.integers(1, 4), st.booleans(), st.booleans())
def test_plan_of_random_writes_agrees_with_nodes(
    roots: tuple[Node, ...], parts: int, take_over: bool, backwards: bool
) -> None:
    assert_plan_agrees(roots, parts, take_over, backwards)
