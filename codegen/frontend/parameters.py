"""The parameters of a kernel while it is translated, and what each slot of a launch holds."""

from dataclasses import dataclass

from codegen.frontend.signature import ArrayKind, IndexKind, ScalarKind, Specialisation
from codegen.frontend.values import ArrayReference, Block
from codegen.ir.kernel import BufferParameter, IndexParameter, Parameter, ScalarParameter, Value
from codegen.ir.types import BufferType


@dataclass(frozen=True)
class ExtentSlot:
    """The length of an axis, by its name; ``grid0`` … are axes of a grid that the caller gives."""

    name: str


@dataclass(frozen=True)
class ScalarSlot:
    """A number argument in memory's form of its dtype."""

    parameter: str


@dataclass(frozen=True)
class PointerSlot:
    """The address of an array argument's first element."""

    parameter: str


@dataclass(frozen=True)
class StrideSlot:
    """Elements from one entry to the next along an axis of an array argument."""

    parameter: str
    axis: int


Slot = ExtentSlot | ScalarSlot | PointerSlot | StrideSlot


@dataclass(frozen=True)
class BufferView:
    """How a buffer parameter shows an array argument.

    Attributes
    ----------
    parameter : str
        The argument.
    axes : tuple of (int or None)
        For each axis of the buffer, the array's axis; None for an axis of extent 1.
    """

    parameter: str
    axes: tuple[int | None, ...]


class KernelParameters:
    """Declares parameters; buffers when they are first used, one for each way in which an array's axes lie."""

    def __init__(self, specialisation: Specialisation) -> None:
        self._kinds = dict(specialisation.arguments)
        self._taken: set[str] = set()
        self.extents: dict[str, IndexParameter] = {}
        for name, divisor in specialisation.divisors:
            self._taken.add(name)
            self.extents[name] = IndexParameter(name, divisor)
        for axis in range(specialisation.grid_axes or 0):
            self.extents[f"grid{axis}"] = IndexParameter(self._free(f"grid{axis}"))
        self._numbers: dict[str, ScalarParameter | IndexParameter] = {}
        for name, kind in specialisation.arguments:
            if isinstance(kind, ScalarKind):
                self._numbers[name] = ScalarParameter(self._free(name), kind.dtype)
            elif isinstance(kind, IndexKind):
                self._numbers[name] = IndexParameter(self._free(name), kind.divisible)
        self._buffers: dict[BufferView, BufferParameter] = {}
        self.stored: set[str] = set()

    def _free(self, name: str) -> str:
        base = name if name.isascii() else "parameter"
        chosen, number = base, 1
        while chosen in self._taken:
            number += 1
            chosen = f"{base}_{number}"
        self._taken.add(chosen)
        return chosen

    def extent(self, name: str | int) -> Value | int:
        """The length that a name stands for."""
        return name if isinstance(name, int) else self.extents[name].value

    def extents_of(self, name: str) -> tuple[str | int, ...]:
        """Names of the lengths of an array's axes."""
        kind = self._kinds[name]
        assert isinstance(kind, ArrayKind)
        return kind.extents

    def number(self, name: str) -> Block:
        """A number argument."""
        kind, value = self._kinds[name], self._numbers[name].value
        if isinstance(kind, IndexKind):
            return Block(value, weak=int, from_zero=True)
        assert isinstance(kind, ScalarKind)
        return Block(value, weak=kind.weak)

    def buffer(self, array: ArrayReference, axes: tuple[int | None, ...]) -> Value:
        """The buffer that shows an array with its axes in this order."""
        view = BufferView(array.name, axes)
        found = self._buffers.get(view)
        if found is None:
            found = self._buffers[view] = self._declare(view)
        return found.value

    def _declare(self, view: BufferView) -> BufferParameter:
        kind = self._kinds[view.parameter]
        assert isinstance(kind, ArrayKind)
        extents = tuple(1 if axis is None else kind.extents[axis] for axis in view.axes)
        strides = tuple(0 if axis is None else kind.strides[axis] for axis in view.axes)
        return BufferParameter(self._free(view.parameter), BufferType(kind.dtype, extents, strides, kind.alignment))

    @property
    def views(self) -> dict[str, BufferView]:
        """What each buffer parameter shows, by its name."""
        return {parameter.name: view for view, parameter in self._finished()}

    def _finished(self) -> list[tuple[BufferView, BufferParameter]]:
        return [(view, self._final(view, parameter)) for view, parameter in self._buffers.items()]

    def _final(self, view: BufferView, parameter: BufferParameter) -> BufferParameter:
        """With what the whole body tells: whether it is written, and whether another parameter shows the same memory."""
        written = view.parameter in self.stored
        several = sum(other.parameter == view.parameter for other in self._buffers) > 1
        final = BufferParameter(parameter.name, parameter.type, written, restrict=not (written and several))
        object.__setattr__(final, "value", parameter.value)
        return final

    def finished(self) -> tuple[list[Parameter], list[Slot]]:
        """All parameters in call order, and their slots."""
        parameters: list[Parameter] = [*self.extents.values(), *self._numbers.values()]
        slots: list[Slot] = [*map(ExtentSlot, self.extents), *map(ScalarSlot, self._numbers)]
        for view, parameter in self._finished():
            parameters.append(parameter)
            slots.append(PointerSlot(view.parameter))
            for axis, stride in zip(view.axes, parameter.type.strides, strict=True):
                if stride is None:
                    assert axis is not None
                    slots.append(StrideSlot(view.parameter, axis))
        return parameters, slots
