"""From steps in the making to the plan: order, memory for every value, and kernel plans with their axes arranged."""

from heapq import heapify, heappop, heappush

from blockarray.fusion.arrangement import arranged
from blockarray.fusion.decisions import ASKED_FOR, Decisions
from blockarray.fusion.description import kernel_name, operation_lines
from blockarray.fusion.expansion import Expansion
from blockarray.fusion.plan import (
    DomainAxis,
    Fresh,
    GraphPlan,
    Inherited,
    KernelPlan,
    Leaf,
    Number,
    PlanValue,
    Product,
    Read,
    Scattering,
    Statement,
    Step,
    Take,
    Write,
)
from blockarray.fusion.steps import CopyStep, ProductStep, ScatterStep, StepInMaking
from blockarray.fusion.updates import Placement
from blockarray.graph.nodes import Contract, Scatter, Update

COPY_TO_KEEP = "an update writes into a copy, because the old value is still read"
COPY_OF_RESULT = "the same value is asked for twice, or exists already"


def assemble(decisions: Decisions, steps: list[StepInMaking], placement: Placement) -> GraphPlan:
    """The finished plan.

    Parameters
    ----------
    decisions : Decisions
    steps : list
        All of them, in any order; copies that updates need last.
    placement : Placement
        Of the updates among the steps.
    """
    return _Assembly(decisions, steps, placement).plan()


class _Assembly:
    def __init__(self, decisions: Decisions, steps: list[StepInMaking], placement: Placement) -> None:
        self.decisions = decisions
        self.graph = decisions.graph
        self.steps = steps
        self.placement = placement
        self.values: list[PlanValue] = []
        self.numbers: dict[int, int] = {}
        self.results: dict[int, int] = {}
        self.later_results: dict[int, list[int]] = {}
        for position, number in self.graph.roots:
            if number not in self.results:
                self.results[number] = position
            elif not self.graph.is_leaf(number) and not isinstance(
                self.graph.nodes[number], Update | Scatter | Contract
            ):
                self.later_results.setdefault(number, []).append(position)

    def plan(self) -> GraphPlan:
        """Values in the order in which the steps need them."""
        self._place_results_without_elements()
        finished: list[Step] = []
        for step in self._in_order():
            match step:
                case ProductStep():
                    finished.append(self._product(step))
                case ScatterStep():
                    finished.append(self._scatter(step))
                case CopyStep():
                    finished.append(self._copy(step))
                case _:
                    finished.append(self._kernel(step))
        return GraphPlan(tuple(self.values), tuple(finished))

    # -- order ---------------------------------------------------------------------------------------------------------

    def _in_order(self) -> list[StepInMaking]:
        producers: dict[int, int] = {}
        for position, step in enumerate(self.steps):
            for target in step.targets():
                producers[target] = position
        after: list[set[int]] = [{producers[one] for one in step.reads if one in producers} for step in self.steps]
        for first, second in self.placement.before:
            after[second].add(first)
        before: list[list[int]] = [[] for _ in self.steps]
        for position, needed in enumerate(after):
            needed.discard(position)
            for one in needed:
                before[one].append(position)
        waiting = [len(needed) for needed in after]
        rank = [max(step.targets(), default=-1) for step in self.steps]
        ready = [(rank[position], position) for position, count in enumerate(waiting) if count == 0]
        heapify(ready)
        found: list[StepInMaking] = []
        while ready:
            _, position = heappop(ready)
            found.append(self.steps[position])
            for later in before[position]:
                waiting[later] -= 1
                if waiting[later] == 0:
                    heappush(ready, (rank[later], later))
        if len(found) != len(self.steps):
            raise AssertionError(
                "the steps of a plan wait for each other in a circle; the partition must not allow that"
            )
        return found

    # -- values --------------------------------------------------------------------------------------------------------

    def _place(self, value: PlanValue) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _value(self, number: int) -> int:
        """The plan's number for memory with a value that exists when the step runs."""
        found = self.numbers.get(number)
        if found is not None:
            return found
        position = self.graph.leaf_positions.get(number)
        if position is not None:
            placed = self._place(Leaf(position))
        else:
            # Nothing computes it: it has no elements, so nothing reads them.
            placed = self._fresh(number)
        self.numbers[number] = placed
        return placed

    def _fresh(self, number: int, result: int | None = None) -> int:
        node = self.graph.nodes[number]
        return self._place(Fresh(node.dtype, self.graph.sizes[number], result))

    def _target(self, number: int) -> int:
        """The plan's number for memory that a step writes a value to."""
        base = self.placement.same_memory.get(number)
        if base is None:
            found = self.numbers.get(number)
            if found is None:
                found = self._fresh(number, self.results.get(number))
        elif self.graph.is_leaf(base):
            found = self._inherited(number, base)
        else:
            found = self._value(base)
            self._becomes(found, number)
        self.numbers[number] = found
        return found

    def _inherited(self, number: int, base: int) -> int:
        node = self.graph.nodes[number]
        last = self._last_version(number)
        position = self.graph.leaf_positions[base]
        return self._place(Inherited(position, node.dtype, self.graph.sizes[number], self.results[last]))

    def _last_version(self, number: int) -> int:
        later = {base: update for update, base in self.placement.same_memory.items()}
        while number in later:
            number = later[number]
        return number

    def _becomes(self, value: int, number: int) -> None:
        placed = self.values[value]
        result = self.results.get(number)
        if isinstance(placed, Fresh) and result is not None:
            self.values[value] = Fresh(placed.dtype, placed.elements, result)

    def _place_results_without_elements(self) -> None:
        for position, number in self.graph.roots:
            if self.graph.sizes[number] == 0:
                placed = self._fresh(number, position)
                if not self.graph.is_leaf(number):
                    self.numbers.setdefault(number, placed)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _kernel(self, step: Expansion) -> KernelPlan:
        statements = tuple(self._with_value_numbers(statement) for statement in step.statements)
        writes = []
        itemsizes = []
        for seed, statement in step.outputs:
            targets = [self._target(seed.target)]
            targets += [self._fresh(seed.target, position) for position in self.later_results.get(seed.target, ())]
            for target in targets:
                writes.append(Write(target, statement, seed.offset, seed.strides))
                itemsizes.append(self.graph.nodes[seed.target].dtype.itemsize)
        axes, ordered, placed = arranged(step.extents, frozenset(step.group), statements, writes, itemsizes)
        nodes = [self.graph.nodes[number] for number in sorted(set(step.uses) | set(step.targets()))]
        return KernelPlan(
            kernel_name(statements),
            axes,
            ordered,
            placed,
            self._aliased(statements, writes),
            operation_lines(nodes),
            self._reason(step.targets()),
        )

    def _with_value_numbers(self, statement: Statement) -> Statement:
        match statement:
            case Read(source=source, dtype=dtype, offset=offset, strides=strides):
                return Read(self._value(source), dtype, offset, strides)
            case Number(source=source, dtype=dtype):
                return Number(self._value(source), dtype)
            case Take():
                return Take(
                    self._value(statement.source),
                    statement.dtype,
                    statement.offset,
                    statement.positions,
                    statement.position_strides,
                    statement.rest,
                )
        return statement

    def _aliased(self, statements: tuple[Statement, ...], writes: list[Write]) -> frozenset[int]:
        sources = {statement.source for statement in statements if isinstance(statement, Read | Take)}
        written = {self._memory(write.target) for write in writes}
        return frozenset(source for source in sources if self._memory(source) in written)

    def _memory(self, value: int) -> tuple[str, int]:
        match self.values[value]:
            case Leaf(position=position) | Inherited(position=position):
                return "leaf", position
        return "fresh", value

    def _reason(self, targets: tuple[int, ...]) -> str:
        reasons = dict.fromkeys(self.decisions.stored.get(target, ASKED_FOR) for target in targets)
        return "; ".join(reasons)

    def _product(self, step: ProductStep) -> Product:
        node = self.graph.nodes[step.number]
        a, b = (self.graph.nodes[one].shape for one in self.graph.inputs[step.number])
        target = self._target(step.number)
        return Product(
            self._value(step.a[0]),
            self._value(step.b[0]),
            target,
            node.dtype,
            (step.a[1], a, step.a[2]),
            (step.b[1], b, step.b[2]),
            node.shape,
            operation_lines([node]),
            self._reason((step.number,)),
            step.operand_dtype,
        )

    def _scatter(self, step: ScatterStep) -> Scattering:
        node = self.graph.nodes[step.number]
        assert isinstance(node, Scatter)
        target = self._target(step.number)
        value_dtype = node.working if step.value is None else self.graph.nodes[step.value].dtype
        return Scattering(
            target,
            self._value(step.places),
            None if step.value is None else self._value(step.value),
            self.graph.sizes[step.places],
            self.graph.sizes[step.number],
            node.dtype,
            value_dtype,
            node.working,
            node.function,
            step.value is not None and self.graph.sizes[step.value] == 1,
            step.value is not None and self.graph.is_constant(step.value),
            operation_lines([node]),
            self._reason((step.number,)),
        )

    def _copy(self, step: CopyStep) -> KernelPlan:
        node = self.graph.nodes[step.source]
        source = self._value(step.source)
        if step.update is not None:
            target = self._fresh(step.source)
            self.numbers[step.update] = target
            self._becomes(target, step.update)
            reason = COPY_TO_KEEP
        else:
            target = self._fresh(step.source, step.result)
            reason = COPY_OF_RESULT
        size = self.graph.sizes[step.source]
        axes = (DomainAxis(size),) if size != 1 else ()
        strides = (1,) * len(axes)
        if self.graph.is_constant(step.source):
            statement: Statement = Number(source, node.dtype)
        else:
            statement = Read(source, node.dtype, 0, strides)
        write = Write(target, 0, 0, strides)
        return KernelPlan("copy", axes, (statement,), (write,), frozenset(), operation_lines([node]), reason)
