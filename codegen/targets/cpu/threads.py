"""Threads that share the programs of one kernel. They claim chunks in machine code, without the interpreter's lock."""

import _thread
import ctypes
import os
import threading
import weakref
from collections.abc import Callable

import llvmlite.binding as llvm

from codegen.targets.cpu.description import host_target
from codegen.targets.cpu.loader import LoadedCode, Loader

CHUNKS_PER_THREAD = 8
"""Programs differ in time and threads start late: chunks this small keep all busy to within an eighth of their work,
and claiming one costs some tens of nanoseconds."""

_CLAIM_CHUNKS = """
declare i64 @llvm.smin.i64(i64, i64)

define i64 @claim_chunks(ptr %job, ptr %kernel, ptr %slots, i64 %programs, i64 %chunk) nounwind {
enter:
  %active = getelementptr i64, ptr %job, i64 16
  %entered = atomicrmw add ptr %active, i64 1 seq_cst
  br label %claim
claim:
  %begin = atomicrmw add ptr %job, i64 %chunk seq_cst
  %left = icmp slt i64 %begin, %programs
  br i1 %left, label %work, label %leave
work:
  %stop = add i64 %begin, %chunk
  %end = call i64 @llvm.smin.i64(i64 %stop, i64 %programs)
  call void %kernel(ptr %slots, i64 %begin, i64 %end)
  br label %claim
leave:
  %before = atomicrmw sub ptr %active, i64 1 seq_cst
  %others = sub i64 %before, 1
  ret i64 %others
}
"""
"""Run chunks until none is left; returns how many other threads were still at it. A job is two counters, each on a
cache line of its own: the next program to claim, and the threads inside. A thread that comes late finds no chunk and
touches neither kernel nor slots, so whoever started the job need only wait until the second counter is 0."""

_ACTIVE_WORD = 16
_JOB_WORDS = 32

ClaimChunks = Callable[[int, int, int, int, int], int]
_ClaimType = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


class _Job:
    """One parallel run of a kernel."""

    __slots__ = ("_address", "_claim", "_counters", "_kernel", "_slots", "chunk", "finished", "programs")

    def __init__(self, claim: ClaimChunks, kernel: int, slots: int, programs: int, chunk: int) -> None:
        self._claim = claim
        self._kernel = kernel
        self._slots = slots
        self._counters = (ctypes.c_int64 * _JOB_WORDS)()
        self._address = ctypes.addressof(self._counters)
        self.programs = programs
        self.chunk = chunk
        self.finished = _thread.allocate_lock()
        self.finished.acquire()

    @property
    def active(self) -> int:
        """Threads inside the job."""
        return self._counters[_ACTIVE_WORD]

    def work(self) -> None:
        """Run chunks until none is left; tell the starter if this was the last thread inside."""
        others = self._claim(self._address, self._kernel, self._slots, self.programs, self.chunk)
        if others == 0 and self.finished.locked():
            try:
                self.finished.release()
            except RuntimeError:  # another last thread was faster
                return

    def wait(self) -> None:
        """Return when no thread is inside. Interrupts wait too: a thread may still write to the kernel's buffers."""
        interrupt: BaseException | None = None
        while self.active:
            try:
                self.finished.acquire()
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


class _Worker:
    """One thread and the lock that it sleeps on."""

    __slots__ = ("_alarm", "_pool", "thread")

    def __init__(self, pool: "ThreadPool", number: int) -> None:
        self._alarm = _thread.allocate_lock()
        self._alarm.acquire()
        # A weak reference: a pool that nobody uses any more takes its threads with it.
        self._pool = weakref.ref(pool)
        self.thread = threading.Thread(target=self._serve, name=f"blockarray-{number}", daemon=True)
        self.thread.start()

    def wake(self) -> None:
        """Make the thread look for a job; nothing if it was told so already and has not looked yet."""
        if self._alarm.locked():
            try:
                self._alarm.release()
            except RuntimeError:  # told by another thread at this moment
                return

    def _serve(self) -> None:
        while True:
            self._alarm.acquire()
            pool = self._pool()
            if pool is None or pool.closed:
                return
            job = pool.job
            del pool
            if job is not None:
                job.work()
            del job


class ThreadPool:
    """Runs the programs of a kernel on several threads, the calling one among them.

    One job runs at a time; a thread that comes while another's job is running works alone, as all cores are busy.

    Parameters
    ----------
    threads : int
        Threads that share the work, the caller's included; the others start with the first parallel job.
    """

    def __init__(self, threads: int, loader: Loader) -> None:
        self._workers: list[_Worker] = []
        if threads < 1:
            raise ValueError(f"thread pool: {threads} threads were asked for, expected 1 or more")
        self.threads = threads
        self.job: _Job | None = None
        self.closed = False
        self._loader = loader
        self._turn = threading.Lock()
        self._code: LoadedCode | None = None
        self._claim: ClaimChunks | None = None
        if hasattr(os, "register_at_fork"):
            reference = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _start_over(reference))

    def run(self, kernel: int, slots: int, programs: int) -> bool:
        """Run programs ``0 <= p < programs`` of the entry point at address `kernel`; False: busy, nothing was run."""
        if self.threads == 1 or programs < 2 or not self._turn.acquire(blocking=False):
            return False
        try:
            claim = self._claim or self._start()
            sharing = min(self.threads, programs)
            chunk = max(1, programs // (sharing * CHUNKS_PER_THREAD))
            job = self.job = _Job(claim, kernel, slots, programs, chunk)
            for worker in self._workers[: sharing - 1]:
                worker.wake()
            job.work()
            job.wait()
        finally:
            self.job = None
            self._turn.release()
        return True

    def close(self) -> None:
        """End the threads. Without this they end when the pool is collected or the process does."""
        with self._turn:
            self.closed = True
            for worker in self._workers:
                worker.wake()
            for worker in self._workers:
                worker.thread.join()
            self._workers.clear()
            self.threads = 1

    def __del__(self) -> None:
        for worker in self._workers:
            worker.wake()

    def start_over(self) -> None:
        """In a forked child: the threads do not exist here, and a lock may have been held by one that does not."""
        self._turn = threading.Lock()
        self._workers = []
        self._claim = None
        self.job = None

    def _start(self) -> ClaimChunks:
        if self._code is None:
            self._code = self._loader.load(_compile_claim(), "claim_chunks")
        while len(self._workers) < self.threads - 1:
            self._workers.append(_Worker(self, len(self._workers) + 1))
        self._claim = _ClaimType(self._code.address)
        return self._claim


def _start_over(reference: "weakref.ref[ThreadPool]") -> None:
    pool = reference()
    if pool is not None:
        pool.start_over()


def _compile_claim() -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = host_target()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
    )
    return machine.emit_object(llvm.parse_assembly(_CLAIM_CHUNKS, llvm.create_context()))
