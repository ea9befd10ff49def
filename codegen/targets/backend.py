"""What a machine offers at run time: memory, copies, and compiled kernels made callable."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from codegen.ir.kernel import BufferParameter, Kernel
from codegen.target import Target


class BoundLaunch(Protocol):
    """A kernel bound to one slot array; calling it runs the kernel with what the slots hold at that moment."""

    def __call__(self, programs: int, parallel: bool = True) -> None:
        """Run programs ``0 <= p < programs``."""


class Launcher(ABC):
    """A kernel loaded on a device. Keeps the code loaded for as long as it, or a launch bound to it, is alive."""

    @abstractmethod
    def bind(self, slots_address: int) -> BoundLaunch:
        """Prepare launches whose arguments are read from the slots at `slots_address`.

        The caller keeps the slots alive for as long as it calls the result, and may write new arguments into them as
        soon as a call has returned (on a GPU the kernel may then still be running: arguments are read at the call).
        Slots and bound launch serve one thread at a time; two threads take two slot arrays.

        Parameters
        ----------
        slots_address : int
            Address of the first 8-byte slot in host memory.

        Returns
        -------
        BoundLaunch
            ``run(programs, parallel=True)``. On the host it returns when the programs are done, and ``parallel=False``
            keeps a small kernel on the calling thread. On a GPU it returns when the launch is queued.
        """

    def launch(self, slots_address: int, programs: int, parallel: bool = True) -> None:
        """Run programs ``0 <= p < programs`` once; to do it again and again, keep what `bind` gives."""
        self.bind(slots_address)(programs, parallel)


class Memory(ABC):
    """A piece of a device's memory. It goes back to the device's pool when the last reference to it is gone.

    Attributes
    ----------
    address : int
        Of the first byte, in the device's address space; never 0.
    nbytes : int
        Bytes asked for.
    """

    __slots__ = ("__weakref__", "address", "nbytes")

    address: int
    nbytes: int

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.nbytes} bytes at {self.address:#x}>"


class BorrowedMemory(Memory):
    """Memory that belongs to something else, such as a NumPy array; keeps that alive."""

    __slots__ = ("owner",)

    def __init__(self, address: int, nbytes: int, owner: object) -> None:
        self.address = address
        self.nbytes = nbytes
        self.owner = owner


@dataclass(frozen=True)
class MemoryInfo:
    """State of a device's memory and of its pool, in bytes.

    Attributes
    ----------
    in_use_bytes : int
        In blocks that live `Memory` objects hold.
    cached_bytes : int
        In free blocks kept for reuse; `Backend.release_cached` returns them to the system.
    peak_bytes : int
        The most that `in_use_bytes` has been.
    free_bytes : int
        What the system could still give.
    total_bytes : int
        The device's memory.
    """

    in_use_bytes: int
    cached_bytes: int
    peak_bytes: int
    free_bytes: int
    total_bytes: int


class Backend(ABC):
    """A device at run time. Every method may be called from any thread.

    Attributes
    ----------
    target : Target
        The device's description, for the compiler.
    device : str
        ``"cpu"``, ``"cuda:0"`` …
    """

    target: Target
    device: str

    @abstractmethod
    def link(self, code: bytes, name: str) -> bytes:
        """Turn what LLVM emitted (object code, PTX) into what `load` takes and the disk cache keeps.

        Parameters
        ----------
        code : bytes
            Object code for the host, PTX text for a GPU.
        name : str
            Of the kernel, for messages.
        """

    @abstractmethod
    def load(self, binary: bytes, name: str, kernel: Callable[[], Kernel]) -> Launcher:
        """Load what `link` gave and find the entry point `name`.

        Parameters
        ----------
        binary : bytes
        name : str
        kernel : callable
            Gives the kernel in distributed form. Called only if the device must know more than the name: a kernel that comes
            from the disk cache has not been through the passes.
        """

    @abstractmethod
    def allocate(self, nbytes: int) -> Memory:
        """Uninitialised memory, aligned to 64 bytes or more; `OutOfMemoryError` if there is none."""

    def borrow(self, address: int, nbytes: int, owner: object) -> Memory:
        """Memory of this device that something else owns; `owner` is kept alive with it."""
        return BorrowedMemory(address, nbytes, owner)

    @abstractmethod
    def to_host(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        """Fill the C-contiguous `array` from `memory`, starting `offset` bytes into it; done on return."""

    @abstractmethod
    def from_host(self, array: np.ndarray, memory: Memory, offset: int) -> None:
        """Fill `memory`, starting `offset` bytes into it, from the C-contiguous `array`, which may change on return."""

    @abstractmethod
    def copy(self, source: Memory, source_offset: int, target: Memory, target_offset: int, nbytes: int) -> None:
        """Copy bytes between two memories of this device, in order with its launches; ranges must not overlap."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything that was queued has run; errors of kernels surface here."""

    @abstractmethod
    def memory_info(self) -> MemoryInfo:
        """How much memory is used, cached and left."""

    @abstractmethod
    def release_cached(self) -> None:
        """Give the pool's free blocks back to the system."""


def count_slots(kernel: Kernel) -> int:
    """Slots that a kernel's arguments take: one each, and one more for every run-time stride of a buffer."""
    strides = sum(
        parameter.type.strides.count(None) for parameter in kernel.parameters if isinstance(parameter, BufferParameter)
    )
    return len(kernel.parameters) + strides


def check_range(action: str, memory: Memory, offset: int, nbytes: int) -> None:
    """Refuse a copy that leaves `memory`."""
    if offset < 0 or nbytes < 0 or offset + nbytes > memory.nbytes:
        raise ValueError(
            f"{action}: bytes {offset} to {offset + nbytes} were asked for, but the memory has {memory.nbytes}"
        )


def check_host_array(action: str, array: np.ndarray, written: bool) -> None:
    """Refuse an array whose bytes are not one run in memory, or that may not be written."""
    if not array.flags.c_contiguous:
        raise ValueError(
            f"{action}: the array of shape {array.shape} has strides {array.strides}, expected a C-contiguous one; "
            "copy it with np.ascontiguousarray first"
        )
    if written and not array.flags.writeable:
        raise ValueError(f"{action}: the array of shape {array.shape} is read-only, expected a writable one")
