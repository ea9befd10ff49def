"""Where a program hands arrays of ours to a library that asks for NumPy's own: they are converted on the way in.

Most libraries take anything with NumPy's protocols. pandas asks ``isinstance(key, numpy.ndarray)`` in places, and takes a mask of
ours for a list of labels. Its entry points below get NumPy arrays and numbers in place of ours, from the program's first import of
it on; calls that pass neither are untouched but for a look at their arguments.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from blockarray.ndarray import Scalar, host_value, ndarray

_OF_PANDAS: Final = (
    "unique",
    "factorize",
    "date_range",
    "timedelta_range",
    "period_range",
    "isna",
    "notna",
    "cut",
    "qcut",
)
_OF_BOTH: Final = (
    "__init__", "__getitem__", "__setitem__", "groupby", "head", "tail", "rolling", "sample", "shift", "where", "mask", "isin",
    "fillna", "reindex", "drop", "nlargest", "nsmallest",
)  # fmt: skip
_OF_FRAMES: Final = (*_OF_BOTH, "set_index", "insert", "assign", "pivot_table")
_OF_INDEXERS: Final = ("__getitem__", "__setitem__")
_INDEXERS: Final = ("loc", "iloc", "at", "iat")


def converted(value: Any) -> Any:
    """Arrays and lazy numbers of ours as NumPy's, in lists, tuples, dicts and slices too; all else as it is."""
    if isinstance(value, ndarray):
        return value.numpy_value() if isinstance(value, Scalar) else host_value(value)
    kind = type(value)
    if kind is list or kind is tuple:
        parts = kind(map(converted, value))
        return value if all(map(operator.is_, parts, value)) else parts
    if kind is dict:
        found = {key: converted(one) for key, one in value.items()}
        return value if all(one is value[key] for key, one in found.items()) else found
    if kind is slice:
        return slice(converted(value.start), converted(value.stop), converted(value.step))
    return value


def converting(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, given NumPy's arrays and numbers in place of ours."""

    @functools.wraps(function)
    def entry(*arguments: Any, **keywords: Any) -> Any:
        return function(*map(converted, arguments), **{key: converted(value) for key, value in keywords.items()})

    return entry


def _replace(owner: Any, names: tuple[str, ...]) -> None:
    for name in names:
        function = getattr(owner, name, None)
        if callable(function):
            setattr(owner, name, converting(function))


def _adapt_pandas(pandas: ModuleType) -> None:
    empty = pandas.Series([0])
    _replace(pandas, _OF_PANDAS)
    _replace(pandas.DataFrame, _OF_FRAMES)
    _replace(pandas.Series, _OF_BOTH)
    for name in _INDEXERS:
        _replace(type(getattr(empty, name)), _OF_INDEXERS)


ADAPTERS: Final[dict[str, Callable[[ModuleType], None]]] = {"pandas": _adapt_pandas}
"""What is done to a library when the program's own files first import it."""
