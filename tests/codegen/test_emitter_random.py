"""Random kernels on both targets against the interpreter, bit for bit."""

from dataclasses import dataclass, field

import emitted
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.builder import Builder
from codegen.ir.interpreter import interpret
from codegen.ir.kernel import BufferParameter, GridAxis, IndexParameter, Kernel, ScalarParameter, Value
from codegen.ir.layout import Layout
from codegen.ir.printer import print_kernel
from codegen.passes import pipeline

ITEMS = (
    dtypes.boolean,
    dtypes.uint8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.float16,
    dtypes.float32,
    dtypes.float64,
)
TILES = ((1, 64), (4, 16), (8, 8))
LAYOUTS = (
    Layout((1, 1), (1, 1), 4),
    Layout((1, 1), (1, 1), 16),
    Layout((1, 32), (1, 2)),
    Layout((4, 16), (1, 1)),
    Layout((2, 4), (2, 4)),
)
UNARY = {
    "float": ("negative", "absolute", "sqrt", "floor", "rint", "isnan"),
    "signed": ("negative", "absolute", "invert"),
    "unsigned": ("invert", "square"),
    "boolean": ("logical_not",),
}
BINARY = {
    "float": ("add", "subtract", "multiply", "divide", "less", "floor_divide"),
    "signed": ("add", "subtract", "multiply", "maximum", "less_equal", "floor_divide", "left_shift"),
    "unsigned": ("add", "multiply", "minimum", "greater", "remainder", "right_shift"),
    "boolean": ("logical_and", "logical_xor", "equal"),
}
# Folds that give the same bits in any order.
FOLDS = {
    "float": ("fmax",),
    "signed": ("add", "maximum", "bitwise_xor"),
    "unsigned": ("add", "minimum", "bitwise_or"),
    "boolean": ("logical_or", "logical_and"),
}


@dataclass
class Made:
    """A kernel under construction, and the choices that make it."""

    data: st.DataObject
    tile: tuple[int, int]
    builder: Builder = field(default_factory=Builder)
    inputs: list[BufferParameter] = field(default_factory=list)
    outputs: list[BufferParameter] = field(default_factory=list)
    offsets: tuple[Value, Value] | None = None

    def pick(self, options: object, label: str) -> object:
        return self.data.draw(st.sampled_from(options), label)

    def load(self) -> Value:
        """A window of a new input, the tile's own or shifted, all of the tile or one row or column of it."""
        dtype = self.pick(ITEMS, "dtype")
        shape = self.pick([self.tile, (1, self.tile[1]), (self.tile[0], 1)], "shape")
        strides = self.pick([(None, 1), (None, None), (None, 2)], "strides")
        buffer = emitted.buffer(f"x{len(self.inputs)}", dtype, ("rows", "columns"), strides)
        self.inputs.append(buffer)
        shift = self.data.draw(st.integers(-3, 3), "shift")
        row, column = self.offsets
        column = self.builder.map("add", column, self.builder.index(shift)) if shift else column
        return self.builder.load(buffer.value, (row, column), shape, fill=1)

    def store(self, value: Value) -> None:
        """A block to a new output, where the program's tile lies."""
        block = value.block
        whole = self.builder.broadcast(value, self.tile)
        buffer = emitted.buffer(f"out{len(self.outputs)}", block.dtype, ("rows", "columns"), (None, 1), written=True)
        self.outputs.append(buffer)
        self.builder.store(buffer.value, self.offsets, whole)

    def same(self, value: Value, values: list[Value]) -> Value:
        """A value of the dtype and shape of another one."""
        other = self.pick(values, "other")
        shape, wanted = other.block.shape, value.block.shape
        if shape != wanted:
            fits = not shape or (wanted and all(a in (1, b) for a, b in zip(shape, wanted, strict=True)))
            other = self.builder.broadcast(other, wanted) if fits else value
        return self.builder.cast(other, value.block.dtype)

    def step(self, values: list[Value], depth: int) -> Value:
        """One more value, from those that there are."""
        builder = self.builder
        value = self.pick(values, "value")
        kind, shape = value.block.dtype.kind, value.block.shape
        kinds = ["unary", "binary", "where", "cast", "load"]
        if shape:
            kinds += ["fold", "scan", "private", "gather"]
        if depth:
            kinds += ["loop", "branch"]
        chosen = self.pick(kinds, "step")
        if chosen == "load":
            return self.load()
        if chosen == "unary":
            return builder.map(self.pick(UNARY[kind], "function"), value)
        if chosen == "binary":
            return builder.map(self.pick(BINARY[kind], "function"), value, self.same(value, values))
        if chosen == "where":
            other = self.same(value, values)
            condition = builder.map("less", other, value) if kind != "boolean" else other
            return builder.map("where", condition, value, other)
        if chosen == "cast":
            return builder.cast(value, self.pick(ITEMS[3:5] + ITEMS[6:] if kind == "float" else ITEMS, "dtype"))
        if chosen in ("fold", "scan"):
            axis = self.data.draw(st.integers(0, 1), "axis")
            function = self.pick(FOLDS[kind], "function")
            if chosen == "scan":
                return builder.scan(function, [value], axis)[self.data.draw(st.integers(0, 1), "which")]
            return builder.reduce(function, [value], axis)[0]
        if chosen == "private":
            return self.turned(value)
        if chosen == "gather":
            return self.gathered(value)
        if chosen == "loop":
            return self.loop(values, value)
        return self.branch(values, value)

    def turned(self, value: Value) -> Value:
        """The block read back from memory of the program, one column on; the last column is read in both places."""
        builder, (rows, columns) = self.builder, value.block.shape
        local = builder.allocate(value.block.dtype, (rows, columns + 1))
        zero = builder.index(0)
        inside = (False, False)
        builder.store(local, (zero, builder.index(1)), value, inside)
        builder.store(local, (zero, zero), builder.load(local, (zero, builder.index(1)), (rows, 1), inside), inside)
        return builder.load(local, (zero, zero), (rows, columns), inside)

    def gathered(self, value: Value) -> Value:
        """Elements of an input at positions that the value gives."""
        builder = self.builder
        shape = value.block.shape
        buffer = emitted.buffer(f"x{len(self.inputs)}", self.pick(ITEMS, "dtype"), ("rows", "columns"), (None, 1))
        self.inputs.append(buffer)
        rows = builder.iota(shape, 0)
        whole = builder.cast(builder.cast(value, dtypes.boolean), dtypes.int64)
        columns = builder.map("subtract", builder.iota(shape, 1), whole)
        return builder.gather(buffer.value, [rows, columns], fill=1)

    def loop(self, values: list[Value], value: Value) -> Value:
        builder = self.builder
        start = builder.index(self.data.draw(st.integers(0, 2), "begin"))
        end = builder.index(self.data.draw(st.integers(0, 4), "end"))

        def body(index: Value, carried: Value) -> tuple[Value, ...]:
            inner = [*values, carried, index]
            for _ in range(self.data.draw(st.integers(1, 3), "inner steps")):
                inner.append(self.step(inner, 0))
            return (self.same(carried, inner),)

        return builder.loop(start, end, 1, [value], body)[0]

    def branch(self, values: list[Value], value: Value) -> Value:
        builder = self.builder
        condition = builder.map("less", self.offsets[1], builder.index(self.data.draw(st.integers(0, 70), "limit")))

        def body() -> tuple[Value, ...]:
            inner = list(values)
            for _ in range(self.data.draw(st.integers(0, 2), "inner steps")):
                inner.append(self.step(inner, 0))
            return (self.same(value, inner),)

        return builder.branch(condition, body, body)[0]


def random_kernel(data: st.DataObject) -> Kernel:
    """A kernel of a few steps; every value that it makes may be stored."""
    made = Made(data, data.draw(st.sampled_from(TILES), "tile"))
    builder = made.builder
    rows, columns = IndexParameter("rows"), IndexParameter("columns")
    scalar = ScalarParameter("scalar", data.draw(st.sampled_from(ITEMS), "scalar dtype"))
    made.offsets = tuple(
        builder.map("multiply", builder.program_index(axis), builder.index(made.tile[axis])) for axis in range(2)
    )
    values = [made.load(), scalar.value]
    for _ in range(data.draw(st.integers(1, 6), "steps")):
        values.append(made.step(values, 1))
    made.store(values[-1])
    made.store(data.draw(st.sampled_from(values), "stored"))
    parameters = (rows, columns, scalar, *made.inputs, *made.outputs)
    grid = (GridAxis("rows", made.tile[0]), GridAxis("columns", made.tile[1]))
    return builder.kernel("random", parameters, grid, data.draw(st.sampled_from(LAYOUTS), "layout"))


def array_for(generator: np.random.Generator, dtype: DType, shape: tuple[int, int], stride: int | None) -> np.ndarray:
    step = stride or 1
    if dtype.kind == "boolean":
        array = generator.integers(0, 2, (shape[0], shape[1] * step)).astype(bool)
    elif dtype.kind == "float":
        array = (generator.standard_normal((shape[0], shape[1] * step)) * 4).astype(dtype.numpy)
    else:
        low = -20 if dtype.kind == "signed" else 0
        array = generator.integers(low, 20, (shape[0], shape[1] * step)).astype(dtype.numpy)
    return array[:, ::step]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bit for bit, any NaN being any other."""
    if a.dtype.kind in "biu":
        return bool((a == b).all())
    nan = np.isnan(a) & np.isnan(b)
    return bool(((a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")) | nan).all())


@given(st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_kernels_mean_what_the_interpreter_says(data: st.DataObject) -> None:
    kernel = random_kernel(data)
    shape = (data.draw(st.integers(1, 10), "rows"), data.draw(st.integers(1, 90), "columns"))
    generator = np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
    arguments: emitted.Arguments = {"rows": shape[0], "columns": shape[1]}
    arguments["scalar"] = kernel.parameter("scalar").dtype.numpy.type(data.draw(st.integers(0, 3), "scalar"))
    for parameter in kernel.parameters:
        if isinstance(parameter, BufferParameter):
            arguments[parameter.name] = array_for(generator, parameter.type.dtype, shape, parameter.type.strides[1])
    expected = {name: value.copy() if name.startswith("out") else value for name, value in arguments.items()}
    interpret(kernel, expected)
    target = emitted.HOST.target if kernel.layout.lane_count == 1 else emitted.GPU
    for chosen in (kernel, pipeline.run(kernel, target)):
        results = {name: value.copy() if name.startswith("out") else value for name, value in arguments.items()}
        emitted.run(chosen, results)
        for name, value in expected.items():
            if name.startswith("out"):
                assert same(results[name], value), print_kernel(chosen)
