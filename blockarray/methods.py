"""Installs functions as methods and properties of `ndarray`."""

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from blockarray import (
    assignment,
    composed,
    indexing,
    layout,
    manipulation,
    placing,
    products,
    rearranging,
    reductions,
    selection,
)
from blockarray.fallback import call_numpy, replace_value
from blockarray.interop import array_function, array_ufunc, dlpack, dlpack_device
from blockarray.ndarray import (
    Array,
    copy_of,
    host_value,
    ndarray,
    to_device,
)
from blockarray.overrides import NO_WORD, met
from blockarray.ufuncs import as_operand


class FlatIterator:
    """One-dimensional access to an array's elements in row-major order, as NumPy's ``flat``."""

    def __init__(self, array: ndarray) -> None:
        self.base = array
        self._position = 0

    @property
    def index(self) -> int:
        """How many elements were taken."""
        return self._position

    @property
    def coords(self) -> tuple[int, ...]:
        """The index of the element that is taken next."""
        position, found = self._position, []
        for extent in reversed(self.base.shape[1:]):
            position, place = divmod(position, extent)
            found.append(place)
        return (position, *reversed(found)) if self.base.shape else ()

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._position >= self.base.size:
            raise StopIteration
        self._position += 1
        return manipulation.ravel(self.base)[self._position - 1]

    def __getitem__(self, key: Any) -> Any:
        found = manipulation.ravel(self.base)[key]
        return copy_of(found) if isinstance(found, ndarray) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        positions = np.arange(self.base.size)[key]
        if np.ndim(positions):
            placing.put(self.base, positions, value)
            return
        if np.ndim(value):
            raise ValueError("Error setting single item of array.")
        assignment.setitem(self.base, tuple(map(int, np.unravel_index(positions, self.base.shape))), value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(manipulation.flatten(self.base), dtype)

    def copy(self) -> ndarray:
        """A flattened copy."""
        return manipulation.flatten(self.base)


def _fill(self: ndarray, value: Any) -> None:
    """Set every element to `value`."""
    assignment.setitem(self, ..., value)


def _copy(self: ndarray, order: str = "C") -> ndarray:
    """A new array with the same value."""
    return copy_of(self, order)


def _compress(self: ndarray, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """Slices along an axis where `condition` holds."""
    return selection.compress(condition, self, axis, out)


def _sort(self: ndarray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """Sort in place."""
    host = host_value(self)
    host.sort(axis=axis, kind=kind, stable=stable)
    replace_value(self, host)


def _partition(self: ndarray, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    """Partition in place."""
    host = host_value(self)
    host.partition(kth, axis, kind)  # type: ignore[call-overload]
    replace_value(self, host)


def _resize(self: ndarray, *new_shape: Any, refcheck: bool = True) -> None:
    """Change shape and size in place; without a shape nothing changes."""
    if not new_shape or new_shape == (None,):
        return
    shape = new_shape[0] if len(new_shape) == 1 and not isinstance(new_shape[0], int) else new_shape
    host = host_value(self)
    host.resize(shape, refcheck=False)
    fresh = as_operand(host)
    self._cell, self._shape, self._view, self._base = fresh._cell, fresh._shape, fresh._view, None


def _byteswap(self: ndarray, inplace: bool = False) -> ndarray:
    """Bytes of each element in the other order."""
    swapped = host_value(self).byteswap()
    if inplace:
        replace_value(self, swapped)
        return self
    return as_operand(swapped)


def _setflags(self: ndarray, write: Any = None, align: Any = None, uic: Any = None) -> None:
    """Set whether elements may be assigned."""
    if uic:
        raise ValueError("cannot set WRITEBACKIFCOPY flag to True")
    if write is not None:
        layout.Flags(self).writeable = bool(write)


def _tofile(self: ndarray, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the elements to a file."""
    host_value(self).tofile(fid, sep, format)


def _dump(self: ndarray, file: Any) -> None:
    """Pickle to a file."""
    host_value(self).dump(file)


def _dumps(self: ndarray) -> bytes:
    """Pickle to bytes."""
    return host_value(self).dumps()


def _setfield(self: ndarray, value: Any, dtype: Any, offset: int = 0) -> None:
    """Set a field of each element."""
    assignment.setitem(layout.getfield(self, dtype, offset), ..., value)


def _hosted_method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: ndarray, *arguments: Any, **keywords: Any) -> Any:
        return call_numpy(function, (self, *arguments), keywords, name=name, by_design=True)

    method.__name__ = name
    method.__doc__ = function.__doc__
    return method


def _conjugate(self: ndarray) -> ndarray:
    """The array itself: real numbers are their own conjugates."""
    return self


def _set_real(self: ndarray, value: Any) -> None:
    assignment.setitem(self, ..., value)


def _set_imag(self: ndarray, value: Any) -> None:
    raise TypeError("array does not have imaginary part to set")


def _set_flat(self: ndarray, value: Any) -> None:
    FlatIterator(self)[:] = value


def _mT(self: ndarray) -> ndarray:
    if self.ndim < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    return manipulation.swapaxes(self, -1, -2)


def _data(self: ndarray) -> memoryview:
    # A copy: what cannot be written cannot lose a write.
    return memoryview(host_value(self)).toreadonly()


def _ctypes(self: ndarray) -> Any:
    raise AttributeError(
        "a blockarray.ndarray gives no pointer to its memory, whose value may not be computed yet: use asnumpy().ctypes"
    )


def _namespace(self: ndarray, *, api_version: str | None = None) -> Any:
    return _namespace_module[0]


_namespace_module: list[Any] = []


def register_module(module: Any) -> None:
    """Tell ``__array_namespace__`` which module the namespace is."""
    _namespace_module[:] = [module]


def _matmul_operator(self: ndarray, other: Any) -> Any:
    answer = met(products.matmul, np.matmul, operator.matmul, "__rmatmul__", (self, other), reflected=False)
    return products.matmul(self, other) if answer is NO_WORD else answer


def _reflected_matmul(self: ndarray, other: Any) -> Any:
    answer = met(products.matmul, np.matmul, operator.matmul, "__rmatmul__", (other, self), reflected=True)
    return products.matmul(other, self) if answer is NO_WORD else answer


def _in_place_matmul(self: ndarray, other: Any) -> Any:
    return products.matmul(self, other, out=self)


def _explain(self: ndarray) -> Any:
    """The kernels that computing this array will take."""
    return _explainer[0](self)


_explainer: list[Callable[..., Any]] = []


def register_explainer(explainer: Callable[..., Any]) -> None:
    """Tell arrays how to explain themselves."""
    _explainer[:] = [explainer]


def install() -> None:
    """Give `ndarray` its methods and properties."""
    for name in (
        "sum",
        "prod",
        "max",
        "min",
        "any",
        "all",
        "mean",
        "var",
        "std",
        "argmax",
        "argmin",
        "cumsum",
        "cumprod",
    ):
        # Without the question whether the array is of another library.
        setattr(ndarray, name, inspect.unwrap(getattr(reductions, name)))
    for name in ("reshape", "ravel", "flatten", "transpose", "swapaxes", "squeeze", "astype"):
        setattr(ndarray, name, getattr(manipulation, name))
    for name in ("take", "choose", "diagonal", "trace", "nonzero"):
        setattr(ndarray, name, getattr(selection, name))
    ndarray.clip = selection.clip_method  # type: ignore[attr-defined]
    ndarray.repeat = rearranging.repeat  # type: ignore[attr-defined]
    for name in ("argsort", "searchsorted", "argpartition"):
        setattr(ndarray, name, _hosted_method(name))
    plain: dict[str, Callable[..., Any]] = {
        "round": composed.round, "view": layout.view, "put": placing.put, "dot": products.dot, "fill": _fill, "copy": _copy, "compress": _compress, "sort": _sort, "partition": _partition, "resize": _resize,
        "byteswap": _byteswap, "setflags": _setflags, "tofile": _tofile, "dump": _dump, "dumps": _dumps, "getfield": layout.getfield,
        "setfield": _setfield, "to_device": to_device, "explain": _explain, "__getitem__": indexing.getitem,
        "__array_ufunc__": array_ufunc, "__array_function__": array_function, "__array_namespace__": _namespace,
        "__dlpack__": dlpack, "__dlpack_device__": dlpack_device,
        "__matmul__": _matmul_operator, "__rmatmul__": _reflected_matmul,
    }  # fmt: skip
    for name, function in plain.items():
        setattr(ndarray, name, function)
    Array.__new__ = layout.make  # type: ignore[method-assign, assignment]
    Array.__setitem__ = assignment.setitem  # type: ignore[method-assign]
    Array.__imatmul__ = _in_place_matmul  # type: ignore[attr-defined]
    for name in ("conj", "conjugate"):
        setattr(ndarray, name, _conjugate)
    properties: dict[str, property] = {
        "T": property(lambda self: manipulation.transpose(self)),
        "mT": property(_mT),
        "flags": property(layout.Flags),
        "flat": property(FlatIterator),
        "real": property(lambda self: self),
        "imag": property(composed.imag),
        "data": property(_data),
        "ctypes": property(_ctypes),
    }
    for name, value in properties.items():
        setattr(ndarray, name, value)
    # What is assigned to is an array: scalars never change.
    assigned: dict[str, property] = {
        "flat": property(FlatIterator, _set_flat),
        "real": property(lambda self: self, _set_real),
        "imag": property(composed.imag, _set_imag),
        "shape": property(layout.shape_of, layout.set_shape),
        "dtype": property(layout.dtype_of, layout.set_dtype),
        "strides": property(layout.strides_of, layout.set_strides),
    }
    for name, value in assigned.items():
        setattr(Array, name, value)


install()
