"""Types of IR values: blocks (a scalar is a block of rank 0) and buffers."""

from dataclasses import dataclass, replace

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.layout import Layout


@dataclass(frozen=True)
class BlockType:
    """A block of elements held by a program.

    Attributes
    ----------
    dtype : DType
    shape : tuple of int
        Static extents; ``()`` is a scalar, the same for all lanes.
    layout : Layout or None
        Set by `assign_layouts` (distributed form), None in block form.
    """

    dtype: DType
    shape: tuple[int, ...] = ()
    layout: Layout | None = None

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def with_shape(self, shape: tuple[int, ...]) -> "BlockType":
        """The same elements in another shape."""
        return replace(self, shape=shape)

    def with_dtype(self, dtype: DType) -> "BlockType":
        """The same shape with other elements."""
        return replace(self, dtype=dtype)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]" if self.shape else str(self.dtype)


@dataclass(frozen=True)
class BufferType:
    """A strided array in memory.

    Attributes
    ----------
    dtype : DType
    extents : tuple of (str or int)
        Length of each axis: the name of an index parameter of the kernel, or a static number.
    strides : tuple of (int or None)
        Elements from one entry to the next along each axis where known when compiled (0: broadcast, 1: unit stride);
        None: a run-time number, passed after the pointer.
    alignment : int
        Bytes that divide the pointer and every outer stride (in bytes), so that a vector access at an index that is a
        multiple of ``alignment // itemsize`` on the unit-stride axis is aligned. At least the item size.
    """

    dtype: DType
    extents: tuple[str | int, ...]
    strides: tuple[int | None, ...]
    alignment: int

    def __post_init__(self) -> None:
        if len(self.extents) != len(self.strides):
            raise ValueError(f"buffer: {len(self.extents)} extents but {len(self.strides)} strides")

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.extents)

    def __str__(self) -> str:
        extents = ", ".join(map(str, self.extents))
        strides = ", ".join("?" if stride is None else str(stride) for stride in self.strides)
        return f"buffer {self.dtype}[{extents}] strides ({strides}) align {self.alignment}"


Type = BlockType | BufferType

INDEX = BlockType(dtypes.int64)
BOOLEAN = BlockType(dtypes.boolean)
