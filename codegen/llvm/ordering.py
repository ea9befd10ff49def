"""Memory order: loads that wait must not move behind a write, and lanes must not pass each other's accesses."""

from collections.abc import Callable, Hashable, Iterable

from codegen.llvm.fragments import Fragment
from codegen.llvm.hooks import Memory

Touched = dict[Memory, set[Hashable]]


class MemoryOrder:
    """Which loads are still to be emitted, and which memory was touched since all lanes last met.

    Accesses carry a *place*: equal places mean that each lane touches the very elements that it touched before, so that
    no barrier has to stand between. On the host, where a program has one lane, `barrier` does nothing.
    """

    def __init__(self) -> None:
        self.barrier: Callable[[], None] = _nothing
        self._waiting: list[tuple[Memory, Fragment]] = []
        self._read: Touched = {}
        self._written: Touched = {}
        self._places: Touched = {}
        self._changed: set[Memory] = set()

    def wait(self, memory: Memory, fragment: Fragment) -> None:
        """A load whose registers are emitted on demand, as long as nobody writes its memory."""
        if not memory.constant:
            self._waiting.append((memory, fragment))

    def before_read(self, memory: Memory, place: Hashable) -> None:
        """Order a read after the writes of other lanes."""
        if memory.constant:
            return
        if _conflicts(memory, place, self._written):
            self.meet()
        self._read.setdefault(memory, set()).add(place)
        self._places.setdefault(memory, set()).add(place)

    def before_write(self, memory: Memory, place: Hashable) -> None:
        """Order a write after waiting loads and after other lanes' accesses."""
        self.settle([memory])
        if _conflicts(memory, place, self._read) or _conflicts(memory, place, self._written):
            self.meet()
        self._written.setdefault(memory, set()).add(place)
        self._places.setdefault(memory, set()).add(place)
        self._changed.add(memory)

    def settle(self, written: Iterable[Memory]) -> None:
        """Emit the waiting loads of memory that is about to be written."""
        for target in written:
            for memory, fragment in self._waiting:
                if _overlap(memory, target):
                    fragment.force()
            self._waiting = [row for row in self._waiting if not _overlap(row[0], target)]

    def meet(self) -> None:
        """A barrier; all earlier accesses are ordered by it."""
        self.barrier()
        self._read = {}
        self._written = {}

    def in_branches(self, *branches: Callable[[], None]) -> None:
        """Emit alternatives that start from one state; what any of them touched counts as touched behind them."""
        read, written, waiting = self._read, self._written, self._waiting
        ends = []
        for emit in branches:
            self._read, self._written, self._waiting = _copy(read), _copy(written), list(waiting)
            emit()
            ends.append((self._read, self._written))
        self._read = _union(end[0] for end in ends)
        self._written = _union(end[1] for end in ends)
        self._waiting = waiting

    def in_loop(self, emit: Callable[[], None]) -> None:
        """Emit a loop's body. A turn ends with a barrier if lanes could pass each other between turns."""
        read, written, waiting = _copy(self._read), _copy(self._written), self._waiting
        places, changed = self._places, self._changed
        self._waiting, self._places, self._changed = list(waiting), {}, set()
        emit()
        unordered = [*self._read, *self._written]
        if any(self._is_contested(memory) for memory in unordered):
            self.meet()
        self._read = _union([read, self._read])
        self._written = _union([written, self._written])
        self._places = _union([places, self._places])
        self._changed |= changed
        self._waiting = waiting

    def _is_contested(self, memory: Memory) -> bool:
        """Whether the next turn may touch elements that another lane touched at the end of this one.

        A buffer that the body writes and accesses at one place only moves on, or each lane finds its own elements.
        """
        if not any(_overlap(memory, changed) for changed in self._changed):
            return False
        places = {place for other, found in self._places.items() if _overlap(memory, other) for place in found}
        return memory.private or len(places) > 1


def _overlap(a: Memory, b: Memory) -> bool:
    if a is b:
        return True
    return not (a.restrict or b.restrict)


def _conflicts(memory: Memory, place: Hashable, touched: Touched) -> bool:
    return any(_overlap(memory, other) and places != {place} for other, places in touched.items())


def _copy(touched: Touched) -> Touched:
    return {memory: set(places) for memory, places in touched.items()}


def _union(parts: Iterable[Touched]) -> Touched:
    result: Touched = {}
    for part in parts:
        for memory, places in part.items():
            result.setdefault(memory, set()).update(places)
    return result


def _nothing() -> None:
    """One lane passes nobody."""
