"""NumPy's random numbers as arrays of ours: the same streams for the same seeds, drawn on the host when they are asked for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.random as host

from blockarray.fallback import call_numpy

_IN_PLACE = frozenset(("shuffle",))


class Generator:
    """As `numpy.random.Generator`; its methods return arrays of ours.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
    """

    def __init__(self, bit_generator: host.BitGenerator) -> None:
        self._host = host.Generator(bit_generator)

    @property
    def bit_generator(self) -> host.BitGenerator:
        """Where the bits come from."""
        return self._host.bit_generator

    def spawn(self, n_children: int) -> list["Generator"]:
        """Independent generators."""
        return [Generator(one.bit_generator) for one in self._host.spawn(n_children)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _drawing(getattr(self._host, name), name)

    def __dir__(self) -> list[str]:
        return dir(self._host)

    def __repr__(self) -> str:
        return repr(self._host)

    def __reduce__(self) -> tuple:
        return Generator, (self._host.bit_generator,)


class RandomState:
    """As `numpy.random.RandomState`; its methods return arrays of ours."""

    def __init__(self, seed: Any = None) -> None:
        self._host = host.RandomState(seed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _drawing(getattr(self._host, name), name)

    def __dir__(self) -> list[str]:
        return dir(self._host)


def _drawing(method: Any, name: str) -> Any:
    if not callable(method):
        return method

    def draw(*arguments: Any, **keywords: Any) -> Any:
        changes = (0,) if name in _IN_PLACE else ()
        return call_numpy(method, arguments, keywords, name=f"random.{name}", changes=changes, by_design=True)

    draw.__name__ = name
    draw.__doc__ = f"``numpy.random``'s `{name}`, as an array of ours."
    return draw


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
