"""Small algebraic rules, each stated as ``before -> after``. None changes a bit of a result; payloads of NaN aside."""

import math
from collections.abc import Callable, Mapping, Sequence

from codegen.dtypes import DType
from codegen.ir.kernel import Kernel, Value
from codegen.ir.operations import Broadcast, Cast, Constant, For, If, Map, Operation, Reduce, Reshape, Scan
from codegen.ir.rewriter import Rewriter, rewrite
from codegen.ir.types import INDEX

Number = bool | int | float
Result = Value | None


def canonicalize(kernel: Kernel) -> Kernel:
    """The kernel after all rules, from its first operation to its last."""
    return rewrite(kernel, canonical)


def canonical(rewriter: Rewriter, operation: Operation) -> Sequence[Value] | None:
    """What takes the place of an operation by one of the rules; None if none applies."""
    if isinstance(operation, Map):
        for rule in RULES_OF_MAPS.get(operation.function, ()):
            found = rule(rewriter, operation)
            if found is not None:
                return (found,)
        return None
    simplify = RULES.get(type(operation))
    return None if simplify is None else simplify(rewriter, operation)


def constant_of(rewriter: Rewriter, value: Value) -> Number | None:
    """The number that fills a block, if it is known when compiled."""
    definition = rewriter.definition(value)
    while isinstance(definition, (Broadcast, Reshape)):
        definition = rewriter.definition(definition.operands[0])
    return definition.number if isinstance(definition, Constant) else None


def _is(rewriter: Rewriter, value: Value, number: float) -> bool:
    """Whether a value is filled with `number`, the sign of zero included."""
    found = constant_of(rewriter, value)
    if found is None or found != number:
        return False
    return value.block.dtype.kind != "float" or math.copysign(1.0, found) == math.copysign(1.0, number)


def drop_neutral_right(rewriter: Rewriter, operation: Map) -> Result:
    """``x + -0.0 -> x``, ``x - 0.0 -> x``, ``x * 1 -> x``, ``x / 1 -> x``; of integers also ``x + 0``, ``x | 0`` …"""
    value, other = operation.operands
    neutral = _neutral_right(operation.function, value.block.dtype)
    if neutral is None or other.type != value.type or value.type != operation.result.type:
        return None
    return value if _is(rewriter, other, neutral) else None


def drop_neutral_left(rewriter: Rewriter, operation: Map) -> Result:
    """``-0.0 + x -> x``, ``1 * x -> x``; of integers also ``0 + x``, ``0 | x`` …"""
    other, value = operation.operands
    neutral = _neutral_right(operation.function, value.block.dtype)
    if neutral is None or other.type != value.type or value.type != operation.result.type:
        return None
    return value if _is(rewriter, other, neutral) else None


def _neutral_right(function: str, dtype: DType) -> Number | None:
    if dtype.kind == "float":
        return {"add": -0.0, "subtract": 0.0, "multiply": 1.0, "divide": 1.0}.get(function)
    if function in ("add", "subtract", "bitwise_or", "bitwise_xor", "logical_or", "left_shift", "right_shift"):
        return 0
    if function == "multiply":
        return 1
    if function == "bitwise_and":
        return {"signed": -1, "boolean": 1}.get(dtype.kind, 2**dtype.bits - 1)
    return 1 if function == "logical_and" else None


def annihilate(rewriter: Rewriter, operation: Map) -> Result:
    """``x * 0 -> 0``, ``0 * x -> 0`` and the same of ``and``, for integers and booleans."""
    if operation.result.block.dtype.kind == "float" or operation.operands[0].type != operation.result.type:
        return None
    for operand in operation.operands:
        if _is(rewriter, operand, 0):
            return operand
    return None


def cancel(rewriter: Rewriter, operation: Map) -> Result:
    """``x - x -> 0`` for integers."""
    value, other = operation.operands
    if value is not other or value.block.dtype.kind == "float":
        return None
    return rewriter.constant(value.block.dtype, 0, value.block.shape)


def choose_between_same(rewriter: Rewriter, operation: Map) -> Result:
    """``maximum(x, x) -> x`` and the like."""
    value, other = operation.operands
    return value if value is other and value.type == operation.result.type else None


def drop_identity(rewriter: Rewriter, operation: Map) -> Result:
    """``+x -> x`` and ``conjugate(x) -> x``."""
    (value,) = operation.operands
    return value


def same_choice(rewriter: Rewriter, operation: Map) -> Result:
    """``where(c, x, x) -> x``, ``where(true, x, y) -> x``, ``where(false, x, y) -> y``."""
    condition, first, second = operation.operands
    known = constant_of(rewriter, condition)
    if first is second or known:
        return first
    return second if known is not None else None


def double_negation(rewriter: Rewriter, operation: Map) -> Result:
    """``-(-x) -> x``, ``~~x -> x``, and ``not not x -> x`` for booleans."""
    (value,) = operation.operands
    inner = rewriter.definition(value)
    if not isinstance(inner, Map) or inner.function != operation.function:
        return None
    (original,) = inner.operands
    return original if original.type == operation.result.type else None


def fold_index(rewriter: Rewriter, operation: Map) -> Result:
    """``2 * 3 -> 6`` for int64 scalars."""
    if operation.result.type != INDEX:
        return None
    numbers = [constant_of(rewriter, operand) for operand in operation.operands]
    if not all(type(number) is int for number in numbers):
        return None
    number = _INDEX_FUNCTIONS[operation.function](*numbers)
    return rewriter.constant(INDEX.dtype, (number + 2**63) % 2**64 - 2**63)


_INDEX_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "minimum": min,
    "maximum": max,
}


def _broadcast(rewriter: Rewriter, operation: Operation) -> Sequence[Value] | None:
    """``broadcast(broadcast(x)) -> broadcast(x)``, ``broadcast(constant) -> constant``, ``broadcast(x) to its shape -> x``."""
    (value,) = operation.operands
    shape = operation.result.block.shape
    if value.block.shape == shape:
        return (value,)
    inner = rewriter.definition(value)
    if isinstance(inner, Constant):
        return (rewriter.constant(inner.dtype, inner.number, shape, operation.result.name),)
    return (rewriter.broadcast(inner.operands[0], shape),) if isinstance(inner, Broadcast) else None


def _reshape(rewriter: Rewriter, operation: Operation) -> Sequence[Value] | None:
    """``reshape(reshape(x)) -> reshape(x)``, ``reshape(constant) -> constant``, ``reshape(x) to its shape -> x``."""
    (value,) = operation.operands
    shape = operation.result.block.shape
    if value.block.shape == shape:
        return (value,)
    inner = rewriter.definition(value)
    if isinstance(inner, Constant):
        return (rewriter.constant(inner.dtype, inner.number, shape, operation.result.name),)
    return (rewriter.reshape(inner.operands[0], shape),) if isinstance(inner, Reshape) else None


def _cast(rewriter: Rewriter, operation: Operation) -> Sequence[Value] | None:
    """``cast(x) to its dtype -> x``; ``cast(cast(x)) -> cast(x)`` if the inner one loses nothing; there and back -> x."""
    (value,) = operation.operands
    dtype = operation.result.block.dtype
    if value.block.dtype is dtype:
        return (value,)
    inner = rewriter.definition(value)
    if not isinstance(inner, Cast):
        return None
    (original,) = inner.operands
    if not _holds_all(value.block.dtype, original.block.dtype):
        return None
    if original.block.dtype is dtype:
        return (original,)
    # What becomes of a float that an integer cannot hold depends on the float's width.
    if dtype.kind in ("signed", "unsigned") and "float" in (value.block.dtype.kind, original.block.dtype.kind):
        return None
    return (rewriter.cast(original, dtype, operation.result.name),)


def _holds_all(wide: DType, narrow: DType) -> bool:
    """Whether every number of `narrow` is one of `wide`."""
    if narrow.kind == "boolean":
        return True
    if wide.kind == "float":
        if narrow.kind == "float":
            return wide.bits > narrow.bits
        return _INTEGER_BITS[wide.name] >= narrow.bits
    if wide.kind == narrow.kind:
        return wide.bits > narrow.bits
    return wide.kind == "signed" and narrow.kind == "unsigned" and wide.bits > narrow.bits


# Widest unsigned integer whose numbers are all numbers of the float.
_INTEGER_BITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}


def _fold(rewriter: Rewriter, operation: Operation) -> Sequence[Value] | None:
    """``reduce(x) along an axis of extent 1 -> x``; the same of scans, whose total is x too."""
    if not isinstance(operation, (Reduce, Scan)) or operation.operands[0].block.shape[operation.axis] != 1:
        return None
    return operation.operands if isinstance(operation, Reduce) else operation.operands * 2


def _branch(rewriter: Rewriter, operation: Operation) -> Sequence[Value] | None:
    """``if true: a else: b -> a``."""
    known = constant_of(rewriter, operation.operands[0])
    if known is None:
        return None
    return rewriter.inline(operation.bodies[0 if known else 1])


def _loop(rewriter: Rewriter, operation: Operation) -> Sequence[Value] | None:
    """``for i in range(5, 5): … -> `` the initial values."""
    begin, end, *carried = operation.operands
    first, last = constant_of(rewriter, begin), constant_of(rewriter, end)
    return carried if first is not None and last is not None and first >= last else None


RULES: Mapping[type[Operation], Callable[[Rewriter, Operation], Sequence[Value] | None]] = {
    Broadcast: _broadcast,
    Reshape: _reshape,
    Cast: _cast,
    Reduce: _fold,
    Scan: _fold,
    If: _branch,
    For: _loop,
}
_NEUTRAL = (drop_neutral_right, drop_neutral_left)
RULES_OF_MAPS: Mapping[str, tuple[Callable[[Rewriter, Map], Result], ...]] = {
    "add": (fold_index, *_NEUTRAL),
    "subtract": (fold_index, drop_neutral_right, cancel),
    "multiply": (fold_index, *_NEUTRAL, annihilate),
    "divide": (drop_neutral_right,),
    "minimum": (fold_index, choose_between_same),
    "maximum": (fold_index, choose_between_same),
    "fmin": (choose_between_same,),
    "fmax": (choose_between_same,),
    "bitwise_or": (*_NEUTRAL, choose_between_same),
    "bitwise_xor": _NEUTRAL,
    "bitwise_and": (*_NEUTRAL, annihilate, choose_between_same),
    "logical_or": (*_NEUTRAL, choose_between_same),
    "logical_and": (*_NEUTRAL, annihilate, choose_between_same),
    "left_shift": (drop_neutral_right,),
    "right_shift": (drop_neutral_right,),
    "positive": (drop_identity,),
    "conjugate": (drop_identity,),
    "where": (same_choice,),
    "negative": (double_negation,),
    "invert": (double_negation,),
    "logical_not": (double_negation,),
}
