"""The compiler's driver: from a kernel to something that can be launched, through the caches."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import llvmlite

from codegen import settings
from codegen.cache import DiskCache, key_of, sources_digest
from codegen.errors import CodegenError
from codegen.ir.kernel import Kernel
from codegen.ir.printer import print_kernel
from codegen.ir.verifier import verify
from codegen.llvm.emitter import emit
from codegen.llvm.hooks import Emission
from codegen.llvm.module import Module
from codegen.passes import pipeline
from codegen.settings import Settings
from codegen.target import Target
from codegen.targets.backend import Backend, BoundLaunch, Launcher
from codegen.targets.cpu.emission import HostEmission
from codegen.targets.nvptx.emission import NvptxEmission

EMISSIONS: Mapping[str, Emission] = {"cpu": HostEmission(), "nvptx": NvptxEmission()}
_KEPT_IN_MEMORY = 2048


@dataclass
class Statistics:
    """How kernels were come by in this process.

    Attributes
    ----------
    compiled : int
        Kernels that went through LLVM.
    from_disk : int
        Kernels whose binary the disk cache had.
    from_memory : int
        Requests for a kernel that was loaded already.
    """

    compiled: int = 0
    from_disk: int = 0
    from_memory: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, what: str) -> None:
        """Add one to a counter."""
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)

    def after_fork(self) -> None:
        """In the child: nobody would release a lock that another thread held."""
        self._lock = threading.Lock()


statistics = Statistics()


class Artifacts(Mapping[str, str]):
    """The texts of a kernel by stage, each made when it is first looked at."""

    def __init__(self, makers: Mapping[str, Callable[[], str]]) -> None:
        self._makers = makers
        self._made: dict[str, str] = {}

    def __getitem__(self, stage: str) -> str:
        if stage not in self._makers:
            raise KeyError(f"no stage is called {stage!r}; stages: {', '.join(self._makers)}")
        if stage not in self._made:
            self._made[stage] = self._makers[stage]()
        return self._made[stage]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class Executable:
    """A kernel that is loaded on a device.

    Attributes
    ----------
    kernel : Kernel
        As it was compiled, after all passes (which run when this is first looked at, if the binary was cached).
    backend : Backend
        The device.
    artifacts : Artifacts
        Its text by stage: ``block``, ``distributed``, ``llvm``, ``optimized``, and ``assembly`` or ``ptx``.
    from_cache : bool
        Its binary came from the disk cache.
    """

    def __init__(
        self, stages: "_Stages", backend: Backend, launcher: Launcher, artifacts: Artifacts, from_cache: bool
    ) -> None:
        self._stages = stages
        self.backend = backend
        self.artifacts = artifacts
        self.from_cache = from_cache
        self._launcher = launcher

    @property
    def kernel(self) -> Kernel:
        """The kernel in distributed form."""
        return self._stages.distributed()

    def bind(self, slots_address: int) -> BoundLaunch:
        """Prepare launches whose arguments are read from the slots at `slots_address`."""
        return self._launcher.bind(slots_address)

    def launch(self, slots_address: int, programs: int, parallel: bool = True) -> None:
        """Run programs ``0 <= p < programs`` with the arguments in the slots at `slots_address`."""
        self._launcher.launch(slots_address, programs, parallel)

    def __repr__(self) -> str:
        return f"<Executable {self._stages.name}>"


class _Memory:
    """Executables of this process by key, and one lock for each key that is being compiled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.executables: OrderedDict[str, Executable] = OrderedDict()
        self.compiling: dict[str, threading.Lock] = {}
        self.dumped = 0

    def find(self, key: str) -> Executable | None:
        """The executable, which counts as just used."""
        with self.lock:
            found = self.executables.get(key)
            if found is not None:
                self.executables.move_to_end(key)
            return found

    def keep(self, key: str, executable: Executable) -> None:
        """Add an executable; the one that was not used for longest may go."""
        with self.lock:
            self.executables[key] = executable
            while len(self.executables) > _KEPT_IN_MEMORY:
                self.executables.popitem(last=False)

    def turn(self, key: str) -> threading.Lock:
        """The lock of those who want to compile `key`."""
        with self.lock:
            return self.compiling.setdefault(key, threading.Lock())

    def done(self, key: str) -> None:
        """Nobody needs to compile `key` any more."""
        with self.lock:
            self.compiling.pop(key, None)

    def after_fork(self) -> None:
        """In the child: locks that other threads held would never be released."""
        self.lock = threading.Lock()
        self.compiling = {}
        statistics.after_fork()


_memory = _Memory()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _memory.after_fork())


def forget_kernels() -> None:
    """Drop the kernels that this process keeps in memory; the disk cache stays."""
    with _memory.lock:
        _memory.executables.clear()


def compile_kernel(kernel: Kernel, backend: Backend) -> Executable:
    """Compile a kernel for a device, or take it from a cache.

    Parameters
    ----------
    kernel : Kernel
        In block form.
    backend : Backend
        The device.

    Returns
    -------
    Executable
        Loaded and ready. Equal kernels give the same object.

    Raises
    ------
    VerificationError
        The kernel breaks a rule of the IR.
    TargetError
        The device cannot load it.
    """
    # The block form decides everything, passes included, so it is what the key is made of: a kernel that is known goes through
    # nothing else, and was verified when it was not.
    text = print_kernel(kernel)
    key = key_of(text, backend.target.fingerprint, sources_digest(), llvmlite.__version__)
    memory_key = f"{backend.device} {id(backend)} {key}"
    found = _memory.find(memory_key)
    if found is not None:
        statistics.count("from_memory")
        return found
    try:
        with _memory.turn(memory_key):
            found = _memory.find(memory_key)
            if found is not None:
                statistics.count("from_memory")
                return found
            executable = _load_or_build(_Stages(kernel, text, backend.target), backend, key)
            _memory.keep(memory_key, executable)
            return executable
    finally:
        _memory.done(memory_key)


class _Stages:
    """The forms that a kernel takes, each made once, when it is asked for."""

    def __init__(self, kernel: Kernel, text: str, target: Target) -> None:
        self.name = kernel.name
        self.block_text = text
        self._kernel = kernel
        self._target = target
        self._lock = threading.Lock()
        self._distributed: Kernel | None = None

    def distributed(self) -> Kernel:
        """The kernel after all passes."""
        with self._lock:
            if self._distributed is None:
                verify(self._kernel)
                self._distributed = pipeline.run(self._kernel, self._target)
            return self._distributed

    def artifacts(self) -> Artifacts:
        """The texts of all stages."""
        name, target = self.name, self._target
        llvm_text = lru_cache(lambda: emit(self.distributed(), target, EMISSIONS[target.kind]))
        return Artifacts(
            {
                "block": lambda: self.block_text,
                "distributed": lambda: print_kernel(self.distributed()),
                "llvm": llvm_text,
                "optimized": lambda: _optimized(llvm_text(), name, target).text(),
                "ptx" if target.kind == "nvptx" else "assembly": lambda: _optimized(
                    llvm_text(), name, target
                ).assembly(),
            }
        )


def _load_or_build(stages: _Stages, backend: Backend, key: str) -> Executable:
    current = settings.current()
    artifacts = stages.artifacts()
    if current.dump:
        _dump(current, stages.name, artifacts)
    disk = _disk_cache(current.cache_directory, current.cache_bytes) if current.cache else None
    launcher = _load_cached(disk, key, stages, backend) if disk else None
    if launcher is not None:
        statistics.count("from_disk")
        return Executable(stages, backend, launcher, artifacts, from_cache=True)
    name = stages.name
    binary = backend.link(_build(artifacts["llvm"], name, backend.target), name)
    statistics.count("compiled")
    launcher = backend.load(binary, name, stages.distributed)
    if disk:
        disk.store(key, binary)
    return Executable(stages, backend, launcher, artifacts, from_cache=False)


def _load_cached(disk: DiskCache, key: str, stages: _Stages, backend: Backend) -> Launcher | None:
    """The launcher of a binary from the disk; None if there is none, or the device does not take it any more.

    A driver that was replaced by an older one refuses code that the newer one linked.
    """
    binary = disk.load(key)
    if binary is None:
        return None
    try:
        return backend.load(binary, stages.name, stages.distributed)
    except CodegenError:
        return None


@lru_cache(maxsize=8)
def _disk_cache(directory: Path, limit_bytes: int) -> DiskCache:
    return DiskCache(directory, limit_bytes)


def _build(text: str, name: str, target: Target) -> bytes:
    """Object code of the host, or PTX."""
    module = _optimized(text, name, target)
    return module.assembly().encode() if target.kind == "nvptx" else module.object_code()


def _optimized(text: str, name: str, target: Target) -> Module:
    module = Module(text, target, name)
    if settings.current().verify:
        module.verify()
    module.optimize()
    return module


def _dump(current: Settings, name: str, artifacts: Artifacts) -> None:
    """Write the texts that the settings ask for, numbered in the order of compilation."""
    with _memory.lock:
        number = _memory.dumped
        _memory.dumped += 1
    folder = current.dump_directory / f"{number:04d}-{name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for stage, made in zip(settings.STAGES, artifacts, strict=True):
            if stage in current.dump:
                (folder / f"{stage}.txt").write_text(artifacts[made], encoding="utf-8")
    except OSError as error:
        raise type(error)(
            error.errno,
            "BLOCKARRAY_DUMP_DIR: expected a folder that can be written, found one that cannot be "
            f"({error.strerror}): set it to another folder, or unset BLOCKARRAY_DUMP",
            str(folder),
        ) from error
