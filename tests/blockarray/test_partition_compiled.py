"""Random graphs all the way: partition, cut, lower, compile and run on the host give what the nodes give one by one."""

import numpy as np
from graphs import graphs, leaf_array, values_of
from hypothesis import HealthCheck, given, settings
from plans import HOST, run_on_host

from blockarray.fusion import reference
from blockarray.fusion.partition import make_plan
from blockarray.fusion.plan import Fresh, GraphPlan, Inherited, KernelPlan, Leaf, Scattering
from blockarray.fusion.split import split
from blockarray.graph.nodes import Node
from blockarray.graph.recording import linearize
from blockarray.graph.reference import scatter


def run_compiled(plan: GraphPlan, leaves: list[np.ndarray]) -> dict[int, np.ndarray]:
    """The flat results of a plan by the number of their recorded node; leaves are not changed."""
    memory: dict[int, np.ndarray] = {}
    for number, value in enumerate(plan.values):
        if isinstance(value, Fresh):
            memory[number] = np.full(value.elements, 77, value.dtype.numpy)
        else:
            assert isinstance(value, Leaf | Inherited)
            memory[number] = np.array(leaves[value.position]).reshape(-1)
    for step in plan.steps:
        if isinstance(step, KernelPlan):
            memory.update(run_on_host(step, memory))
        elif isinstance(step, Scattering):
            value = None if step.value is None else memory[step.value]
            scatter(memory[step.target], memory[step.places], value, step.function, step.working)
        else:
            reference.run_product(step, memory)
    return {
        value.result: memory[number]
        for number, value in enumerate(plan.values)
        if isinstance(value, Fresh | Inherited) and value.result is not None
    }


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(graphs())
def test_compiled_plan_of_random_graph_agrees_with_nodes(roots: tuple[Node, ...]) -> None:
    recording = linearize(roots)
    wanted = values_of(recording)
    plan = split(make_plan(recording, HOST.target), HOST.target)
    found = run_compiled(plan, [leaf_array(leaf) for leaf in recording.leaves])
    for root, value in zip(roots, wanted, strict=True):
        np.testing.assert_array_equal(found[recording.nodes.index(root)].reshape(root.shape), value)
