"""Universal functions: one object per NumPy ufunc, each backed by rows of the scalar table, and the operators of arrays."""

import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from blockarray.execution.device import current_device
from blockarray.fallback import call_numpy
from blockarray.foreign import array_given, decides, goes_first
from blockarray.graph.nodes import CONSTANT_TOKENS, Constant, Map, Node, Shape, token
from blockarray.ndarray import (
    DEEPEST,
    HEAVIEST,
    Array,
    Cell,
    Scalar,
    cast,
    element_strides,
    evaluate_nodes,
    from_numpy,
    ndarray,
    read,
    transferred,
    wrap,
    wrap_in_order,
    write,
)
from blockarray.ndarray import user_frame as find_user_frame
from blockarray.overrides import NO_WORD, any_decides, decided, met
from blockarray.promotion import Resolution, broadcast, resolve, result_order
from blockarray.sizes import refuse_too_big
from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.ufunc_loops import MIRRORED, OUTSIDE_ANSWERS, SIGNED_UNSIGNED, OperandKind, rows_of
from codegen.targets.backend import Backend

_get_frame = sys._getframe
_new = object.__new__
_HERE = __file__.rpartition("/")[0]


class _Ours(dict[str, bool]):
    """Whether a file is one of the library's, remembered."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = answer = filename.startswith(_HERE)
        return answer


_is_ours = _Ours()
_PYTHON_NUMBERS = frozenset((int, float, bool))
_REPEATED = frozenset((str, bytes, bytearray, list, tuple))
_UNRESOLVED = object()
_NUMPY_SCALARS: dict[type, DType] = {dtype.numpy.type: dtype for dtype in dtypes.ALL}


class UFunc:
    """A function applied element by element, with NumPy's broadcasting, promotion and keyword arguments.

    Attributes
    ----------
    numpy : numpy.ufunc
        The function of the same name, which decides dtypes and errors.
    rows : tuple of str
        Scalar functions that compute the outputs.
    """

    def __init__(self, ufunc: np.ufunc, rows: tuple[str, ...]) -> None:
        self.numpy = ufunc
        self.rows = rows
        self.__name__ = ufunc.__name__
        self.__qualname__ = ufunc.__name__
        self.__doc__ = ufunc.__doc__
        self._known: dict[tuple[OperandKind, ...], Resolution | None] = {}
        # Of a binary ufunc with one output: the dtypes of both inputs, and the row, dtype and token of the output.
        self._loops: dict[tuple[OperandKind, OperandKind], tuple[DType, DType, str, DType, int]] = {}
        self._needs_checked_exponent = ufunc is np.power
        self._arity = ufunc.nin
        self._results = ufunc.nout

    nin = property(lambda self: self.numpy.nin)
    nout = property(lambda self: self.numpy.nout)
    nargs = property(lambda self: self.numpy.nargs)
    ntypes = property(lambda self: self.numpy.ntypes)
    types = property(lambda self: self.numpy.types)
    identity = property(lambda self: self.numpy.identity)
    signature = property(lambda self: self.numpy.signature)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __reduce__(self) -> str:
        return self.__name__

    def resolve_dtypes(self, *args: Any, **kwargs: Any) -> tuple:
        """As NumPy's method."""
        return self.numpy.resolve_dtypes(*args, **kwargs)

    def resolution(self, kinds: tuple[OperandKind, ...]) -> Resolution | None:
        """The loop for operands of these kinds, remembered."""
        found = self._known.get(kinds, _UNRESOLVED)
        if found is _UNRESOLVED:
            found = self._known[kinds] = resolve(self.numpy, self.rows, kinds)
        return found  # type: ignore[return-value]

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        if not keywords:
            arity = self._arity
            if len(inputs) == arity:
                if arity == 1:
                    if isinstance(inputs[0], ndarray):
                        return self._unary(inputs[0], _get_frame(1))
                elif arity == 2 and self._results == 1:
                    result = binary(self, inputs[0], inputs[1], _get_frame(1))
                    if result is not NotImplemented:
                        return result
        if any_decides(inputs, keywords.get("out")):
            return decided(self, self.numpy, "__call__", inputs, keywords)
        return self._call(*inputs, **keywords)

    def _call(
        self,
        *inputs: Any,
        out: Any = None,
        where: Any = True,
        casting: str = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
    ) -> Any:
        nin = self.numpy.nin
        if nin <= len(inputs) <= self.numpy.nargs:
            if len(inputs) > nin:
                if out is not None:
                    raise TypeError("cannot specify 'out' as both a positional and keyword argument")
                out = inputs[nin:] if self.numpy.nout > 1 else inputs[nin]
            return self._general(inputs[:nin], out, where, casting, order, dtype, signature)
        raise TypeError(
            f"{self.__name__}() takes from {nin} to {self.numpy.nargs} positional arguments but {len(inputs)} were given"
        )

    def _unary(self, array: ndarray, frame: FrameType) -> Any:
        found = self._known.get((array._row,))
        if found is None:
            found = self.resolution((array._row,))
            if found is None:
                return call_numpy(self.numpy, (array,), {})
        node = array._cell.node if array._view is None else read(array)
        wanted = found[0][0]
        if node.dtype is not wanted:
            node = cast(node, wanted)
        axes = None
        if array._view is not None:
            refuse_too_big(array._shape, found[2][0], stored=False)
            axes = result_order(((array._shape, element_strides(array)),), array._shape)
        shape, device = node.shape, node.device
        if self._results == 1:
            return _finish(Map(found[1][0], (node,), shape, found[2][0], found[3][0], device), axes, frame)
        return tuple(
            _finish(Map(row, (node,), shape, dtype, number, device), axes, frame)
            for row, dtype, number in zip(found.rows, found.outputs, found.tokens, strict=True)
        )

    def _general(
        self, inputs: tuple, out: Any, where: Any, casting: str, order: str, dtype: Any, signature: Any
    ) -> Any:
        """Every keyword and kind of operand."""
        outs = _outputs(self, out)
        operands = [_operand(value) for value in inputs]
        if any(value is NotImplemented for value in operands) or not all(
            one is None or isinstance(one, ndarray) for one in outs
        ):
            arguments = {
                "out": out,
                "where": where,
                "casting": casting,
                "order": order,
                "dtype": dtype,
                "signature": signature,
            }
            defaults = {
                "out": None,
                "where": True,
                "casting": "same_kind",
                "order": "K",
                "dtype": None,
                "signature": None,
            }
            kept = {
                name: value for name, value in arguments.items() if value is not defaults[name] and value is not None
            }
            return call_numpy(self.numpy, inputs, kept)
        kinds = tuple(one._row if isinstance(one, ndarray) else type(one) for one in operands)
        if dtype is not None or signature is not None or casting != "same_kind":
            found = resolve(self.numpy, self.rows, kinds, self._signature(dtype, signature), casting)
        else:
            found = self.resolution(kinds)
        if found is None:
            if len(inputs) == 2 and out is None and where is True:
                compared = _compare_signs(self, operands[0], operands[1], find_user_frame())
                if compared is not NotImplemented:
                    return compared
            return call_numpy(self.numpy, inputs, _given(out=out, where=where, dtype=dtype))
        given = [one for one in outs if one is not None]
        if not all(one._writeable for one in given):
            raise ValueError("output array is read-only")
        for one, computed in zip(outs, found.outputs, strict=True):
            if one is not None and not np.can_cast(computed.numpy, one.dtype, casting):  # type: ignore[arg-type]
                self._raise_as_numpy(found, outs, casting)
        device = _device_of([*operands, *outs])
        nodes = tuple(
            _input_node(one, wanted, self, device) for one, wanted in zip(operands, found.inputs, strict=True)
        )
        mask = None if where is True else _mask(where, device)
        shapes = [node.shape for node in nodes] + ([mask.shape] if mask is not None else [])
        shape = broadcast(shapes) if not given else broadcast([*shapes, *(one._shape for one in given)])
        for one in given:
            if one._shape != shape:
                listed = " ".join(str(s).replace(" ", "") for s in (*shapes, one._shape))
                raise ValueError(
                    f"non-broadcastable output operand with shape {str(one._shape).replace(' ', '')} doesn't match the "
                    f"broadcast shape {str(broadcast(shapes)).replace(' ', '')}"
                    if broadcast(shapes) != one._shape
                    else f"operands could not be broadcast together with shapes {listed} "
                )
        refuse_too_big(shape, found.outputs[0], stored=False)
        self._check_exponent(nodes)
        arrays = [one for one in operands if isinstance(one, ndarray)]
        axes = _order_axes(arrays, shape, order)
        frame = find_user_frame()
        results = []
        for row, result, number, target in zip(found.rows, found.outputs, found.tokens, outs, strict=True):
            node: Node = Map(row, nodes, broadcast([n.shape for n in nodes]), result, number, device)
            if mask is not None:
                old = cast(read(target), result) if target is not None else Constant(0, result, device)
                node = Map("where", (mask, node, old), shape, result, WHERE_TOKENS[result], device)
            if target is None:
                results.append(_finish(node, axes, frame))
                continue
            write(target, cast(node, target._row))
            results.append(target)
        return results[0] if len(results) == 1 else tuple(results)

    def _signature(self, dtype: Any, signature: Any) -> tuple | None:
        if dtype is not None and signature is not None:
            raise TypeError("cannot specify both 'signature' and 'dtype'")
        if dtype is not None:
            return (None,) * self.numpy.nin + (np.dtype(dtype),) * self.numpy.nout
        if signature is None:
            return None
        if isinstance(signature, str):
            ins, _, outs = signature.partition("->")
            return tuple(np.dtype(code) for code in ins + outs)
        return tuple(None if one is None else np.dtype(one) for one in signature)

    def _raise_as_numpy(self, found: Resolution, outs: tuple, casting: str) -> None:
        empty = [np.empty(0, dtype.numpy) for dtype in found.inputs]
        targets = tuple(np.empty(0, one.dtype) if one is not None else None for one in outs)
        self.numpy(*empty, out=targets, casting=casting)  # type: ignore[call-overload]
        raise TypeError(f"ufunc '{self.__name__}' cannot cast its result to the dtype of out")

    def _check_exponent(self, nodes: tuple[Node, ...]) -> None:
        """Refuse negative integer powers of integers, as NumPy does."""
        if not self._needs_checked_exponent or nodes[1].dtype.kind != "signed":
            return
        exponent = nodes[1]
        if isinstance(exponent, Constant):
            negative = exponent.value < 0
        else:
            negative = exponent.size > 0 and any_below_zero(exponent)
        if negative:
            raise ValueError("Integers to negative integer powers are not allowed.")

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
               initial: Any = np._NoValue, where: Any = True) -> Any:  # fmt: skip
        """Fold the function along axes."""
        return _registered["reduce"](self, array, axis, dtype, out, keepdims, initial, where)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Running fold along an axis."""
        if any_decides((array,), out):
            return decided(self, self.numpy, "accumulate", (array,), _given(axis=axis, dtype=dtype, out=out))
        return _registered["accumulate"](self, array, axis, dtype, out)

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        """The function on every pair of an element of `a` and one of `b`."""
        if self.numpy.nin != 2:
            raise ValueError("outer product only supported for binary functions")
        if any_decides((a, b), kwargs.get("out")):
            return decided(self, self.numpy, "outer", (a, b), kwargs)
        left, right = as_operand(a), as_operand(b)
        spread = left.reshape(left.shape + (1,) * right.ndim)
        return self(spread, right, **kwargs)

    def at(self, array: Any, indices: Any, *values: Any) -> None:
        """The function applied in place at `indices`, one after the other."""
        if any_decides((array, *values)):
            decided(self, self.numpy, "at", (array, indices, *values), {})
            return
        _registered["at"](self, array, indices, *values)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Folds over the slices that `indices` bound."""
        if any_decides((array,), out):
            return decided(self, self.numpy, "reduceat", (array, indices), _given(axis=axis, dtype=dtype, out=out))
        return _registered["reduceat"](self, array, indices, axis, dtype, out)


# Modules that build on ufuncs give their methods here.
_registered: dict[str, Callable[..., Any]] = {}


def register_methods(**methods: Callable[..., Any]) -> None:
    """Tell ufuncs their `reduce`, `accumulate`, `at` and `reduceat`."""
    _registered.update(methods)


def any_below_zero(node: Node) -> bool:
    """Whether an element is negative: a check of data that NumPy makes before it computes."""
    evaluate_nodes(node)
    return bool((wrap(node).asnumpy() < 0).any())


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None and value is not True}


def _outputs(ufunc: UFunc, out: Any) -> tuple:
    count = ufunc.numpy.nout
    if out is None:
        return (None,) * count
    if isinstance(out, tuple):
        if len(out) != count:
            raise ValueError(
                f"The 'out' tuple must have exactly {count} entr{'y' if count == 1 else 'ies'}: one per ufunc output"
            )
        return out
    if count > 1:
        raise TypeError("'out' must be a tuple of arrays")
    if not isinstance(out, ndarray | np.ndarray):
        raise TypeError("return arrays must be of ArrayType")
    return (out,)


def _operand(value: Any) -> Any:
    """An ndarray, a Python number, or NotImplemented for what kernels have no elements for."""
    if isinstance(value, ndarray) or type(value) in _PYTHON_NUMBERS:
        return value
    try:
        return as_operand(value)
    except TypeError:
        return NotImplemented


def as_operand(value: Any) -> ndarray:
    """Anything array-like as an array of ours; TypeError if its dtype is not one that kernels have."""
    if isinstance(value, ndarray):
        return value
    if isinstance(value, list | tuple) and any(isinstance(one, ndarray) for one in value):
        value = [one.asnumpy() if isinstance(one, ndarray) else one for one in value]
    given = array_given(value)
    if isinstance(given, ndarray):
        return given
    array = np.asarray(given)
    if dtypes.find(array.dtype.newbyteorder("=")) is None:
        raise TypeError(f"kernels have no elements of dtype {array.dtype}")
    if array.ndim == 0:
        row = dtypes.of(array.dtype.newbyteorder("="))
        return wrap(Constant(array.item() if row.name != "bfloat16" else float(array), row, current_device()))
    return from_numpy(array)


def _device_of(values: list[Any]) -> Backend:
    """Where the work runs: with the first array that has axes, else with the first array, else the current device."""
    arrays = [one for one in values if isinstance(one, ndarray)]
    for one in arrays:
        if one._shape:
            return one._cell.node.device
    return arrays[0]._cell.node.device if arrays else current_device()


def _input_node(value: Any, wanted: DType, ufunc: UFunc, device: Backend) -> Node:
    if isinstance(value, ndarray):
        node = read(value)
        if node.device is not device:
            node = transferred(node, device)
        return cast(node, wanted)
    return number_node(value, wanted, device)


def integer_outside(value: int | float, dtype: DType) -> OverflowError:
    """What NumPy says of a Python integer that `dtype` does not hold."""
    # NumPy looks whether C's long, or unsigned long for the wide unsigned dtypes, holds it first.
    widest = 64 if dtype in (dtypes.uint32, dtypes.uint64) else 63
    if not -(1 << 63) <= value < 1 << widest:
        return OverflowError("Python int too large to convert to C long")
    return OverflowError(f"Python integer {value} out of bounds for {dtype}")


def number_node(value: bool | int | float, dtype: DType, device: Backend) -> Constant:
    """A Python number as a constant of `dtype`; OverflowError in NumPy's words if it does not fit."""
    kind = dtype.kind
    if kind == "float":
        value = float(value)
    elif kind == "boolean":
        value = bool(value)
    else:
        low = -(1 << (dtype.bits - 1)) if kind == "signed" else 0
        if not low <= value < low + (1 << dtype.bits):
            raise integer_outside(value, dtype)
        value = int(value)
    # `Constant`, written out.
    node = _new(Constant)
    node.inputs = ()
    node.shape = ()
    node.dtype = dtype
    node.token = CONSTANT_TOKENS[dtype]
    node.device = device
    node.buffer = None
    node.recomputed = 0
    node.code = None
    node.depth = node.weight = 0
    node.value = value
    return node


def _mask(where: Any, device: Backend) -> Node:
    mask = as_operand(where)
    if mask._row is not dtypes.boolean:
        raise TypeError(f"Cannot cast array data from {mask.dtype!r} to dtype('bool') according to the rule 'safe'")
    return transferred(read(mask), device)


def _order_axes(arrays: list[ndarray], shape: Shape, order: str) -> tuple[int, ...] | None:
    if len(shape) < 2 or order == "C":
        return None
    if order == "F":
        return tuple(range(len(shape) - 1, -1, -1))
    if all(one._view is None for one in arrays):
        return None
    return result_order([(one._shape, element_strides(one)) for one in arrays], shape)


def _finish(node: Node, axes: tuple[int, ...] | None, frame: FrameType) -> ndarray:
    code = frame.f_code
    if _is_ours[code.co_filename]:
        frame = find_user_frame()
        code = frame.f_code
    node.code = code
    node.instruction = frame.f_lasti
    if axes is not None or not node.shape or node.depth > DEEPEST or node.weight > HEAVIEST:
        return wrap(node) if axes is None else wrap_in_order(node, axes)
    # `wrap`, written out: recording spends its time here.
    cell = _new(Cell)
    cell.node = node
    array = _new(Array)
    array._cell = cell
    array._shape = node.shape
    array._row = node.dtype
    array._view = array._base = None
    array._writeable = True
    return array


def binary(ufunc: UFunc, a: Any, b: Any, frame: FrameType) -> Any:
    """A ufunc of two operands of which one at least is an array of ours; NotImplemented for kinds that the general path takes.

    This is the path that recording spends its time on: one dictionary look-up for the dtypes, one comparison for the shapes, and
    no call that can be done without.
    """
    kind_a: OperandKind
    kind_b: OperandKind
    if isinstance(a, ndarray):
        kind_a = a._row
        if isinstance(b, ndarray):
            kind_b = b._row
        elif type(b) in _PYTHON_NUMBERS:
            kind_b = type(b)
        else:
            row = _NUMPY_SCALARS.get(type(b))
            if row is None:
                return NotImplemented
            b = wrap(Constant(b.item(), row, a._cell.node.device))
            kind_b = row
    elif isinstance(b, ndarray):
        kind_b = b._row
        if type(a) in _PYTHON_NUMBERS:
            kind_a = type(a)
        else:
            row = _NUMPY_SCALARS.get(type(a))
            if row is None:
                return NotImplemented
            a = wrap(Constant(a.item(), row, b._cell.node.device))
            kind_a = row
    else:
        return NotImplemented
    known = ufunc._loops.get((kind_a, kind_b))
    if known is None:
        found = ufunc.resolution((kind_a, kind_b))
        if found is None:
            return _compare_signs(ufunc, a, b, frame)
        first, second = found.inputs
        known = ufunc._loops[kind_a, kind_b] = (first, second, found.rows[0], found.outputs[0], found.tokens[0])
    wanted_a, wanted_b, row, dtype, number = known
    left: Node
    right: Node
    contiguous = True
    if type(kind_a) is DType:
        if a._view is None:
            left = a._cell.node
        else:
            left = read(a)
            contiguous = False
        if kind_a is not wanted_a:
            left = cast(left, wanted_a)
        device = left.device
    else:
        device = b._cell.node.device
        try:
            left = number_node(a, wanted_a, device)
        except OverflowError:
            return _compare_with_outside(ufunc, b, a, swapped=True)
    if type(kind_b) is DType:
        if b._view is None:
            right = b._cell.node
        else:
            right = read(b)
            contiguous = False
        if kind_b is not wanted_b:
            right = cast(right, wanted_b)
        if right.device is not device:
            device = _device_of([a, b])
            left, right = transferred(left, device), transferred(right, device)
    else:
        try:
            right = number_node(b, wanted_b, device)
        except OverflowError:
            return _compare_with_outside(ufunc, a, b, swapped=False)
    shape = left.shape
    other = right.shape
    if shape != other:
        if not other:
            pass
        elif not shape:
            shape = other
        else:
            shape = broadcast((shape, other))
            refuse_too_big(shape, dtype, stored=False)
    if not contiguous:
        refuse_too_big(shape, dtype, stored=False)
    if ufunc._needs_checked_exponent:
        ufunc._check_exponent((left, right))
    # `Map` and `_finish`, written out.
    depth = left.depth
    if right.depth > depth:
        depth = right.depth
    weight = left.weight + right.weight + 1
    code = frame.f_code
    if (
        depth >= DEEPEST
        or weight > HEAVIEST
        or not shape
        or (not contiguous and len(shape) > 1)
        or _is_ours[code.co_filename]
    ):
        node = Map(row, (left, right), shape, dtype, number, device)
        axes = None
        if not contiguous and len(shape) > 1:
            axes = _order_axes([one for one in (a, b) if isinstance(one, ndarray)], shape, "K")
        return _finish(node, axes, frame)
    node = _new(Map)
    node.inputs = (left, right)
    node.shape = shape
    node.dtype = dtype
    node.token = number
    node.device = device
    node.buffer = None
    node.recomputed = 0
    node.function = row
    node.depth = depth + 1
    node.weight = weight
    node.code = code
    node.instruction = frame.f_lasti
    cell = _new(Cell)
    cell.node = node
    array = _new(Array)
    array._cell = cell
    array._shape = shape
    array._row = dtype
    array._view = array._base = None
    array._writeable = True
    return array


def _compare_signs(ufunc: UFunc, a: Any, b: Any, frame: FrameType) -> Any:
    """Arrays of which one has signed and one unsigned integers of 64 bits: no dtype holds both, so a row compares them."""
    name = ufunc.__name__
    if name not in SIGNED_UNSIGNED or not (isinstance(a, ndarray) and isinstance(b, ndarray)):
        return NotImplemented
    if {a._row.kind, b._row.kind} != {"signed", "unsigned"}:
        return NotImplemented
    shape = broadcast((a._shape, b._shape))
    if a._row.kind == "unsigned":
        a, b, name = b, a, MIRRORED.get(name, name)
    row, negated = SIGNED_UNSIGNED[name]
    left = cast(read(a), dtypes.int64)
    right = cast(transferred(read(b), left.device), dtypes.uint64)
    meaning = token(("map", f"{row}_signed_unsigned", dtypes.int64, dtypes.uint64))
    node = Map(f"{row}_signed_unsigned", (left, right), shape, dtypes.boolean, meaning, left.device)
    if negated:
        known = UFUNCS["logical_not"].resolution((dtypes.boolean,))
        assert known is not None
        node = Map("logical_not", (node,), shape, dtypes.boolean, known.tokens[0], left.device)
    return _finish(node, _order_axes([a, b], shape, "K"), frame)


def _compare_with_outside(ufunc: UFunc, array: ndarray, number: int, swapped: bool) -> Any:
    """Comparison of integers with a Python integer that their dtype does not hold: known without the data."""
    answers = OUTSIDE_ANSWERS.get(ufunc.__name__)
    if answers is None:
        raise integer_outside(number, array._row)
    above = number > 0
    if swapped and ufunc.__name__ not in ("equal", "not_equal"):
        above = not above
    constant = Constant(answers[0] if above else answers[1], dtypes.boolean, array._cell.node.device)
    row = "logical_or"
    known = logical_or.resolution((dtypes.boolean, dtypes.boolean))
    assert known is not None
    untouched = Map(row, (constant, constant), (), dtypes.boolean, known.tokens[0], constant.device)
    flat = read(array)
    spread = Map(
        "where",
        (cast(flat, dtypes.boolean), untouched, untouched),
        flat.shape,
        dtypes.boolean,
        WHERE_TOKENS[dtypes.boolean],
        flat.device,
    )
    return wrap(spread)


_BY_MATRIX = frozenset(("matmul", "matvec", "vecmat", "vecdot"))

UFUNCS: dict[str, UFunc] = {}
for _name in dir(np):
    _ufunc = getattr(np, _name)
    if isinstance(_ufunc, np.ufunc) and _ufunc.__name__ not in _BY_MATRIX:
        _canonical = _ufunc.__name__
        if _canonical not in UFUNCS:
            UFUNCS[_canonical] = UFunc(_ufunc, rows_of(_ufunc))
        UFUNCS[_name] = UFUNCS[_canonical]

less = UFUNCS["less"]
logical_or = UFUNCS["logical_or"]


WHERE_TOKENS: dict[DType, int] = {dtype: token(("map", "where", dtypes.boolean, dtype, dtype)) for dtype in dtypes.ALL}


def where_node(mask: Node, a: Node, b: Node) -> Node:
    """``where(mask, a, b)`` on nodes of one dtype."""
    shape = broadcast((mask.shape, a.shape, b.shape))
    return Map("where", (mask, a, b), shape, a.dtype, WHERE_TOKENS[a.dtype], mask.device)


_COMPARISONS = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_ARITHMETIC = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "pow"
)  # fmt: skip

# Python's operators as functions, and the method by which the right operand answers.
_PYTHON_OPERATORS: dict[str, Callable[..., Any]] = {
    "divmod": divmod,
    **{short: getattr(operator, f"__{short}__") for short in (*_ARITHMETIC, *_COMPARISONS)},
}
_MIRRORED_METHODS: dict[str, str] = {
    **{short: f"__r{short}__" for short in (*_ARITHMETIC, "divmod")},
    **{short: f"__{mirrored}__" for short, mirrored in _COMPARISONS.items()},
}


def _general_operator(ufunc: UFunc, short: str, operands: tuple[Any, Any], reflected: bool) -> Any:
    """An operator of Python where one operand is neither an array of ours nor a number."""
    answer = met(ufunc, ufunc.numpy, _PYTHON_OPERATORS[short], _MIRRORED_METHODS[short], operands, reflected)
    if answer is not NO_WORD:
        return answer
    return ufunc._general(operands, None, True, "same_kind", "K", None, None)


def _operator(ufunc: UFunc, short: str, reflected: bool) -> Callable[[Any, Any], Any]:
    if reflected:

        def method(self: ndarray, other: Any) -> Any:
            if ufunc._results == 1:
                result = binary(ufunc, other, self, _get_frame(1))
                if result is not NotImplemented:
                    return result
            return _general_operator(ufunc, short, (other, self), True)
    else:

        def method(self: ndarray, other: Any) -> Any:
            if ufunc._results == 1:
                result = binary(ufunc, self, other, _get_frame(1))
                if result is not NotImplemented:
                    return result
            return _general_operator(ufunc, short, (self, other), False)

    return method


def _in_place(ufunc: UFunc) -> Callable[[Any, Any], Any]:
    def method(self: ndarray, other: Any) -> Any:
        if self._view is None and self._writeable and ufunc is not UFUNCS["power"]:
            # The whole array takes a value of its own dtype and shape: the cell just gets another node.
            found = ufunc._known.get((self._row, other._row if isinstance(other, ndarray) else type(other)))
            if found is not None and found[2][0] is self._row:
                result = binary(ufunc, self, other, _get_frame(1))
                if result is not NotImplemented and result._view is None and result._shape == self._shape:
                    self._cell.node = result._cell.node
                    return self
        if goes_first(type(other)):
            return NotImplemented
        if decides(type(other)):
            return decided(ufunc, ufunc.numpy, "__call__", (self, other), {"out": self})
        return ufunc._general((self, other), self, True, "same_kind", "K", None, None)

    return method


def _unary_operator(ufunc: UFunc) -> Callable[[Any], Any]:
    def method(self: ndarray) -> Any:
        return ufunc._unary(self, _get_frame(1))

    return method


def _divmod(self: ndarray, other: Any) -> Any:
    return _general_operator(UFUNCS["divmod"], "divmod", (self, other), False)


def _reflected_divmod(self: ndarray, other: Any) -> Any:
    return _general_operator(UFUNCS["divmod"], "divmod", (other, self), True)


def _power(self: ndarray, other: Any, modulo: Any = None) -> Any:
    """NumPy's array power: small exact exponents go to cheaper functions."""
    if modulo is not None:
        return NotImplemented
    if type(other) in (int, float) and not isinstance(self, Scalar):
        if other == 2 and self._row is not dtypes.boolean and (type(other) is int or self._row.kind == "float"):
            return UFUNCS["square"]._unary(self, _get_frame(1))
        if self._row.kind == "float":
            shortcut = {1: "positive", 0.5: "sqrt", -1: "reciprocal"}.get(other)
            if shortcut is not None:
                return UFUNCS[shortcut]._unary(self, _get_frame(1))
    result = binary(UFUNCS["power"], self, other, _get_frame(1))
    if result is not NotImplemented:
        return result
    return _general_operator(UFUNCS["power"], "pow", (self, other), False)


def _comparison(ufunc: UFunc, name: str, short: str) -> Callable[[Any, Any], Any]:
    plain = _operator(ufunc, short, reflected=False)
    compare = getattr(operator, short)

    def method(self: ndarray, other: Any) -> Any:
        if other is None or isinstance(other, str):
            return call_numpy(compare, (self, other), {}, name=name)
        return plain(self, other)

    return method


def _scalar_operator(function: Callable[..., Any], recorded: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    """An operator of lazy scalars: NumPy's on numbers that are known already, which costs less than recording."""

    def method(self: Scalar, *others: Any) -> Any:
        if function is operator.mul and type(others[0]) in _REPEATED:
            return others[0] * self.numpy_value()
        value = self.known_value()
        if value is None:
            return recorded(self, *others)
        if not others:
            return function(value)
        other = others[0]
        if isinstance(other, Scalar):
            other = other.known_value()
        elif type(other) not in _PYTHON_NUMBERS and type(other) not in _NUMPY_SCALARS:
            other = None
        if other is None or len(others) > 1:
            return recorded(self, *others)
        return function(other, value) if reflected else function(value, other)

    return method


def install_operators() -> None:
    """Give `ndarray` Python's operators."""
    arithmetic = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
        "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
        "lshift": "left_shift", "rshift": "right_shift", "pow": "power",
    }  # fmt: skip
    for short, name in arithmetic.items():
        ufunc = UFUNCS[name]
        setattr(ndarray, f"__r{short}__", _operator(ufunc, short, reflected=True))
        setattr(Array, f"__i{short}__", _in_place(ufunc))
        setattr(ndarray, f"__{short}__", _power if short == "pow" else _operator(ufunc, short, reflected=False))
        if (
            short != "pow"
        ):  # whose results may differ from NumPy's in the last digit: they must not depend on what is known
            function = getattr(operator, f"__{short}__")
            for method, reflected in ((f"__{short}__", False), (f"__r{short}__", True)):
                setattr(Scalar, method, _scalar_operator(function, getattr(ndarray, method), reflected))
    setattr(ndarray, "__divmod__", _divmod)  # noqa: B010  # mypy takes the plain form for an operator
    setattr(ndarray, "__rdivmod__", _reflected_divmod)  # noqa: B010
    for short, name in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
        method = f"__{short}__"
        setattr(ndarray, method, _unary_operator(UFUNCS[name]))
        setattr(Scalar, method, _scalar_operator(getattr(operator, method), getattr(ndarray, method), False))
    comparisons = {
        "lt": "less",
        "le": "less_equal",
        "gt": "greater",
        "ge": "greater_equal",
        "eq": "equal",
        "ne": "not_equal",
    }
    for short, name in comparisons.items():
        method = f"__{short}__"
        setattr(ndarray, method, _comparison(UFUNCS[name], name, short))
        setattr(Scalar, method, _scalar_operator(getattr(operator, method), getattr(ndarray, method), False))


install_operators()
