"""What an emission asks of its target: everything in which a host and a GPU differ below the operations."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.dtypes import DType
from codegen.errors import InternalCompilerError
from codegen.ir.kernel import Kernel
from codegen.ir.operations import DotLoop, Store
from codegen.llvm.core import Register
from codegen.llvm.fragments import AxisSplit
from codegen.llvm.index import Index, multiply
from codegen.target import Target

if TYPE_CHECKING:
    from codegen.llvm.context import EmissionContext

Partial = tuple[Register, ...]
"""One partial result of a combiner: as many registers as the combiner has values."""


@dataclass(frozen=True)
class Combine:
    """A combiner on registers.

    Attributes
    ----------
    merge : callable
        Partial results of earlier and of later elements to one.
    identity : callable
        The partial result that changes nothing, for registers like the given ones.
    symmetric : bool
        The order of the two changes no bit of the result.
    """

    merge: Callable[[Partial, Partial], Partial]
    identity: Callable[[Partial], Partial]
    symmetric: bool


@dataclass(eq=False)
class Memory:
    """A buffer as the emitter sees it.

    Attributes
    ----------
    pointer : str
    space : str
        LLVM's spelling of the address space behind ``ptr``: ``""`` or ``" addrspace(3)"``.
    dtype : DType
    extents, strides : list of Index
        In elements.
    alignment : int
        As in BufferType.
    load_notes, store_notes : str
        Metadata behind loads and stores: who else may touch this memory.
    streamed : bool
        Whole lines that are written need not stay in the caches.
    constant : bool
        Nobody writes it while the kernel runs.
    private : bool
        It belongs to the program (Allocate).
    restrict : bool
        No other buffer overlaps it.
    """

    pointer: str
    space: str
    dtype: DType
    extents: list[Index]
    strides: list[Index]
    alignment: int
    load_notes: str = ""
    store_notes: str = ""
    streamed: bool = False
    constant: bool = False
    private: bool = False
    restrict: bool = True


@dataclass(frozen=True)
class Access:
    """Neighbouring elements of a buffer that one load or store moves.

    Attributes
    ----------
    memory : Memory
    pointer : str
        Of the first element; outside the buffer if the bounds say so.
    count : int
    stride : Index
        Elements between neighbours.
    alignment : int
        Bytes that divide the address.
    inside : str or None
        An i1 that says whether any element is inside the buffer; None: they are.
    first, last : Index or None
        Where only the elements ``first <= position < last`` are inside; None: all, if `inside`.
    """

    memory: Memory
    pointer: str
    count: int
    stride: Index
    alignment: int
    inside: str | None = None
    first: Index | None = None
    last: Index | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all elements are inside, known when compiled."""
        return self.inside is None and self.first is None and self.last is None


class Emission(ABC):
    """One target's hooks; stateless, one object serves all emissions.

    Attributes
    ----------
    fuses_products : bool
        `dot` multiplies and adds in one instruction with one rounding.
    """

    fuses_products: bool = False

    def register_elements(self, kernel: Kernel, target: Target) -> int:
        """Elements of the last axis in one register of a fragment."""
        return kernel.layout.register

    @abstractmethod
    def attributes(self, target: Target) -> str:
        """Attributes of all functions."""

    @abstractmethod
    def begin(self, context: "EmissionContext") -> None:
        """Start the entry function: parameters into `context.values`, program numbers into `context.programs`."""

    @abstractmethod
    def finish(self, context: "EmissionContext") -> None:
        """End the entry function."""

    @abstractmethod
    def lane(self, context: "EmissionContext", axis: AxisSplit) -> Index:
        """Which of the axis' different lanes this one is, in ``0 … axis.lanes - 1``."""

    def lane_start(self, context: "EmissionContext", axis: AxisSplit) -> Index:
        """The first element of the axis that this lane holds."""
        lane = self.lane(context, axis)
        if axis.turns == 1:
            return multiply(context.writer, lane, axis.run)
        if isinstance(lane, int):
            group, inside = divmod(lane, axis.group)
            return (group * axis.turns * axis.group + inside) * axis.run
        shift = axis.group.bit_length() - 1
        group_number = context.once(f"lshr i64 {lane}, {shift}")
        within = context.once(f"and i64 {lane}, {axis.group - 1}")
        start = context.once(f"mul nuw nsw i64 {group_number}, {axis.turns * axis.group}")
        return multiply(context.writer, context.once(f"add nuw nsw i64 {start}, {within}"), axis.run)

    @abstractmethod
    def owner(self, context: "EmissionContext", axes: tuple[AxisSplit, ...]) -> str | None:
        """An i1: this lane stores a block with these axes, lanes with copies of it do not; None if there are none."""

    @abstractmethod
    def accesses_per_load(self, memory: Memory, run: int, alignment: int) -> int:
        """Registers that one access moves, of a run of neighbours at addresses of this alignment; 1 on the host."""

    def loads_early(self, context: "EmissionContext", memory: Memory) -> bool:
        """Whether a load is emitted where it stands, not where a register is first used: on a GPU many must be under way."""
        return False

    @abstractmethod
    def load(self, context: "EmissionContext", access: Access, fill: bool | int | float) -> list[str]:
        """Load; the registers that hold the elements."""

    @abstractmethod
    def store(self, context: "EmissionContext", access: Access, registers: list[str], owner: str | None) -> None:
        """Store the elements."""

    @abstractmethod
    def allocate(self, context: "EmissionContext", dtype: DType, count: int) -> tuple[str, str]:
        """Memory of the program: pointer and address space."""

    def multiply_windows(self, context: "EmissionContext", product: DotLoop) -> None:
        """Define the result of a dot loop by the matmul instruction that it names."""
        raise InternalCompilerError(f"emitter: {context.target.cpu} has no matmul instruction {product.instruction!r}")

    def store_tile(self, context: "EmissionContext", operation: Store) -> bool:
        """Store a block in a way of the target's own; False if it has none for this one."""
        return False

    @abstractmethod
    def reduce_lanes(
        self, context: "EmissionContext", axis: AxisSplit, partials: list[Partial], combine: Combine
    ) -> list[Partial]:
        """Fold partial results over the lanes of an axis; every lane of the axis gets the result."""

    @abstractmethod
    def scan_lanes(
        self, context: "EmissionContext", axis: AxisSplit, partials: list[Partial], combine: Combine
    ) -> tuple[list[Partial], list[Partial]]:
        """For each partial result: the fold of those of earlier lanes of the axis, and that of all its lanes."""

    @abstractmethod
    def barrier(self, context: "EmissionContext") -> None:
        """All lanes of the program arrive before any goes on, and see each other's writes."""
