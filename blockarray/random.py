"""NumPy's random numbers as arrays of ours: the same streams for the same seeds, drawn on the host when they are asked for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.random as host

from blockarray.fallback import call_numpy

_IN_PLACE = frozenset(("shuffle",))


def _drawing(method: Any, name: str) -> Any:
    if not callable(method):
        return method

    def draw(*arguments: Any, **keywords: Any) -> Any:
        changes = (0,) if name in _IN_PLACE else ()
        return call_numpy(method, arguments, keywords, name=f"random.{name}", changes=changes, by_design=True)

    draw.__name__ = name
    draw.__doc__ = f"``numpy.random``'s `{name}`, as an array of ours."
    return draw


def _drawing_on_the_host(name: str) -> Any:
    """A method, or a property, of the generator of NumPy that one of ours holds."""

    def bound(self: Any) -> Any:
        return _drawing(getattr(self._host, name), name)

    return property(bound, doc=f"As NumPy's `{name}`, with arrays of ours.")


def _delegates(kind: type) -> type:
    """Give a subclass of a generator of NumPy that generator's public names, each on the generator it holds.

    NumPy's own code never runs on the subclass: it would call the overridden methods in the midst of its work.
    """
    base = kind.__mro__[1]
    for name in dir(base):
        if not name.startswith("_") and name not in vars(kind):
            setattr(kind, name, _drawing_on_the_host(name))
    return kind


@_delegates
class Generator(host.Generator):
    """As `numpy.random.Generator`, which it is to others too; its methods return arrays of ours.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
    """

    def __init__(self, bit_generator: host.BitGenerator) -> None:
        self._host = host.Generator(bit_generator)
        super().__init__(self._host.bit_generator)

    def spawn(self, n_children: int) -> list[host.Generator]:
        """Independent generators."""
        return [Generator(one.bit_generator) for one in self._host.spawn(n_children)]

    def __repr__(self) -> str:
        return repr(self._host)

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        return Generator, (self._host.bit_generator,)


def _state_of(generator: host.RandomState) -> "RandomState":
    """A `RandomState` that goes on where NumPy's is."""
    found = RandomState(generator._bit_generator)
    found._host = generator
    return found


@_delegates
class RandomState(host.RandomState):
    """As `numpy.random.RandomState`, which it is to others too; its methods return arrays of ours."""

    def __init__(self, seed: Any = None) -> None:
        self._host = host.RandomState(np.asarray(seed) if hasattr(seed, "asnumpy") else seed)
        super().__init__(self._host._bit_generator)

    def __repr__(self) -> str:
        return repr(self._host)

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        return _state_of, (self._host,)


def default_rng(seed: Any = None) -> Generator:
    """A generator with NumPy's default bits.

    Examples
    --------
    >>> import blockarray as np
    >>> float(np.random.default_rng(1).random())
    0.5118216247002567
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(host.default_rng(np.asarray(seed) if hasattr(seed, "asnumpy") else seed).bit_generator)


BitGenerator = host.BitGenerator
MT19937 = host.MT19937
PCG64 = host.PCG64
PCG64DXSM = host.PCG64DXSM
Philox = host.Philox
SFC64 = host.SFC64
SeedSequence = host.SeedSequence

_legacy: dict[str, Callable[..., Any]] = {
    name: _drawing(getattr(host, name), name)
    for name in dir(host)
    if not name.startswith("_")
    and callable(getattr(host, name))
    and not isinstance(getattr(host, name), type)
    and name != "default_rng"
}
globals().update(_legacy)
