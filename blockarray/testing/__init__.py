"""Check functions against NumPy by property tests.

A function that works on arrays is run under NumPy and under ``blockarray`` on the same inputs, drawn by Hypothesis,
and everything that a caller can see is compared: values by ULP, dtype, shape, exceptions, and the arguments
afterwards.

>>> from blockarray.testing import arrays, assert_matches_numpy
>>> def normalize(xp, x):
...     return (x - xp.mean(x)) / (1 + xp.abs(x).max())
>>> assert_matches_numpy(normalize, arrays("float64", (3, 4), values="moderate"), max_ulp=32, examples=10)

=============================  ================================================================================
name                           what it is
=============================  ================================================================================
`assert_matches_numpy`         runs a function both ways on drawn inputs, and raises where the two differ
`assert_equal_arrays`          compares two arrays, and shows the first differences
`ulp_distance`                 how many representable numbers lie between two arrays' elements
`as_blockarray`                a NumPy array as a ``blockarray`` one, with the same strides
`arrays`                       strategy: arrays of any dtype, shape, layout and special value
`broadcastable_arrays`         strategy: several arrays that broadcast together
`arrays_with_axes`             strategy: an array, and an axis argument for it
`broadcastable_shapes`         strategy: several shapes that broadcast together
`dtypes`, `scalars`, `axes`    strategies: dtypes, numbers, axis arguments
`Arguments`                    several arguments that were drawn together
=============================  ================================================================================

The strategies and `assert_matches_numpy` need Hypothesis: ``pip install 'blockarray[testing]'``. Every name of
``numpy.testing`` can be had from here too, so that ``np.testing.assert_allclose`` is there for a program that says
``import blockarray as np``.
"""

from __future__ import annotations

import importlib
import typing

import numpy.testing

from blockarray.testing.arguments import Arguments
from blockarray.testing.comparison import assert_equal_arrays, ulp_distance
from blockarray.testing.layouts import as_blockarray

if typing.TYPE_CHECKING:
    from blockarray.testing.matching import assert_matches_numpy
    from blockarray.testing.strategies import (
        arrays,
        arrays_with_axes,
        axes,
        broadcastable_arrays,
        broadcastable_shapes,
        dtypes,
        scalars,
    )

__all__ = [
    "Arguments",
    "arrays",
    "arrays_with_axes",
    "as_blockarray",
    "assert_equal_arrays",
    "assert_matches_numpy",
    "axes",
    "broadcastable_arrays",
    "broadcastable_shapes",
    "dtypes",
    "scalars",
    "ulp_distance",
]

# Loaded when first asked for: Hypothesis is an optional package, and takes longer to import than all of this library.
_NEEDS_HYPOTHESIS = {
    "assert_matches_numpy": "matching",
    "arrays": "strategies",
    "arrays_with_axes": "strategies",
    "axes": "strategies",
    "broadcastable_arrays": "strategies",
    "broadcastable_shapes": "strategies",
    "dtypes": "strategies",
    "scalars": "strategies",
}


def __getattr__(name: str) -> object:
    if name in _NEEDS_HYPOTHESIS:
        try:
            module = importlib.import_module(f"blockarray.testing.{_NEEDS_HYPOTHESIS[name]}")
        except ModuleNotFoundError as error:
            if error.name != "hypothesis":
                raise
            raise ImportError(
                f"blockarray.testing.{name} needs Hypothesis, which is not installed: pip install 'blockarray[testing]'",
                name="hypothesis",
            ) from None
        globals()[name] = getattr(module, name)
        return globals()[name]
    if not name.startswith("_") and hasattr(numpy.testing, name):
        return getattr(numpy.testing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *numpy.testing.__all__})
