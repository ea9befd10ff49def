"""Backends by the name of their device."""

import re
import threading

from codegen.errors import TargetError
from codegen.targets.backend import Backend
from codegen.targets.cpu.backend import CpuBackend
from codegen.targets.forks import watch
from codegen.targets.nvptx.backend import NvptxBackend
from codegen.targets.nvptx.driver import cuda_available

__all__ = ["backend", "cuda_available"]

_DEVICE = re.compile(r"cpu|cuda(:\d+)?")


class _Registry:
    """The backends of this process."""

    def __init__(self) -> None:
        self.backends: dict[str, Backend] = {}
        self.lock = threading.Lock()
        watch(self)

    def before_fork(self) -> None:
        """Let no other thread be making a backend."""
        self.lock.acquire()

    def after_fork(self, in_child: bool) -> None:
        """The backends go on; each knows what a fork means to it."""
        self.lock.release()


_registry = _Registry()


def backend(device: str) -> Backend:
    """The backend of a device, made when it is first asked for.

    Parameters
    ----------
    device : str
        ``"cpu"``, ``"cuda:0"``, ``"cuda:1"`` …; ``"cuda"`` is ``"cuda:0"``.

    Raises
    ------
    TypeError
        `device` is no str.
    TargetError
        There is no such device, or it cannot be used; the message says why and what to do.
    """
    if not isinstance(device, str):
        raise TypeError(f"device: expected a str such as 'cpu' or 'cuda:0', found {device!r}")
    found = _registry.backends.get(device)
    if found is not None:
        return found
    if not _DEVICE.fullmatch(device):
        raise TargetError(f"device: there is none called {device!r}, expected 'cpu', 'cuda' or 'cuda:' and a number")
    name = "cuda:0" if device == "cuda" else device
    with _registry.lock:
        found = _registry.backends.get(name)
        if found is None:
            found = CpuBackend() if name == "cpu" else NvptxBackend(int(name.removeprefix("cuda:")))
            _registry.backends[name] = found
        _registry.backends[device] = found
    return found
