"""Puts object code into this process' memory and finds its entry point."""

import ctypes
import itertools

import llvmlite.binding as llvm

from codegen.errors import InternalCompilerError
from codegen.targets.cpu.description import LIBRARIES
from codegen.targets.forks import watch

_LLVM_LOCK = llvm.ffi.lib._lock
"""llvmlite takes this lock around every call of LLVM; there is no public name for it."""


class Loader:
    """Loads object files through one JIT linker (0.07 ms each; an engine for each file takes 0.55 ms)."""

    def __init__(self) -> None:
        self._linker: llvm.LLJIT | None = None
        self._numbers = itertools.count()
        self._library = ctypes.CDLL(None)
        watch(self, last=True)

    def load(self, binary: bytes, *names: str, imports: tuple[str, ...] = ()) -> "LoadedCode":
        """Map an object file and resolve `names` in it; it may call what kernels may, and `imports` of the C library."""
        builder = llvm.JITLibraryBuilder().add_object_img(binary)
        for name in names:
            builder.export_symbol(name)
        for symbol in (*sorted(LIBRARIES), *imports):
            address = ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value
            builder.import_symbol(symbol, address or 0)
        try:
            with _LLVM_LOCK:
                if self._linker is None:
                    llvm.initialize_native_target()
                    llvm.initialize_native_asmprinter()
                    # JITLink keeps a file's sections together, so the small code model reaches its constants.
                    self._linker = llvm.create_lljit_compiler(use_jit_link=True)
                tracker = builder.link(self._linker, f"{names[0]}.{next(self._numbers)}")
                return LoadedCode(tracker)
        except RuntimeError as error:
            raise InternalCompilerError(
                f"load {names[0]}: the linker refused {len(binary)} bytes of object code: {error}"
            ) from error

    def before_fork(self) -> None:
        """Let no other thread be inside LLVM: the child needs its locks."""
        _LLVM_LOCK.__enter__()

    def after_fork(self, in_child: bool) -> None:
        """Go on, in the child with copies of the loaded code."""
        _LLVM_LOCK.__exit__()


class LoadedCode:
    """Code in this process' memory, valid as long as this object lives."""

    __slots__ = ("_tracker",)

    def __init__(self, tracker: llvm.ResourceTracker) -> None:
        self._tracker = tracker

    def address(self, name: str) -> int:
        """Where one of the names begins that were asked for."""
        return self._tracker[name]
