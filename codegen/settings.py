"""Settings: every environment variable that the project reads, typed, with one way to change them for a while."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

STAGES = ("block", "distributed", "llvm", "optimized", "assembly")
"""Texts of a kernel that BLOCKARRAY_DUMP can name, in the order in which they arise."""


@dataclass(frozen=True)
class Settings:
    """The settings in force.

    Attributes
    ----------
    cache : bool
        Keep compiled kernels on disk.
    cache_directory : Path
        Where they are kept.
    cache_bytes : int
        Size beyond which the oldest kernels are deleted.
    dump : tuple of str
        Stages whose text is written for each compiled kernel; see `STAGES`.
    dump_directory : Path
        Where the texts go.
    verify : bool
        Check the kernel after every pass and LLVM's module before it is used.
    threads : int or None
        Threads that run host kernels; None: one for each usable core.
    device : str or None
        Default device, such as ``"cpu"`` or ``"cuda:0"``; None: a GPU if there is one.
    """

    cache: bool
    cache_directory: Path
    cache_bytes: int
    dump: tuple[str, ...]
    dump_directory: Path
    verify: bool
    threads: int | None
    device: str | None


@dataclass(frozen=True)
class Variable:
    """One environment variable: what it is called, how its text is read, and what it does."""

    name: str
    field: str
    read: Callable[[str], object]
    default: Callable[[], object]
    meaning: str


def _switch(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError("expected 0 or 1")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("expected a number from 1 on")
    return int(text)


def _stages(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in (*STAGES, "all")]
    if unknown:
        raise ValueError(f"no stage is called {unknown[0]!r}; stages: all, {', '.join(STAGES)}")
    return STAGES if "all" in names else names


def _directory(text: str) -> Path:
    return Path(text).expanduser()


def _default_cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "blockarray"


VARIABLES = (
    Variable("BLOCKARRAY_CACHE", "cache", _switch, lambda: True, "0: keep no compiled kernels on disk"),
    Variable(
        "BLOCKARRAY_CACHE_DIR",
        "cache_directory",
        _directory,
        _default_cache_directory,
        "where compiled kernels are kept; by default $XDG_CACHE_HOME/blockarray or ~/.cache/blockarray",
    ),
    Variable(
        "BLOCKARRAY_CACHE_BYTES",
        "cache_bytes",
        _positive,
        lambda: 1 << 30,
        "size of the kernel cache beyond which the oldest entries are deleted; by default 1 GiB",
    ),
    Variable(
        "BLOCKARRAY_DUMP",
        "dump",
        _stages,
        lambda: (),
        f"stages whose text is written for each kernel: all, or some of {', '.join(STAGES)}",
    ),
    Variable(
        "BLOCKARRAY_DUMP_DIR",
        "dump_directory",
        _directory,
        lambda: Path("blockarray-dump"),
        "where BLOCKARRAY_DUMP writes; by default ./blockarray-dump",
    ),
    Variable("BLOCKARRAY_VERIFY", "verify", _switch, lambda: False, "1: check kernels after every pass"),
    Variable(
        "BLOCKARRAY_THREADS",
        "threads",
        _positive,
        lambda: None,
        "threads that run host kernels; by default one for each usable core",
    ),
    Variable(
        "BLOCKARRAY_DEVICE",
        "device",
        str.strip,
        lambda: None,
        "default device, such as cpu or cuda:0; by default a GPU if there is one",
    ),
)
_OVERRIDE: ContextVar[Settings | None] = ContextVar("blockarray_settings", default=None)


def current() -> Settings:
    """The settings in force here: of the innermost `override`, else of the environment."""
    overridden = _OVERRIDE.get()
    if overridden is not None:
        return overridden
    environment = os.environ
    texts = tuple(environment.get(variable.name) for variable in VARIABLES)
    return _read(texts, environment.get("XDG_CACHE_HOME"), environment.get("HOME"))


@lru_cache(maxsize=8)
def _read(texts: tuple[str | None, ...], _cache_home: str | None, _home: str | None) -> Settings:
    """Settings from the variables' texts; the homes are arguments because defaults depend on them."""
    values: dict[str, object] = {}
    for variable, text in zip(VARIABLES, texts, strict=True):
        values[variable.field] = variable.default() if not text else _value(variable, text)
    return Settings(**values)  # type: ignore[arg-type]


def _value(variable: Variable, text: str) -> object:
    try:
        return variable.read(text)
    except ValueError as error:
        raise ValueError(
            f"environment variable {variable.name}={text!r}: {error}; it means: {variable.meaning}"
        ) from None


@contextmanager
def override(**changes: object) -> Iterator[Settings]:
    """Other settings inside a ``with`` block, for this thread or task.

    Examples
    --------
    >>> with override(verify=True):
    ...     current().verify
    True
    """
    known = {field.name for field in fields(Settings)}
    for name in changes:
        if name not in known:
            raise TypeError(f"there is no setting {name!r}; settings: {', '.join(sorted(known))}")
    changed = replace(current(), **changes)  # type: ignore[arg-type]
    token = _OVERRIDE.set(changed)
    try:
        yield changed
    finally:
        _OVERRIDE.reset(token)
