"""Values, bodies and kernels: the immutable containers that passes map to new ones."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codegen.dtypes import DType
from codegen.ir.layout import Layout
from codegen.ir.types import INDEX, BlockType, BufferType, Type

if TYPE_CHECKING:
    from codegen.ir.operations import Operation


@dataclass(frozen=True, eq=False)
class Value:
    """Something an operation or a parameter defines once. Compared by identity."""

    type: Type
    name: str = ""

    @property
    def is_block(self) -> bool:
        """Whether it is a block, not a buffer."""
        return isinstance(self.type, BlockType)

    @property
    def block(self) -> BlockType:
        """The type, which must be a block's."""
        if not isinstance(self.type, BlockType):
            raise TypeError(f"{self.name or 'value'} is a {self.type}, where a block is needed")
        return self.type

    @property
    def buffer(self) -> BufferType:
        """The type, which must be a buffer's."""
        if not isinstance(self.type, BufferType):
            raise TypeError(f"{self.name or 'value'} is a {self.type}, where a buffer is needed")
        return self.type

    def __repr__(self) -> str:
        return f"<{self.name or 'value'}: {self.type}>"


@dataclass(frozen=True, eq=False)
class IndexParameter:
    """A run-time int64, such as the extent of an axis; known to be a multiple of `divisible`."""

    name: str
    divisible: int = 1
    value: Value = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", Value(INDEX, self.name))


@dataclass(frozen=True, eq=False)
class ScalarParameter:
    """A run-time number of any dtype, such as a constant of an expression."""

    name: str
    dtype: DType
    value: Value = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", Value(BlockType(self.dtype), self.name))


@dataclass(frozen=True, eq=False)
class BufferParameter:
    """A buffer in memory that the caller passes: a pointer, then one int64 for each stride that is None.

    `written` buffers are stored to, the others only read. A buffer that is read may be the very memory of a written one
    only with the same strides and offsets, so that each element is read before it is written; `restrict` is false then
    for both, true for buffers that overlap no other. A `streamed` buffer is so large that what is written to it will have left
    the caches before anybody reads it: a hint.
    """

    name: str
    type: BufferType
    written: bool = False
    restrict: bool = True
    streamed: bool = False
    value: Value = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", Value(self.type, self.name))


Parameter = IndexParameter | ScalarParameter | BufferParameter


@dataclass(frozen=True)
class GridAxis:
    """One axis of programs: ``ceil(extent / block)`` of them.

    `extent` is the name of an index parameter or a number; the last grid axis varies fastest in the linear program number.

    With `together` above 1, so many neighbours along the axis may run side by side and share what they read; there may be
    programs behind the last block then, whose windows have to be checked.
    """

    extent: str | int
    block: int = 1
    together: int = 1

    def __str__(self) -> str:
        return f"{self.extent} by {self.block}" + (f" together {self.together}" if self.together > 1 else "")


@dataclass(frozen=True, eq=False)
class Body:
    """Operations in order, with the values they start from and the values they hand on."""

    parameters: tuple[Value, ...]
    operations: tuple["Operation", ...]
    yields: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False)
class Kernel:
    """A program over blocks, run once for each point of its grid.

    Attributes
    ----------
    name : str
        A readable identifier; takes part in the text and the cache key.
    parameters : tuple of Parameter
        In call order. Slots of 8 bytes: an index or scalar takes one, a buffer one for the pointer and one more for each
        stride that is None.
    grid : tuple of GridAxis
    body : Body
        Without parameters or yields.
    layout : Layout
        Of a full tile; all blocks have its rank or rank 0, and on each axis the tile's extent or 1 (`dot` operands aside).
    """

    name: str
    parameters: tuple[Parameter, ...]
    grid: tuple[GridAxis, ...]
    body: Body
    layout: Layout

    def parameter(self, name: str) -> Parameter:
        """The parameter called `name`."""
        for candidate in self.parameters:
            if candidate.name == name:
                return candidate
        raise KeyError(f"kernel {self.name} has no parameter {name!r}; it has {[p.name for p in self.parameters]}")
