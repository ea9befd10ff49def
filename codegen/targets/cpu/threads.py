"""Threads that share the programs of one kernel."""

import ctypes
import signal
import threading
import weakref
from collections.abc import Callable

from codegen.target import Target
from codegen.targets.cpu.loader import Loader
from codegen.targets.cpu.sharing import COPY_PIECE, Board
from codegen.targets.forks import watch

PARALLEL_COPY = 1 << 22
"""From this size on, in bytes, threads share a copy; most of all they share the page faults of fresh memory."""

STACK_BYTES = 1 << 20
"""Of a helper: kernels keep up to a quarter of it there."""

_ATTRIBUTE_BYTES = 256
"""Room for the C library's description of a thread to start: 56 to 64 bytes."""


class _Helpers:
    """The started threads of one board. They run machine code alone: Python does not know them.

    Parameters
    ----------
    board : Board
    count : int
    """

    def __init__(self, board: Board, count: int) -> None:
        self.board = board
        self._system = ctypes.CDLL(None)
        self._threads: list[ctypes.c_void_p] = []
        attributes = ctypes.create_string_buffer(_ATTRIBUTE_BYTES)
        self._system.pthread_attr_init(attributes)
        self._system.pthread_attr_setstacksize(attributes, ctypes.c_size_t(STACK_BYTES))
        # Signals are for threads that can handle them: a helper starts with all of them held back.
        held_back = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            for number in range(1, count + 1):
                thread = ctypes.c_void_p()
                words = ctypes.c_void_p(board.thread(number))
                entry = ctypes.c_void_p(board.serve)
                if self._system.pthread_create(ctypes.byref(thread), attributes, entry, words) != 0:
                    break  # the system gives no more threads; those that there are share the work
                self._threads.append(thread)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held_back)
            self._system.pthread_attr_destroy(attributes)

    def __len__(self) -> int:
        return len(self._threads)

    def end(self) -> None:
        """End the threads and wait for that."""
        self.board.end()
        while self._threads:
            self._system.pthread_join(self._threads.pop(), None)

    def forget(self) -> None:
        """In the child of a fork: the threads do not exist there."""
        self._threads.clear()


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
        if threads < 1:
            raise ValueError(f"thread pool: {threads} threads were asked for, expected 1 or more")
        self.threads = threads
        self._loader = loader
        self._target = target
        self._starting = threading.Lock()
        self._helpers: _Helpers | None = None
        self._finalizer: weakref.finalize[[], ThreadPool] | None = None
        watch(self)

    @property
    def helpers(self) -> int:
        """Threads that were started and have not ended."""
        return 0 if self._helpers is None else len(self._helpers)

    def bind(self, kernel: int, slots: int) -> Callable[[int], None]:
        """A function that runs so many programs of the entry point at address `kernel`, and returns when they are done."""
        kernel_argument, slots_argument = ctypes.c_void_p(kernel), ctypes.c_void_p(slots)

        def run(programs: int) -> None:
            # Read once: a fork or `close` may take it away.
            board = (self._helpers or self._start()).board
            board.run(board.start, kernel_argument, slots_argument, programs, *board.limits)

        return run

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes between addresses; the ranges do not overlap."""
        if nbytes < PARALLEL_COPY or self.threads == 1:
            ctypes.memmove(target, source, nbytes)
            return
        slots = (ctypes.c_int64 * 3)(target, source, nbytes)
        board = (self._helpers or self._start()).board
        self.bind(board.copy_pieces, ctypes.addressof(slots))(-(-nbytes // COPY_PIECE))

    def close(self) -> None:
        """End the threads; jobs then run on the calling one. Without this they end with the pool or the process."""
        with self._starting:
            self.threads = 1
            if self._finalizer is not None:
                self._finalizer()

    def before_fork(self) -> None:
        """Let no other thread be halfway through the start. A running job goes on: the child does not need it."""
        self._starting.acquire()

    def after_fork(self, in_child: bool) -> None:
        """Start over in the child, with another board: the threads that this one's words tell of do not exist there."""
        if in_child and self._helpers is not None and self._finalizer is not None:
            self._helpers.forget()
            self._finalizer.detach()
            self._helpers = None
        self._starting.release()

    def _start(self) -> _Helpers:
        with self._starting:
            if self._helpers is None:
                board = Board(self.threads, self._loader, self._target)
                self._helpers = _Helpers(board, self.threads - 1)
                # Neither knows the pool: a pool that nobody uses any more takes its threads with it.
                self._finalizer = weakref.finalize(self, self._helpers.end)
            return self._helpers
