"""The nodes of an expression graph.

A node stands for the value of a whole array: a shape, a dtype, and either how it is computed or, once it has been, the
buffer that holds it in row-major order. Nodes never change their value. When a node has been evaluated its buffer is set and its
inputs are let go, so memory that only the recording held is freed at once.

Nodes are made thousands of times a second, so they are slotted, carry a small integer `token` for what they do (equal tokens:
the same work on inputs in the same positions), and are not interned while they are recorded: equal work is found when a plan is
made, once, and the plan is then found again by the tokens.
"""

from collections.abc import Hashable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Optional

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType

if TYPE_CHECKING:
    from blockarray.execution.memory import Buffer
    from codegen.targets.backend import Backend

Shape = tuple[int, ...]

_TOKENS: dict[Hashable, int] = {}


def token(meaning: Hashable) -> int:
    """A small integer for `meaning`; equal meanings give the same one."""
    number = _TOKENS.get(meaning)
    if number is None:
        number = _TOKENS.setdefault(meaning, len(_TOKENS))
    return number


class Node:
    """The value of a whole array.

    Attributes
    ----------
    inputs : tuple of Node
        What it is computed from; empty once evaluated.
    shape : tuple of int
    dtype : DType
    token : int
        What is computed, without the inputs (see `token`); once evaluated, what a plan must know of the buffer.
    device : Backend
        Where it is, or will be computed.
    buffer : Buffer or None
        The row-major value, once evaluated.
    depth, weight : int
        Longest chain and number of pending nodes below (shared ones counted again): they bound what may stay unevaluated.
        0 for evaluated nodes and constants, the leaves of every recording.
    recomputed : int
        Evaluations that computed this node without keeping its value.
    code, instruction : CodeType or None, int
        Where in the user's program it was recorded; see `location`.
    """

    __slots__ = (
        "inputs",
        "shape",
        "dtype",
        "token",
        "device",
        "buffer",
        "depth",
        "weight",
        "recomputed",
        "code",
        "instruction",
        "__weakref__",
    )

    inputs: tuple["Node", ...]
    shape: Shape
    dtype: DType
    token: int
    device: "Backend"
    buffer: Optional["Buffer"]
    depth: int
    weight: int
    recomputed: int
    code: CodeType | None
    instruction: int

    def __init__(self, inputs: tuple["Node", ...], shape: Shape, dtype: DType, token: int, device: "Backend") -> None:
        self.inputs = inputs
        self.shape = shape
        self.dtype = dtype
        self.token = token
        self.device = device
        self.buffer = None
        self.recomputed = 0
        self.code = None
        self.instruction = 0
        depth = weight = 0
        for node in inputs:
            weight += node.weight
            if node.depth > depth:
                depth = node.depth
        self.depth = depth + 1
        self.weight = weight + 1

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def nbytes(self) -> int:
        """Bytes of the value."""
        return self.size * self.dtype.itemsize

    @property
    def is_leaf(self) -> bool:
        """Whether nothing has to be computed: evaluated already, or a constant."""
        return self.buffer is not None

    @property
    def location(self) -> tuple[str, int] | None:
        """File and line that recorded the node."""
        if self.code is None:
            return None
        for start, end, line in self.code.co_lines():
            if start <= self.instruction < end:
                return self.code.co_filename, line if line is not None else self.code.co_firstlineno
        return self.code.co_filename, self.code.co_firstlineno

    @property
    def worth_keeping(self) -> bool:
        """Whether storing the value may beat computing it again."""
        return True

    def record(self, frame: FrameType) -> None:
        """Remember the line that `frame` is at."""
        self.code = frame.f_code
        self.instruction = frame.f_lasti

    def settle(self, buffer: "Buffer") -> None:
        """Take the computed value and let the inputs go."""
        self.buffer = buffer
        self.token = buffer.token
        self.inputs = ()
        self.depth = 0
        self.weight = 0

    def describe(self) -> str:
        """One word or two for what the node does."""
        return type(self).__name__.lower()

    def __repr__(self) -> str:
        state = "evaluated" if self.buffer is not None else "pending"
        return f"<{self.describe()} {self.dtype}{list(self.shape)} {state}>"


class Source(Node):
    """A value that exists: its buffer is set from the start."""

    __slots__ = ()

    def __init__(self, shape: Shape, dtype: DType, device: "Backend", buffer: "Buffer") -> None:
        Node.__init__(self, (), shape, dtype, 0, device)
        self.settle(buffer)


class Window(Node):
    """A range of an evaluated array's memory: a leaf of shape (n,) of its own.

    Views of arrays whose value exists are read through windows that start at a multiple of the full alignment, so that views which
    differ only in where they start share a plan. The buffer they look into knows its windows (`Buffer.windows`).
    """

    __slots__ = ()

    def __init__(self, extent: int, dtype: DType, device: "Backend", buffer: "Buffer") -> None:
        Node.__init__(self, (), (extent,), dtype, 0, device)
        self.settle(buffer)


class Constant(Node):
    """One number, shape (): a run-time argument of kernels, so other numbers reuse their code."""

    __slots__ = ("value",)

    value: bool | int | float

    def __init__(self, value: bool | int | float, dtype: DType, device: "Backend") -> None:
        # Written out, as in Map.
        self.inputs = ()
        self.shape = ()
        self.dtype = dtype
        self.token = CONSTANT_TOKENS[dtype]
        self.device = device
        self.buffer = None
        self.recomputed = 0
        self.code = None
        self.depth = self.weight = 0
        self.value = value

    @property
    def is_leaf(self) -> bool:
        return True


CONSTANT_TOKENS: dict[DType, int] = {dtype: token(("constant", dtype)) for dtype in dtypes.ALL}


class Iota(Node):
    """0, 1, 2 …, int64, shape (n,)."""

    __slots__ = ()

    def __init__(self, extent: int, device: "Backend") -> None:
        Node.__init__(self, (), (extent,), dtypes.int64, token(("iota", extent)), device)

    @property
    def worth_keeping(self) -> bool:
        return False


class Map(Node):
    """A row of the scalar table on inputs that broadcast together (NumPy's rules, ranks may differ).

    The inputs have the dtypes of the row; casts are nodes of their own (`Cast`).
    """

    __slots__ = ("function",)

    function: str

    def __init__(
        self, function: str, inputs: tuple[Node, ...], shape: Shape, dtype: DType, token: int, device: "Backend"
    ) -> None:
        self.inputs = inputs
        self.shape = shape
        self.dtype = dtype
        self.token = token
        self.device = device
        self.buffer = None
        self.recomputed = 0
        self.code = None
        self.function = function
        if len(inputs) == 1:
            self.depth = inputs[0].depth + 1
            self.weight = inputs[0].weight + 1
        elif len(inputs) == 2:
            a, b = inputs
            self.depth = (a.depth if a.depth > b.depth else b.depth) + 1
            self.weight = a.weight + b.weight + 1
        else:
            self.depth = max([node.depth for node in inputs]) + 1
            self.weight = sum([node.weight for node in inputs]) + 1

    def describe(self) -> str:
        return self.function


class Cast(Node):
    """The input converted as NumPy's astype does."""

    __slots__ = ()

    def __init__(self, value: Node, dtype: DType) -> None:
        Node.__init__(self, (value,), value.shape, dtype, _CAST[dtype], value.device)

    def describe(self) -> str:
        return f"cast to {self.dtype}"


_CAST: dict[DType, int] = {dtype: token(("cast", dtype)) for dtype in dtypes.ALL}


class Reduce(Node):
    """A combiner folded over `axes`, which keep extent 1.

    `output` says which value of the combiner is the result; ``argmax`` and ``argmin`` get the row-major position
    over the reduced axes as their second value, and `output` 1. The accumulator has the node's input dtype (the result's dtype,
    positions aside), except float16 and bfloat16, which accumulate in float32.
    """

    __slots__ = ("function", "axes", "output")

    function: str
    axes: tuple[int, ...]
    output: int

    def __init__(self, function: str, value: Node, axes: tuple[int, ...], dtype: DType, output: int = 0) -> None:
        shape = tuple([1 if axis in axes else extent for axis, extent in enumerate(value.shape)])
        meaning = ("reduce", function, axes, output, dtype)
        Node.__init__(self, (value,), shape, dtype, token(meaning), value.device)
        self.function = function
        self.axes = axes
        self.output = output

    def describe(self) -> str:
        return f"{self.function} over axes {self.axes}"


class Scan(Node):
    """Inclusive running fold of a combiner along `axis`."""

    __slots__ = ("function", "axis")

    function: str
    axis: int

    def __init__(self, function: str, value: Node, axis: int) -> None:
        Node.__init__(self, (value,), value.shape, value.dtype, token(("scan", function, axis)), value.device)
        self.function = function
        self.axis = axis

    def describe(self) -> str:
        return f"running {self.function} along axis {self.axis}"


class View(Node):
    """Elements of the input's row-major memory at ``offset + sum(index[k] * strides[k])``, in elements.

    Covers slices, transposes, broadcasts, new axes, diagonals, windows and reshapes alike.
    """

    __slots__ = ("offset", "strides")

    offset: int
    strides: tuple[int, ...]

    def __init__(self, base: Node, offset: int, shape: Shape, strides: tuple[int, ...]) -> None:
        Node.__init__(self, (base,), shape, base.dtype, token(("view", offset, shape, strides)), base.device)
        self.offset = offset
        self.strides = strides

    @property
    def worth_keeping(self) -> bool:
        return False

    def describe(self) -> str:
        return f"view {list(self.shape)}"


class Gather(Node):
    """``base[index_0, index_1, …]``: int64 indices of one shape for the first axes of `base`; result shape: theirs, then the
    remaining axes of `base`. Indices are inside and not negative.
    """

    __slots__ = ()

    def __init__(self, base: Node, indices: tuple[Node, ...]) -> None:
        shape = indices[0].shape + base.shape[len(indices) :]
        Node.__init__(self, (base, *indices), shape, base.dtype, token(("gather", len(indices))), base.device)


class Update(Node):
    """The first input with the elements of a view (see `View`) replaced by the second, which has the view's shape or
    broadcasts to it, and the dtype of the first. Written in place when nothing else can still read the old value.
    """

    __slots__ = ("offset", "view_shape", "strides")

    offset: int
    view_shape: Shape
    strides: tuple[int, ...]

    def __init__(self, base: Node, value: Node, offset: int, view_shape: Shape, strides: tuple[int, ...]) -> None:
        meaning = ("update", offset, view_shape, strides)
        Node.__init__(self, (base, value), base.shape, base.dtype, token(meaning), base.device)
        self.offset = offset
        self.view_shape = view_shape
        self.strides = strides


class Scatter(Node):
    """The first input with elements at positions replaced, one after the other in row-major order: the last of equal positions wins.

    The second input holds positions in the first one's row-major memory: int64, inside, not negative. The third has their shape or one
    element. Without a `function` it is what is stored, in the dtype of the first. With one, ``function(element, value)`` is, computed in the
    dtype `working`, which the third has (a function of one operand has no third), and converted back.
    """

    __slots__ = ("function", "working")

    function: str | None
    working: DType

    def __init__(
        self, base: Node, places: Node, values: tuple[Node, ...], function: str | None, working: DType
    ) -> None:
        meaning = ("scatter", function, working)
        Node.__init__(self, (base, places, *values), base.shape, base.dtype, token(meaning), base.device)
        self.function = function
        self.working = working

    def describe(self) -> str:
        return "scatter" if self.function is None else f"{self.function} at positions"


class Contract(Node):
    """A matrix product ``a @ b``: shapes (…, M, K) and (…, K, N) with equal batch shapes, one dtype for all."""

    __slots__ = ()

    def __init__(self, a: Node, b: Node) -> None:
        shape = (*a.shape[:-1], b.shape[-1])
        Node.__init__(self, (a, b), shape, a.dtype, _CONTRACT, a.device)

    def describe(self) -> str:
        return "matrix product"


_CONTRACT = token(("contract",))


def row_major_strides(shape: Shape) -> tuple[int, ...]:
    """Strides, in elements, of a row-major array."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def numpy_scalar(node: Constant) -> np.ndarray:
    """The constant as a NumPy array without axes, of its dtype."""
    return np.asarray(node.value).astype(node.dtype.numpy)
