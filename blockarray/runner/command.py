"""The command line of ``python -m blockarray``."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import blockarray
from blockarray.runner.agreement import Tolerance
from blockarray.runner.comparison import compare
from blockarray.runner.program import Program, ProgramNotFoundError
from blockarray.runner.recording import LIBRARY_FOLDERS, Order, program_files
from blockarray.runner.report import report
from blockarray.runner.substitution import ProgramImports
from blockarray.runner.tracebacks import show_program_lines

_NAME = "python -m blockarray"
_EXIT_DISAGREEMENT = 1
_EXIT_INTERRUPTED = 130  # what shells report of a program that SIGINT ended
_EXIT_USAGE = 2  # python's own code for a program that is not there, and argparse's for a wrong option

_DESCRIPTION = """\
Run an unmodified NumPy program on blockarray's fused kernels.

The program's own `import numpy` (and those of the modules beside it) give blockarray; packages that it
uses, such as SciPy or pandas, keep the real NumPy."""

_EPILOGUE = """\
examples:
  python -m blockarray simulate.py --steps 100      run it; options after the program are the program's
  python -m blockarray --compare simulate.py        run it under NumPy too, compare, and print what each cost
  python -m blockarray --explain simulate.py        run it, then print the kernels that ran

--compare reports a difference unless words are equal and numbers a (NumPy's) and b satisfy
|a - b| <= tolerance * max(|a|, |b|) + absolute tolerance, never tighter than rounding in the array's dtype.
A printed number of four or more digits may differ by one unit in its last place. Integers are exact.
Exit code: 1 if the two runs disagree, else the program's own."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (default: this process's own).

    Returns
    -------
    int
        The exit code. A program that is simply run ends this process in its own way: its exceptions pass through.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.ignore is not None and not options.compare:
        parser.error("--ignore is about the lines that --compare compares: add --compare")
    try:
        program = Program.find(options.program, options.arguments)
        for directory in options.also:
            if not Path(directory).is_dir():
                parser.error(f"--also: {directory!r} is not a folder")
    except ProgramNotFoundError as error:
        print(f"{_NAME}: {error}", file=sys.stderr)
        return _EXIT_USAGE
    if options.device is not None:
        _choose_device(parser, options.device)
    if options.compare:
        return _compare(program, options)
    _run(program, options)
    return 0


def _run(program: Program, options: argparse.Namespace) -> None:
    blockarray.kernel_log(options.explain)
    ProgramImports(blockarray, program_files(program, options.also)).install()
    namespace = program.become_main().__dict__
    try:
        exec(program.compile(), namespace)
    except BaseException:
        show_program_lines(LIBRARY_FOLDERS, full=options.full_traceback)
        raise
    finally:
        if options.explain:
            sys.stdout.flush()
            print(f"\n{blockarray.explain_run()}")


def _compare(program: Program, options: argparse.Namespace) -> int:
    tolerance = Tolerance(options.tolerance, options.absolute_tolerance)
    order = Order(
        program.given_path,
        program.arguments,
        substitute=True,
        directories=tuple(options.also),
        explain=options.explain,
        full_traceback=options.full_traceback,
    )
    try:
        comparison = compare(order, tolerance, options.ignore, options.device)
    except KeyboardInterrupt:  # the run that it stopped has got it too
        return _EXIT_INTERRUPTED
    print(report(comparison, program.given_path, tolerance), end="")
    if options.explain and comparison.substituted.explanation:
        print(f"\n{comparison.substituted.explanation}")
    if comparison.differences:
        return _EXIT_DISAGREEMENT
    # A run that a signal ended has a negative code; shells show it as 128 + the signal.
    code = comparison.reference.exit_code
    return code if code >= 0 else 128 - code


def _choose_device(parser: argparse.ArgumentParser, device: str) -> None:
    try:
        blockarray.set_device(device)
    except Exception as error:  # whatever keeps the device from working: its own sentence says what to do
        parser.error(f"--device {device}: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_NAME, description=_DESCRIPTION, epilog=_EPILOGUE, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )  # fmt: skip
    parser.add_argument(
        "--compare", action="store_true", help="run it under NumPy and under blockarray, and compare the two"
    )
    parser.add_argument(
        "--explain", action="store_true", help="print the kernels that ran, after the program's own output"
    )
    parser.add_argument(
        "--device", metavar="DEVICE", help='where to compute: "cpu" or "cuda:0" (default: the GPU if there is one)'
    )
    parser.add_argument(
        "--tolerance", metavar="T", type=_tolerance, default=Tolerance.relative,
        help="relative tolerance of --compare for numbers (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--absolute-tolerance", metavar="T", type=_tolerance, default=Tolerance.absolute,
        help="absolute tolerance of --compare for numbers (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument(
        "--ignore", metavar="REGEX", type=_expression,
        help="lines of output in which REGEX is found are not compared (times, paths, dates)",
    )  # fmt: skip
    parser.add_argument(
        "--also", metavar="FOLDER", action="append", default=[],
        help="modules in FOLDER are the program's own too (beside its own folder; may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--full-traceback",
        action="store_true",
        help="show blockarray's own lines in the traceback of an uncaught exception",
    )
    parser.add_argument("--version", action="version", version=f"blockarray {blockarray.__version__}")
    parser.add_argument("program", metavar="PROGRAM.py", help="the program to run, or a folder with a __main__.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the program")
    return parser


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, found {text!r}")
    return value


def _expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None
