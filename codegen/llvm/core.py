"""The core functions of scalar definitions, emitted as LLVM instructions on registers."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from codegen import dtypes
from codegen.dtypes import DType
from codegen.llvm import spelling
from codegen.llvm.writer import FunctionWriter
from codegen.scalar import application, casts
from codegen.scalar.function import CoreFunctions, Definition, Intrinsic, Number, ScalarValue
from codegen.scalar.table import function

if TYPE_CHECKING:
    from codegen.llvm.functions import EmittedFunction, Functions

# Intrinsics with a flag behind their operands: "is the special input undefined?" No, never.
_FLAGS = {"llvm.abs": ", i1 false", "llvm.ctlz": ", i1 false", "llvm.cttz": ", i1 false"}
_FLAG_TYPES = {"llvm.abs": ", i1", "llvm.ctlz": ", i1", "llvm.cttz": ", i1"}


class BranchInWideRegisterError(Exception):
    """A definition has a slow path or a loop, which does not go with registers that the machine holds in several.

    The slow path would be as many times as long. The definition is applied to pieces instead.
    """


class Register(ScalarValue):
    """One register: a scalar, or a vector of elements of a block."""

    __slots__ = ("_core", "name", "dtype", "width")

    def __init__(self, core: "RegisterCore", name: str, dtype: DType, width: int) -> None:
        self._core = core
        self.name = name
        self.dtype = dtype
        self.width = width
        core.registers[name] = self

    @property
    def core(self) -> "RegisterCore":
        """The core that emitted this register."""
        return self._core

    @property
    def type(self) -> str:
        """LLVM's type of the register."""
        return spelling.register_type(self.dtype, self.width)

    @property
    def typed(self) -> str:
        """Type and name, as operands are written."""
        return f"{spelling.register_type(self.dtype, self.width)} {self.name}"


_CONTRACTED = frozenset(("fadd", "fsub", "fmul"))


class RegisterCore(CoreFunctions):
    """Emits into one function. Rows with a definition become functions of their own, which LLVM inlines.

    So a definition's Python code runs once per kernel and register type, not once per register. A slow path becomes a
    function that is not inlined: there would be a copy of it for each register.

    Attributes
    ----------
    writer : FunctionWriter
        What is emitted into at the moment.
    registers : dict
        By name, all registers so far.
    contracts : bool
        Whether LLVM may turn products and sums into fused multiply-adds (see `ScalarFunction.contracts`).
    """

    def __init__(
        self, writer: FunctionWriter, functions: "Functions", may_branch: bool = True, contracts: bool = False
    ) -> None:
        self.writer = writer
        self.contracts = contracts
        self._may_branch = may_branch
        self.functions = functions
        self.target = functions.target.kind
        self.registers: dict[str, Register] = {}

    def dtype(self, value: ScalarValue) -> DType:
        """The dtype of a register."""
        return _register(value).dtype

    def constant_of(self, dtype: DType, like: ScalarValue, number: Number) -> Register:
        """A constant of `dtype`, as wide as `like`."""
        width = _register(like).width
        return Register(self, spelling.literal(dtype, number, width), dtype, width)

    def where(self, condition: ScalarValue, a: ScalarValue, b: ScalarValue) -> Register:
        """A select."""
        chosen, left, right = _register(condition), _register(a), _register(b)
        name = self.writer.value(f"select {chosen.typed}, {left.typed}, {right.typed}")
        return Register(self, name, left.dtype, left.width)

    def apply(self, name: str, *values: ScalarValue) -> ScalarValue:
        """Another row: in place if it is one instruction, else a call of the function that holds its definition."""
        registers = tuple(_register(value) for value in values)
        if not self._is_defined(name, registers):
            return application.apply(self, name, *registers)
        return self._call(name, registers, lambda core, *inner: application.apply(core, name, *inner))

    def cast(self, value: ScalarValue, dtype: DType) -> ScalarValue:
        """`value` as NumPy's astype would give it."""
        register = _register(value)
        if register.dtype is dtype:
            return register
        if not (register.dtype.kind == "float" or dtype.is_half):
            return casts.cast(self, register, dtype)
        return self._call(f"cast.{dtype.name}", (register,), lambda core, inner: casts.cast(core, inner, dtype))

    def _is_defined(self, name: str, registers: tuple[Register, ...]) -> bool:
        row = function(name)
        if row.half == "widen" and any(register.dtype.is_half for register in registers):
            return True
        deciding = row.deciding_operand(tuple(register.dtype for register in registers))
        primitive = row.lowering_for(deciding, self.target)
        if isinstance(primitive, Intrinsic):
            return primitive.otherwise is not None and not self.has(name)
        return isinstance(primitive, Definition)

    def _call(self, label: str, registers: tuple[Register, ...], body: Callable[..., ScalarValue]) -> Register:
        width, native = registers[0].width, self._native_width(registers)
        if width <= native:
            return self._call_once(self.functions.get(label, registers, body), registers)
        try:
            return self._call_once(self.functions.get(label, registers, body, may_branch=False), registers)
        except BranchInWideRegisterError:
            pieces = []
            for first in range(0, width, native):
                part = tuple(self.piece(register, first, native) for register in registers)
                pieces.append(self._call_once(self.functions.get(label, part, body), part))
            return self._joined(pieces)

    def _call_once(self, definition: "EmittedFunction", registers: tuple[Register, ...]) -> Register:
        operands = ", ".join(register.typed for register in registers)
        result = spelling.register_type(definition.dtype, definition.width)
        name = self.writer.value(f"call {result} {definition.name}({operands})")
        return Register(self, name, definition.dtype, definition.width)

    def _native_width(self, registers: tuple[Register, ...]) -> int:
        """Elements of the operands that one machine register holds."""
        widest = max(register.dtype.bits for register in registers)
        return max(1, self.functions.target.register_bits // widest)

    def piece(self, register: Register, first: int, width: int) -> Register:
        """`width` neighbouring elements of a register."""
        if width == 1:
            name = self.writer.value(f"extractelement {register.typed}, i64 {first}")
        else:
            mask = spelling.shuffle_mask(list(range(first, first + width)))
            name = self.writer.value(f"shufflevector {register.typed}, {register.type} poison, {mask}")
        return Register(self, name, register.dtype, width)

    def _joined(self, pieces: list[Register]) -> Register:
        """Registers of one width as a wider one."""
        while len(pieces) > 1:
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            pieces = [self._pair(left, right) for left, right in pairs]
        return pieces[0]

    def _pair(self, left: Register, right: Register) -> Register:
        width = 2 * left.width
        mask = spelling.shuffle_mask(list(range(width)))
        if left.width > 1:
            name = self.writer.value(f"shufflevector {left.typed}, {right.typed}, {mask}")
            return Register(self, name, left.dtype, width)
        type_ = spelling.register_type(left.dtype, 2)
        first = self.writer.value(f"insertelement {type_} poison, {left.typed}, i64 0")
        return Register(self, self.writer.value(f"insertelement {type_} {first}, {right.typed}, i64 1"), left.dtype, 2)

    def instruction(self, opcode: str, *values: ScalarValue) -> Register:
        """One instruction."""
        first = _register(values[0])
        names = ", ".join(_register(value).name for value in values)
        flag = " contract" if self.contracts and opcode in _CONTRACTED else ""
        name = self.writer.value(f"{opcode}{flag} {first.type} {names}")
        dtype = dtypes.boolean if opcode[1:4] == "cmp" else first.dtype
        return Register(self, name, dtype, first.width)

    def intrinsic(self, name: str, *values: ScalarValue) -> Register:
        """A call of an intrinsic that the target lowers by itself."""
        registers = [_register(value) for value in values]
        first = registers[0]
        full_name = f"@{name}.{spelling.mangled(spelling.element_type(first.dtype), first.width)}"
        types = ", ".join(register.type for register in registers) + _FLAG_TYPES.get(name, "")
        self.functions.module.declare(full_name, f"{first.type} {full_name}({types})")
        operands = ", ".join(register.typed for register in registers) + _FLAGS.get(name, "")
        result = self.writer.value(f"call {first.type} {full_name}({operands})")
        return Register(self, result, first.dtype, first.width)

    def convert(self, value: ScalarValue, dtype: DType) -> Register:
        """A raw conversion of a value that is in range."""
        register = _register(value)
        source = register.dtype
        if source is dtype:
            return register
        if dtype is dtypes.boolean:
            zero = self.constant_of(source, register, 0)
            return self.instruction("fcmp une" if source.kind == "float" else "icmp ne", register, zero)
        if source.is_half or dtype.is_half:
            return self._convert_half(register, dtype)
        opcode = _conversion(source, dtype)
        if opcode is None:
            return Register(self, register.name, dtype, register.width)
        name = self.writer.value(f"{opcode} {register.typed} to {spelling.register_type(dtype, register.width)}")
        return Register(self, name, dtype, register.width)

    def _convert_half(self, register: Register, dtype: DType) -> Register:
        width = register.width
        half, single = spelling.vector("half", width), spelling.register_type(dtypes.float32, width)
        if (register.dtype, dtype) == (dtypes.float16, dtypes.float32):
            typed = self.writer.value(f"bitcast {register.typed} to {half}")
            return Register(self, self.writer.value(f"fpext {half} {typed} to {single}"), dtype, width)
        if (register.dtype, dtype) == (dtypes.float32, dtypes.float16):
            rounded = self.writer.value(f"fptrunc {register.typed} to {half}")
            bits = spelling.register_type(dtypes.float16, width)
            return Register(self, self.writer.value(f"bitcast {half} {rounded} to {bits}"), dtype, width)
        raise TypeError(f"convert: {register.dtype} to {dtype} is no machine conversion; use casts.cast")

    def bits(self, value: ScalarValue) -> Register:
        """The bit pattern as an unsigned integer."""
        register = _register(value)
        return self._reinterpret(register, dtypes.unsigned_of_width(register.dtype.bits))

    def from_bits(self, value: ScalarValue, dtype: DType) -> Register:
        """A bit pattern as `dtype`."""
        return self._reinterpret(_register(value), dtype)

    def _reinterpret(self, register: Register, dtype: DType) -> Register:
        target = spelling.register_type(dtype, register.width)
        if target == register.type:
            return Register(self, register.name, dtype, register.width)
        return Register(self, self.writer.value(f"bitcast {register.typed} to {target}"), dtype, register.width)

    def has(self, function: str) -> bool:
        """Whether the target lowers a primitive by itself."""
        return self.functions.target.has(function)

    def any_element(self, condition: ScalarValue) -> str:
        """Whether a boolean register holds anywhere, as an i1. On a GPU that is each lane's own business."""
        register = _register(condition)
        if register.width == 1:
            return register.name
        bits = self.writer.value(f"bitcast {register.typed} to i{register.width}")
        return self.writer.value(f"icmp ne i{register.width} {bits}, 0")

    def select_rare(self, condition: ScalarValue, slow: Callable[[], ScalarValue], fast: ScalarValue) -> Register:
        """A branch around a call of the slow path."""
        writer = self.writer
        usual = _register(fast)
        self._note_branch()
        call = self._outlined(slow, usual)
        rare, join = writer.new_label("rare"), writer.new_label("usual")
        writer.branch(self.any_element(condition), rare, join, unlikely=True)
        before = writer.block
        writer.start(rare)
        computed = Register(self, writer.value(call), usual.dtype, usual.width)
        chosen = self.where(condition, computed, fast)
        writer.jump(join)
        writer.start(join)
        merged = writer.phi(usual.type)
        merged.add(usual.name, before)
        merged.add(chosen.name, rare)
        return Register(self, merged.name, usual.dtype, usual.width)

    def _note_branch(self) -> None:
        if not self._may_branch:
            raise BranchInWideRegisterError

    def _outlined(self, compute: Callable[[], ScalarValue], like: Register) -> str:
        """Emit what `compute` emits as a function of the registers that it uses; returns the call."""
        outer = self.writer
        inner = self.writer = FunctionWriter("", self.functions.module.names)
        try:
            result = _register(compute())
        finally:
            self.writer = outer
        if (result.dtype, result.width) != (like.dtype, like.width):
            raise TypeError(f"select_rare: the slow path gives {result.typed}, the fast one {like.typed}")
        inner.line(f"ret {result.typed}")
        taken = [self.registers[name] for name in inner.free_names() if name in self.registers]
        parameters = ", ".join(register.typed for register in taken)
        symbol = "@" + self.functions.module.names.fresh("rare.")
        inner.header = f"define internal {like.type} {symbol}({parameters}) noinline cold #0"
        self.functions.module.add_function(inner.text())
        return f"call {like.type} {symbol}({parameters})"

    def repeat_while(
        self,
        condition: Callable[..., ScalarValue],
        step: Callable[..., tuple[ScalarValue, ...]],
        state: tuple[ScalarValue, ...],
    ) -> tuple[ScalarValue, ...]:
        """A loop that ends when the condition holds nowhere."""
        self._note_branch()
        writer = self.writer
        initial = [_register(value) for value in state]
        head, turn, leave = writer.new_label("while"), writer.new_label("turn"), writer.new_label("leave")
        before = writer.block
        writer.jump(head)
        writer.start(head)
        nodes = [writer.phi(register.type) for register in initial]
        current = tuple(
            Register(self, node.name, register.dtype, register.width)
            for node, register in zip(nodes, initial, strict=True)
        )
        writer.branch(self.any_element(condition(*current)), turn, leave)
        writer.start(turn)
        following = [_register(value) for value in step(*current)]
        for node, first, again in zip(nodes, initial, following, strict=True):
            node.add(first.name, before)
            node.add(again.name, writer.block)
        writer.jump(head)
        writer.start(leave)
        return current


def _register(value: ScalarValue) -> Register:
    if not isinstance(value, Register):
        raise TypeError(f"a value of another core, {type(value).__name__}, among registers")
    return value


def _conversion(source: DType, dtype: DType) -> str | None:
    """The opcode between two dtypes that are neither equal nor halves; None if the bits stay."""
    to_float = dtype.kind == "float"
    if source.kind == "float":
        if to_float:
            return "fpext" if dtype.bits > source.bits else "fptrunc"
        return "fptosi" if dtype.kind == "signed" else "fptoui"
    if to_float:
        return "sitofp" if source.kind == "signed" else "uitofp"
    if source.kind == "boolean":
        return "zext"
    if dtype.bits == source.bits:
        return None
    if dtype.bits < source.bits:
        return "trunc"
    return "sext" if source.kind == "signed" else "zext"
