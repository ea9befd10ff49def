"""What the IR means: kernels run on NumPy arrays, one program after the other, each operation on whole blocks.

The interpreter also finds what no target would notice: windows that leave a buffer though nothing checks them, elements that
two programs write or that one reads while another writes, and memory that is read before it is written.
"""

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.interpreter_memory import (
    Access,
    InterpretationError,
    InterpretedBuffer,
    private_memory,
    shared_memory,
)
from codegen.ir.kernel import Body, BufferParameter, IndexParameter, Kernel, Value
from codegen.ir.operations import (
    Allocate,
    Broadcast,
    Cast,
    Constant,
    Dot,
    DotLoop,
    For,
    Gather,
    If,
    Iota,
    Load,
    Map,
    Operation,
    ProgramIndex,
    Reduce,
    Reshape,
    Scan,
    Scatter,
    Store,
)
from codegen.ir.printer import print_operation
from codegen.ir.verifier import verify
from codegen.scalar.combiners import COMBINERS
from codegen.scalar.numpy_core import NumpyCore, evaluate
from codegen.scalar.table import TABLE

Array = np.ndarray
Arrays = tuple[Array, ...]
Argument = bool | int | float | np.generic | np.ndarray

_CORE = NumpyCore()


def interpret(kernel: Kernel, arguments: Mapping[str, Argument]) -> None:
    """Run all programs of a kernel; written buffers change in place.

    Parameters
    ----------
    kernel : Kernel
    arguments : mapping
        By parameter name: an int for an index, a number for a scalar, and for a buffer an array with the dtype, the
        extents and, where they are stated, the strides of its type.

    Raises
    ------
    VerificationError
        If the kernel breaks a rule of the IR.
    InterpretationError
        If arguments do not fit, or a program does something that has no meaning.
    """
    verify(kernel)
    values = _bind(kernel, arguments)
    counts = program_counts(kernel, arguments)
    with np.errstate(all="ignore"):
        for number, place in enumerate(product(*map(range, counts))):
            _Program(number, place, dict(values)).body(kernel.body)


def program_counts(kernel: Kernel, arguments: Mapping[str, Argument]) -> tuple[int, ...]:
    """How many programs lie along each grid axis."""
    extents = (
        axis.extent if isinstance(axis.extent, int) else _integer(arguments[axis.extent]) for axis in kernel.grid
    )
    return tuple(-(-extent // axis.block) for extent, axis in zip(extents, kernel.grid, strict=True))


def _integer(argument: Argument) -> int:
    if isinstance(argument, (bool, float)) or not isinstance(argument, (int, np.integer)):
        raise InterpretationError(f"expected an integer, found {argument!r}")
    return int(argument)


def _bind(kernel: Kernel, arguments: Mapping[str, Argument]) -> dict[Value, "Array | InterpretedBuffer"]:
    names = [parameter.name for parameter in kernel.parameters]
    if set(names) != set(arguments):
        raise InterpretationError(f"kernel {kernel.name}: expected arguments {names}, found {list(arguments)}")
    values: dict[Value, Array | InterpretedBuffer] = {}
    arrays: dict[str, Array] = {}
    for parameter in kernel.parameters:
        argument = arguments[parameter.name]
        if isinstance(parameter, BufferParameter):
            arrays[parameter.name] = _array_for(parameter, argument, arguments)
        elif isinstance(parameter, IndexParameter):
            number = _integer(argument)
            if number % parameter.divisible:
                raise InterpretationError(f"{parameter.name}: {number} is no multiple of {parameter.divisible}")
            values[parameter.value] = np.array(number, np.int64)
        else:
            values[parameter.value] = np.array(argument, parameter.dtype.numpy)
    written = {row.name for row in kernel.parameters if isinstance(row, BufferParameter) and row.written}
    buffers = shared_memory(arrays, written)
    return values | {row.value: buffers[row.name] for row in kernel.parameters if row.name in buffers}


def _array_for(parameter: BufferParameter, argument: Argument, arguments: Mapping[str, Argument]) -> Array:
    kind = parameter.type
    if not isinstance(argument, np.ndarray) or argument.dtype != kind.dtype.numpy:
        found = getattr(argument, "dtype", type(argument).__name__)
        raise InterpretationError(f"{parameter.name}: expected an array of {kind.dtype}, found {found}")
    extents = tuple(row if isinstance(row, int) else _integer(arguments[row]) for row in kind.extents)
    if argument.shape != extents:
        raise InterpretationError(f"{parameter.name}: expected shape {extents}, found {argument.shape}")
    for axis, stride in enumerate(kind.strides):
        # NumPy gives arrays without elements strides of its own.
        if (
            stride is not None
            and argument.size
            and extents[axis] > 1
            and argument.strides[axis] != stride * kind.dtype.itemsize
        ):
            found = argument.strides[axis] / kind.dtype.itemsize
            raise InterpretationError(f"{parameter.name}: expected stride {stride} on axis {axis}, found {found:g}")
    if parameter.written and not argument.flags.writeable:
        raise InterpretationError(f"{parameter.name}: the kernel writes it, but the array is read-only")
    return argument


def apply_row(name: str, operands: Arrays) -> Array:
    """A row of the scalar table on arrays: the NumPy ufunc where there is one, else the row's definition."""
    row = TABLE[name]
    kinds = tuple(dtypes.of(operand.dtype) for operand in operands)
    result = row.result_dtype(*kinds)
    ufunc = getattr(np, row.numpy_name, None) if row.numpy_name else None
    if not isinstance(ufunc, np.ufunc) or not _as_ufunc(name, row.half, kinds):
        return evaluate(name, *operands)
    if row.half == "widen":
        operands = tuple(
            operand.astype(np.float32) if kind.is_half else operand
            for operand, kind in zip(operands, kinds, strict=True)
        )
    with np.errstate(all="ignore"):
        return np.asarray(ufunc(*operands)).astype(result.numpy, copy=False)


def _as_ufunc(name: str, half: str, kinds: tuple[DType, ...]) -> bool:
    """Whether the ufunc has a loop for operands of these dtypes with the row's meaning."""
    if dtypes.boolean in kinds or (half == "bits" and dtypes.bfloat16 in kinds):
        return False
    # NumPy refuses negative exponents of integers; the row, like the generated code, gives them a value.
    return name != "power" or kinds[0].kind == "float"


def cast_array(array: Array, dtype: DType) -> Array:
    """NumPy's astype, without its warnings."""
    with np.errstate(all="ignore"):
        return array.astype(dtype.numpy)


def combine(function: str, left: Arrays, right: Arrays) -> Arrays:
    """Two partial results of a combiner, of which `left` comes first, as one."""
    combiner = COMBINERS[function]
    if combiner.arity == 1 and function in TABLE:
        return (apply_row(function, (left[0], right[0])),)
    first, second = (tuple(_CORE.value(array) for array in side) for side in (left, right))
    return tuple(value.array for value in combiner.combine(_CORE, first, second))  # type: ignore[attr-defined]


def fold(function: str, operands: Arrays, axis: int) -> Arrays:
    """A combiner folded along an axis, which keeps extent 1: neighbours in pairs, until one is left."""
    while operands[0].shape[axis] > 1:
        length = operands[0].shape[axis]
        left = tuple(_every_second(array, axis, 0, length - length % 2) for array in operands)
        right = tuple(_every_second(array, axis, 1, length) for array in operands)
        pairs = combine(function, left, right)
        if length % 2:
            rest = tuple(_every_second(array, axis, length - 1, length) for array in operands)
            pairs = tuple(np.concatenate(both, axis) for both in zip(pairs, rest, strict=True))
        operands = pairs
    return operands


def _every_second(array: Array, axis: int, begin: int, end: int) -> Array:
    return array[(slice(None),) * axis + (slice(begin, end, 2),)]


class _Program:
    """One program: its number, its place in the grid, and the values that it has computed."""

    def __init__(self, number: int, place: tuple[int, ...], values: dict[Value, Array | InterpretedBuffer]) -> None:
        self._number = number
        self._place = place
        self._values = values

    def body(self, body: Body) -> tuple[Array, ...]:
        """Run the operations of a body; what it yields."""
        for operation in body.operations:
            results = OPERATION_MEANINGS[type(operation)](self, operation)
            for value, array in zip(operation.results, results, strict=True):
                self._values[value] = array
        return tuple(self._array(value) for value in body.yields)

    def _array(self, value: Value) -> Array:
        found = self._values[value]
        if isinstance(found, InterpretedBuffer):
            raise InterpretationError(f"{value!r}: expected a block, found a buffer")
        return found

    def _buffer(self, value: Value) -> InterpretedBuffer:
        found = self._values[value]
        if not isinstance(found, InterpretedBuffer):
            raise InterpretationError(f"{value!r}: expected a buffer, found a block")
        return found

    def _arrays(self, values: tuple[Value, ...]) -> Arrays:
        return tuple(self._array(value) for value in values)

    def _scalars(self, values: tuple[Value, ...]) -> tuple[int, ...]:
        return tuple(int(self._array(value)) for value in values)

    def _access(self, operation: Operation) -> Access:
        return Access(self._number, print_operation(operation), operation.location)

    def constant(self, operation: Constant) -> Arrays:
        """A block of one number."""
        return (np.full(operation.shape, np.array(operation.number, operation.dtype.numpy)),)

    def iota(self, operation: Iota) -> Arrays:
        """Positions along an axis."""
        shape = [1] * len(operation.shape)
        shape[operation.axis] = operation.shape[operation.axis]
        count = np.arange(operation.shape[operation.axis], dtype=np.int64)
        return (np.broadcast_to(count.reshape(shape), operation.shape),)

    def cast(self, operation: Cast) -> Arrays:
        """NumPy's astype."""
        return (cast_array(self._array(operation.operands[0]), operation.dtype),)

    def map(self, operation: Map) -> Arrays:
        """A row of the scalar table."""
        return (apply_row(operation.function, self._arrays(operation.operands)),)

    def broadcast(self, operation: Broadcast) -> Arrays:
        """Unit axes repeated."""
        return (np.broadcast_to(self._array(operation.operands[0]), operation.shape),)

    def reshape(self, operation: Reshape) -> Arrays:
        """Unit axes added or removed."""
        return (self._array(operation.operands[0]).reshape(operation.shape),)

    def reduce(self, operation: Reduce) -> Arrays:
        """A combiner folded."""
        return fold(operation.function, self._arrays(operation.operands), operation.axis)

    def scan(self, operation: Scan) -> Arrays:
        """A combiner folded, with all steps kept."""
        operands, axis = self._arrays(operation.operands), operation.axis
        before = (slice(None),) * axis
        partial = tuple(array[(*before, slice(0, 1))] for array in operands)
        steps = [partial]
        for position in range(1, operands[0].shape[axis]):
            entry = tuple(array[(*before, slice(position, position + 1))] for array in operands)
            partial = combine(operation.function, partial, entry)
            steps.append(partial)
        running = tuple(np.concatenate(arrays, axis) for arrays in zip(*steps, strict=True))
        return running + partial

    def dot(self, operation: Dot) -> Arrays:
        """A matrix product added to the accumulator, in the accumulator's dtype (halves in float32)."""
        a, b, accumulator = self._arrays(operation.operands)
        return (_multiplied(a, b, accumulator, operation.operands[2].block.dtype),)

    def dot_loop(self, operation: DotLoop) -> Arrays:
        """Windows read and multiplied one after the other."""
        begin, end = self._scalars(operation.operands[:2])
        total = self._array(operation.accumulator)
        access = self._access(operation)
        sides = (
            (self._buffer(operation.a), operation.a_offsets, operation.a_shape, operation.a_axes),
            (self._buffer(operation.b), operation.b_offsets, operation.b_shape, operation.b_axes),
        )
        for inner in range(begin, end, operation.step):
            windows = []
            for buffer, offsets, shape, axes in sides:
                places = tuple(inner if offset is None else int(self._array(offset)) for offset in offsets)
                fill = np.zeros((), buffer.array.dtype)
                window = buffer.read_window(places, shape, (True,) * len(shape), fill, access)
                windows.append(window.reshape([shape[axis] for axis in axes]))
            total = _multiplied(windows[0], windows[1], total, operation.accumulator.block.dtype)
        return (total,)

    def load(self, operation: Load) -> Arrays:
        """A window read."""
        buffer = self._buffer(operation.operands[0])
        offsets = self._scalars(operation.operands[1:])
        fill = np.array(operation.fill, buffer.array.dtype)
        access = self._access(operation)
        return (buffer.read_window(offsets, operation.shape, operation.checked, fill, access),)

    def store(self, operation: Store) -> Arrays:
        """A window written."""
        buffer = self._buffer(operation.operands[0])
        offsets = self._scalars(operation.operands[1:-1])
        value = self._array(operation.operands[-1])
        buffer.write_window(offsets, value, operation.checked, self._access(operation))
        return ()

    def gather(self, operation: Gather) -> Arrays:
        """Positions read."""
        buffer = self._buffer(operation.operands[0])
        indices = self._arrays(operation.operands[1:])
        fill = np.array(operation.fill, buffer.array.dtype)
        return (buffer.read_at(indices, operation.checked, fill, self._access(operation)),)

    def scatter(self, operation: Scatter) -> Arrays:
        """Positions written."""
        buffer = self._buffer(operation.operands[0])
        *indices, value = self._arrays(operation.operands[1:])
        buffer.write_at(tuple(indices), value, self._access(operation))
        return ()

    def allocate(self, operation: Allocate) -> tuple[InterpretedBuffer]:
        """Fresh memory."""
        name = operation.result.name or "allocated memory"
        return (private_memory(name, operation.dtype.numpy, operation.shape),)

    def program_index(self, operation: ProgramIndex) -> Arrays:
        """The place of this program."""
        return (np.array(self._place[operation.axis], np.int64),)

    def loop(self, operation: For) -> Arrays:
        """Turns with the carried values handed on."""
        begin, end = self._scalars(operation.operands[:2])
        (body,) = operation.bodies
        index, *parameters = body.parameters
        carried = self._arrays(operation.operands[2:])
        for number in range(begin, end, operation.step):
            self._values[index] = np.array(number, np.int64)
            self._values.update(zip(parameters, carried, strict=True))
            carried = self.body(body)
        return carried

    def branch(self, operation: If) -> Arrays:
        """One of two bodies."""
        holds = bool(self._array(operation.operands[0]))
        return self.body(operation.bodies[0 if holds else 1])


def _multiplied(a: Array, b: Array, accumulator: Array, dtype: DType) -> Array:
    wide = dtypes.float32 if dtype.is_half else dtype
    product_ = cast_array(a, wide) @ cast_array(b, wide)
    return cast_array(product_ + cast_array(accumulator, wide), dtype)


OPERATION_MEANINGS: Mapping[type[Operation], Callable[..., tuple[Array | InterpretedBuffer, ...]]] = {
    Constant: _Program.constant,
    Iota: _Program.iota,
    Cast: _Program.cast,
    Map: _Program.map,
    Broadcast: _Program.broadcast,
    Reshape: _Program.reshape,
    Reduce: _Program.reduce,
    Scan: _Program.scan,
    Dot: _Program.dot,
    DotLoop: _Program.dot_loop,
    Load: _Program.load,
    Store: _Program.store,
    Gather: _Program.gather,
    Scatter: _Program.scatter,
    Allocate: _Program.allocate,
    ProgramIndex: _Program.program_index,
    For: _Program.loop,
    If: _Program.branch,
}
