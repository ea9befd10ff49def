"""The recorded nodes with equal work found once: one number for each different value, and facts about it."""

from collections.abc import Sequence

from blockarray.graph.nodes import Cast, Constant, Map, Node, Reduce
from blockarray.graph.recording import Recording
from blockarray.graph.simplify import simplified
from codegen.dtypes import DType
from codegen.scalar.combiners import COMBINERS

# Axes counted from the last one (-1), so that they stay the same when shapes of other ranks broadcast.
TrailingAxes = frozenset[int]
_NO_FOLDS: frozenset[TrailingAxes] = frozenset()
_MOST_FOLDS = 4


class Graph:
    """Values by number; the inputs of a value have lower numbers.

    Attributes
    ----------
    nodes : list of Node
        A node for each value.
    inputs : list of tuple of int
        Numbers of the inputs; empty for leaves.
    numbers : dict from Node to int
        Of every recorded node; several nodes may stand for one value.
    leaf_positions : dict from int to int
        Position among the leaves of the recording, for the values that exist already.
    roots : tuple of (int, int)
        For each root its position among the recorded nodes and its number.
    sizes : list of int
        Elements of each value.
    """

    __slots__ = ("nodes", "inputs", "numbers", "leaf_positions", "roots", "sizes", "_known", "_folds", "_ancestors")

    def __init__(self, recording: Recording) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[tuple[int, ...]] = []
        self.numbers: dict[Node, int] = {}
        self.leaf_positions: dict[int, int] = {}
        self.sizes: list[int] = []
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}
        self._folds: list[frozenset[TrailingAxes]] = []
        self._ancestors: list[int] = []
        constants: dict[tuple[DType, bool | int | float], int] = {}
        for position, leaf in enumerate(recording.leaves):
            if isinstance(leaf, Constant) and leaf.value and leaf not in recording.roots:
                # As in the recording's key: equal constants are one value, zeros aside.
                first = constants.setdefault((leaf.dtype, leaf.value), len(self.nodes))
                if first != len(self.nodes):
                    self.numbers[leaf] = first
                    continue
            self.leaf_positions[self._append(leaf, ())] = position
        for node in recording.nodes:
            if node not in self.numbers:
                self._number(node)
        positions = {node: position for position, node in enumerate(recording.nodes)}
        self.roots = tuple((positions[root], self.numbers[root]) for root in recording.roots)

    def is_leaf(self, number: int) -> bool:
        """Whether the value exists already."""
        return number in self.leaf_positions

    def is_constant(self, number: int) -> bool:
        """Whether the value is a constant, which is no memory."""
        return type(self.nodes[number]) is Constant

    def depends_on(self, number: int, targets: int) -> bool:
        """Whether the value is, or is computed from, one of the values whose bits are set in `targets`."""
        ancestors = self._ancestors
        for below in range(len(ancestors), len(self.nodes)):
            found = 1 << below
            for one in self.inputs[below]:
                found |= ancestors[one]
            ancestors.append(found)
        return bool(ancestors[number] & targets)

    def _append(self, node: Node, inputs: tuple[int, ...]) -> int:
        number = len(self.nodes)
        self.nodes.append(node)
        self.inputs.append(inputs)
        self.sizes.append(node.size)
        self.numbers[node] = number
        self._folds.append(self._folds_inside(node, inputs))
        return number

    def _number(self, node: Node) -> int:
        """Give the node a number; its inputs have one, or are new nodes that a rule made."""
        numbers = tuple(self._known_or_new(one) for one in node.inputs)
        operands: Sequence[Node] = [self.nodes[number] for number in numbers]
        simpler = simplified(node, operands)
        if simpler is None and type(node) is Reduce:
            simpler = self._in_two_steps(node, numbers[0])
        if simpler is not None:
            number = self._known_or_new(simpler)
            self.numbers[node] = number
            return number
        key = (node.token, numbers)
        found = self._known.get(key)
        if found is not None:
            self.numbers[node] = found
            return found
        self._known[key] = number = self._append(node, numbers)
        return number

    def _known_or_new(self, node: Node) -> int:
        # Rules build at most two new nodes on top of known ones, so this does not go deep.
        number = self.numbers.get(node)
        return number if number is not None else self._number(node)

    def _folds_inside(self, node: Node, inputs: tuple[int, ...]) -> frozenset[TrailingAxes]:
        """Axes of the folds that a kernel of this value would have to do before, as long as there are few."""
        if node.is_leaf:
            return _NO_FOLDS
        if type(node) is Reduce:
            rank = len(node.shape)
            return frozenset((frozenset(axis - rank for axis in node.axes if node.inputs[0].shape[axis] != 1),))
        if type(node) is Map or type(node) is Cast:
            found = _NO_FOLDS
            for one in inputs:
                if self._folds[one]:
                    found |= self._folds[one]
            return found if len(found) <= _MOST_FOLDS else _NO_FOLDS
        return _NO_FOLDS

    def _in_two_steps(self, node: Reduce, operand: int) -> Node | None:
        """fold over axes A of something folded over axes B, part of A -> fold over B, then over the rest

        The first step shares a kernel with the folds inside; without it the whole operand would be computed twice.
        """
        inside = self._folds[operand]
        if len(inside) != 1 or COMBINERS[node.function].arity != 1 or node.dtype.is_half:
            return None
        (first,) = inside
        rank = len(node.shape)
        shape = self.nodes[operand].shape
        every = frozenset(axis - rank for axis in node.axes if shape[axis] != 1)
        if not first or not first < every:
            return None
        first_axes = tuple(sorted(axis + rank for axis in first))
        rest = tuple(axis for axis in node.axes if axis not in first_axes)
        value = self.nodes[operand]
        if value.dtype is not node.dtype:
            return None
        inner = Reduce(node.function, value, first_axes, node.dtype, node.output)
        outer = Reduce(node.function, inner, rest, node.dtype, node.output)
        for step in (inner, outer):
            step.code, step.instruction = node.code, node.instruction
        return outer
