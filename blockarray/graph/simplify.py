"""Rules of the graph: a node and its operands -> a simpler node with the same value, bit for bit unless a rule says otherwise.

Each rule gets a node and the nodes that stand for its inputs now, and returns one of those, a new node built on them, or None.
"""

from collections.abc import Callable, Sequence

from blockarray.graph.nodes import Cast, Map, Node, Reduce, Scan, Shape, Update, View, row_major_strides
from codegen.dtypes import DType
from codegen.scalar.combiners import COMBINERS

Rule = Callable[[Node, Sequence[Node]], Node | None]

_SIGNIFICAND_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_EXPONENT_BITS = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11}


def holds_every_value(wide: DType, narrow: DType) -> bool:
    """Whether each value of `narrow` survives a cast to `wide` and back."""
    if wide is narrow or narrow.kind == "boolean":
        return True
    if wide.kind == "boolean":
        return False
    if narrow.kind == "float":
        if wide.kind != "float":
            return False
        significand = _SIGNIFICAND_BITS[wide.name] >= _SIGNIFICAND_BITS[narrow.name]
        return significand and _EXPONENT_BITS[wide.name] >= _EXPONENT_BITS[narrow.name]
    if wide.kind == "float":
        return _SIGNIFICAND_BITS[wide.name] >= narrow.bits - (narrow.kind == "signed")
    # Integers wrap around, so the way back undoes a change of sign.
    return wide.bits >= narrow.bits


def drop_cast_to_own_dtype(node: Node, operands: Sequence[Node]) -> Node | None:
    """cast(x) to the dtype of x -> x"""
    if type(node) is not Cast or operands[0].dtype is not node.dtype:
        return None
    return operands[0]


def drop_cast_there_and_back(node: Node, operands: Sequence[Node]) -> Node | None:
    """cast(cast(x)) to the dtype of x -> x, if the dtype between holds every value of x"""
    if type(node) is not Cast or type(operands[0]) is not Cast or operands[0].buffer is not None:
        return None
    value = operands[0].inputs[0]
    if value.dtype is not node.dtype or not holds_every_value(operands[0].dtype, value.dtype):
        return None
    return value


def drop_view_of_everything(node: Node, operands: Sequence[Node]) -> Node | None:
    """view of all elements in order, with the shape of x -> x"""
    if type(node) is not View or node.shape != operands[0].shape or node.offset != 0:
        return None
    for extent, stride, own in zip(node.shape, node.strides, row_major_strides(node.shape), strict=True):
        if extent > 1 and stride != own:
            return None
    return operands[0]


def drop_positive(node: Node, operands: Sequence[Node]) -> Node | None:
    """positive(x) -> x"""
    if type(node) is not Map or node.function != "positive" or operands[0].shape != node.shape:
        return None
    return operands[0]


def drop_fold_of_one_element(node: Node, operands: Sequence[Node]) -> Node | None:
    """fold over axes of extent 1 -> x"""
    if type(node) is not Reduce or COMBINERS[node.function].arity != 1 or node.function == "hypot":
        # hypot of one element is its magnitude; argmax and argmin give a position.
        return None
    if operands[0].shape != node.shape or operands[0].dtype is not node.dtype:
        return None
    return operands[0]


def drop_scan_of_one_element(node: Node, operands: Sequence[Node]) -> Node | None:
    """running fold along an axis of extent 1 -> x"""
    if type(node) is not Scan or node.shape[node.axis] != 1 or node.function == "hypot":
        return None
    return operands[0]


def drop_update_of_nothing(node: Node, operands: Sequence[Node]) -> Node | None:
    """update of a window without elements -> the base"""
    if type(node) is not Update or 0 not in node.view_shape:
        return None
    return operands[0]


def update_of_everything_is_the_value(node: Node, operands: Sequence[Node]) -> Node | None:
    """update of all elements in order -> the value, broadcast and reshaped"""
    if type(node) is not Update or node.offset != 0:
        return None
    value = operands[1]
    if _size(node.view_shape) != node.size:
        return None
    for extent, stride, own in zip(node.view_shape, node.strides, row_major_strides(node.view_shape), strict=True):
        if extent > 1 and stride != own:
            return None
    if value.size == node.size:
        return value if value.shape == node.shape else View(value, 0, node.shape, row_major_strides(node.shape))
    missing = len(node.view_shape) - len(value.shape)
    strides = (0,) * missing + tuple(
        0 if extent == 1 else stride for extent, stride in zip(value.shape, row_major_strides(value.shape), strict=True)
    )
    broadcast = View(value, 0, node.view_shape, strides)
    if node.view_shape == node.shape:
        return broadcast
    return View(broadcast, 0, node.shape, row_major_strides(node.shape))


def _size(shape: Shape) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


RULES: dict[type[Node], tuple[Rule, ...]] = {
    Cast: (drop_cast_to_own_dtype, drop_cast_there_and_back),
    View: (drop_view_of_everything,),
    Map: (drop_positive,),
    Reduce: (drop_fold_of_one_element,),
    Scan: (drop_scan_of_one_element,),
    Update: (drop_update_of_nothing, update_of_everything_is_the_value),
}


def simplified(node: Node, operands: Sequence[Node]) -> Node | None:
    """What `node` becomes by the first rule that applies, or None.

    Parameters
    ----------
    node : Node
        Pending.
    operands : sequence of Node
        What stands for its inputs now, each simplified already.
    """
    for rule in RULES.get(type(node), ()):
        found = rule(node, operands)
        if found is not None:
            return found
    return None
