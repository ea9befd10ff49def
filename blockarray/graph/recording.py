"""A recording: the pending nodes below some roots, in order, and the key that finds their plan again."""

from dataclasses import dataclass

from blockarray.graph.nodes import Node, Update


@dataclass(frozen=True)
class Recording:
    """Nodes in topological order, inputs first.

    Attributes
    ----------
    nodes : tuple of Node
        Leaves included.
    leaves : tuple of Node
        In the order of `nodes`: evaluated nodes and constants.
    roots : tuple of Node
        What is asked for; each is pending.
    key : tuple of int
        Equal keys: the same work on leaves of the same shapes, dtypes and alignment, so the same plan.
    has_updates : bool
        Whether a pending node is an `Update`.
    """

    nodes: tuple[Node, ...]
    leaves: tuple[Node, ...]
    roots: tuple[Node, ...]
    key: tuple[int, ...]
    has_updates: bool = False


def linearize(roots: tuple[Node, ...]) -> Recording:
    """Walk the pending nodes below `roots`, without recursion."""
    numbers: dict[Node, int] = {}
    nodes: list[Node] = []
    leaves: list[Node] = []
    key: list[int] = []
    has_updates = False
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in numbers:
                stack.pop()
                continue
            buffer = node.buffer
            if buffer is not None:
                stack.pop()
                numbers[node] = len(nodes)
                nodes.append(node)
                leaves.append(node)
                key.append(buffer.token)
                continue
            inputs = node.inputs
            ready = True
            for one in inputs:
                if one not in numbers:
                    stack.append(one)
                    ready = False
            if not ready:
                continue
            stack.pop()
            numbers[node] = len(nodes)
            nodes.append(node)
            key.append(node.token)
            if inputs:
                for one in inputs:
                    key.append(-1 - numbers[one])
            elif node.is_leaf:
                leaves.append(node)
            if type(node) is Update:
                has_updates = True
    for root in roots:
        key.append(-1 - numbers[root])
    return Recording(tuple(nodes), tuple(leaves), roots, tuple(key), has_updates)
