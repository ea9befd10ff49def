"""Builder: the one way to make operations. It infers types, keeps order, and nests bodies."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.kernel import Body, GridAxis, Kernel, Parameter, Value
from codegen.ir.layout import Layout
from codegen.ir.location import Location
from codegen.ir.operations import (
    Allocate,
    Broadcast,
    Cast,
    Constant,
    Dot,
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
from codegen.ir.types import INDEX

Number = bool | int | float
SomeOperation = TypeVar("SomeOperation", bound=Operation)


class Builder:
    """Appends operations to the innermost open body.

    Examples
    --------
    >>> from codegen import dtypes
    >>> builder = Builder()
    >>> two = builder.constant(dtypes.float32, 2.0)
    >>> builder.map("multiply", two, two).type.dtype
    float32
    """

    def __init__(self) -> None:
        self._open: list[list[Operation]] = [[]]
        self.location: Location | None = None

    def add(self, operation: SomeOperation, names: Sequence[str] = ()) -> SomeOperation:
        """Append `operation`, whose results are made here from its inferred types."""
        types = operation.infer()
        labels = tuple(names) + ("",) * (len(types) - len(names))
        object.__setattr__(
            operation, "results", tuple(Value(kind, label) for kind, label in zip(types, labels, strict=False))
        )
        object.__setattr__(operation, "location", self.location)
        self._open[-1].append(operation)
        return operation

    def constant(self, dtype: DType, number: Number, shape: tuple[int, ...] = (), name: str = "") -> Value:
        """A block filled with `number`."""
        return self.add(Constant(dtype=dtype, number=number, shape=shape), [name]).result

    def index(self, number: int) -> Value:
        """An int64 scalar."""
        return self.constant(dtypes.int64, number)

    def iota(self, shape: tuple[int, ...], axis: int) -> Value:
        """0, 1, 2 … along `axis`."""
        return self.add(Iota(shape=shape, axis=axis)).result

    def cast(self, value: Value, dtype: DType, name: str = "") -> Value:
        """`value` converted as NumPy's astype does; itself if it has that dtype."""
        if value.block.dtype is dtype:
            return value
        return self.add(Cast(operands=(value,), dtype=dtype), [name]).result

    def map(self, function: str, *operands: Value, name: str = "") -> Value:
        """A row of the scalar table on blocks of one shape."""
        return self.add(Map(operands=operands, function=function), [name]).result

    def broadcast(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`value` repeated to `shape`; itself if it has that shape."""
        if value.block.shape == shape:
            return value
        return self.add(Broadcast(operands=(value,), shape=shape)).result

    def reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`value` with unit axes added or removed; itself if it has that shape."""
        if value.block.shape == shape:
            return value
        return self.add(Reshape(operands=(value,), shape=shape)).result

    def reduce(
        self, function: str, operands: Sequence[Value], axis: int, names: Sequence[str] = ()
    ) -> tuple[Value, ...]:
        """A combiner folded along `axis`."""
        return self.add(Reduce(operands=tuple(operands), function=function, axis=axis), names).results

    def scan(self, function: str, operands: Sequence[Value], axis: int) -> tuple[Value, ...]:
        """Running fold along `axis`: the scanned operands, then the totals."""
        return self.add(Scan(operands=tuple(operands), function=function, axis=axis)).results

    def dot(self, a: Value, b: Value, accumulator: Value) -> Value:
        """``a @ b + accumulator``."""
        return self.add(Dot(operands=(a, b, accumulator))).result

    def load(
        self,
        buffer: Value,
        offsets: Sequence[Value],
        shape: tuple[int, ...],
        checked: tuple[bool, ...] | None = None,
        fill: Number = 0,
        name: str = "",
    ) -> Value:
        """A window of `buffer`; every axis is checked unless `checked` says otherwise."""
        checks = (True,) * len(shape) if checked is None else checked
        operation = Load(operands=(buffer, *offsets), shape=shape, checked=checks, fill=fill)
        return self.add(operation, [name]).result

    def store(
        self, buffer: Value, offsets: Sequence[Value], value: Value, checked: tuple[bool, ...] | None = None
    ) -> None:
        """Write a window of `buffer`."""
        checks = (True,) * buffer.buffer.rank if checked is None else checked
        self.add(Store(operands=(buffer, *offsets, value), checked=checks))

    def gather(self, buffer: Value, indices: Sequence[Value], checked: bool = True, fill: Number = 0) -> Value:
        """Elements at computed positions."""
        return self.add(Gather(operands=(buffer, *indices), checked=checked, fill=fill)).result

    def scatter(self, buffer: Value, indices: Sequence[Value], value: Value) -> None:
        """Write elements to computed positions, none twice."""
        self.add(Scatter(operands=(buffer, *indices, value)))

    def allocate(self, dtype: DType, shape: tuple[int, ...], name: str = "") -> Value:
        """Memory private to the program."""
        return self.add(Allocate(dtype=dtype, shape=shape), [name]).result

    def program_index(self, axis: int, name: str = "") -> Value:
        """Number of this program along a grid axis."""
        return self.add(ProgramIndex(axis=axis), [name]).result

    def loop(
        self,
        begin: Value,
        end: Value,
        step: int,
        initial: Sequence[Value],
        body: Callable[..., Sequence[Value]],
        name: str = "",
    ) -> tuple[Value, ...]:
        """A counted loop; `body` gets the index and the carried values and returns the next ones."""
        parameters = (Value(INDEX, name), *(Value(value.type, value.name) for value in initial))
        inner = self._nested(parameters, lambda: body(*parameters))
        return self.add(For(operands=(begin, end, *initial), bodies=(inner,), step=step)).results

    def branch(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]] = lambda: (),
    ) -> tuple[Value, ...]:
        """One of two bodies by a scalar condition."""
        bodies = (self._nested((), then), self._nested((), otherwise))
        return self.add(If(operands=(condition,), bodies=bodies)).results

    def _nested(self, parameters: tuple[Value, ...], fill: Callable[[], Sequence[Value]]) -> Body:
        self._open.append([])
        yields = tuple(fill())
        return Body(parameters, tuple(self._open.pop()), yields)

    def kernel(self, name: str, parameters: Sequence[Parameter], grid: Sequence[GridAxis], layout: Layout) -> Kernel:
        """The finished kernel of all that was added."""
        (operations,) = self._open
        return Kernel(name, tuple(parameters), tuple(grid), Body((), tuple(operations)), layout)
