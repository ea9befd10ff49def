"""A recording: the pending nodes below some roots, in order, and the key that finds their plan again."""

from dataclasses import dataclass

from blockarray.graph.nodes import Node, Update


@dataclass(slots=True, eq=False)
class Recording:
    """Nodes in topological order, inputs first. Not changed once made.

    Attributes
    ----------
    nodes : list of Node
        Leaves included.
    leaves : list of Node
        In the order of `nodes`: evaluated nodes and constants.
    roots : tuple of Node
        What is asked for; each is pending.
    key : tuple of int
        Equal keys: the same work on leaves of the same shapes, dtypes and alignment, so the same plan.
    has_updates : bool
        Whether a pending node is an `Update`.
    computed_before : bool
        Whether an earlier evaluation computed a pending node and did not keep its value.
    """

    nodes: list[Node]
    leaves: list[Node]
    roots: tuple[Node, ...]
    key: tuple[int, ...]
    has_updates: bool = False
    computed_before: bool = False


def linearize(roots: tuple[Node, ...]) -> Recording:
    """Walk the pending nodes below `roots`, without recursion.

    The key lists, in order, each node's token and the numbers of its inputs as negative integers, then the roots' numbers.
    """
    numbers: dict[Node, int] = {}
    nodes: list[Node] = []
    leaves: list[Node] = []
    key: list[int] = []
    has_updates = computed_before = False
    stack: list[Node] = []
    for root in roots:
        stack.append(root)
        while stack:
            node = stack[-1]
            if node in numbers:
                stack.pop()
                continue
            inputs = node.inputs
            waiting = False
            for one in inputs:
                if one not in numbers:
                    if one.depth:
                        stack.append(one)
                        waiting = True
                    else:
                        numbers[one] = len(nodes)
                        nodes.append(one)
                        leaves.append(one)
                        key.append(one.token)
            if waiting:
                continue
            stack.pop()
            numbers[node] = len(nodes)
            nodes.append(node)
            key.append(node.token)
            if not node.depth:
                leaves.append(node)
                continue
            for one in inputs:
                key.append(~numbers[one])
            if node.recomputed:
                computed_before = True
            if type(node) is Update:
                has_updates = True
    for root in roots:
        key.append(~numbers[root])
    return Recording(nodes, leaves, roots, tuple(key), has_updates, computed_before)
