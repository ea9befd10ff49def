"""Threads that share the programs of one kernel."""

import _thread
import ctypes
import threading
import time
import weakref

from codegen.target import Target
from codegen.targets.cpu.loader import Loader
from codegen.targets.cpu.sharing import COPY_PIECE, Board
from codegen.targets.forks import watch

CHUNKS_PER_THREAD = 8
"""Programs differ in time and threads start late: chunks this small keep all busy to within an eighth of their work,
and claiming one costs some tens of nanoseconds."""

PARALLEL_COPY = 1 << 22
"""From this size on, in bytes, threads share a copy; most of all they share the page faults of fresh memory."""


LONGEST_NAP = 1e-3
"""Between two looks at a job whose last chunks take long, in seconds."""

FANOUT = 2
"""Sleepers that a thread wakes before it starts to work: waking one costs a few microseconds, and there may be many."""


class _Worker:
    """One thread and the lock that it sleeps on when no job has come for a while.

    Attributes
    ----------
    asleep : bool
        Must be woken for a job.
    next_to_wake : tuple of _Worker
        Sleepers that this one wakes when it is woken.
    """

    def __init__(self, pool: "ThreadPool", board: Board, number: int) -> None:
        self.asleep = False
        self.next_to_wake: tuple[_Worker, ...] = ()
        self._alarm = _thread.allocate_lock()
        self._alarm.acquire()
        self._board = board
        # A weak reference: a pool that nobody uses any more takes its threads with it.
        self._pool = weakref.ref(pool)
        self._number = number
        self.thread = threading.Thread(target=self._serve, name=f"blockarray-{number}", daemon=True)
        self.thread.start()

    def wake(self) -> None:
        """End the thread's sleep, or the next one if it is not asleep."""
        if self._alarm.locked():
            try:
                self._alarm.release()
            except RuntimeError:  # another thread did it at this moment
                return

    def _serve(self) -> None:
        done = 0
        while self._is_needed():
            done = self._board.help(self._number, done)
            self.asleep = True
            # Who posts a job looks for sleepers after it is open, and this one looks after it said that it sleeps.
            if not self._board.is_open(done):
                self._alarm.acquire()
            self.asleep = False
            others, self.next_to_wake = self.next_to_wake, ()
            for other in others:
                other.wake()

    def _is_needed(self) -> bool:
        pool = self._pool()
        return pool is not None and not pool.closed


class ThreadPool:
    """Runs the programs of a kernel on several threads, the calling one among them.

    One job runs at a time; a thread that comes while another's job is running works alone, as all cores are busy.

    Parameters
    ----------
    threads : int
        Threads that share the work, the caller's included; the others start with the first parallel job.
    loader : Loader
    target : Target
        Of this machine.
    """

    def __init__(self, threads: int, loader: Loader, target: Target) -> None:
        self._workers: list[_Worker] = []
        if threads < 1:
            raise ValueError(f"thread pool: {threads} threads were asked for, expected 1 or more")
        self.threads = threads
        self.closed = False
        self._loader = loader
        self._target = target
        self._turn = threading.Lock()
        self._board: Board | None = None
        watch(self)

    def run(self, kernel: int, slots: int, programs: int) -> bool:
        """Run programs ``0 <= p < programs`` of the entry point at address `kernel`; False: busy, nothing was run."""
        if self.threads == 1 or programs < 2 or not self._turn.acquire(blocking=False):
            return False
        try:
            self._share(self._board or self._start(), kernel, slots, programs)
        finally:
            self._turn.release()
        return True

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes between addresses; the ranges do not overlap."""
        if nbytes < PARALLEL_COPY or self.threads == 1 or not self._turn.acquire(blocking=False):
            ctypes.memmove(target, source, nbytes)
            return
        try:
            slots = (ctypes.c_int64 * 3)(target, source, nbytes)
            board = self._board or self._start()
            self._share(board, board.copy_pieces, ctypes.addressof(slots), -(-nbytes // COPY_PIECE))
        finally:
            self._turn.release()

    def close(self) -> None:
        """End the threads. Without this they end when the pool is collected or the process does."""
        with self._turn:
            self.closed = True
            self.threads = 1
            for worker in self._workers:
                worker.wake()
            for worker in self._workers:
                worker.thread.join()
            self._workers.clear()

    def __del__(self) -> None:
        for worker in self._workers:
            worker.wake()

    def before_fork(self) -> None:
        """Nothing: waiting for a running job could take long, and the child does not need it."""

    def after_fork(self, in_child: bool) -> None:
        """Start over in the child: the threads do not exist there, nor does one that may have held the lock."""
        if in_child:
            self._turn = threading.Lock()
            self._workers = []
            self._board = None

    def _share(self, board: Board, kernel: int, slots: int, programs: int) -> None:
        threads = min(self.threads, programs)
        if board.inside:  # an interrupt cut the last wait short
            _wait_for_helpers(board)
        try:
            board.post(kernel, slots, programs, threads, max(1, programs // (threads * CHUNKS_PER_THREAD)))
            self._wake_sleepers(threads - 1)
        finally:
            if board.is_open() and board.lead():
                _wait_for_helpers(board)

    def _wake_sleepers(self, wanted: int) -> None:
        sleepers = [worker for worker in self._workers[:wanted] if worker.asleep]
        if not sleepers:
            return
        for number, worker in enumerate(sleepers):
            first = FANOUT * (number + 1)
            worker.next_to_wake = tuple(sleepers[first : first + FANOUT])
        for worker in sleepers[:FANOUT]:
            worker.wake()

    def _start(self) -> Board:
        board = Board(self.threads, self._loader, self._target)
        while len(self._workers) < self.threads - 1:
            self._workers.append(_Worker(self, board, len(self._workers) + 1))
        self._board = board
        return board


def _wait_for_helpers(board: Board) -> None:
    """Return when nobody is inside. Interrupts wait too: a helper may still write to the kernel's buffers."""
    interrupt: BaseException | None = None
    start = time.perf_counter()
    while board.inside:
        try:
            # An eighth of the time waited so far: as exact as it needs to be, whatever the chunks take.
            time.sleep(min(LONGEST_NAP, (time.perf_counter() - start) / 8))
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
