"""Memory accesses of one lane: up to 16 bytes at once, under a predicate where the edge of a buffer may be passed.

Predicated accesses are inline PTX: a branch around each of them would cost LLVM a basic block.
"""

from codegen import dtypes
from codegen.dtypes import DType
from codegen.llvm import spelling
from codegen.llvm.context import EmissionContext
from codegen.llvm.hooks import Access, Memory

_SPACES = {" addrspace(1)": "global", " addrspace(3)": "shared"}


def load_elements(
    context: EmissionContext, access: Access, fill: bool | int | float, pinned: bool = False
) -> list[str]:
    """Neighbouring elements into registers; a pinned load is not moved before a barrier that stands before it."""
    memory, writer = access.memory, context.writer
    element = spelling.memory_type(memory.dtype)
    if access.inside is not None or pinned:
        return _load_predicated(context, access, fill, pinned)
    type_ = spelling.vector(element, access.count)
    pointer = f"ptr{memory.space} {access.pointer}"
    loaded = writer.value(f"load {type_}, {pointer}, align {access.alignment}{memory.load_notes}")
    return _elements(context, memory.dtype, type_, loaded, access.count)


def store_elements(context: EmissionContext, access: Access, registers: list[str], owner: str | None) -> None:
    """Registers into neighbouring elements."""
    memory, writer = access.memory, context.writer
    element = spelling.memory_type(memory.dtype)
    values = [_to_memory(context, memory.dtype, name) for name in registers]
    type_ = spelling.vector(element, access.count)
    packed = values[0] if access.count == 1 else _vector(context, element, values)
    conditions = [condition for condition in (access.inside, owner) if condition is not None]
    if not conditions:
        pointer = f"ptr{memory.space} {access.pointer}"
        writer.line(f"store {type_} {packed}, {pointer}, align {access.alignment}{memory.store_notes}")
        return
    condition = conditions[0] if len(conditions) == 1 else writer.value(f"and i1 {conditions[0]}, {conditions[1]}")
    _store_predicated(context, access, type_, packed, condition)


def _elements(context: EmissionContext, dtype: DType, type_: str, loaded: str, count: int) -> list[str]:
    writer = context.writer
    names = [loaded]
    if count > 1:
        names = [writer.value(f"extractelement {type_} {loaded}, i64 {position}") for position in range(count)]
    if dtype is dtypes.boolean:
        names = [writer.value(f"icmp ne i8 {name}, 0") for name in names]
    return names


def _to_memory(context: EmissionContext, dtype: DType, name: str) -> str:
    return context.writer.value(f"zext i1 {name} to i8") if dtype is dtypes.boolean else name


def _vector(context: EmissionContext, element: str, names: list[str]) -> str:
    type_ = spelling.vector(element, len(names))
    packed = "poison"
    for position, name in enumerate(names):
        packed = context.writer.value(f"insertelement {type_} {packed}, {element} {name}, i64 {position}")
    return packed


class _Words:
    """How PTX moves a number of bytes: words of one width, one of its registers each."""

    def __init__(self, nbytes: int, itemsize: int) -> None:
        self.bits = 64 if itemsize == 8 else min(32, 8 * nbytes)
        self.count = 8 * nbytes // self.bits
        # There are no 8-bit registers in PTX: a byte travels in a 16-bit one.
        self.type = "i16" if self.bits == 8 else f"i{self.bits}"
        self.constraint = {8: "h", 16: "h", 32: "r", 64: "l"}[self.bits]
        self.register_bits = max(16, self.bits)
        self.suffix = ("" if self.count == 1 else f".v{self.count}") + (".u8" if self.bits == 8 else f".b{self.bits}")

    def names(self, first: int) -> str:
        """The operands of an inline instruction, from number `first` on."""
        listed = ", ".join(f"${first + position}" for position in range(self.count))
        return listed if self.count == 1 else f"{{{listed}}}"


def _space(memory: Memory) -> str:
    return _SPACES[memory.space]


def _load_predicated(context: EmissionContext, access: Access, fill: bool | int | float, pinned: bool) -> list[str]:
    memory, writer = access.memory, context.writer
    may_move = memory.constant and not pinned
    itemsize = memory.dtype.itemsize
    words = _Words(access.count * itemsize, itemsize)
    pattern = _fill_pattern(memory.dtype, fill, words.register_bits)
    moves = " ".join(f"mov.b{words.register_bits} ${position}, {pattern};" for position in range(words.count))
    way = ".nc" if may_move and memory.space == " addrspace(1)" else ""
    address, predicate = words.count, words.count + 1
    load = f"ld.{_space(memory)}{way}{words.suffix} {words.names(0)}, [${address}];"
    text = load if access.inside is None else f"{{ {moves} @${predicate} {load} }}"
    constraints = ",".join([f"=&{words.constraint}"] * words.count + ["l"] + ["b"] * (access.inside is not None))
    result = words.type if words.count == 1 else "{" + ", ".join([words.type] * words.count) + "}"
    effect = "" if may_move else " sideeffect"
    if not may_move:
        constraints += ",~{memory}"
    predicates = "" if access.inside is None else f", i1 {access.inside}"
    operands = f"(ptr{memory.space} {access.pointer}{predicates})"
    loaded = writer.value(f'call {result} asm{effect} "{text}", "{constraints}"{operands}')
    parts = [loaded]
    if words.count > 1:
        parts = [writer.value(f"extractvalue {result} {loaded}, {position}") for position in range(words.count)]
    if words.bits == 8:
        parts = [writer.value(f"trunc i16 {parts[0]} to i8")]
    word = f"i{words.bits}"
    joined = parts[0] if words.count == 1 else _vector(context, word, parts)
    source = spelling.vector(word, words.count)
    target = spelling.vector(spelling.memory_type(memory.dtype), access.count)
    if source != target:
        joined = writer.value(f"bitcast {source} {joined} to {target}")
    return _elements(context, memory.dtype, target, joined, access.count)


def _fill_pattern(dtype: DType, fill: bool | int | float, bits: int) -> str:
    """The bits of a word full of `fill`."""
    literal = int.from_bytes(spelling.to_bytes(dtype, fill), "little")
    pattern = 0
    for start in range(0, bits, dtype.bits):
        pattern |= literal << start
    return hex(pattern & (2**bits - 1))


def _store_predicated(context: EmissionContext, access: Access, type_: str, packed: str, condition: str) -> None:
    memory, writer = access.memory, context.writer
    itemsize = memory.dtype.itemsize
    words = _Words(access.count * itemsize, itemsize)
    word = f"i{words.bits}"
    target = spelling.vector(word, words.count)
    if type_ != target:
        packed = writer.value(f"bitcast {type_} {packed} to {target}")
    parts = [packed]
    if words.count > 1:
        parts = [writer.value(f"extractelement {target} {packed}, i64 {position}") for position in range(words.count)]
    if words.bits == 8:
        parts = [writer.value(f"zext i8 {parts[0]} to i16")]
    text = f"@$0 st.{_space(memory)}{words.suffix} [$1], {words.names(2)};"
    constraints = ",".join(["b", "l"] + [words.constraint] * words.count + ["~{memory}"])
    operands = ", ".join(
        [f"i1 {condition}", f"ptr{memory.space} {access.pointer}", *(f"{words.type} {p}" for p in parts)]
    )
    writer.line(f'call void asm sideeffect "{text}", "{constraints}"({operands})')
