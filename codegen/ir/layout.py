"""Layout: which lane and which register hold which element of a block."""

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Layout:
    """Distribution of a block over the lanes of a program and their registers.

    Along axis k an element index splits as ``(repeat * lanes[k] + lane) * run[k] + position``: a lane holds runs of
    `run[k]` neighbours, lanes follow one another, and the pattern repeats until the block is covered. Lanes are numbered
    row-major over the axes, the last axis fastest. On the host there is one lane, and a register holds `register`
    neighbours of the last axis; on a GPU a register holds one element.

    An axis of extent 1 in a block whose layout has more lanes there is *replicated*: every lane of that axis holds it.

    With `group` and `turns`, the lanes of an axis come in groups of neighbours that take several turns before the next
    group's elements start: the index splits as ``(((repeat * groups + group) * turns + turn) * group_lanes + lane_in_group)
    * run + position``. That is how matrix instructions spread the rows of their accumulators.

    Attributes
    ----------
    lanes : tuple of int
        Lanes along each axis, powers of two.
    run : tuple of int
        Neighbouring elements that one lane holds along each axis, powers of two.
    register : int
        Elements of the last axis in one machine register (the host's vector width; 1 on a GPU).
    group : tuple of int
        Lanes of each axis that follow one another in one group; empty: all of them.
    turns : tuple of int
        Turns of each axis' groups; empty: one.
    """

    lanes: tuple[int, ...]
    run: tuple[int, ...]
    register: int = 1
    group: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.group) != len(self.turns) or len(self.group) not in (0, len(self.lanes)):
            raise ValueError(
                f"layout: {len(self.lanes)} axes, but {len(self.group)} groups and {len(self.turns)} turns"
            )
        if len(self.lanes) != len(self.run):
            raise ValueError(f"layout: {len(self.lanes)} axes of lanes but {len(self.run)} of runs")
        for count in (*self.lanes, *self.run, self.register, *self.group, *self.turns):
            if count < 1 or count & (count - 1):
                raise ValueError(f"layout: {count} is not a power of two")

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.lanes)

    @property
    def lane_count(self) -> int:
        """Lanes of the whole program."""
        return prod(self.lanes)

    def __str__(self) -> str:
        lanes = "x".join(map(str, self.lanes))
        run = "x".join(map(str, self.run))
        text = f"lanes {lanes} run {run} register {self.register}"
        if not self.group:
            return text
        return f"{text} group {'x'.join(map(str, self.group))} turns {'x'.join(map(str, self.turns))}"
