"""Arguments that a kernel writes: their memory, and their new values."""

import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from blockarray.execution.memory import Buffer, buffer_token
from blockarray.graph.nodes import Source
from blockarray.language.operands import Operand, check_output, overlap
from blockarray.ndarray import Cell, ndarray
from blockarray.reinterpretation import computed
from codegen.targets.backend import Backend, Memory


def _references_to_node(cell: Cell) -> int:
    node = cell.node
    return sys.getrefcount(node)


def _references_to_buffer(node: Any) -> int:
    buffer = node.buffer
    return sys.getrefcount(buffer)


# What is counted of objects that only their cell, or their node, holds.
_ALONE_IN_CELL = _references_to_node(Cell(object()))  # type: ignore[arg-type]
_ALONE_IN_NODE = _references_to_buffer(SimpleNamespace(buffer=object()))


class Outputs:
    """The written arguments of a launch.

    A kernel reads its inputs as they were before. An array of ours that is written keeps its memory if nothing else can read that,
    and gets a copy to write into otherwise, so that what was recorded on its old value stays true. A NumPy array is written where it
    lies.

    Parameters
    ----------
    device : Backend
        Where the kernel runs.
    operands : iterable of Operand
        All array arguments; their memory is replaced where that is needed.
    written : frozenset of str
        Names of those that the kernel writes.
    """

    def __init__(self, device: Backend, operands: Iterable[Operand], written: frozenset[str]) -> None:
        self._device = device
        self._outputs: list[Operand] = []
        self._inputs: list[Operand] = []
        for operand in operands:
            (self._outputs if operand.name in written else self._inputs).append(operand)
        self._new: dict[int, tuple[Cell, Memory]] = {}

    def prepare(self) -> None:
        """Check the outputs, and give them memory that they may write."""
        for position, output in enumerate(self._outputs):
            check_output(output)
            for other in self._outputs[:position]:
                if overlap(output, other):
                    raise ValueError(
                        f"{other.name} and {output.name} are both written and share memory; expected separate arrays"
                    )
        for output in self._outputs:
            if isinstance(output.array, ndarray):
                self._own(output)
        for given in self._inputs:
            if any(not isinstance(output.array, ndarray) and overlap(given, output) for output in self._outputs):
                self._copy(given)

    def _own(self, output: Operand) -> None:
        cell = output.array._cell
        known = self._new.get(id(cell))
        if known is None:
            known = self._new[id(cell)] = (cell, self._memory_for(cell))
        output.memory = known[1]

    def _memory_for(self, cell: Cell) -> Memory:
        node = computed(cell)
        buffer = node.buffer
        assert buffer is not None
        is_read = any(given.memory is buffer.memory for given in self._inputs)
        is_watched = is_read or buffer.shared or buffer.is_watched
        old = buffer.memory
        # Names of this function would be counted.
        del buffer
        if not is_watched and _references_to_buffer(node) <= _ALONE_IN_NODE:
            del node
            if _references_to_node(cell) <= _ALONE_IN_CELL:
                return old
        memory = self._device.allocate(max(old.nbytes, 1))
        if old.nbytes:
            self._device.copy(old, 0, memory, 0, old.nbytes)
        return memory

    def _copy(self, given: Operand) -> None:
        """Move an input away from memory that is written."""
        low, high = given.extent_bytes
        memory = self._device.allocate(max(high - low, 1))
        source = self._device.borrow(given.address + low, high - low, given.memory)
        self._device.copy(source, 0, memory, 0, high - low)
        given.memory, given.offset_bytes = memory, -low

    def deliver(self) -> None:
        """Let arrays of ours have their new values."""
        for cell, memory in self._new.values():
            node = cell.node
            buffer = Buffer(memory, buffer_token(node.dtype, node.shape, node.device))
            cell.node = Source(node.shape, node.dtype, node.device, buffer)
