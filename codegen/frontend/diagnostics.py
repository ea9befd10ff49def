"""Errors of kernels: what is wrong, with carets under the expression and the calls that led there."""

import ast
from dataclasses import dataclass

from codegen.errors import KernelError


class Fault(Exception):
    """Something in a kernel that has no meaning, found where its place in the source is not known.

    Attributes
    ----------
    argument : int or str or None
        The argument of the call that is to blame, by position or keyword; None for the whole expression.
    """

    def __init__(self, message: str, argument: int | str | None = None) -> None:
        super().__init__(message)
        self.argument = argument


@dataclass(frozen=True)
class SourceText:
    """The file that a function stands in."""

    file: str
    lines: tuple[str, ...]

    def excerpt(self, node: ast.AST, function: str) -> list[str]:
        """The place of a node as tracebacks show it: file and line, then the line with carets."""
        first = getattr(node, "lineno", 1)
        text = self.lines[first - 1].rstrip("\n") if first <= len(self.lines) else ""
        begin = _characters(text, getattr(node, "col_offset", 0))
        end = len(text.rstrip())
        if getattr(node, "end_lineno", first) == first:
            end = _characters(text, getattr(node, "end_col_offset", None) or end)
        stripped = text.lstrip()
        indent = len(text) - len(stripped)
        carets = " " * max(0, begin - indent) + "^" * max(1, end - begin)
        return [f'  File "{self.file}", line {first}, in {function}', f"    {stripped.rstrip()}", f"    {carets}"]


def _characters(text: str, utf8_offset: int) -> int:
    """A position in characters; the parser counts bytes."""
    return len(text.encode()[:utf8_offset].decode(errors="replace"))


@dataclass(frozen=True)
class Call:
    """A function that is being translated, and the call that led to it.

    Attributes
    ----------
    source : SourceText
    function : str
    site : ast.AST or None
        The call, in the source of the caller; None for the kernel itself.
    """

    source: SourceText
    function: str
    site: ast.AST | None


def kernel_error(message: str, node: ast.AST, calls: list[Call]) -> KernelError:
    """The error with its place, and with the calls that led there (outermost first, as in tracebacks)."""
    places = []
    for caller, call in zip(calls, calls[1:], strict=False):
        if call.site is not None:
            places += caller.source.excerpt(call.site, caller.function)
    places += calls[-1].source.excerpt(node, calls[-1].function)
    error = KernelError("\n".join([message, *places]))
    error.file = calls[-1].source.file
    error.line = getattr(node, "lineno", 0)
    return error
