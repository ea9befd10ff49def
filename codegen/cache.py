"""Compiled kernels on disk: one checked file each, published atomically, bounded in size."""

import hashlib
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

_MAGIC = b"blockarray kernel 1\n"
_CHECKSUM_BYTES = 32
_SUFFIX = ".kernel"
_STORES_BETWEEN_SWEEPS = 64
_SECONDS_BETWEEN_TOUCHES = 86_400
_SOURCES = ("analysis", "dtypes.py", "ir", "llvm", "passes", "scalar", "targets")


@cache
def sources_digest() -> str:
    """Digest of every source that can change the code of a kernel whose text is the same."""
    digest = hashlib.sha256()
    root = resources.files("codegen")
    for name in _SOURCES:
        for path, entry in _python_files(root / name, name):
            digest.update(path.encode() + b"\0" + entry.read_bytes() + b"\0")
    return digest.hexdigest()


def _python_files(entry: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    if entry.is_file():
        if path.endswith(".py"):
            yield path, entry
        return
    for child in sorted(entry.iterdir(), key=lambda child: child.name):
        yield from _python_files(child, f"{path}/{child.name}")


def key_of(*parts: str) -> str:
    """Name of an entry: a digest of everything that its content depends on."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


@dataclass
class _Warned:
    """Whether this process has already said that the cache does not work."""

    done: bool = False


_warned = _Warned()


class DiskCache:
    """Binaries by key in a directory, which may be missing, read-only, shared between processes or damaged.

    Parameters
    ----------
    directory : Path
    limit_bytes : int
        When the files take more, the oldest are deleted.
    """

    def __init__(self, directory: Path, limit_bytes: int) -> None:
        self._directory = directory
        self._limit_bytes = limit_bytes
        self._stores = 0

    def load(self, key: str) -> bytes | None:
        """The binary, or None if there is none or its file is damaged."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                content = file.read()
                age = time.time() - os.fstat(file.fileno()).st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            _warn(f"kernel cache: cannot read {path}: {error}; the kernel is compiled again")
            return None
        binary = _unpack(content)
        if binary is None:
            _warn(f"kernel cache: {path} is damaged; the kernel is compiled again and the file replaced")
            return None
        if age > _SECONDS_BETWEEN_TOUCHES:
            _touch(path)
        return binary

    def store(self, key: str, binary: bytes) -> None:
        """Keep a binary. What goes wrong costs a warning, once, and nothing else."""
        path = self._path(key)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _publish(path, _pack(binary))
            if self._stores % _STORES_BETWEEN_SWEEPS == 0:
                self._sweep()
        except OSError as error:
            _warn(
                f"kernel cache: cannot write to {self._directory}: {error}; kernels are compiled again in every "
                "process. Set BLOCKARRAY_CACHE_DIR to a writable directory, or BLOCKARRAY_CACHE=0"
            )
        self._stores += 1

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / (key + _SUFFIX)

    def _sweep(self) -> None:
        """Delete the oldest entries, down to three quarters of the limit, once the limit is passed."""
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        if total <= self._limit_bytes:
            return
        for _, size, path in entries:
            if total <= self._limit_bytes * 3 // 4:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        for path in self._directory.glob(f"*/*{_SUFFIX}"):
            try:
                status = path.stat()
            except FileNotFoundError:  # another process has swept
                continue
            yield status.st_mtime, status.st_size, path


def _pack(binary: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(binary).digest() + binary


def _unpack(content: bytes) -> bytes | None:
    """The binary of a file's content; None if it is not what was written."""
    start = len(_MAGIC) + _CHECKSUM_BYTES
    if len(content) < start or not content.startswith(_MAGIC):
        return None
    binary = content[start:]
    return binary if hashlib.sha256(binary).digest() == content[len(_MAGIC) : start] else None


def _publish(path: Path, content: bytes) -> None:
    """Write a file that others see whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:  # a read-only cache keeps its order
        return


def _warn(message: str) -> None:
    if _warned.done:
        return
    _warned.done = True
    warnings.warn(message, RuntimeWarning, stacklevel=2)
