"""numpy.nditer over arrays of ours: on their values, which are written back when it ends."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from blockarray.fallback import replace_value
from blockarray.ndarray import borrowed_value, host_value, ndarray

_WRITING: Final = frozenset(("readwrite", "writeonly"))


class nditer:
    """NumPy's iterator. What it writes to arrays of ours they have when it is exhausted, or closed, or its ``with`` block is left.

    Examples
    --------
    >>> import blockarray as np
    >>> x = np.arange(3)
    >>> with np.nditer(x, op_flags=["readwrite"]) as elements:
    ...     for element in elements:
    ...         element[...] = 2 * element
    >>> x
    array([0, 2, 4])
    """

    def __init__(self, op: Any, flags: Any = None, op_flags: Any = None, *rest: Any, **keywords: Any) -> None:
        several = isinstance(op, list | tuple)
        operands = list(op) if several else [op]
        self._written: list[tuple[ndarray, np.ndarray]] = []
        for number, one in enumerate(operands):
            if not isinstance(one, ndarray):
                continue
            if not _writes(op_flags, number):
                operands[number] = borrowed_value(one)
                continue
            if not one._writeable:
                raise ValueError("output array is read-only")
            host = operands[number] = host_value(one)
            self._written.append((one, host))
        self._iterator = np.nditer(tuple(operands) if several else operands[0], flags, op_flags, *rest, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)

    def __getitem__(self, key: Any) -> Any:
        return self._iterator[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._iterator[key] = value

    def __len__(self) -> int:
        return len(self._iterator)

    def __enter__(self) -> "nditer":
        self._iterator.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._iterator.__exit__(*exception)
        self._write_back()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._iterator)
        except StopIteration:
            self._write_back()
            raise

    def iternext(self) -> bool:
        """Go to the next element; whether there is one."""
        more = self._iterator.iternext()
        if not more:
            self._write_back()
        return more

    def close(self) -> None:
        """Write back what is pending."""
        self._iterator.close()
        self._write_back()

    def _write_back(self) -> None:
        for array, host in self._written:
            replace_value(array, host)


def _writes(op_flags: Sequence[Any] | None, number: int) -> bool:
    """Whether an operand is written."""
    if not op_flags:
        return False
    own = op_flags if isinstance(op_flags[0], str) else op_flags[number] if number < len(op_flags) else ()
    return bool(_WRITING & {str(flag) for flag in own})
