"""The core functions computed with NumPy arrays: definitions run without a compiler, bit for bit as on the host."""

from collections.abc import Callable, Mapping

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar import application, fused
from codegen.scalar.function import CoreFunctions, Number, ScalarValue

Array = np.ndarray


def _population_count(value: Array) -> Array:
    return np.bitwise_count(value).astype(value.dtype)


INSTRUCTIONS: Mapping[str, Callable[..., Array]] = {
    "fadd": np.add,
    "fsub": np.subtract,
    "fmul": np.multiply,
    "fdiv": np.divide,
    "fneg": np.negative,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "ashr": np.right_shift,
    "lshr": np.right_shift,
    "udiv": np.floor_divide,
    "urem": np.remainder,
    "fcmp olt": np.less,
    "fcmp ole": np.less_equal,
    "fcmp ogt": np.greater,
    "fcmp oge": np.greater_equal,
    "fcmp oeq": np.equal,
    "fcmp une": np.not_equal,
    "icmp slt": np.less,
    "icmp sle": np.less_equal,
    "icmp sgt": np.greater,
    "icmp sge": np.greater_equal,
    "icmp ult": np.less,
    "icmp ule": np.less_equal,
    "icmp ugt": np.greater,
    "icmp uge": np.greater_equal,
    "icmp eq": np.equal,
    "icmp ne": np.not_equal,
}

INTRINSICS: Mapping[str, Callable[..., Array]] = {
    "llvm.sqrt": np.sqrt,
    "llvm.fabs": np.fabs,
    "llvm.floor": np.floor,
    "llvm.ceil": np.ceil,
    "llvm.trunc": np.trunc,
    "llvm.rint": np.rint,
    "llvm.smax": np.maximum,
    "llvm.smin": np.minimum,
    "llvm.umax": np.maximum,
    "llvm.umin": np.minimum,
    "llvm.maximum": np.maximum,
    "llvm.minimum": np.minimum,
    "llvm.ctpop": _population_count,
    "llvm.fma": fused.multiply_add,
    # A GPU's own is not rounded to nearest: it is off by up to about 2**-22.5.
    "llvm.nvvm.ex2.approx.ftz": lambda x: np.exp2(x.astype(np.float64)).astype(np.float32),
}


class NumpyValue(ScalarValue):
    """An array as a value of a definition."""

    __slots__ = ("_core", "array")

    def __init__(self, core: "NumpyCore", array: Array) -> None:
        self._core = core
        self.array = array

    @property
    def core(self) -> "NumpyCore":
        """The core that made this value."""
        return self._core

    def __repr__(self) -> str:
        return f"NumpyValue({self.array!r})"


class NumpyCore(CoreFunctions):
    """Core functions over NumPy arrays.

    Parameters
    ----------
    functions : frozenset of str
        What `has` answers yes to. The default has everything; an empty set runs the replacements that a target
        without rounding instructions and half conversions uses.
    target : str
        Kind of target whose `on_target` lowerings are run; none by default.
    """

    def __init__(self, functions: frozenset[str] | None = None, target: str = "") -> None:
        self._functions = functions
        self.target = target

    def value(self, array: Array) -> NumpyValue:
        """An array (any dtype of the table, any shape) as a value of this core."""
        return NumpyValue(self, np.asarray(array))

    def dtype(self, value: ScalarValue) -> DType:
        return dtypes.of(_array(value).dtype)

    def constant_of(self, dtype: DType, like: ScalarValue, number: Number) -> NumpyValue:
        return NumpyValue(self, np.array(number, dtype.numpy))

    def where(self, condition: ScalarValue, a: ScalarValue, b: ScalarValue) -> NumpyValue:
        first, second = _array(a), _array(b)
        if first.dtype != second.dtype:
            raise TypeError(f"where: the choices are {first.dtype} and {second.dtype}; expected one dtype")
        return NumpyValue(self, np.asarray(np.where(_array(condition), first, second)))

    def apply(self, name: str, *values: ScalarValue) -> ScalarValue:
        return application.apply(self, name, *values)

    def instruction(self, opcode: str, *values: ScalarValue) -> NumpyValue:
        with np.errstate(all="ignore"):
            return NumpyValue(self, np.asarray(INSTRUCTIONS[opcode](*(_array(value) for value in values))))

    def intrinsic(self, name: str, *values: ScalarValue) -> NumpyValue:
        with np.errstate(all="ignore"):
            return NumpyValue(self, np.asarray(INTRINSICS[name](*(_array(value) for value in values))))

    def convert(self, value: ScalarValue, dtype: DType) -> NumpyValue:
        with np.errstate(all="ignore"):
            return NumpyValue(self, _array(value).astype(dtype.numpy))

    def bits(self, value: ScalarValue) -> NumpyValue:
        array = _array(value)
        return NumpyValue(self, array.view(dtypes.unsigned_of_width(8 * array.dtype.itemsize).numpy))

    def from_bits(self, value: ScalarValue, dtype: DType) -> NumpyValue:
        return NumpyValue(self, _array(value).view(dtype.numpy))

    def has(self, function: str) -> bool:
        return self._functions is None or function in self._functions

    def select_rare(self, condition: ScalarValue, slow: Callable[[], ScalarValue], fast: ScalarValue) -> ScalarValue:
        if not _array(condition).any():
            return fast
        return self.where(condition, slow(), fast)

    def repeat_while(
        self,
        condition: Callable[..., ScalarValue],
        step: Callable[..., tuple[ScalarValue, ...]],
        state: tuple[ScalarValue, ...],
    ) -> tuple[ScalarValue, ...]:
        while _array(condition(*state)).any():
            state = step(*state)
        return state


def _array(value: ScalarValue) -> Array:
    if not isinstance(value, NumpyValue):
        raise TypeError(f"expected a value of the NumPy core, found {type(value).__name__}")
    return value.array


_CORE = NumpyCore()


def evaluate(name: str, *arrays: Array, core: NumpyCore = _CORE) -> Array:
    """Apply a row's definition (never the ufunc of that name) to arrays, as the generated code would.

    Parameters
    ----------
    name : str
        A row of the table.
    *arrays : numpy.ndarray
        Operands, promoted already; they broadcast.
    core : NumpyCore
        Where it runs; the default has every primitive.

    Returns
    -------
    numpy.ndarray
    """
    result = _array(application.apply(core, name, *(core.value(array) for array in arrays)))
    shape = np.broadcast_shapes(*(np.shape(array) for array in arrays))
    return result if result.shape == shape else np.broadcast_to(result, shape).copy()
