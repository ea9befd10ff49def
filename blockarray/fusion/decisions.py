"""What one partition has decided so far: which values are stored, why, and which step computes them."""

from typing import Protocol

from blockarray.fusion.index_maps import Strides, cached_strides, indices_along_axes, is_row_major
from blockarray.fusion.value_numbering import Graph
from blockarray.graph.nodes import Cast, Contract, Map, Reduce, Scan, Scatter, Update, View
from codegen.target import Target

ASKED_FOR = "its result was asked for"
_NEAR = 16
_STEPS_OF_THEIR_OWN = (Update, Scan, Scatter, Contract)


class Owner(Protocol):
    """A step in the making: what it reads of the values that other steps compute."""

    reads: set[int]

    def targets(self) -> tuple[int, ...]:
        """The values that the step computes."""


class Decisions:
    """Shared by all kernels of one partition. `stored` only grows.

    Attributes
    ----------
    stored : dict from int to str
        Values that get memory, with the reason.
    separate : set of int
        Stored values that must not be computed by a kernel that also uses them.
    owners : dict from int to Owner
        In the present round, the step that computes a value.
    """

    def __init__(self, graph: Graph, target: Target) -> None:
        self.graph = graph
        self.target = target
        self.stored: dict[int, str] = {number: ASKED_FOR for _, number in graph.roots if not graph.is_leaf(number)}
        self.separate: set[int] = set()
        self.owners: dict[int, Owner] = {}

    def store(self, number: int, reason: str) -> None:
        """Have the value computed and stored by another kernel than those that use it."""
        self.stored.setdefault(number, reason)
        self.separate.add(number)

    def share(self, number: int, reason: str) -> None:
        """Have the value stored, if possible by a kernel that computes it anyway."""
        self.stored.setdefault(number, reason)

    def may_absorb(self, number: int) -> bool:
        """Whether a kernel that uses the stored value may be the one that computes it."""
        if number in self.separate or number in self.owners or self.graph.sizes[number] == 0:
            return False
        return not isinstance(self.graph.nodes[number], _STEPS_OF_THEIR_OWN)

    def nearest_fold(self, number: int) -> int | None:
        """The nearest fold that the value is made of elementwise, if it is not stored by another kernel."""
        graph = self.graph
        waiting = [number]
        for _ in range(_NEAR):
            if not waiting:
                return None
            one = waiting.pop(0)
            node = graph.nodes[one]
            if graph.is_leaf(one) or one in self.separate:
                continue
            if type(node) is Reduce:
                return one
            if type(node) is Map or type(node) is Cast or (type(node) is View and self._keeps_elements(one)):
                waiting.extend(graph.inputs[one])
        return None

    def _keeps_elements(self, number: int) -> bool:
        return self.graph.sizes[number] == self.graph.sizes[self.graph.inputs[number][0]]

    def strided(self, number: int, reason: str) -> tuple[int, int, Strides]:
        """Memory with the value's elements: stored value, offset and strides along the value's axes.

        What has no memory yet is stored for `reason`.
        """
        found = self._followed(number)
        if found is not None and self._is_memory(found[0]):
            return found
        graph = self.graph
        if found is not None and not graph.is_leaf(found[0]) and graph.sizes[found[0]] <= 2 * graph.sizes[number]:
            self.store(found[0], reason)
            return found
        self.store(number, reason)
        return number, 0, cached_strides(graph.nodes[number].shape)

    def is_memory(self, number: int) -> bool:
        """Whether `strided` finds memory without storing anything more."""
        found = self._followed(number)
        return found is not None and self._is_memory(found[0])

    def _is_memory(self, number: int) -> bool:
        if self.graph.is_leaf(number):
            return not self.graph.is_constant(number)
        return number in self.stored

    def _followed(self, number: int) -> tuple[int, int, Strides] | None:
        graph = self.graph
        shape = graph.nodes[number].shape
        offset, strides = 0, cached_strides(shape)
        while True:
            node = graph.nodes[number]
            if type(node) is not View or number in self.stored or graph.is_leaf(number):
                return number, offset, strides
            if is_row_major(node.shape, node.strides):
                offset += node.offset
            else:
                indices = indices_along_axes(node.shape, offset, strides, shape)
                if indices is None:
                    return None
                offset, strides = indices.through(node.offset, node.strides)
            number = graph.inputs[number][0]

    def would_wait_for_itself(self, step: Owner) -> bool:
        """Whether a step would read, through other steps, what it computes itself."""
        targets = step.targets()
        if len(targets) < 2:
            # Values depend on lower numbers only; a circle needs a step that computes several.
            return False
        mask = 0
        for target in targets:
            mask |= 1 << target
        waiting = list(step.reads)
        seen = set(waiting)
        while waiting:
            one = waiting.pop()
            if mask >> one & 1 or self.graph.depends_on(one, mask):
                return True
            owner = self.owners.get(one)
            if owner is not None:
                further = set(owner.reads)
            else:
                further = {other for other in self.owners if other < one and self.graph.depends_on(one, 1 << other)}
            for other in further - seen:
                seen.add(other)
                waiting.append(other)
        return False
