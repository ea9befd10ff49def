"""The source of a function as a syntax tree, and the values of the names around it."""

import ast
import builtins
import linecache
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from codegen.errors import KernelError
from codegen.frontend.diagnostics import SourceText

FunctionNode = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True, eq=False)
class Outside:
    """Names that a function finds outside of itself."""

    namespace: dict[str, Any]
    cells: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function with its syntax tree.

    Attributes
    ----------
    name : str
    node : ast.FunctionDef or ast.Lambda
    text : SourceText
    outside : Outside
    """

    name: str
    node: FunctionNode
    text: SourceText
    outside: Outside


class Captured:
    """Values that a translation took from outside of its functions; if one is another object now, it no longer holds."""

    def __init__(self) -> None:
        self._globals: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
        self._cells: dict[int, tuple[Any, Any]] = {}

    def find(self, outside: Outside, name: str) -> Any:
        """The value of a name; KeyError if there is none."""
        if name in outside.cells:
            cell = outside.cells[name]
            try:
                value = cell.cell_contents
            except ValueError:
                raise KeyError(name) from None
            self._cells[id(cell)] = (cell, value)
            return value
        if name in outside.namespace:
            value = outside.namespace[name]
            self._globals[(id(outside.namespace), name)] = (outside.namespace, name, value)
            return value
        return vars(builtins)[name]

    @property
    def holds(self) -> bool:
        """Whether all names still stand for the same objects."""
        for names, name, value in self._globals.values():
            if names.get(name) is not value:
                return False
        return all(cell.cell_contents is value for cell, value in self._cells.values())


def source_of(function: FunctionType) -> FunctionSource:
    """The syntax tree of a Python function.

    Raises
    ------
    KernelError
        If the source is not to be had (typed into a shell that keeps none) or no longer fits the function.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = tuple(linecache.getlines(code.co_filename, function.__globals__))
    tree = _parsed(lines)
    if tree is None:
        raise KernelError(
            f"the source of {function.__qualname__} cannot be read from {code.co_filename!r}, and a kernel is translated from "
            "its source; expected a function that is written in a file (or a notebook's cell)"
        )
    node = _find(tree, code, function)
    if node is None:
        raise KernelError(
            f"{code.co_filename}, line {code.co_firstlineno}: the file no longer has {function.__qualname__} there; it was changed "
            "since it was imported"
        )
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    outside = Outside(function.__globals__, cells)
    return FunctionSource(function.__name__, node, SourceText(code.co_filename, lines), outside)


@lru_cache(maxsize=64)
def _parsed(lines: tuple[str, ...]) -> ast.Module | None:
    if not lines:
        return None
    try:
        return ast.parse("".join(lines))
    except SyntaxError:
        return None


def _find(tree: ast.Module, code: CodeType, function: FunctionType) -> FunctionNode | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    lambdas = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno and code.co_name == "<lambda>"
    ]
    if len(lambdas) > 1:
        lambdas = [node for node in lambdas if _is_code_of(node, code)]
    return lambdas[0] if lambdas else None


def _is_code_of(node: ast.Lambda, code: CodeType) -> bool:
    """Whether a lambda stands where the code's instructions come from: a line may have several."""
    for line, _, column, _ in code.co_positions():
        if line == node.body.lineno and column is not None and column >= node.body.col_offset:
            return any(
                place[0] == node.body.lineno
                and place[2] == node.body.col_offset
                and place[3] == node.body.end_col_offset
                for place in code.co_positions()
            )
    return False
