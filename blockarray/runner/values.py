"""The arrays, numbers and texts that a program left in its globals: found, stored on disk, loaded one at a time."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy

_PLAIN_TYPES = (bool, int, float, complex, str, bytes)

_MAXIMUM_DEPTH = 8
_MAXIMUM_ITEMS = (
    10_000  # of one list, tuple or dictionary: beyond that, comparing item by item takes longer than the program
)


@dataclass(frozen=True)
class Unreadable:
    """An array that could not be computed: reading it raised ``explanation``."""

    explanation: str


Value = numpy.ndarray | bool | int | float | complex | str | bytes | Unreadable


def collect(
    namespace: Mapping[str, object], array_type: type, own_modules: frozenset[str]
) -> Iterator[tuple[str, Value]]:
    """Every array, number and text in ``namespace``, with the path that leads to it.

    Parameters
    ----------
    namespace : mapping
        A module's globals. Names that begin with an underscore are private and left out.
    array_type : type
        The class of arrays beside NumPy's own; it is converted by ``numpy.asarray``.
    own_modules : frozenset of str
        Names of the program's own modules: the attributes of instances of their classes are looked into.

    Yields
    ------
    path : str
        For instance ``"weights"``, ``"layers[0].bias"`` or ``"table['mean']"``.
    value : ndarray, number, str, bytes or Unreadable
        NumPy's scalars come as arrays of no dimension, so that they can be told from Python's numbers.
    """
    collector = _Collector(array_type, own_modules)
    for name, value in namespace.items():
        if not name.startswith("_"):
            yield from collector.walk(name, value, 0)


class _Collector:
    def __init__(self, array_type: type, own_modules: frozenset[str]) -> None:
        self._array_type = array_type
        self._own_modules = own_modules
        self._open: set[int] = set()  # containers that are being walked: one that holds itself ends there

    def walk(self, path: str, value: object, depth: int) -> Iterator[tuple[str, Value]]:
        if isinstance(value, (self._array_type, numpy.ndarray, numpy.generic)):
            yield from self._array(path, value, depth)
        elif isinstance(value, _PLAIN_TYPES):
            yield path, value
        elif depth < _MAXIMUM_DEPTH and id(value) not in self._open:
            self._open.add(id(value))
            yield from self._items(path, value, depth + 1)
            self._open.discard(id(value))

    def _array(self, path: str, value: object, depth: int) -> Iterator[tuple[str, Value]]:
        try:
            array = numpy.asarray(value)
        except Exception as error:  # whatever it is, it is what a reader of this array would have met
            yield path, Unreadable(f"{type(error).__name__}: {error}")
            return
        if not array.dtype.hasobject:
            yield path, array
            return
        for index, item in enumerate(array.ravel().tolist()[:_MAXIMUM_ITEMS]):
            yield from self.walk(f"{path}.flat[{index}]", item, depth + 1)

    def _items(self, path: str, value: object, depth: int) -> Iterator[tuple[str, Value]]:
        if isinstance(value, (list, tuple)):
            for index, item in enumerate(value[:_MAXIMUM_ITEMS]):
                yield from self.walk(f"{path}[{index}]", item, depth)
        elif isinstance(value, dict):
            for key, item in list(value.items())[:_MAXIMUM_ITEMS]:
                if isinstance(key, (*_PLAIN_TYPES, tuple)):
                    yield from self.walk(f"{path}[{key!r}]", item, depth)
        elif type(value).__module__ in self._own_modules and not isinstance(value, (type, ModuleType)):
            for name, item in list(getattr(value, "__dict__", {}).items()):
                yield from self.walk(f"{path}.{name}", item, depth)


def store(values: Iterator[tuple[str, Value]], file: Path) -> dict[str, int]:
    """Write ``values`` to ``file`` one after another.

    Returns
    -------
    dict
        Where each path's value begins, for `load`.
    """
    offsets: dict[str, int] = {}
    with file.open("wb") as stream:
        for path, value in values:
            offsets[path] = stream.tell()
            pickle.dump(value, stream, protocol=5)
    return offsets


def load(file: Path, offset: int) -> Value:
    """The value that `store` wrote at ``offset`` of ``file``."""
    with file.open("rb") as stream:
        stream.seek(offset)
        value: Value = pickle.load(stream)
    return value
