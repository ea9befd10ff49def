"""Target: a frozen description of a machine. Facts only; nothing here decides or runs anything."""

from dataclasses import dataclass
from typing import Literal

TargetKind = Literal["cpu", "nvptx"]


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
        Names of table rows, and ``"half_conversion"``, that the target lowers without a library call.
    libraries : frozenset of str
        External symbols that compiled code may call; the loader provides them.
    cores : int
        Processors that run programs at the same time: usable cores of the host, multiprocessors of a GPU.
    cache_bytes : int
        The last cache that a core has to itself on the host; the cache that all multiprocessors share on a GPU.
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
        return (
            f"{self.kind}|{self.triple}|{self.cpu}|{self.features}|register {self.register_bits}|lanes {self.lanes}"
            f"|functions {functions}|libraries {libraries}"
        )

    def has(self, name: str) -> bool:
        """Whether the target lowers the function `name` by itself."""
        return name in self.functions
