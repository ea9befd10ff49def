"""The parameters of a lowered kernel, and where the launch finds their values."""

from dataclasses import dataclass
from math import gcd

from blockarray.fusion.lower_analysis import dtype_of, is_full
from blockarray.fusion.plan import KernelPlan, Number, Position, Read, RunningFold, Take, Write
from codegen.dtypes import DType
from codegen.ir.kernel import BufferParameter, IndexParameter, Parameter, ScalarParameter, Value
from codegen.ir.types import BufferType

# All memory that blockarray allocates starts at a multiple of this many bytes.
BUFFER_ALIGNMENT = 64
# What may be known of an extent when a kernel is compiled; few classes, so that other extents reuse its code.
_DIVISORS = (16, 4)


@dataclass(frozen=True)
class SlotNumber:
    """A slot with a number that is part of the plan: an extent, a stride, a position."""

    value: int


@dataclass(frozen=True)
class SlotPointer:
    """A slot with an address: that of a value's memory, and bytes from there."""

    value_number: int
    byte_offset: int


@dataclass(frozen=True)
class SlotConstant:
    """A slot with a constant of the expression: the number of its value."""

    value_number: int


Argument = SlotNumber | SlotPointer | SlotConstant


class Parameters:
    """Declares parameters in call order, with an argument for each slot."""

    def __init__(self, plan: KernelPlan) -> None:
        self._plan = plan
        self._parameters: list[Parameter] = []
        self._arguments: list[Argument] = []
        # What divides an outer extent makes no difference to the code, so it is not looked at.
        last = len(plan.axes) - 1
        self.extents = [self._number(f"extent{k}", axis.extent, k == last) for k, axis in enumerate(plan.axes)]
        self.pieces = {k: self._number(f"pieces{k}", axis.pieces) for k, axis in enumerate(plan.axes) if axis.piece}
        self.numbers: dict[int, Value] = {}
        self.offsets: dict[int, Value | None] = {}
        self.strides: dict[int, tuple[Value | int, ...]] = {}
        self.position_strides: dict[int, tuple[Value | int, ...]] = {}
        self.buffers: dict[int, Value] = {}
        self.before: dict[int, Value] = {}
        self.targets: list[Value] = []
        self._declare_numbers()
        self._declare_buffers()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters in call order."""
        return tuple(self._parameters)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """One argument for each slot."""
        return tuple(self._arguments)

    def _number(self, name: str, value: int, is_classed: bool = False) -> Value:
        parameter = index_parameter(name, value) if is_classed else IndexParameter(name)
        self._parameters.append(parameter)
        self._arguments.append(SlotNumber(value))
        return parameter.value

    def _step(self, name: str, value: int) -> Value | int:
        """A stride: 0 and 1 are part of the code, others are passed."""
        return value if value in (0, 1) else self._number(name, value)

    def _declare_numbers(self) -> None:
        constants = positions = takes = 0
        for number, statement in enumerate(self._plan.statements):
            match statement:
                case Number(source=source, dtype=dtype):
                    parameter = ScalarParameter(f"c{constants}", dtype)
                    self._parameters.append(parameter)
                    self._arguments.append(SlotConstant(source))
                    self.numbers[number] = parameter.value
                    constants += 1
                case Position(offset=offset, strides=strides):
                    self._declare_steps(number, f"position{positions}", offset, strides)
                    positions += 1
                case Take(offset=_, position_strides=position_strides, rest=rest):
                    self._declare_steps(number, f"source{takes}", 0, rest)
                    self.position_strides[number] = tuple(
                        self._step(f"source{takes}_step{k}", stride) for k, stride in enumerate(position_strides)
                    )
                    takes += 1

    def _declare_steps(self, number: int, name: str, offset: int, strides: tuple[int, ...]) -> None:
        self.offsets[number] = self._number(f"{name}_offset", offset) if offset else None
        self.strides[number] = tuple(self._step(f"{name}_stride{k}", stride) for k, stride in enumerate(strides))

    def _declare_buffers(self) -> None:
        reads = takes = carries = 0
        for number, statement in enumerate(self._plan.statements):
            match statement:
                case Read():
                    self.buffers[number] = self._read(f"x{reads}", statement)
                    reads += 1
                case Take(source=source, dtype=dtype, offset=offset):
                    self.buffers[number] = self._gathered(f"source{takes}", source, dtype, offset)
                    takes += 1
                case RunningFold(before=Read() as before):
                    self.before[number] = self._read(f"before{carries}", before, by_pieces=True)
                    carries += 1
        for number, write in enumerate(self._plan.writes):
            self.targets.append(self._write(f"y{number}", write))

    def _read(self, name: str, read: Read, by_pieces: bool = False) -> Value:
        restrict = read.source not in self._plan.aliased
        return self._buffer(name, read.source, read.dtype, read.offset, read.strides, by_pieces, False, restrict)

    def _write(self, name: str, write: Write) -> Value:
        dtype = self._dtype_of(write)
        by_pieces = not is_full(self._plan, self._plan.varies(), write)
        restrict = not self._plan.aliased
        return self._buffer(name, write.target, dtype, write.offset, write.strides, by_pieces, True, restrict)

    def _dtype_of(self, write: Write) -> DType:
        return dtype_of(self._plan.statements[write.value])

    def _buffer(
        self,
        name: str,
        source: int,
        dtype: DType,
        offset: int,
        strides: tuple[int, ...],
        by_pieces: bool,
        written: bool,
        restrict: bool,
    ) -> Value:
        extents: list[str | int] = []
        known: list[int | None] = []
        for axis, stride in enumerate(strides):
            counted = "pieces" if by_pieces and axis in self.pieces else "extent"
            extents.append(1 if stride == 0 else f"{counted}{axis}")
            is_known = stride in (0, 1) or (stride == -1 and axis == len(strides) - 1)
            known.append(stride if is_known else None)
        type_ = BufferType(dtype, tuple(extents), tuple(known), alignment_of(dtype, offset, strides))
        parameter = BufferParameter(name, type_, written, restrict)
        self._parameters.append(parameter)
        self._arguments.append(SlotPointer(source, offset * dtype.itemsize))
        self._arguments += [SlotNumber(stride) for stride, seen in zip(strides, known, strict=True) if seen is None]
        return parameter.value

    def _gathered(self, name: str, source: int, dtype: DType, offset: int) -> Value:
        """A buffer that is read at computed elements. They all exist, so nothing needs to know how many there are."""
        elements = self._number(f"{name}_elements", 2**63 - 1)
        type_ = BufferType(dtype, (elements.name,), (1,), dtype.itemsize)
        parameter = BufferParameter(name, type_, False, source not in self._plan.aliased)
        self._parameters.append(parameter)
        self._arguments.append(SlotPointer(source, offset * dtype.itemsize))
        return parameter.value


def index_parameter(name: str, value: int) -> IndexParameter:
    """A parameter for a number of the plan, with what its class tells of it."""
    return IndexParameter(name, next((divisor for divisor in _DIVISORS if value % divisor == 0), 1))


def alignment_of(dtype: DType, offset: int, strides: tuple[int, ...]) -> int:
    """Bytes that divide the pointer and every stride but a last one of 1.

    An outer stride of 1 (windows, diagonals) counts: a row may then start at any element.
    """
    last = len(strides) - 1
    outer = (abs(stride) * dtype.itemsize for axis, stride in enumerate(strides) if stride != 1 or axis != last)
    return max(dtype.itemsize, gcd(BUFFER_ALIGNMENT, offset * dtype.itemsize, *outer))
