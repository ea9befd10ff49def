"""What programs tell each other while they run: a running fold over a line of programs, in a fixed order.

The scheme is a look back over what earlier programs have published (Merrill and Garland, "Single-pass parallel prefix scan with
decoupled look-back", 2016), in three fixed levels instead of as far back as needed: which total is added to which does not
depend on which program is faster. Thread blocks start in the order of their numbers, so that those that others wait for run.
"""

from codegen.dtypes import DType
from codegen.ir.operations import PROGRAM_GROUP
from codegen.llvm import spelling
from codegen.llvm.context import EmissionContext
from codegen.llvm.core import Register
from codegen.llvm.hooks import Combine, Partial, ProgramLine
from codegen.targets.nvptx.lanes import WARP, fold_warp, lane_number
from codegen.targets.nvptx.shared import SPACE, SharedMemory

_BITS = PROGRAM_GROUP.bit_length() - 1
_GLOBAL = " addrspace(1)"


class _Exchange:
    """The emission of one `scan_programs`, by the first warp of a program."""

    def __init__(self, context: EmissionContext, line: ProgramLine, total: Register, combine: Combine) -> None:
        self.context = context
        self.writer = context.writer
        self.line = line
        self.total = total
        self.combine = combine
        self.lane = lane_number(context)
        self.is_first_lane = context.once(f"icmp eq i32 {self.lane}, 0")
        self.neutral = combine.identity((total,))[0]

    @property
    def dtype(self) -> DType:
        """Of what is handed in."""
        return self.total.dtype

    def number(self, level: int) -> str:
        """Number of the program's entry of a level, as an i64."""
        if level == 0:
            return self.line.piece
        return self.writer.value(f"lshr i64 {self.line.piece}, {_BITS * level}")

    def is_last(self, level: int) -> str:
        """Whether the program is the last one of its group of a level."""
        inside = self.writer.value(f"and i64 {self.line.piece}, {(1 << _BITS * level) - 1}")
        return self.writer.value(f"icmp eq i64 {inside}, {(1 << _BITS * level) - 1}")

    def place(self, level: int, number: str) -> str:
        """Position of an entry in both buffers."""
        place = self.writer.value(f"add i64 {self.line.first}, {number}")
        if level == 0:
            return place
        start = self.writer.value(f"mul i64 {self.line.span}, {level}")
        return self.writer.value(f"add i64 {place}, {start}")

    def _total_at(self, place: str) -> str:
        type_ = spelling.memory_type(self.dtype)
        return self.writer.value(f"getelementptr {type_}, ptr{_GLOBAL} {self.line.totals.pointer}, i64 {place}")

    def _flag_at(self, place: str) -> str:
        return self.writer.value(f"getelementptr i32, ptr{_GLOBAL} {self.line.flags.pointer}, i64 {place}")

    def hand_in(self, level: int, value: Register, condition: str) -> None:
        """Let others see the entry of a level, if the condition holds; one lane writes."""
        writer = self.writer
        write, behind = writer.new_label("publish"), writer.new_label("published")
        writer.branch(writer.value(f"and i1 {condition}, {self.is_first_lane}"), write, behind)
        writer.start(write)
        place = self.place(level, self.number(level))
        type_ = spelling.memory_type(self.dtype)
        size = self.dtype.itemsize
        writer.line(f"store {type_} {value.name}, ptr{_GLOBAL} {self._total_at(place)}, align {size}")
        flag = self._flag_at(place)
        writer.line(f'store atomic i32 1, ptr{_GLOBAL} {flag} syncscope("device") release, align 4')
        writer.jump(behind)
        writer.start(behind)

    def wait(self, level: int, number: str, condition: str) -> Register:
        """An entry of a level, once somebody has handed it in; the identity where the condition does not hold."""
        writer = self.writer
        before = writer.block
        enter, spin, ready, behind = (writer.new_label(name) for name in ("look", "spin", "ready", "seen"))
        writer.branch(condition, enter, behind)
        writer.start(enter)
        place = self.place(level, number)
        flag, total = self._flag_at(place), self._total_at(place)
        writer.jump(spin)
        writer.start(spin)
        loaded = writer.value(f'load atomic i32, ptr{_GLOBAL} {flag} syncscope("device") acquire, align 4')
        writer.branch(writer.value(f"icmp ne i32 {loaded}, 0"), ready, spin)
        writer.start(ready)
        type_ = spelling.memory_type(self.dtype)
        value = writer.value(f"load {type_}, ptr{_GLOBAL} {total}, align {self.dtype.itemsize}")
        writer.jump(behind)
        writer.start(behind)
        node = writer.phi(type_)
        node.add(value, ready)
        node.add(self.neutral.name, before)
        return Register(self.context.core, node.name, self.dtype, 1)

    def earlier_in_group(self, level: int) -> Register:
        """The fold of the entries before the program's own in its group of a level; every lane reads one."""
        writer = self.writer
        number = self.number(level)
        inside = writer.value(f"and i64 {number}, {PROGRAM_GROUP - 1}")
        wide = writer.value(f"zext i32 {self.lane} to i64")
        begin = writer.value(f"sub i64 {number}, {inside}")
        entry = self.wait(
            level, writer.value(f"add i64 {begin}, {wide}"), writer.value(f"icmp ult i64 {wide}, {inside}")
        )
        return fold_warp(self.context, (entry,), self.combine)[0]

    def merged(self, left: Register, right: Register) -> Register:
        """Two of them combined."""
        return self.combine.merge((left,), (right,))[0]

    def run(self) -> Register:
        """All levels; returns what came before the program."""
        self.hand_in(0, self.total, "true")
        before = self.earlier_in_group(0)
        self.hand_in(1, self.merged(before, self.total), self.is_last(1))
        before = self.merged(self.earlier_in_group(1), before)
        groups = self.number(2)
        has_earlier = self.writer.value(f"icmp ne i64 {groups}, 0")
        previous = self.writer.value(f"sub i64 {groups}, 1")
        before = self.merged(self.wait(2, previous, has_earlier), before)
        self.hand_in(2, self.merged(before, self.total), self.is_last(2))
        return before


def scan_programs(
    context: EmissionContext, shared: SharedMemory, line: ProgramLine, total: Partial, combine: Combine
) -> Partial:
    """What the programs before this one come to; the first warp finds out, and tells the others."""
    writer = context.writer
    exchange = _Exchange(context, line, total[0], combine)
    area = shared.scratch(context, 16)
    context.order.before_write(area.memory, total[0])
    begin, finished, join = (writer.new_label(name) for name in ("exchange", "told", "joined"))
    is_first_warp = context.once(f"icmp ult i32 {exchange.lane}, {WARP}")
    writer.branch(is_first_warp, begin, join)
    writer.start(begin)
    before = exchange.run()
    write = writer.new_label("tell")
    writer.branch(exchange.is_first_lane, write, finished)
    writer.start(write)
    type_ = spelling.memory_type(exchange.dtype)
    size = exchange.dtype.itemsize
    writer.line(f"store {type_} {before.name}, ptr{SPACE} {area.name}, align {size}")
    writer.jump(finished)
    writer.start(finished)
    writer.jump(join)
    writer.start(join)
    context.order.before_read(area.memory, area)
    told = writer.value(f"load {type_}, ptr{SPACE} {area.name}, align {size}")
    return (Register(context.core, told, exchange.dtype, 1),)
