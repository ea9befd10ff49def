"""Leaves the program's own lines in the traceback of an uncaught exception.

A traceback is printed by ``sys.excepthook``, the interpreter's or the program's own. `show_program_lines` puts itself
in front of whichever is there, so exit codes, exception groups, chained exceptions and interrupts stay the
interpreter's business.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy

# Frames name their files as the import system found them, links and all: so do these.
_RUNNER_FOLDER = os.path.dirname(__file__)
_ENTRY_FILES = frozenset({"<frozen runpy>", os.path.join(os.path.dirname(_RUNNER_FOLDER), "__main__.py")})
_NUMPY_FOLDERS = (os.path.dirname(numpy.__file__),)

# What NumPy itself raises for a wrong argument. Its own functions are compiled, so its users see their line last;
# ours see theirs too. Any other exception out of the library is a defect of the library, and its lines are what a
# report of that defect needs.
_USER_ERRORS = (ValueError, TypeError, IndexError, ArithmeticError, MemoryError, OSError, Warning, KeyboardInterrupt)


def show_program_lines(library_folders: Sequence[Path], *, full: bool = False) -> None:
    """From now on, print uncaught exceptions without the runner's frames.

    Parameters
    ----------
    library_folders : sequence of Path
        Folders whose frames are hidden at the end of a traceback, if NumPy would raise such an exception from
        compiled code.
    full : bool
        Hide the runner's frames only.
    """
    shown = sys.excepthook
    folders = () if full else tuple(str(folder) for folder in library_folders)

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        trim(error, folders)
        shown(kind, error, error.__traceback__)

    sys.excepthook = excepthook


def trim(error: BaseException, library_folders: Sequence[str] = ()) -> None:
    """Take the runner's frames, and the library's last, out of ``error`` and all exceptions that it is chained to."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = _trimmed(current, library_folders)
        pending += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            pending += current.exceptions


def _trimmed(error: BaseException, library_folders: Sequence[str]) -> TracebackType | None:
    frames: list[TracebackType] = []
    following = error.__traceback__
    while following is not None:
        if not _is_runner(following):
            frames.append(following)
        following = following.tb_next
    if isinstance(error, _USER_ERRORS) and not type(error).__module__.startswith(("blockarray", "codegen")):
        frames = _without_library_end(frames, library_folders)
    for index, frame in enumerate(frames):
        frame.tb_next = frames[index + 1] if index + 1 < len(frames) else None
    return frames[0] if frames else None


def _is_runner(frame: TracebackType) -> bool:
    file = frame.tb_frame.f_code.co_filename
    return file in _ENTRY_FILES or os.path.dirname(file) == _RUNNER_FOLDER


def _without_library_end(frames: list[TracebackType], library_folders: Sequence[str]) -> list[TracebackType]:
    """Cut where the library was last entered; ``frames`` unchanged if it was not, or if nothing would be left."""
    in_library = [_lies_in(frame, library_folders) for frame in frames]
    if not frames or True not in in_library:
        return frames
    # NumPy called by the library counts as the library's end; a callback into the program's own code does not.
    outside = [
        index for index, inside in enumerate(in_library) if not inside and not _lies_in(frames[index], _NUMPY_FOLDERS)
    ]
    last_outside = outside[-1] if outside else -1
    entered = next((index for index in range(last_outside + 1, len(frames)) if in_library[index]), len(frames))
    return frames[:entered] or frames


def _lies_in(frame: TracebackType, folders: Sequence[str]) -> bool:
    file = frame.tb_frame.f_code.co_filename
    return any(Path(file).is_relative_to(folder) for folder in folders)
