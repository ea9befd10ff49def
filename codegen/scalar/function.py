"""What a scalar function is: its row, its lowerings, and the core functions that definitions are written with."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from codegen import dtypes
from codegen.dtypes import DType

Number = int | float

# One LLVM opcode per operand kind; shared by the operators of values and by the rows of the table.
ADD = {"float": "fadd", "signed": "add", "unsigned": "add"}
SUBTRACT = {"float": "fsub", "signed": "sub", "unsigned": "sub"}
MULTIPLY = {"float": "fmul", "signed": "mul", "unsigned": "mul"}
DIVIDE = {"float": "fdiv"}
AND = {"signed": "and", "unsigned": "and", "boolean": "and"}
OR = {"signed": "or", "unsigned": "or", "boolean": "or"}
XOR = {"signed": "xor", "unsigned": "xor", "boolean": "xor"}
SHIFT_LEFT = {"signed": "shl", "unsigned": "shl"}
SHIFT_RIGHT = {"signed": "ashr", "unsigned": "lshr"}
LESS = {"float": "fcmp olt", "signed": "icmp slt", "unsigned": "icmp ult", "boolean": "icmp ult"}
LESS_EQUAL = {"float": "fcmp ole", "signed": "icmp sle", "unsigned": "icmp ule", "boolean": "icmp ule"}
GREATER = {"float": "fcmp ogt", "signed": "icmp sgt", "unsigned": "icmp ugt", "boolean": "icmp ugt"}
GREATER_EQUAL = {"float": "fcmp oge", "signed": "icmp sge", "unsigned": "icmp uge", "boolean": "icmp uge"}
EQUAL = {"float": "fcmp oeq", "signed": "icmp eq", "unsigned": "icmp eq", "boolean": "icmp eq"}
NOT_EQUAL = {"float": "fcmp une", "signed": "icmp ne", "unsigned": "icmp ne", "boolean": "icmp ne"}


class ScalarValue(ABC):
    """A value that a definition computes with: a block of one dtype, held by some core.

    The operators are the machine's: integers wrap around, ``>>`` is arithmetic for signed and logical for unsigned
    values, comparisons give booleans. A shift by the width or more gives an unspecified value, which is harmless
    where a `where` drops it. A Python number beside a value becomes a constant of the value's dtype. A core
    subclasses this and provides `core`.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def core(self) -> "CoreFunctions":
        """The core functions that this value belongs to."""

    def _binary(self, opcodes: Mapping[str, str], symbol: str, other: "ScalarValue | Number") -> "ScalarValue":
        core = self.core
        right = other if isinstance(other, ScalarValue) else core.constant(self, other)
        dtype = core.dtype(self)
        if core.dtype(right) is not dtype:
            raise TypeError(
                f"`{symbol}`: the left operand is {dtype} and the right one {core.dtype(right)}; "
                "operands have one dtype, convert one of them first"
            )
        return core.instruction(_opcode(opcodes, symbol, dtype), self, right)

    def _reversed(self, opcodes: Mapping[str, str], symbol: str, other: Number) -> "ScalarValue":
        return self.core.constant(self, other)._binary(opcodes, symbol, self)

    def __add__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(ADD, "+", other)

    def __radd__(self, other: Number) -> "ScalarValue":
        return self._reversed(ADD, "+", other)

    def __sub__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(SUBTRACT, "-", other)

    def __rsub__(self, other: Number) -> "ScalarValue":
        return self._reversed(SUBTRACT, "-", other)

    def __mul__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(MULTIPLY, "*", other)

    def __rmul__(self, other: Number) -> "ScalarValue":
        return self._reversed(MULTIPLY, "*", other)

    def __truediv__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(DIVIDE, "/", other)

    def __rtruediv__(self, other: Number) -> "ScalarValue":
        return self._reversed(DIVIDE, "/", other)

    def __and__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(AND, "&", other)

    def __or__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(OR, "|", other)

    def __xor__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(XOR, "^", other)

    def __lshift__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(SHIFT_LEFT, "<<", other)

    def __rshift__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(SHIFT_RIGHT, ">>", other)

    def __lt__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(LESS, "<", other)

    def __le__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(LESS_EQUAL, "<=", other)

    def __gt__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(GREATER, ">", other)

    def __ge__(self, other: "ScalarValue | Number") -> "ScalarValue":
        return self._binary(GREATER_EQUAL, ">=", other)

    def __eq__(self, other: "ScalarValue | Number") -> "ScalarValue":  # type: ignore[override]
        return self._binary(EQUAL, "==", other)

    def __ne__(self, other: "ScalarValue | Number") -> "ScalarValue":  # type: ignore[override]
        return self._binary(NOT_EQUAL, "!=", other)

    __hash__ = object.__hash__

    def __neg__(self) -> "ScalarValue":
        if self.core.dtype(self).kind == "float":
            return self.core.instruction("fneg", self)
        return self._reversed(SUBTRACT, "unary -", 0)

    def __invert__(self) -> "ScalarValue":
        all_ones = {"boolean": 1, "signed": -1}
        dtype = self.core.dtype(self)
        return self ^ all_ones.get(dtype.kind, 2**dtype.bits - 1)

    def __bool__(self) -> bool:
        raise TypeError(
            "a value of a scalar definition has no truth value: it stands for many elements; "
            "expected core.where(condition, a, b) instead of `if`, `and`, `or`, `not`"
        )


def _opcode(opcodes: Mapping[str, str], symbol: str, dtype: DType) -> str:
    if dtype.is_half or dtype.kind not in opcodes:
        raise TypeError(f"`{symbol}` is not defined on values of dtype {dtype}; it takes {', '.join(opcodes)} values")
    return opcodes[dtype.kind]


class CoreFunctions(ABC):
    """What definitions are written with; one implementation computes with NumPy arrays, one emits LLVM registers.

    Both give the same bits: no contraction, no library calls, round to nearest even, subnormals kept. Multiply-adds are
    fused where a definition says so and the target has them.

    Attributes
    ----------
    target : str
        Kind of the target that is emitted for (``"cpu"``, ``"nvptx"``); ``""`` where there is none. Selects a row's
        `on_target` lowering.
    """

    target: str = ""

    @abstractmethod
    def dtype(self, value: ScalarValue) -> DType:
        """The dtype of a value."""

    @abstractmethod
    def constant_of(self, dtype: DType, like: ScalarValue, number: Number) -> ScalarValue:
        """A constant of `dtype` with the block shape of `like`. `number` is rounded to dtype; integers are in range."""

    def constant(self, like: ScalarValue, number: Number) -> ScalarValue:
        """A constant with dtype and block shape of `like`."""
        return self.constant_of(self.dtype(like), like, number)

    @abstractmethod
    def where(self, condition: ScalarValue, a: ScalarValue, b: ScalarValue) -> ScalarValue:
        """`a` where the boolean `condition` holds, else `b`; any dtype, halves too."""

    @abstractmethod
    def apply(self, name: str, *values: ScalarValue) -> ScalarValue:
        """Apply another row of the table; `codegen.scalar.application.apply` does the work in every core."""

    @abstractmethod
    def instruction(self, opcode: str, *values: ScalarValue) -> ScalarValue:
        """One LLVM instruction (``"fadd"``, ``"icmp slt"``, ``"fcmp olt"`` …); comparisons give booleans."""

    @abstractmethod
    def intrinsic(self, name: str, *values: ScalarValue) -> ScalarValue:
        """Call LLVM's intrinsic with this base name on values of one dtype; the result has that dtype."""

    def multiply_add(self, a: ScalarValue, b: ScalarValue | Number, c: ScalarValue | Number) -> ScalarValue:
        """``a * b + c`` of floats: rounded once if the target ``has("fma")``, else twice."""
        right = b if isinstance(b, ScalarValue) else self.constant(a, b)
        added = c if isinstance(c, ScalarValue) else self.constant(a, c)
        if self.has("fma"):
            return self.intrinsic("llvm.fma", a, right, added)
        return a * right + added

    @abstractmethod
    def convert(self, value: ScalarValue, dtype: DType) -> ScalarValue:
        """Raw conversion; what is out of range gives an unspecified value, which is harmless where a `where` drops it.

        Integers extend by their own sign or truncate; integer <-> float; float <-> float round to nearest even;
        boolean -> 0 or 1; number -> boolean is ``!= 0``. float16 only if ``has("half_conversion")``; bfloat16 never.
        """

    @abstractmethod
    def bits(self, value: ScalarValue) -> ScalarValue:
        """The bit pattern of a float as an unsigned integer of its width; an integer as the unsigned of its width."""

    @abstractmethod
    def from_bits(self, value: ScalarValue, dtype: DType) -> ScalarValue:
        """Reinterpret an integer as `dtype` (float or integer) of the same width."""

    @abstractmethod
    def has(self, function: str) -> bool:
        """Whether the target lowers this primitive by itself (row names, ``"half_conversion"``, ``"fma"``)."""

    @abstractmethod
    def select_rare(self, condition: ScalarValue, slow: Callable[[], ScalarValue], fast: ScalarValue) -> ScalarValue:
        """``where(condition, slow(), fast)``, but `slow` is computed only if `condition` holds anywhere."""

    @abstractmethod
    def repeat_while(
        self,
        condition: Callable[..., ScalarValue],
        step: Callable[..., tuple[ScalarValue, ...]],
        state: tuple[ScalarValue, ...],
    ) -> tuple[ScalarValue, ...]:
        """``while any(condition(*state)): state = step(*state)``.

        `step` also runs on elements whose own condition no longer holds (the others are not done), so it must leave
        those as they are. `condition` gives a boolean value; `step` keeps number, dtypes and shapes of the state.
        """


DefinitionFunction = Callable[..., ScalarValue]


@dataclass(frozen=True)
class Definition:
    """Lowering by a Python function ``f(core, *values)`` over core functions and operators."""

    function: DefinitionFunction


@dataclass(frozen=True)
class Instruction:
    """Lowering to one LLVM opcode (``"fadd"``, ``"icmp slt"``)."""

    opcode: str


@dataclass(frozen=True)
class Intrinsic:
    """Lowering to LLVM's intrinsic `name` (base name, without type suffix), on values of one dtype.

    `otherwise` takes its place where the target does not have the row's name among its functions.
    """

    name: str
    otherwise: Definition | None = None


Primitive = Instruction | Intrinsic | Definition


@dataclass(frozen=True)
class Lowering:
    """One primitive per kind of operand; None where the function does not take that kind."""

    float: Primitive | None = None
    signed: Primitive | None = None
    unsigned: Primitive | None = None
    boolean: Primitive | None = None

    def for_kind(self, kind: str) -> Primitive | None:
        """The primitive for operands of this kind."""
        by_kind = {"float": self.float, "signed": self.signed, "unsigned": self.unsigned, "boolean": self.boolean}
        return by_kind[kind]


def opcodes(by_kind: Mapping[str, str], boolean: str | None = None) -> Lowering:
    """A lowering to one instruction for each kind that has an opcode; `boolean` adds the one for booleans."""
    instructions = {kind: Instruction(opcode) for kind, opcode in by_kind.items()}
    if boolean is not None:
        instructions["boolean"] = Instruction(boolean)
    return Lowering(**instructions)


def definitions(
    float: DefinitionFunction | None = None,
    integer: DefinitionFunction | None = None,
    signed: DefinitionFunction | None = None,
    unsigned: DefinitionFunction | None = None,
    boolean: DefinitionFunction | None = None,
) -> Lowering:
    """A lowering to definitions; `integer` stands for signed and unsigned."""
    by_kind = {"float": float, "signed": signed or integer, "unsigned": unsigned or integer, "boolean": boolean}
    return Lowering(**{kind: Definition(function) for kind, function in by_kind.items() if function is not None})


class Algebra(Enum):
    """A law that a function obeys (up to rounding, for floats)."""

    COMMUTATIVE = "commutative"
    ASSOCIATIVE = "associative"
    IDEMPOTENT = "idempotent"


@dataclass(frozen=True)
class Interval:
    """The operands for which a function has a finite or otherwise ordinary result; guides the choice of test values."""

    low: float = -math.inf
    high: float = math.inf


REALS = Interval()
POSITIVE = Interval(low=0.0)
UNIT = Interval(-1.0, 1.0)

ResultRule = Callable[[tuple[DType, ...]], DType]
IdentityRule = Callable[[DType], Number]


def same(operands: tuple[DType, ...]) -> DType:
    """The result has the operands' dtype (the first one's, if they differ)."""
    return operands[0]


def last(operands: tuple[DType, ...]) -> DType:
    """The result has the last operand's dtype."""
    return operands[-1]


def boolean(_operands: tuple[DType, ...]) -> DType:
    """The result is a boolean."""
    return dtypes.boolean


def lowest(dtype: DType) -> Number:
    """The number below or equal to all of a dtype: -inf for floats."""
    if dtype.kind == "float":
        return -math.inf
    return -(2 ** (dtype.bits - 1)) if dtype.kind == "signed" else 0


def highest(dtype: DType) -> Number:
    """The number above or equal to all of a dtype: inf for floats."""
    if dtype.kind == "float":
        return math.inf
    if dtype.kind == "boolean":
        return 1
    return 2 ** (dtype.bits - 1) - 1 if dtype.kind == "signed" else 2**dtype.bits - 1


@dataclass(frozen=True)
class ScalarFunction:
    """One row of the table: everything the project knows about one scalar function.

    Attributes
    ----------
    name : str
        NumPy's name of it, or a name of our own for internal primitives.
    arity : int
    lowering : Lowering
    summary : str
        One line for the documentation.
    result : callable
        The result's dtype from the operands' (`same`, `boolean`, …).
    half : {"widen", "bits"}
        float16 and bfloat16 operands are widened to float32 and the result is rounded back, or the lowering works on
        bit patterns and takes them as they are.
    identity : callable, optional
        Neutral element of a reduction, by dtype.
    algebra : frozenset of Algebra
    domain : Interval
    max_ulp : float or mapping from dtype name
        Largest error of float results in units in the last place; 0 is exact (correctly rounded, NaN and signs too).
    expensive : float
        Rough cost in additions.
    numpy_name : str, optional
        The ufunc with the same meaning; None for internal rows.
    on_target : mapping
        Lowerings that replace `lowering` on a kind of target, held to the same `max_ulp`.
    contracts : bool
        Products and sums inside the definition may become fused multiply-adds on a target that has them at full speed (a
        GPU): other bits than the definition's NumPy run, within `max_ulp`.
    """

    name: str
    arity: int
    lowering: Lowering
    summary: str
    result: ResultRule = same
    half: Literal["widen", "bits"] = "widen"
    identity: IdentityRule | None = None
    algebra: frozenset[Algebra] = frozenset()
    domain: Interval = REALS
    max_ulp: float | Mapping[str, float] = 0.0
    expensive: float = 1.0
    numpy_name: str | None = None
    on_target: Mapping[str, Lowering] = field(default_factory=dict)
    contracts: bool = False

    def __repr__(self) -> str:
        return f"ScalarFunction({self.name})"

    def lowering_for(self, dtype: DType, target: str = "") -> Primitive | None:
        """What the function becomes on operands of `dtype`; None if it does not take them.

        Rows with half="widen" answer for float16 and bfloat16 what they answer for float32: the operands are widened.
        """
        special = self.on_target.get(target)
        found = special.for_kind(dtype.kind) if special is not None else None
        return found if found is not None else self.lowering.for_kind(dtype.kind)

    def takes(self, dtype: DType) -> bool:
        """Whether the function is defined on operands of `dtype`."""
        return self.lowering.for_kind(dtype.kind) is not None

    def result_dtype(self, *operands: DType) -> DType:
        """The result's dtype for operands of these dtypes; TypeError if there is none."""
        if len(operands) != self.arity:
            raise TypeError(f"{self.name}: {len(operands)} operands given, expected {self.arity}")
        deciding = self.deciding_operand(operands)
        if not self.takes(deciding):
            kinds = [kind for kind in ("boolean", "signed", "unsigned", "float") if self.lowering.for_kind(kind)]
            raise TypeError(
                f"{self.name}: not defined on operands of dtype {deciding}; expected {' or '.join(kinds)} values, "
                "convert the operands first"
            )
        return self.result(operands)

    def deciding_operand(self, operands: tuple[DType, ...]) -> DType:
        """The operand dtype that selects the lowering: the first, or for `where` the second."""
        return operands[1] if self.name == "where" else operands[0]

    def is_a(self, law: Algebra) -> bool:
        """Whether the function obeys a law."""
        return law in self.algebra

    def identity_for(self, dtype: DType) -> Number | None:
        """Neutral element of a reduction over `dtype`, or None."""
        return None if self.identity is None else self.identity(dtype)

    def ulp_bound(self, dtype: DType) -> float:
        """Largest error of a result of this float dtype.

        A half is a float32 result rounded once more: half a unit, and what the float32 error adds to that.
        """
        if dtype.is_half:
            bound = self.ulp_bound(dtypes.float32)
            return 0.5 + bound * 2.0**-12 if bound else 0.0
        return self.max_ulp if isinstance(self.max_ulp, (int, float)) else self.max_ulp[dtype.name]
