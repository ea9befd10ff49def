"""Names of kernels and lines that say what they do."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import PurePath
from types import CodeType

from blockarray.fusion.plan import Apply, Convert, Fold, Position, RunningFold, Statement, Take
from blockarray.graph.nodes import Constant, Node, View

_LONGEST_NAME = 56


def kernel_name(statements: Sequence[Statement]) -> str:
    """A readable name made of the functions that a kernel applies, each once, in order."""
    words: dict[str, None] = {}
    for statement in statements:
        match statement:
            case Apply(function=function):
                words[function] = None
            case Fold(combiner=combiner):
                words[f"fold_{combiner}"] = None
            case RunningFold(combiner=combiner):
                words[f"running_{combiner}"] = None
            case Convert(dtype=dtype):
                words[f"to_{dtype}"] = None
            case Take():
                words["take"] = None
            case Position():
                words["iota"] = None
    if not words:
        return "copy"
    name = ""
    for number, word in enumerate(words):
        longer = f"{name}_{word}" if name else word
        if len(longer) > _LONGEST_NAME:
            return f"{name}_and_{len(words) - number}_more" if name else word
        name = longer
    return name


@lru_cache(maxsize=8192)
def _line(code: CodeType, instruction: int) -> str:
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return f"{PurePath(code.co_filename).name}:{line}"
    return f"{PurePath(code.co_filename).name}:{code.co_firstlineno}"


def spread_lines(nodes: Sequence[Node]) -> None:
    """Give the line of a function that is made of several nodes to all of them: it was recorded with the last one alone.

    `nodes` are in topological order, inputs first.
    """
    for node in reversed(nodes):
        if node.code is None:
            continue
        for one in node.inputs:
            if one.code is None and not one.is_leaf:
                one.code, one.instruction = node.code, node.instruction


def operation_line(node: Node) -> str:
    """What a node does, its dtype and shape, and the line of the program that recorded it."""
    shape = ", ".join(map(str, node.shape))
    text = f"{node.describe()} -> {node.dtype}[{shape}]"
    return text if node.code is None else f"{text}  at {_line(node.code, node.instruction)}"


def operation_lines(nodes: Iterable[Node]) -> tuple[str, ...]:
    """One line for each node that computes something."""
    return tuple(operation_line(node) for node in nodes if not isinstance(node, View | Constant))
