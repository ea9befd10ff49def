"""A machine that runs PTX on NumPy: what the tests of the GPU emission run where there is no GPU.

All lanes of a program step together, each with its own place in the text; the lanes that are furthest behind go first, which
joins them again behind a branch. Accesses outside of a buffer, races between lanes that no barrier separates, and
barriers or shuffles that not all lanes reach are errors. The blocks of a cluster are lanes of one program, each block with shared
memory of its own.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from ptx_tensor import TENSOR_INSTRUCTIONS

from codegen.scalar import fused

Lanes = np.ndarray
WARP = 32
MOST_STEPS = 200_000
MOST_DYNAMIC_BYTES = 100 << 10

_INSTRUCTION = re.compile(r"^(?:@(!?)(%\w+)\s+)?([a-z]\w*(?:\.[\w:]+)*)\s*(.*?);$")
_TYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "b8": np.uint8, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64,
}  # fmt: skip


class MachineError(Exception):
    """The program did what it must not do."""


@dataclass
class Instruction:
    """One line of PTX."""

    text: str
    opcode: list[str]
    operands: list[str]
    predicate: str | None
    negated: bool


@dataclass
class Function:
    """The entry function, or a function that it calls."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass
class Program:
    """A parsed module."""

    functions: dict[str, Function] = field(default_factory=dict)
    entry: str = ""
    shared: dict[str, int] = field(default_factory=dict)
    shared_bytes: int = 0
    parameters: list[tuple[str, int]] = field(default_factory=list)
    lanes: int = 0
    blocks: int = 1


@dataclass
class Frame:
    """A function that is running: where its lanes are and what they hold."""

    function: Function
    places: Lanes
    alive: Lanes
    registers: dict[str, Lanes] = field(default_factory=dict)
    parameters: dict[str, Lanes] = field(default_factory=dict)


def parse(text: str) -> Program:
    """Read what LLVM wrote."""
    program = Program()
    text = re.sub(r"//[^\n]*", "", text)
    cluster = re.search(r"\.reqnctapercluster (\d+)", text)
    program.blocks = int(cluster.group(1)) if cluster else 1
    program.lanes = int(re.search(r"\.maxntid (\d+)", text).group(1)) * program.blocks
    for alignment, name, size in re.findall(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\]", text):
        start = -(-program.shared_bytes // int(alignment)) * int(alignment)
        program.shared[name] = start
        program.shared_bytes = start + int(size)
    for alignment, name in re.findall(r"\.extern \.shared \.align (\d+) \.b8 (\w+)\[\]", text):
        start = -(-program.shared_bytes // int(alignment)) * int(alignment)
        program.shared[name] = start
        program.shared_bytes = start + MOST_DYNAMIC_BYTES
    for header, body in re.findall(r"^(\.visible \.entry|\.func)(.*?)^\}$", text, re.MULTILINE | re.DOTALL):
        _add_function(program, header, body)
    return program


def _add_function(program: Program, header: str, text: str) -> None:
    signature, body = text.split("{", 1)
    name = re.search(r"([\w$]+)\(\s*(?:\.param|\))", signature[signature.rfind(") ") + 1 :]).group(1)
    function = program.functions[name] = Function(name)
    if "entry" in header:
        program.entry = name
        for kind, parameter in re.findall(r"\.param \.(\w+)[^,)\n]*? (\w+_param_\d+)", signature):
            program.parameters.append((parameter, int(kind[1:]) // 8))
    body = re.sub(r"(?m)^\s*\{ (.*) \}$", lambda found: found.group(1), body)
    for line in body.split("\n"):
        stripped = line.strip()
        for statement in _statements("" if stripped in ("{", "}") else stripped):
            _add(function, statement)


def _statements(line: str) -> list[str]:
    label = re.match(r"^(\$?\w+):\s*(.*)$", line)
    if label:
        return [label.group(1) + ":", *_statements(label.group(2))]
    return [part.strip() + ";" for part in line.split(";") if part.strip()]


def _add(function: Function, statement: str) -> None:
    if statement.endswith(":"):
        function.labels[statement[:-1]] = len(function.instructions)
        return
    if statement.startswith("."):
        return
    found = _INSTRUCTION.match(statement)
    if not found:
        raise MachineError(f"cannot read {statement!r}")
    negated, predicate, opcode, operands = found.groups()
    parts = re.findall(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,\s{\[(]+", operands)
    function.instructions.append(Instruction(statement, opcode.split("."), parts, predicate, negated == "!"))


class Memory:
    """Bytes, who touched them since the last barrier, and which of them exist."""

    def __init__(self, size: int) -> None:
        self.bytes = np.zeros(size, np.uint8)
        self.exists = np.zeros(size, bool)
        self.initialized = np.zeros(size, bool)
        self._touched: list[tuple[int, int]] = []
        self._written_by = np.full(size, -1, np.int16)
        self._read_by = np.full(size, -1, np.int16)

    def barrier(self) -> None:
        """Nothing before it can race with anything behind it."""
        for start, end in self._touched:
            self._written_by[start:end] = -1
            self._read_by[start:end] = -1
        self._touched.clear()

    def load(self, addresses: Lanes, lanes: Lanes, nbytes: int, where: str) -> Lanes:
        """`nbytes` at each address, as rows of bytes."""
        places = self._places(addresses, nbytes, where)
        if not self.initialized[places].all():
            raise MachineError(f"{where}: reads memory that nobody wrote")
        writers = self._written_by[places]
        if ((writers != -1) & (writers != lanes[:, None])).any():
            raise MachineError(f"{where}: reads what another lane wrote, without a barrier between")
        readers = self._read_by[places]
        self._read_by[places] = np.where((readers == -1) | (readers == lanes[:, None]), lanes[:, None], -2)
        for lane, place in zip(lanes, places, strict=True):
            shared_read = (self._read_by[place] != lane) & (self._read_by[place] != -1)
            self._read_by[place] = np.where(shared_read, -2, lane)
        return self.bytes[places]

    def store(self, addresses: Lanes, lanes: Lanes, rows: Lanes, where: str) -> None:
        """Rows of bytes at each address."""
        places = self._places(addresses, rows.shape[1], where)
        for lane, place, row in zip(lanes, places, rows, strict=True):
            same = (self.bytes[place] == row).all()
            others = (self._written_by[place] != -1) & (self._written_by[place] != lane)
            if others.any() and not same:
                raise MachineError(f"{where}: two lanes write different values, without a barrier between")
            readers = (self._read_by[place] != -1) & (self._read_by[place] != lane)
            if readers.any():
                raise MachineError(f"{where}: writes what another lane reads, without a barrier between")
            self.bytes[place] = row
            self._written_by[place] = lane
            self.initialized[place] = True

    def _places(self, addresses: Lanes, nbytes: int, where: str) -> Lanes:
        if (addresses % nbytes).any():
            raise MachineError(f"{where}: an address is not a multiple of {nbytes}")
        places = addresses[:, None] + np.arange(nbytes)
        if len(addresses):
            self._touched.append((max(0, int(addresses.min())), int(addresses.max()) + nbytes))
        if (places < 0).any() or (places >= len(self.bytes)).any() or not self.exists[places].all():
            raise MachineError(f"{where}: an address outside of all buffers")
        return places


class Machine:
    """Runs the programs of one kernel over a global memory."""

    def __init__(self, text: str) -> None:
        self.program = parse(text)
        self._frame: Frame | None = None

    def run(self, slots: list[bytes], memory: Memory, programs: int) -> None:
        """Run `programs` thread blocks, one after the other."""
        for number in range(programs):
            self._run_program(slots, memory, number, programs)
            memory.barrier()

    def _run_program(self, slots: list[bytes], memory: Memory, number: int, programs: int) -> None:
        program = self.program
        count = program.lanes
        self._slots = {name: slots[place][:size] for place, (name, size) in enumerate(program.parameters)}
        self._global = memory
        # The part of each block begins at a multiple of 16 bytes, as all alignments within them expect.
        self._block_bytes = -(-program.shared_bytes // 16) * 16
        self._shared = Memory(self._block_bytes * program.blocks)
        self._shared.exists[:] = True
        frame = Frame(program.functions[program.entry], np.zeros(count, int), np.ones(count, bool))
        frame.registers = {
            "%tid.x": np.arange(count, dtype=np.uint32) % np.uint32(count // program.blocks),
            "%cluster_ctarank": self._blocks_of(np.arange(count)).astype(np.uint32),
            "%ctaid.x": (number * program.blocks + self._blocks_of(np.arange(count))).astype(np.uint32),
            "%ctaid.y": np.zeros(count, np.uint32),
            "%nctaid.x": np.full(count, programs * program.blocks, np.uint32),
        }
        self._finish(frame)

    def _blocks_of(self, lanes: Lanes) -> Lanes:
        """Each lane's block in the cluster."""
        return lanes // (self.program.lanes // self.program.blocks)

    def _finish(self, frame: Frame) -> None:
        """Run a function until all its lanes have returned."""
        outer, self._frame = self._frame, frame
        steps = 0
        while frame.alive.any():
            steps += 1
            if steps > MOST_STEPS:
                raise MachineError("the program does not end")
            self._step()
        self._frame = outer

    def _step(self) -> None:
        frame = self._frame
        here = int(frame.places[frame.alive].min())
        lanes = np.flatnonzero(frame.alive & (frame.places == here))
        if here >= len(frame.function.instructions):
            frame.alive[lanes] = False
            return
        instruction = frame.function.instructions[here]
        frame.places[lanes] += 1
        if instruction.predicate is not None:
            holds = frame.registers[instruction.predicate][lanes]
            lanes = lanes[~holds if instruction.negated else holds]
            if not len(lanes):
                return
        with np.errstate(all="ignore"):
            self._execute(instruction, lanes)

    def _call(self, instruction: Instruction, lanes: Lanes) -> None:
        result, name, arguments = instruction.operands
        caller = self._frame
        alive = np.zeros(self.program.lanes, bool)
        alive[lanes] = True
        frame = Frame(self.program.functions[name], np.zeros(self.program.lanes, int), alive)
        for place, argument in enumerate(re.findall(r"\w+", arguments)):
            frame.parameters[f"{name}_param_{place}"] = caller.parameters[argument]
        self._finish(frame)
        caller.parameters[result.strip("()")] = frame.parameters["func_retval0"]

    def _execute(self, instruction: Instruction, lanes: Lanes) -> None:
        name = instruction.opcode[0]
        if name == "bra":
            self._frame.places[lanes] = self._frame.function.labels[instruction.operands[0]]
        elif name == "ret":
            self._frame.alive[lanes] = False
        elif name == "call":
            self._call(instruction, lanes)
        elif name == "barrier" and instruction.opcode[2] == "arrive":
            pass  # all lanes step together: they meet where they wait
        elif name in ("bar", "barrier"):
            if name == "bar" and self.program.blocks > 1:
                raise MachineError(f"{instruction.text}: a barrier of a single block of a cluster")
            if len(lanes) != self.program.lanes:
                raise MachineError(f"{instruction.text}: not all lanes arrive")
            self._shared.barrier()
            self._global.barrier()
        elif name in ("ld", "st"):
            self._access(instruction, lanes)
        elif name == "mapa":
            target, address, rank = instruction.operands
            inside = self._read(address, lanes, np.uint64)
            block = self._read(rank, lanes, np.uint32).astype(np.uint64)
            self._write(target, lanes, inside + block * np.uint64(self._block_bytes))
        elif name in TENSOR_INSTRUCTIONS:
            TENSOR_INSTRUCTIONS[name](self, instruction, lanes)
        elif name == "shfl":
            self._shuffle(instruction, lanes)
        else:
            self._compute(instruction, lanes)

    def _access(self, instruction: Instruction, lanes: Lanes) -> None:
        opcode = instruction.opcode
        kind = _TYPES[opcode[-1]]
        itemsize = np.dtype(kind).itemsize
        several = next((int(part[1:]) for part in opcode if re.fullmatch(r"v\d", part)), 1)
        if opcode[1] == "param":
            self._access_parameter(instruction, lanes, kind)
            return
        memory = self._shared if opcode[1].startswith("shared") else self._global
        address = instruction.operands[1 if opcode[0] == "ld" else 0]
        values = instruction.operands[0 if opcode[0] == "ld" else 1]
        names = re.findall(r"[%\w]+", values)
        where = instruction.text
        addresses = self._address(address, lanes)
        if opcode[1] == "shared":
            if (addresses >= self._block_bytes).any():
                raise MachineError(f"{where}: an address outside of the block's shared memory")
            addresses = addresses + self._blocks_of(lanes) * self._block_bytes
        if opcode[0] == "ld":
            rows = memory.load(addresses, lanes, several * itemsize, where)
            for place, name in enumerate(names):
                part = np.ascontiguousarray(rows[:, place * itemsize : (place + 1) * itemsize]).view(kind)[:, 0]
                self._write(name, lanes, part.astype(np.int64) if part.dtype.kind == "i" else part)
            return
        parts = [self._read(name, lanes, _unsigned(8 * itemsize)) for name in names]
        rows = np.concatenate([part[:, None].view(np.uint8).reshape(len(lanes), itemsize) for part in parts], axis=1)
        memory.store(addresses, lanes, rows, where)

    def _access_parameter(self, instruction: Instruction, lanes: Lanes, kind: type) -> None:
        parameters = self._frame.parameters
        if instruction.opcode[0] == "st":
            name = instruction.operands[0][1:-1]
            known = parameters.setdefault(name, np.zeros(self.program.lanes, np.uint64))
            known[lanes] = self._read(instruction.operands[1], lanes, _unsigned(8 * np.dtype(kind).itemsize))
            return
        name = instruction.operands[1][1:-1]
        if name in parameters:
            value = parameters[name][lanes].astype(_unsigned(8 * np.dtype(kind).itemsize))
        else:
            bits = 8 * len(self._slots[name])
            value = np.full(len(lanes), np.frombuffer(self._slots[name], _unsigned(bits))[0])
        self._write(instruction.operands[0], lanes, value)

    def _address(self, text: str, lanes: Lanes) -> Lanes:
        base, offset = re.fullmatch(r"\[([%\w]+)(?:\+(-?\d+))?\]", text).groups()
        if base in self.program.shared:
            start = np.full(len(lanes), self.program.shared[base], np.int64)
        else:
            start = self._read(base, lanes, np.int64)
        return start + int(offset or 0)

    def _shuffle(self, instruction: Instruction, lanes: Lanes) -> None:
        mode = instruction.opcode[2]
        target, source, distance, clamp, members = instruction.operands
        expected = bin(int(members) & 0xFFFFFFFF).count("1")
        if len(lanes) != self.program.lanes or min(self.program.lanes, WARP) != expected:
            raise MachineError(f"{instruction.text}: not all lanes take part")
        values = self._read(source, lanes, np.uint32)
        step = self._read(distance, lanes, np.uint32).astype(int)
        lane = lanes % WARP
        wanted = {"bfly": lane ^ step, "idx": step, "up": lane - step, "down": lane + step}[mode]
        outside = (wanted < int(clamp)) if mode == "up" else (wanted > int(clamp))
        wanted = np.where(outside, lane, wanted)
        self._write(target, lanes, values[(lanes - lane) + wanted])

    def _compute(self, instruction: Instruction, lanes: Lanes) -> None:
        opcode = instruction.opcode
        name = opcode[0]
        target, *sources = instruction.operands
        if name == "setp":
            self._write(target, lanes, self._compare(opcode[1], opcode[-1], sources, lanes))
            return
        if name == "cvt":
            self._write(target, lanes, _converted(self._read(sources[0], lanes, _TYPES[opcode[-1]]), opcode))
            return
        if opcode[-1] == "pred":
            parts = [self._read_predicate(source, lanes) for source in sources]
            self._write(target, lanes, _LOGIC[name](*parts))
            return
        if name == "selp":
            kind = _TYPES[opcode[-1]]
            a, b = (self._read(source, lanes, kind) for source in sources[:2])
            self._write(target, lanes, np.where(self._frame.registers[sources[2]][lanes], a, b))
            return
        if name == "mov":
            self._move(opcode, target, sources[0], lanes)
            return
        if name in ("mul", "mad") and opcode[1] == "wide":
            kind = _TYPES[opcode[-1]]
            wide = np.dtype(f"{np.dtype(kind).kind}{2 * np.dtype(kind).itemsize}").type
            a, b = (self._read(source, lanes, kind).astype(wide) for source in sources[:2])
            product = a * b
            self._write(target, lanes, product if name == "mul" else product + self._read(sources[2], lanes, wide))
            return
        kind = _TYPES[opcode[-1]]
        operation = _ARITHMETIC.get(name)
        if operation is None:
            raise MachineError(f"{instruction.text}: unknown instruction")
        shifts = name in ("shl", "shr")
        parts = [
            self._read(source, lanes, np.uint32 if shifts and place == 1 else kind)
            for place, source in enumerate(sources)
        ]
        self._write(target, lanes, operation(opcode, *parts))

    def _move(self, opcode: list[str], target: str, source: str, lanes: Lanes) -> None:
        if source in self.program.shared:
            self._write(target, lanes, np.full(len(lanes), self.program.shared[source], np.uint64))
        elif target.startswith("{"):
            names = re.findall(r"[%\w]+", target)
            whole = self._read(source, lanes, _TYPES[opcode[-1]])
            width = 8 * whole.itemsize // len(names)
            for place, name in enumerate(names):
                if name != "_":
                    self._write(name, lanes, (whole >> whole.dtype.type(place * width)).astype(_unsigned(width)))
        elif source.startswith("{"):
            names = re.findall(r"[%\w]+", source)
            kind = _TYPES[opcode[-1]]
            width = 8 * np.dtype(kind).itemsize // len(names)
            whole = np.zeros(len(lanes), kind)
            for place, name in enumerate(names):
                part = self._read(name, lanes, _unsigned(width)).astype(kind)
                whole |= part << kind(place * width)
            self._write(target, lanes, whole)
        else:
            self._write(target, lanes, self._read(source, lanes, _TYPES[opcode[-1]]))

    def _compare(self, relation: str, kind: str, sources: list[str], lanes: Lanes) -> Lanes:
        a, b = (self._read(source, lanes, _TYPES[kind]) for source in sources[:2])
        if relation in ("nan", "num"):
            ordered = ~(np.isnan(a) | np.isnan(b))
            return ordered if relation == "num" else ~ordered
        unordered = kind.startswith("f") and relation.endswith("u") and len(relation) == 3
        result = _RELATIONS[relation[:2]](a, b)
        if kind.startswith("f"):
            if unordered:
                return result | np.isnan(a) | np.isnan(b)
            return result & ~(np.isnan(a) | np.isnan(b))
        return result

    def _read_predicate(self, source: str, lanes: Lanes) -> Lanes:
        if source.startswith("%"):
            return self._frame.registers[source][lanes]
        return np.full(len(lanes), int(source) != 0)

    def _read(self, source: str, lanes: Lanes, kind: type) -> Lanes:
        dtype = np.dtype(kind)
        if source.startswith("%"):
            raw = self._frame.registers[source][lanes]
            unsigned = np.dtype(_unsigned(8 * dtype.itemsize))
            return raw.astype(unsigned).view(dtype)
        if source.startswith(("0f", "0d")):
            bits = np.array([int(source[2:], 16)], np.uint32 if source[1] == "f" else np.uint64)
            value = bits.view(dtype)[0]
        elif dtype.kind == "f" and source.startswith("0x"):
            value = np.array([int(source, 16)], _unsigned(8 * dtype.itemsize)).view(dtype)[0]
        else:
            number = int(source.rstrip("U"), 0) & (2 ** (8 * dtype.itemsize) - 1)
            value = np.array([number], _unsigned(8 * dtype.itemsize)).view(dtype)[0]
        return np.full(len(lanes), value, dtype)

    def _write(self, target: str, lanes: Lanes, values: Lanes) -> None:
        if target == "_":
            return
        if values.dtype != bool:
            values = np.ascontiguousarray(values).view(_unsigned(8 * values.dtype.itemsize)).astype(np.uint64)
        known = self._frame.registers.get(target)
        if known is None:
            known = self._frame.registers[target] = np.zeros(self.program.lanes, values.dtype)
        known[lanes] = values


def _unsigned(bits: int) -> type:
    return {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[bits]


def _converted(value: Lanes, opcode: list[str]) -> Lanes:
    target, source = np.dtype(_TYPES[opcode[-2]]), value.dtype
    modes = opcode[1:-2]
    if source.kind == "f" and target.kind == "f":
        if target.itemsize >= source.itemsize and modes:
            rounding = {"rni": np.rint, "rmi": np.floor, "rpi": np.ceil, "rzi": np.trunc}.get(modes[0])
            if rounding is not None:
                return rounding(value).astype(target)
        return value.astype(target)
    if source.kind == "f":
        limits = np.iinfo(target)
        wide = np.nan_to_num(np.trunc(value.astype(np.float64)), nan=0.0)
        result = np.clip(wide, float(limits.min), float(limits.max))
        top = result >= float(limits.max)
        return np.where(top, limits.max, np.where(top, 0, result).astype(target)).astype(target)
    return value.astype(target)


def _permute(opcode: list[str], a: Lanes, b: Lanes, selector: Lanes) -> Lanes:
    bytes_ = np.concatenate([part[:, None].view(np.uint8).reshape(len(part), 4) for part in (a, b)], axis=1)
    result = np.zeros(len(a), np.uint32)
    for place in range(4):
        chosen = (selector >> np.uint32(4 * place)) & np.uint32(0xF)
        byte = bytes_[np.arange(len(a)), chosen & np.uint32(7)].astype(np.uint32)
        sign = np.where(byte & 0x80, np.uint32(0xFF), np.uint32(0))
        byte = np.where(chosen & np.uint32(8), sign, byte)
        result |= byte << np.uint32(8 * place)
    return result


def _extract(opcode: list[str], a: Lanes, position: Lanes, length: Lanes) -> Lanes:
    bits = 8 * a.itemsize
    kept = a.astype(np.uint64) >> position.astype(np.uint64)
    kept &= (np.uint64(1) << length.astype(np.uint64)) - np.uint64(1)
    if a.dtype.kind == "i":
        top = (kept >> (length.astype(np.uint64) - np.uint64(1))) & np.uint64(1)
        kept |= np.where(top == 1, ~np.uint64(0) << length.astype(np.uint64), np.uint64(0))
    return kept.astype(_unsigned(bits)).view(a.dtype)


def _shift(opcode: list[str], a: Lanes, distance: Lanes) -> Lanes:
    bits = 8 * a.itemsize
    limited = np.minimum(distance, bits - 1).astype(a.dtype)
    if opcode[0] == "shl":
        return np.where(distance >= bits, a.dtype.type(0), a << limited)
    if a.dtype.kind == "i":
        return a >> limited
    return np.where(distance >= bits, a.dtype.type(0), a >> limited)


def _divided(opcode: list[str], a: Lanes, b: Lanes) -> Lanes:
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, a.dtype.type(1), b)
    if a.dtype.kind == "u":
        return a // safe
    quotients = [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, safe, strict=True)]
    return np.array(quotients, object).astype(a.dtype)


def _remainder(opcode: list[str], a: Lanes, b: Lanes) -> Lanes:
    return a - _divided(opcode, a, b) * b


def _fused(opcode: list[str], a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return fused.multiply_add(a, b, c)


def _multiplied(opcode: list[str], a: Lanes, b: Lanes) -> Lanes:
    if opcode[1] != "hi":
        return a * b
    width = 8 * a.itemsize
    return np.array([(int(x) * int(y)) >> width for x, y in zip(a, b, strict=True)], object).astype(a.dtype)


def _maximum(opcode: list[str], a: Lanes, b: Lanes) -> Lanes:
    if a.dtype.kind != "f":
        return np.maximum(a, b)
    return np.maximum(a, b) if "NaN" in opcode else np.fmax(a, b)


def _minimum(opcode: list[str], a: Lanes, b: Lanes) -> Lanes:
    if a.dtype.kind != "f":
        return np.minimum(a, b)
    return np.minimum(a, b) if "NaN" in opcode else np.fmin(a, b)


def _funnel(opcode: list[str], low: Lanes, high: Lanes, distance: Lanes) -> Lanes:
    both = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    count = (distance & 31 if "wrap" in opcode else np.minimum(distance, 32)).astype(np.uint64)
    if opcode[1] == "l":
        return (both >> (np.uint64(32) - count)).astype(np.uint32)
    return (both >> count).astype(np.uint32)


def _leading_zeros(opcode: list[str], a: Lanes) -> Lanes:
    return np.array([8 * a.itemsize - int(x).bit_length() for x in a], np.uint32)


def _copysign(opcode: list[str], sign: Lanes, magnitude: Lanes) -> Lanes:
    return np.copysign(magnitude, sign)


_ARITHMETIC: dict[str, Callable[..., Lanes]] = {
    "add": lambda opcode, a, b: a + b,
    "sub": lambda opcode, a, b: a - b,
    "mul": _multiplied,
    "mad": lambda opcode, a, b, c: a * b + c,
    "fma": _fused,
    "div": _divided,
    "rem": _remainder,
    "rcp": lambda opcode, a: a.dtype.type(1) / a,
    "sqrt": lambda opcode, a: np.sqrt(a),
    "neg": lambda opcode, a: -a if a.dtype.kind != "u" else np.uint64(0).astype(a.dtype) - a,
    "abs": lambda opcode, a: np.abs(a),
    "and": lambda opcode, a, b: a & b,
    "or": lambda opcode, a, b: a | b,
    "xor": lambda opcode, a, b: a ^ b,
    "not": lambda opcode, a: ~a,
    "shl": _shift,
    "shr": _shift,
    "min": _minimum,
    "max": _maximum,
    "bfe": _extract,
    "prmt": _permute,
    "popc": lambda opcode, a: np.bitwise_count(a).astype(np.uint32),
    "clz": _leading_zeros,
    "copysign": _copysign,
    "shf": _funnel,
    "ex2": lambda opcode, a: np.exp2(a),
}
_LOGIC: dict[str, Callable[..., Lanes]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "mov": lambda a: a,
}
_RELATIONS: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}
