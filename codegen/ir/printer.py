"""The text form of kernels. Equal text means the same code: cache keys are made of it, so all that decides code is in it.

The parser reads it back. Locations are left out. A value is written ``%name``, the second one of that name ``%name.2``, one
without a name ``%0``, ``%1`` … in the order of definition; a result stands with its type, ``%sum: float32[4, 1]``. Numbers are
exact: Python's shortest spelling that reads back as the same float64, with a sign on NaN if it has one.

::

    kernel scale(
      n: index divisible 16
      factor: scalar float32
      x: buffer float32[n] strides (1) align 64
      y: buffer float32[n] strides (1) align 64 written
    ) grid (n by 16) layout lanes 1 run 1 register 16 {
      %row: int64 = program_index axis=0
      %0: int64 = constant dtype=int64 number=16 shape=()
      %begin: int64 = map multiply %row, %0
      %1: float32[16] = load %x, %begin shape=(16) checked=(true) fill=0
      %2: float32[16] = broadcast %factor shape=(16)
      %3: float32[16] = map multiply %1, %2
      store %y, %begin, %3 checked=(true)
    }
"""

import math
from collections.abc import Iterable

from codegen.dtypes import DType
from codegen.ir.kernel import Body, BufferParameter, IndexParameter, Kernel, Parameter, Value
from codegen.ir.layout import Layout
from codegen.ir.operations import Operation, attribute_names
from codegen.ir.types import BufferType, Type


def print_kernel(kernel: Kernel) -> str:
    """The text of a kernel, with a line end at its end."""
    return _Printer().kernel(kernel)


def print_operation(operation: Operation) -> str:
    """The text of one operation, its bodies left out: for messages."""
    printer = _Printer()
    for value in operation.operands:
        printer.define(value)
    return printer.head(operation)


def layout_text(layout: Layout) -> str:
    """A layout as it stands in a kernel's text; ``()`` for no axes."""
    lanes = "x".join(map(str, layout.lanes)) or "()"
    run = "x".join(map(str, layout.run)) or "()"
    text = f"lanes {lanes} run {run} register {layout.register}"
    if not layout.group:
        return text
    return f"{text} group {'x'.join(map(str, layout.group))} turns {'x'.join(map(str, layout.turns))}"


def type_text(kind: Type) -> str:
    """A type as it stands behind a value: in distributed form with the block's layout."""
    if isinstance(kind, BufferType) or kind.layout is None:
        return str(kind)
    return f"{kind} @ {layout_text(kind.layout)}"


def number_text(number: bool | int | float) -> str:
    """A number, exactly."""
    if isinstance(number, bool):
        return "true" if number else "false"
    if isinstance(number, int):
        return str(number)
    if math.isnan(number):
        return "-nan" if math.copysign(1.0, number) < 0 else "nan"
    return repr(float(number))


def attribute_text(value: object) -> str:
    """An attribute's value."""
    if isinstance(value, tuple):
        return f"({', '.join(map(attribute_text, value))})"
    if isinstance(value, (bool, int, float)):
        return number_text(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, str):
        return value
    raise TypeError(
        f"printer: an attribute is a {type(value).__name__}; expected numbers, dtypes, names or tuples of them"
    )


def parameter_text(parameter: Parameter) -> str:
    """The line of a parameter."""
    if isinstance(parameter, IndexParameter):
        known = f" divisible {parameter.divisible}" if parameter.divisible != 1 else ""
        return f"{parameter.name}: index{known}"
    if isinstance(parameter, BufferParameter):
        flags = (" written" if parameter.written else "") + ("" if parameter.restrict else " aliased")
        flags += " streamed" if parameter.streamed else ""
        return f"{parameter.name}: {parameter.type}{flags}"
    return f"{parameter.name}: scalar {parameter.dtype}"


class _Printer:
    """Lines of one kernel, and the label of each value so far."""

    def __init__(self) -> None:
        self._labels: dict[Value, str] = {}
        self._uses: dict[str, int] = {}
        self._unnamed = 0
        self._lines: list[str] = []
        self._types: dict[Type, str] = {}

    def kernel(self, kernel: Kernel) -> str:
        """All of it."""
        self._lines.append(f"kernel {kernel.name}(")
        for parameter in kernel.parameters:
            self.define(parameter.value)
            self._lines.append(f"  {parameter_text(parameter)}")
        grid = ", ".join(map(str, kernel.grid))
        self._lines.append(f") grid ({grid}) layout {layout_text(kernel.layout)} {{")
        self._body(kernel.body, "  ")
        self._lines.append("}\n")
        return "\n".join(self._lines)

    def define(self, value: Value) -> str:
        """Give a value its label."""
        hint = value.name
        if not hint:
            label = f"%{self._unnamed}"
            self._unnamed += 1
        else:
            count = self._uses[hint] = self._uses.get(hint, 0) + 1
            label = f"%{hint}" if count == 1 else f"%{hint}.{count}"
        self._labels[value] = label
        return label

    def head(self, operation: Operation) -> str:
        """An operation's line, up to its bodies."""
        parts = []
        if operation.results:
            parts.append(f"{self._definitions(operation.results)} =")
        parts.append(operation.name)
        names = attribute_names(type(operation))
        if names and names[0] == "function":
            parts.append(str(getattr(operation, "function")))  # noqa: B009 - the class is known only at run time
            names = names[1:]
        if operation.operands:
            parts.append(self._references(operation.operands))
        parts += [f"{name}={attribute_text(getattr(operation, name))}" for name in names]
        return " ".join(parts)

    def _body(self, body: Body, indent: str) -> None:
        for operation in body.operations:
            if operation.bodies:
                self._nested(operation, indent)
            else:
                self._lines.append(indent + self.head(operation))
        if body.yields:
            self._lines.append(f"{indent}yield {self._references(body.yields)}")

    def _nested(self, operation: Operation, indent: str) -> None:
        opening = indent + self.head(operation)
        for body in operation.bodies:
            parameters = f" ({self._definitions(body.parameters)})" if body.parameters else ""
            self._lines.append(f"{opening}{parameters} {{")
            self._body(body, indent + "  ")
            opening = f"{indent}}} else"
        self._lines.append(f"{indent}}}")

    def _definitions(self, values: Iterable[Value]) -> str:
        return ", ".join([f"{self.define(value)}: {self._type(value.type)}" for value in values])

    def _references(self, values: Iterable[Value]) -> str:
        labels = self._labels
        return ", ".join([labels.get(value) or f"%undefined:{value.name}" for value in values])

    def _type(self, kind: Type) -> str:
        text = self._types.get(kind)
        if text is None:
            text = self._types[kind] = type_text(kind)
        return text
