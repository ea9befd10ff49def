"""The GPU's backend: descriptions, error texts and bookkeeping against a fake driver, and the real one where there is one."""

import gc
import multiprocessing
import os
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import llvmlite.binding as llvm
import numpy as np
import pytest
from cuda_driver import FakeDriver
from hypothesis import given
from hypothesis import strategies as st

from codegen import dtypes
from codegen.errors import OutOfMemoryError, TargetError
from codegen.ir.kernel import Body, BufferParameter, IndexParameter, Kernel, ScalarParameter
from codegen.ir.layout import Layout
from codegen.ir.types import BufferType
from codegen.targets import backend
from codegen.targets.nvptx import driver as driver_module
from codegen.targets.nvptx.backend import NvptxBackend
from codegen.targets.nvptx.description import GENERATIONS, describe_device, nvptx_target, target_of_capability
from codegen.targets.nvptx.driver import Driver
from codegen.targets.nvptx.launch import GRID_X, GRID_Y, grid_of, parameter_pointers

LANES = 128


def kernel_called(name: str) -> Kernel:
    """A kernel (n, factor, x) with one run-time stride: four slots."""
    parameters = (
        IndexParameter("n"),
        ScalarParameter("factor", dtypes.float32),
        BufferParameter("x", BufferType(dtypes.float32, ("n",), (None,), 4), written=True),
    )
    return Kernel(name, parameters, (), Body((), ()), Layout((LANES,), (1,)))


def fake_backend(**options) -> tuple[NvptxBackend, FakeDriver]:
    fake = FakeDriver(**options)
    return NvptxBackend(0, Driver(fake)), fake


# --- descriptions, without a GPU


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda generation: generation.cpu)
def test_llvm_makes_ptx_for_every_generation(generation):
    target = nvptx_target(generation.cpu)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(cpu=target.cpu, features=target.features)
    module = llvm.parse_assembly("define ptx_kernel void @k(ptr %p) { store float 1.0, ptr %p\n ret void }")
    text = machine.emit_assembly(module)
    assert f".version {generation.ptx // 10}.{generation.ptx % 10}\n" in text
    assert f".target {generation.cpu}\n" in text


def test_facts_of_generations():
    hopper = nvptx_target("sm_90a")
    assert (hopper.name, hopper.kind, hopper.lanes, hopper.max_lanes_per_program) == ("nvptx", "nvptx", 32, 1024)
    assert hopper.shared_bytes == 232448
    assert hopper.has("maximum") and hopper.has("half_conversion") and not hopper.has("exp")
    assert not nvptx_target("sm_75").has("maximum")
    assert len({nvptx_target(row.cpu).fingerprint for row in GENERATIONS}) == len(GENERATIONS)


def test_unknown_generation():
    with pytest.raises(TargetError, match="no description of 'sm_42', expected one of sm_75, sm_80"):
        nvptx_target("sm_42")


@pytest.mark.parametrize(
    ("capability", "cpu"),
    [
        ((7, 5), "sm_75"),
        ((8, 0), "sm_80"),
        ((9, 0), "sm_90a"),
        ((9, 1), "sm_90"),
        ((10, 0), "sm_100a"),
        ((15, 0), "sm_121"),
    ],
)
def test_devices_get_their_own_code_or_portable_code(capability, cpu):
    assert target_of_capability(*capability).cpu == cpu


def test_too_old_device():
    with pytest.raises(TargetError, match=r"compute capability 6.1, expected 7.5 or newer; run on the host"):
        target_of_capability(6, 1)


def test_device_numbers_replace_the_table():
    target = describe_device((8, 0), multiprocessors=14, shared_bytes=1000, cache_bytes=2000)
    assert (target.cores, target.shared_bytes, target.cache_bytes) == (14, 1000, 2000)
    assert replace(target, shared_bytes=166912).fingerprint == nvptx_target("sm_80").fingerprint


# --- what is missing


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setattr(driver_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TargetError, match=r"cuda-python is not installed; install it with pip install '\.\[cuda\]'"):
        driver_module.load_bindings()


def test_broken_package(monkeypatch):
    def fail(name):
        raise ImportError("libstdc++ is too old")

    monkeypatch.setattr(driver_module.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(driver_module.importlib, "import_module", fail)
    with pytest.raises(TargetError, match=r"does not work here \(libstdc\+\+ is too old\); reinstall"):
        driver_module.load_bindings()


def test_missing_driver_library():
    def init(flags):
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    with pytest.raises(TargetError, match=r"library could not be loaded \(Failed to dlopen libcuda.so.1\); install"):
        Driver(SimpleNamespace(cuInit=init))


def test_no_gpu():
    fake = FakeDriver()
    fake.fail["cuInit"] = 100
    with pytest.raises(
        TargetError, match=r"CUDA_ERROR_NO_DEVICE \(CUDA error 100\): no NVIDIA GPU is visible; look at"
    ):
        Driver(fake)


def test_no_gpu_of_that_number():
    fake = FakeDriver(devices=1)
    with pytest.raises(TargetError, match="there is no cuda:3, this process sees 1 GPU; look at nvidia-smi and"):
        NvptxBackend(3, Driver(fake))


def test_a_problem_is_told_every_time(monkeypatch):
    monkeypatch.setattr(driver_module, "_found", driver_module._Found())
    monkeypatch.setattr(driver_module, "load_bindings", lambda: (_ for _ in ()).throw(TargetError("gpu: nothing here")))
    for _ in range(2):
        with pytest.raises(TargetError, match="gpu: nothing here"):
            driver_module.driver()


def test_availability_is_silent(monkeypatch, recwarn):
    monkeypatch.setattr(driver_module, "_found", driver_module._Found())
    monkeypatch.setattr(driver_module, "library_is_there", lambda: True)
    fake = FakeDriver()
    monkeypatch.setattr(driver_module, "load_bindings", lambda: fake)
    assert driver_module.cuda_available()
    fake.devices = 0
    assert not driver_module.cuda_available()
    fake.fail["cuDeviceGetCount"] = 999
    assert not driver_module.cuda_available()
    monkeypatch.setattr(driver_module, "library_is_there", lambda: False)
    assert not driver_module.cuda_available()
    assert not recwarn.list


# --- the backend against a fake driver


def test_device_is_described():
    device, fake = fake_backend(capability=(8, 9))
    assert (device.device, device.target.cpu, device.target.cores) == ("cuda:0", "sm_89", 132)
    assert device.target.shared_bytes == 232448
    assert (device.card(), device.driver_version(), device.stream) == ("Fake H200", "12.4", 5)


def test_copies_through_the_driver():
    device, _ = fake_backend()
    data = np.arange(64, dtype=np.int16)
    first, second = device.allocate(128), device.allocate(256)
    device.from_host(data, first, 0)
    device.copy(first, 64, second, 128, 64)
    out = np.zeros(32, np.int16)
    device.to_host(second, 128, out)
    np.testing.assert_array_equal(out, data[32:])


def test_only_page_locked_memory_is_waited_for():
    device, fake = fake_backend()
    memory, data = device.allocate(64), np.zeros(8)
    device.from_host(data, memory, 0)
    assert fake.log[-1] == "cuPointerGetAttribute"
    fake.page_locked.add(data.ctypes.data)
    device.from_host(data, memory, 0)
    assert fake.log[-1] == "cuStreamSynchronize"


def test_device_blocks_are_recycled_and_released():
    device, fake = fake_backend()
    memory = device.allocate(1000)
    address = memory.address
    del memory
    memory = device.allocate(900)
    assert memory.address == address
    assert fake.log.count("cuMemAlloc") == 1
    assert device.memory_info().in_use_bytes == 1024
    del memory
    assert device.memory_info().cached_bytes == 1024
    device.release_cached()
    assert device.memory_info().cached_bytes == 0
    assert not fake.live


def test_device_cache_is_bounded():
    device, fake = fake_backend(capacity=1 << 20)
    memories = [device.allocate(1 << 17) for _ in range(6)]
    memories.clear()
    assert device.memory_info().cached_bytes == 1 << 19


def test_device_out_of_memory_comes_after_the_cache_was_released():
    device, fake = fake_backend(capacity=1 << 20)
    kept = device.allocate(1 << 18)
    cached = device.allocate(1 << 19)
    del cached
    large = device.allocate(3 << 18)
    assert len(fake.live) == 2
    with pytest.raises(
        OutOfMemoryError,
        match=r"Unable to allocate 100 KiB on cuda:0: 1 MiB are in use here and 0 bytes of 1 MiB are free; drop arrays",
    ) as caught:
        device.allocate(100 << 10)
    assert isinstance(caught.value, MemoryError)
    del kept, large
    with pytest.raises(ValueError, match="allocate: -5 bytes were asked for"):
        device.allocate(-5)


def test_blocks_of_a_broken_device_are_let_go():
    device, fake = fake_backend()
    memory = device.allocate(100)
    fake.fail["cuMemFree"] = 700
    del memory
    device.release_cached()
    assert device.memory_info().cached_bytes == 0


def test_assembling():
    device, fake = fake_backend()
    assert device.link(b".version 8.0", "k") == b"cubin"
    assert fake.log.count("cuLinkDestroy") == 1


def test_assembler_errors_are_quoted():
    device, fake = fake_backend()
    fake.fail["cuLinkAddData"] = 218
    fake.assembler_says = b"ptxas: line 7; error: Unknown symbol 'x'"
    with pytest.raises(TargetError) as caught:
        device.link(b".version 8.0", "scale")
    assert str(caught.value) == (
        "cuda:0: assemble scale: CUDA_ERROR_INVALID_PTX (CUDA error 218): the driver refused the PTX code; please "
        "report it with BLOCKARRAY_DUMP=all; the assembler says: ptxas: line 7; error: Unknown symbol 'x'"
    )
    assert fake.log.count("cuLinkDestroy") == 1


def test_old_driver_is_named():
    device, fake = fake_backend()
    fake.fail["cuLinkAddData"] = 222
    with pytest.raises(
        TargetError, match=r"driver is too old .* install a newer driver \(this one supports CUDA 12.4\)"
    ):
        device.link(b".version 9.9", "k")


def test_other_errors_carry_the_drivers_text():
    device, fake = fake_backend()
    fake.fail["cuStreamSynchronize"] = 1
    with pytest.raises(TargetError, match=r"cuda:0: wait for kernels: CUDA_ERROR_INVALID_VALUE .*: text of the driver"):
        device.synchronize()
    fake.fail["cuStreamSynchronize"] = 700
    with pytest.raises(TargetError, match="a kernel used memory that is not its own; all further work"):
        device.synchronize()


def test_errors_newer_than_the_bindings():
    error = Driver(FakeDriver()).error("launch", 12345)
    assert str(error).startswith("launch: CUDA_ERROR_UNKNOWN (CUDA error 12345): ")


# --- launches against a fake driver


def bound_fake():
    device, fake = fake_backend()
    fake.parameters = 4
    slots = np.zeros(4, np.int64)
    launcher = device.load(b"cubin", "scale", lambda: kernel_called("scale"))
    return device, fake, slots, launcher.bind(slots.ctypes.data)


def test_launch_reads_the_slots_at_the_call():
    _, fake, slots, run = bound_fake()
    slots[:] = [10, 20, 30, 40]
    run(7)
    slots[2] = -1
    run(8, parallel=False)
    assert fake.launches == [((7, 1), LANES, [10, 20, 30, 40]), ((8, 1), LANES, [10, 20, -1, 40])]


def test_launch_of_nothing_does_not_reach_the_driver():
    _, fake, _, run = bound_fake()
    run(0)
    assert fake.launches == []


def test_launch_in_a_thread_of_another_context():
    _, fake, _, run = bound_fake()
    fake.launch_codes = [201]
    before = fake.log.count("cuCtxSetCurrent")
    run(3)
    assert len(fake.launches) == 1
    assert fake.log.count("cuCtxSetCurrent") == before + 1


def test_failed_launch():
    _, fake, _, run = bound_fake()
    fake.launch_codes = [201, 201]
    with pytest.raises(TargetError, match=r"launch scale on cuda:0, 3 programs: CUDA_ERROR_INVALID_CONTEXT"):
        run(3)


def test_module_is_unloaded_with_the_last_launch():
    device, fake, _, run = bound_fake()
    gc.collect()
    assert "cuModuleUnload" not in fake.log
    del run
    gc.collect()
    assert fake.log[-2:] == ["cuCtxSetCurrent", "cuModuleUnload"]
    assert "cuStreamSynchronize" in fake.log


@given(st.integers(1, GRID_X * GRID_Y))
def test_grids_cover_all_programs(programs):
    columns, rows = grid_of(programs)
    assert 1 <= columns <= GRID_X and 1 <= rows <= GRID_Y
    assert programs <= columns * rows < programs + rows


def test_grid_splits_only_when_it_must():
    assert grid_of(GRID_X) == (GRID_X, 1)
    assert grid_of(GRID_X + 1) == (2**30, 2)
    # blocks of one program stay in one row
    assert grid_of(1000, 8) == (8000, 1)
    assert grid_of(GRID_X // 8, 8) == (GRID_X // 8 * 8, 1)
    columns, rows = grid_of(GRID_X, 8)
    assert columns % 8 == 0 and columns <= GRID_X and columns // 8 * rows >= GRID_X
    with pytest.raises(TargetError, match="programs were asked for, a GPU has at most"):
        grid_of(GRID_X * GRID_Y + 1)


def test_large_launch_uses_two_axes():
    _, fake, _, run = bound_fake()
    run(2**32)
    assert fake.launches[0][0] == grid_of(2**32)


def test_parameter_pointers():
    slots = np.array([11, 22, 33], np.int64)
    pointers = parameter_pointers(slots.ctypes.data, 3)
    assert [pointers[slot] - slots.ctypes.data for slot in range(3)] == [0, 8, 16]
    assert len(parameter_pointers(slots.ctypes.data, 0)) == 1


def test_forked_child_is_told():
    device, fake, _, run = bound_fake()
    held = [device.allocate(100)]
    device._driver.after_fork(in_child=True)
    expected = "forked from one that had used the GPU.* multiprocessing.get_context\\('spawn'\\)"
    for use in (
        lambda: run(1),
        lambda: device.allocate(50),
        device.synchronize,
        lambda: device.from_host(np.zeros(1), held[0], 0),
        lambda: device.link(b"", "k"),
    ):
        with pytest.raises(TargetError, match=expected):
            use()
    calls = len(fake.log)
    held.clear()
    device.release_cached()
    assert fake.launches == [] and len(fake.log) == calls


# --- the real cuda-python, without a GPU


def test_calls_have_the_types_that_cuda_python_expects():
    bindings = pytest.importorskip("cuda.bindings.driver")
    if driver_module.library_is_there():
        pytest.skip("there is a driver: the tests marked gpu make the real calls")
    log = bytearray(16)
    options = [
        bindings.CUjit_option.CU_JIT_ERROR_LOG_BUFFER,
        bindings.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ]
    attribute = bindings.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
    device, context, state = bindings.CUdevice(0), bindings.CUcontext(1), bindings.CUlinkState(1)
    module, event = bindings.CUmodule(1), bindings.CUevent(1)
    calls = [
        ("cuInit", 0),
        ("cuDeviceGetCount",),
        ("cuDeviceGet", 0),
        ("cuDeviceGetName", 128, device),
        ("cuDeviceGetAttribute", attribute, device),
        ("cuDeviceTotalMem", device),
        ("cuDevicePrimaryCtxRetain", device),
        ("cuCtxSetCurrent", context),
        ("cuStreamCreate", 0),
        ("cuStreamSynchronize", 5),
        ("cuMemGetInfo",),
        ("cuMemAlloc", 256),
        ("cuMemFree", 1 << 40),
        ("cuMemcpyHtoDAsync", 1 << 40, log_address(log), 16, 5),
        ("cuMemcpyDtoHAsync", log_address(log), 1 << 40, 16, 5),
        ("cuMemcpyDtoDAsync", 1 << 40, 1 << 41, 16, 5),
        ("cuPointerGetAttribute", bindings.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, log_address(log)),
        ("cuLinkCreate", 2, options, [log, len(log)]),
        ("cuLinkAddData", state, bindings.CUjitInputType.CU_JIT_INPUT_PTX, b"x\0", 2, b"k\0", 0, [], []),
        ("cuLinkComplete", state),
        ("cuLinkDestroy", state),
        ("cuModuleLoadData", b"cubin"),
        ("cuModuleGetFunction", module, b"k"),
        ("cuModuleUnload", module),
        ("cuLaunchKernel", bindings.CUfunction(1), 3, 1, 1, 128, 1, 1, 0, bindings.CUstream(5), log_address(log), 0),
        ("cuEventCreate", 0),
        ("cuEventRecord", event, 5),
        ("cuEventSynchronize", event),
        ("cuEventElapsedTime", event, event),
        ("cuEventDestroy", event),
        ("cuGetErrorName", bindings.CUresult(2)),
        ("cuGetErrorString", bindings.CUresult(2)),
        ("cuDriverGetVersion",),
    ]
    for name, *arguments in calls:
        # The arguments are converted first: a wrong one raises TypeError.
        with pytest.raises(RuntimeError, match="dlopen"):
            getattr(bindings, name)(*arguments)
    with pytest.raises(TargetError, match="driver's library could not be loaded"):
        Driver(bindings)


def log_address(log: bytearray) -> int:
    return np.frombuffer(log, np.uint8).ctypes.data


# --- the real GPU

SCALE = """
.version 7.0
.target sm_80
.address_size 64

// x[i] *= factor for i < n; one program for each 128 elements; slots n, factor, x, stride.
.visible .entry scale(.param .u64 n, .param .f32 factor, .param .u64 x, .param .u64 stride) .maxntid 128, 1, 1
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [n];
  ld.param.f32 %f1, [factor];
  ld.param.u64 %rd2, [x];
  ld.param.u64 %rd3, [stride];
  cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %nctaid.x;
  mov.u32 %r4, %tid.x;
  cvt.u64.u32 %rd5, %r1;
  mul.wide.u32 %rd6, %r2, %r3;
  add.u64 %rd7, %rd5, %rd6;
  mul.lo.u64 %rd8, %rd7, 128;
  cvt.u64.u32 %rd9, %r4;
  add.u64 %rd8, %rd8, %rd9;
  setp.ge.s64 %p1, %rd8, %rd1;
  @%p1 bra DONE;
  mul.lo.u64 %rd10, %rd8, %rd3;
  shl.b64 %rd10, %rd10, 2;
  add.u64 %rd11, %rd4, %rd10;
  ld.global.f32 %f2, [%rd11];
  mul.rn.f32 %f3, %f2, %f1;
  st.global.f32 [%rd11], %f3;
DONE:
  ret;
}
"""


def scale_slots(n: int, factor: float, address: int, stride: int = 1) -> np.ndarray:
    slots = np.array([n, 0, address, stride], np.int64)
    slots[1:2].view(np.float32)[0] = factor
    return slots


@pytest.fixture(scope="session")
def scale(gpu):
    return gpu.load(gpu.link(SCALE.encode(), "scale"), "scale", lambda: kernel_called("scale"))


@pytest.mark.gpu
def test_gpu_is_described(gpu):
    assert gpu.target.cores > 1 and gpu.target.shared_bytes >= 48 << 10 and gpu.target.cache_bytes > 1 << 20
    assert "NVIDIA" in gpu.card() or gpu.card()
    assert gpu.stream != 0
    info = gpu.memory_info()
    assert 0 < info.free_bytes <= info.total_bytes


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 127, 128, 129, 100_003])
def test_gpu_launch(gpu, scale, n):
    data = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    memory = gpu.allocate(data.nbytes)
    assert memory.address % 256 == 0
    gpu.from_host(data, memory, 0)
    slots = scale_slots(n, 0.5, memory.address)
    scale.launch(slots.ctypes.data, -(-n // LANES))
    out = np.empty_like(data)
    gpu.to_host(memory, 0, out)
    np.testing.assert_array_equal(out, data * np.float32(0.5))


@pytest.mark.gpu
def test_gpu_many_launches_with_changing_slots(gpu, scale):
    memories = [gpu.allocate(512) for _ in range(2)]
    for memory in memories:
        gpu.from_host(np.ones(128, np.float32), memory, 0)
    slots = scale_slots(128, 2.0, 0)
    run = scale.bind(slots.ctypes.data)
    for _ in range(20):
        for memory, factor in zip(memories, (2.0, 0.5), strict=True):
            slots[2] = memory.address
            slots[1:2].view(np.float32)[0] = factor
            run(1)  # may still be queued when the slots change
    out = np.empty(128, np.float32)
    gpu.to_host(memories[0], 0, out)
    assert (out == 2.0**20).all()
    gpu.to_host(memories[1], 0, out)
    assert (out == 0.5**20).all()


@pytest.mark.gpu
def test_gpu_thousands_of_launches(gpu, scale):
    memory = gpu.allocate(512)
    gpu.from_host(np.ones(128, np.float32), memory, 0)
    slots = scale_slots(128, -1.0, memory.address)
    run = scale.bind(slots.ctypes.data)
    for _ in range(5001):
        run(1)
    gpu.synchronize()
    out = np.empty(128, np.float32)
    gpu.to_host(memory, 0, out)
    assert (out == -1.0).all()


@pytest.mark.gpu
def test_gpu_launch_from_other_threads(gpu, scale):
    results: dict[int, float] = {}

    def work(number: int) -> None:
        memory = gpu.allocate(512)
        gpu.from_host(np.full(128, number, np.float32), memory, 0)
        slots = scale_slots(128, 3.0, memory.address)
        run = scale.bind(slots.ctypes.data)
        for _ in range(4):
            run(1)
        out = np.empty(128, np.float32)
        gpu.to_host(memory, 0, out)
        results[number] = float(out.min()) if out.min() == out.max() else np.nan

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {number: number * 81.0 for number in range(8)}


@pytest.mark.gpu
def test_gpu_launch_is_the_first_call_of_a_thread(gpu, scale):
    memory = gpu.allocate(512)
    gpu.from_host(np.ones(128, np.float32), memory, 0)
    slots = scale_slots(128, 7.0, memory.address)
    run = scale.bind(slots.ctypes.data)
    thread = threading.Thread(target=run, args=(1,))
    thread.start()
    thread.join(60)
    out = np.empty(128, np.float32)
    gpu.to_host(memory, 0, out)
    assert (out == 7.0).all()


@pytest.mark.gpu
def test_gpu_grid_of_two_axes(gpu, scale):
    # One program more than fits one axis, all but the first idle: element 0 is the only one below n.
    memory = gpu.allocate(512)
    gpu.from_host(np.full(128, 3, np.float32), memory, 0)
    slots = scale_slots(1, 5.0, memory.address)
    scale.launch(slots.ctypes.data, GRID_X + 1)
    out = np.empty(128, np.float32)
    gpu.to_host(memory, 0, out)
    assert out[0] == 15.0 and (out[1:] == 3.0).all()


@pytest.mark.gpu
def test_gpu_strided_argument(gpu, scale):
    data = np.arange(64, dtype=np.float32)
    memory = gpu.allocate(data.nbytes)
    gpu.from_host(data, memory, 0)
    slots = scale_slots(32, -1.0, memory.address + 63 * 4, stride=-2)
    scale.launch(slots.ctypes.data, 1)
    out = np.empty_like(data)
    gpu.to_host(memory, 0, out)
    expected = data.copy()
    expected[::-1][::2] *= -1
    np.testing.assert_array_equal(out, expected)


@pytest.mark.gpu
def test_gpu_memory_is_recycled_in_order(gpu, scale):
    # The second user of a block is queued behind the first: its contents must not be disturbed.
    for _ in range(50):
        first = gpu.allocate(4 << 20)
        gpu.from_host(np.ones(1 << 20, np.float32), first, 0)
        slots = scale_slots(1 << 20, 2.0, first.address)
        scale.launch(slots.ctypes.data, (1 << 20) // LANES)
        del first
    second = gpu.allocate(4 << 20)
    gpu.from_host(np.full(1 << 20, 9, np.float32), second, 0)
    out = np.empty(1 << 20, np.float32)
    gpu.to_host(second, 0, out)
    assert (out == 9).all()


@pytest.mark.gpu
def test_gpu_out_of_memory(gpu):
    total = gpu.memory_info().total_bytes
    with pytest.raises(OutOfMemoryError, match=r"Unable to allocate .* on cuda:0: .* are in use here"):
        gpu.allocate(2 * total)
    memory = gpu.allocate(1024)
    gpu.from_host(np.zeros(256, np.float32), memory, 0)
    gpu.synchronize()


@pytest.mark.gpu
def test_gpu_cached_blocks_make_room(gpu):
    gpu.release_cached()
    free = gpu.memory_info().free_bytes
    part = free * 2 // 5
    block = gpu.allocate(part)
    del block
    assert gpu.memory_info().cached_bytes >= part
    large = gpu.allocate(free * 4 // 5)
    assert large.nbytes == free * 4 // 5
    del large
    gpu.release_cached()
    assert gpu.memory_info().cached_bytes == 0


@pytest.mark.gpu
def test_gpu_refuses_wrong_ptx(gpu):
    with pytest.raises(TargetError, match=r"assemble broken: .*the assembler says: "):
        gpu.link(SCALE.replace("mul.rn.f32", "mull.rn.f32").encode(), "broken")
    with pytest.raises(TargetError, match=r"too old|version"):
        gpu.link(SCALE.replace(".version 7.0", ".version 99.0").encode(), "newer")
    with pytest.raises(TargetError, match="load other"):
        gpu.load(gpu.link(SCALE.encode(), "scale"), "other", lambda: kernel_called("other"))


@pytest.mark.gpu
def test_gpu_loads_a_cubin_again(gpu):
    binary = gpu.link(SCALE.encode(), "scale")
    assert binary[:4] == b"\x7fELF"
    for _ in range(3):
        gpu.load(binary, "scale", lambda: kernel_called("scale"))
        gc.collect()


@pytest.mark.gpu
def test_gpu_measures_time(gpu, scale):
    memory = gpu.allocate(512)
    gpu.from_host(np.ones(128, np.float32), memory, 0)
    slots = scale_slots(128, 1.0, memory.address)
    run = scale.bind(slots.ctypes.data)

    def work() -> None:
        for _ in range(100):
            run(1)

    assert 0 < gpu.seconds(work) < 10


@pytest.mark.gpu
def test_two_gpus_in_one_thread(gpu):
    try:
        second = backend("cuda:1")
    except TargetError:
        pytest.skip("there is only one GPU")
    devices = (gpu, second)
    memories = [device.allocate(512) for device in devices]
    slots = [scale_slots(128, 3.0, memory.address) for memory in memories]
    runs = []
    for device, memory, arguments in zip(devices, memories, slots, strict=True):
        device.from_host(np.ones(128, np.float32), memory, 0)
        launcher = device.load(device.link(SCALE.encode(), "scale"), "scale", lambda: kernel_called("scale"))
        runs.append(launcher.bind(arguments.ctypes.data))
    for _ in range(4):
        for run in runs:
            run(1)
    for device, memory in zip(devices, memories, strict=True):
        out = np.empty(128, np.float32)
        device.to_host(memory, 0, out)
        assert (out == 81.0).all()


@pytest.mark.gpu
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_gpu_in_a_forked_child(gpu):
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_use_gpu_after_fork, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert "across a fork" in queue.get()


def _use_gpu_after_fork(queue) -> None:
    try:
        backend("cuda:0").allocate(10)
    except TargetError as error:
        queue.put(str(error))
