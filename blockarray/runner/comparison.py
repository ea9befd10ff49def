"""``--compare``: one program, run under NumPy and under ``blockarray`` in processes of their own; what differs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from blockarray.runner import values
from blockarray.runner.agreement import Difference, Tolerance, compare_outputs, compare_values
from blockarray.runner.recording import Order, Record, read_record, write_order


@dataclass(frozen=True)
class Run:
    """One finished run.

    Attributes
    ----------
    folder : Path
        Where its files are.
    exit_code : int
        Of the process; negative if a signal ended it.
    record : Record or None
        None if the process ended before it could write one.
    """

    folder: Path
    exit_code: int
    record: Record | None

    @property
    def output(self) -> str:
        """All that the program printed."""
        return (self.folder / "output.txt").read_text(encoding="utf-8", errors="replace")

    @property
    def error_output(self) -> str:
        """All that it wrote to its standard error."""
        return (self.folder / "errors.txt").read_text(encoding="utf-8", errors="replace")

    @property
    def explanation(self) -> str:
        """The kernels that ran, if they were asked for and the run came to its end."""
        file = self.folder / "explanation.txt"
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def ending(self) -> str:
        """How it ended, in words."""
        if self.record is not None and self.record.error is not None:
            return self.record.error
        if self.exit_code < 0:
            return f"ended by signal {-self.exit_code}"
        return f"exit code {self.exit_code}"


@dataclass(frozen=True)
class Comparison:
    """Two runs of one program, and where they differ.

    Attributes
    ----------
    reference, substituted : Run
        Under NumPy, and under ``blockarray``.
    differences : tuple of Difference
        Empty if they agree.
    values_compared : int
        How many arrays, numbers and texts of the globals were compared.
    lines_compared : int
        How many lines of output.
    repeatable : bool
        Whether NumPy agrees with NumPy; only found out, by a second run, if there are differences.
    """

    reference: Run
    substituted: Run
    differences: tuple[Difference, ...]
    values_compared: int
    lines_compared: int
    repeatable: bool = True


class _SharedInput:
    """Standard input for several processes, one after another: each gets all that has arrived, from the beginning."""

    def __init__(self, source: BinaryIO | None) -> None:
        self._seen = bytearray()
        self._ended = source is None
        self._arrived = threading.Condition()
        if source is not None:
            # A daemon, since it may wait for ever for input that no run asks for.
            threading.Thread(target=self._read, args=(source,), daemon=True).start()

    def _read(self, source: BinaryIO) -> None:
        while True:
            try:
                part = os.read(source.fileno(), 1 << 16)
            except (OSError, ValueError):
                part = b""
            with self._arrived:
                self._seen += part
                self._ended = not part
                self._arrived.notify_all()
                if self._ended:
                    return

    def feed(self, process: subprocess.Popen[bytes]) -> None:
        """Hand the input on to ``process`` until it ends."""
        threading.Thread(target=self._feed, args=(process,), daemon=True).start()

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        stream = process.stdin
        if stream is None:
            return
        given = 0
        try:
            while process.poll() is None:
                with self._arrived:
                    if given == len(self._seen) and not self._ended:
                        self._arrived.wait(timeout=0.1)
                    part, ended = bytes(self._seen[given:]), self._ended
                stream.write(part)
                stream.flush()
                given += len(part)
                if ended:
                    break
        except (BrokenPipeError, ValueError):
            pass  # the program does not read, or has ended: no concern of ours
        finally:
            try:
                stream.close()
            except BrokenPipeError:
                pass


def compare(
    order: Order, tolerance: Tolerance, ignore: re.Pattern[str] | None = None, device: str | None = None
) -> Comparison:
    """Run ``order``'s program both ways and compare what it printed and what it left.

    Parameters
    ----------
    order : Order
        What to run; its ``substitute`` is set for each run.
    tolerance : Tolerance
        For numbers, printed or left.
    ignore : compiled regular expression, optional
        Lines of output that are not compared.
    device : str, optional
        Where ``blockarray`` computes.

    Returns
    -------
    Comparison
        The files of its runs are gone when this process ends.
    """
    given = _SharedInput(None if sys.stdin is None or sys.stdin.closed else _binary(sys.stdin))
    reference = _run(replace(order, substitute=False, explain=False), given, None)
    substituted = _run(replace(order, substitute=True), given, device)
    differences, count = _differences(reference, substituted, tolerance, ignore)
    repeatable = True
    if differences:
        again = _run(replace(order, substitute=False, explain=False), given, None)
        repeatable = not _differences(reference, again, tolerance, ignore)[0]
    lines = len(reference.output.splitlines())
    return Comparison(reference, substituted, tuple(differences), count, lines, repeatable)


def _binary(stream: object) -> BinaryIO | None:
    buffer = getattr(stream, "buffer", None)
    try:
        return buffer if buffer is not None and buffer.fileno() >= 0 else None
    except (OSError, ValueError):
        return None


_folders: list[tempfile.TemporaryDirectory[str]] = []  # each is removed when this process ends


def _run(order: Order, given: _SharedInput, device: str | None) -> Run:
    holder = tempfile.TemporaryDirectory(prefix="blockarray-compare-")
    _folders.append(holder)
    folder = Path(holder.name)
    write_order(order, folder)
    # Sets and dictionaries of texts are to be walked in one order both times; the two programs print in one encoding.
    environment = {"PYTHONHASHSEED": "0", **os.environ, "PYTHONIOENCODING": "utf-8"}
    if device is not None:
        environment["BLOCKARRAY_DEVICE"] = device
    command = [sys.executable, "-m", "blockarray.runner.recording", str(folder)]
    with (folder / "output.txt").open("wb") as output, (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=errors, env=environment)
        given.feed(process)
        try:
            exit_code = process.wait()
        except BaseException:  # an interrupt may have reached this process alone
            process.kill()
            raise
    return Run(folder, exit_code, read_record(folder))


def _differences(
    first: Run, second: Run, tolerance: Tolerance, ignore: re.Pattern[str] | None
) -> tuple[list[Difference], int]:
    differences = compare_outputs(first.output, second.output, tolerance, ignore)
    differences += _ending_differences(first, second, tolerance)
    if first.record is None or second.record is None:
        return differences, 0
    names = dict.fromkeys([*first.record.offsets, *second.record.offsets])
    for name in names:
        difference = _value_difference(name, first, second, tolerance)
        if difference is not None:
            differences.append(difference)
    return differences, len(names)


def _ending_differences(first: Run, second: Run, tolerance: Tolerance) -> list[Difference]:
    same_error = not compare_outputs(first.ending(), second.ending(), tolerance)
    if first.exit_code == second.exit_code and same_error:
        return []
    return [Difference("end of the program", first.ending(), second.ending())]


def _value_difference(name: str, first: Run, second: Run, tolerance: Tolerance) -> Difference | None:
    offsets = [run.record.offsets.get(name) if run.record is not None else None for run in (first, second)]
    if offsets[0] is None or offsets[1] is None:
        here = ["left a value" if offset is not None else "left no such value" for offset in offsets]
        return Difference(name, here[0], here[1])
    one = values.load(first.folder / "values.pickle", offsets[0])
    other = values.load(second.folder / "values.pickle", offsets[1])
    return compare_values(name, one, other, tolerance)
