"""Host time of one launch of a kernel that does nothing: our bound launch beside the calls that it could be made of."""

import ctypes
from collections.abc import Callable

import llvmlite.binding as llvm
import numpy as np
from harness import Report, Work, arguments, compare

from codegen.ir.kernel import Body, IndexParameter, Kernel
from codegen.ir.layout import Layout
from codegen.targets import backend
from codegen.targets.backend import Backend
from codegen.targets.nvptx.backend import NvptxBackend
from codegen.targets.nvptx.driver import driver
from codegen.targets.nvptx.launch import parameter_pointers

SLOTS = 8
LAUNCHES = 500
"""Per call of a candidate: fewer than the driver queues before it makes the host wait."""

_PTX = f"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing({", ".join(f".param .u64 p{slot}" for slot in range(SLOTS))}) .maxntid 128, 1, 1
{{
  ret;
}}
"""
_HOST = "define void @nothing(ptr %slots, i64 %begin, i64 %end) {\n  ret void\n}\n"


def kernel(lanes: int) -> Kernel:
    """What the loader needs to know."""
    parameters = tuple(IndexParameter(f"p{slot}") for slot in range(SLOTS))
    return Kernel("nothing", parameters, (), Body((), ()), Layout((lanes,), (1,)))


def repeated(call: Callable[[], object]) -> Work:
    """`LAUNCHES` calls in a row."""

    def work() -> None:
        for _ in range(LAUNCHES):
            call()

    return work


def gpu_candidates(device: NvptxBackend, slots: np.ndarray) -> dict[str, Work]:
    """The bound launch, cuda-python's call with everything prepared, and ctypes with plain numbers."""
    launcher = device.load(device.link(_PTX.encode(), "nothing"), "nothing", lambda: kernel(128))
    bound = launcher.bind(slots.ctypes.data)
    bindings = driver().bindings
    pointers = parameter_pointers(slots.ctypes.data, SLOTS)
    address = ctypes.addressof(pointers)
    function, stream = launcher.function, bindings.CUstream(device.stream)
    number = ctypes.c_uint
    types = (ctypes.c_void_p, *[number] * 7, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    foreign = ctypes.CFUNCTYPE(ctypes.c_int, *types)(("cuLaunchKernel", ctypes.CDLL("libcuda.so.1")))
    handle, queue = int(function), device.stream  # type: ignore[call-overload]
    handle_argument, queue_argument = ctypes.c_void_p(handle), ctypes.c_void_p(queue)
    one, lanes, none = number(1), number(128), number(0)
    return {
        "bound launch": repeated(lambda: bound(1)),
        "cuda-python": repeated(lambda: bindings.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, address, 0)),
        "cuda-python, handles as numbers": repeated(
            lambda: bindings.cuLaunchKernel(handle, 1, 1, 1, 128, 1, 1, 0, queue, address, 0)
        ),
        "ctypes, prepared arguments": repeated(
            lambda: foreign(handle_argument, one, one, one, lanes, one, one, none, queue_argument, pointers, None)
        ),
        "ctypes, plain numbers": repeated(lambda: foreign(handle, 1, 1, 1, 128, 1, 1, 0, queue, pointers, None)),
    }


def host_candidates(device: Backend, slots: np.ndarray) -> dict[str, Work]:
    """The bound launch on one thread and on all, and the bare foreign call."""
    target = device.target
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, reloc="pic", codemodel="small"
    )
    launcher = device.load(machine.emit_object(llvm.parse_assembly(_HOST)), "nothing", lambda: kernel(1))
    bound = launcher.bind(slots.ctypes.data)
    bare = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        ctypes.cast(launcher._entry, ctypes.c_void_p).value or 0  # type: ignore[attr-defined]
    )
    address = slots.ctypes.data
    return {
        "bound launch": repeated(lambda: bound(4, False)),
        "bound launch, parallel": repeated(lambda: bound(4)),
        "ctypes, plain numbers": repeated(lambda: bare(address, 0, 4)),
    }


def main() -> None:
    """Measure, print, write."""
    options = arguments(__doc__ or "").parse_args()
    device = backend(options.device)
    slots = np.zeros(SLOTS, np.int64)
    candidates = gpu_candidates(device, slots) if isinstance(device, NvptxBackend) else host_candidates(device, slots)
    # One call a sample on a GPU: more launches would fill the driver's queue and be timed as the GPU's work.
    sample_seconds = 1e-9 if isinstance(device, NvptxBackend) else 0.01
    measured = compare(candidates, options.rounds * 3, sample_seconds, before=device.synchronize)
    report = Report("launch_overhead", device)
    for name in candidates:
        timing = measured[name]
        report.add(
            name,
            microseconds=timing.median / LAUNCHES * 1e6,
            spread=timing.spread,
            best_microseconds=timing.best / LAUNCHES * 1e6,
        )
    report.write()


if __name__ == "__main__":
    main()
