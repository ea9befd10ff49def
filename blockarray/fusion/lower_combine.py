"""Merging partial results of combiners as block IR, with the combiners' own definitions."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.kernel import Value
from codegen.scalar import function as scalar
from codegen.scalar.combiners import combiner
from codegen.scalar.function import CoreFunctions, Number, ScalarValue

Partial = tuple[Value, ...]


def _rows_by_opcode() -> Mapping[str, str]:
    tables = {
        "add": scalar.ADD,
        "subtract": scalar.SUBTRACT,
        "multiply": scalar.MULTIPLY,
        "divide": scalar.DIVIDE,
        "bitwise_and": scalar.AND,
        "bitwise_or": scalar.OR,
        "bitwise_xor": scalar.XOR,
        "less": scalar.LESS,
        "less_equal": scalar.LESS_EQUAL,
        "greater": scalar.GREATER,
        "greater_equal": scalar.GREATER_EQUAL,
        "equal": scalar.EQUAL,
        "not_equal": scalar.NOT_EQUAL,
    }
    rows = {opcode: row for row, opcodes in tables.items() for opcode in opcodes.values()}
    return MappingProxyType({**rows, "fneg": "negative"})


_ROW_OF_OPCODE = _rows_by_opcode()


class BlockValue(ScalarValue):
    """A block of the kernel that is being built, as a value of a definition."""

    __slots__ = ("_core", "value")

    def __init__(self, core: "BlockCore", value: Value) -> None:
        self._core = core
        self.value = value

    @property
    def core(self) -> "BlockCore":
        """The core that made it."""
        return self._core


class BlockCore(CoreFunctions):
    """Core functions that append operations to a builder; as far as combiners use them."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def dtype(self, value: ScalarValue) -> DType:
        return _value(value).block.dtype

    def constant_of(self, dtype: DType, like: ScalarValue, number: Number) -> BlockValue:
        return BlockValue(self, self._builder.constant(dtype, number, _value(like).block.shape))

    def where(self, condition: ScalarValue, a: ScalarValue, b: ScalarValue) -> BlockValue:
        return self.apply("where", condition, a, b)

    def apply(self, name: str, *values: ScalarValue) -> BlockValue:
        return BlockValue(self, self._builder.map(name, *(_value(value) for value in values)))

    def instruction(self, opcode: str, *values: ScalarValue) -> BlockValue:
        return self.apply(_ROW_OF_OPCODE[opcode], *values)

    def convert(self, value: ScalarValue, dtype: DType) -> BlockValue:
        return BlockValue(self, self._builder.cast(_value(value), dtype))

    def has(self, function: str) -> bool:
        return True

    def intrinsic(self, name: str, *values: ScalarValue) -> ScalarValue:
        raise TypeError(f"{name}: a combiner is built from rows of the scalar table, not from intrinsics")

    def bits(self, value: ScalarValue) -> ScalarValue:
        raise TypeError("bits: a combiner is built from rows of the scalar table; add one that does this")

    def from_bits(self, value: ScalarValue, dtype: DType) -> ScalarValue:
        raise TypeError("from_bits: a combiner is built from rows of the scalar table; add one that does this")

    def select_rare(self, condition: ScalarValue, slow: Callable[[], ScalarValue], fast: ScalarValue) -> ScalarValue:
        return self.where(condition, slow(), fast)

    def repeat_while(
        self,
        condition: Callable[..., ScalarValue],
        step: Callable[..., tuple[ScalarValue, ...]],
        state: tuple[ScalarValue, ...],
    ) -> tuple[ScalarValue, ...]:
        raise TypeError("repeat_while: a combiner is built from rows of the scalar table; add one that does this")


def _value(value: ScalarValue) -> Value:
    if not isinstance(value, BlockValue):
        raise TypeError(f"expected a block of the kernel that is built, found {type(value).__name__}")
    return value.value


def merge(builder: Builder, name: str, left: Sequence[Value], right: Sequence[Value]) -> Partial:
    """The combiner called `name` applied elementwise to two partial results of one shape."""
    core = BlockCore(builder)
    values = combiner(name).combine(
        core, tuple(BlockValue(core, value) for value in left), tuple(BlockValue(core, value) for value in right)
    )
    return tuple(_value(value) for value in values)


# Which comparison says that a later element does not take the place of an earlier one.
_BEATEN = MappingProxyType({"argmax": "less_equal", "argmin": "greater_equal"})


def gather(builder: Builder, name: str, partial: Sequence[Value], elements: Sequence[Value]) -> Partial:
    """The combiner called `name` applied to a partial result and elements behind it, all blocks of one shape."""
    row = combiner(name)
    if row.gather is None:
        raise TypeError(f"{name}: a combiner that takes single elements only")
    core = BlockCore(builder)
    parts = tuple(BlockValue(core, value) for value in partial)
    return tuple(_value(value) for value in row.gather(core, parts, [BlockValue(core, value) for value in elements]))


def merge_later(builder: Builder, name: str, left: Sequence[Value], right: Sequence[Value]) -> Partial:
    """`merge` of extremes and positions where all of `right` has greater positions than `left` stands for.

    Positions then need not be compared: an element that is met later wins only if it is better. `left` must start from the worst
    value at the position of the first element, as no element equal to the worst value wins against it.
    """
    core = BlockCore(builder)
    best, position = (BlockValue(core, value) for value in left)
    value, later_position = (BlockValue(core, value) for value in right)
    right_wins: ScalarValue = ~core.apply(_BEATEN[name], value, best)
    if core.dtype(best).kind == "float":
        # A NaN compares false: it is not beaten, and the first one stays.
        right_wins = right_wins & ~core.apply("isnan", best)
    return (
        _value(core.where(right_wins, value, best)),
        _value(core.where(right_wins, later_position, position)),
    )


def finds_positions(name: str) -> bool:
    """Whether `merge_later` knows the combiner."""
    return name in _BEATEN


def identity_numbers(name: str, dtypes: Sequence[DType]) -> tuple[Number, ...]:
    """The partial result that changes nothing, as numbers."""
    return combiner(name).identity(tuple(dtypes))


def identity(builder: Builder, name: str, dtypes: Sequence[DType], shape: tuple[int, ...]) -> Partial:
    """The partial result that changes nothing, as blocks."""
    numbers = identity_numbers(name, dtypes)
    return tuple(
        builder.constant(dtype, bool(number) if dtype.kind == "boolean" else number, shape)
        for dtype, number in zip(dtypes, numbers, strict=True)
    )
