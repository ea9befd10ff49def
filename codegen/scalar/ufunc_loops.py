"""NumPy's universal functions as rows of the table: which loop NumPy would run, and the rows that compute it."""

from dataclasses import dataclass

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.table import TABLE

# What an operand counts as: an array's dtype, or the class of a Python number (which adapts to the arrays beside it).
OperandKind = DType | type

_ROW_NAMES: dict[str, tuple[str, ...]] = {
    "modf": ("modf_fraction", "modf_integral"),
    "frexp": ("frexp_mantissa", "frexp_exponent"),
    "divmod": ("floor_divide", "remainder"),
    "conjugate": ("positive",),
    "deg2rad": ("radians",),
    "rad2deg": ("degrees",),
}

# Comparison of int64 with uint64, exactly: the row on (signed, unsigned), and whether its answer is turned round.
SIGNED_UNSIGNED = {
    "less": ("less", False), "less_equal": ("less_equal", False), "greater": ("less_equal", True),
    "greater_equal": ("less", True), "equal": ("equal", False), "not_equal": ("equal", True),
}  # fmt: skip
MIRRORED = {"less": "greater", "greater": "less", "less_equal": "greater_equal", "greater_equal": "less_equal"}

# Answers of a comparison with a Python integer that the operand's dtype does not hold: one above all, one below all.
OUTSIDE_ANSWERS = {
    "less": (True, False), "less_equal": (True, False), "greater": (False, True), "greater_equal": (False, True),
    "equal": (False, False), "not_equal": (True, True),
}  # fmt: skip


@dataclass(frozen=True)
class UfuncLoop:
    """How a ufunc runs on operands of some kinds.

    Attributes
    ----------
    inputs : tuple of DType
        What each operand is converted to first.
    rows : tuple of str
        Names of scalar functions, one for each output.
    outputs : tuple of DType
    """

    inputs: tuple[DType, ...]
    rows: tuple[str, ...]
    outputs: tuple[DType, ...]


def rows_of(ufunc: np.ufunc) -> tuple[str, ...]:
    """Names of the scalar functions that compute the outputs of a ufunc; the table need not have them."""
    return _ROW_NAMES.get(ufunc.__name__, (ufunc.__name__,))


def numpy_kind(kind: OperandKind) -> np.dtype | type:
    """The kind as NumPy's resolver takes it."""
    if isinstance(kind, DType):
        return kind.numpy
    return dtypes.boolean.numpy if kind is bool else kind


def find_loop(
    ufunc: np.ufunc,
    kinds: tuple[OperandKind, ...],
    rows: tuple[str, ...] | None = None,
    signature: tuple | None = None,
    casting: str = "same_kind",
) -> UfuncLoop | None:
    """The loop that NumPy would run, or None if kernels have no such loop.

    Raises
    ------
    TypeError
        With NumPy's text, if NumPy has no loop either.
    """
    wanted = tuple(numpy_kind(kind) for kind in kinds) + (None,) * ufunc.nout
    extra = {} if signature is None else {"signature": signature}
    found = ufunc.resolve_dtypes(wanted, casting=casting, **extra)  # type: ignore[arg-type, call-arg]
    known = [dtypes.find(dtype) for dtype in found]
    both = tuple(dtype for dtype in known if dtype is not None)
    if len(both) < len(known):
        return None
    inputs, outputs = both[: ufunc.nin], both[ufunc.nin :]
    if len(set(inputs)) > 1 and ufunc is not np.ldexp:
        return None  # int64 beside uint64: compared by rows of their own
    names = rows_of(ufunc) if rows is None else rows
    for name in names:
        row = TABLE.get(name)
        if row is None or not row.takes(row.deciding_operand(inputs)):
            return None
    return UfuncLoop(inputs, names, outputs)
