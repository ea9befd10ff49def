"""Accesses: which elements of a value a kernel's points use, and what is needed to compute them."""

from dataclasses import dataclass, replace
from typing import Literal

from blockarray.fusion.index_maps import Strides, split_strides
from blockarray.graph.nodes import Node

# Value number, offset, and strides over the domain.
Access = tuple[int, int, Strides]

Kind = Literal["read", "number", "same", "map", "cast", "iota", "fold", "scan", "take"]


@dataclass(frozen=True)
class Seed:
    """A value that a kernel writes: where it is read from, over the domain, and where its elements go."""

    access: Access
    target: int
    offset: int
    strides: Strides

    def split(self, axis: int, inner: int) -> "Seed":
        """The same over a domain with one axis split."""
        number, offset, strides = self.access
        access = (number, offset, split_strides(strides, axis, inner))
        return replace(self, access=access, strides=split_strides(self.strides, axis, inner))

    def widened(self, axes: int) -> "Seed":
        """The same over a domain with more axes behind, along which nothing changes."""
        number, offset, strides = self.access
        more = (0,) * axes
        return replace(self, access=(number, offset, strides + more), strides=self.strides + more)

    def narrowed(self, rank: int) -> "Seed":
        """The same over the first axes of the domain only."""
        number, offset, strides = self.access
        return replace(self, access=(number, offset, strides[:rank]), strides=self.strides[:rank])


@dataclass(frozen=True)
class Recipe:
    """How a value is computed at an access.

    Attributes
    ----------
    node : Node
    kind : str
        Which statement it becomes; ``"same"`` none.
    operands : tuple of Access
        What is computed before.
    source, offset, strides, position_strides
        Of a ``"take"``: as in `blockarray.fusion.plan.Take`. `strides` of a ``"fold"``: of the position over the folded axes.
    """

    node: Node
    kind: Kind
    operands: tuple[Access, ...] = ()
    source: int = -1
    offset: int = 0
    strides: Strides = ()
    position_strides: Strides = ()
