"""Fragments: blocks as registers, and which register holds which elements."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod

from codegen.errors import InternalCompilerError
from codegen.ir.layout import Layout
from codegen.ir.types import BlockType


@dataclass(frozen=True)
class AxisSplit:
    """How the elements of one axis are spread: ``element = (repeat * lanes + lane) * run + position``.

    Attributes
    ----------
    extent : int
    lanes : int
        Lanes that hold different elements; the other lanes of the axis hold copies.
    run : int
        Neighbours that one lane holds.
    width : int
        Neighbours in one register; more than 1 only on the last axis of the host.
    lane_stride : int
        Difference in lane number between neighbouring lanes of the axis.
    all_lanes : int
        Lanes that the kernel's layout has along the axis.
    group, turns : int
        Lanes that follow one another before the next turn of the same lanes; see `Layout`.
    """

    extent: int
    lanes: int
    run: int
    width: int
    lane_stride: int
    all_lanes: int
    group: int = 1
    turns: int = 1

    @property
    def registers(self) -> int:
        """Registers of one lane along the axis."""
        return self.extent // (self.lanes * self.width)

    def first(self, register: int) -> int:
        """Element that lane 0 holds at the start of a register."""
        if self.width > 1 or self.lanes == 1:
            return register * self.width
        place, position = divmod(register, self.run)
        repeat, turn = divmod(place, self.turns)
        return (repeat * self.lanes * self.turns + turn * self.group) * self.run + position


@dataclass(frozen=True)
class Distribution:
    """The splits of all axes of a block. Registers are numbered row-major over the axes."""

    axes: tuple[AxisSplit, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Registers along each axis."""
        return tuple(axis.registers for axis in self.axes)

    @property
    def registers(self) -> int:
        """Registers of one lane."""
        return prod(self.counts)

    @property
    def width(self) -> int:
        """Elements in a register."""
        return self.axes[-1].width if self.axes else 1

    def coordinates(self) -> list[tuple[int, ...]]:
        """Coordinates of all registers, in order."""
        return list(product(*(range(count) for count in self.counts)))

    def number(self, coordinate: tuple[int, ...]) -> int:
        """Number of the register at a coordinate; coordinates on axes with one register count as 0."""
        result = 0
        for position, count in zip(coordinate, self.counts, strict=True):
            result = result * count + (position if count > 1 else 0)
        return result


def distribute(shape: tuple[int, ...], layout: Layout) -> Distribution:
    """How a block of `shape` is spread under a kernel's layout.

    A block of lower rank belongs to the last axes of the layout; of higher rank, its first axes lie in no lanes.
    """
    missing = len(shape) - layout.rank
    lanes = (1,) * missing + layout.lanes[max(0, -missing) :]
    runs = (1,) * missing + layout.run[max(0, -missing) :]
    groups = (1,) * missing + (layout.group or layout.lanes)[max(0, -missing) :]
    turns = (1,) * missing + (layout.turns or (1,) * layout.rank)[max(0, -missing) :]
    if not shape:
        return Distribution(())
    splits = []
    stride = 1
    for axis in reversed(range(len(shape))):
        width = gcd(shape[axis], layout.register) if axis == len(shape) - 1 else 1
        split = _split(shape[axis], lanes[axis], runs[axis], width, stride)
        splits.append(_in_turns(split, groups[axis], turns[axis]))
        stride *= lanes[axis]
    return Distribution(tuple(reversed(splits)))


def _split(extent: int, lanes: int, run: int, width: int, stride: int) -> AxisSplit:
    if lanes == 1:
        return AxisSplit(extent, 1, extent // width, width, stride, 1)
    if extent & (extent - 1):
        raise InternalCompilerError(
            f"layout: an axis of {extent} elements over {lanes} lanes; expected a power of two, pad the block"
        )
    held = min(run, extent)
    return AxisSplit(extent, min(lanes, extent // held), held, width, stride, lanes)


def _in_turns(split: AxisSplit, group: int, turns: int) -> AxisSplit:
    if turns == 1 or split.lanes == 1:
        return split
    if split.extent % (split.all_lanes * turns * split.run):
        raise InternalCompilerError(
            f"layout: an axis of {split.extent} elements over {split.all_lanes} lanes with {turns} turns each; expected "
            "a multiple of what they hold, or 1"
        )
    return replace(split, group=group, turns=turns)


class Fragment:
    """A block in registers. A register is emitted when it is first asked for.

    So a chain of elementwise operations is emitted one register at a time, from the loads to the store, which keeps few
    values alive. `force` emits the rest where the place matters: before a branch, or before memory is written.
    """

    __slots__ = ("type", "distribution", "_names", "_make")

    def __init__(
        self,
        type_: BlockType,
        distribution: Distribution,
        names: list[str] | None = None,
        make: Callable[[int], str] | None = None,
    ) -> None:
        self.type = type_
        self.distribution = distribution
        self._names: list[str | None] = [None] * distribution.registers if names is None else list(names)
        self._make = make

    @property
    def count(self) -> int:
        """Registers of one lane."""
        return len(self._names)

    def register(self, number: int) -> str:
        """Name of a register, emitted now if it has not been."""
        name = self._names[number]
        if name is not None:
            return name
        if self._make is None:
            raise InternalCompilerError(f"register {number} of a {self.type} was never made")
        name = self._make(number)
        self._names[number] = name
        return name

    def provide(self, number: int, name: str) -> None:
        """State a register that was emitted together with another one."""
        self._names[number] = name

    def has(self, number: int) -> bool:
        """Whether a register has been emitted."""
        return self._names[number] is not None

    def force(self) -> list[str]:
        """Names of all registers."""
        return [self.register(number) for number in range(len(self._names))]
