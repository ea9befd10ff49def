"""Runs a program in this process and records what it left: ``python -m blockarray.runner.recording FOLDER``.

One half of a comparison. The folder holds ``order.json`` (an `Order`); the run adds ``record.json`` (a `Record`),
``values.pickle`` and, if asked for, ``explanation.txt``. What the program prints goes where this process's output
goes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import blockarray
import codegen
from blockarray.runner import values
from blockarray.runner.program import Program
from blockarray.runner.substitution import ProgramFiles, ProgramImports
from blockarray.runner.tracebacks import show_program_lines

LIBRARY_FOLDERS = tuple(Path(folder) for package in (blockarray, codegen) for folder in package.__path__)


@dataclass(frozen=True)
class Order:
    """What to run, and how.

    Attributes
    ----------
    path : str
        The program, as the user named it.
    arguments : tuple of str
        The program's arguments.
    substitute : bool
        Whether ``numpy`` is replaced.
    directories : tuple of str
        Folders of the program's own modules, beside its own folder.
    explain : bool
        Whether to write down the kernels.
    full_traceback : bool
        Whether to show the library's lines in the traceback of an uncaught exception.
    """

    path: str
    arguments: tuple[str, ...]
    substitute: bool
    directories: tuple[str, ...] = ()
    explain: bool = False
    full_traceback: bool = False


@dataclass(frozen=True)
class Record:
    """What one run left.

    Attributes
    ----------
    seconds : float
        From the program's first line to its last, waiting for pending work included, the start of Python and of the
        library not.
    error : str or None
        Type and message of the exception that ended it, as the last line of a traceback shows them.
    offsets : dict
        Path of each value that it left, and where ``values.pickle`` has it.
    statistics : dict
        The library's counters, empty without the substitute.
    """

    seconds: float
    error: str | None = None
    offsets: dict[str, int] = field(default_factory=dict)
    statistics: dict[str, int] = field(default_factory=dict)


STATISTICS = (
    "kernels",
    "bytes_read",
    "bytes_written",
    "temporaries_avoided",
    "temporary_bytes_avoided",
    "compiled",
    "plans",
)


def program_files(program: Program, directories: Sequence[str]) -> ProgramFiles:
    """The files that count as ``program``'s own."""
    return ProgramFiles([program.directory, *map(Path, directories)], LIBRARY_FOLDERS)


def run_and_record(order: Order, folder: Path) -> None:
    """Run ``order``'s program and write its record into ``folder``; ends as the program ends."""
    program = Program.find(order.path, order.arguments)
    files = program_files(program, order.directories)
    started_in = os.getpid()
    if order.substitute:
        blockarray.kernel_log(order.explain)
        ProgramImports(blockarray, files).install()
    namespace = program.become_main().__dict__
    error: BaseException | None = None
    begin = time.perf_counter()
    try:
        exec(program.compile(), namespace)
        if order.substitute:
            blockarray.synchronize()
    except BaseException as raised:
        error = raised
        show_program_lines(LIBRARY_FOLDERS, full=order.full_traceback)
        raise
    finally:
        seconds = time.perf_counter() - begin
        if os.getpid() == started_in:  # a child that the program forked comes by here too
            _write(order, folder, files, namespace, seconds, error)


def _write(
    order: Order,
    folder: Path,
    files: ProgramFiles,
    namespace: dict[str, object],
    seconds: float,
    error: BaseException | None,
) -> None:
    statistics: dict[str, int] = {}
    if order.substitute:  # taken before the values are read: reading computes what the program itself never looked at
        counted = blockarray.statistics_of_run()
        statistics = {name: int(getattr(counted, name)) for name in STATISTICS}
        if order.explain:
            (folder / "explanation.txt").write_text(str(blockarray.explain_run()), encoding="utf-8")
    own_modules = frozenset(
        name
        for name, module in list(sys.modules.items())
        if files.own(str(getattr(module, "__file__", None) or os.devnull))
    )
    offsets = values.store(values.collect(namespace, blockarray.ndarray, own_modules), folder / "values.pickle")
    ending = None if error is None or isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
    record = Record(seconds, ending, offsets, statistics)
    # Published by its name appearing: a record that is there is whole.
    unfinished = folder / "record.unfinished"
    unfinished.write_text(json.dumps(asdict(record)), encoding="utf-8")
    unfinished.replace(folder / "record.json")


def write_order(order: Order, folder: Path) -> None:
    """Leave ``order`` in ``folder`` for the process that carries it out."""
    (folder / "order.json").write_text(json.dumps(asdict(order)), encoding="utf-8")


def read_order(folder: Path) -> Order:
    """The order in ``folder``."""
    content = json.loads((folder / "order.json").read_text(encoding="utf-8"))
    content["arguments"] = tuple(content["arguments"])
    content["directories"] = tuple(content["directories"])
    return Order(**content)


def read_record(folder: Path) -> Record | None:
    """The record in ``folder``; None if the run left none."""
    file = folder / "record.json"
    return Record(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


if __name__ == "__main__":
    order_folder = Path(sys.argv[1])
    run_and_record(read_order(order_folder), order_folder)
