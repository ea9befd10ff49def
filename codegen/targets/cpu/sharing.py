"""Machine code with which threads share the programs of a kernel, and sleep between two jobs: no Python, and not its lock.

A board is a piece of memory that all threads of a pool see, in lines of 16 words:

============  ============================================================================================
line          words
============  ============================================================================================
0             helpers inside the job
1             number of the job, odd while it may be entered; whether the helpers are to end
2             the job: kernel, slots, threads that share it, programs in a chunk
3             whether a job runs: who finds it so works alone
4 + 4 n       thread n, its segment: the next program to claim, the end; the board and n, for its start
5 + 4 n       thread n: whether it sleeps
6 + 4 n       thread n: the mutex of its sleep
7 + 4 n       thread n: the condition of its sleep
============  ============================================================================================

A job is shared out in as many segments as threads. Each thread begins in its own, so that it meets the same part of an
array in each kernel and finds it in its cache, and then helps with the others'. A helper enters by adding itself to line
0 and then looking whether the job is still open; who posted the job, thread 0, closes it and then waits until nobody is
inside. So no helper reads a job that is being changed, and one that comes late touches neither kernel nor slots.

Who wants to sleep says so first and then looks once more for what it waits for; who provides that looks for sleepers
after it has provided it. With sequentially consistent accesses one of the two sees the other. Thread n wakes threads 2 n + 1
and 2 n + 2: a call of the operating system takes some microseconds, and there may be many threads.
"""

import ctypes

import llvmlite.binding as llvm

from codegen.target import Target
from codegen.targets.cpu.loader import Loader

COPY_PIECE = 1 << 18
"""Bytes that one program of a copy moves."""

CHUNKS_PER_THREAD = 8
"""Programs differ in time and threads start late: chunks this small keep all busy to within an eighth of their work,
and claiming one costs some tens of nanoseconds."""

LINE_WORDS = 16
"""Words of 8 bytes in two cache lines, which processors fetch together. The systems' mutexes and conditions fit a line:
64 bytes is the largest of them."""

_NUMBER, _JOB, _RUNNING, _THREADS = LINE_WORDS, 2 * LINE_WORDS, 3 * LINE_WORDS, 4 * LINE_WORDS
_ENDING = _NUMBER + 1
_THREAD_WORDS, _ASLEEP, _MUTEX, _CONDITION = 4 * LINE_WORDS, LINE_WORDS, 2 * LINE_WORDS, 3 * LINE_WORDS

SYSTEM = ("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait", "pthread_cond_signal", "sched_yield")
"""Functions of the C library that the code calls."""

PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()", 2000),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)", 40000),
}
"""By machine: the hint between two looks at a word, and how often a thread looks before it sleeps. 40 to 100 microseconds
in all: a program that works on arrays of medium size comes back with the next job within that time, and waking a thread
on an idle core takes 5 to 50 (the most in a virtual machine)."""

NO_PAUSE = ("", "", 2000)

TURNS_TO_A_YIELD = 32
"""Of the turns that a thread looks for news: where cores are scarce, the system may wake a helper on the very core of the
thread that waits for it, which then has to wait until the helper is tired of looking."""

_MODULE = f"""
@declaration@
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @sched_yield()

; Let some time pass between two looks.
define internal void @rest(i64 %turn) nounwind {{
enter:
  @pause@
  %past = urem i64 %turn, {TURNS_TO_A_YIELD}
  %long = icmp eq i64 %past, {TURNS_TO_A_YIELD - 1}
  br i1 %long, label %yield, label %leave
yield:
  %yielded = call i32 @sched_yield()
  br label %leave
leave:
  ret void
}}

; The words of thread `own`.
define internal ptr @thread(ptr %board, i64 %own) alwaysinline nounwind {{
  %before = mul i64 %own, {_THREAD_WORDS}
  %word = add i64 %before, {_THREADS}
  %thread = getelementptr i64, ptr %board, i64 %word
  ret ptr %thread
}}

; Sleep until somebody wakes this thread, which has said that it sleeps.
define internal void @sleep(ptr %thread) nounwind {{
enter:
  %asleep = getelementptr i64, ptr %thread, i64 {_ASLEEP}
  %mutex = getelementptr i64, ptr %thread, i64 {_MUTEX}
  %condition = getelementptr i64, ptr %thread, i64 {_CONDITION}
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %look
look:
  %still = load atomic i64, ptr %asleep seq_cst, align 8
  %sleeps = icmp ne i64 %still, 0
  br i1 %sleeps, label %wait, label %leave
wait:
  %woken = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %look
leave:
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}

define internal void @wake(ptr %thread) nounwind {{
enter:
  %asleep = getelementptr i64, ptr %thread, i64 {_ASLEEP}
  %still = load atomic i64, ptr %asleep seq_cst, align 8
  %sleeps = icmp ne i64 %still, 0
  br i1 %sleeps, label %rouse, label %leave
rouse:
  %mutex = getelementptr i64, ptr %thread, i64 {_MUTEX}
  %condition = getelementptr i64, ptr %thread, i64 {_CONDITION}
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i64 0, ptr %asleep seq_cst, align 8
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  %signalled = call i32 @pthread_cond_signal(ptr %condition)
  br label %leave
leave:
  ret void
}}

; Wake the threads below `own` of those that share the job.
define internal void @wake_others(ptr %board, i64 %own) nounwind {{
enter:
  %job.threads = getelementptr i64, ptr %board, i64 {_JOB + 2}
  %threads = load i64, ptr %job.threads
  %twice = shl i64 %own, 1
  %first = add i64 %twice, 1
  %some = icmp ult i64 %first, %threads
  br i1 %some, label %one, label %leave
one:
  %first.thread = call ptr @thread(ptr %board, i64 %first)
  call void @wake(ptr %first.thread)
  %second = add i64 %twice, 2
  %more = icmp ult i64 %second, %threads
  br i1 %more, label %two, label %leave
two:
  %second.thread = call ptr @thread(ptr %board, i64 %second)
  call void @wake(ptr %second.thread)
  br label %leave
leave:
  ret void
}}

define internal void @post(ptr %board, ptr %kernel, ptr %slots, i64 %programs, i64 %threads) nounwind {{
enter:
  %job = getelementptr i64, ptr %board, i64 {_JOB}
  store ptr %kernel, ptr %job
  %job.slots = getelementptr i64, ptr %board, i64 {_JOB + 1}
  store ptr %slots, ptr %job.slots
  %job.threads = getelementptr i64, ptr %board, i64 {_JOB + 2}
  store i64 %threads, ptr %job.threads
  %chunks = mul i64 %threads, {CHUNKS_PER_THREAD}
  %share = udiv i64 %programs, %chunks
  %chunk = call i64 @llvm.umax.i64(i64 %share, i64 1)
  %job.chunk = getelementptr i64, ptr %board, i64 {_JOB + 3}
  store i64 %chunk, ptr %job.chunk
  br label %share.out
share.out:
  %segment = phi i64 [0, %enter], [%following, %share.out]
  %following = add i64 %segment, 1
  %before = mul i64 %programs, %segment
  %begin = udiv i64 %before, %threads
  %through = mul i64 %programs, %following
  %end = udiv i64 %through, %threads
  %next = call ptr @thread(ptr %board, i64 %segment)
  store i64 %begin, ptr %next
  %limit = getelementptr i64, ptr %next, i64 1
  store i64 %end, ptr %limit
  %more = icmp ult i64 %following, %threads
  br i1 %more, label %share.out, label %open
open:
  %number = getelementptr i64, ptr %board, i64 {_NUMBER}
  %old = atomicrmw add ptr %number, i64 1 seq_cst
  ret void
}}

define internal void @claim(ptr %board, i64 %own) nounwind {{
enter:
  %job = getelementptr i64, ptr %board, i64 {_JOB}
  %kernel = load ptr, ptr %job
  %job.slots = getelementptr i64, ptr %board, i64 {_JOB + 1}
  %slots = load ptr, ptr %job.slots
  %job.threads = getelementptr i64, ptr %board, i64 {_JOB + 2}
  %threads = load i64, ptr %job.threads
  %job.chunk = getelementptr i64, ptr %board, i64 {_JOB + 3}
  %chunk = load i64, ptr %job.chunk
  %invited = icmp ult i64 %own, %threads
  br i1 %invited, label %segment, label %leave
segment:
  %step = phi i64 [0, %enter], [%next.step, %exhausted]
  %turned = add i64 %own, %step
  %wraps = icmp uge i64 %turned, %threads
  %past = sub i64 %turned, %threads
  %which = select i1 %wraps, i64 %past, i64 %turned
  %next = call ptr @thread(ptr %board, i64 %which)
  %limit.word = getelementptr i64, ptr %next, i64 1
  %limit = load i64, ptr %limit.word
  br label %take
take:
  %begin = atomicrmw add ptr %next, i64 %chunk seq_cst
  %left = icmp slt i64 %begin, %limit
  br i1 %left, label %work, label %exhausted
work:
  %stop = add i64 %begin, %chunk
  %end = call i64 @llvm.smin.i64(i64 %stop, i64 %limit)
  call void %kernel(ptr %slots, i64 %begin, i64 %end)
  br label %take
exhausted:
  %next.step = add i64 %step, 1
  %more = icmp ult i64 %next.step, %threads
  br i1 %more, label %segment, label %leave
leave:
  ret void
}}

; Close the job and wait until no helper is inside.
define internal void @finish(ptr %board, i64 %turns) nounwind {{
enter:
  %number = getelementptr i64, ptr %board, i64 {_NUMBER}
  %old = atomicrmw add ptr %number, i64 1 seq_cst
  %own = call ptr @thread(ptr %board, i64 0)
  %asleep = getelementptr i64, ptr %own, i64 {_ASLEEP}
  br label %look
look:
  %turn = phi i64 [0, %enter], [%next, %rest], [0, %slept]
  %inside = load atomic i64, ptr %board seq_cst, align 8
  %busy = icmp ne i64 %inside, 0
  br i1 %busy, label %wait, label %leave
wait:
  %patient = icmp ult i64 %turn, %turns
  br i1 %patient, label %rest, label %tire
rest:
  call void @rest(i64 %turn)
  %next = add i64 %turn, 1
  br label %look
tire:
  store atomic i64 1, ptr %asleep seq_cst, align 8
  %again = load atomic i64, ptr %board seq_cst, align 8
  %still = icmp ne i64 %again, 0
  br i1 %still, label %slept, label %awake
slept:
  call void @sleep(ptr %own)
  br label %look
awake:
  store atomic i64 0, ptr %asleep seq_cst, align 8
  br label %leave
leave:
  ret void
}}

; Run all programs of a kernel: with the helpers, or alone while they are busy with another job.
define void @run(ptr %board, ptr %kernel, ptr %slots, i64 %programs, i64 %most, i64 %turns) nounwind {{
enter:
  %running = getelementptr i64, ptr %board, i64 {_RUNNING}
  %exchanged = cmpxchg ptr %running, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue {{i64, i1}} %exchanged, 1
  br i1 %free, label %share, label %alone
share:
  %threads = call i64 @llvm.umin.i64(i64 %most, i64 %programs)
  call void @post(ptr %board, ptr %kernel, ptr %slots, i64 %programs, i64 %threads)
  call void @wake_others(ptr %board, i64 0)
  call void @claim(ptr %board, i64 0)
  call void @finish(ptr %board, i64 %turns)
  store atomic i64 0, ptr %running seq_cst, align 8
  ret void
alone:
  call void %kernel(ptr %slots, i64 0, i64 %programs)
  ret void
}}

; What a helper does from its start to its end.
define ptr @serve(ptr %thread) nounwind {{
enter:
  %board.word = getelementptr i64, ptr %thread, i64 2
  %board = load ptr, ptr %board.word
  %own.word = getelementptr i64, ptr %thread, i64 3
  %own = load i64, ptr %own.word
  %turns.word = getelementptr i64, ptr %thread, i64 4
  %turns = load i64, ptr %turns.word
  %number = getelementptr i64, ptr %board, i64 {_NUMBER}
  %ending = getelementptr i64, ptr %board, i64 {_ENDING}
  %asleep = getelementptr i64, ptr %thread, i64 {_ASLEEP}
  %starter = call ptr @thread(ptr %board, i64 0)
  br label %look
look:
  %last = phi i64 [0, %enter], [%last, %rest], [%last, %slept], [%last, %awake], [%done, %left], [%done, %report]
  %turn = phi i64 [0, %enter], [%next, %rest], [0, %slept], [0, %awake], [0, %left], [0, %report]
  %job = load atomic i64, ptr %number seq_cst, align 8
  %odd = and i64 %job, 1
  %open = icmp ne i64 %odd, 0
  %new = icmp ne i64 %job, %last
  %offered = and i1 %open, %new
  br i1 %offered, label %come, label %wait
wait:
  %end.now = load atomic i64, ptr %ending seq_cst, align 8
  %ends = icmp ne i64 %end.now, 0
  br i1 %ends, label %leave, label %idle
idle:
  %patient = icmp ult i64 %turn, %turns
  br i1 %patient, label %rest, label %tire
rest:
  call void @rest(i64 %turn)
  %next = add i64 %turn, 1
  br label %look
tire:
  store atomic i64 1, ptr %asleep seq_cst, align 8
  %job.again = load atomic i64, ptr %number seq_cst, align 8
  %same.job = icmp eq i64 %job.again, %job
  %end.again = load atomic i64, ptr %ending seq_cst, align 8
  %goes.on = icmp eq i64 %end.again, 0
  %nothing = and i1 %same.job, %goes.on
  br i1 %nothing, label %slept, label %awake
slept:
  call void @sleep(ptr %thread)
  br label %look
awake:
  store atomic i64 0, ptr %asleep seq_cst, align 8
  br label %look
come:
  %others = atomicrmw add ptr %board, i64 1 seq_cst
  %again = load atomic i64, ptr %number seq_cst, align 8
  %still = icmp eq i64 %again, %job
  br i1 %still, label %help, label %left
help:
  call void @wake_others(ptr %board, i64 %own)
  call void @claim(ptr %board, i64 %own)
  br label %left
left:
  %done = phi i64 [%job, %help], [%last, %come]
  %before = atomicrmw sub ptr %board, i64 1 seq_cst
  %alone = icmp eq i64 %before, 1
  br i1 %alone, label %report, label %look
report:
  call void @wake(ptr %starter)
  br label %look
leave:
  ret ptr null
}}

; Tell all helpers to end.
define void @end(ptr %board, i64 %threads) nounwind {{
enter:
  %ending = getelementptr i64, ptr %board, i64 {_ENDING}
  store atomic i64 1, ptr %ending seq_cst, align 8
  br label %next
next:
  %number = phi i64 [0, %enter], [%following, %tell]
  %following = add i64 %number, 1
  %more = icmp ult i64 %following, %threads
  br i1 %more, label %tell, label %leave
tell:
  %thread = call ptr @thread(ptr %board, i64 %following)
  call void @wake(ptr %thread)
  br label %next
leave:
  ret void
}}

define void @copy_pieces(ptr %slots, i64 %begin, i64 %end) nounwind {{
  %target = load ptr, ptr %slots
  %source.slot = getelementptr i64, ptr %slots, i64 1
  %source = load ptr, ptr %source.slot
  %size.slot = getelementptr i64, ptr %slots, i64 2
  %size = load i64, ptr %size.slot
  %first = mul i64 %begin, {COPY_PIECE}
  %past = mul i64 %end, {COPY_PIECE}
  %last = call i64 @llvm.smin.i64(i64 %past, i64 %size)
  %count = sub i64 %last, %first
  %to = getelementptr i8, ptr %target, i64 %first
  %from = getelementptr i8, ptr %source, i64 %first
  %done = call ptr @memcpy(ptr %to, ptr %from, i64 %count)
  ret void
}}
"""

_Run = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)
_End = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class Board:
    """A board with the functions that work on it. It must live as long as a thread uses it.

    Parameters
    ----------
    threads : int
        The most that a job is shared by.
    loader : Loader
    target : Target
        Of this machine.

    Attributes
    ----------
    serve : int
        Address of what a helper runs, ``void *serve(void *thread)``.
    copy_pieces : int
        Address of a kernel with slots target, source, bytes; it has one program for each `COPY_PIECE` bytes.
    run : callable
        ``run(*start, kernel, slots, programs, *limits)`` runs all programs of a kernel and returns when they are done.
    start, limits : tuple
        What stands before and behind the job when `run` is called.
    """

    def __init__(self, threads: int, loader: Loader, target: Target) -> None:
        declaration, pause, turns = PAUSES.get(target.triple.split("-")[0], NO_PAUSE)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
        )
        text = _MODULE.replace("@declaration@", declaration).replace("@pause@", pause)
        binary = machine.emit_object(llvm.parse_assembly(text, llvm.create_context()))
        self._code = loader.load(binary, "run", "serve", "end", "copy_pieces", imports=SYSTEM)
        self._threads = threads
        self._words = (ctypes.c_int64 * (LINE_WORDS + _THREADS + _THREAD_WORDS * threads))()
        start = ctypes.addressof(self._words)
        self._address = start + -start % (8 * LINE_WORDS)
        system = ctypes.CDLL(None)
        for thread in range(threads):
            address = self.thread(thread)
            system.pthread_mutex_init(ctypes.c_void_p(address + 8 * _MUTEX), None)
            system.pthread_cond_init(ctypes.c_void_p(address + 8 * _CONDITION), None)
            at = (address - start) // 8
            self._words[at + 2 : at + 5] = [self._address, thread, turns]
        self.serve = self._code.address("serve")
        self.copy_pieces = self._code.address("copy_pieces")
        self.run = _Run(self._code.address("run"))
        self.start = ctypes.c_void_p(self._address)
        self.limits = (ctypes.c_int64(threads), ctypes.c_int64(turns))
        self._end = _End(self._code.address("end"))

    def thread(self, number: int) -> int:
        """Address of a thread's words."""
        return self._address + 8 * (_THREADS + _THREAD_WORDS * number)

    def end(self) -> None:
        """Tell all helpers to end."""
        self._end(self.start, self._threads)
