"""Host memory: aligned blocks that are recycled, because the page faults of fresh memory cost as much as the work."""

import mmap
import os
from pathlib import Path

import numpy as np

from codegen.errors import OutOfMemoryError
from codegen.targets.backend import BorrowedMemory, Memory, MemoryInfo
from codegen.targets.pool import Block, Pool, PooledMemory, readable

HUGE_PAGE = 1 << 21
"""Bytes of a huge page on x86-64 and (with 4 KiB base pages) on AArch64. Blocks of this size and more are mapped at
multiples of it and ask for huge pages: one page fault instead of 512."""

ALIGNMENT = 64
"""Bytes of a cache line and of the widest vector register."""

CACHED_SHARE = 0.25
"""Share of the machine's memory that free blocks may hold."""


def create_block(size: int) -> Block:
    """Fresh memory from the system: mapped and huge-paged when large, from NumPy's allocator when small."""
    if size < HUGE_PAGE:
        owner = np.empty(size + ALIGNMENT, dtype=np.uint8)
        return Block(_aligned(owner, ALIGNMENT), owner)
    try:
        # Private: a shared mapping would be shared memory to the kernel, without huge pages and not copied by a fork.
        mapping = mmap.mmap(-1, size + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from error
    _ask_for_huge_pages(mapping)
    owner = np.frombuffer(mapping, dtype=np.uint8)
    return Block(_aligned(owner, HUGE_PAGE), owner)


def destroy_block(block: Block, size: int) -> None:
    """Return a block to the system; the mapping goes with the last reference to it."""
    block.owner = None


def _aligned(owner: np.ndarray, alignment: int) -> int:
    address = owner.__array_interface__["data"][0]
    return address + -address % alignment


def _ask_for_huge_pages(mapping: mmap.mmap) -> None:
    # A request only: kernels without huge pages refuse it, and the memory works as well.
    try:
        mapping.madvise(mmap.MADV_HUGEPAGE)
    except (AttributeError, OSError):
        return


class HostMemory(PooledMemory):
    """Memory of the host, 64-byte aligned."""

    __slots__ = ()

    @property
    def array(self) -> np.ndarray:
        """The bytes as a one-dimensional uint8 array, which keeps this memory alive."""
        return np.asarray(_Bytes(self))


class BorrowedHostMemory(BorrowedMemory):
    """Host memory that something else owns."""

    __slots__ = ()

    @property
    def array(self) -> np.ndarray:
        """The bytes as a one-dimensional uint8 array, which keeps the owner alive."""
        return np.asarray(_Bytes(self))


class _Bytes:
    """What NumPy takes as the base of `array`: a reference from array to memory, and none back."""

    __slots__ = ("_memory",)

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @property
    def __array_interface__(self) -> dict[str, object]:
        return {
            "version": 3,
            "typestr": "|u1",
            "shape": (self._memory.nbytes,),
            "data": (self._memory.address, False),
        }


class HostAllocator:
    """Gives out `HostMemory` from one pool."""

    def __init__(self, cache_limit_bytes: int | None = None) -> None:
        limit = int(total_bytes() * CACHED_SHARE) if cache_limit_bytes is None else cache_limit_bytes
        self.pool: Pool = Pool(create_block, destroy_block, limit)

    def allocate(self, nbytes: int) -> HostMemory:
        """Uninitialised memory of `nbytes`."""
        if nbytes < 0:
            raise ValueError(f"allocate: {nbytes} bytes were asked for, expected 0 or more")
        try:
            return HostMemory(self.pool, nbytes)
        except (MemoryError, OverflowError, ValueError) as error:
            info = self.info()
            raise OutOfMemoryError(
                f"Unable to allocate {readable(nbytes)} on the host: {readable(info.in_use_bytes)} are in use and "
                f"{readable(info.free_bytes)} of {readable(info.total_bytes)} are free; drop arrays that are not "
                "needed any more, or work on smaller pieces"
            ) from error

    def info(self) -> MemoryInfo:
        """How much memory is used, cached and left."""
        in_use, cached, peak = self.pool.usage()
        return MemoryInfo(in_use, cached, peak, free_bytes(), total_bytes())


def total_bytes() -> int:
    """The machine's memory, or what this process' control group may have of it."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return machine
    return min(machine, int(limit)) if limit.isdigit() else machine


def free_bytes() -> int:
    """Memory that the system could give without swapping, as far as it tells."""
    try:
        with open("/proc/meminfo", encoding="ascii") as table:
            for line in table:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
