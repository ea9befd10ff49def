"""The words of the kernel language. Beside them a kernel may use every universal function of NumPy and Python's operators.

A word has a meaning inside of kernels only. Universal functions go by NumPy's names, wherever they come from: ``numpy.exp``,
``blockarray.exp``.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType


class Static:
    """Annotation of a parameter that is known when the kernel is compiled: the size of a block, a choice, a function.

    Other values of it make other kernels.
    """


class OutsideKernelError(TypeError):
    """A word of the language was called by Python itself."""


class Word:
    """A function of the kernel language.

    Attributes
    ----------
    name : str
    signature : inspect.Signature
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = self.__name__ = function.__name__
        self.signature = inspect.signature(function)
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise OutsideKernelError(
            f"{self.name} has a meaning inside of kernels only; decorate the function that calls it by @kernel"
        )

    def __repr__(self) -> str:
        return f"<word {self.name} of the kernel language>"


@Word
def program_index(axis):  # type: ignore[no-untyped-def]
    """Which program this is along a grid axis: 0, 1, 2 … Adapts to the dtype beside it, as Python's numbers do.

    Parameters
    ----------
    axis : int, static
    """


@Word
def extent(array, axis):  # type: ignore[no-untyped-def]
    """Length of an axis of an array, known when the kernel runs. ``array.shape[axis]`` is the same.

    Parameters
    ----------
    array : array parameter
    axis : int, static
    """


@Word
def load(array, offsets, shape, fill=None):  # type: ignore[no-untyped-def]
    """A window of an array as a block.

    Where the window reaches beyond the array, its elements do not exist: reductions and `dot` leave them out. With `fill` they
    exist and have that value.

    Parameters
    ----------
    array : array parameter
    offsets : tuple of int
        Of the window's first element, one for each axis.
    shape : tuple of int, static
        Extents of the block, powers of two. With fewer entries than the array has axes, they belong to the last ones, and the
        window has one entry along the others.
    fill : number, static, optional
    """


@Word
def store(array, offsets, value):  # type: ignore[no-untyped-def]
    """Write a block to a window of an array; elements beyond the array are dropped.

    The value takes the array's dtype where NumPy casts so within one kind (float32 to float16, not float to int).

    Parameters
    ----------
    array : array parameter
    offsets : tuple of int
        Of the window's first element, one for each axis.
    value : block or number
        With fewer axes than the array, they are the last ones.
    """


@Word
def zeros(shape, dtype):  # type: ignore[no-untyped-def]
    """A block of zeros; shape and dtype are static."""


@Word
def ones(shape, dtype):  # type: ignore[no-untyped-def]
    """A block of ones; shape and dtype are static."""


@Word
def full(shape, value, dtype=None):  # type: ignore[no-untyped-def]
    """A block filled with a number, of `dtype` or the number's."""


@Word
def arange(count):  # type: ignore[no-untyped-def]
    """0, 1, 2 … as an int64 block; `count` is a static power of two."""


@Word
def cast(value, dtype):  # type: ignore[no-untyped-def]
    """A block in another dtype, as NumPy's astype; ``value.astype(dtype)`` is the same."""


@Word
def dot(a, b, accumulator=None):  # type: ignore[no-untyped-def]
    """``a @ b + accumulator`` for blocks (M, K), (K, N), (M, N).

    Products and sums are in the accumulator's dtype. Without one, that is float32 for float16 and bfloat16, 32 bits for
    narrower integers, and the operands' dtype for the others.
    """


@Word
def where(condition, a, b):  # type: ignore[no-untyped-def]
    """`a` where the condition holds, else `b`, with NumPy's promotion."""


@Word
def clip(value, low, high):  # type: ignore[no-untyped-def]
    """`value` held between two bounds."""


@Word
def sum(value, axis=None, keepdims=False):  # type: ignore[no-untyped-def]
    """Sum over an axis, several, or all; dtypes as NumPy's, float16 and bfloat16 in float32 on the way."""


@Word
def prod(value, axis=None, keepdims=False):  # type: ignore[no-untyped-def]
    """Product over an axis, several, or all; dtypes as `sum`."""


@Word
def max(value, axis=None, keepdims=False):  # type: ignore[no-untyped-def]
    """Greatest element over an axis, several, or all; NaN if there is one."""


@Word
def min(value, axis=None, keepdims=False):  # type: ignore[no-untyped-def]
    """Smallest element over an axis, several, or all; NaN if there is one."""


@Word
def any(value, axis=None, keepdims=False):  # type: ignore[no-untyped-def]
    """Whether an element differs from zero."""


@Word
def all(value, axis=None, keepdims=False):  # type: ignore[no-untyped-def]
    """Whether all elements differ from zero."""


@Word
def argmax(value, axis):  # type: ignore[no-untyped-def]
    """Position in the block of the greatest element along an axis: the first NaN, else the first of equals; int64."""


@Word
def argmin(value, axis):  # type: ignore[no-untyped-def]
    """Position in the block of the smallest element along an axis: the first NaN, else the first of equals; int64."""


@Word
def transpose(value, axes=None):  # type: ignore[no-untyped-def]
    """A block with its axes in another order, a static tuple; reversed without one, as ``value.T``."""


@Word
def broadcast_to(value, shape):  # type: ignore[no-untyped-def]
    """A block or number repeated to a static shape."""


def cdiv(a: int, b: int) -> int:
    """How many parts of `b` cover `a`: the quotient rounded up. For static and run-time integers, inside of kernels and outside.

    Examples
    --------
    >>> cdiv(10, 4)
    3
    """
    return -(-a // b)


def accumulator_dtype(dtype: Any) -> np.dtype:
    """What products of such elements are summed in, unless `dot` is told otherwise.

    Examples
    --------
    >>> accumulator_dtype("float16")
    dtype('float32')
    """
    row = as_row(dtype)
    if row.is_half:
        return dtypes.float32.numpy
    if row.bits >= 32:
        return row.numpy
    return dtypes.uint32.numpy if row.kind == "unsigned" else dtypes.int32.numpy


def as_row(dtype: Any) -> DType:
    """The row of anything that names a dtype; TypeError if kernels have no such elements."""
    return dtype if isinstance(dtype, DType) else dtypes.of(np.dtype(dtype))


WORDS: dict[str, Word] = {name: value for name, value in globals().items() if isinstance(value, Word)}

# NumPy's functions that are no universal functions, and the words that they are inside of kernels.
NUMPY_WORDS: dict[Any, Word] = {
    np.where: WORDS["where"],
    np.clip: WORDS["clip"],
    np.sum: WORDS["sum"],
    np.prod: WORDS["prod"],
    np.max: WORDS["max"],
    np.min: WORDS["min"],
    np.any: WORDS["any"],
    np.all: WORDS["all"],
    np.argmax: WORDS["argmax"],
    np.argmin: WORDS["argmin"],
    np.zeros: WORDS["zeros"],
    np.ones: WORDS["ones"],
    np.full: WORDS["full"],
    np.arange: WORDS["arange"],
    np.dot: WORDS["dot"],
    np.matmul: WORDS["dot"],
    np.transpose: WORDS["transpose"],
    np.broadcast_to: WORDS["broadcast_to"],
}
