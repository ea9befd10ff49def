"""What a kernel is compiled for: the kind of each argument, and what names tell of extents."""

import re
from dataclasses import dataclass, field
from typing import Any

from codegen.dtypes import DType

_GROUP = re.compile(r"\(([^()]*)\)")


@dataclass(frozen=True)
class ArrayKind:
    """An array argument.

    Attributes
    ----------
    dtype : DType
    extents : tuple of (str or int)
        Names of the lengths of its axes: equal names, equal lengths.
    strides : tuple of (int or None)
        In elements, where they are part of the code.
    alignment : int
        See `BufferType`.
    """

    dtype: DType
    extents: tuple[str | int, ...]
    strides: tuple[int | None, ...]
    alignment: int


@dataclass(frozen=True)
class ScalarKind:
    """A number argument, passed when the kernel runs; `weak` is ``int`` or ``float`` if it adapts as Python's numbers do."""

    dtype: DType
    weak: type | None = None


@dataclass(frozen=True)
class IndexKind:
    """An integer argument that counts or places elements: not negative, and a multiple of `divisible`."""

    divisible: int = 1


@dataclass(frozen=True)
class StaticKind:
    """An argument that is part of the code."""

    value: Any


ArgumentKind = ArrayKind | ScalarKind | IndexKind | StaticKind


@dataclass(frozen=True)
class Specialisation:
    """Everything that a kernel's code depends on besides its source and the target.

    Attributes
    ----------
    arguments : tuple of (str, ArgumentKind)
        By parameter, in order.
    divisors : tuple of (str, int)
        For each named extent, a number that divides it.
    inputs : frozenset of str
        Array parameters that must not be stored to.
    grid_axes : int or None
        Axes of a grid that the caller gives; None: derived from the stores.
    """

    arguments: tuple[tuple[str, ArgumentKind], ...]
    divisors: tuple[tuple[str, int], ...]
    inputs: frozenset[str] = frozenset()
    grid_axes: int | None = None


@dataclass(frozen=True)
class ShapeSignature:
    """Shapes of a kernel's arrays, in the notation of NumPy's generalised ufuncs: ``(m,k),(k,n)->(m,n)``.

    An ellipsis stands for any number of leading axes, the same ones in all arrays that have it. Numbers are fixed lengths.

    Attributes
    ----------
    text : str
    inputs, outputs : tuple of tuple of str
        Names of the axes.

    Examples
    --------
    >>> ShapeSignature.parse("(rows,columns)->(rows)").outputs
    (('rows',),)
    """

    text: str
    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...] = field(default=())

    @classmethod
    def parse(cls, text: str) -> "ShapeSignature":
        """Read the notation; ValueError says what is wrong with it."""
        before, arrow, after = text.replace(" ", "").partition("->")
        inputs, outputs = _groups(before, text), _groups(after, text) if arrow else ()
        known = {name for group in inputs for name in group}
        for name in (name for group in outputs for name in group):
            if name not in known and not name.isdigit():
                raise ValueError(f"shapes {text!r}: {name!r} stands behind -> only; expected names that an input has")
        return cls(text, inputs, outputs)


def _groups(text: str, whole: str) -> tuple[tuple[str, ...], ...]:
    groups = _GROUP.findall(text)
    if ",".join(f"({group})" for group in groups) != text:
        raise ValueError(f"shapes {whole!r}: expected groups such as (m,k),(k,n)->(m,n), found {text!r}")
    return tuple(tuple(_names(group, whole)) for group in groups)


def _names(group: str, whole: str) -> list[str]:
    names = group.split(",") if group else []
    for position, name in enumerate(names):
        is_leading = name == "..." and position == 0
        if not (is_leading or (name.isidentifier() and name.isascii()) or name.isdigit()):
            raise ValueError(f"shapes {whole!r}: expected a name, a number or a leading ..., found {name!r}")
    return names
