"""Emitted kernels run on both targets: the host's code in this process, PTX on the machine of `ptx_machine`."""

import ctypes

import numpy as np
from ptx_machine import Machine, Memory

from codegen.dtypes import DType
from codegen.ir.kernel import BufferParameter, Kernel, ScalarParameter
from codegen.ir.types import BufferType
from codegen.llvm.emitter import emit
from codegen.llvm.module import Module
from codegen.target import Target
from codegen.targets.cpu.backend import CpuBackend
from codegen.targets.cpu.emission import HostEmission
from codegen.targets.nvptx.description import nvptx_target
from codegen.targets.nvptx.emission import NvptxEmission

Arguments = dict[str, "np.ndarray | int | float | bool"]

HOST = CpuBackend(threads=1)
GPU = nvptx_target("sm_90a")
_GAP = 256


def buffer(
    name: str,
    dtype: DType,
    extents: tuple[str | int, ...],
    strides: tuple[int | None, ...],
    *,
    written: bool = False,
    alignment: int | None = None,
    restrict: bool = True,
) -> BufferParameter:
    """A buffer parameter, aligned to its elements unless stated otherwise."""
    return BufferParameter(
        name, BufferType(dtype, extents, strides, alignment or dtype.itemsize), written=written, restrict=restrict
    )


def ptx_of(kernel: Kernel, target: Target = GPU) -> str:
    """PTX of a kernel."""
    module = Module(emit(kernel, target, NvptxEmission()), target, kernel.name)
    module.verify()
    module.optimize()
    return module.assembly()


def host_module(kernel: Kernel, target: Target | None = None) -> Module:
    """The optimised module of a kernel for the host."""
    chosen = target or HOST.target
    module = Module(emit(kernel, chosen, HostEmission()), chosen, kernel.name)
    module.verify()
    module.optimize()
    return module


def count_programs(kernel: Kernel, arguments: Arguments) -> int:
    """Programs of the grid."""
    total = 1
    for axis in kernel.grid:
        extent = axis.extent if isinstance(axis.extent, int) else int(arguments[axis.extent])
        total *= -(-extent // axis.block)
    return total


def run(kernel: Kernel, arguments: Arguments) -> None:
    """Run a kernel on the target that its layout is for; written arrays change in place."""
    if kernel.layout.lane_count == 1:
        run_on_host(kernel, arguments)
    else:
        run_as_ptx(kernel, arguments)


def run_on_host(kernel: Kernel, arguments: Arguments) -> None:
    """Run the host's code, in two parts, as the thread pool would."""
    binary = HOST.link(host_module(kernel).object_code(), kernel.name)
    launcher = HOST.load(binary, kernel.name, lambda: kernel)
    words: list[bytes] = []
    for parameter in kernel.parameters:
        argument = arguments[parameter.name]
        if isinstance(parameter, BufferParameter):
            words += [address_of(argument).to_bytes(8, "little"), *_strides(parameter, argument)]
        else:
            words.append(_number(parameter, argument))
    slots = ctypes.create_string_buffer(b"".join(words), 8 * len(words) or 8)
    launcher.launch(ctypes.addressof(slots), count_programs(kernel, arguments), parallel=False)


def address_of(array: np.ndarray) -> int:
    """Address of an array's first element."""
    return array.__array_interface__["data"][0]


def run_as_ptx(kernel: Kernel, arguments: Arguments) -> None:
    """Run the PTX of a kernel, with each array in a memory region of its own."""
    text = ptx_of(kernel)
    regions: dict[str, tuple[int, np.ndarray]] = {}
    place = 4096
    for parameter in kernel.parameters:
        if isinstance(parameter, BufferParameter):
            raw, offset = _bytes_of(arguments[parameter.name])
            regions[parameter.name] = (place + offset, raw)
            place += -(-len(raw) // _GAP) * _GAP + _GAP
    memory = Memory(place)
    slots: list[bytes] = []
    for parameter in kernel.parameters:
        argument = arguments[parameter.name]
        if not isinstance(parameter, BufferParameter):
            slots.append(_number(parameter, argument))
            continue
        address, raw = regions[parameter.name]
        start = address - _bytes_of(argument)[1]
        memory.bytes[start : start + len(raw)] = raw
        memory.exists[start : start + len(raw)] = True
        memory.initialized[start : start + len(raw)] = True
        slots += [address.to_bytes(8, "little"), *_strides(parameter, argument)]
    Machine(text).run(slots, memory, count_programs(kernel, arguments))
    for parameter in kernel.parameters:
        if isinstance(parameter, BufferParameter) and parameter.written:
            address, raw = regions[parameter.name]
            start = address - _bytes_of(arguments[parameter.name])[1]
            raw[:] = memory.bytes[start : start + len(raw)]


def _bytes_of(array: np.ndarray) -> tuple[np.ndarray, int]:
    """All bytes that an array spans, as a writable view, and where its first element lies in them."""
    low, high = np.lib.array_utils.byte_bounds(array)
    if array.size == 0:
        return np.zeros(0, np.uint8), 0
    raw = np.ctypeslib.as_array(ctypes.cast(low, ctypes.POINTER(ctypes.c_uint8)), (high - low,))
    return raw, address_of(array) - low


def _strides(parameter: BufferParameter, array: np.ndarray) -> list[bytes]:
    return [
        (array.strides[axis] // array.itemsize).to_bytes(8, "little", signed=True)
        for axis, stride in enumerate(parameter.type.strides)
        if stride is None
    ]


def _number(parameter: object, value: "int | float | bool") -> bytes:
    if isinstance(parameter, ScalarParameter):
        return np.asarray(value).astype(parameter.dtype.numpy).tobytes().ljust(8, b"\0")
    return int(value).to_bytes(8, "little", signed=True)
