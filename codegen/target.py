"""Target: a frozen description of a machine. Facts only; nothing here decides or runs anything."""

from dataclasses import dataclass
from typing import Literal

TargetKind = Literal["cpu", "nvptx"]
Copies = Literal["tensor maps", "asynchronous", "panels"]


@dataclass(frozen=True)
class MatmulInstruction:
    """A way of multiplying tiles that a machine has, as far as passes and schedules have to know it.

    Attributes
    ----------
    name : str
        What operations call it by.
    operands : tuple of str
        Names of the dtypes that it multiplies; both operands have the same.
    accumulator : str
        Name of the dtype that it adds up in.
    rows, columns, inner : tuple of int
        Extents of the tiles that it is offered for.
    lanes : int
        Lanes that hold the accumulators.
    copies : {"tensor maps", "asynchronous", "panels"}
        How operands reach the program's memory: by the copy engine, which needs aligned rows, by copies of the lanes, or
        widened into panels on the host's stack.
    operations_per_cycle : int
        Multiplications and additions of one multiprocessor in one cycle.
    bytes_per_cycle : int
        What a multiprocessor gets of the operands in one cycle, from the cache that all share.
    """

    name: str
    operands: tuple[str, ...]
    accumulator: str
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    inner: tuple[int, ...]
    lanes: int
    copies: Copies
    operations_per_cycle: int
    bytes_per_cycle: int


@dataclass(frozen=True)
class Target:
    """What passes, schedules and the emitter may know of the machine that a kernel is compiled for.

    Attributes
    ----------
    kind : {"cpu", "nvptx"}
        Which back end emits for it; the rows' `on_target` lowerings go by it.
    triple : str
        LLVM's name of the machine.
    cpu : str
        LLVM's name of the processor (``"sapphirerapids"``, ``"sm_90a"``).
    features : str
        LLVM's feature list (``"+avx2,-avx512f"``, ``"+ptx80"``).
    register_bits : int
        Width of a vector register on the host, in bits; of the widest memory access of one lane on a GPU.
    lanes : int
        Lanes that run in step: 1 on the host, a warp's lanes on a GPU.
    max_lanes_per_program : int
        Lanes of the largest program that has all of its memory in one place: of a thread block on a GPU.
    clustered_lanes : int
        Lanes of the largest program that is a cluster of thread blocks, which tell each other what they fold; 0 if there
        are none.
    shared_bytes : int
        Memory that the lanes of a program can share, in bytes; on the host what a program may put on its stack.
    functions : frozenset of str
        Names of table rows, ``"half_conversion"`` and ``"fma"``, that the target lowers without a library
        call.
    libraries : frozenset of str
        External symbols that compiled code may call; the loader provides them.
    cores : int
        Processors that run programs at the same time: usable cores of the host, multiprocessors of a GPU.
    cache_bytes : int
        The last cache that a core has to itself on the host; the cache that all multiprocessors share on a GPU.
    matmul_instructions : tuple of MatmulInstruction
        The fastest first.
    """

    kind: TargetKind
    triple: str
    cpu: str
    features: str
    register_bits: int
    lanes: int
    max_lanes_per_program: int
    shared_bytes: int
    functions: frozenset[str]
    libraries: frozenset[str] = frozenset()
    cores: int = 1
    clustered_lanes: int = 0
    cache_bytes: int = 1 << 20
    matmul_instructions: tuple[MatmulInstruction, ...] = ()

    @property
    def name(self) -> str:
        """The name of the back end, ``"cpu"`` or ``"nvptx"``: the same as `kind`."""
        return self.kind

    @property
    def fingerprint(self) -> str:
        """Everything that can change the code of one kernel text; equal fingerprints share cached code.

        The number of cores and the caches are not in it: they change schedules, and a schedule shows in the kernel.
        """
        functions = ",".join(sorted(self.functions))
        libraries = ",".join(sorted(self.libraries))
        instructions = ",".join(row.name for row in self.matmul_instructions)
        return (
            f"{self.kind}|{self.triple}|{self.cpu}|{self.features}|register {self.register_bits}|lanes {self.lanes}"
            f"|functions {functions}|libraries {libraries}|shared {self.shared_bytes}|products {instructions}"
        )

    def matmul_instruction(self, name: str) -> MatmulInstruction:
        """The row called `name`."""
        for row in self.matmul_instructions:
            if row.name == name:
                return row
        raise KeyError(f"target {self.cpu} has no matmul instruction {name!r}")

    def has(self, name: str) -> bool:
        """Whether the target lowers the function `name` by itself."""
        return name in self.functions
