"""One call of a kernel: its arguments sorted by kind, outputs made, the grid that was given."""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from blockarray.execution.memory import new_buffer
from blockarray.graph.nodes import Source
from blockarray.language.declaration import ABSENT, Declaration
from blockarray.language.extents import Extents
from blockarray.language.operands import Operand, device_of, row_of
from blockarray.ndarray import Scalar, evaluate_nodes, ndarray, wrap_array
from codegen import dtypes
from codegen.dtypes import DType
from codegen.frontend.signature import ArgumentKind, ScalarKind, Specialisation, StaticKind
from codegen.ir.kernel import Kernel
from codegen.targets.backend import Backend

# What may be known of an extent when a kernel is compiled; few classes, so that other extents reuse its code.
_DIVISORS = (16, 4)
_WEAK = {int: ScalarKind(dtypes.int64, int), float: ScalarKind(dtypes.float64, float)}
# What holds what: booleans, integers, floats (bfloat16 is of NumPy's kind "V").
_RANKS: dict[Any, int] = {
    bool: 0, "b": 0, "boolean": 0, int: 1, "i": 1, "u": 1, "signed": 1, "unsigned": 1, float: 2, "f": 2, "V": 2, "float": 2,
}  # fmt: skip


class Call:
    """A call's arguments.

    Attributes
    ----------
    declaration : Declaration
    arrays : dict
        Array arguments by parameter; outputs that were left out are made here.
    numbers : dict
        Number arguments by parameter.
    device : Backend
    extents : Extents
    grid : tuple of int or None
    """

    def __init__(
        self, declaration: Declaration, positional: tuple[Any, ...], named: Mapping[str, Any], grid: Any, dtype: Any
    ) -> None:
        self.declaration = declaration
        bound = declaration.bind(positional, named)
        self.numbers: dict[str, Any] = {}
        self.arrays: dict[str, Any] = {}
        self._scalars: dict[str, ScalarKind] = {}
        self._bound = bound
        for name, value in bound.items():
            if name not in declaration.statics:
                self._sort(name, value)
        given = [array for array in self.arrays.values() if array is not ABSENT]
        self.device: Backend = device_of(given)
        self.extents = Extents(declaration, self.arrays)
        for name in [name for name, array in self.arrays.items() if array is ABSENT]:
            self.arrays[name] = self._made(name, dtype, given)
        if dtype is not None and not declaration.outputs:
            raise TypeError(
                f"{declaration.name}(): dtype= is for outputs that the call makes, and the kernel's shapes name none"
            )
        self.grid = self._grid(grid)

    def evaluate(self) -> None:
        """Compute what arrays of ours have only recorded."""
        evaluate_nodes(*[one._cell.node for one in self.arrays.values() if isinstance(one, ndarray)])

    def _sort(self, name: str, value: Any) -> None:
        declaration = self.declaration
        if name in declaration.scalars:
            kind = declaration.scalars[name]
            self._scalars[name] = kind
            self.numbers[name] = number_for(declaration.name, name, value, kind)
            return
        is_array = name in declaration.inputs or name in declaration.outputs
        if declaration.shapes is not None and not is_array and isinstance(value, (np.ndarray, ndarray)):
            if not isinstance(value, Scalar):
                raise TypeError(
                    f"{declaration.name}(): {name}: expected a number, found an array; the shapes {declaration.shapes.text} describe "
                    "the arrays before it"
                )
        if value is ABSENT:
            self.arrays[name] = value
        elif (
            is_array or isinstance(value, np.ndarray) or (isinstance(value, ndarray) and not isinstance(value, Scalar))
        ):
            row_of(f"{declaration.name}(): {name}", value)
            self.arrays[name] = value
        else:
            self._scalars[name] = kind = self._kind_of_number(name, value)
            self.numbers[name] = number_for(declaration.name, name, value, kind)

    def _kind_of_number(self, name: str, value: Any) -> ScalarKind:
        if type(value) in _WEAK:
            return _WEAK[type(value)]
        if isinstance(value, bool):
            return ScalarKind(dtypes.boolean)
        if isinstance(value, (np.generic, Scalar)):
            return ScalarKind(row_of(f"{self.declaration.name}(): {name}", np.empty((), value.dtype)))
        raise TypeError(
            f"{self.declaration.name}(): {name}: expected an array or a number, found {type(value).__name__}; annotate the parameter "
            "with Static if it is known when the kernel is compiled"
        )

    def _made(self, name: str, dtype: Any, given: list[Any]) -> ndarray:
        """An output that was left out: uninitialised."""
        row: DType
        if dtype is None:
            inputs = [self.arrays[one].dtype for one in self.declaration.inputs]
            row = row_of(name, np.empty(0, np.result_type(*inputs)))
        else:
            row = row_of(name, np.empty(0, np.dtype(dtype)))
        shape = self.extents.shape_of(name)
        return wrap_array(Source(shape, row, self.device, new_buffer(row, shape, self.device)))

    def _grid(self, grid: Any) -> tuple[int, ...] | None:
        if grid is None:
            return None
        if callable(grid):
            names = inspect.signature(grid).parameters
            unknown = [name for name in names if name not in self._bound]
            if unknown:
                raise TypeError(
                    f"{self.declaration.name}(): grid takes {unknown[0]!r}, which is no parameter of the kernel"
                )
            arguments = {**self._bound, **self.arrays}
            grid = grid(**{name: arguments[name] for name in names})
        counts = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        for count in counts:
            if not isinstance(count, (int, np.integer)) or isinstance(count, bool):
                raise TypeError(f"{self.declaration.name}(): expected integers for the grid, found {count!r}")
            if count < 0:
                raise ValueError(f"{self.declaration.name}(): a grid has no negative counts, found {count}")
        return tuple(map(int, counts))

    def specialisation(self, operands: Mapping[str, Operand]) -> Specialisation:
        """What the kernel is compiled for, with array arguments that lie as `operands` say."""
        kinds: list[tuple[str, ArgumentKind]] = []
        ends: set[str | int] = set()
        for name, value in self._bound.items():
            if name in operands:
                names = self.extents.names[name]
                ends.update(names[-1:])
                kinds.append((name, operands[name].kind(names)))
            elif name in self._scalars:
                kinds.append((name, self._scalars[name]))
            else:
                kinds.append((name, StaticKind(value)))
        # What divides an extent matters where vectors run along it.
        divisors = tuple(
            (label, next((one for one in _DIVISORS if length % one == 0), 1) if label in ends else 1)
            for label, length in self.extents.lengths.items()
        )
        axes = None if self.grid is None else len(self.grid)
        return Specialisation(tuple(kinds), divisors, frozenset(self.declaration.inputs), axes)

    def static_types(self) -> tuple[type, ...]:
        """Types of the static arguments: 1, 1.0 and True are equal, and mean different kernels."""
        return tuple(type(self._bound[name]) for name in self._bound if name in self.declaration.statics)

    def lengths(self) -> dict[str, int]:
        """Lengths by name, with those of a grid that was given."""
        return {**self.extents.lengths, **{f"grid{axis}": count for axis, count in enumerate(self.grid or ())}}

    def programs(self, kernel: Kernel) -> int:
        """How many programs run."""
        lengths = self.lengths()
        total = 1
        for axis in kernel.grid:
            extent = axis.extent if isinstance(axis.extent, int) else lengths[axis.extent]
            total *= -(-extent // axis.block)
        return total

    def result(self) -> Any:
        """What the call returns."""
        outputs = [self.arrays[name] for name in self.declaration.outputs]
        return None if not outputs else outputs[0] if len(outputs) == 1 else tuple(outputs)


def number_for(kernel: str, name: str, value: Any, kind: ScalarKind) -> Any:
    """A number argument as Python's number; TypeError or OverflowError if its dtype does not hold it."""
    where = f"{kernel}(): {name}"
    if isinstance(value, (ndarray, np.ndarray, np.generic)) and value.ndim == 0:
        source: Any = value.dtype
        value = value.item()
    elif type(value) in (bool, int, float):
        source = type(value)
    else:
        raise TypeError(f"{where}: expected a number ({kind.dtype}), found {type(value).__name__}")
    mine = _RANKS[kind.dtype.kind]
    its = _RANKS[source if isinstance(source, type) else source.kind]
    if its > mine:
        raise TypeError(f"{where}: expected a number that {kind.dtype} holds, found {value!r}")
    if mine == 1:
        low = -(1 << (kind.dtype.bits - 1)) if kind.dtype.kind == "signed" else 0
        if not low <= value < low + (1 << kind.dtype.bits):
            raise OverflowError(f"{where}: Python integer {value} out of bounds for {kind.dtype}")
    return value
