"""Arrays that no memory holds are refused where they are asked for, as NumPy does, and not when they are computed."""

import math
import os
from typing import Final

import numpy as np

from blockarray.graph.nodes import Shape
from codegen.dtypes import DType

# What no machine can address. A recorded value may be larger than the memory, since a kernel may never store it, but not than this.
ADDRESSABLE: Final = 1 << 47


def _memory_of_machine() -> int:
    """Bytes of memory that the machine has, as far as the system says."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return ADDRESSABLE


_MACHINE: Final = _memory_of_machine()


def refuse_too_big(shape: Shape, dtype: DType, stored: bool = True) -> None:
    """Raise what NumPy raises for an array of this shape that the machine has no room for.

    Parameters
    ----------
    shape : tuple of int
    dtype : DType
    stored : bool
        Whether the array is memory by its meaning (zeros, a copy, arrays joined). What an operation gives, which may only
        live inside a kernel, is refused where no machine could address it.

    Raises
    ------
    ValueError
        If no integer of 64 bits counts the bytes.
    MemoryError
        If NumPy gets no memory of that size.
    """
    # Axes of extent 0 leave no bytes, but NumPy bounds the others all the same.
    nbytes = math.prod(filter(None, shape)) * dtype.itemsize
    if nbytes <= (_MACHINE if stored else ADDRESSABLE):
        return
    if nbytes >= 1 << 63 or 0 not in shape:
        # NumPy asks the system, whose rules differ (overcommitting, limits of the process), and has the words.
        np.empty(shape, dtype.numpy)
