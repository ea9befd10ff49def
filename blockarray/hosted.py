"""The rest of NumPy's namespace: generated functions that run NumPy on the host, under the fallback policy.

A function that NumPy's own text is best at (sorting, decompositions, sets, files, printing …) is there by design and only warns when it has to move
data from a GPU. Every other one warns.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from blockarray.fallback import call_numpy

# By design: sorting and searching, sets, order statistics, files and text, index arithmetic on shapes, polynomials of a few coefficients,
# contraction by NumPy's own path.
BY_DESIGN = frozenset(
    """
    sort argsort lexsort partition argpartition searchsorted sort_complex unique unique_all unique_counts unique_inverse unique_values
    intersect1d setdiff1d setxor1d union1d isin in1d digitize bincount histogram histogram2d histogramdd histogram_bin_edges
    median percentile quantile nanmedian nanpercentile nanquantile corrcoef cov correlate convolve einsum einsum_path
    nanargmax nanargmin nanvar nanstd
    apply_along_axis apply_over_axes piecewise vectorize frompyfunc gradient ediff1d trapezoid unwrap trim_zeros
    nonzero flatnonzero argwhere insert delete resize kron cross
    load loadtxt genfromtxt fromfile fromstring fromregex frombuffer fromiter save savez savez_compressed savetxt
    array2string array_repr array_str format_float_positional format_float_scientific base_repr binary_repr
    bartlett blackman hamming hanning kaiser i0 poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander
    tri tril_indices tril_indices_from triu_indices triu_indices_from mask_indices diag_indices diag_indices_from ix_ unravel_index
    ravel_multi_index indices meshgrid logspace geomspace fromfunction packbits unpackbits
    datetime_as_string busday_count busday_offset is_busday real_if_close
    """.split()
)

# These change an argument in place.
CHANGES = {"copyto": (0,), "place": (0,), "put": (0,), "putmask": (0,), "fill_diagonal": (0,), "put_along_axis": (0,)}

# These say something about types or settings, or make no arrays: NumPy's own function serves as it is.
AS_THEY_ARE = frozenset(
    """
    broadcast_shapes can_cast common_type finfo iinfo get_include get_printoptions getbufsize geterr geterrcall info isdtype
    issubdtype min_scalar_type mintypecode printoptions promote_types seterr seterrcall set_printoptions setbufsize show_config
    show_runtime test typename datetime_data iterable isfortran nested_iters asmatrix bmat isscalar errstate
    """.split()
)


def hosted(
    function: Callable[..., Any], name: str, by_design: bool, changes: tuple[int, ...] = ()
) -> Callable[..., Any]:
    """`function` of NumPy as one that takes and returns arrays of ours."""

    @functools.wraps(function, updated=())
    def run(*arguments: Any, **keywords: Any) -> Any:
        return call_numpy(function, arguments, keywords, name=name, changes=changes, by_design=by_design)

    return run


def hosted_namespace(native: dict[str, Any]) -> dict[str, Any]:
    """NumPy's main namespace with `native` in place of what it has."""
    found: dict[str, Any] = {}
    for name in dir(np):
        if name.startswith("_") or name in ("core", "f2py", "testing", "linalg", "random", "fft", "matrixlib"):
            continue
        value = getattr(np, name)
        if name in native:
            found[name] = native[name]
        elif isinstance(value, type | ModuleType) or not callable(value) or name in AS_THEY_ARE:
            found[name] = value
        else:
            found[name] = hosted(value, name, name in BY_DESIGN, CHANGES.get(name, ()))
    return found


def hosted_module(name: str, source: ModuleType, own: dict[str, Any], by_design: bool = True) -> ModuleType:
    """A submodule of ours with the public names of NumPy's `source`: functions run on the host, `own` replace them."""
    module = ModuleType(f"blockarray.{name}", f"``numpy.{name}`` for arrays of ours.")
    for attribute in dir(source):
        if attribute.startswith("_"):
            continue
        value = getattr(source, attribute)
        if isinstance(value, type | ModuleType) or not callable(value):
            setattr(module, attribute, value)
        else:
            setattr(module, attribute, hosted(value, f"{name}.{attribute}", by_design))
    for attribute, value in own.items():
        setattr(module, attribute, value)
    return module
