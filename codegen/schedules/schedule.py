"""What a schedule is, and what it is chosen from."""

from dataclasses import dataclass
from math import prod
from typing import Literal

from codegen.ir.layout import Layout

Strategy = Literal["whole", "streaming", "columns"]


@dataclass(frozen=True)
class Access:
    """One buffer that a kernel reads or writes.

    Attributes
    ----------
    itemsize : int
        Bytes of one element.
    strides : tuple of int
        Elements from one point of the domain to the next along each axis; 0 where the access does not vary.
    offset : int
        Elements from an aligned address to the point 0.
    written : bool
    """

    itemsize: int
    strides: tuple[int, ...]
    offset: int = 0
    written: bool = False


@dataclass(frozen=True)
class Problem:
    """What has to be known of a kernel to choose its sizes.

    Attributes
    ----------
    extents : tuple of int
        Of the domain's axes, the last one innermost in memory.
    reduced : tuple of bool
        Axes that folds run along.
    pieces : tuple of int
        Elements of one piece of an axis that is cut over programs; 0 for the other axes.
    accesses : tuple of Access
    element_bits : int
        Width of the elements that most work is done on.
    cost : float
        Work for one point, in additions.
    passes : int
        How often the reduced axes are gone over: 1 more than the folds that depend on one another, if something is
        computed for each point behind the last one.
    folds : int
        Accumulators that are alive at the same time, at most.
    running : bool
        There is a running fold, so the innermost axis has to be gone over in order.
    sums : bool
        A fold rounds, so its error grows with the length of the chain of additions.
    kept_bytes : int
        For one point: bytes of what is costly, computed in one pass and needed again in a later one.
    gathers : bool
        A fold takes several elements at a time for less than one after the other (`Combiner.gather`).
    """

    extents: tuple[int, ...]
    reduced: tuple[bool, ...]
    accesses: tuple[Access, ...]
    element_bits: int
    cost: float
    pieces: tuple[int, ...] = ()
    passes: int = 1
    folds: int = 0
    running: bool = False
    sums: bool = False
    kept_bytes: int = 0
    gathers: bool = False

    @property
    def rank(self) -> int:
        """Axes of the domain."""
        return len(self.extents)

    @property
    def points(self) -> int:
        """Points of the domain."""
        return prod(self.extents)

    @property
    def kept_points(self) -> int:
        """Points of the axes that are not reduced."""
        return prod(extent for extent, reduced in zip(self.extents, self.reduced, strict=True) if not reduced)

    @property
    def reduced_axes(self) -> tuple[int, ...]:
        """Numbers of the reduced axes."""
        return tuple(axis for axis, reduced in enumerate(self.reduced) if reduced)

    @property
    def kept_axes(self) -> tuple[int, ...]:
        """Numbers of the other axes."""
        return tuple(axis for axis, reduced in enumerate(self.reduced) if not reduced)

    def whole_tile(self) -> list[int]:
        """One point of the other axes with all of the reduced ones."""
        return [padded(self.extents[axis]) if self.reduced[axis] else 1 for axis in range(self.rank)]

    def reach(self, axis: int) -> int:
        """Elements of an axis that one program goes over at most."""
        piece = self.pieces[axis] if self.pieces else 0
        return min(piece, self.extents[axis]) if piece else self.extents[axis]


@dataclass(frozen=True)
class Schedule:
    """How a kernel is cut into programs, and what a program works on at a time.

    Attributes
    ----------
    strategy : {"whole", "streaming", "columns"}
        A program holds its whole part of the reduced axes at once; goes over them tile by tile; or does so for many
        columns, whose accumulators lie in memory.
    tile : tuple of int
        Elements of each axis in one block.
    tail : tuple of int
        The same for what is left of the blocked reduced axis behind the last full tile.
    lanes, run, register : tuple of int, tuple of int, int
        See `Layout`.
    blocked : int
        The reduced axis that a streaming program goes over in tiles; -1 if there is none.
    deferred : bool
        Accumulators keep the tile's extent along the blocked axis, and are folded along it once at the end; else each
        tile is folded when it is read.
    steps : int
        Tiles that go into a fresh accumulator before it is added to the total; 1 if they all go into one.
    windows : int
        Tiles that are loaded side by side and folded together before they go into accumulators; 1 if each goes by itself.
    width : int
        Columns of one program of the strategy "columns".
    kept_elements : int
        Capacity of the program's memory for a row of values that a later pass needs again; 0 if they are recomputed.
    reasons : tuple of str
        Why these sizes; for people.
    """

    strategy: Strategy
    tile: tuple[int, ...]
    tail: tuple[int, ...]
    lanes: tuple[int, ...]
    run: tuple[int, ...]
    register: int = 1
    blocked: int = -1
    deferred: bool = True
    steps: int = 1
    windows: int = 1
    width: int = 0
    kept_elements: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def layout(self) -> Layout:
        """The kernel's layout."""
        return Layout(self.lanes, self.run, self.register)

    def __str__(self) -> str:
        parts = [f"{self.strategy} tile {'x'.join(map(str, self.tile))}", str(self.layout)]
        if self.steps > 1:
            parts.append(f"{self.steps} tiles to an accumulator")
        if self.windows > 1:
            parts.append(f"{self.windows} tiles side by side")
        if self.width:
            parts.append(f"{self.width} columns a program")
        if self.kept_elements:
            parts.append(f"up to {self.kept_elements} values of a row kept")
        return ", ".join(parts)


def power_of_two_from(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(0, number - 1).bit_length()


def power_of_two_to(number: int) -> int:
    """The largest power of two that is not above `number`, which is at least 1."""
    return 1 << (max(1, number).bit_length() - 1)


def padded(extent: int) -> int:
    """The tile that holds a whole reduced axis; above 1, so that a mask tells whether there is any element."""
    return max(2, power_of_two_from(extent))
