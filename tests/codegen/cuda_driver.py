"""A stand-in for cuda-python's driver module: enough of it to run the backend on a machine without a GPU."""

import ctypes
from enum import IntEnum
from types import SimpleNamespace


class CUresult(IntEnum):
    """The result codes that tests use."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_UNKNOWN = 999


OK = (CUresult.CUDA_SUCCESS,)


class FakeDriver:
    """A driver with one GPU whose memory is host memory; `fail` makes a function return a code.

    Attributes
    ----------
    fail : dict
        Function name to result code.
    log : list of str
        Functions called, in order.
    launches : list of tuple
        Grid, lanes and the first bytes of each parameter, one entry for each launch.
    """

    CUresult = CUresult
    CUjit_option = SimpleNamespace(CU_JIT_ERROR_LOG_BUFFER="log", CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES="log size")
    CUjitInputType = SimpleNamespace(CU_JIT_INPUT_PTX="ptx")
    CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_MEMORY_TYPE="memory type")

    def __init__(self, capacity: int = 1 << 20, devices: int = 1, capability: tuple[int, int] = (9, 0)) -> None:
        self.fail: dict[str, int] = {}
        self.log: list[str] = []
        self.launches: list[tuple] = []
        self.launch_codes: list[int] = []
        self.parameters = 0
        self.capacity = capacity
        self.devices = devices
        self.capability = capability
        self.live: dict[int, ctypes.Array] = {}
        self.cubin = ctypes.create_string_buffer(b"cubin")
        self.assembler_says = b""
        self.page_locked: set[int] = set()
        self.CUdevice_attribute = SimpleNamespace(
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=capability[0],
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=capability[1],
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT=132,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=232448,
            CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE=60 << 20,
            CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES=0,
        )

    def __getattribute__(self, name: str) -> object:
        found = object.__getattribute__(self, name)
        if not name.startswith("cu") or name == "cubin":
            return found
        self.log.append(name)
        code = self.fail.get(name)
        return found if code is None else lambda *arguments: (CUresult(code), None)

    def cuInit(self, flags):
        return OK

    def cuDriverGetVersion(self):
        return *OK, 12040

    def cuGetErrorName(self, code):
        return *OK, code.name.encode()

    def cuGetErrorString(self, code):
        return *OK, b"text of the driver"

    def cuDeviceGetCount(self):
        return *OK, self.devices

    def cuDeviceGet(self, number):
        return *OK, number

    def cuDeviceGetName(self, length, device):
        return *OK, b"Fake H200\0\0"

    def cuDevicePrimaryCtxRetain(self, device):
        return *OK, 77

    def cuCtxSetCurrent(self, context):
        assert context == 77
        return OK

    def cuStreamCreate(self, flags):
        return *OK, 5

    def cuStreamSynchronize(self, stream):
        assert stream == 5
        return OK

    def cuDeviceGetAttribute(self, attribute, device):
        return *OK, attribute

    def cuDeviceTotalMem(self, device):
        return *OK, self.capacity

    def cuMemGetInfo(self):
        return *OK, self.capacity - self._used(), self.capacity

    def cuMemAlloc(self, size):
        if self._used() + size > self.capacity:
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY, None
        block = (ctypes.c_uint8 * size)()
        self.live[ctypes.addressof(block)] = block
        return *OK, ctypes.addressof(block)

    def cuMemFree(self, address):
        del self.live[address]
        return OK

    def cuMemcpyHtoDAsync(self, target, source, nbytes, stream):
        ctypes.memmove(target, source, nbytes)
        return OK

    def cuMemcpyDtoHAsync(self, target, source, nbytes, stream):
        ctypes.memmove(target, source, nbytes)
        return OK

    def cuMemcpyDtoDAsync(self, target, source, nbytes, stream):
        ctypes.memmove(target, source, nbytes)
        return OK

    def cuPointerGetAttribute(self, attribute, address):
        if address in self.page_locked:
            return *OK, 1
        return CUresult.CUDA_ERROR_INVALID_VALUE, 0

    def cuLinkCreate(self, count, options, values):
        values[0][: len(self.assembler_says)] = self.assembler_says
        return *OK, 9

    def cuLinkAddData(self, state, kind, data, size, name, count, options, values):
        assert (state, kind, size, data[-1:]) == (9, "ptx", len(data), b"\0")
        return OK

    def cuLinkComplete(self, state):
        return *OK, ctypes.addressof(self.cubin), 5

    def cuLinkDestroy(self, state):
        return OK

    def cuModuleLoadData(self, image):
        return *OK, 31

    def cuModuleGetFunction(self, module, name):
        return *OK, 41

    def cuModuleUnload(self, module):
        return OK

    def _used(self) -> int:
        return sum(len(block) for block in self.live.values())

    def CUstream(self, handle):
        return handle

    def cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, pointers, extra):
        code = self.launch_codes.pop(0) if self.launch_codes else 0
        if code == 0:
            assert (function, gz, by, bz, shared, stream, extra) == (41, 1, 1, 1, 0, 5, 0)
            array = (ctypes.c_void_p * max(1, self.parameters)).from_address(pointers)
            values = [ctypes.c_int64.from_address(array[slot]).value for slot in range(self.parameters)]
            self.launches.append(((gx, gy), bx, values))
        return (CUresult(code),)
