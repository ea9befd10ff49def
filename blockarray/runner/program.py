"""One program: its file, its arguments, and running it as ``__main__`` the way ``python PROGRAM.py`` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class ProgramNotFoundError(Exception):
    """There is no program to run at the given place; the message is the whole explanation."""


@dataclass(frozen=True)
class Program:
    """A Python program and what it was started with.

    Attributes
    ----------
    given_path : str
        The path as the user wrote it: the program's ``sys.argv[0]``.
    file : Path
        Absolute path of the file to run.
    arguments : tuple of str
        ``sys.argv[1:]`` of the program.
    """

    given_path: str
    file: Path
    arguments: tuple[str, ...] = ()

    @classmethod
    def find(cls, path: str, arguments: Sequence[str] = ()) -> Program:
        """The program at ``path``: a file, or a folder that holds a ``__main__.py``.

        Raises
        ------
        ProgramNotFoundError
            There is none, or it cannot be read.
        """
        file = Path(os.path.abspath(path))
        if file.is_dir():
            file = file / "__main__.py"
            if not file.is_file():
                raise ProgramNotFoundError(f"can't find '__main__.py' in {str(file.parent)!r}")
        try:
            with file.open("rb"):
                pass
        except OSError as error:
            raise ProgramNotFoundError(
                f"can't open file {str(file)!r}: [Errno {error.errno}] {error.strerror}"
            ) from None
        return cls(path, file, tuple(arguments))

    @property
    def directory(self) -> Path:
        """The folder whose modules the program imports as its own: where its file really lies, links followed."""
        return self.file.resolve().parent

    def compile(self) -> CodeType:
        """The program's code.

        Raises
        ------
        SyntaxError
            It is not Python.
        """
        source = self.file.read_bytes()
        try:
            return compile(source, str(self.file), "exec", dont_inherit=True)
        except ValueError as error:  # Python 3.11 says so of a file with null bytes
            line = source[: source.index(0)].count(b"\n") + 1
            raise SyntaxError(str(error), (str(self.file), line, None, None)) from None

    def become_main(self) -> ModuleType:
        """Make this process the program's: ``__main__``, ``sys.argv`` and the first entry of ``sys.path``.

        Returns
        -------
        module
            The new ``__main__``, still empty.
        """
        main = ModuleType("__main__")
        namespace = main.__dict__
        namespace["__file__"] = str(self.file)
        namespace["__loader__"] = SourceFileLoader("__main__", str(self.file))
        namespace["__builtins__"] = sys.modules["builtins"]
        namespace["__annotations__"] = {}
        namespace["__cached__"] = None
        sys.modules["__main__"] = main
        sys.argv[:] = [self.given_path, *self.arguments]
        # `python -m` put the current folder there, where `python PROGRAM.py` has the program's; neither does in safe
        # mode.
        if not sys.flags.safe_path and sys.path:
            sys.path[0] = str(self.directory)
        return main
