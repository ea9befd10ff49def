"""The driver: caches, statistics, artifacts, dumps, threads and forks."""

import contextvars
import ctypes
import multiprocessing
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import emitted
import numpy as np
import pytest

from codegen import cache, compiler, dtypes, settings
from codegen.compiler import Executable, compile_kernel, statistics
from codegen.errors import TargetError
from codegen.ir.builder import Builder
from codegen.ir.kernel import GridAxis, IndexParameter, Kernel
from codegen.ir.layout import Layout
from codegen.targets.backend import Backend, BoundLaunch, Launcher
from codegen.targets.nvptx.description import nvptx_target


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(compiler, "_memory", compiler._Memory())
    monkeypatch.setattr(cache, "_warned", cache._Warned())
    with settings.override(cache=True, cache_directory=tmp_path / "kernels"):
        yield


def scaled_kernel(factor: float, name: str = "scaled") -> Kernel:
    """out = x * factor."""
    builder = Builder()
    count = IndexParameter("count")
    x = emitted.buffer("x", dtypes.float64, ("count",), (1,))
    out = emitted.buffer("out", dtypes.float64, ("count",), (1,), written=True)
    start = builder.map("multiply", builder.program_index(0), builder.index(32))
    value = builder.load(x.value, (start,), (32,))
    scaled = builder.map("multiply", value, builder.constant(dtypes.float64, factor, (32,)))
    builder.store(out.value, (start,), scaled)
    return builder.kernel(name, (count, x, out), (GridAxis("count", 32),), Layout((1,), (1,), 8))


def run_scaled(executable: Executable, count: int = 75) -> np.ndarray:
    x, out = np.arange(count, dtype=np.float64), np.zeros(count)
    slots = np.array([count, emitted.address_of(x), emitted.address_of(out)])
    executable.launch(emitted.address_of(slots), -(-count // 32))
    return out


def counts() -> tuple[int, int, int]:
    return statistics.compiled, statistics.from_disk, statistics.from_memory


def change(before: tuple[int, int, int]) -> tuple[int, ...]:
    return tuple(now - then for now, then in zip(counts(), before, strict=True))


def forget() -> None:
    """As a new process would."""
    compiler._memory = compiler._Memory()


def test_equal_kernels_are_compiled_once() -> None:
    before = counts()
    first = compile_kernel(scaled_kernel(2.0), emitted.HOST)
    assert change(before) == (1, 0, 0)
    assert compile_kernel(scaled_kernel(2.0), emitted.HOST) is first
    assert change(before) == (1, 0, 1)
    assert (run_scaled(first) == np.arange(75) * 2).all()
    other = compile_kernel(scaled_kernel(3.0), emitted.HOST)
    assert change(before) == (2, 0, 1)
    assert (run_scaled(other) == np.arange(75) * 3).all()


def test_another_process_finds_the_binary_on_disk() -> None:
    assert not compile_kernel(scaled_kernel(2.0), emitted.HOST).from_cache
    forget()
    before = counts()
    found = compile_kernel(scaled_kernel(2.0), emitted.HOST)
    assert found.from_cache
    assert change(before) == (0, 1, 0)
    assert (run_scaled(found) == np.arange(75) * 2).all()


def test_a_damaged_entry_is_compiled_again_and_replaced(tmp_path: Path) -> None:
    compile_kernel(scaled_kernel(2.0), emitted.HOST)
    (path,) = (tmp_path / "kernels").glob("*/*.kernel")
    path.write_bytes(path.read_bytes()[:-7])
    forget()
    before = counts()
    with pytest.warns(RuntimeWarning, match="damaged"):
        again = compile_kernel(scaled_kernel(2.0), emitted.HOST)
    assert change(before) == (1, 0, 0)
    assert (run_scaled(again) == np.arange(75) * 2).all()
    forget()
    assert compile_kernel(scaled_kernel(2.0), emitted.HOST).from_cache


def test_an_unwritable_cache_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with settings.override(cache_directory=tmp_path / "file" / "kernels"):
        with pytest.warns(RuntimeWarning, match="kernels are compiled again in every process"):
            compile_kernel(scaled_kernel(2.0), emitted.HOST)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = run_scaled(compile_kernel(scaled_kernel(4.0), emitted.HOST))
    assert (result == np.arange(75) * 4).all()


def test_without_the_cache_nothing_is_written(tmp_path: Path) -> None:
    with settings.override(cache=False):
        compile_kernel(scaled_kernel(2.0), emitted.HOST)
        forget()
        assert not compile_kernel(scaled_kernel(2.0), emitted.HOST).from_cache
    assert not (tmp_path / "kernels").exists()


def test_artifacts_show_every_stage() -> None:
    executable = compile_kernel(scaled_kernel(2.0), emitted.HOST)
    assert list(executable.artifacts) == ["block", "distributed", "llvm", "optimized", "assembly"]
    assert "scaled" in executable.artifacts["block"]
    assert "define void @scaled(ptr %slots, i64 %begin, i64 %end)" in executable.artifacts["llvm"]
    assert "@scaled" in executable.artifacts["optimized"]
    assert "scaled:" in executable.artifacts["assembly"]
    with pytest.raises(KeyError, match="no stage is called 'ptx'; stages: block"):
        executable.artifacts["ptx"]


def test_dumps_are_written_in_order(tmp_path: Path) -> None:
    with settings.override(dump=("block", "assembly"), dump_directory=tmp_path / "dump"):
        compile_kernel(scaled_kernel(2.0, "first"), emitted.HOST)
        compile_kernel(scaled_kernel(2.0, "second"), emitted.HOST)
    names = sorted(str(path.relative_to(tmp_path / "dump")) for path in (tmp_path / "dump").rglob("*.txt"))
    assert names == [
        "0000-first/assembly.txt",
        "0000-first/block.txt",
        "0001-second/assembly.txt",
        "0001-second/block.txt",
    ]


def test_verified_compilation_gives_the_same_result() -> None:
    with settings.override(verify=True):
        assert (run_scaled(compile_kernel(scaled_kernel(2.0), emitted.HOST)) == np.arange(75) * 2).all()


def test_threads_that_want_one_kernel_compile_it_once() -> None:
    before = counts()
    barrier = threading.Barrier(8)
    found: list[Executable] = []

    def want() -> None:
        barrier.wait()
        found.append(compile_kernel(scaled_kernel(5.0), emitted.HOST))

    # A new thread starts in an empty context; the cache directory of this test is an override in the context of this one.
    threads = [threading.Thread(target=contextvars.copy_context().run, args=(want,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert change(before)[0] == 1


def test_threads_compile_different_kernels_at_once() -> None:
    results: dict[int, np.ndarray] = {}

    def want(factor: int) -> None:
        results[factor] = run_scaled(compile_kernel(scaled_kernel(float(factor)), emitted.HOST))

    threads = [threading.Thread(target=want, args=(factor,)) for factor in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((results[factor] == np.arange(75) * factor).all() for factor in range(1, 9))


def _compile_in_child(results: "multiprocessing.SimpleQueue[float]") -> None:
    results.put(float(run_scaled(compile_kernel(scaled_kernel(7.0), emitted.HOST))[3]))
    results.put(float(run_scaled(compile_kernel(scaled_kernel(2.0), emitted.HOST))[3]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_compiles_even_if_a_lock_was_held() -> None:
    compile_kernel(scaled_kernel(2.0), emitted.HOST)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    with compiler._memory.lock:
        child = context.Process(target=_compile_in_child, args=(results,))
        child.start()
    child.join(60)
    assert child.exitcode == 0
    assert (results.get(), results.get()) == (21.0, 6.0)


class _Assembler(Backend):
    """A GPU that takes PTX and launches nothing."""

    target = nvptx_target("sm_90a")
    device = "cuda:0"

    def __init__(self) -> None:
        self.linked: list[bytes] = []
        self.loaded: list[bytes] = []

    def link(self, code: bytes, name: str) -> bytes:
        self.linked.append(code)
        return b"cubin of " + name.encode()

    def load(self, binary: bytes, name: str, kernel: Kernel) -> Launcher:
        self.loaded.append(binary)
        return _Launcher()

    allocate = to_host = from_host = copy = synchronize = memory_info = release_cached = None


class _Launcher(Launcher):
    def bind(self, slots_address: int) -> BoundLaunch:
        raise AssertionError("not launched here")


def test_a_gpu_keeps_what_its_linker_made() -> None:
    device = _Assembler()
    executable = compile_kernel(scaled_kernel(2.0), device)
    assert b".target sm_90a" in device.linked[0]
    assert executable.artifacts["ptx"].encode() == device.linked[0]
    forget()
    assert compile_kernel(scaled_kernel(2.0), device).from_cache
    assert device.loaded == [b"cubin of scaled"] * 2
    assert len(device.linked) == 1


def test_a_binary_that_the_device_refuses_is_made_again() -> None:
    class Downgraded(_Assembler):
        def load(self, binary: bytes, name: str, kernel: Kernel) -> Launcher:
            if not self.linked:
                raise TargetError("the driver is too old for this code")
            return super().load(binary, name, kernel)

    compile_kernel(scaled_kernel(2.0), _Assembler())
    before = counts()
    device = Downgraded()
    assert not compile_kernel(scaled_kernel(2.0), device).from_cache
    assert change(before) == (1, 0, 0)
    assert len(device.linked) == 1


def test_bound_launches_read_the_slots_each_time() -> None:
    executable = compile_kernel(scaled_kernel(2.0), emitted.HOST)
    x, out = np.ones(8), np.zeros(8)
    slots = (ctypes.c_int64 * 3)(8, emitted.address_of(x), emitted.address_of(out))
    run = executable.bind(ctypes.addressof(slots))
    run(1)
    assert (out == 2).all()
    other = np.zeros(8)
    slots[0], slots[2] = 4, emitted.address_of(other)
    run(1)
    assert other.tolist() == [2] * 4 + [0] * 4
