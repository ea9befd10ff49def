"""A GPU without a GPU: a backend whose kernels run as PTX on the machine of `ptx_machine`."""

import ctypes
from collections.abc import Callable

import numpy as np
from ptx_machine import Machine
from ptx_machine import Memory as Bytes

from codegen.ir.kernel import Kernel
from codegen.target import Target
from codegen.targets.backend import Backend, BoundLaunch, Launcher, Memory, MemoryInfo, count_slots
from codegen.targets.nvptx.description import nvptx_target

_ALIGNMENT = 256


class PtxMemory(Memory):
    """A piece of the machine's global memory; it is never used again, so a late access to it is an error."""

    __slots__ = ("_bytes",)

    def __init__(self, address: int, nbytes: int, memory: Bytes) -> None:
        self.address = address
        self.nbytes = nbytes
        self._bytes = memory
        memory.exists[address : address + nbytes] = True

    def __del__(self) -> None:
        self._bytes.exists[self.address : self.address + self.nbytes] = False


class PtxLauncher(Launcher):
    """A kernel on the machine."""

    def __init__(self, text: str, kernel: Kernel, memory: Bytes) -> None:
        self._machine = Machine(text)
        self._slots = count_slots(kernel)
        self._memory = memory

    def bind(self, slots_address: int) -> BoundLaunch:
        """Launches that read the slots each time."""

        def run(programs: int, parallel: bool = True) -> None:
            raw = ctypes.string_at(slots_address, 8 * self._slots)
            slots = [raw[at : at + 8] for at in range(0, len(raw), 8)]
            self._machine.run(slots, self._memory, programs)

        return run


class PtxBackend(Backend):
    """One GPU with a small memory. Its number is one that no machine has, so that plans for it meet no real GPU."""

    device = "cuda:99"

    def __init__(self, nbytes: int = 1 << 24, target: Target | None = None) -> None:
        self.target = target or nvptx_target("sm_90a")
        self._memory = Bytes(nbytes)
        self._next = 4096

    def link(self, code: bytes, name: str) -> bytes:
        """PTX is run as it is."""
        return code

    def load(self, binary: bytes, name: str, kernel: Callable[[], Kernel]) -> PtxLauncher:
        """Read the PTX."""
        return PtxLauncher(binary.decode(), kernel(), self._memory)

    def allocate(self, nbytes: int) -> PtxMemory:
        """The next piece."""
        address = self._next
        self._next += -(-nbytes // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT
        if self._next > len(self._memory.bytes):
            raise MemoryError(f"the machine has {len(self._memory.bytes)} bytes, all used")
        return PtxMemory(address, nbytes, self._memory)

    def to_host(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        """Copy out."""
        start = memory.address + offset
        array.reshape(-1).view(np.uint8)[:] = self._memory.bytes[start : start + array.nbytes]

    def from_host(self, array: np.ndarray, memory: Memory, offset: int) -> None:
        """Copy in."""
        start = memory.address + offset
        self._memory.bytes[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)
        self._memory.initialized[start : start + array.nbytes] = True

    def copy(self, source: Memory, source_offset: int, target: Memory, target_offset: int, nbytes: int) -> None:
        """Copy inside."""
        first, second = source.address + source_offset, target.address + target_offset
        self._memory.bytes[second : second + nbytes] = self._memory.bytes[first : first + nbytes]
        self._memory.initialized[second : second + nbytes] = True

    def synchronize(self) -> None:
        """Launches are done when they return."""

    def memory_info(self) -> MemoryInfo:
        """What is left."""
        total = len(self._memory.bytes)
        return MemoryInfo(self._next, 0, self._next, total - self._next, total)

    def release_cached(self) -> None:
        """Nothing is kept."""
