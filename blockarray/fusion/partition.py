"""From a recording to a graph plan: which values are stored, which kernels compute them, in which order.

Kernels are found from the results down. A kernel takes in everything below what it writes, until a value has to be stored by itself
(see `blockarray.fusion.expansion`); that value then gets a kernel in the same way. When all kernels are known, values that several
of them would compute are weighed (see `blockarray.fusion.costs`), and the round is repeated with what that decided.
"""

from heapq import heappop, heappush

from blockarray.fusion.accesses import Seed
from blockarray.fusion.assembly import assemble
from blockarray.fusion.costs import share_work
from blockarray.fusion.decisions import Decisions
from blockarray.fusion.description import spread_lines
from blockarray.fusion.expansion import ORDERED, Expansion
from blockarray.fusion.index_maps import Strides, broadcast_strides, cached_strides
from blockarray.fusion.limits import MOST_BUFFERS, MOST_STATEMENTS, TOO_LARGE, is_too_large, values_to_store
from blockarray.fusion.plan import GraphPlan
from blockarray.fusion.steps import CopyStep, ProductStep, ScatterStep, StepInMaking, UpdateStep
from blockarray.fusion.updates import overlapping, place_updates
from blockarray.fusion.value_numbering import Graph
from blockarray.graph.nodes import Contract, Scan, Scatter, Shape, Update
from blockarray.graph.recording import Recording
from codegen.target import Target

# Each round settles what the one before has shown; what is left after these is only computed more than once.
_MOST_ROUNDS = 6
_MOST_TRIALS = 24

OVERLAP = "the written elements overlap others that are read"
OVERWRITTEN = "it reads elements that an earlier update overwrites"


def make_plan(recording: Recording, target: Target) -> GraphPlan:
    """Divide a recording into kernels.

    Parameters
    ----------
    recording : Recording
    target : Target
        Its number of cores decides when a fold must be shared among programs.

    Returns
    -------
    GraphPlan
        Steps in an order in which they can run one after the other.
    """
    spread_lines(recording.nodes)
    graph = Graph(recording)
    decisions = Decisions(graph, target)
    for turn in range(_MOST_ROUNDS):
        steps = _Round(decisions).steps
        last = turn == _MOST_ROUNDS - 1
        if last or not share_work(decisions, [step for step in steps if isinstance(step, Expansion)]):
            break
    steps += _copies_of_results(graph)
    placement = place_updates(graph, steps)
    for value in placement.too_late:
        decisions.store(value, OVERWRITTEN)
    if placement.too_late:
        steps = [*_Round(decisions).steps, *_copies_of_results(graph)]
        placement = place_updates(graph, steps)
    plan = assemble(decisions, [*steps, *placement.copies], placement)
    # Owners know the decisions: without this, nodes and what they hold would live until cycles are collected.
    decisions.owners.clear()
    return plan


def _copies_of_results(graph: Graph) -> list[StepInMaking]:
    """Steps for results whose value exists already, or that an update or product gives another node too.

    Other kernels write such a result once more by themselves.
    """
    copies: list[StepInMaking] = []
    seen: set[int] = set()
    for position, number in graph.roots:
        again = number in seen and isinstance(graph.nodes[number], Update | Scatter | Contract)
        if graph.sizes[number] and (graph.is_leaf(number) or again):
            copies.append(CopyStep(graph, number, position))
        seen.add(number)
    return copies


class _Round:
    """One way through the graph with what is decided so far."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self.graph = decisions.graph
        self.steps: list[StepInMaking] = []
        self.waiting: list[int] = []
        self.seen: set[int] = set()
        decisions.owners.clear()
        for _, number in self.graph.roots:
            self._need(number)
        while self.waiting:
            number = -heappop(self.waiting)
            if number not in decisions.owners:
                self._own(self._step(number))

    def _need(self, number: int) -> None:
        if number in self.seen or self.graph.is_leaf(number) or self.graph.sizes[number] == 0:
            return
        self.seen.add(number)
        heappush(self.waiting, -number)

    def _own(self, step: StepInMaking) -> None:
        self.steps.append(step)
        for target in step.targets():
            self.decisions.owners[target] = step
        for one in step.reads:
            self._need(one)

    def _step(self, number: int) -> StepInMaking:
        node = self.graph.nodes[number]
        match node:
            case Contract():
                return self._product(number)
            case Update():
                return self._update(node, number)
            case Scatter():
                return self._scatter(number)
            case Scan():
                extents, strides, axes = _without_unit_axes(node.shape, cached_strides(node.shape))
                seed = Seed((number, 0, strides), number, 0, strides)
                kernel = Expansion(self.decisions, [seed], extents, scan_axis=axes.index(node.axis))
                self._build(kernel)
                return kernel
        extents, strides, _ = _without_unit_axes(node.shape, cached_strides(node.shape))
        kernel = Expansion(self.decisions, [Seed((number, 0, strides), number, 0, strides)], extents)
        self._build(kernel)
        self._write_more(kernel, extents)
        return kernel

    def _build(self, kernel: Expansion) -> None:
        while True:
            kernel.build()
            if self.decisions.would_wait_for_itself(kernel):
                kernel.absorbs = False
                continue
            if not is_too_large(kernel):
                return
            found = values_to_store(kernel)
            if not found:
                return
            for one in found:
                self.decisions.store(one, TOO_LARGE)
            kernel.forget_group()

    def _write_more(self, kernel: Expansion, shape: Shape) -> None:
        """Let the kernel write other values of the same shape that are made of what it reads."""
        mask = 0
        for source in kernel.sources:
            mask |= 1 << source
        trials = 0
        for negative in sorted(self.waiting):
            other = -negative
            if other in self.decisions.owners or other in kernel.targets() or trials >= _MOST_TRIALS:
                continue
            node = self.graph.nodes[other]
            if isinstance(node, Update | Scan | Scatter | Contract) or not self.graph.depends_on(other, mask):
                continue
            extents, _, _ = _without_unit_axes(node.shape, node.shape)
            if extents != shape:
                continue
            trials += 1
            first = kernel.seeds[0]
            access = (other, 0, first.access[2])
            kernel.try_to_add(Seed(access, other, 0, first.strides), MOST_STATEMENTS, MOST_BUFFERS)

    def _product(self, number: int) -> ProductStep:
        a, b = self.graph.inputs[number]
        reason = ORDERED[Contract]
        return ProductStep(self.graph, number, self.decisions.strided(a, reason), self.decisions.strided(b, reason))

    def _scatter(self, number: int) -> ScatterStep:
        for one in self.graph.inputs[number]:
            if not self.graph.is_leaf(one):
                self.decisions.store(one, ORDERED[Scatter])
        return ScatterStep(self.graph, number)

    def _update(self, node: Update, number: int) -> StepInMaking:
        base, value = self.graph.inputs[number]
        extents, target_strides, axes = _without_unit_axes(node.view_shape, node.strides)
        size = 1
        for extent in extents:
            size *= extent
        replaces_all = size == node.size
        spread = broadcast_strides(self.graph.nodes[value].shape, node.view_shape)
        access = (value, 0, tuple(spread[axis] for axis in axes))
        seed = Seed(access, number, node.offset, target_strides)
        needs: set[int] = set()
        if not replaces_all and not self.graph.is_leaf(base):
            self.decisions.store(base, ORDERED[Update])
            if self.graph.sizes[base]:
                needs.add(base)
        step = UpdateStep(self.decisions, [seed], extents, frozenset(needs), base, number, replaces_all)
        while True:
            self._build(step)
            if replaces_all or not overlapping(step):
                return step
            if self.graph.is_leaf(value) or value in self.decisions.separate:
                step.in_place = False
                return step
            self.decisions.store(value, OVERLAP)
            step.forget_group()


def _without_unit_axes(shape: Shape, strides: Strides) -> tuple[Shape, Strides, list[int]]:
    axes = [axis for axis, extent in enumerate(shape) if extent != 1]
    return tuple(shape[axis] for axis in axes), tuple(strides[axis] for axis in axes), axes
