"""Where updates write: into the memory of the value that they replace when that is safe, else into a copy.

A value may be overwritten when it is no result itself, when no other update took its memory, and when every other step that reads it
can run before. That order is then demanded.
"""

from dataclasses import dataclass, field

from blockarray.fusion.index_maps import surely_apart
from blockarray.fusion.plan import Read, Take
from blockarray.fusion.steps import CopyStep, ScatterStep, StepInMaking, UpdateStep
from blockarray.fusion.value_numbering import Graph


def overlapping(step: UpdateStep) -> bool:
    """Whether the kernel reads elements of the base that another of its points may have written already.

    An element that is read only at the point that writes it is safe: it is read first.
    """
    seed = next(seed for seed, _ in step.outputs if seed.target == step.number)
    written = (seed.offset, seed.strides)
    shape = (step.graph.sizes[step.base],)
    own = step.graph.nodes[step.base].shape
    for statement in step.statements:
        if isinstance(statement, Take) and statement.source == step.base:
            return True
        if not isinstance(statement, Read) or statement.source != step.base:
            continue
        read = (statement.offset, statement.strides)
        if read == written:
            continue
        if not (surely_apart(own, read, written, step.extents) or surely_apart(shape, read, written, step.extents)):
            return True
    return False


@dataclass
class Placement:
    """Decided by `place_updates`.

    Attributes
    ----------
    same_memory : dict from int to int
        For each update in place, the value whose memory it takes over.
    before : list of (int, int)
        Pairs of positions in ``steps + copies``: the first must run before the second.
    copies : list of CopyStep
        Steps to add: copies for updates that cannot be in place.
    too_late : set of int
        Values worth storing before: they read what an update overwrites, and are smaller than a copy of it.
    """

    same_memory: dict[int, int] = field(default_factory=dict)
    before: list[tuple[int, int]] = field(default_factory=list)
    copies: list[CopyStep] = field(default_factory=list)
    too_late: set[int] = field(default_factory=set)


def place_updates(graph: Graph, steps: list[StepInMaking]) -> Placement:
    """Find the memory of every update."""
    placement = Placement()
    updates = [
        (position, step)
        for position, step in enumerate(steps)
        if isinstance(step, UpdateStep | ScatterStep) and not step.replaces_all
    ]
    updates.sort(key=lambda one: one[1].number)
    if updates:
        _Placing(graph, steps, placement).place(updates)
    return placement


class _Placing:
    def __init__(self, graph: Graph, steps: list[StepInMaking], placement: Placement) -> None:
        self.graph = graph
        self.steps = steps
        self.placement = placement
        self.results = {number for _, number in graph.roots}
        self.taken: dict[int, int] = {}
        self.readers: dict[int, list[int]] = {}
        producers: dict[int, int] = {}
        for position, step in enumerate(steps):
            for target in step.targets():
                producers[target] = position
            for source in step.sources:
                self.readers.setdefault(source, []).append(position)
        self.after: list[set[int]] = [{producers[one] for one in step.reads if one in producers} for step in steps]

    def place(self, updates: list[tuple[int, UpdateStep | ScatterStep]]) -> None:
        """Decide for each update, in the order of their numbers."""
        by_number = {step.number: (position, step) for position, step in updates}
        chains: dict[int, list[int]] = {}
        for position, step in updates:
            if not self._may_take(step, position):
                self._copy(step, position)
                continue
            self._take(step, position)
            chain = chains.pop(step.base, [])
            chain.append(step.number)
            chains[step.number] = chain
        for chain in chains.values():
            base = self.placement.same_memory[chain[0]]
            if self.graph.is_leaf(base) and chain[-1] not in self.results:
                # Memory of a leaf is only taken over for a result.
                del self.placement.same_memory[chain[0]]
                self._copy(by_number[chain[0]][1], by_number[chain[0]][0])

    def _may_take(self, step: UpdateStep | ScatterStep, position: int) -> bool:
        base = step.base
        graph = self.graph
        if base in self.results or base in self.taken or not step.in_place or graph.is_constant(base):
            return False
        blocking = [
            reader for reader in self.readers.get(base, ()) if reader != position and self._runs_after(reader, position)
        ]
        for reader in blocking:
            other = self.steps[reader]
            if not isinstance(other, UpdateStep):
                continue
            value = graph.inputs[other.number][1]
            small = graph.nodes[value].nbytes < graph.nodes[base].nbytes
            if small and not graph.is_leaf(value) and not graph.depends_on(value, 1 << step.number):
                self.placement.too_late.add(value)
        return not blocking

    def _runs_after(self, step: int, other: int) -> bool:
        waiting, seen = [step], {step}
        while waiting:
            for one in self.after[waiting.pop()]:
                if one == other:
                    return True
                if one not in seen:
                    seen.add(one)
                    waiting.append(one)
        return False

    def _take(self, step: UpdateStep | ScatterStep, position: int) -> None:
        self.taken[step.base] = position
        self.placement.same_memory[step.number] = step.base
        for reader in self.readers.get(step.base, ()):
            if reader != position:
                self._order(reader, position)

    def _copy(self, step: UpdateStep | ScatterStep, position: int) -> None:
        copy = CopyStep(self.graph, step.base, None, step.number)
        number = len(self.after)
        self.placement.copies.append(copy)
        producers = {
            place for place, other in enumerate(self.steps) if any(target in copy.reads for target in other.targets())
        }
        self.after.append(producers)
        self._order(number, position)
        taker = self.taken.get(step.base)
        if taker is not None and taker != position:
            self._order(number, taker)
        self.readers.setdefault(step.base, []).append(number)

    def _order(self, first: int, second: int) -> None:
        self.placement.before.append((first, second))
        self.after[second].add(first)
