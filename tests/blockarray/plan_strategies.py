"""Hypothesis strategies for kernel plans and the memory they work on.

Values are small whole numbers, so that every order of additions gives the same bits, in float32 too.
"""

from math import prod

import numpy as np
from hypothesis import strategies as st

from blockarray.fusion.plan import (
    Apply,
    Convert,
    DomainAxis,
    Fold,
    KernelPlan,
    Number,
    Position,
    Read,
    RunningFold,
    Statement,
    Take,
    Write,
)
from codegen import dtypes
from codegen.dtypes import DType

Memory = dict[int, np.ndarray]

_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 33, 64, 65, 100, 130, 257, 300)
_DTYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.float16, dtypes.bfloat16)
_SAFE = ("add", "subtract", "maximum", "minimum")


class _Maker:
    """Draws one plan."""

    def __init__(self, draw: st.DrawFn, axes: tuple[DomainAxis, ...]) -> None:
        self.draw = draw
        self.axes = axes
        self.memory: Memory = {}
        self.statements: list[Statement] = []
        self.writes: list[Write] = []
        self.random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def add(self, statement: Statement) -> int:
        self.statements.append(statement)
        return len(self.statements) - 1

    def source(self, elements: int, dtype: DType, low: int = -3, high: int = 4) -> int:
        number = len(self.memory)
        low = 0 if dtype.kind == "unsigned" else low
        self.memory[number] = self.random.integers(low, high, max(1, elements)).astype(dtype.numpy)
        return number

    def map_over(self, vary: tuple[bool, ...], plain: bool = False) -> tuple[int, tuple[int, ...], int]:
        """Offset, strides, and elements of memory in which each point has a place of its own along the axes that vary."""
        order = list(range(len(self.axes))) if plain else self.draw(st.permutations(range(len(self.axes))))
        strides = [0] * len(self.axes)
        step = 1 if plain else self.draw(st.sampled_from((1, 1, 1, 2)))
        lowest = highest = 0
        for axis in reversed(order):
            if not vary[axis]:
                continue
            extent = self.axes[axis].extent
            is_backwards = not plain and self.draw(st.integers(0, 5)) == 0
            strides[axis] = -step if is_backwards else step
            reach = (extent - 1) * strides[axis] if extent else 0
            lowest, highest = lowest + min(0, reach), highest + max(0, reach)
            step *= max(1, extent)
        margin = 0 if plain else self.draw(st.sampled_from((0, 0, 1, 4)))
        return margin - lowest, tuple(strides), highest - lowest + 1 + margin

    def read(self, dtype: DType) -> int:
        vary = tuple(self.draw(st.integers(0, 4)) > 0 for _ in self.axes)
        offset, strides, elements = self.map_over(vary)
        return self.add(Read(self.source(elements, dtype), dtype, offset, strides))

    def number(self, dtype: DType) -> int:
        return self.add(Number(self.source(1, dtype), dtype))

    def combine(self, values: list[int], dtype: DType) -> int:
        function = self.draw(st.sampled_from(_SAFE))
        pair = (self.draw(st.sampled_from(values)), self.draw(st.sampled_from(values)))
        return self.add(Apply(function, pair, dtype))

    def write(self, value: int, dtype: DType, vary: tuple[bool, ...]) -> None:
        offset, strides, elements = self.map_over(vary, plain=self.draw(st.booleans()))
        target = len(self.memory)
        self.memory[target] = np.zeros(elements, dtype.numpy)
        self.writes.append(Write(target, value, offset, strides))

    def plan(self, name: str) -> tuple[KernelPlan, Memory]:
        return KernelPlan(name, self.axes, tuple(self.statements), tuple(self.writes)), self.memory


@st.composite
def axes(
    draw: st.DrawFn, points: int, reduced: bool | None = None, empty: bool = False, innermost: bool = False
) -> tuple[DomainAxis, ...]:
    """Axes of a domain with at most so many points."""
    rank = draw(st.integers(1, 4))
    extents: list[int] = []
    choices = (*_EXTENTS, points, points - 3)
    for _ in range(rank):
        room = points // max(1, prod(extents))
        extents.append(draw(st.sampled_from([extent for extent in choices if 0 < extent <= max(1, room)])))
    extents = list(draw(st.permutations(extents)))
    flags = [False] * rank
    if reduced:
        flags = draw(st.lists(st.booleans(), min_size=rank, max_size=rank).filter(any))
    if innermost:
        flags = [False] * (rank - 1) + [True]
    if empty and draw(st.integers(0, 9)) == 0 and any(flags):
        extents[flags.index(True)] = 0
    return tuple(DomainAxis(extent, flag) for extent, flag in zip(extents, flags, strict=True))


@st.composite
def elementwise_plans(draw: st.DrawFn, points: int) -> tuple[KernelPlan, Memory]:
    """Reads, numbers, positions and gathered elements, a few functions, up to two writes."""
    maker = _Maker(draw, draw(axes(points)))
    dtype = draw(st.sampled_from(_DTYPES))
    values = [maker.read(dtype) for _ in range(draw(st.integers(1, 3)))]
    values.append(maker.number(dtype))
    if draw(st.booleans()):
        strides = tuple(draw(st.sampled_from((0, 1, 2))) for _ in maker.axes)
        values.append(maker.add(Convert(maker.add(Position(draw(st.integers(0, 3)), strides)), dtype)))
    if draw(st.integers(0, 3)) == 0:
        values.append(_take(maker, dtype))
    for _ in range(draw(st.integers(1, 4))):
        values.append(maker.combine(values, dtype))
    for _ in range(draw(st.integers(1, 2))):
        maker.write(values[-1], dtype, (True,) * len(maker.axes))
    if draw(st.booleans()):
        compared = maker.add(Apply("less", (values[0], values[-1]), dtypes.boolean))
        chosen = maker.add(Apply("where", (compared, values[-1], values[0]), dtype))
        maker.write(draw(st.sampled_from((compared,))), dtypes.boolean, (True,) * len(maker.axes))
        maker.write(chosen, dtype, (True,) * len(maker.axes))
    return maker.plan("elementwise")


def _take(maker: _Maker, dtype: DType) -> int:
    """Elements at positions that memory holds, beside an axis of the source that is not indexed."""
    rows = maker.draw(st.integers(1, 9))
    vary = tuple(maker.draw(st.booleans()) for _ in maker.axes)
    offset, strides, elements = maker.map_over(vary)
    positions = maker.add(Read(maker.source(elements, dtypes.int64, 0, rows), dtypes.int64, offset, strides))
    axis = maker.draw(st.integers(0, len(maker.axes) - 1))
    extent = maker.axes[axis].extent
    rest = tuple(1 if k == axis else 0 for k in range(len(maker.axes)))
    source = maker.source(rows * max(1, extent), dtype)
    return maker.add(Take(source, dtype, 0, (positions,), (max(1, extent),), rest))


@st.composite
def folding_plans(draw: st.DrawFn, points: int) -> tuple[KernelPlan, Memory]:
    """Folds of one or two levels over any axes, with values for each point and for each row written."""
    maker = _Maker(draw, draw(axes(points, reduced=True, empty=True)))
    dtype = draw(st.sampled_from((dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint8)))
    is_empty = any(axis.extent == 0 for axis in maker.axes)
    combiners = ("add",) if is_empty else ("add", "add", "maximum", "minimum")
    kept = tuple(not axis.reduced for axis in maker.axes)
    values = [maker.read(dtype), maker.number(dtype)]
    if draw(st.booleans()):
        values.append(maker.read(dtype))
    values.append(maker.combine(values, dtype))
    folds = [maker.add(Fold(draw(st.sampled_from(combiners)), (values[-1],), 0, dtype))]
    if draw(st.booleans()):
        folds.append(maker.add(Fold(draw(st.sampled_from(combiners)), (values[0],), 0, dtype)))
    if not is_empty and draw(st.integers(0, 3)) == 0:
        folds.append(_arg_fold(maker, values[-1], dtype))
    if draw(st.booleans()):
        values.append(maker.add(Apply("subtract", (values[-1], folds[0]), dtype)))
        folds.append(maker.add(Fold(draw(st.sampled_from(combiners)), (values[-1],), 0, dtype)))
    result = folds[-1]
    if maker.statements[result].dtype is not dtype:
        result = maker.add(Convert(result, dtype))
    if draw(st.booleans()) and not is_empty:
        value = maker.add(Apply("maximum", (values[0], result), dtype))
        maker.write(value, dtype, (True,) * len(maker.axes))
    if draw(st.booleans()) and not is_empty:
        maker.write(values[2], dtype, (True,) * len(maker.axes))
    maker.write(maker.add(Apply("minimum", (result, folds[0]), dtype)), dtype, kept)
    if draw(st.booleans()):
        maker.write(folds[-1], maker.statements[folds[-1]].dtype, kept)
    return maker.plan("folding")


def _arg_fold(maker: _Maker, value: int, dtype: DType) -> int:
    strides = [0] * len(maker.axes)
    step = 1
    for axis in reversed(range(len(maker.axes))):
        if maker.axes[axis].reduced:
            strides[axis] = step
            step *= maker.axes[axis].extent
    position = maker.add(Position(0, tuple(strides)))
    name = maker.draw(st.sampled_from(("argmax", "argmin")))
    return maker.add(Fold(name, (value, position), 1, dtypes.int64))


@st.composite
def running_plans(draw: st.DrawFn, points: int) -> tuple[KernelPlan, Memory]:
    """Running folds along the last axis, of something computed, with something computed from them."""
    maker = _Maker(draw, draw(axes(points, innermost=True)))
    dtype = draw(st.sampled_from((dtypes.float32, dtypes.int32, dtypes.int64)))
    vary = (True,) * len(maker.axes)
    values = [maker.read(dtype), maker.number(dtype)]
    values.append(maker.combine(values, dtype))
    running = maker.add(RunningFold(draw(st.sampled_from(("add", "maximum"))), values[-1], dtype))
    maker.write(running, dtype, vary)
    if draw(st.booleans()):
        maker.write(maker.add(Apply("subtract", (running, values[0]), dtype)), dtype, vary)
    if draw(st.booleans()):
        total = maker.add(Fold("maximum", (running,), 0, dtype))
        maker.write(maker.add(Apply("subtract", (running, total), dtype)), dtype, vary)
    return maker.plan("running")
