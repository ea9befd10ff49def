"""From the values that a kernel writes down to what it reads: the statements of one kernel.

The expansion walks from the written values to their operands. Every step has an access: the flat affine map from the kernel's
domain to the elements of the value. Views change the map and cost nothing; the other nodes become statements, one for each different
access. Where a map cannot be pushed on, or where one kernel should not do the work, the value is stored by a kernel of its own and
read here; the reason is kept. What is learnt on the way (an axis to split, axes to fold over) starts the expansion over.
"""

from collections.abc import Iterable, Sequence
from math import prod

from blockarray.fusion.accesses import Access, Recipe, Seed
from blockarray.fusion.decisions import Decisions
from blockarray.fusion.fold_axes import (
    FoldedAxis,
    WantedSplit,
    folds_needed_inside,
    is_spread,
    match_axes,
    order_of_axes,
)
from blockarray.fusion.index_maps import (
    AxisIndices,
    Extents,
    Strides,
    broadcast_strides,
    cached_strides,
    covers,
    indices_along_axes,
    is_row_major,
    points,
    span,
    split_extents,
    useful_split,
)
from blockarray.fusion.plan import Apply, Convert, Fold, Number, Position, Read, RunningFold, Statement, Take
from blockarray.graph.nodes import Cast, Contract, Gather, Iota, Map, Node, Reduce, Scan, Scatter, Update, View
from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.combiners import COMBINERS

_MOST_RESTARTS = 200
_MOST_ACCESSES = 16

OTHER_AXES = "it folds over other axes than the kernel that uses it"
ANOTHER_AXIS = "the folded value is used along another axis of what was folded"
EVERY_PROGRAM = "every program needs the folded value, and the rows are too few to share them among the cores"
WRAPPING_VIEW = "a view of it takes elements that no strides describe before it is stored"
MANY_VIEWS = "too many different views of it are used"
ORDERED: dict[type[Node], str] = {
    Update: "an array is written in place",
    Scan: "a running fold is a kernel of its own",
    Scatter: "elements are written at positions",
    Contract: "a matrix product is a step of its own",
}


class StartOver(Exception):
    """Something was learnt that changes statements made already."""


class Refused(Exception):
    """The value on trial does not fit into the kernel."""


class Expansion:
    """The statements of one kernel in the making.

    Attributes
    ----------
    extents : tuple of int
        Of the domain, in the row-major order of what is written, then the axes that are only folded over.
    group : tuple of int
        Domain axes that are folded over.
    statements : list of Statement
        Sources are value numbers.
    origins : list of int
        For each statement the value that it computes, or -1 for a part of one.
    outputs : list of (Seed, int)
        What is written, and the statement.
    reads : set of int
        Stored values, still to be computed, that the kernel reads; leaves are not among them.
    uses : dict from int to list of (int, int)
        For each value computed here, for each access: elements that differ, and how often one is computed at most.
    """

    def __init__(
        self,
        decisions: Decisions,
        seeds: Sequence[Seed],
        extents: Extents,
        scan_axis: int | None = None,
        needs: frozenset[int] = frozenset(),
    ) -> None:
        self.decisions = decisions
        self.graph = decisions.graph
        self.seeds = list(seeds)
        self.extents = extents
        self.scan_axis = scan_axis
        self.needs = needs
        self.group: tuple[int, ...] = () if scan_axis is None else (scan_axis,)
        self.appended = 0
        self.absorbs = scan_axis is None
        self.forbidden: set[int] = set()
        self.restarts = 0
        self.on_trial = False
        self._reset()

    def _reset(self) -> None:
        self.statements: list[Statement] = []
        self.origins: list[int] = []
        self.memo: dict[Access, int] = {}
        self.recipes: dict[Access, Recipe] = {}
        self.outputs: list[tuple[Seed, int]] = []
        self.absorbed: list[Access] = []
        self.reads: set[int] = set(self.needs)
        self.begun: set[int] = set()
        self.sources: set[int] = set()
        self.uses: dict[int, list[tuple[int, int]]] = {}
        self.nothing: Strides = (0,) * len(self.extents)
        self.orientation: frozenset[tuple[int, int, bool]] | None = None
        self.folds_inside = True
        self.folds = 0

    # -- the walk ------------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Expand everything that is written."""
        while True:
            self._reset()
            try:
                for seed in self.seeds:
                    self._add(seed)
                self._take_absorbed(0)
                self._leave_folds_that_every_program_needs()
                self._drop_group_without_folds()
                return
            except StartOver:
                self.restarts += 1

    def try_to_add(self, seed: Seed, most_statements: int, most_buffers: int) -> bool:
        """Write one more value if it fits: no other cut, split or fold group, shared work, and within the limits."""
        statements, known = len(self.statements), len(self.memo)
        outputs, absorbed, folds = len(self.outputs), len(self.absorbed), self.folds
        reads, sources = set(self.reads), set(self.sources)
        orientation, group = self.orientation, self.group
        uses = {number: list(found) for number, found in self.uses.items()}
        self.seeds.append(seed)
        self.on_trial = True
        try:
            self._add(seed)
            self._take_absorbed(absorbed)
            targets = {one.target for one, _ in self.outputs}
            if len(self.statements) > most_statements or self.buffer_count() > most_buffers:
                raise Refused
            if group != self.group or (self.folds and not folds):
                raise Refused
            if not self._is_spread() and self._offending_folds():
                raise Refused
            if any(self._depends_on_output(one, targets) for one in self.reads):
                raise Refused
            if self.decisions.would_wait_for_itself(self):
                raise Refused
            return True
        except Refused:
            self.seeds.pop()
            del self.statements[statements:]
            del self.origins[statements:]
            for access in list(self.memo)[known:]:
                del self.memo[access]
            del self.outputs[outputs:]
            del self.absorbed[absorbed:]
            self.recipes.clear()
            self.reads, self.sources, self.uses = reads, sources, uses
            self.orientation, self.group, self.folds = orientation, group, folds
            return False
        finally:
            self.on_trial = False

    def buffer_count(self) -> int:
        """Buffers that the kernel reads or writes."""
        return len(self.sources) + len(self.outputs) + len(self.absorbed)

    def targets(self) -> tuple[int, ...]:
        """The values that the kernel writes."""
        return tuple(seed.target for seed, _ in self.outputs)

    def _add(self, seed: Seed) -> None:
        number, offset, strides = seed.access
        statement = self._demand(self._resolve(number, offset, strides, root=seed.target))
        self.outputs.append((seed, statement))

    def _take_absorbed(self, first: int) -> None:
        for access in self.absorbed[first:]:
            number, offset, strides = access
            self.outputs.append((Seed(access, number, offset, strides), self.memo[access]))
        del self.absorbed[first:]

    def _demand(self, wanted: Access) -> int:
        memo, recipes = self.memo, self.recipes
        stack = [wanted]
        while stack:
            access = stack[-1]
            if access in memo:
                stack.pop()
                continue
            recipe = recipes.get(access)
            if recipe is None:
                recipe = recipes[access] = self._recipe(access)
                missing = [one for one in recipe.operands if one not in memo]
                if missing:
                    stack.extend(reversed(missing))
                    continue
            stack.pop()
            memo[access] = self._emit(access, recipe)
        return memo[wanted]

    def _resolve(self, number: int, offset: int, strides: Strides, root: int = -1) -> Access:
        """Follow views down to what they show; `root` is the value being written, which is never read back."""
        graph, stored = self.graph, self.decisions.stored
        while True:
            if graph.sizes[number] == 1:
                offset, strides = 0, self.nothing
            node = graph.nodes[number]
            if type(node) is not View or node.buffer is not None or (number in stored and number != root):
                return number, offset, strides
            if is_row_major(node.shape, node.strides):
                offset += node.offset
            else:
                indices = self._indices(node, offset, strides)
                if indices is None:
                    self._cut(number, WRAPPING_VIEW)
                    return number, offset, strides
                offset, strides = indices.through(node.offset, node.strides)
            number = graph.inputs[number][0]

    def _indices(self, node: Node, offset: int, strides: Strides) -> AxisIndices | None:
        found = indices_along_axes(node.shape, offset, strides, self.extents)
        if found is None:
            split = useful_split(node.shape, offset, strides, self.extents)
            if split is not None:
                self._split(*split)
        return found

    # -- what is learnt ------------------------------------------------------------------------------------------------

    def _start_over(self) -> None:
        if self.on_trial:
            raise Refused
        raise StartOver

    def _split(self, axis: int, inner: int) -> None:
        """Split a domain axis and start over; does nothing where that is not possible."""
        if axis == self.scan_axis or self.restarts > _MOST_RESTARTS:
            return
        if self.on_trial:
            raise Refused
        self.seeds = [seed.split(axis, inner) for seed in self.seeds]
        if axis >= len(self.extents) - self.appended:
            self.appended += 1
        self.extents = split_extents(self.extents, axis, inner)
        group = [one + (one > axis) for one in self.group]
        if axis in self.group:
            group.append(axis + 1)
        self.group = tuple(sorted(group))
        if self.scan_axis is not None and self.scan_axis > axis:
            self.scan_axis += 1
        raise StartOver

    def _append(self, extents: Sequence[int]) -> None:
        """Add axes that are only folded over, and start over."""
        if self.on_trial:
            raise Refused
        rank = len(self.extents)
        self.seeds = [seed.widened(len(extents)) for seed in self.seeds]
        self.extents += tuple(extents)
        self.group = tuple(range(rank, rank + len(extents)))
        self.appended = len(extents)
        raise StartOver

    def _cut(self, number: int, reason: str) -> None:
        """Have the value stored by another kernel."""
        if self.on_trial:
            raise Refused
        self.decisions.store(number, reason)
        if number in self.begun:
            raise StartOver

    # -- recipes -------------------------------------------------------------------------------------------------------

    def _recipe(self, access: Access) -> Recipe:
        number, offset, strides = access
        node = self.graph.nodes[number]
        if self.graph.is_leaf(number):
            if self.graph.is_constant(number):
                return Recipe(node, "number")
            return Recipe(node, "read")
        if number in self.decisions.stored and not self._is_written_here(access):
            self._check_order(number)
            return Recipe(node, "read")
        kind = type(node)
        if kind in ORDERED and not self._is_seed(number):
            self._cut(number, ORDERED[kind])
            return Recipe(node, "read")
        if len(self.uses.get(number, ())) > _MOST_ACCESSES and not self._is_seed(number):
            self._cut(number, MANY_VIEWS)
        self.begun.add(number)
        match node:
            case Map():
                return self._map(node, access)
            case Cast():
                return Recipe(node, "cast", (self._resolve(self.graph.inputs[number][0], offset, strides),))
            case Reduce():
                return self._reduce(node, access)
            case Gather():
                return self._gather(node, access)
            case Iota():
                return Recipe(node, "iota")
            case View():
                return Recipe(node, "same", (self._resolve(number, offset, strides, root=number),))
            case Scan():
                return Recipe(node, "scan", (self._resolve(self.graph.inputs[number][0], offset, strides),))
        raise TypeError(
            f"a kernel cannot compute the recorded operation {type(node).__name__}; expected one of the classes of graph/nodes.py"
        )

    def _is_seed(self, number: int) -> bool:
        return any(seed.access[0] == number and seed.target == number for seed in self.seeds)

    def _is_written_here(self, access: Access) -> bool:
        """Whether a stored value is computed and written by this kernel."""
        number, offset, strides = access
        for seed in self.seeds:
            if seed.target == number and seed.access == access:
                return True
        if self.on_trial and any(seed.target == number for seed, _ in self.outputs):
            return False
        if not self.absorbs or number in self.forbidden or not self.decisions.may_absorb(number):
            return False
        if any(seed.target == number for seed in self.seeds) or any(one[0] == number for one in self.absorbed):
            return False
        if not covers(self.graph.sizes[number], offset, strides, self.extents):
            return False
        still = tuple(axis for axis, stride in enumerate(strides) if stride == 0)
        if still and still != self.group:
            if self.group or not self._is_folded_over(number, still):
                return False
            self.group = still
        if any(self.graph.depends_on(one, 1 << number) for one in self.reads):
            return False
        if self.on_trial:
            return False
        self.absorbed.append(access)
        return True

    def _is_folded_over(self, number: int, axes: tuple[int, ...]) -> bool:
        """Whether the value is made of a fold over as many elements as these domain axes have."""
        fold = self.decisions.nearest_fold(number)
        if fold is None:
            return False
        reduce = self.graph.nodes[fold]
        assert isinstance(reduce, Reduce)
        shape = self.graph.nodes[self.graph.inputs[fold][0]].shape
        return [shape[axis] for axis in reduce.axes if shape[axis] != 1] == [self.extents[axis] for axis in axes]

    def _depends_on_output(self, number: int, targets: Iterable[int]) -> bool:
        mask = 0
        for target in targets:
            mask |= 1 << target
        return self.graph.depends_on(number, mask)

    def _check_order(self, number: int) -> None:
        """A value that is read must not need one that this kernel writes."""
        if not self.absorbed and not self.on_trial:
            return
        offending = [one[0] for one in self.absorbed if self.graph.depends_on(number, 1 << one[0])]
        if offending:
            self.forbidden.update(offending)
            self._start_over()

    def _map(self, node: Map, access: Access) -> Recipe:
        number, offset, strides = access
        operands = []
        indices = None
        for one in self.graph.inputs[number]:
            shape = self.graph.nodes[one].shape
            if shape == node.shape:
                operands.append(self._resolve(one, offset, strides))
            elif self.graph.sizes[one] == 1:
                operands.append(self._resolve(one, 0, self.nothing))
            else:
                if indices is None:
                    indices = self._indices(node, offset, strides)
                if indices is None:
                    self._cut(number, WRAPPING_VIEW)
                    return Recipe(node, "read")
                start, steps = indices.through(0, broadcast_strides(shape, node.shape))
                operands.append(self._resolve(one, start, steps))
        return Recipe(node, "map", tuple(operands))

    def _gather(self, node: Gather, access: Access) -> Recipe:
        number, offset, strides = access
        base, *positions = self.graph.inputs[number]
        indices = self._indices(node, offset, strides)
        if indices is None:
            self._cut(number, WRAPPING_VIEW)
            return Recipe(node, "read")
        if self.on_trial and not self.decisions.is_memory(base):
            raise Refused
        source, start, base_strides = self.decisions.strided(base, "elements are taken from it by position")
        if not self.graph.is_leaf(source):
            self._check_order(source)
            self.reads.add(source)
        shape = self.graph.nodes[positions[0]].shape
        rest = len(node.shape) - len(shape)
        taken = len(positions)
        rest_start, rest_strides = indices.through(start, (0,) * len(shape) + base_strides[taken:])
        operands = []
        for one in positions:
            first, steps = indices.through(0, cached_strides(shape) + (0,) * rest)
            operands.append(self._resolve(one, first, steps))
        self.sources.add(source)
        return Recipe(node, "take", tuple(operands), source, rest_start, rest_strides, base_strides[:taken])

    def _reduce(self, node: Reduce, access: Access) -> Recipe:
        number, offset, strides = access
        operand = self.graph.inputs[number][0]
        shape = self.graph.nodes[operand].shape
        reduced = [axis for axis in node.axes if shape[axis] != 1]
        if not reduced:
            return Recipe(node, "fold", (self._resolve(operand, offset, strides),), strides=self.nothing)
        if self.scan_axis is not None:
            self._cut(number, ORDERED[Scan])
            return Recipe(node, "read")
        indices = self._indices(node, offset, strides)
        if indices is None:
            self._cut(number, WRAPPING_VIEW)
            return Recipe(node, "read")
        matched = self._matched([shape[axis] for axis in reduced], strides)
        if isinstance(matched, str):
            self._cut(number, matched)
            return Recipe(node, "read")
        if not self._is_aligned(indices, reduced, matched, shape):
            self._cut(number, ANOTHER_AXIS)
            return Recipe(node, "read")
        weights = cached_strides(shape)
        kept = tuple(0 if axis in reduced else weight for axis, weight in enumerate(weights))
        start, steps = indices.through(0, kept)
        within = cached_strides(tuple(shape[axis] for axis in reduced))
        inner, places = list(steps), list(self.nothing)
        for one in matched:
            inner[one.domain_axis] = weights[reduced[one.folded_axis]] * one.step
            places[one.domain_axis] = within[one.folded_axis] * one.step
        return Recipe(node, "fold", (self._resolve(operand, start, tuple(inner)),), strides=tuple(places))

    def _matched(self, wanted: list[int], strides: Strides) -> list[FoldedAxis] | str:
        """Which domain axes run along the folded axes, or why none do."""
        still = tuple(axis for axis, stride in enumerate(strides) if stride == 0)
        if self.group:
            if still != self.group:
                return ANOTHER_AXIS if set(still) > set(self.group) else OTHER_AXES
        elif not still:
            self._append(wanted)
        found = match_axes(wanted, still, self.extents)
        if isinstance(found, WantedSplit):
            self._split(found.axis, found.inner)
            found = None
        if found is None:
            return OTHER_AXES if self.group else ANOTHER_AXIS
        self.group = still
        return found

    def _is_aligned(
        self, indices: AxisIndices, reduced: list[int], matched: list[FoldedAxis], shape: tuple[int, ...]
    ) -> bool:
        """Whether kept and folded axes follow each other in the operand as they do in the kernel's domain."""
        found = order_of_axes(indices, reduced, matched)
        if self.orientation is not None:
            return found == self.orientation
        if not self.appended and any(before != (kept < folded) for kept, folded, before in found):
            return False
        self.orientation = found
        large = [axis for axis, extent in enumerate(shape) if extent != 1]
        self.folds_inside = large[-1] in reduced
        return True

    # -- statements ----------------------------------------------------------------------------------------------------

    def _emit(self, access: Access, recipe: Recipe) -> int:
        number, offset, strides = access
        node = recipe.node
        operands = tuple(self.memo[one] for one in recipe.operands)
        match recipe.kind:
            case "read":
                self.sources.add(number)
                if not self.graph.is_leaf(number):
                    self.reads.add(number)
                read = Read(number, node.dtype, offset, self._safe(number, offset, strides))
                return self._append_statement(read, number)
            case "number":
                return self._append_statement(Number(number, node.dtype), number)
            case "same":
                return operands[0]
        self.uses.setdefault(number, []).append(self._use(strides))
        match recipe.kind:
            case "map":
                assert isinstance(node, Map)
                return self._append_statement(Apply(node.function, operands, node.dtype), number)
            case "cast":
                return self._append_statement(Convert(operands[0], node.dtype), number)
            case "iota":
                return self._append_statement(Position(offset, strides), number)
            case "fold":
                assert isinstance(node, Reduce)
                return self._fold(node, operands[0], number, recipe.strides)
            case "scan":
                assert isinstance(node, Scan)
                wide = self._widened(operands[0], node.dtype)
                running = RunningFold(node.function, wide, _accumulator(node.dtype))
                return self._narrowed(running, node.dtype, number)
        safe = self._safe(recipe.source, recipe.offset, recipe.strides)
        take = Take(recipe.source, node.dtype, recipe.offset, operands, recipe.position_strides, safe)
        return self._append_statement(take, number)

    def _safe(self, source: int, offset: int, strides: Strides) -> Strides:
        """Strides that keep an access to elements that do not exist inside the loops over axes without points."""
        if 0 not in self.extents:
            return strides
        low, high = span(offset, strides, self.extents)
        if 0 <= low and high < self.graph.sizes[source]:
            return strides
        return tuple(stride if extent else 1 for stride, extent in zip(strides, self.extents, strict=True))

    def _append_statement(self, statement: Statement, origin: int) -> int:
        self.statements.append(statement)
        self.origins.append(origin)
        return len(self.statements) - 1

    def _widened(self, operand: int, dtype: DType) -> int:
        return self._append_statement(Convert(operand, dtypes.float32), -1) if dtype.is_half else operand

    def _narrowed(self, statement: Statement, dtype: DType, origin: int) -> int:
        if not dtype.is_half:
            return self._append_statement(statement, origin)
        return self._append_statement(Convert(self._append_statement(statement, -1), dtype), origin)

    def _fold(self, node: Reduce, operand: int, number: int, places: Strides) -> int:
        dtype = self.graph.nodes[self.graph.inputs[number][0]].dtype
        with_position = COMBINERS[node.function].arity == 2
        if not any(self.graph.nodes[self.graph.inputs[number][0]].shape[axis] != 1 for axis in node.axes):
            # One element: it is the result, or its position is 0. hypot alone does something to it.
            if with_position and node.output == 1:
                return self._append_statement(Position(0, self.nothing), number)
            if node.function == "hypot":
                return self._append_statement(Apply("absolute", (operand,), node.dtype), number)
            return operand
        self.folds += 1
        operands: tuple[int, ...] = (self._widened(operand, dtype),)
        if with_position:
            operands += (self._append_statement(Position(0, places), -1),)
        if with_position and node.output == 1:
            return self._append_statement(Fold(node.function, operands, 1, node.dtype), number)
        return self._narrowed(Fold(node.function, operands, node.output, _accumulator(dtype)), dtype, number)

    def _use(self, strides: Strides) -> tuple[int, int]:
        """Elements that differ, and points at which a kernel computes them (an inner row is computed again for each outer one)."""
        differ = points(strides, self.extents)
        last = max((axis for axis, stride in enumerate(strides) if stride), default=-1)
        once = self.group if not any(strides[axis] for axis in self.group) else ()
        computed = prod(extent for axis, extent in enumerate(self.extents[: last + 1]) if axis not in once)
        return differ, max(computed, differ)

    # -- folds that all programs would have to do ------------------------------------------------------------------------

    def _is_spread(self) -> bool:
        return not self.group or is_spread(self.extents, self.group, self.folds_inside, self.decisions.target)

    def _offending_folds(self) -> set[int]:
        written = [(seed.strides, statement) for seed, statement in self.outputs]
        return folds_needed_inside(self.statements, written, self.group)

    def _leave_folds_that_every_program_needs(self) -> None:
        if self._is_spread():
            return
        found = False
        for position in self._offending_folds():
            number = self.origins[position]
            if number < 0:
                # A half's fold is followed by its conversion back.
                number = self.origins[position + 1]
            if self._is_seed(number):
                continue
            self.decisions.store(number, EVERY_PROGRAM)
            found = True
        if found:
            self.forget_group()
            raise StartOver

    def _drop_group_without_folds(self) -> None:
        if self.scan_axis is not None or not self.group or self.folds:
            return
        if self.appended:
            self.forget_group()
            raise StartOver
        if all(all(seed.strides) for seed, _ in self.outputs):
            self.group = ()

    def forget_group(self) -> None:
        """Unlearn the axes to fold over; what is stored since may have left others."""
        rank = len(self.extents) - self.appended
        if self.appended:
            self.seeds = [seed.narrowed(rank) for seed in self.seeds]
            self.extents = self.extents[:rank]
            self.appended = 0
        self.group = ()


def _accumulator(dtype: DType) -> DType:
    return dtypes.float32 if dtype.is_half else dtype
