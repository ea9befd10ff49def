"""What makes a lazy value without axes behave as NumPy's scalar of its dtype.

Whoever asks `isinstance` or looks at `__class__` sees NumPy's type; whoever needs a number computes it. Only code that looks at the
object's memory without asking (C extensions that test for exact types) can tell the difference; it raises a TypeError then.
"""

import numbers
from typing import Any

import numpy as np

from codegen.dtypes import DType


class ScalarType(type):
    """The class of lazy scalars of one dtype: equal to NumPy's scalar type, hashed as that, and a dtype like that."""

    numpy_type: type[np.generic]

    @property
    def __name__(cls) -> str:  # type: ignore[override]  # the name that C code puts into messages has the module in it
        return cls.numpy_type.__name__

    @property
    def dtype(cls) -> np.dtype:
        """The dtype of the scalars, so that ``numpy.dtype(type(s))`` finds it."""
        return np.dtype(cls.numpy_type)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.numpy_type

    def __hash__(cls) -> int:
        return hash(cls.numpy_type)


class NumpyScalar:
    """Methods that NumPy's scalars have and arrays have not, or have otherwise."""

    __slots__ = ()

    numpy_type: type[np.generic]

    def __new__(cls, *values: Any) -> Any:
        """As NumPy's type: ``type(s)(3)`` is a scalar of NumPy with that value."""
        return cls.numpy_type(*values)

    def known_value(self) -> np.generic | None:
        """The value if it can be had on the host without computing or moving anything, else None."""
        raise NotImplementedError

    def numpy_value(self) -> Any:
        """The value as NumPy's scalar; computes it."""
        raise NotImplementedError

    # Scalars have no axes to walk along. Without this, Python would try their __getitem__.
    __iter__ = None

    def __hash__(self) -> int:
        return hash(self.numpy_value())

    def __repr__(self) -> str:
        return repr(self.numpy_value())

    def __str__(self) -> str:
        return str(self.numpy_value())

    def __format__(self, specification: str) -> str:
        return format(self.numpy_value(), specification)

    def __bool__(self) -> bool:
        return bool(self.numpy_value())

    def __int__(self) -> int:
        return int(self.numpy_value())

    def __float__(self) -> float:
        return float(self.numpy_value())

    def __complex__(self) -> complex:
        return complex(self.numpy_value())

    def __bytes__(self) -> bytes:
        return bytes(self.numpy_value())

    def __round__(self, digits: int | None = None) -> Any:
        value = self.numpy_value()
        return round(value) if digits is None else round(value, digits)

    def __reduce__(self) -> Any:
        return self.numpy_value().__reduce__()

    def __getattr__(self, name: str) -> Any:
        # What only scalars have: `is_integer`, `as_integer_ratio`, `hex`, `bit_count`, `numerator` …
        kind = self.numpy_type
        if name.startswith("_") or not hasattr(kind, name):
            raise AttributeError(f"'{kind.__module__}.{kind.__name__}' object has no attribute '{name}'")
        return getattr(self.numpy_value(), name)


def scalar_type(row: DType, base: type) -> Any:
    """The class of lazy scalars of a dtype, built on `base`, which is a `NumpyScalar`.

    It has NumPy's name in prints, and its instances say that they are NumPy's.
    """
    kind = row.numpy.type
    contents: dict[str, Any] = {
        "__slots__": (),
        "__module__": kind.__module__,
        "__qualname__": kind.__name__,
        "__doc__": kind.__doc__,
        "__class__": property(lambda self: kind),
        "numpy_type": kind,
    }
    if row.kind in ("signed", "unsigned"):
        contents["__index__"] = lambda self: int(self.numpy_value())
    if kind is np.float64:
        contents["__trunc__"] = lambda self: int(self.numpy_value())
    found = ScalarType(f"{kind.__module__}.{kind.__name__}", (base,), contents)
    if row.kind == "float":
        numbers.Real.register(found)
    elif row.kind != "boolean":
        numbers.Integral.register(found)
    return found
