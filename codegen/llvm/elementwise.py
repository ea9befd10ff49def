"""Operations without memory or order: constants, casts, maps, changes of shape."""

from codegen import dtypes
from codegen.ir.operations import Broadcast, Cast, Constant, Iota, Map, ProgramIndex, Reshape
from codegen.llvm import spelling
from codegen.llvm.context import EmissionContext
from codegen.llvm.core import Register
from codegen.llvm.fragments import Distribution
from codegen.llvm.index import add
from codegen.llvm.memory import move_through_memory


def emit_constant(context: EmissionContext, operation: Constant) -> None:
    """One literal for all registers."""
    distribution = context.distribution(operation.shape)
    literal = spelling.literal(operation.dtype, operation.number, distribution.width)
    context.define(operation.result, [literal] * distribution.registers)
    if not operation.shape and operation.dtype is dtypes.int64:
        context.facts.state(operation.result, abs(int(operation.number)), operation.number >= 0)


def emit_program_index(context: EmissionContext, operation: ProgramIndex) -> None:
    """The program's number along a grid axis."""
    context.define(operation.result, [context.programs[operation.axis]])
    context.facts.state(operation.result, 1, from_zero=True)


def emit_iota(context: EmissionContext, operation: Iota) -> None:
    """Element numbers along an axis."""
    distribution = context.distribution(operation.shape)
    split = distribution.axes[operation.axis]
    coordinates = distribution.coordinates()
    is_last = operation.axis == len(operation.shape) - 1
    lane = context.hooks.lane_start(context, split) if split.lanes > 1 else 0

    def make(number: int) -> str:
        first = split.first(coordinates[number][operation.axis])
        if distribution.width == 1:
            return str(add(context.writer, lane, first))
        if is_last:
            return spelling.sequence(first, distribution.width)
        return spelling.splat("i64", str(first), distribution.width)

    context.define_lazily(operation.result, (), make)


def emit_map(context: EmissionContext, operation: Map) -> None:
    """A row of the scalar table."""
    result = operation.result
    fragments = [context.fragment(operand) for operand in operation.operands]
    width = context.distribution(result.block.shape).width
    kinds = [operand.block.dtype for operand in operation.operands]

    def make(number: int) -> str:
        registers = [
            Register(context.core, fragment.register(number), dtype, width)
            for fragment, dtype in zip(fragments, kinds, strict=True)
        ]
        return _name(context.core.apply(operation.function, *registers))

    context.define_lazily(result, operation.operands, make)
    if not result.block.shape and result.block.dtype is dtypes.int64:
        context.facts.derive(operation.function, operation.operands, result)


def emit_cast(context: EmissionContext, operation: Cast) -> None:
    """A change of dtype."""
    (value,) = operation.operands
    fragment = context.fragment(value)
    width = fragment.distribution.width

    def make(number: int) -> str:
        register = Register(context.core, fragment.register(number), value.block.dtype, width)
        return _name(context.core.cast(register, operation.dtype))

    context.define_lazily(operation.result, operation.operands, make)


def emit_broadcast(context: EmissionContext, operation: Broadcast) -> None:
    """A block repeated along axes of extent 1: registers are shared, narrow ones are widened."""
    (value,) = operation.operands
    fragment = context.fragment(value)
    source = fragment.distribution
    target = context.distribution(operation.shape)
    coordinates = target.coordinates()
    element = spelling.element_type(value.block.dtype)
    widened: dict[int, str] = {}

    def make(number: int) -> str:
        origin = source.number(coordinates[number]) if value.block.shape else 0
        if source.width == target.width:
            return fragment.register(origin)
        if origin not in widened:
            widened[origin] = context.splat(element, fragment.register(origin), target.width)
        return widened[origin]

    context.define_lazily(operation.result, operation.operands, make)


def emit_reshape(context: EmissionContext, operation: Reshape) -> None:
    """Unit axes come and go. Elements stay in their registers where the layout allows it."""
    (value,) = operation.operands
    fragment = context.fragment(value)
    source, target = fragment.distribution, context.distribution(operation.shape)
    if _same_places(source, target):
        context.define_lazily(operation.result, operation.operands, fragment.register)
        return
    move_through_memory(context, value, operation.result)


def _same_places(source: Distribution, target: Distribution) -> bool:
    """Whether register n of each lane holds the same elements in both distributions."""
    first = [axis for axis in source.axes if axis.extent > 1]
    second = [axis for axis in target.axes if axis.extent > 1]
    return first == second


def _name(value: object) -> str:
    if not isinstance(value, Register):
        raise TypeError(f"a definition returned {type(value).__name__}, expected a register")
    return value.name
