"""From the text of a module to machine code: parse, check, optimise, emit."""

import re
import struct
from collections.abc import Iterator
from functools import lru_cache

import llvmlite.binding as llvm

from codegen.errors import InternalCompilerError
from codegen.target import Target

# Definitions arrive as functions that are called once for each register: they are simplified first, then inlined.
# Measured on a chain of 12 operations over 4 registers, with its checked copy: 2 ms, where LLVM's own -O1 takes 8 ms
# for the same machine code. Loops come rotated and without invariants from the emitter and the passes before it.
PASSES = ("sroa", "instruction_combine", "simplify_cfg", "always_inliner", "new_gvn", "simplify_cfg")

_DECLARATION = re.compile(r"^declare [^@]*@([\w.]+)\(", re.MULTILINE)
_SUFFIX = re.compile(r"(\.(v\d+)?([if]\d+|p\d+))+$")

EVERYWHERE = frozenset(
    "llvm." + name
    for name in (
        "abs bitreverse bswap copysign ctlz ctpop cttz fabs fshl fshr smax smin sqrt umax umin "
        "sadd.sat ssub.sat uadd.sat usub.sat masked.load masked.store"
    ).split()
)
"""Intrinsics that every target turns into instructions, never into calls."""

BY_FUNCTION = {
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "trunc": "llvm.trunc",
    "rint": "llvm.rint",
    "maximum": "llvm.maximum",
    "minimum": "llvm.minimum",
    "exp2": "llvm.exp2",
    "fma": "llvm.fma",
}
"""Intrinsics that a target turns into instructions if it has the function."""


@lru_cache(maxsize=16)
def _machine(triple: str, cpu: str, features: str) -> llvm.TargetMachine:
    """LLVM's target machine, kept: making one takes as long as a small kernel's passes.

    No lock of ours: llvmlite lets one thread at a time into LLVM.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=2, reloc="pic", codemodel="small"
    )


class Module:
    """A module on its way from text to machine code."""

    def __init__(self, text: str, target: Target, kernel: str) -> None:
        check_declarations(text, target, kernel)
        self._target = target
        self._kernel = kernel
        self._machine = _machine(target.triple, target.cpu, target.features)
        self._module = _parse(text, kernel)
        self._module.data_layout = str(self._machine.target_data)

    def verify(self) -> None:
        """Let LLVM check the module."""
        try:
            self._module.verify()
        except RuntimeError as error:
            raise InternalCompilerError(f"llvm: the module of kernel {self._kernel} is not valid: {error}") from error

    def optimize(self) -> None:
        """Run the passes."""
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        builder = llvm.create_pass_builder(self._machine, options)
        manager = llvm.create_new_module_pass_manager()
        for name in PASSES:
            getattr(manager, f"add_{name}_pass")()
        manager.run(self._module, builder)

    def text(self) -> str:
        """The module as it is now."""
        return str(self._module)

    def assembly(self) -> str:
        """Assembly of the host, or PTX."""
        return self._machine.emit_assembly(self._module)

    def object_code(self) -> bytes:
        """An object file that refers to nothing but itself and the target's libraries."""
        binary = self._machine.emit_object(self._module)
        unknown = sorted(set(undefined_symbols(binary)) - self._target.libraries)
        if unknown:
            raise InternalCompilerError(
                f"llvm: code of kernel {self._kernel} calls {', '.join(unknown)}; expected no calls but to "
                f"{', '.join(sorted(self._target.libraries)) or 'nothing'}"
            )
        return binary


def _parse(text: str, kernel: str) -> llvm.ModuleRef:
    try:
        return llvm.parse_assembly(text, llvm.create_context())
    except RuntimeError as error:
        raise InternalCompilerError(f"llvm: the text of kernel {kernel} does not parse: {error}") from error


def check_declarations(text: str, target: Target, kernel: str) -> None:
    """Refuse a function that the target does not lower by itself, before LLVM sees it: it may abort the process."""
    for name in _DECLARATION.findall(text):
        if not _is_allowed(name, target):
            raise InternalCompilerError(
                f"llvm: kernel {kernel} calls {name}, which {target.name} does not lower to instructions; "
                "give the scalar function a definition for this target"
            )


def _is_allowed(name: str, target: Target) -> bool:
    base = _SUFFIX.sub("", name)
    if base in EVERYWHERE or base in target.libraries:
        return True
    if base.startswith("llvm.nvvm."):
        return target.kind == "nvptx"
    return any(base == intrinsic and target.has(function) for function, intrinsic in BY_FUNCTION.items())


def undefined_symbols(binary: bytes) -> Iterator[str]:
    """Names that a 64-bit little-endian ELF object file refers to and does not define; none for other formats."""
    if binary[:6] != b"\x7fELF\x02\x01":
        return
    (sections_at,) = struct.unpack_from("<Q", binary, 0x28)
    (section_bytes, section_count) = struct.unpack_from("<HH", binary, 0x3A)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", binary, sections_at + number * section_bytes)
        for number in range(section_count)
    ]
    for section in sections:
        _, kind, _, _, start, size, strings, _, _, entry_bytes = section
        if kind != 2:  # SHT_SYMTAB
            continue
        names_at = sections[strings][4]
        for at in range(start + entry_bytes, start + size, entry_bytes):
            name_at, _, _, defined_in = struct.unpack_from("<IBBH", binary, at)
            if defined_in == 0 and name_at:
                end = binary.index(b"\0", names_at + name_at)
                yield binary[names_at + name_at : end].decode()
