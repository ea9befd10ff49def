"""Reads the text form of kernels: ``print_kernel(parse(text)) == text`` for printed text.

Text written by hand may leave out the types of results and of body parameters, number its values as it likes, and have empty
lines and comment lines that start with ``#``.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn, TypeVar

from codegen import dtypes
from codegen.errors import CodegenError, VerificationError
from codegen.ir.kernel import (
    Body,
    BufferParameter,
    GridAxis,
    IndexParameter,
    Kernel,
    Parameter,
    ScalarParameter,
    Value,
)
from codegen.ir.layout import Layout
from codegen.ir.operations import OPERATIONS, For, Operation, attribute_names
from codegen.ir.printer import type_text
from codegen.ir.types import INDEX, BlockType, BufferType, Type
from codegen.ir.verifier import verify

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = re.compile(r"%(?:[0-9]+|[A-Za-z_][A-Za-z0-9_]*(?:\.[0-9]+)?)")
_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?(?:0x[0-9a-f.]+p[+-]?[0-9]+|inf\b|nan\b|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)|true\b|false\b")
_AXES = re.compile(r"\(\)|[0-9]+(?:x[0-9]+)*")
_SPACE = re.compile(r"[ \t]*")

Item = TypeVar("Item")


class ParseError(CodegenError):
    """The text is no kernel; the message shows the line with a caret."""


class _Line:
    """A line of the text and how far it has been read."""

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.number = number
        self.position = 0
        self._skip()

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.position)
        self.position = found.end() if found else self.position

    def fail(self, problem: str, position: int | None = None) -> NoReturn:
        """Raise ParseError with a caret at `position`, or at what comes next."""
        place = self.position if position is None else position
        raise ParseError(f"line {self.number}: {problem}\n  {self.text}\n  {' ' * place}^")

    def accept(self, literal: str) -> bool:
        """Read `literal` if it comes next."""
        end = self.position + len(literal)
        if not self.text.startswith(literal, self.position):
            return False
        if literal[-1].isalnum() and _NAME.match(self.text[end : end + 1]):
            return False
        self.position = end
        self._skip()
        return True

    def expect(self, literal: str) -> None:
        """Read `literal`, which must come next."""
        if not self.accept(literal):
            self.fail(f"expected `{literal}`, found `{self.rest()}`")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Read what the pattern matches, if it comes next."""
        found = pattern.match(self.text, self.position)
        if found is None:
            return None
        self.position = found.end()
        self._skip()
        return found.group()

    def take(self, pattern: re.Pattern[str], expected: str) -> str:
        """Read what the pattern matches, which must come next."""
        found = self.match(pattern)
        if found is None:
            self.fail(f"expected {expected}, found `{self.rest()}`")
        return found

    def rest(self) -> str:
        """What has not been read."""
        return self.text[self.position :].rstrip() or "end of line"

    def finish(self) -> None:
        """Nothing more may come."""
        if self.position < len(self.text.rstrip()):
            self.fail(f"expected the end of the line, found `{self.rest()}`")

    def separated(self, item: Callable[[], Item], end: str) -> tuple[Item, ...]:
        """Items with commas between them, up to `end`, which is read too."""
        items: list[Item] = []
        if self.accept(end):
            return ()
        while True:
            items.append(item())
            if not self.accept(","):
                break
        self.expect(end)
        return tuple(items)

    def integer(self, expected: str = "a number") -> int:
        """A decimal integer."""
        return int(self.take(_INTEGER, expected))


def parse(text: str) -> Kernel:
    """The kernel that a text states; it is verified.

    Raises
    ------
    ParseError
        If the text cannot be read, with line and caret.
    VerificationError
        If it can, but the kernel breaks a rule of the IR.
    """
    kernel = _Parser(text).kernel()
    verify(kernel)
    return kernel


class _Parser:
    def __init__(self, text: str) -> None:
        lines = [_Line(row, number) for number, row in enumerate(text.splitlines(), 1)]
        self._lines = [line for line in lines if line.text.strip() and not line.text.lstrip().startswith("#")]
        self._next = 0
        self._values: dict[str, Value] = {}

    def _line(self) -> _Line:
        if self._next == len(self._lines):
            last = self._lines[-1] if self._lines else _Line("", 1)
            last.fail("expected more lines, found the end of the text", len(last.text))
        self._next += 1
        return self._lines[self._next - 1]

    def kernel(self) -> Kernel:
        """All of the text."""
        line = self._line()
        line.expect("kernel")
        name = line.take(_NAME, "the kernel's name")
        line.expect("(")
        line.finish()
        parameters: list[Parameter] = []
        while not (line := self._line()).accept(")"):
            parameters.append(self._parameter(line))
        line.expect("grid")
        line.expect("(")
        grid = line.separated(lambda: _grid_axis(line), ")")
        line.expect("layout")
        layout = _layout(line)
        line.expect("{")
        line.finish()
        operations, yields, line = self._body_lines()
        if yields:
            line.fail("a kernel yields nothing")
        line.finish()
        if self._next != len(self._lines):
            self._line().fail("expected one kernel, found more text")
        return Kernel(name, tuple(parameters), grid, Body((), operations), layout)

    def _parameter(self, line: _Line) -> Parameter:
        start = line.position
        name = line.take(_NAME, "a parameter's name or `)`")
        line.expect(":")
        parameter: Parameter
        if line.accept("index"):
            parameter = IndexParameter(name, line.integer("a divisor") if line.accept("divisible") else 1)
        elif line.accept("scalar"):
            parameter = ScalarParameter(name, _dtype(line))
        else:
            kind = _buffer_type(line)
            parameter = BufferParameter(
                name, kind, line.accept("written"), not line.accept("aliased"), line.accept("streamed")
            )
        line.finish()
        self._define(line, start, f"%{name}", parameter.value)
        return parameter

    def _define(self, line: _Line, position: int, label: str, value: Value) -> None:
        if label in self._values:
            line.fail(f"{label} is defined twice", position)
        self._values[label] = value

    def _body_lines(self) -> tuple[tuple[Operation, ...], tuple[Value, ...], _Line]:
        """Operations and yields up to the line of the closing brace, which is returned after the brace."""
        operations: list[Operation] = []
        yields: tuple[Value, ...] = ()
        while not (line := self._line()).accept("}"):
            if yields:
                line.fail("expected `}` after `yield`")
            if line.accept("yield"):
                yields = self._references(line)
                line.finish()
            else:
                operations.append(self._operation(line))
        return tuple(operations), yields, line

    def _operation(self, line: _Line) -> Operation:
        stated: list[tuple[int, str, Type | None]] = []
        if line.text.startswith("%", line.position):
            stated = list(line.separated(lambda: self._stated(line), "="))
        start = line.position
        name = line.take(_NAME, "an operation")
        if name not in OPERATIONS:
            line.fail(f"no operation is called `{name}`; there are {', '.join(OPERATIONS)}", start)
        kind = OPERATIONS[name]
        known = attribute_names(kind)
        attributes: dict[str, object] = {}
        if known and known[0] == "function":
            attributes["function"] = line.take(_NAME, f"the function of `{name}`")
        operands = self._references(line) if line.text.startswith("%", line.position) else ()
        while (place := line.position) is not None and (attribute := line.match(_NAME)) is not None:
            if attribute not in known or attribute in attributes:
                line.fail(
                    f"`{name}` has no further attribute `{attribute}`; it has {', '.join(known) or 'none'}", place
                )
            line.expect("=")
            attributes[attribute] = _NAMED[attribute](line) if attribute in _NAMED else _attribute(line)
        bodies, last = self._bodies(line, kind, operands)
        last.finish()
        operation = _build(line, start, kind, operands, bodies, attributes)
        return self._with_results(line, start, operation, stated)

    def _bodies(
        self, line: _Line, kind: type[Operation], operands: tuple[Value, ...]
    ) -> tuple[tuple[Body, ...], _Line]:
        """Bodies behind an operation's head, and the line where they end."""
        bodies: list[Body] = []
        opening = line
        while opening.text.startswith(("(", "{"), opening.position):
            kinds = (INDEX, *(value.type for value in operands[2:])) if kind is For else ()
            parameters = self._body_parameters(opening, kinds)
            opening.expect("{")
            opening.finish()
            operations, yields, closing = self._body_lines()
            bodies.append(Body(parameters, operations, yields))
            opening = closing
            if not closing.accept("else"):
                break
        return tuple(bodies), opening

    def _body_parameters(self, line: _Line, kinds: tuple[Type, ...]) -> tuple[Value, ...]:
        if not line.accept("("):
            return ()
        start = line.position
        stated = line.separated(lambda: self._stated(line), ")")
        if len(stated) != len(kinds):
            line.fail(f"expected {len(kinds)} body parameters, found {len(stated)}", start)
        values = []
        for (position, label, given), kind in zip(stated, kinds, strict=True):
            value = Value(kind if given is None else given, _hint(label))
            self._define(line, position, label, value)
            values.append(value)
        return tuple(values)

    def _stated(self, line: _Line) -> tuple[int, str, Type | None]:
        """Place, label and type, if one is given, of a value that is defined."""
        position = line.position
        label = line.take(_LABEL, "a value such as %sum or %0")
        return position, label, _type(line) if line.accept(":") else None

    def _references(self, line: _Line) -> tuple[Value, ...]:
        values = []
        while True:
            position = line.position
            label = line.take(_LABEL, "a value such as %sum or %0")
            if label not in self._values:
                line.fail(f"{label} is not defined before this line", position)
            values.append(self._values[label])
            if not line.accept(","):
                return tuple(values)

    def _with_results(
        self, line: _Line, start: int, operation: Operation, stated: list[tuple[int, str, Type | None]]
    ) -> Operation:
        try:
            kinds = operation.infer()
        except (VerificationError, TypeError, ValueError) as error:
            line.fail(str(error), start)
        if len(kinds) != len(stated):
            line.fail(f"`{operation.name}` has {len(kinds)} results, but {len(stated)} are named", start)
        results = []
        for (position, label, given), kind in zip(stated, kinds, strict=True):
            if given is not None and _without_layout(given) != _without_layout(kind):
                line.fail(f"{label} is stated as {type_text(given)}, but the result is {type_text(kind)}", position)
            value = Value(kind if given is None else given, _hint(label))
            self._define(line, position, label, value)
            results.append(value)
        return replace(operation, results=tuple(results))


def _hint(label: str) -> str:
    """The name in a label: `sum` of ``%sum.2``, none of ``%0``."""
    return "" if label[1].isdigit() else label[1:].split(".")[0]


def _without_layout(kind: Type) -> Type:
    return BlockType(kind.dtype, kind.shape) if isinstance(kind, BlockType) else kind


def _build(
    line: _Line,
    start: int,
    kind: type[Operation],
    operands: tuple[Value, ...],
    bodies: tuple[Body, ...],
    attributes: dict[str, object],
) -> Operation:
    try:
        return kind(operands=operands, bodies=bodies, **attributes)  # type: ignore[arg-type]
    except TypeError:
        missing = [name for name in attribute_names(kind) if name not in attributes]
        line.fail(f"`{kind.name}` lacks attributes: {', '.join(missing)}", start)


def _grid_axis(line: _Line) -> GridAxis:
    extent = _extent(line)
    line.expect("by")
    block = line.integer("a block")
    return GridAxis(extent, block, line.integer("a number of programs") if line.accept("together") else 1)


def _extent(line: _Line) -> str | int:
    name = line.match(_NAME)
    return line.integer("an extent: a number or the name of an index parameter") if name is None else name


def _layout(line: _Line) -> Layout:
    start = line.position
    line.expect("lanes")
    lanes = _axes(line)
    line.expect("run")
    run = _axes(line)
    line.expect("register")
    register = line.integer()
    group: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    if line.accept("group"):
        group = _axes(line)
        line.expect("turns")
        turns = _axes(line)
    try:
        return Layout(lanes, run, register, group, turns)
    except ValueError as error:
        line.fail(str(error), start)


def _axes(line: _Line) -> tuple[int, ...]:
    text = line.take(_AXES, "numbers with x between them, or ()")
    return () if text == "()" else tuple(map(int, text.split("x")))


def _instruction(line: _Line) -> str:
    return line.take(_NAME, "an instruction's name")


def _dtype(line: _Line) -> dtypes.DType:
    start = line.position
    name = line.take(_NAME, "a dtype")
    try:
        return dtypes.by_name(name)
    except KeyError as error:
        line.fail(str(error.args[0]), start)


def _type(line: _Line) -> Type:
    if line.text.startswith("buffer ", line.position):
        return _buffer_type(line)
    dtype = _dtype(line)
    shape = line.separated(line.integer, "]") if line.accept("[") else ()
    return BlockType(dtype, shape, _layout(line) if line.accept("@") else None)


def _buffer_type(line: _Line) -> BufferType:
    start = line.position
    if not line.accept("buffer"):
        line.fail(f"expected `index`, `scalar` or `buffer`, found `{line.rest()}`")
    dtype = _dtype(line)
    extents = line.separated(lambda: _extent(line), "]") if line.accept("[") else ()
    line.expect("strides")
    line.expect("(")
    strides = line.separated(lambda: None if line.accept("?") else line.integer("a stride or `?`"), ")")
    line.expect("align")
    alignment = line.integer()
    try:
        return BufferType(dtype, extents, strides, alignment)
    except ValueError as error:
        line.fail(str(error), start)


def _attribute(line: _Line) -> object:
    if line.accept("("):
        return line.separated(lambda: _attribute(line), ")")
    text = line.take(_NUMBER, "a number, true, false or a tuple of them")
    if text in ("true", "false"):
        return text == "true"
    if "x" in text:
        return float.fromhex(text)
    return int(text) if _INTEGER.fullmatch(text) else float(text)


# Attributes that are written as a name.
_NAMED: dict[str, Callable[[_Line], object]] = {"dtype": _dtype, "instruction": _instruction}
