"""What must hold of a kernel, in block form and in distributed form. A pass gets a kernel that holds, and returns one."""

import math
from collections.abc import Callable

from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import VerificationError
from codegen.ir.kernel import Body, BufferParameter, IndexParameter, Kernel, Value
from codegen.ir.operations import (
    OPERATIONS,
    Allocate,
    Constant,
    Dot,
    DotLoop,
    Gather,
    Load,
    Map,
    Operation,
    ProgramIndex,
    Reduce,
    Scan,
    Scatter,
    Store,
)
from codegen.ir.printer import print_operation
from codegen.ir.types import BlockType, BufferType, Type
from codegen.scalar.table import TABLE

# Rows whose operands have different dtypes by their meaning; all others take one dtype.
_MIXED_ROWS = frozenset(
    {
        "ldexp",
        "less_signed_unsigned",
        "less_equal_signed_unsigned",
        "equal_signed_unsigned",
        "floor_divide_by",
        "remainder_by",
        "fmod_by",
        "truncated_divide_by",
    }
)


def verify(kernel: Kernel) -> None:
    """Raise VerificationError, naming the operation and its place, unless all rules hold."""
    _check_name(kernel.name, "kernel", kernel.name)
    _check_parameters(kernel)
    _check_grid(kernel)
    if kernel.body.parameters or kernel.body.yields:
        raise VerificationError(f"kernel {kernel.name}: expected a body without parameters and yields")
    _Verifier(kernel).run()


def _check_name(name: str, what: str, kernel: str) -> None:
    if not (name.isidentifier() and name.isascii()):
        raise VerificationError(f"kernel {kernel}: the {what} name {name!r} is no ASCII identifier")


def _check_parameters(kernel: Kernel) -> None:
    seen: set[str] = set()
    indices = {row.name for row in kernel.parameters if isinstance(row, IndexParameter)}
    for parameter in kernel.parameters:
        _check_name(parameter.name, "parameter", kernel.name)
        where = f"kernel {kernel.name}, parameter {parameter.name}"
        if parameter.name in seen:
            raise VerificationError(f"{where}: the name stands twice")
        seen.add(parameter.name)
        if isinstance(parameter, IndexParameter) and parameter.divisible < 1:
            raise VerificationError(f"{where}: divisible by {parameter.divisible}; expected at least 1")
        if isinstance(parameter, BufferParameter):
            _check_buffer(parameter.type, indices, where)


def _check_buffer(buffer: BufferType, indices: set[str], where: str) -> None:
    for extent in buffer.extents:
        if isinstance(extent, str) and extent not in indices:
            raise VerificationError(f"{where}: the extent {extent} is no index parameter of the kernel")
        if isinstance(extent, int) and extent < 0:
            raise VerificationError(f"{where}: the extent {extent} is negative")
    alignment = buffer.alignment
    if alignment < buffer.dtype.itemsize or alignment & (alignment - 1):
        raise VerificationError(
            f"{where}: alignment {alignment}; expected a power of two, at least the item size {buffer.dtype.itemsize}"
        )


def _check_grid(kernel: Kernel) -> None:
    indices = {row.name for row in kernel.parameters if isinstance(row, IndexParameter)}
    for number, axis in enumerate(kernel.grid):
        where = f"kernel {kernel.name}, grid axis {number}"
        if isinstance(axis.extent, str) and axis.extent not in indices:
            raise VerificationError(f"{where}: the extent {axis.extent} is no index parameter of the kernel")
        if axis.block < 1 or (isinstance(axis.extent, int) and axis.extent < 0):
            raise VerificationError(f"{where}: {axis}; expected a positive block and an extent that is not negative")


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._rank = kernel.layout.rank
        self._visible: set[Value] = {parameter.value for parameter in kernel.parameters}
        self._defined: set[Value] = set(self._visible)
        self._writable = {row.value for row in kernel.parameters if isinstance(row, BufferParameter) and row.written}
        self._checked_types: set[Type] = set()
        self._tile: list[int] | None = None if _uses_dot(kernel.body) else [1] * self._rank

    def run(self) -> None:
        """Check the body."""
        self._body(self._kernel.body)

    def _fail(self, operation: Operation, problem: str) -> VerificationError:
        place = f" – {operation.location}" if operation.location else ""
        return VerificationError(f"kernel {self._kernel.name}: `{print_operation(operation)}`: {problem}{place}")

    def _body(self, body: Body) -> None:
        for operation in body.operations:
            self._operation(operation)

    def _operation(self, operation: Operation) -> None:
        if OPERATIONS.get(operation.name) is not type(operation):
            raise self._fail(operation, f"{type(operation).__name__} is no operation of the IR")
        for operand in operation.operands:
            if operand not in self._visible:
                raise self._fail(operation, f"{operand!r} is used where it is not defined")
        for body in operation.bodies:
            self._nested(operation, body)
        self._results(operation)
        check = _CHECKS.get(type(operation))
        problem = check(operation) if check is not None else None
        if problem is None and isinstance(operation, ProgramIndex) and not 0 <= operation.axis < len(self._kernel.grid):
            problem = f"axis {operation.axis} of a grid with {len(self._kernel.grid)} axes"
        if problem is None and isinstance(operation, (Store, Scatter)) and operation.operands[0] not in self._writable:
            problem = "expected a buffer parameter that is `written`, or memory of the program"
        if problem is not None:
            raise self._fail(operation, problem)
        if isinstance(operation, Allocate):
            self._writable.add(operation.result)

    def _nested(self, operation: Operation, body: Body) -> None:
        outer = set(self._visible)
        self._define(operation, body.parameters)
        self._body(body)
        for value in body.yields:
            if value not in self._visible:
                raise self._fail(operation, f"a body yields {value!r}, which is not defined there")
        self._visible = outer

    def _define(self, operation: Operation, values: tuple[Value, ...]) -> None:
        for value in values:
            if value in self._defined:
                raise self._fail(operation, f"{value!r} is defined twice")
            if value.name and not (value.name.isidentifier() and value.name.isascii()):
                raise self._fail(operation, f"the value name {value.name!r} is no ASCII identifier")
            if value.type not in self._checked_types:
                self._check_shape(operation, value)
                self._checked_types.add(value.type)
            self._defined.add(value)
            self._visible.add(value)

    def _results(self, operation: Operation) -> None:
        try:
            inferred = operation.infer()
        except VerificationError as error:
            raise self._fail(operation, str(error)) from None
        except (ValueError, TypeError) as error:
            raise self._fail(operation, f"operands or attributes do not fit: {error}") from None
        stated = tuple(value.type for value in operation.results)
        if stated != inferred and tuple(map(_without_layout, stated)) != tuple(map(_without_layout, inferred)):
            expected, found = (", ".join(map(str, kinds)) or "none" for kinds in (inferred, stated))
            raise self._fail(operation, f"expected results {expected}, found {found}")
        self._define(operation, operation.results)

    def _check_shape(self, operation: Operation, value: Value) -> None:
        if isinstance(value.type, BufferType):
            return
        shape = value.block.shape
        if any(extent < 1 for extent in shape):
            raise self._fail(operation, f"{value!r} has an empty axis")
        if not shape:
            return
        if len(shape) != self._rank:
            if self._tile is None:
                return  # operands of a product have windows of their own rank
            raise self._fail(operation, f"{value!r}: expected rank 0 or the layout's rank {self._rank}")
        for axis, extent in enumerate(shape):
            self._check_extent(operation, value, axis, extent)

    def _check_extent(self, operation: Operation, value: Value, axis: int, extent: int) -> None:
        if self._kernel.layout.lanes[axis] > 1 and extent & (extent - 1):
            raise self._fail(
                operation, f"{value!r}: axis {axis} lies in lanes; expected a power of two, found {extent}"
            )
        if self._tile is None or extent == 1:
            return
        small, large = sorted((self._tile[axis], extent))
        # What is left behind the last full tile may be worked on in smaller ones.
        if large % small:
            raise self._fail(
                operation, f"{value!r}: axis {axis} of the tile has extent {self._tile[axis]}; {extent} does not fit it"
            )
        self._tile[axis] = large


def _uses_dot(body: Body) -> bool:
    return any(
        isinstance(operation, (Dot, DotLoop)) or any(map(_uses_dot, operation.bodies)) for operation in body.operations
    )


def _without_layout(kind: Type) -> Type:
    if isinstance(kind, BufferType) or kind.layout is None:
        return kind
    return BlockType(kind.dtype, kind.shape)


def _check_constant(operation: Constant) -> str | None:
    return _number_problem(operation.number, operation.dtype)


def _check_fill(operation: Load | Gather) -> str | None:
    return _number_problem(operation.fill, operation.operands[0].buffer.dtype)


def _number_problem(number: bool | int | float, dtype: DType) -> str | None:
    if not isinstance(number, (bool, int, float)):
        return f"expected a Python number, found {number!r} of {type(number).__name__}"
    if dtype.kind == "float":
        return None
    if dtype is dtypes.boolean:
        return None if number in (0, 1) else f"{number!r} is no bool"
    if isinstance(number, float) and not (math.isfinite(number) and number.is_integer()):
        return f"{number!r} is no {dtype}"
    lowest = -(2 ** (dtype.bits - 1)) if dtype.kind == "signed" else 0
    if not lowest <= number < lowest + 2**dtype.bits:
        return f"{number!r} does not fit {dtype}"
    return None


def _check_map(operation: Map) -> str | None:
    kinds = [value.block.dtype for value in operation.operands]
    if operation.function == "where":
        if kinds[0] is not dtypes.boolean:
            return f"expected a bool condition, found {kinds[0]}"
        kinds = kinds[1:]
    if operation.function in _MIXED_ROWS or all(kind is kinds[0] for kind in kinds):
        return None
    return f"expected operands of one dtype, found {', '.join(map(str, kinds))}"


def _check_fold(operation: Reduce | Scan) -> str | None:
    row = TABLE.get(operation.function)
    if row is None:
        return None
    dtype = operation.operands[0].block.dtype
    try:
        result = row.result_dtype(dtype, dtype)
    except TypeError as error:
        return str(error)
    return (
        None
        if result is dtype
        else f"{row.name} of {dtype} is {result}; a fold keeps its dtype, cast the operand first"
    )


_CHECKS: dict[type[Operation], Callable[..., str | None]] = {
    Constant: _check_constant,
    Load: _check_fill,
    Gather: _check_fill,
    Map: _check_map,
    Reduce: _check_fold,
    Scan: _check_fold,
}
