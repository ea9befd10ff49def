"""Memory seen as elements of another dtype: reading it, and writing it.

A cell's node has one dtype; a view of another dtype counts its offset and strides in elements of its own. To read through it the node is
computed, and its memory read through a window of that dtype, so no byte is copied. A write through it is done at once: the memory
is given to a node of the view's dtype, updated like any other, and given back.
"""

import weakref
from collections.abc import Callable
from typing import Protocol

from blockarray.execution.evaluate import evaluate_nodes
from blockarray.execution.memory import FULL_ALIGNMENT, Buffer, buffer_of, buffer_token, window_of, window_range
from blockarray.graph.nodes import Constant, Node, Shape, Source, View, numpy_scalar
from codegen.dtypes import DType


class Holder(Protocol):
    """What holds the node of a memory: the cell of an array."""

    node: Node


def computed(holder: Holder) -> Node:
    """The holder's node, with a buffer."""
    node = holder.node
    if isinstance(node, Constant):
        buffer = buffer_of(numpy_scalar(node), node.dtype, node.device)
        holder.node = node = Source((), node.dtype, node.device, buffer)
    evaluate_nodes(node)
    return node


def reinterpreting_view(holder: Holder, dtype: DType, offset: int, shape: Shape, strides: tuple[int, ...]) -> View:
    """Elements of `dtype` at ``offset + sum(index * strides)`` of the holder's memory, counted in such elements."""
    if 0 in shape:
        return View(Constant(0, dtype, holder.node.device), 0, shape, (0,) * len(shape))
    first, extent = window_range(offset, shape, strides, dtype.itemsize)
    window = window_of(computed(holder), first, extent, dtype)
    return View(window, offset - first, shape, strides)


def change_reinterpreted(holder: Holder, dtype: DType, change: Callable[[Node], Node]) -> None:
    """Change the holder's memory, seen as a row of elements of `dtype`: `change` makes the update of a node of them."""
    node = computed(holder)
    own, device, memory_shape = node.dtype, node.device, node.shape
    buffer = node.buffer
    assert buffer is not None
    if buffer.windows is None:
        buffer.windows = {}
    aligned = buffer.address % FULL_ALIGNMENT == 0
    count = node.nbytes // dtype.itemsize
    # Windows that anything reads through stand for the memory, whatever the dtype of the node that holds it.
    seen = Buffer(buffer.memory, buffer_token(dtype, (count,), device, aligned), buffer.shared)
    seen.windows = buffer.windows
    reference = weakref.ref(node)
    source = Source((count,), dtype, device, seen)
    holder.node = source
    del node
    if reference() is not None:
        seen.shared = True
    update = change(source)
    holder.node = update
    del source, change
    try:
        evaluate_nodes(update)
    except BaseException:
        holder.node = Source(memory_shape, own, device, buffer)
        raise
    assert update.buffer is not None
    token = buffer_token(own, memory_shape, device)
    holder.node = Source(memory_shape, own, device, Buffer(update.buffer.memory, token))
