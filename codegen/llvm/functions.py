"""Definitions of the scalar table as functions of the emitted module: one per row and register type."""

from collections.abc import Callable
from dataclasses import dataclass

from codegen.dtypes import DType
from codegen.llvm import spelling
from codegen.llvm.core import BranchInWideRegisterError, Register, RegisterCore
from codegen.llvm.writer import FunctionWriter, ModuleWriter
from codegen.scalar.function import ScalarValue
from codegen.scalar.table import TABLE
from codegen.target import Target


@dataclass(frozen=True)
class EmittedFunction:
    """A definition in the module."""

    name: str
    dtype: DType
    width: int


class Functions:
    """The definitions that one module holds so far."""

    def __init__(self, module: ModuleWriter, target: Target) -> None:
        self.module = module
        self.target = target
        self._emitted: dict[tuple, EmittedFunction] = {}
        self._branching: set[tuple] = set()

    def get(
        self,
        label: str,
        operands: tuple[Register, ...],
        body: Callable[..., ScalarValue],
        may_branch: bool = True,
    ) -> EmittedFunction:
        """The function called `label` for such operands, emitted from `body` on the first request.

        Raises
        ------
        BranchInWideRegisterError
            The definition branches and may not.
        """
        key = (label, *((operand.dtype.name, operand.width) for operand in operands))
        known = self._emitted.get(key)
        if known is not None:
            return known
        if key in self._branching:
            raise BranchInWideRegisterError
        try:
            emitted = self._emit(label, operands, body, may_branch)
        except BranchInWideRegisterError:
            self._branching.add(key)
            raise
        self._emitted[key] = emitted
        return emitted

    def _emit(
        self, label: str, operands: tuple[Register, ...], body: Callable[..., ScalarValue], may_branch: bool
    ) -> EmittedFunction:
        names = [f"%x{position}" for position in range(len(operands))]
        parameters = ", ".join(f"{operand.type} {name}" for operand, name in zip(operands, names, strict=True))
        symbol = "@" + self.module.names.fresh(f"{label}.{operands[0].dtype.name}x{operands[0].width}.")
        writer = FunctionWriter("", self.module.names)
        row = TABLE.get(label)
        contracts = row is not None and row.contracts and self.target.kind == "nvptx"
        core = RegisterCore(writer, self, may_branch, contracts)
        inner = [
            Register(core, name, operand.dtype, operand.width) for operand, name in zip(operands, names, strict=True)
        ]
        result = body(core, *inner)
        if not isinstance(result, Register):
            raise TypeError(f"{label}: the definition returned {type(result).__name__}, expected a register")
        writer.line(f"ret {result.typed}")
        result_type = spelling.register_type(result.dtype, result.width)
        writer.header = f"define internal {result_type} {symbol}({parameters}) alwaysinline #0"
        self.module.add_function(writer.text())
        return EmittedFunction(symbol, result.dtype, result.width)
