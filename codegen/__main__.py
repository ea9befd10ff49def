"""``python -m codegen show|run|opt FILE.ir``: look at a kernel's stages, run it, or watch the passes, from its text.

::

    python -m codegen show softmax.ir --stage assembly
    python -m codegen run softmax.ir --set rows=3 --set x=measured.npy
    python -m codegen opt softmax.ir --pass canonicalize --pass merge_duplicates
"""

import argparse
import ctypes
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from codegen.compiler import compile_kernel
from codegen.errors import CodegenError, KernelError
from codegen.ir.interpreter import interpret, program_counts
from codegen.ir.kernel import BufferParameter, Kernel, ScalarParameter
from codegen.ir.layout import Layout
from codegen.ir.parser import parse
from codegen.ir.printer import print_kernel
from codegen.ir.sample_arguments import Sample, sample_arguments
from codegen.passes import pipeline
from codegen.targets import backend

# Interpreter and host fold in different orders; a few hundred additions differ by no more than that.
_TOLERANCES = {"float16": 2e-2, "bfloat16": 2e-1, "float32": 1e-4, "float64": 1e-10}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 1 if the kernel is wrong or its results differ, 2 for a wrong command line."""
    options = _options().parse_args(arguments)
    try:
        kernel = parse(options.file.read_text(encoding="utf-8"))
        return int(options.command(kernel, options))
    except (CodegenError, OSError) as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 1


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m codegen", description="Work on a kernel from its text form.")
    commands = parser.add_subparsers(required=True)
    show = commands.add_parser("show", help="print the text of a stage")
    show.add_argument("--stage", default="block", choices=("block", "distributed", "llvm", "optimized", "assembly"))
    show.set_defaults(command=_show)
    run = commands.add_parser("run", help="run the kernel through interpreter and host, and compare")
    run.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a number or a .npy file")
    run.add_argument("--seed", type=int, default=0, help="of the random arguments that are not set")
    run.set_defaults(command=_run)
    opt = commands.add_parser("opt", help="print the kernel after each pass that changes it")
    known = [row.name for row in pipeline.PASSES]
    opt.add_argument("--pass", dest="passes", action="append", choices=known, metavar="NAME", help=", ".join(known))
    opt.set_defaults(command=_opt)
    for command in (show, run, opt):
        command.add_argument("file", type=Path, metavar="FILE.ir")
    return parser


def _show(kernel: Kernel, options: argparse.Namespace) -> int:
    if options.stage == "block":
        print(print_kernel(kernel), end="")
    else:
        print(compile_kernel(_for_host(kernel), backend("cpu")).artifacts[options.stage], end="")
    return 0


def _opt(kernel: Kernel, options: argparse.Namespace) -> int:
    target = backend("cpu").target
    for row in pipeline.PASSES:
        if options.passes and row.name not in options.passes:
            continue
        after = row.run(kernel, target)
        if after is kernel:
            print(f"# {row.name}: nothing to do")
            continue
        kernel = after
        print(f"# {row.name}:\n{print_kernel(kernel)}", end="")
    return 0


def _run(kernel: Kernel, options: argparse.Namespace) -> int:
    given = dict(_setting(text) for text in options.set)
    expected = sample_arguments(kernel, given, options.seed)
    found = sample_arguments(kernel, given, options.seed)
    interpret(kernel, expected)
    run_on_host(kernel, found)
    differing = 0
    for parameter in kernel.parameters:
        if isinstance(parameter, BufferParameter) and parameter.written:
            differing += not _report(parameter, np.asarray(expected[parameter.name]), np.asarray(found[parameter.name]))
    return 1 if differing else 0


def _setting(text: str) -> tuple[str, Sample]:
    name, _, value = text.partition("=")
    if value in ("true", "false"):
        return name, value == "true"
    if value.endswith(".npy"):
        return name, np.load(value)
    for read in (int, float):
        try:
            return name, read(value)
        except ValueError:
            continue
    raise KernelError(f"--set {text}: expected NAME=VALUE with a number, true, false or a .npy file")


def _for_host(kernel: Kernel) -> Kernel:
    """The kernel with a layout of the host, if it has one of a GPU."""
    if kernel.layout.lane_count == 1:
        return kernel
    rank = kernel.layout.rank
    register = backend("cpu").target.register_bits // 32
    return replace(kernel, layout=Layout((1,) * rank, (1,) * rank, register))


def run_on_host(kernel: Kernel, arguments: dict[str, Sample]) -> None:
    """Compile a kernel for the host and run all programs; written arrays change in place."""
    executable = compile_kernel(_for_host(kernel), backend("cpu"))
    slots: list[int] = []
    for parameter in kernel.parameters:
        argument = arguments[parameter.name]
        if isinstance(parameter, BufferParameter):
            array = np.asarray(argument)
            slots.append(array.__array_interface__["data"][0])
            pairs = zip(array.strides, parameter.type.strides, strict=True)
            slots += [stride // array.itemsize for stride, known in pairs if known is None]
        elif isinstance(parameter, ScalarParameter):
            slots.append(int.from_bytes(np.array(argument, parameter.dtype.numpy).tobytes(), "little"))
        else:
            slots.append(int(argument))
    memory = (ctypes.c_uint64 * max(1, len(slots)))(*(slot % 2**64 for slot in slots))
    executable.launch(ctypes.addressof(memory), int(np.prod(program_counts(kernel, arguments), dtype=np.int64)))


def _report(parameter: BufferParameter, expected: np.ndarray, found: np.ndarray) -> bool:
    """Print a line about a result; whether interpreter and host agree."""
    tolerance = _TOLERANCES.get(parameter.type.dtype.name)
    if tolerance is None:
        same = bool(np.array_equal(expected, found))
    else:
        expected, found = expected.astype(np.float64), found.astype(np.float64)
        same = bool(np.allclose(expected, found, tolerance, tolerance, equal_nan=True))
    verdict = "interpreter and host agree" if same else "INTERPRETER AND HOST DIFFER"
    print(f"{parameter.name}: {parameter.type.dtype}{list(expected.shape)} {verdict}")
    print(np.array2string(expected, threshold=12, edgeitems=2))
    if not same:
        print(f"host:\n{np.array2string(found, threshold=12, edgeitems=2)}")
    return same


if __name__ == "__main__":
    sys.exit(main())
