"""A GPU as a backend."""

import ctypes
from collections.abc import Callable

import numpy as np

from codegen.errors import TargetError
from codegen.ir.kernel import Kernel
from codegen.targets.backend import Backend, Memory, MemoryInfo, check_host_array, check_range, count_slots
from codegen.targets.nvptx.device import Device, DeviceMemory
from codegen.targets.nvptx.driver import Driver, driver
from codegen.targets.nvptx.launch import DeviceLauncher
from codegen.targets.nvptx.launch_plan import launch_plan
from codegen.targets.nvptx.tensor_maps import map_slots

_LOG_BYTES = 1 << 14
_HOST_MEMORY = 1
"""``CU_MEMORYTYPE_HOST``: page-locked memory, which the GPU reads while the host goes on."""


class NvptxBackend(Backend):
    """One NVIDIA GPU.

    Parameters
    ----------
    number : int
        Among the GPUs that this process sees.
    cuda : Driver, optional
        By default the driver of this process.

    Raises
    ------
    TargetError
        There is no such GPU, or no driver; the message says what to do.
    """

    def __init__(self, number: int = 0, cuda: Driver | None = None) -> None:
        self._driver = driver() if cuda is None else cuda
        self._device = Device(self._driver, number)
        self.device = self._device.name
        self.target = self._device.target

    @property
    def stream(self) -> int:
        """Handle of the stream that all work of this backend is queued on, for other libraries to wait for."""
        return self._device.stream

    def card(self) -> str:
        """The card's name, like ``"NVIDIA H200"``."""
        return self._device.card()

    def driver_version(self) -> str:
        """The newest CUDA version that the driver supports, like ``"13.0"``."""
        return self._driver.version_text()

    def link(self, code: bytes, name: str) -> bytes:
        """Assemble PTX to a cubin with the driver's assembler."""
        bindings, device = self._driver.bindings, self._device
        text = code.rstrip(b"\0") + b"\0"
        log = bytearray(_LOG_BYTES)
        options = [
            bindings.CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
            bindings.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ]
        state = device.call(f"assemble {name}", "cuLinkCreate", len(options), options, [log, len(log)])
        try:
            kind = bindings.CUjitInputType.CU_JIT_INPUT_PTX
            device.call(
                f"assemble {name}", "cuLinkAddData", state, kind, text, len(text), name.encode() + b"\0", 0, [], []
            )
            answer = device.call(f"assemble {name}", "cuLinkComplete", state)
            assert isinstance(answer, tuple)
            address, size = answer
            return ctypes.string_at(int(address), int(size))
        except TargetError as error:
            said = bytes(log).split(b"\0")[0].decode(errors="replace").strip()
            if not said:
                raise
            raise type(error)(f"{error}; the assembler says: {said}") from error
        finally:
            device.call(f"assemble {name}", "cuLinkDestroy", state)

    def load(self, binary: bytes, name: str, kernel: Callable[[], Kernel]) -> DeviceLauncher:
        """Load a cubin (or PTX) and find its entry point."""
        device = self._device
        module = device.call(f"load {name}", "cuModuleLoadData", binary)
        function = device.call(f"load {name}", "cuModuleGetFunction", module, name.encode())
        distributed = kernel()
        plan = launch_plan(distributed, self.target)
        maps = () if plan.ring is None else [map_slots(distributed, one) for one in plan.ring.maps]
        return DeviceLauncher(device, module, function, name, count_slots(distributed), plan, maps)

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Uninitialised memory, 256-byte aligned."""
        return self._device.allocate(nbytes)

    def to_host(self, memory: Memory, offset: int, array: np.ndarray) -> None:
        """Copy bytes of `memory` into `array`, behind all work queued so far."""
        check_host_array("to_host", array, written=True)
        check_range("to_host", memory, offset, array.nbytes)
        if array.nbytes:
            source = memory.address + offset
            stream = self._device.stream
            self._device.call("copy to the host", "cuMemcpyDtoHAsync", _address(array), source, array.nbytes, stream)
            self._device.synchronize()

    def from_host(self, array: np.ndarray, memory: Memory, offset: int) -> None:
        """Copy the bytes of `array` into `memory`, behind all work queued so far."""
        check_host_array("from_host", array, written=False)
        check_range("from_host", memory, offset, array.nbytes)
        if array.nbytes:
            address, stream = _address(array), self._device.stream
            self._device.call(
                "copy from the host", "cuMemcpyHtoDAsync", memory.address + offset, address, array.nbytes, stream
            )
            if self._is_read_later(address):
                self._device.synchronize()

    def copy(self, source: Memory, source_offset: int, target: Memory, target_offset: int, nbytes: int) -> None:
        """Queue a copy between two memories of this GPU."""
        check_range("copy: source", source, source_offset, nbytes)
        check_range("copy: target", target, target_offset, nbytes)
        if nbytes:
            start, end = source.address + source_offset, target.address + target_offset
            self._device.call("copy", "cuMemcpyDtoDAsync", end, start, nbytes, self._device.stream)

    def synchronize(self) -> None:
        """Wait until everything that was queued has run."""
        self._device.synchronize()

    def memory_info(self) -> MemoryInfo:
        """How much memory is used, cached and left."""
        return self._device.info()

    def release_cached(self) -> None:
        """Give free blocks back to the driver."""
        self._device.pool.release_cached()

    def seconds(self, work: Callable[[], None]) -> float:
        """Time between the start and the end of what `work` queues, by the GPU's clock."""
        device, stream = self._device, self._device.stream
        start = device.call("measure", "cuEventCreate", 0)
        end = device.call("measure", "cuEventCreate", 0)
        try:
            device.call("measure", "cuEventRecord", start, stream)
            work()
            device.call("measure", "cuEventRecord", end, stream)
            device.call("measure", "cuEventSynchronize", end)
            milliseconds = device.call("measure", "cuEventElapsedTime", start, end)
            assert isinstance(milliseconds, float)
            return milliseconds / 1000
        finally:
            device.call("measure", "cuEventDestroy", start)
            device.call("measure", "cuEventDestroy", end)

    def _is_read_later(self, address: int) -> bool:
        """Whether a copy from this host memory may still be reading it when the driver has returned.

        From pageable memory the driver takes the bytes before it returns.
        """
        if self._device.reads_pageable_memory:
            return True
        bindings = self._driver.bindings
        attribute = bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        code, kind = bindings.cuPointerGetAttribute(attribute, address)
        return int(code) == 0 and int(kind) == _HOST_MEMORY


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]
