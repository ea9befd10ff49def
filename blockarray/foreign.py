"""Objects of other libraries: which of NumPy's protocols they have, and whether their code speaks of our arrays or of NumPy's."""

from functools import lru_cache
from types import ModuleType
from typing import Any, Final

import numpy as np

from blockarray.ndarray import Array, ndarray

_ABSENT: Final = object()
_PLAIN: Final = frozenset((int, float, bool, complex, str, bytes, list, tuple, dict, type(None), np.ndarray, np.memmap))

# What NumPy's arrays have: an operand above it has the first word in an operator.
_PRIORITY_OF_ARRAYS: Final = 0.0


@lru_cache(maxsize=1024)
def decides(kind: type) -> bool:
    """Whether operands of this kind decide what a ufunc does: they have an ``__array_ufunc__``, or are a subclass of NumPy's array."""
    if kind in _PLAIN or issubclass(kind, ndarray | np.generic):
        return False
    return issubclass(kind, np.ndarray) or hasattr(kind, "__array_ufunc__")


@lru_cache(maxsize=1024)
def takes_no_ufunc(kind: type) -> bool:
    """Whether the kind says ``__array_ufunc__ = None``: its reflected operators run, and ufuncs refuse it."""
    return getattr(kind, "__array_ufunc__", _ABSENT) is None


@lru_cache(maxsize=1024)
def goes_first(kind: type) -> bool:
    """Whether an operator asks an operand of this kind first, by the older protocol of ``__array_priority__``."""
    if kind in _PLAIN or issubclass(kind, ndarray | np.generic) or hasattr(kind, "__array_ufunc__"):
        return False
    priority = getattr(kind, "__array_priority__", None)
    return isinstance(priority, int | float) and priority > _PRIORITY_OF_ARRAYS


@lru_cache(maxsize=1024)
def speaks_ours(kind: type, method: str) -> bool:
    """Whether the code of a kind's `method` knows our arrays: its module has imported this library, by its name or as ``numpy``.

    Such code asks ``isinstance(x, np.ndarray)`` of our class, so NumPy's arrays would be strange to it, as ours are to other code.
    """
    function = getattr(kind, method, None)
    namespace = getattr(function, "__globals__", {})
    return any(
        one is Array or (isinstance(one, ModuleType) and vars(one).get("ndarray") is Array)
        for one in tuple(namespace.values())
    )


@lru_cache(maxsize=1024)
def _converts_itself(kind: type) -> bool:
    return kind not in _PLAIN and not issubclass(kind, ndarray | np.ndarray | np.generic) and hasattr(kind, "__array__")


def gives_ours(value: Any) -> bool:
    """Whether ``__array__`` of a foreign object is written with arrays of ours, which NumPy would not take from it."""
    kind = type(value)
    return _converts_itself(kind) and speaks_ours(kind, "__array__")


def array_given(value: Any) -> Any:
    """What a foreign object's ``__array__`` gives, an array of ours or of NumPy's; anything else is returned as it is."""
    if not _converts_itself(type(value)):
        return value
    found = value.__array__()
    if not isinstance(found, ndarray | np.ndarray):
        raise ValueError("object __array__ method not producing an array")
    return found
