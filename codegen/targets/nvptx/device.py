"""One GPU: its context, its stream, its memory."""

from codegen.errors import OutOfMemoryError, TargetError
from codegen.target import Target
from codegen.targets.backend import MemoryInfo
from codegen.targets.nvptx.description import describe_device
from codegen.targets.nvptx.driver import Driver
from codegen.targets.pool import Block, Pool, PooledMemory, readable

CACHED_SHARE = 0.5
"""Share of the GPU's memory that free blocks may hold."""


class DeviceMemory(PooledMemory):
    """Memory of a GPU, 256-byte aligned.

    A block may be reused while a kernel that was queued before still works on it: what uses it next is queued on the
    same stream, behind that kernel.
    """

    __slots__ = ()


class Device:
    """A GPU with its primary context (which other libraries of this process share) and one stream of our own.

    Parameters
    ----------
    driver : Driver
    number : int
        Among the GPUs that this process sees.
    """

    def __init__(self, driver: Driver, number: int) -> None:
        self.driver = driver
        self.number = number
        self.name = f"cuda:{number}"
        count = driver.device_count()
        if number >= count:
            raise TargetError(
                f"device: there is no {self.name}, this process sees {count} GPU{'s' * (count != 1)}; look at "
                "nvidia-smi and CUDA_VISIBLE_DEVICES"
            )
        self._device = driver.call(f"open {self.name}", "cuDeviceGet", number)
        self._context = driver.call(f"open {self.name}", "cuDevicePrimaryCtxRetain", self._device)
        self.activate()
        # A stream that waits for the default stream and is waited for by it: other libraries work there.
        self.stream = driver.integer(f"open {self.name}", "cuStreamCreate", 0)
        self.target = self._describe()
        self.reads_pageable_memory = bool(self.attribute("PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES"))
        self.total_bytes = self.integer("ask for the memory", "cuDeviceTotalMem", self._device)
        self.pool = Pool(self._create_block, self._destroy_block, int(self.total_bytes * CACHED_SHARE))

    def activate(self) -> None:
        """Make this GPU's context the calling thread's current one."""
        self.driver.call(f"use {self.name}", "cuCtxSetCurrent", self._context)

    def call(self, action: str, function: str, *arguments: object) -> object:
        """Call the driver in this GPU's context."""
        self.activate()
        return self.driver.call(f"{self.name}: {action}", function, *arguments)

    def integer(self, action: str, function: str, *arguments: object) -> int:
        """Like `call`, for a function whose result is a number or a handle."""
        self.activate()
        return self.driver.integer(f"{self.name}: {action}", function, *arguments)

    def attribute(self, name: str) -> int:
        """A number that the driver knows of the device, by its name behind ``CU_DEVICE_ATTRIBUTE_``."""
        attribute = getattr(self.driver.bindings.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return self.integer(f"ask for {name}", "cuDeviceGetAttribute", attribute, self._device)

    def card(self) -> str:
        """The card's name, like ``"NVIDIA H200"``."""
        name = self.call("ask for the name", "cuDeviceGetName", 128, self._device)
        assert isinstance(name, bytes)
        return name.split(b"\0")[0].decode()

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Uninitialised memory of `nbytes`."""
        if nbytes < 0:
            raise ValueError(f"allocate: {nbytes} bytes were asked for, expected 0 or more")
        self.driver.require_unforked("allocate")
        try:
            return DeviceMemory(self.pool, nbytes)
        except OutOfMemoryError as error:
            info = self.info()
            raise OutOfMemoryError(
                f"Unable to allocate {readable(nbytes)} on {self.name}: {readable(info.in_use_bytes)} are in use here "
                f"and {readable(info.free_bytes)} of {readable(info.total_bytes)} are free; drop arrays that are not "
                "needed any more, work on smaller pieces, or see with nvidia-smi who else uses the GPU"
            ) from error

    def info(self) -> MemoryInfo:
        """How much memory is used, cached and left."""
        in_use, cached, peak = self.pool.usage()
        answer = self.call("ask for the memory", "cuMemGetInfo")
        assert isinstance(answer, tuple)
        free, total = answer
        return MemoryInfo(in_use, cached, peak, int(free), int(total))

    def synchronize(self) -> None:
        """Wait until the stream is empty."""
        self.call("wait for kernels", "cuStreamSynchronize", self.stream)

    def unload(self, module: object) -> None:
        """Unload a module once no kernel of it can be running."""
        try:
            self.synchronize()
            self.call("unload a kernel", "cuModuleUnload", module)
        except TargetError:
            # Forked, shut down, or broken by a kernel: the module is gone with its context, and whoever works with
            # the GPU next is told why.
            return

    def _create_block(self, size: int) -> Block:
        return Block(self.integer("allocate", "cuMemAlloc", size))

    def _destroy_block(self, block: Block, size: int) -> None:
        # The driver waits for kernels that use the block.
        try:
            self.call("free", "cuMemFree", block.address)
        except TargetError:
            # As in `unload`; blocks come back inside the garbage collector, where nobody could handle it.
            return

    def _describe(self) -> Target:
        return describe_device(
            capability=(self.attribute("COMPUTE_CAPABILITY_MAJOR"), self.attribute("COMPUTE_CAPABILITY_MINOR")),
            multiprocessors=self.attribute("MULTIPROCESSOR_COUNT"),
            shared_bytes=self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            cache_bytes=self.attribute("L2_CACHE_SIZE"),
        )
