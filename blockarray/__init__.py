"""A NumPy-compatible array library backed by generated kernels: ``import blockarray as np``."""

import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as _numpy

from blockarray import composed as _composed
from blockarray import creation as _creation
from blockarray import indexing as _indexing
from blockarray import iteration as _iteration
from blockarray import joining as _joining
from blockarray import json_output as _json_output  # teaches `json` lazy numbers
from blockarray import layout as _layout
from blockarray import manipulation as _manipulation
from blockarray import methods as _methods
from blockarray import placing as _placing
from blockarray import products as _products
from blockarray import random
from blockarray import ranges as _ranges
from blockarray import rearranging as _rearranging
from blockarray import reductions as _reductions
from blockarray import scattering as _scattering  # gives ufuncs their methods
from blockarray import selection as _selection
from blockarray import ufunc_methods as _ufunc_methods  # gives ufuncs their methods
from blockarray.execution.device import device, set_device
from blockarray.explanation import explain
from blockarray.fallback import HostFallbackError, HostFallbackWarning, set_fallback_policy
from blockarray.hosted import hosted_module as _hosted_module
from blockarray.hosted import hosted_namespace as _hosted_namespace
from blockarray.interop import from_dlpack
from blockarray.interop import register_namespace as _register_namespace
from blockarray.language import kernel
from blockarray.ndarray import Array as ndarray
from blockarray.ndarray import evaluate, synchronize
from blockarray.reporting import explain_run, kernel_log, statistics_of_run
from blockarray.ufuncs import UFUNCS as _UFUNCS
from blockarray.ufuncs import UFunc as ufunc

__version__ = "0.1.0"
__array_api_version__ = "2024.12"

_native: dict[str, Any] = {}
for _module in (
    _creation,
    _ranges,
    _manipulation,
    _joining,
    _rearranging,
    _selection,
    _placing,
    _layout,
    _iteration,
    _indexing,
    _products,
    _reductions,
    _composed,
):
    _native.update(
        {
            _name: _value
            for _name, _value in vars(_module).items()
            if not _name.startswith("_") and getattr(_value, "__module__", None) == _module.__name__
        }
    )
_native.update(_UFUNCS)
_native.update({"ndarray": ndarray, "ufunc": ufunc, "from_dlpack": from_dlpack})
_namespace = _hosted_namespace(_native)
globals().update(_namespace)

linalg: ModuleType = _hosted_module(
    "linalg",
    _numpy.linalg,
    {
        "matmul": _products.matmul,
        "tensordot": _products.tensordot,
        "vecdot": _products.vecdot,
        "matrix_transpose": _manipulation.matrix_transpose,
        "diagonal": _selection.diagonal,
        "trace": _selection.trace,
    },
)
fft: ModuleType = _hosted_module("fft", _numpy.fft, {})
lib: ModuleType = _hosted_module("lib", _numpy.lib, {})
lib.stride_tricks = _hosted_module(  # type: ignore[attr-defined]
    "lib.stride_tricks",
    _numpy.lib.stride_tricks,
    {"as_strided": _layout.as_strided, "sliding_window_view": _layout.sliding_window_view},
)
for _name in ("linalg", "fft", "lib"):
    sys.modules[f"blockarray.{_name}"] = globals()[_name]
_register_namespace(_namespace, {"linalg": linalg, "fft": fft, "lib.stride_tricks": lib.stride_tricks})
_methods.register_module(sys.modules[__name__])
_methods.register_explainer(explain)


def __getattr__(name: str) -> Any:
    """`testing` is imported when it is first asked for: it needs Hypothesis, which is optional."""
    if name == "testing":
        return importlib.import_module("blockarray.testing")
    raise AttributeError(f"module 'blockarray' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(name for name in {*globals(), "testing"} if not name.startswith("_") or name.startswith("__"))
