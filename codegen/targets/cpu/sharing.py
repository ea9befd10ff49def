"""Machine code with which threads share the programs of a kernel: between two jobs they need no Python and not its lock.

A board is a piece of memory that all threads of a pool see, in lines of 16 words:

========  =====================================================================================================
line      words
========  =====================================================================================================
0         helpers inside the job
1         number of the job; odd while it may be entered
2         the job: kernel, slots, threads that share it, programs in a chunk
3 + n     segment n: the next program to claim, the end
========  =====================================================================================================

A job is shared out in as many segments as threads. Each thread begins in its own, so that it meets the same part of an
array in each kernel and finds it in its cache, and then helps with the others'. A helper enters by adding itself to line
0 and then looking whether the job is still open; who posted the job closes it and then waits until nobody is inside. So
no helper reads a job that is being changed, and one that comes late touches neither kernel nor slots.
"""

import ctypes

import llvmlite.binding as llvm

from codegen.target import Target
from codegen.targets.cpu.loader import Loader

COPY_PIECE = 1 << 18
"""Bytes that one program of a copy moves."""

LINE_WORDS = 16
"""Words of 8 bytes in two cache lines, which processors fetch together."""

_NUMBER, _JOB, _SEGMENTS = LINE_WORDS, 2 * LINE_WORDS, 3 * LINE_WORDS

PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()", 1000),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)", 20000),
}
"""By machine: the hint between two looks at a word, and how often a thread looks before it sleeps. 20 to 50 microseconds
in all, which is what it takes to wake a thread on another core (25 in a virtual machine)."""

NO_PAUSE = ("", "", 1000)

_MODULE = f"""
@declaration@
declare i64 @llvm.smin.i64(i64, i64)
declare ptr @memcpy(ptr, ptr, i64)

define void @post(ptr %board, ptr %kernel, ptr %slots, i64 %programs, i64 %threads, i64 %chunk) nounwind {{
enter:
  %job = getelementptr i64, ptr %board, i64 {_JOB}
  store ptr %kernel, ptr %job
  %job.slots = getelementptr i64, ptr %board, i64 {_JOB + 1}
  store ptr %slots, ptr %job.slots
  %job.threads = getelementptr i64, ptr %board, i64 {_JOB + 2}
  store i64 %threads, ptr %job.threads
  %job.chunk = getelementptr i64, ptr %board, i64 {_JOB + 3}
  store i64 %chunk, ptr %job.chunk
  br label %share
share:
  %segment = phi i64 [0, %enter], [%following, %share]
  %following = add i64 %segment, 1
  %before = mul i64 %programs, %segment
  %begin = udiv i64 %before, %threads
  %through = mul i64 %programs, %following
  %end = udiv i64 %through, %threads
  %line = shl i64 %segment, 4
  %word = add i64 %line, {_SEGMENTS}
  %next = getelementptr i64, ptr %board, i64 %word
  store i64 %begin, ptr %next
  %limit = getelementptr i64, ptr %next, i64 1
  store i64 %end, ptr %limit
  %more = icmp ult i64 %following, %threads
  br i1 %more, label %share, label %open
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
  %line = shl i64 %which, 4
  %word = add i64 %line, {_SEGMENTS}
  %next = getelementptr i64, ptr %board, i64 %word
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

define i64 @lead(ptr %board, i64 %turns) nounwind {{
enter:
  call void @claim(ptr %board, i64 0)
  %number = getelementptr i64, ptr %board, i64 {_NUMBER}
  %old = atomicrmw add ptr %number, i64 1 seq_cst
  br label %look
look:
  %turn = phi i64 [0, %enter], [%next, %rest]
  %inside = load atomic i64, ptr %board seq_cst, align 8
  %busy = icmp ne i64 %inside, 0
  %patient = icmp ult i64 %turn, %turns
  %again = and i1 %busy, %patient
  br i1 %again, label %rest, label %leave
rest:
  @pause@
  %next = add i64 %turn, 1
  br label %look
leave:
  ret i64 %inside
}}

define i64 @help(ptr %board, i64 %own, i64 %done, i64 %turns) nounwind {{
enter:
  %number = getelementptr i64, ptr %board, i64 {_NUMBER}
  br label %look
look:
  %last = phi i64 [%done, %enter], [%last, %rest], [%last, %missed], [%job, %helped]
  %turn = phi i64 [0, %enter], [%next, %rest], [%turn, %missed], [0, %helped]
  %job = load atomic i64, ptr %number seq_cst, align 8
  %odd = and i64 %job, 1
  %open = icmp ne i64 %odd, 0
  %new = icmp ne i64 %job, %last
  %offered = and i1 %open, %new
  br i1 %offered, label %come, label %wait
wait:
  %patient = icmp ult i64 %turn, %turns
  br i1 %patient, label %rest, label %leave
rest:
  @pause@
  %next = add i64 %turn, 1
  br label %look
come:
  %others = atomicrmw add ptr %board, i64 1 seq_cst
  %again = load atomic i64, ptr %number seq_cst, align 8
  %still = icmp eq i64 %again, %job
  br i1 %still, label %helped, label %missed
missed:
  %unentered = atomicrmw sub ptr %board, i64 1 seq_cst
  br label %look
helped:
  call void @claim(ptr %board, i64 %own)
  %left = atomicrmw sub ptr %board, i64 1 seq_cst
  br label %look
leave:
  ret i64 %last
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

_Post = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)
_Lead = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
_Help = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Board:
    """A board with the functions that work on it.

    Parameters
    ----------
    threads : int
        The most that a job is shared by.
    loader : Loader
    target : Target
        Of this machine.

    Attributes
    ----------
    copy_pieces : int
        Address of a kernel with slots target, source, bytes; it has one program for each `COPY_PIECE` bytes.
    """

    def __init__(self, threads: int, loader: Loader, target: Target) -> None:
        declaration, pause, self._turns = PAUSES.get(target.triple.split("-")[0], NO_PAUSE)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
        )
        text = _MODULE.replace("@declaration@", declaration).replace("@pause@", pause)
        binary = machine.emit_object(llvm.parse_assembly(text, llvm.create_context()))
        self._code = loader.load(binary, "post", "lead", "help", "copy_pieces")
        self._words = (ctypes.c_int64 * (_SEGMENTS + LINE_WORDS * threads))()
        self._address = ctypes.c_void_p(ctypes.addressof(self._words))
        self._post = _Post(self._code.address("post"))
        self._lead = _Lead(self._code.address("lead"))
        self._help = _Help(self._code.address("help"))
        self.copy_pieces = self._code.address("copy_pieces")

    @property
    def inside(self) -> int:
        """Helpers inside the job."""
        return self._words[0]

    def is_open(self, done: int = 0) -> bool:
        """Whether there is a job that may be entered, another than number `done` (no job has number 0)."""
        number = self._words[_NUMBER]
        return number % 2 == 1 and number != done

    def post(self, kernel: int, slots: int, programs: int, threads: int, chunk: int) -> None:
        """Open a job; the one before has been left by all."""
        self._post(self._address, kernel, slots, programs, threads, chunk)

    def lead(self) -> int:
        """Work on the job until no chunk is left, close it, wait a short while for the helpers; those still inside."""
        return self._lead(self._address, self._turns)

    def help(self, own: int, done: int) -> int:
        """Work on jobs until none has come for a short while; the number of the last one."""
        return self._help(self._address, own, done, self._turns)
