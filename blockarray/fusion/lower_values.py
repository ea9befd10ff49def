"""The values of a plan's statements over one window of its domain."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from blockarray.fusion.lower_analysis import Analysis, FoldGroup, closure, dtype_of
from blockarray.fusion.lower_combine import identity, identity_numbers, merge
from blockarray.fusion.lower_parameters import Parameters
from blockarray.fusion.plan import Apply, Convert, Fold, KernelPlan, Literal, Number, Position, Read, RunningFold, Take
from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import Value
from codegen.schedules.schedule import Schedule
from codegen.target import Target

Shape = tuple[int, ...]


@dataclass
class Lowering:
    """What everything that lowers one kernel shares.

    Attributes
    ----------
    builder : Builder
    plan : KernelPlan
    analysis : Analysis
    schedule : Schedule
    target : Target
    parameters : Parameters
    zero : Value
        The index 0.
    piece_numbers : dict
        For each axis that is cut, the number of this program's piece.
    """

    builder: Builder
    plan: KernelPlan
    analysis: Analysis
    schedule: Schedule
    target: Target
    parameters: Parameters
    zero: Value
    piece_numbers: dict[int, Value] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """Axes of the domain."""
        return len(self.plan.axes)

    @property
    def running_axis(self) -> int:
        """The reduced axis that a running fold runs along: the only one."""
        (axis,) = (number for number, row in enumerate(self.plan.axes) if row.reduced)
        return axis

    def dtype(self, statement: int) -> DType:
        """Element type of a statement's value."""
        return dtype_of(self.plan.statements[statement])

    def fold_dtypes(self, group: FoldGroup) -> tuple[DType, ...]:
        """Element types of a fold's operands."""
        return tuple(self.dtype(operand) for operand in group.operands)


@dataclass(frozen=True)
class Window:
    """A part of the domain.

    Attributes
    ----------
    offsets : tuple of Value
        Of its first point.
    shape : tuple of int
    checked : tuple of bool
        Axes on which it may reach beyond the domain, or beyond the program's piece.
    ends : mapping from axis to Value
        For checked reduced axes: where the points that count end.
    """

    offsets: tuple[Value, ...]
    shape: Shape
    checked: tuple[bool, ...]
    ends: Mapping[int, Value] = field(default_factory=dict)


class Values:
    """Values over a window, each computed once, with extent 1 along the axes on which it does not vary.

    Parameters
    ----------
    lowering : Lowering
    window : Window
    given : mapping from statement to Value
        Known already: folded values above all.
    kept : mapping from statement to Value
        Memory of the program that holds values of the row from an earlier pass.
    kept_offset : Value, optional
        Where the window begins in that memory.
    carries : mapping from statement to Value
        What running folds have come to before the window.
    """

    def __init__(
        self,
        lowering: Lowering,
        window: Window,
        given: Mapping[int, Value],
        kept: Mapping[int, Value] | None = None,
        kept_offset: Value | None = None,
        carries: Mapping[int, Value] | None = None,
    ) -> None:
        self._lowering = lowering
        self._builder = lowering.builder
        self._plan = lowering.plan
        self.window = window
        self._kept = kept or {}
        self._kept_offset = kept_offset
        self.carries = dict(carries or {})
        self.known: dict[int, Value] = dict(given)
        self._masks: dict[int, Value] = {}
        self._fills = _fills(lowering) if any(window.checked) else {}

    def compute(self, statements: Iterable[int]) -> None:
        """Make sure that these are known."""
        targets = list(statements)
        available = {*self.known, *self._kept}
        for number in closure(self._plan, [n for n in targets if n not in self.known], available):
            self.known[number] = self._compute(number)
        for number in targets:
            self.block(number)

    def block(self, statement: int) -> Value:
        """The value of a computed or kept statement."""
        found = self.known.get(statement)
        if found is None:
            found = self.known[statement] = self._load_kept(statement)
        return found

    def shape_of(self, statement: int) -> Shape:
        """Shape of the block of a statement."""
        varies = self._lowering.analysis.varies[statement]
        return tuple(extent if flag else 1 for extent, flag in zip(self.window.shape, varies, strict=True))

    def expanded(self, statement: int, shape: Shape) -> Value:
        """The value of a statement, repeated to `shape`."""
        return self._builder.broadcast(self.block(statement), shape)

    def _compute(self, number: int) -> Value:
        statement = self._plan.statements[number]
        match statement:
            case Read():
                return self._read(number, statement)
            case Number():
                return self._lowering.parameters.numbers[number]
            case Literal(number=literal, dtype=dtype):
                return self._builder.constant(dtype, literal, ())
            case Position():
                shape = self.shape_of(number)
                return self._builder.broadcast(self._linear(number, shape), shape)
            case Apply(function=name, operands=operands):
                return self._apply(name, operands)
            case Convert(operand=operand, dtype=dtype):
                return self._builder.cast(self.block(operand), dtype)
            case Take(positions=positions):
                return self._take(number, positions)
            case RunningFold():
                return self._running(number, statement)
            case Fold():
                raise ValueError(f"kernel {self._plan.name}: fold {number} is used in a pass before its own is over")

    def _apply(self, name: str, operands: tuple[int, ...]) -> Value:
        blocks = [self.block(operand) for operand in operands]
        shapes = [block.block.shape for block in blocks if block.block.shape]
        shape = tuple(max(extents) for extents in zip(*shapes, strict=True)) if shapes else ()
        return self._builder.map(name, *(self._builder.broadcast(block, shape) for block in blocks))

    def _read(self, number: int, read: Read) -> Value:
        buffer = self._lowering.parameters.buffers[number]
        fill = self._fills.get(number, 0)
        return self._load(buffer, read.strides, fill)

    def _load(self, buffer: Value, strides: tuple[int, ...], fill: bool | int | float = 0) -> Value:
        window, zero = self.window, self._lowering.zero
        moves = [stride != 0 for stride in strides]
        offsets = [offset if flag else zero for offset, flag in zip(window.offsets, moves, strict=True)]
        shape = tuple(extent if flag else 1 for extent, flag in zip(window.shape, moves, strict=True))
        checked = tuple(flag and check for flag, check in zip(moves, window.checked, strict=True))
        return self._builder.load(buffer, offsets, shape, checked, fill)

    def _load_kept(self, statement: int) -> Value:
        """Values of the row, as an earlier pass stored them."""
        buffer = self._kept[statement]
        return self._builder.load(buffer, self.kept_offsets(), self.shape_of(statement), (False,) * self._lowering.rank)

    def kept_offsets(self) -> tuple[Value, ...]:
        """Where the window begins in memory of the program."""
        blocked = self._lowering.schedule.blocked
        zero = self._lowering.zero
        offset = zero if self._kept_offset is None else self._kept_offset
        return tuple(offset if axis == blocked else zero for axis in range(self._lowering.rank))

    def _linear(self, number: int, shape: Shape) -> Value:
        """The offset plus the point's index times the strides of a Position or Take."""
        parameters, builder = self._lowering.parameters, self._builder
        base = parameters.offsets[number]
        total: Value | None = None
        for axis, stride in enumerate(parameters.strides[number]):
            if isinstance(stride, int) and stride == 0:
                continue
            first = self.window.offsets[axis]
            base = self._plus(base, first if stride == 1 else builder.map("multiply", first, self._index(stride)))
            if self.window.shape[axis] == 1:
                continue
            flat = tuple(extent if k == axis else 1 for k, extent in enumerate(self.window.shape))
            term = builder.iota(flat, axis)
            if stride != 1:
                term = builder.map("multiply", term, builder.broadcast(self._index(stride), flat))
            term = builder.broadcast(term, shape)
            total = term if total is None else builder.map("add", total, term)
        start = builder.broadcast(self._lowering.zero if base is None else base, shape)
        return start if total is None else builder.map("add", total, start)

    def _index(self, number: Value | int) -> Value:
        return self._builder.index(number) if isinstance(number, int) else number

    def _plus(self, a: Value | None, b: Value) -> Value:
        return b if a is None else self._builder.map("add", a, b)

    def _take(self, number: int, positions: tuple[int, ...]) -> Value:
        builder, parameters = self._builder, self._lowering.parameters
        shape = self.shape_of(number)
        total = self._linear(number, shape)
        for position, stride in zip(positions, parameters.position_strides[number], strict=True):
            term = self.expanded(position, shape)
            if isinstance(stride, int) and stride == 0:
                continue
            if stride != 1:
                term = builder.map("multiply", term, builder.broadcast(self._index(stride), shape))
            total = builder.map("add", total, term)
        for axis, check in enumerate(self.window.checked):
            if check and shape[axis] > 1:
                inside = builder.broadcast(self.inside(axis), shape)
                total = builder.map("where", inside, total, builder.constant(dtypes.int64, 0, shape))
        return builder.gather(parameters.buffers[number], (total,), checked=False)

    def inside(self, axis: int) -> Value:
        """Which indices of the window along an axis are inside, as a boolean block that varies along that axis alone."""
        found = self._masks.get(axis)
        if found is None:
            builder, window = self._builder, self.window
            end = window.ends.get(axis)
            end = self._lowering.parameters.extents[axis] if end is None else end
            flat = tuple(extent if k == axis else 1 for k, extent in enumerate(window.shape))
            left = builder.map("subtract", end, window.offsets[axis])
            found = builder.map("less", builder.iota(flat, axis), builder.broadcast(left, flat))
            self._masks[axis] = found
        return found

    def _masked_axes(self) -> list[int]:
        return [
            axis
            for axis, row in enumerate(self._plan.axes)
            if row.reduced and self.window.checked[axis] and self.window.shape[axis] > 1
        ]

    def fold_shape(self, group: FoldGroup) -> Shape:
        """Shape of what is folded: the window's along reduced axes, and along the others if an operand varies."""
        varies = [self._lowering.analysis.varies[operand] for operand in group.operands]
        return tuple(
            extent if axis.reduced or any(row[number] for row in varies) else 1
            for number, (axis, extent) in enumerate(zip(self._plan.axes, self.window.shape, strict=True))
        )

    def fold_operands(self, group: FoldGroup) -> tuple[Value, ...]:
        """The operands of a fold; the identity stands for points that do not exist."""
        shape = self.fold_shape(group)
        numbers = identity_numbers(group.combiner, self._lowering.fold_dtypes(group))
        return tuple(
            self._padded(operand, shape, number) for operand, number in zip(group.operands, numbers, strict=True)
        )

    def _padded(self, operand: int, shape: Shape, number: int | float) -> Value:
        value = self.expanded(operand, shape)
        masked = self._masked_axes()
        varies = self._lowering.analysis.varies[operand]
        is_filled = operand in self._fills and all(varies[axis] for axis in masked)
        if not masked or is_filled:
            return value
        builder = self._builder
        dtype = value.block.dtype
        constant = builder.constant(dtype, bool(number) if dtype.kind == "boolean" else number, shape)
        for axis in masked:
            value = builder.map("where", builder.broadcast(self.inside(axis), shape), value, constant)
        return value

    def _running(self, number: int, statement: RunningFold) -> Value:
        """A running fold over the window, which goes on from the carry and changes it."""
        builder = self._builder
        shape = self.shape_of(number)
        (neutral,) = identity_numbers(statement.combiner, (statement.dtype,))
        value = self._padded(statement.operand, shape, neutral)
        axis = self._lowering.running_axis
        if shape[axis] == 1:
            scanned = total = value
        else:
            scanned, total = builder.scan(statement.combiner, (value,), axis)
        carry = self.carries.get(number)
        if carry is None:
            self.carries[number] = total
            return scanned
        (result,) = merge(builder, statement.combiner, (builder.broadcast(carry, shape),), (scanned,))
        (self.carries[number],) = merge(builder, statement.combiner, (carry,), (total,))
        return result

    def first_carry(self, number: int) -> Value:
        """What a running fold starts from: the identity, or the fold of the pieces before this program's."""
        lowering, builder = self._lowering, self._builder
        statement = self._plan.statements[number]
        if not isinstance(statement, RunningFold):
            raise TypeError(f"kernel {self._plan.name}: statement {number} is no running fold")
        last = lowering.running_axis
        shape = tuple(1 if axis == last else extent for axis, extent in enumerate(self.shape_of(number)))
        (neutral,) = identity_numbers(statement.combiner, (statement.dtype,))
        if statement.before is None:
            return identity(builder, statement.combiner, (statement.dtype,), shape)[0]
        # The first piece has none before it: it reads some entry, and drops it.
        piece = lowering.piece_numbers[last]
        previous = builder.map("maximum", builder.map("subtract", piece, builder.index(1)), lowering.zero)
        strides = statement.before.strides
        offsets = [
            previous if axis == last else self.window.offsets[axis] if strides[axis] else lowering.zero
            for axis in range(lowering.rank)
        ]
        checked = tuple(
            axis != last and self.window.checked[axis] and strides[axis] != 0 for axis in range(lowering.rank)
        )
        loaded = builder.load(lowering.parameters.before[number], offsets, shape, checked, neutral)
        is_first = builder.broadcast(builder.map("equal", piece, lowering.zero), shape)
        (start,) = identity(builder, statement.combiner, (statement.dtype,), shape)
        return builder.map("where", is_first, start, loaded)


def _fills(lowering: Lowering) -> dict[int, int | float | bool]:
    """Reads that go straight into folds, with the identity that may fill them where no element exists."""
    found: dict[int, set[int | float]] = {}
    for row in lowering.analysis.passes:
        for group in row.groups:
            numbers = identity_numbers(group.combiner, lowering.fold_dtypes(group))
            for operand, number in zip(group.operands, numbers, strict=True):
                if isinstance(lowering.plan.statements[operand], Read):
                    found.setdefault(operand, set()).add(number)
    return {
        read: bool(number) if lowering.dtype(read) is dtypes.boolean else number
        for read, numbers in found.items()
        if len(numbers) == 1
        for number in numbers
    }
