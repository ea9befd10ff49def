"""A pool that keeps freed blocks of memory for reuse; host and GPU differ only in where blocks come from."""

import threading
from collections import deque
from collections.abc import Callable

from codegen.targets.backend import Memory
from codegen.targets.forks import watch

SMALLEST = 256
"""The smallest block, in bytes: the alignment that a GPU gives, four cache lines of the host."""

LARGE = 1 << 24
"""From this size on, in bytes, blocks come in finer steps: what is wasted on them counts."""

BLOCKS_PER_CLASS = 1024
"""Free blocks kept of one size, so that a million freed scalars do not stay behind as a million objects."""


def block_size(nbytes: int) -> int:
    """Size of the block that holds `nbytes`: one of 4 steps (of 16 for large blocks) from one power of two to the next.

    Requests of similar sizes share blocks, and at most a fifth (a seventeenth) of a block is wasted.
    """
    if nbytes <= SMALLEST:
        return SMALLEST
    step = 1 << ((nbytes - 1).bit_length() - (3 if nbytes < LARGE else 5))
    return -(-nbytes // step) * step


class Block:
    """A run of bytes in a device's address space, and the object that owns it if there is one."""

    __slots__ = ("address", "owner")

    def __init__(self, address: int, owner: object = None) -> None:
        self.address = address
        self.owner = owner


class Pool:
    """Recycles blocks by size. Thread safe; `give_back` may run inside the garbage collector at any moment.

    Parameters
    ----------
    create : callable
        Makes a block of so many bytes; raises MemoryError when it cannot.
    destroy : callable
        Returns a block of so many bytes to the system.
    cache_limit_bytes : int
        Free blocks beyond this are destroyed, the longest unused first.
    """

    def __init__(
        self, create: Callable[[int], Block], destroy: Callable[[Block, int], None], cache_limit_bytes: int
    ) -> None:
        self._create = create
        self._destroy = destroy
        self._cache_limit_bytes = cache_limit_bytes
        self._lock = threading.Lock()
        # Appending to a deque is atomic and takes no lock: a finaliser that the garbage collector runs while this very
        # thread holds the lock must not wait for it.
        self._returned: deque[tuple[int, Block]] = deque()
        self._free: dict[int, deque[tuple[int, Block]]] = {}
        self._clock = 0
        self._in_use_bytes = 0
        self._cached_bytes = 0
        self._peak_bytes = 0
        watch(self)

    def take(self, nbytes: int) -> tuple[Block, int]:
        """A block of at least `nbytes`, and its size, which `give_back` wants to know."""
        size = block_size(nbytes)
        with self._lock:
            if self._returned:
                self._collect()
            blocks = self._free.get(size)
            if blocks:
                _, block = blocks.pop()
                self._cached_bytes -= size
                self._count_taken(size)
                return block, size
        block = self._create_or_make_room(size)
        with self._lock:
            self._count_taken(size)
        return block, size

    def give_back(self, block: Block, size: int) -> None:
        """Take a block back. Never waits: whoever holds the lock files the block away."""
        self._returned.append((size, block))
        self._settle()

    def release_cached(self) -> None:
        """Destroy all free blocks."""
        with self._lock:
            self._collect()
            self._trim(0)
        self._settle()

    def usage(self) -> tuple[int, int, int]:
        """Bytes in use, bytes cached, and the most that was in use."""
        with self._lock:
            self._collect()
            return self._in_use_bytes, self._cached_bytes, self._peak_bytes

    def before_fork(self) -> None:
        """Let no other thread be halfway through a change."""
        self._lock.acquire()

    def after_fork(self, in_child: bool) -> None:
        """The pool goes on, in the child with copies of the blocks."""
        self._lock.release()

    def _create_or_make_room(self, size: int) -> Block:
        try:
            return self._create(size)
        except MemoryError:
            self.release_cached()
            return self._create(size)

    def _settle(self) -> None:
        # A block that arrives while another call holds the lock is filed away by that call or by the next one.
        while self._returned and self._lock.acquire(blocking=False):
            try:
                self._collect()
            finally:
                self._lock.release()

    def _count_taken(self, size: int) -> None:
        self._in_use_bytes += size
        if self._in_use_bytes > self._peak_bytes:
            self._peak_bytes = self._in_use_bytes

    def _collect(self) -> None:
        returned = self._returned
        while returned:
            size, block = returned.popleft()
            self._in_use_bytes -= size
            blocks = self._free.setdefault(size, deque())
            if len(blocks) >= BLOCKS_PER_CLASS:
                self._destroy(block, size)
                continue
            self._clock += 1
            blocks.append((self._clock, block))
            self._cached_bytes += size
        if self._cached_bytes > self._cache_limit_bytes:
            self._trim(self._cache_limit_bytes)

    def _trim(self, limit_bytes: int) -> None:
        while self._cached_bytes > limit_bytes:
            # The front of each class has waited longest; there are only some tens of classes.
            size = min((size for size, blocks in self._free.items() if blocks), key=lambda size: self._free[size][0][0])
            _, block = self._free[size].popleft()
            self._cached_bytes -= size
            self._destroy(block, size)


class PooledMemory(Memory):
    """Memory whose block goes back to its pool."""

    __slots__ = ("_block", "_pool", "_size")

    def __init__(self, pool: Pool, nbytes: int) -> None:
        # Set first: if the pool has nothing left, __del__ must find it.
        self._block: Block | None = None
        self._pool = pool
        self._block, self._size = pool.take(nbytes)
        self.address = self._block.address
        self.nbytes = nbytes

    def __del__(self) -> None:
        if self._block is not None:
            self._pool.give_back(self._block, self._size)


def readable(nbytes: int) -> str:
    """Bytes in the unit that reads best, like ``"1.5 GiB"``."""
    amount = float(nbytes)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{nbytes} bytes" if unit == "bytes" else f"{amount:.3g} {unit}"
