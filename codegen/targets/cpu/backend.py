"""The host as a backend."""

import ctypes
from collections.abc import Callable

import numpy as np

from codegen import settings
from codegen.ir.kernel import Kernel
from codegen.target import Target
from codegen.targets.backend import (
    Backend,
    BoundLaunch,
    Launcher,
    Memory,
    MemoryInfo,
    check_host_array,
    check_range,
)
from codegen.targets.cpu.description import host_target
from codegen.targets.cpu.loader import LoadedCode, Loader
from codegen.targets.cpu.memory import BorrowedHostMemory, HostAllocator, HostMemory
from codegen.targets.cpu.threads import ThreadPool

_Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class HostLauncher(Launcher):
    """A kernel in this process' memory: ``void NAME(int64_t *slots, int64_t begin, int64_t end)``."""

    def __init__(self, code: LoadedCode, name: str, pool: ThreadPool) -> None:
        self._code = code
        self._pool = pool
        self._address = code.address(name)
        self._entry = _Entry(self._address)

    def bind(self, slots_address: int) -> BoundLaunch:
        """Prepare calls with the slots at `slots_address`; see `Launcher.bind`."""
        # Made once: converting a number to a C argument takes a tenth of the whole call.
        slots, zero = ctypes.c_void_p(slots_address), ctypes.c_int64(0)
        entry = self._entry
        share = self._pool.bind(self._address, slots_address)

        def run(programs: int, parallel: bool = True) -> None:
            # `self` keeps the code loaded while this function lives.
            if parallel and programs > 1 and self._pool.threads > 1:
                share(programs)
            else:
                entry(slots, zero, programs)

        return run


class CpuBackend(Backend):
    """The cores and the memory of this machine.

    Parameters
    ----------
    target : Target, optional
        To compile for; by default exactly this machine.
    threads : int, optional
        Threads that run kernels; by default what the settings say, else one for each usable core.
    """

    device = "cpu"

    def __init__(self, target: Target | None = None, threads: int | None = None) -> None:
        self.target = host_target() if target is None else target
        self._loader = Loader()
        self._pool = ThreadPool(threads or settings.current().threads or self.target.cores, self._loader, self.target)
        self._allocator = HostAllocator()

    @property
    def threads(self) -> int:
        """Threads that share a parallel launch."""
        return self._pool.threads

    def link(self, code: bytes, name: str) -> bytes:
        """Object code is loaded as it is."""
        return code

    def load(self, binary: bytes, name: str, kernel: Callable[[], Kernel]) -> HostLauncher:
        """Map an object file into this process."""
        return HostLauncher(self._loader.load(binary, name), name, self._pool)

    def allocate(self, nbytes: int) -> HostMemory:
        """Uninitialised memory, 64-byte aligned."""
        return self._allocator.allocate(nbytes)

    def borrow(self, address: int, nbytes: int, owner: object) -> BorrowedHostMemory:
        """Memory of this process that something else owns, such as a NumPy array's."""
        return BorrowedHostMemory(address, nbytes, owner)

    def to_host(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        """Copy bytes of `memory` into `array`."""
        check_host_array("to_host", array, written=True)
        check_range("to_host", memory, offset, array.nbytes)
        self._pool.copy(_address(array), memory.address + offset, array.nbytes)

    def from_host(self, array: np.ndarray, memory: Memory, offset: int) -> None:
        """Copy the bytes of `array` into `memory`."""
        check_host_array("from_host", array, written=False)
        check_range("from_host", memory, offset, array.nbytes)
        self._pool.copy(memory.address + offset, _address(array), array.nbytes)

    def copy(self, source: Memory, source_offset: int, target: Memory, target_offset: int, nbytes: int) -> None:
        """Copy bytes between two memories."""
        check_range("copy: source", source, source_offset, nbytes)
        check_range("copy: target", target, target_offset, nbytes)
        self._pool.copy(target.address + target_offset, source.address + source_offset, nbytes)

    def synchronize(self) -> None:
        """Nothing to wait for: launches return when they are done."""

    def memory_info(self) -> MemoryInfo:
        """How much memory is used, cached and left."""
        return self._allocator.info()

    def release_cached(self) -> None:
        """Give free blocks back to the system."""
        self._allocator.pool.release_cached()


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]
