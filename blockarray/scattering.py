"""Writing at positions of an array's memory that may repeat: in order, so that the last of equal positions wins."""

from typing import Final

from blockarray.graph.nodes import Constant, Node, Scatter, Shape, View, row_major_strides
from blockarray.ndarray import ndarray, note_write
from blockarray.reinterpretation import change_reinterpreted, computed
from codegen.dtypes import DType

# On a device every lane looks at every position: with more pairs than this, some seconds, NumPy is asked instead.
_MOST_PAIRS: Final = 1 << 42


def is_too_much(array: ndarray, count: int) -> bool:
    """Whether so many positions are too many for a device."""
    return array._cell.node.device.target.kind != "cpu" and count * array._cell.node.size > _MOST_PAIRS


def scatter(array: ndarray, places: Node, value: Node | None, function: str | None, working: DType) -> None:
    """Replace the elements of the array's memory at `places`, in their row-major order.

    Parameters
    ----------
    array : ndarray
    places : Node
        int64, inside of the memory, counted in the array's elements.
    value : Node or None
        Of dtype `working`; broadcasts to the shape of `places`. None for a function of one operand.
    function : str or None
        The row that combines an element with its value; None stores the value.
    working : DType
    """
    if not array._writeable:
        raise ValueError("assignment destination is read-only")
    if not places.size:
        return
    values: tuple[Node, ...] = ()
    if value is not None:
        values = (value if value.size == 1 and isinstance(value, Constant) else _spread(value, places.shape),)
    cell = array._cell
    if isinstance(cell.node, Constant):
        computed(cell)
    if isinstance(places, Constant):
        places = View(places, 0, (1,), (0,))

    def changed(base: Node) -> Node:
        return Scatter(base, places, values, function, working)

    if array._row is not cell.node.dtype:
        change_reinterpreted(cell, array._row, changed)
        return
    cell.node = changed(cell.node)
    note_write(cell)


def _spread(node: Node, shape: Shape) -> Node:
    if node.shape == shape:
        return node
    skip = len(shape) - len(node.shape)
    own = zip(node.shape, row_major_strides(node.shape), strict=True)
    return View(node, 0, shape, (0,) * skip + tuple(0 if extent == 1 else stride for extent, stride in own))
