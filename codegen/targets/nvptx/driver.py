"""The CUDA driver through cuda-python: found when first needed, every call checked, every error a sentence."""

import ctypes
import importlib
import importlib.util
import os
import threading
from functools import cache
from types import ModuleType

from codegen.errors import OutOfMemoryError, TargetError
from codegen.targets.forks import watch

BINDINGS = "cuda.bindings.driver"

_OUT_OF_MEMORY = 2
_NOT_INITIALIZED = 3
_NO_DEVICE = 100
_UNSUPPORTED_PTX = 222

_EXPLANATIONS: dict[int, str] = {
    _NOT_INITIALIZED: "the driver is not initialised in this process; do not fork after the GPU was used, start "
    "processes with the 'spawn' method",
    34: "the library is a stub without a driver behind it; remove its folder from LD_LIBRARY_PATH",
    46: "the device is in use by another process in exclusive mode, or not available; look at nvidia-smi",
    _NO_DEVICE: "no NVIDIA GPU is visible; look at nvidia-smi and CUDA_VISIBLE_DEVICES",
    101: "there is no such device; look at nvidia-smi and CUDA_VISIBLE_DEVICES",
    209: "the code was made for another GPU; delete the kernel cache (BLOCKARRAY_CACHE_DIR)",
    218: "the driver refused the PTX code; please report it with BLOCKARRAY_DUMP=all",
    _UNSUPPORTED_PTX: "the NVIDIA driver is too old for this PTX version; install a newer driver",
    700: "a kernel used memory that is not its own; all further work on the GPU fails, start the process again",
    701: "a kernel needs more registers or shared memory than the GPU has; use smaller blocks",
    702: "a kernel ran longer than the display watchdog allows; use smaller arrays or another GPU",
    709: "the GPU context was destroyed by other code in this process; start the process again",
    716: "a kernel made a misaligned access; all further work on the GPU fails, start the process again",
    719: "a kernel failed; all further work on the GPU fails, start the process again",
    803: "the NVIDIA driver's library and its kernel module have different versions; restart the machine",
    999: "the driver does not say why; look at dmesg for messages that begin with NVRM",
}
"""What a result code means to a user and what to do, by number: codes are the driver's ABI and never change."""


class Driver:
    """cuda-python's driver functions, each call checked.

    Parameters
    ----------
    bindings : module
        ``cuda.bindings.driver``, or what stands for it in a test.
    """

    def __init__(self, bindings: ModuleType) -> None:
        self.bindings = bindings
        self.forked = False
        self._start()
        watch(self)

    def call(self, action: str, function: str, *arguments: object) -> object:
        """Call the driver's `function`; its result, a tuple if there are several, None if there is none.

        Raises
        ------
        TargetError
            The call failed. `action` says in the message what was tried.
        """
        self.require_unforked(action)
        code, *results = getattr(self.bindings, function)(*arguments)
        if int(code) != 0:
            raise self.error(action, int(code))
        if not results:
            return None
        return results[0] if len(results) == 1 else tuple(results)

    def integer(self, action: str, function: str, *arguments: object) -> int:
        """Like `call`, for a function whose result is a number or a handle."""
        return int(self.call(action, function, *arguments))  # type: ignore[call-overload]

    def require_unforked(self, action: str) -> None:
        """Refuse work in a forked child: the driver does not survive a fork."""
        if self.forked:
            raise TargetError(
                f"{action}: this process was forked from one that had used the GPU, and the CUDA driver does not work "
                "across a fork; start processes with multiprocessing.get_context('spawn'), or use the GPU only after "
                "the fork"
            )

    def error(self, action: str, code: int) -> TargetError:
        """The exception for a result code."""
        if self.forked:
            try:
                self.require_unforked(action)
            except TargetError as forked:
                return forked
        explanation = _EXPLANATIONS.get(code, self._description(code))
        message = f"{action}: {self._name(code)} (CUDA error {code}): {explanation}"
        if code == _UNSUPPORTED_PTX:
            message += f" (this one supports CUDA {self.version_text()})"
        return OutOfMemoryError(message) if code == _OUT_OF_MEMORY else TargetError(message)

    def version_text(self) -> str:
        """The newest CUDA version that the driver supports, like ``"13.0"``."""
        code, version = self.bindings.cuDriverGetVersion()
        if int(code) != 0:
            return "unknown"
        return f"{version // 1000}.{version % 1000 // 10}"

    def device_count(self) -> int:
        """GPUs that this process can see."""
        return self.integer("count GPUs", "cuDeviceGetCount")

    def _start(self) -> None:
        try:
            code = self.bindings.cuInit(0)[0]
        except RuntimeError as error:
            raise TargetError(
                f"gpu: the NVIDIA driver's library could not be loaded ({error}); install the NVIDIA driver, or run on "
                "the host with BLOCKARRAY_DEVICE=cpu"
            ) from error
        if int(code) != 0:
            raise self.error("gpu", int(code))

    def _name(self, code: int) -> str:
        status, name = self.bindings.cuGetErrorName(_result(self.bindings, code))
        return name.decode() if int(status) == 0 and name else "unknown error"

    def _description(self, code: int) -> str:
        status, text = self.bindings.cuGetErrorString(_result(self.bindings, code))
        return text.decode() if int(status) == 0 and text else "the driver has no description of it"

    def before_fork(self) -> None:
        """Nothing to hold."""

    def after_fork(self, in_child: bool) -> None:
        """Remember in the child that the driver is of no use there."""
        self.forked = self.forked or in_child


def _result(bindings: ModuleType, code: int) -> object:
    try:
        return bindings.CUresult(code)
    except ValueError:  # a code newer than the bindings
        return bindings.CUresult.CUDA_ERROR_UNKNOWN


class _Found:
    """The driver of this process, or why there is none; looked for once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.driver: Driver | None = None
        self.problem: TargetError | None = None

    def look(self) -> None:
        """Find the driver unless it was looked for before."""
        with self.lock:
            if self.driver is not None or self.problem is not None:
                return
            try:
                self.driver = Driver(load_bindings())
            except TargetError as problem:
                self.problem = problem

    def before_fork(self) -> None:
        """Let no other thread be looking."""
        self.lock.acquire()

    def after_fork(self, in_child: bool) -> None:
        """What was found stays; the driver itself knows that it was forked."""
        self.lock.release()


_found = _Found()
watch(_found)


def load_bindings() -> ModuleType:
    """cuda-python's driver module; a `TargetError` says what is missing."""
    try:
        present = importlib.util.find_spec(BINDINGS) is not None
    except ModuleNotFoundError:
        present = False
    if not present:
        raise TargetError(
            "gpu: the package cuda-python is not installed; install it with pip install '.[cuda]' in the folder of blockarray's source, or run on the host with "
            "BLOCKARRAY_DEVICE=cpu"
        )
    try:
        # Optional, and slow to import: a machine without CUDA must not need it.
        return importlib.import_module(BINDINGS)
    except ImportError as error:
        raise TargetError(
            f"gpu: the package cuda-python does not work here ({error}); reinstall it with "
            "pip install --force-reinstall '.[cuda]' in the folder of blockarray's source"
        ) from error


def driver() -> Driver:
    """The driver of this process.

    Raises
    ------
    TargetError
        There is no driver, no package for it, or no GPU; or the process is a forked child of one that used the GPU.
    """
    _found.look()
    if _found.driver is None:
        assert _found.problem is not None
        raise TargetError(str(_found.problem))
    _found.driver.require_unforked("gpu")
    return _found.driver


def cuda_available() -> bool:
    """Whether an NVIDIA GPU can be used here. Cheap after the first call, and silent."""
    if not library_is_there():
        return False
    _found.look()
    if _found.driver is None or _found.driver.forked:
        return False
    try:
        return _found.driver.device_count() > 0
    except TargetError:
        return False


@cache
def library_is_there() -> bool:
    """Whether the driver's library can be loaded: far cheaper to see than by importing the bindings."""
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    return True
