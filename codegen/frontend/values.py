"""What a kernel's names stand for while it is translated: blocks, arrays in memory, closures. All else is a static value."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from codegen.dtypes import DType
from codegen.frontend.source import FunctionSource
from codegen.ir.kernel import Value

Number = bool | int | float


@dataclass(frozen=True)
class Edge:
    """Elements of an axis exist while ``0 <= offset + position < extent``.

    Attributes
    ----------
    offset : Value or int
        Of the window's first element in its array.
    extent : Value or int
        Of the array.
    from_zero : bool
        The offset cannot be negative.
    is_lost : bool
        The window was inside of a loop or branch that is over: which elements exist is no longer known.
    """

    offset: Value | int
    extent: Value | int
    from_zero: bool
    is_lost: bool = False


# Any edge of which only the inside of a loop or branch knew where it was.
LOST_EDGE = Edge(0, 0, from_zero=True, is_lost=True)

Edges = tuple[Edge, ...]


def joined(a: Edges, b: Edges) -> Edges:
    """All edges of both, each once, in order."""
    return a + tuple(edge for edge in b if edge not in a)


@dataclass(frozen=True, eq=False)
class Block:
    """A block, or a scalar of the run time.

    The IR's blocks all have the rank of the kernel's tile. `axes` says along which of those axes each axis of the block lies;
    along the others the IR's block has extent 1.

    Attributes
    ----------
    value : Value
        Of the IR; of rank 0 if `shape` is empty.
    shape : tuple of int
    axes : tuple of int
    weak : type or None
        ``int`` or ``float`` for a scalar that adapts to the dtype beside it, as Python's numbers do.
    edges : tuple of tuple of Edge
        For each axis, which elements exist; others do not take part in reductions.
    padding : number or None
        The value of elements that do not exist, if it is known.
    from_zero : bool
        A scalar that cannot be negative.
    program : (int, int) or None
        The scalar is the program's index along a grid axis times a number.
    reload : callable or None
        Gives the same elements along other axes, straight from memory.
    """

    value: Value
    shape: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    weak: type | None = None
    edges: tuple[Edges, ...] = ()
    padding: Number | None = None
    from_zero: bool = False
    program: tuple[int, int] | None = None
    reload: Callable[[tuple[int, ...]], "Block"] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.shape):
            object.__setattr__(self, "edges", ((),) * len(self.shape))

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self.value.block.dtype

    @property
    def kind(self) -> DType | type:
        """What it counts as in promotion."""
        return self.dtype if self.weak is None else self.weak

    def plain(self, value: Value) -> "Block":
        """The same place and edges for another value, of which nothing else is known."""
        return Block(value, self.shape, self.axes, edges=self.edges)

    def with_changes(self, **changes: Any) -> "Block":
        """A copy with some fields replaced."""
        return replace(self, **changes)

    def __str__(self) -> str:
        if self.weak is not None:
            return f"a run-time {self.weak.__name__}"
        return f"{self.dtype} block of shape {self.shape}" if self.shape else f"{self.dtype} scalar"


@dataclass(frozen=True, eq=False)
class ArrayReference:
    """An array in memory: a parameter, or a part of one with some leading indices fixed.

    Attributes
    ----------
    name : str
        Of the parameter.
    dtype : DType
    extents : tuple of (str or int)
        Of the axes that are left.
    leading : tuple of Block or int
        Indices of the leading axes that are fixed.
    """

    name: str
    dtype: DType
    extents: tuple[str | int, ...]
    leading: tuple["Block | int", ...] = ()

    def __str__(self) -> str:
        count = len(self.extents)
        return f"the array {self.name} ({self.dtype}, {count} {'axis' if count == 1 else 'axes'})"


@dataclass(frozen=True, eq=False)
class Closure:
    """A function defined inside of a kernel, or a helper function, ready to be inlined.

    Attributes
    ----------
    source : FunctionSource
    local : dict
        Names of the function around it, at the time of the call.
    defaults : dict
        Default values by parameter.
    identity : object
        Equal for all calls of one function, to find recursion.
    """

    source: FunctionSource
    local: dict[str, Any]
    defaults: dict[str, Any]
    identity: object


@dataclass(frozen=True, eq=False)
class Method:
    """A method of a block or array, named and not yet called."""

    owner: Block | ArrayReference
    name: str


@dataclass(frozen=True)
class RunTimeRange:
    """``range(begin, end, step)`` with bounds of the run time."""

    begin: "Block | int"
    end: "Block | int"
    step: int


def is_static(value: object) -> bool:
    """Whether a value is known when the kernel is compiled."""
    if isinstance(value, (Block, ArrayReference, Method, RunTimeRange)):
        return False
    if isinstance(value, (tuple, list)):
        return all(map(is_static, value))
    if isinstance(value, slice):
        return all(map(is_static, (value.start, value.stop, value.step)))
    return not isinstance(value, dict) or all(map(is_static, value.values()))


def has_truth(value: object) -> bool:
    """Whether it is known when the kernel is compiled if a value is true; sequences are by their length."""
    return isinstance(value, (tuple, list, dict)) or is_static(value)


def is_number(value: object) -> bool:
    """Whether a static value is a number that may stand beside blocks."""
    return isinstance(value, (bool, int, float, np.bool_, np.number))


def describe(value: object) -> str:
    """A value in words, for messages."""
    if isinstance(value, (Block, ArrayReference)):
        if isinstance(value, ArrayReference) or value.weak is not None:
            return str(value)
        return f"{'an' if value.dtype.name[0] in 'i' else 'a'} {value}"
    if isinstance(value, Closure):
        return f"the function {value.source.name}"
    if isinstance(value, RunTimeRange):
        return "a range"
    if isinstance(value, (tuple, list)) and not is_static(value):
        return f"a {type(value).__name__} of {', '.join(map(describe, value))}"
    if getattr(value, "shape", ()):
        return f"an array of shape {value.shape} from outside of the kernel"  # type: ignore[attr-defined]
    return f"{value!r} ({type(value).__name__})"
