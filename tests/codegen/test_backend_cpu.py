"""The host's backend: description, memory, loader, threads, forks."""

import gc
import os
import subprocess
import sys
import threading
import time
import warnings

import llvmlite.binding as llvm
import numpy as np
import pytest

from codegen import dtypes
from codegen.errors import InternalCompilerError, OutOfMemoryError, TargetError
from codegen.ir.kernel import Body, BufferParameter, IndexParameter, Kernel
from codegen.ir.layout import Layout
from codegen.ir.types import BufferType
from codegen.target import Target
from codegen.targets import backend
from codegen.targets.backend import count_slots
from codegen.targets.cpu.backend import CpuBackend
from codegen.targets.cpu.description import describe_host, host_target
from codegen.targets.cpu.memory import HUGE_PAGE, HostAllocator
from codegen.targets.cpu.threads import PARALLEL_COPY

# Adds 1 to element p of an int64 array for each program p.
COUNT = """
define void @count(ptr %slots, i64 %begin, i64 %end) {
enter:
  %array = load ptr, ptr %slots
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %loop, label %leave
loop:
  %program = phi i64 [%begin, %enter], [%next, %loop]
  %element = getelementptr i64, ptr %array, i64 %program
  %old = load i64, ptr %element
  %new = add i64 %old, 1
  store i64 %new, ptr %element
  %next = add i64 %program, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %leave
leave:
  ret void
}
"""

# Takes some milliseconds for each program, then counts like the one above.
SLOW = (
    COUNT.replace("@count", "@slow")
    .replace(
        """  %element =""",
        """  br label %think
think:
  %turn = phi i64 [0, %loop], [%turned, %think]
  %x = phi double [1.0, %loop], [%y, %think]
  %y = fdiv double 3.0, %x
  %turned = add i64 %turn, 1
  %again = icmp slt i64 %turned, 1000000
  br i1 %again, label %think, label %count
count:
  %odd = fcmp olt double %y, 0.0
  %extra = zext i1 %odd to i64
  %element =""",
    )
    .replace("add i64 %old, 1", "add i64 %old, %one")
    .replace("  %new =", "  %one = sub i64 1, %extra\n  %new =")
    .replace("[%next, %loop]", "[%next, %count]")
)

FILL = """
declare ptr @memset(ptr, i32, i64)
@table = private constant [4 x i64] [i64 10, i64 20, i64 30, i64 40], align 32
define void @fill(ptr %slots, i64 %begin, i64 %end) {
  %array = load ptr, ptr %slots
  %ignored = call ptr @memset(ptr %array, i32 7, i64 24)
  %where = getelementptr i64, ptr @table, i64 %begin
  %number = load i64, ptr %where
  %last = getelementptr i64, ptr %array, i64 3
  store i64 %number, ptr %last
  ret void
}
"""

# Slots: two counters, and how many programs are to meet. Each program counts itself in and waits for the others, with
# patience for some seconds; those that saw too few count in the second counter.
MEET = """
define void @meet(ptr %slots, i64 %begin, i64 %end) {
enter:
  %counters = load ptr, ptr %slots
  %wanted.slot = getelementptr i64, ptr %slots, i64 1
  %wanted = load i64, ptr %wanted.slot
  %mine = sub i64 %end, %begin
  %before = atomicrmw add ptr %counters, i64 %mine seq_cst
  br label %look
look:
  %turn = phi i64 [0, %enter], [%next, %wait]
  %now = load atomic i64, ptr %counters seq_cst, align 8
  %all = icmp uge i64 %now, %wanted
  br i1 %all, label %leave, label %wait
wait:
  %next = add i64 %turn, 1
  %patient = icmp ult i64 %next, 10000000000
  br i1 %patient, label %look, label %lonely
lonely:
  %lonely.word = getelementptr i64, ptr %counters, i64 1
  %others = atomicrmw add ptr %lonely.word, i64 1 seq_cst
  br label %leave
leave:
  ret void
}
"""


def object_code(text: str, target: Target) -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=1, reloc="pic", codemodel="small"
    )
    return machine.emit_object(llvm.parse_assembly(text, llvm.create_context()))


def kernel_called(name: str) -> Kernel:
    return Kernel(name, (), (), Body((), ()), Layout((1,), (1,)))


@pytest.fixture(scope="module")
def count_code() -> bytes:
    return object_code(COUNT, host_target())


@pytest.fixture(scope="module", params=[1, 2, 3, 5])
def threaded(request):
    return CpuBackend(threads=request.param)


def bound(device: CpuBackend, code: bytes, size: int):
    counts = np.zeros(size, np.int64)
    slots = np.array([counts.ctypes.data], np.int64)
    launcher = device.load(device.link(code, "count"), "count", lambda: kernel_called("count"))
    return counts, slots, launcher.bind(slots.ctypes.data)


# --- description


def test_host_target_describes_this_machine():
    target = host_target()
    assert (target.name, target.kind, target.lanes) == ("cpu", "cpu", 1)
    assert target.register_bits in (128, 256, 512)
    assert 1 <= target.cores <= (os.cpu_count() or 1)
    assert target.has("sqrt") and not target.has("exp")
    assert "memcpy" in target.libraries


def test_functions_and_registers_follow_the_features():
    plain = describe_host("x86_64-unknown-linux-gnu", "x86-64", {"sse2": True, "sse4.1": False}, "x86_64")
    assert plain.register_bits == 128
    assert not plain.has("floor") and not plain.has("half_conversion")
    haswell = describe_host("x86_64", "haswell", {"sse4.1": True, "avx2": True, "f16c": True}, "x86_64")
    assert haswell.register_bits == 256
    assert haswell.has("floor") and haswell.has("half_conversion")
    wide = dict.fromkeys(("sse4.1", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl"), True)
    assert describe_host("x86_64", "skylake-avx512", wide, "x86_64").register_bits == 512
    arm = describe_host("aarch64", "neoverse-n1", {"neon": True}, "aarch64")
    assert (arm.register_bits, arm.has("rint"), arm.has("half_conversion")) == (128, True, True)


def test_fingerprint_tells_code_apart_and_nothing_else():
    features = {"sse4.1": True}
    one = describe_host("x86_64", "a", features, "x86_64")
    assert one.fingerprint == describe_host("x86_64", "a", features, "x86_64").fingerprint
    others = [
        describe_host("x86_64", "b", features, "x86_64"),
        describe_host("x86_64", "a", {"sse4.1": False}, "x86_64"),
        describe_host("aarch64", "a", features, "aarch64"),
    ]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_slots_are_counted():
    buffer = BufferParameter("x", BufferType(dtypes.float32, ("n", 3, 4), (None, 0, None), 4))
    kernel = Kernel("k", (IndexParameter("n"), buffer), (), Body((), ()), Layout((1,), (1,)))
    assert count_slots(kernel) == 4


# --- registry


def test_backend_of_the_host_is_one_object():
    assert backend("cpu") is backend("cpu")
    assert backend("cpu").device == "cpu"


@pytest.mark.parametrize("name", ["", "gpu", "cuda:", "cuda:x", "cpu:0", "CPU"])
def test_unknown_device(name):
    with pytest.raises(TargetError, match=r"there is none called .* expected 'cpu', 'cuda' or 'cuda:' and a number"):
        backend(name)


# --- memory


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 4096, 100_000, HUGE_PAGE - 1, HUGE_PAGE, 5_000_000])
def test_memory_is_aligned_and_usable(host, nbytes):
    memory = host.allocate(nbytes)
    assert memory.nbytes == nbytes
    assert memory.address % (HUGE_PAGE if nbytes >= HUGE_PAGE else 64) == 0
    array = memory.array
    assert array.shape == (nbytes,) and array.dtype == np.uint8
    if nbytes:
        assert array.ctypes.data == memory.address
        array[:] = 3
        assert array[-1] == 3


def test_large_memory_is_recycled():
    allocator = HostAllocator()
    first = allocator.allocate(3 * HUGE_PAGE)
    address = first.address
    del first
    assert allocator.allocate(3 * HUGE_PAGE - 100).address == address
    assert allocator.info().cached_bytes == 3 * HUGE_PAGE
    allocator.pool.release_cached()
    assert allocator.info().cached_bytes == 0


def test_array_keeps_the_memory():
    allocator = HostAllocator()
    array = allocator.allocate(1000).array[10:20]
    array[:] = 5
    gc.collect()
    others = [allocator.allocate(1000) for _ in range(8)]
    for other in others:
        other.array[:] = 9
    assert (array == 5).all()
    assert allocator.info().in_use_bytes == 9 * 1024
    del array
    assert allocator.info().in_use_bytes == 8 * 1024


def test_out_of_memory_says_how_much_was_asked_for(host):
    for nbytes in (1 << 60, 1 << 70):
        with pytest.raises(OutOfMemoryError, match=r"Unable to allocate .* TiB on the host: .* in use") as caught:
            host.allocate(nbytes)
        assert isinstance(caught.value, MemoryError) and isinstance(caught.value, TargetError)


def test_negative_size(host):
    with pytest.raises(ValueError, match="allocate: -1 bytes were asked for"):
        host.allocate(-1)


def test_memory_info_adds_up(host):
    memory = host.allocate(1 << 20)
    info = host.memory_info()
    assert info.peak_bytes >= info.in_use_bytes >= memory.nbytes
    assert 0 < info.free_bytes <= info.total_bytes


def test_borrowed_memory_is_the_owners_own(host):
    owner = np.arange(10, dtype=np.int32)
    memory = host.borrow(owner.ctypes.data, owner.nbytes, owner)
    host.from_host(np.array([7, 8], np.int32), memory, 4)
    assert owner[:3].tolist() == [0, 7, 8]
    array = memory.array.view(np.int32)
    del memory, owner
    gc.collect()
    assert array[:4].tolist() == [0, 7, 8, 3]


# --- copies, on both kinds of device


def test_copies(device_backend):
    data = np.arange(1000, dtype=np.float32)
    first, second = device_backend.allocate(data.nbytes), device_backend.allocate(data.nbytes)
    device_backend.from_host(data, first, 0)
    device_backend.copy(first, 400, second, 0, 2000)
    device_backend.copy(first, 0, second, 2000, 400)
    out = np.zeros(600, np.float32)
    device_backend.to_host(second, 0, out)
    device_backend.synchronize()
    np.testing.assert_array_equal(out, np.concatenate([data[100:600], data[:100]]))


def test_copies_of_nothing(device_backend):
    memory = device_backend.allocate(0)
    device_backend.from_host(np.zeros(0), memory, 0)
    device_backend.to_host(memory, 0, np.zeros(0))
    device_backend.copy(memory, 0, memory, 0, 0)


def test_copies_are_checked(device_backend):
    memory = device_backend.allocate(64)
    with pytest.raises(ValueError, match="from_host: bytes 8 to 72 were asked for, but the memory has 64"):
        device_backend.from_host(np.zeros(8), memory, 8)
    with pytest.raises(ValueError, match="to_host: bytes -8 to 56"):
        device_backend.to_host(memory, -8, np.zeros(8))
    with pytest.raises(ValueError, match="copy: target: bytes 60 to 68"):
        device_backend.copy(memory, 0, memory, 60, 8)
    with pytest.raises(ValueError, match="C-contiguous"):
        device_backend.to_host(memory, 0, np.zeros((4, 4), np.int8)[:, ::2])
    fixed = np.zeros(8)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        device_backend.to_host(memory, 0, fixed)
    device_backend.from_host(fixed, memory, 0)


@pytest.mark.parametrize("nbytes", [PARALLEL_COPY - 1, PARALLEL_COPY, PARALLEL_COPY + 12345])
def test_large_copies_are_shared(threaded, nbytes):
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    memory = threaded.allocate(nbytes + 2)
    memory.array[:] = 77
    threaded.from_host(data, memory, 1)
    assert (memory.array[0], memory.array[-1]) == (77, 77)
    out = np.zeros(nbytes, np.uint8)
    threaded.to_host(memory, 1, out)
    assert (out == data).all()


# --- loading and launching


@pytest.mark.parametrize("programs", [0, 1, 2, 3, 7, 16, 1001, 50_000])
@pytest.mark.parametrize("parallel", [True, False])
def test_each_program_runs_once(threaded, count_code, programs, parallel):
    counts, _slots, run = bound(threaded, count_code, programs + 1)
    for _ in range(5):
        run(programs, parallel)
    assert (counts[:programs] == 5).all()
    assert counts[programs] == 0


def test_launch_without_binding(host, count_code):
    counts = np.zeros(4, np.int64)
    slots = np.array([counts.ctypes.data], np.int64)
    host.load(count_code, "count", lambda: kernel_called("count")).launch(slots.ctypes.data, 3)
    assert counts.tolist() == [1, 1, 1, 0]


def test_slots_may_change_between_calls(host, count_code):
    counts, slots, run = bound(host, count_code, 4)
    other = np.zeros(4, np.int64)
    run(4)
    slots[0] = other.ctypes.data
    run(2)
    assert counts.tolist() == [1, 1, 1, 1]
    assert other.tolist() == [1, 1, 0, 0]


def test_code_may_use_its_constants_and_the_c_library(host):
    out = np.zeros(4, np.int64)
    slots = np.array([out.ctypes.data], np.int64)
    launcher = host.load(object_code(FILL, host.target), "fill", lambda: kernel_called("fill"))
    launcher.launch(slots.ctypes.data, 1)
    assert out.tolist() == [0x0707070707070707] * 3 + [10]


def test_bound_launch_keeps_the_code(host, count_code):
    counts, _slots, run = bound(host, count_code, 10)  # the launcher itself is gone
    gc.collect()
    for _ in range(20):
        host.load(count_code, "count", lambda: kernel_called("count"))
    gc.collect()
    run(10)
    assert counts.sum() == 10


def test_damaged_code_is_refused(host):
    with pytest.raises(InternalCompilerError, match="load count: the linker refused 4 bytes of object code"):
        host.load(b"junk", "count", lambda: kernel_called("count"))


def test_missing_entry_point_is_refused(host, count_code):
    with pytest.raises(InternalCompilerError, match="load other: the linker refused"):
        host.load(count_code, "other", lambda: kernel_called("other"))


def test_many_threads_launch_at_once(threaded, count_code):
    size, rounds = 3000, 30
    results: list[np.ndarray] = []

    def work() -> None:
        counts, _slots, run = bound(threaded, count_code, size)
        for _ in range(rounds):
            run(size)
        results.append(counts)

    launching = [threading.Thread(target=work) for _ in range(4)]
    for thread in launching:
        thread.start()
    for thread in launching:
        thread.join(60)
    assert len(results) == 4
    assert all((counts == rounds).all() for counts in results)


def threads_of_this_process() -> int:
    """As the system counts them: Python does not know the helpers."""
    return len(os.listdir("/proc/self/task"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system does not tell its threads")
def test_threads_are_shared_by_many_jobs_and_end_with_the_pool(count_code):
    before = threads_of_this_process()
    device = CpuBackend(threads=3)
    counts, _slots, run = bound(device, count_code, 100)
    assert threads_of_this_process() == before
    for _ in range(50):
        run(100)
    assert threads_of_this_process() == before + 2
    device._pool.close()
    assert threads_of_this_process() == before
    run(100)
    assert (counts == 51).all()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system does not tell its threads")
def test_threads_end_with_the_last_reference_to_their_pool(count_code):
    before = threads_of_this_process()
    device = CpuBackend(threads=4)
    counts, _slots, run = bound(device, count_code, 100)
    run(100)
    assert threads_of_this_process() == before + 3
    del device
    run(100)  # a bound launch keeps the pool
    assert (counts == 2).all()
    del run
    gc.collect()
    assert threads_of_this_process() == before


def test_sleeping_threads_are_woken(threaded, count_code):
    counts, _slots, run = bound(threaded, count_code, 3000)
    for _ in range(40):
        time.sleep(0.002)  # longer than helpers look for news
        run(3000)
    assert (counts == 40).all()


def test_helpers_do_work_of_their_own(threaded):
    """Each program waits until as many programs are under way as there are threads."""
    count = threaded.threads
    met = np.zeros(2, np.int64)
    slots = np.array([met.ctypes.data, count], np.int64)
    launcher = threaded.load(object_code(MEET, host_target()), "meet", kernel_called("meet"))
    for _ in range(5):
        met[:] = 0
        launcher.launch(slots.ctypes.data, count)
        assert met.tolist() == [count, 0]


def test_process_ends_while_threads_sleep_and_while_they_work(count_code):
    program = f"""
import threading
import numpy as np
from codegen.ir.kernel import Body, Kernel
from codegen.ir.layout import Layout
from codegen.targets.cpu.backend import CpuBackend

device = CpuBackend(threads=3)
counts = np.zeros(5000, np.int64)
slots = np.array([counts.ctypes.data], np.int64)
kernel = Kernel("count", (), (), Body((), ()), Layout((1,), (1,)))
run = device.load({count_code!r}, "count", lambda: kernel).bind(slots.ctypes.data)
run(5000)

def work():
    while True:
        run(5000)

threading.Thread(target=work, daemon=True).start()
"""
    ended = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_number_of_threads_is_checked():
    with pytest.raises(ValueError, match="-1 threads were asked for, expected 1 or more"):
        CpuBackend(threads=-1)


def test_number_of_threads_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("BLOCKARRAY_THREADS", "3")
    assert CpuBackend().threads == 3


@pytest.mark.parametrize("programs", [1, 2, 3, 7])
def test_few_long_programs(threaded, programs):
    code = object_code(SLOW, host_target())
    counts = np.zeros(programs, np.int64)
    slots = np.array([counts.ctypes.data], np.int64)
    threaded.load(code, "slow", lambda: kernel_called("slow")).launch(slots.ctypes.data, programs)
    assert (counts == 1).all()


# --- forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_child_made_by_fork(count_code):
    device = CpuBackend(threads=2)
    counts, _slots, run = bound(device, count_code, 5000)
    run(5000)
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            device.load(count_code, "count", lambda: kernel_called("count"))
            device.allocate(5000)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        for _ in range(5):
            child = _fork()
            if child == 0:
                _finish_child(lambda: _check_child(device, count_code))
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        stop.set()
        busy.join()
    run(5000)
    assert (counts == 2).all()


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads are what is tested
        return os.fork()


def _finish_child(check) -> None:
    try:
        good = check()
    except BaseException:
        good = False
    os._exit(0 if good else 3)


def _check_child(device: CpuBackend, code: bytes) -> bool:
    counts, _slots, run = bound(device, code, 5000)
    run(5000)
    run(5000)
    memory = device.allocate(5000)
    memory.array[:] = 1
    return bool((counts == 2).all()) and device._pool.helpers == 1
