"""Matrix instructions of NVIDIA GPUs: one row each."""

from codegen.target import MatmulInstruction

_HALVES = ("float16", "bfloat16")

WGMMA = MatmulInstruction(
    name="wgmma",
    operands=_HALVES,
    accumulator="float32",
    rows=(128,),
    columns=(16, 32, 64, 128, 256),
    inner=(64,),
    lanes=256,
    copies="tensor maps",
    operations_per_cycle=4096,
    bytes_per_cycle=58,
)
"""Two groups of four warps multiply tiles that the copy engine puts into shared memory; a third group feeds it (sm_90a)."""

MMA = MatmulInstruction(
    name="mma",
    operands=_HALVES,
    accumulator="float32",
    rows=(64, 128),
    columns=(16, 32, 64, 128),
    inner=(32, 16),
    lanes=128,
    copies="asynchronous",
    operations_per_cycle=2048,
    bytes_per_cycle=48,
)
"""Four warps multiply tiles that they copied themselves: ``mma.sync`` of 16 x 8 x 16 (sm_80 and newer)."""


def instructions_of(cpu: str, capability: tuple[int, int]) -> tuple[MatmulInstruction, ...]:
    """The rows of a GPU, the fastest first; `cpu` is its PTX target."""
    found = []
    if cpu == "sm_90a":
        found.append(WGMMA)
    if capability >= (8, 0):
        found.append(MMA)
    return tuple(found)
