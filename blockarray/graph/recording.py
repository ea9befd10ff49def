"""A recording: the pending nodes below some roots, in order, and the key that finds their plan again."""

from dataclasses import dataclass, field

from blockarray.graph.nodes import Constant, Node, Scatter, Update, View, Window


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
        Whether a pending node is an `Update` or a `Scatter`.
    views : list of View
        Views straight of evaluated arrays, not through windows.
    computed_before : bool
        Whether an earlier evaluation computed a pending node and did not keep its value.
    """

    nodes: list[Node]
    leaves: list[Node]
    roots: tuple[Node, ...]
    key: tuple[int, ...]
    has_updates: bool = False
    computed_before: bool = False
    views: list[View] = field(default_factory=list)


def linearize(roots: tuple[Node, ...]) -> Recording:
    """Walk the pending nodes below `roots`, without recursion.

    The key lists, in order, each node's token and the numbers of its inputs as negative integers, then the roots' numbers; for a
    constant that equals an earlier one the number of that.
    """
    numbers: dict[Node, int] = {}
    nodes: list[Node] = []
    leaves: list[Node] = []
    key: list[int] = []
    views: list[View] = []
    constants: dict[bool | int | float, Constant] = {}
    has_updates = computed_before = False
    stack: list[Node] = []
    # This runs for every evaluation: bound methods and a counter save a third of its time.
    add_node, add_leaf, add_key, push, pop = nodes.append, leaves.append, key.append, stack.append, stack.pop
    count = 0
    for root in roots:
        push(root)
        while stack:
            node = stack[-1]
            if node in numbers:
                pop()
                continue
            inputs = node.inputs
            waiting = False
            for one in inputs:
                if one not in numbers:
                    if one.depth:
                        push(one)
                        waiting = True
                        continue
                    numbers[one] = count
                    add_node(one)
                    add_leaf(one)
                    add_key(one.token)
                    if type(one) is Constant and one.value:
                        # Equal constants are one value to a plan. Zeros are left alone: -0.0 equals 0.0.
                        first = constants.setdefault(one.value, one)
                        if first is not one and first.dtype is one.dtype:
                            add_key(~numbers[first])
                    count += 1
            if waiting:
                continue
            pop()
            numbers[node] = count
            count += 1
            add_node(node)
            add_key(node.token)
            if not node.depth:
                add_leaf(node)
                continue
            for one in inputs:
                add_key(~numbers[one])
            if node.recomputed:
                computed_before = True
            kind = type(node)
            if kind is View:
                if inputs[0].buffer is not None and type(inputs[0]) is not Window:
                    views.append(node)  # type: ignore[arg-type]  # mypy does not follow `type(node) is`
            elif kind is Update or kind is Scatter:
                has_updates = True
    for root in roots:
        add_key(~numbers[root])
    return Recording(nodes, leaves, roots, tuple(key), has_updates, computed_before, views)
