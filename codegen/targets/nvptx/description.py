"""Descriptions of NVIDIA GPUs; made from a table, so that code can be generated on a machine without one."""

from dataclasses import dataclass, replace

from codegen.errors import TargetError
from codegen.target import Target
from codegen.targets.nvptx.matmul_instructions import instructions_of

TRIPLE = "nvptx64-nvidia-cuda"
WARP_LANES = 32
LANES_PER_BLOCK = 1024
# A program of more lanes is a cluster of blocks of so many each. On an H200 a softmax over rows of 65536 runs at 0.87 of the
# copy bandwidth in two blocks of 1024 lanes, at 0.67 in eight of 512: the fewer blocks wait for one another, the better.
# Eight blocks are the most that every device with clusters takes.
LANES_PER_CLUSTERED_BLOCK = 1024
_BLOCKS_PER_CLUSTER = 8
ACCESS_BITS = 128
"""The widest load or store of one lane."""

_ALWAYS = frozenset(
    {
        "sqrt",
        "absolute",
        "fabs",
        "copysign",
        "bitwise_count",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "half_conversion",
        "fma",
    }
)
_NAN_PROPAGATING = frozenset({"maximum", "minimum"})


@dataclass(frozen=True)
class Generation:
    """One row of the table.

    Attributes
    ----------
    cpu : str
        The PTX target; the suffix ``a`` gives the instructions of this generation alone.
    capability : tuple of int
        Compute capability, major and minor.
    ptx : int
        The lowest PTX ISA version that has the target, times ten. The lowest, so that older drivers take the code.
    shared_bytes : int
        Shared memory that a thread block may ask for (CUDA programming guide, technical specifications per capability).
    multiprocessors : int
        Of the generation's usual large card; a real device's own number replaces it.
    cache_bytes : int
        Second-level cache of that card.
    """

    cpu: str
    capability: tuple[int, int]
    ptx: int
    shared_bytes: int
    multiprocessors: int
    cache_bytes: int


GENERATIONS = (
    Generation("sm_75", (7, 5), 63, 64 << 10, 40, 4 << 20),
    Generation("sm_80", (8, 0), 70, 163 << 10, 108, 40 << 20),
    Generation("sm_86", (8, 6), 71, 99 << 10, 84, 6 << 20),
    Generation("sm_87", (8, 7), 74, 163 << 10, 16, 4 << 20),
    Generation("sm_89", (8, 9), 78, 99 << 10, 142, 72 << 20),
    Generation("sm_90a", (9, 0), 80, 227 << 10, 132, 50 << 20),
    Generation("sm_100a", (10, 0), 86, 227 << 10, 148, 126 << 20),
    Generation("sm_103a", (10, 3), 88, 227 << 10, 148, 126 << 20),
    Generation("sm_110a", (11, 0), 90, 227 << 10, 20, 32 << 20),
    Generation("sm_120a", (12, 0), 87, 99 << 10, 188, 128 << 20),
    Generation("sm_121a", (12, 1), 88, 99 << 10, 48, 24 << 20),
)
"""Ascending by capability."""


def blocks_of_program(lane_count: int) -> int:
    """Thread blocks of a program with so many lanes."""
    return 1 if lane_count <= LANES_PER_BLOCK else lane_count // LANES_PER_CLUSTERED_BLOCK


def nvptx_target(cpu: str) -> Target:
    """The target of a PTX name such as ``"sm_90a"``; no GPU is needed."""
    for generation in GENERATIONS:
        if generation.cpu == cpu:
            return _target(generation)
    raise TargetError(
        f"gpu: there is no description of {cpu!r}, expected one of {', '.join(row.cpu for row in GENERATIONS)}"
    )


def target_of_capability(major: int, minor: int) -> Target:
    """The target of a device: its own row, or plain code of the newest older generation, which it also runs."""
    older = [row for row in GENERATIONS if row.capability <= (major, minor)]
    if not older:
        first = GENERATIONS[0]
        raise TargetError(
            f"gpu: the device has compute capability {major}.{minor}, expected {first.capability[0]}."
            f"{first.capability[1]} or newer; run on the host with BLOCKARRAY_DEVICE=cpu"
        )
    newest = older[-1]
    if newest.capability == (major, minor):
        return _target(newest)
    return _target(replace(newest, cpu=newest.cpu.removesuffix("a")))


def describe_device(capability: tuple[int, int], multiprocessors: int, shared_bytes: int, cache_bytes: int) -> Target:
    """The target of a device with its own numbers."""
    target = target_of_capability(*capability)
    return replace(target, cores=multiprocessors, shared_bytes=shared_bytes, cache_bytes=cache_bytes)


def _target(generation: Generation) -> Target:
    functions = _ALWAYS | _NAN_PROPAGATING if generation.capability >= (8, 0) else _ALWAYS
    return Target(
        kind="nvptx",
        triple=TRIPLE,
        cpu=generation.cpu,
        features=f"+ptx{generation.ptx}",
        register_bits=ACCESS_BITS,
        lanes=WARP_LANES,
        max_lanes_per_program=LANES_PER_BLOCK,
        shared_bytes=generation.shared_bytes,
        functions=functions,
        cores=generation.multiprocessors,
        clustered_lanes=_BLOCKS_PER_CLUSTER * LANES_PER_CLUSTERED_BLOCK if generation.capability >= (9, 0) else 0,
        cache_bytes=generation.cache_bytes,
        matmul_instructions=instructions_of(generation.cpu, generation.capability),
    )
