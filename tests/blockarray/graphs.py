"""Graphs for tests of the partition: built node by node on a device that does not exist, and random ones."""

from typing import TYPE_CHECKING, cast

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from blockarray.graph import reference
from blockarray.graph.nodes import (
    Cast,
    Constant,
    Contract,
    Gather,
    Iota,
    Map,
    Node,
    Reduce,
    Scan,
    Scatter,
    Source,
    Update,
    View,
    numpy_scalar,
    token,
)
from blockarray.graph.recording import Recording, linearize
from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar.table import TABLE
from codegen.target import Target
from codegen.targets.backend import Backend

if TYPE_CHECKING:
    from blockarray.execution.memory import Buffer

HOST = Target("cpu", "x86_64-unknown-linux-gnu", "x86-64", "", 256, 1, 1, 1 << 20, frozenset(), cores=2)


class NoDevice:
    """A device that only has a target: graphs need no more before they run."""

    target = HOST


NO_DEVICE = cast(Backend, NoDevice())


class ArrayBuffer:
    """Stands for a buffer: an array, and the token that a recording's key needs."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = np.ascontiguousarray(array).reshape(array.shape)
        self.token = token(("test buffer", array.shape, array.dtype.str))


def source(array: np.ndarray) -> Source:
    """An evaluated node."""
    return Source(array.shape, dtypes.of(array.dtype), NO_DEVICE, cast("Buffer", ArrayBuffer(array)))


def evaluated(node: Node) -> Node:
    """The node with its value: leaves of a graph were recorded in all ways."""
    (value,) = reference.evaluate(linearize((node,)), leaf_array)
    node.settle(cast("Buffer", ArrayBuffer(value)))
    return node


def constant(value: int | float | bool, dtype: DType) -> Constant:
    return Constant(value, dtype, NO_DEVICE)


def apply(function: str, *operands: Node) -> Map:
    """A row of the table on nodes that broadcast."""
    shape = np.broadcast_shapes(*(one.shape for one in operands))
    dtype = TABLE[function].result_dtype(*(one.dtype for one in operands))
    return Map(function, operands, shape, dtype, token(("map", function, dtype)), NO_DEVICE)


def fold(function: str, operand: Node, *axes: int, output: int = 0) -> Reduce:
    dtype = dtypes.int64 if output else operand.dtype
    return Reduce(function, operand, axes, dtype, output)


def view_like(base: Node, change: "np.ndarray") -> View:
    """The view of `base` that `change` is of ``positions(base)``."""
    return View(base, *window_of(base, change))


def positions(base: Node) -> np.ndarray:
    """An array to take NumPy views of, which show the offset and strides of the same views of `base`."""
    return np.arange(base.size, dtype=np.int64).reshape(base.shape)


def window_of(base: Node, change: np.ndarray) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Offset, shape and strides, in elements, of a view of ``positions(base)``."""
    if change.size == 0:
        return 0, change.shape, (0,) * change.ndim
    offset = int(change.reshape(-1)[0])
    return offset, change.shape, tuple(stride // 8 for stride in change.strides)


def leaf_array(node: Node) -> np.ndarray:
    """The value of a leaf of a test graph."""
    if isinstance(node, Constant):
        return np.asarray(numpy_scalar(node))
    return cast(ArrayBuffer, node.buffer).array


# Sums of integers below this are exact in float64 and do not depend on the order of additions.
_EXACT = {"float64": 2.0**50, "float32": 2.0**22, "float16": 2.0**10}


def values_of(recording: Recording) -> list[np.ndarray]:
    """The value of every pending node; only graphs whose floats stay exact integers are kept."""
    pending = tuple(node for node in recording.nodes if not node.is_leaf)
    everything = Recording(recording.nodes, recording.leaves, pending, ())
    values = reference.evaluate(everything, leaf_array)
    for node, value in zip(pending, values, strict=True):
        if node.dtype.kind == "float" and value.size:
            assume(bool(np.isfinite(value).all()))
            assume(float(np.abs(value.astype(np.float64)).max()) < _EXACT[node.dtype.name])
    by_node = dict(zip(pending, values, strict=True))
    return [by_node[root] for root in recording.roots]


# -- random graphs -----------------------------------------------------------------------------------------------------

_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
_UNARY = ("negative", "absolute", "square")
_DTYPES = (dtypes.int64, dtypes.int64, dtypes.float64, dtypes.float32, dtypes.float16, dtypes.uint8)
MOST_ELEMENTS = 4000


class Growing:
    """A graph that grows by drawn operations; every node of it may be used again."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        extent = st.sampled_from((1, 2, 3, 4, 6, 6, 12))
        if draw(st.integers(0, 19)) == 0:
            extent = st.sampled_from((0, 1, 3))
        self.extent = extent
        self.nodes: list[Node] = []
        for _ in range(draw(st.integers(1, 3))):
            self.add_source()

    def pick(self) -> Node:
        """A node, more often a late one."""
        last = len(self.nodes) - 1
        return self.nodes[last - min(self.draw(st.integers(0, last)), self.draw(st.integers(0, last)))]

    def add_source(self) -> None:
        shape = tuple(self.draw(st.lists(self.extent, min_size=0, max_size=3)))
        seed = self.draw(st.integers(0, 2**16))
        dtype = self.draw(st.sampled_from(_DTYPES))
        low = 0 if dtype.kind == "unsigned" else -3
        array = np.random.default_rng(seed).integers(low, 4, shape).astype(dtype.numpy)
        node: Node = source(array)
        kind = self.draw(st.integers(0, 7))
        if kind == 0:
            node = evaluated(view_like(node, positions(node).T))
        elif kind == 1 and shape:
            node = evaluated(fold("add", node, len(shape) - 1))
        elif kind == 2:
            node = evaluated(Cast(node, dtypes.float64))
        elif kind == 3 and shape:
            node = evaluated(Update(node, constant(1, dtype), *window_of(node, positions(node)[..., :0])))
        self.nodes.append(node)

    def as_dtype(self, node: Node, dtype: DType) -> Node:
        return node if node.dtype is dtype else Cast(node, dtype)

    def fitting(self, node: Node) -> Node:
        """A node that broadcasts with `node`: any that does, else a constant."""
        candidates = [one for one in self.nodes if _broadcast(one, node)]
        if candidates and self.draw(st.integers(0, 4)):
            return candidates[self.draw(st.integers(0, len(candidates) - 1))]
        return constant(self.draw(st.integers(0, 3)), node.dtype)

    def grow(self) -> None:
        """Add the result of one operation."""
        name = self.draw(st.sampled_from(_OPERATIONS))
        node = getattr(self, f"grow_{name}")()
        if node is not None and node.size <= MOST_ELEMENTS:
            self.nodes.append(node)

    def grow_binary(self) -> Node:
        node = self.pick()
        other = self.as_dtype(self.fitting(node), node.dtype)
        operands = (node, other) if self.draw(st.booleans()) else (other, node)
        return apply(self.draw(st.sampled_from(_BINARY)), *operands)

    def grow_expensive(self) -> Node:
        node = self.as_dtype(self.pick(), dtypes.int64)
        return apply("gcd", node, self.as_dtype(self.fitting(node), dtypes.int64))

    def grow_unary(self) -> Node:
        return apply(self.draw(st.sampled_from(_UNARY)), self.pick())

    def grow_where(self) -> Node:
        node = self.pick()
        other = self.as_dtype(self.fitting(node), node.dtype)
        return apply("where", apply("less", node, other), node, other)

    def grow_cast(self) -> Node:
        node = self.pick()
        wanted = self.draw(st.sampled_from(_DTYPES))
        if wanted.kind == "unsigned" and node.dtype.kind == "float":
            # What NumPy makes of a negative float there is not defined.
            node = apply("absolute", node)
        return Cast(node, wanted)

    def grow_fold(self) -> Node | None:
        return self.folded(self.pick())

    def folded(self, node: Node) -> Node | None:
        rank = len(node.shape)
        axes = tuple(axis for axis in range(rank) if self.draw(st.booleans()))
        name = self.draw(st.sampled_from(("add", "add", "maximum", "minimum", "argmax", "argmin", "multiply")))
        if not axes:
            return None
        if 0 in node.shape and name not in ("add", "multiply"):
            name = "add"
        if name == "multiply":
            node = apply("minimum", node, constant(1, node.dtype))
        output = self.draw(st.integers(0, 1)) if name.startswith("arg") else 0
        return fold(name, node, *axes, output=output)

    def grow_centred(self) -> Node | None:
        """x - fold(x): what normalisations are made of."""
        node = self.pick()
        found = self.folded(node)
        return None if found is None else apply("subtract", node, self.as_dtype(found, node.dtype))

    def grow_scan(self) -> Node | None:
        node = self.pick()
        if not node.shape:
            return None
        axis = self.draw(st.integers(0, len(node.shape) - 1))
        return Scan(self.draw(st.sampled_from(("add", "maximum"))), node, axis)

    def grow_view(self) -> Node | None:
        node = self.pick()
        changed = self.changed(positions(node))
        return None if changed is None else view_like(node, changed)

    def grow_stencil(self) -> Node | None:
        """Two shifted slices of one node along an axis."""
        node = self.pick()
        axis = next((axis for axis, extent in enumerate(node.shape) if extent > 1), None)
        if axis is None:
            return None
        where = np.moveaxis(positions(node), axis, 0)
        first, second = (view_like(node, np.moveaxis(part, 0, axis)) for part in (where[1:], where[:-1]))
        return apply("add", first, second)

    def changed(self, where: np.ndarray) -> np.ndarray | None:
        """A NumPy view."""
        rank = where.ndim
        kind = self.draw(
            st.sampled_from(("slice", "slice", "transpose", "reshape", "broadcast", "new", "diagonal", "window"))
        )
        if kind == "slice":
            return where[self.slices(where.shape)]
        if kind == "transpose":
            return where.transpose(self.draw(st.permutations(range(rank))))
        if kind == "reshape":
            return where.reshape(self.shape_of(where.size))
        if kind == "broadcast":
            shape = tuple(self.draw(self.extent) if extent == 1 else extent for extent in where.shape)
            more = (self.draw(self.extent),) if self.draw(st.booleans()) else ()
            return np.broadcast_to(where, more + shape)
        if kind == "new":
            return np.expand_dims(where, self.draw(st.integers(0, rank)))
        if kind == "diagonal" and rank >= 2:
            return where.diagonal()
        if kind == "window" and rank and where.shape[-1] >= 2:
            return sliding_window_view(where, 2, axis=-1)
        return None

    def slices(self, shape: tuple[int, ...]) -> tuple[slice | int, ...]:
        found: list[slice | int] = []
        for extent in shape:
            kind = self.draw(st.integers(0, 5))
            if kind == 0 and extent:
                found.append(self.draw(st.integers(0, extent - 1)))
                continue
            start = self.draw(st.integers(0, extent)) if kind == 1 else 0
            stop = self.draw(st.integers(0, extent)) if kind == 2 else extent
            step = self.draw(st.sampled_from((1, 1, 2, -1, -2)))
            part = range(extent)[start:stop][::step]
            last = part.stop if part.stop >= 0 else None
            found.append(slice(part.start if part.start >= 0 else 0, last, part.step) if len(part) else slice(0, 0))
        return tuple(found)

    def shape_of(self, size: int) -> tuple[int, ...]:
        shape = []
        while size > 1 and len(shape) < 3:
            factors = [factor for factor in (2, 3, 4, 6, 12, size) if size % factor == 0]
            shape.append(self.draw(st.sampled_from(factors)))
            size //= shape[-1]
        return (*shape, size) if size != 1 or self.draw(st.booleans()) else tuple(shape)

    def grow_iota(self) -> Node:
        node = Iota(self.draw(self.extent), NO_DEVICE)
        return self.as_dtype(node, self.draw(st.sampled_from((dtypes.int64, dtypes.float64))))

    def grow_gather(self) -> Node | None:
        node = self.pick()
        if not node.shape or 0 in node.shape:
            return None
        count = self.draw(st.integers(1, len(node.shape)))
        index = self.pick()
        found = []
        for axis in range(count):
            limit = constant(node.shape[axis], dtypes.int64)
            shifted = apply("add", self.as_dtype(index, dtypes.int64), constant(axis, dtypes.int64))
            found.append(apply("remainder", shifted, limit))
        return Gather(node, tuple(found))

    def grow_update(self) -> Node | None:
        node = self.pick()
        if not node.shape:
            return None
        where = positions(node)
        window = np.asarray(where[self.slices(node.shape)]) if self.draw(st.integers(0, 3)) else where.T
        offset, shape, strides = window_of(node, window)
        kind = self.draw(st.integers(0, 3))
        same = View(node, offset, shape, strides)
        if kind == 0:
            value: Node = apply("add", same, constant(1, node.dtype))
        elif kind == 1:
            other = np.asarray(where[self.slices(node.shape)])
            value = view_like(node, other) if other.shape == shape else apply("square", same)
            if other.shape == shape and self.draw(st.booleans()):
                value = apply("add", value, same)
        else:
            candidates = [one for one in self.nodes if _broadcasts_to(one, shape)]
            if not candidates:
                return None
            value = candidates[self.draw(st.integers(0, len(candidates) - 1))]
        return Update(node, self.as_dtype(value, node.dtype), offset, shape, strides)

    def grow_scatter(self) -> Node | None:
        node = self.pick()
        if not node.shape or not node.size:
            return None
        index = self.pick()
        places = apply("remainder", self.as_dtype(index, dtypes.int64), constant(node.size, dtypes.int64))
        value = index if self.draw(st.booleans()) else constant(self.draw(st.integers(0, 3)), node.dtype)
        function = self.draw(st.sampled_from((None, "maximum", "absolute")))
        values = () if function == "absolute" else (self.as_dtype(value, node.dtype),)
        return Scatter(node, places, values, function, node.dtype)

    def grow_product(self) -> Node | None:
        node = self.pick()
        if len(node.shape) < 2:
            return None
        return Contract(node, view_like(node, np.swapaxes(positions(node), -1, -2)))


_OPERATIONS = (
    *("binary",) * 5,
    "unary",
    "expensive",
    "where",
    "cast",
    *("fold",) * 2,
    *("centred",) * 2,
    *("view",) * 5,
    *("stencil",) * 2,
    "scan",
    "iota",
    "gather",
    *("update",) * 2,
    "scatter",
    "product",
)


def _broadcast(a: Node, b: Node) -> bool:
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return int(np.prod(shape)) <= MOST_ELEMENTS


def _broadcasts_to(node: Node, shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(node.shape, shape) == shape
    except ValueError:
        return False


@st.composite
def graphs(draw: st.DrawFn, most_operations: int = 12) -> tuple[Node, ...]:
    """Roots of a random graph."""
    growing = Growing(draw)
    for _ in range(draw(st.integers(1, most_operations))):
        growing.grow()
    pending = [node for node in growing.nodes if not node.is_leaf]
    if not pending:
        return (apply("negative", growing.nodes[0]),)
    more = draw(st.lists(st.sampled_from(pending), max_size=4))
    return tuple(dict.fromkeys((pending[-1], *more)))


class Writing:
    """A program of writes to windows of two arrays, as recorded: every write makes a new version."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        rows, columns = draw(st.sampled_from(((1, 12), (4, 4), (5, 3), (2, 8))))
        self.arrays: list[Node] = []
        for start in (0, 100):
            values = np.arange(start, start + rows * columns, dtype=np.int64).reshape(rows, columns)
            self.arrays.append(source(values))
        self.versions: list[Node] = list(self.arrays)

    def window(self, where: np.ndarray, height: int, width: int) -> np.ndarray:
        """A window of this shape somewhere, perhaps reversed."""
        top = self.draw(st.integers(0, where.shape[0] - height))
        left = self.draw(st.integers(0, where.shape[1] - width))
        found = where[top : top + height, left : left + width]
        kind = self.draw(st.integers(0, 7))
        if kind == 0:
            found = found[::-1]
        elif kind == 1:
            found = found[:, ::-1]
        elif kind == 2 and height == width:
            found = found.T
        return found

    def write(self) -> None:
        """Replace one array by a version with a window written."""
        which = self.draw(st.integers(0, 1))
        target = self.arrays[which]
        where = positions(target)
        rows, columns = where.shape
        if self.draw(st.integers(0, 5)) == 0:
            # Every other element: windows that interleave without meeting.
            window = where[:, self.draw(st.integers(0, 1)) :: 2]
            other = where[:, self.draw(st.integers(0, 1)) :: 2]
            value: Node = view_like(target, window)
            if other.shape == window.shape:
                value = apply("add", value, view_like(target, other))
        else:
            height, width = self.draw(st.integers(1, rows)), self.draw(st.integers(1, columns))
            window = self.window(where, height, width)
            value = self.part(window, target, height, width)
            if self.draw(st.booleans()):
                value = apply("add", value, self.part(window, target, height, width))
        self.arrays[which] = Update(target, value, *window_of(target, window))
        self.versions.append(self.arrays[which])

    def part(self, window: np.ndarray, target: Node, height: int, width: int) -> Node:
        """A value of the window's shape."""
        kind = self.draw(st.integers(0, 6))
        if kind == 0:
            return view_like(target, window)
        if kind == 1:
            return apply("multiply", view_like(target, window), constant(3, dtypes.int64))
        base = target
        if kind >= 4:
            base = self.versions[self.draw(st.integers(0, len(self.versions) - 1))]
        found = view_like(base, self.window(positions(base), height, width))
        if kind == 2:
            return apply("subtract", found, fold("add", found, 1))
        if kind == 3:
            return fold("maximum", found, self.draw(st.integers(0, 1)))
        return found


@st.composite
def writes(draw: st.DrawFn) -> tuple[Node, ...]:
    """Roots of a graph that writes into windows, old versions among them at times."""
    writing = Writing(draw)
    for _ in range(draw(st.integers(1, 5))):
        writing.write()
    roots = [node for node in writing.arrays if not node.is_leaf]
    for old in draw(st.lists(st.sampled_from(writing.versions), max_size=2)):
        roots.append(old if not old.is_leaf and draw(st.booleans()) else apply("negative", old))
    return tuple(dict.fromkeys(roots))
