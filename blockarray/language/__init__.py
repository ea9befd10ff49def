"""The kernel language: functions over blocks, compiled just in time for the host and for GPUs.

>>> import blockarray as np
>>> from blockarray.language import Static, load, program_index, store
>>> @np.kernel("(n),(n)->(n)")
... def add(x, y, out, *, block: Static = 1024):
...     first = program_index(0) * block
...     store(out, first, load(x, first, block) + load(y, first, block))
>>> add(np.arange(5.0), np.ones(5))
array([1., 2., 3., 4., 5.])

`kernel` says how kernels are declared and called; the words that they may use are documented one by one. Beside them kernels may use
universal functions by NumPy's names (``np.exp``), Python's operators, and functions of their own.
"""

from blockarray.language.kernel import Kernel, kernel
from codegen.errors import KernelError
from codegen.frontend.language import (
    Static,
    accumulator_dtype,
    all,
    any,
    arange,
    argmax,
    argmin,
    broadcast_to,
    cast,
    cdiv,
    clip,
    dot,
    extent,
    full,
    load,
    max,
    min,
    ones,
    prod,
    program_index,
    store,
    sum,
    transpose,
    where,
    zeros,
)
