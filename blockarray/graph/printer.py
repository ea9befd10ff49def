"""The text of a recording: one line a node, inputs by number."""

from blockarray.graph.nodes import Constant, Gather, Map, Node, Reduce, Scan, Scatter, Update, View
from blockarray.graph.recording import Recording


def print_recording(recording: Recording) -> str:
    """One line for each node, in order; the last line names the roots.

    ``3 = add(0, 2) float32[4, 5]``
    """
    numbers = {node: number for number, node in enumerate(recording.nodes)}
    lines = []
    for number, node in enumerate(recording.nodes):
        shape = ", ".join(map(str, node.shape))
        lines.append(f"{number} = {_work(node, numbers)} {node.dtype}[{shape}]")
    lines.append(f"roots {', '.join(str(numbers[root]) for root in recording.roots)}")
    return "\n".join(lines)


def _work(node: Node, numbers: dict[Node, int]) -> str:
    if isinstance(node, Constant):
        return f"constant({node.value!r})"
    if node.is_leaf:
        return "source()"
    inputs = ", ".join(str(numbers[one]) for one in node.inputs)
    match node:
        case Map():
            return f"{node.function}({inputs})"
        case Reduce():
            output = f", output {node.output}" if node.output else ""
            return f"fold {node.function}({inputs}, axes {node.axes}{output})"
        case Scan():
            return f"running {node.function}({inputs}, axis {node.axis})"
        case View():
            return f"view({inputs}, offset {node.offset}, strides {node.strides})"
        case Update():
            return f"update({inputs}, offset {node.offset}, shape {node.view_shape}, strides {node.strides})"
        case Scatter():
            return f"scatter({inputs}, function {node.function})"
        case Gather():
            return f"take({inputs})"
    return f"{type(node).__name__.lower()}({inputs})"
