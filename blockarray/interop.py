"""How others meet our arrays: NumPy's own functions, the array API, DLPack."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from blockarray.creation import asarray
from blockarray.fallback import call_numpy, from_host
from blockarray.foreign import takes_no_ufunc
from blockarray.ndarray import borrowed_value, host_value, ndarray
from blockarray.ufuncs import UFUNCS
from codegen import dtypes

_by_name: dict[str, Any] = {}
_PLAIN = frozenset((bool, int, float, *(dtype.numpy.type for dtype in dtypes.ALL)))


def register_namespace(namespace: Mapping[str, Any], modules: Mapping[str, Any]) -> None:
    """Tell the NumPy protocols which functions are ours."""
    _by_name.update(namespace)
    for prefix, module in modules.items():
        for name in dir(module):
            _by_name[f"{prefix}.{name}"] = getattr(module, name)


def array_ufunc(self: ndarray, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
    """NumPy's ufuncs on arrays of ours are ours."""
    if method == "__call__" and not keywords and ufunc.__name__ in UFUNCS:
        # The path of ``numpy.float64(2) * x``.
        if all(type(one) in _PLAIN or isinstance(one, ndarray) for one in inputs):
            return UFUNCS[ufunc.__name__](*inputs)
    if any(takes_no_ufunc(type(one)) for one in (*inputs, *keywords.get("out", ()))):
        return NotImplemented
    own = UFUNCS.get(ufunc.__name__) or _by_name.get(ufunc.__name__)
    out = keywords.get("out")
    if own is None or (out is not None and any(isinstance(one, np.ndarray) for one in out)):
        if out is not None and not any(isinstance(one, ndarray) for one in out):
            hosted = [borrowed_value(one) if isinstance(one, ndarray) else one for one in inputs]
            return getattr(ufunc, method)(*hosted, **keywords)
        return call_numpy(getattr(ufunc, method), inputs, keywords, name=ufunc.__name__)
    if out is not None and len(out) == 1:
        keywords["out"] = out[0]
    if method == "__call__":
        return own(*inputs, **keywords)
    return getattr(own, method)(*inputs, **keywords)


def array_function(self: ndarray, function: Callable[..., Any], types: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """NumPy's functions on arrays of ours are ours, if they have one."""
    name = f"{function.__module__.removeprefix('numpy').lstrip('.')}.{function.__name__}".lstrip(".")
    own = _by_name.get(name) or _by_name.get(function.__name__)
    if own is not None and own is not function:
        return own(*args, **kwargs)
    return call_numpy(function, args, kwargs)


def dlpack(
    self: ndarray, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """A DLPack capsule over a copy of the value on the host."""
    if copy is False:
        raise BufferError(
            "memory cannot be shared, since recorded expressions must not see later writes: expected copy=None or True"
        )
    return host_value(self).__dlpack__(max_version=max_version)


def dlpack_device(self: ndarray) -> tuple[int, int]:
    """The host."""
    return (1, 0)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Any:
    """An array with the value of one that has ``__dlpack__``."""
    if isinstance(x, ndarray):
        return asarray(x, device=device, copy=copy)
    return from_host(np.array(np.from_dlpack(x)))


def length_hint(self: ndarray) -> int:
    """As len."""
    return operator.index(len(self))
