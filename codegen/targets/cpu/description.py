"""The host's description, asked from LLVM and the operating system."""

import os
import platform
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from codegen.target import Target
from codegen.targets.cpu.panel_products import panel_instruction

ALWAYS = frozenset({"sqrt", "absolute", "fabs", "copysign", "bitwise_count"})
"""Rows that LLVM lowers inline on every 64-bit machine with floating point."""

ROUNDING = frozenset({"floor", "ceil", "trunc", "rint"})
"""One instruction from SSE4.1 on; before, LLVM calls the C library."""

LIBRARIES = frozenset({"memcpy", "memmove", "memset"})
"""What LLVM's optimiser may put in place of a loop that copies or fills."""

STACK_BYTES = 1 << 18
"""What a program may keep on its stack: a quarter of a secondary thread's smallest usual stack, 1 MiB."""


@cache
def host_target() -> Target:
    """The machine that this process runs on."""
    features = llvm.get_host_cpu_features()
    machine = platform.machine().lower()
    return describe_host(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features={name: bool(present) for name, present in features.items()},
        machine="aarch64" if machine in ("aarch64", "arm64") else machine,
    )


def describe_host(triple: str, cpu: str, features: dict[str, bool], machine: str) -> Target:
    """The target of a host with these features, as LLVM names them."""
    functions = set(ALWAYS)
    register_bits = 128
    if machine == "aarch64":
        functions |= ROUNDING | {"half_conversion", "fma"}
    if features.get("fma"):
        functions.add("fma")
    if features.get("sse4.1"):
        functions |= ROUNDING
    if features.get("f16c"):
        functions.add("half_conversion")
    if features.get("avx2"):
        register_bits = 256
    if all(features.get(name) for name in ("avx512f", "avx512bw", "avx512dq", "avx512vl")):
        register_bits = 512
    listed = ",".join(f"{'+' if present else '-'}{name}" for name, present in sorted(features.items()))
    return Target(
        kind="cpu",
        triple=triple,
        cpu=cpu,
        features=listed,
        register_bits=register_bits,
        lanes=1,
        max_lanes_per_program=1,
        shared_bytes=STACK_BYTES,
        functions=frozenset(functions),
        libraries=LIBRARIES,
        cores=usable_cores(),
        cache_bytes=private_cache_bytes(),
        matmul_instructions=(panel_instruction(register_bits),),
    )


def usable_cores() -> int:
    """Cores that this process may use: its affinity, and no more than its control group's share of time."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    quota = _control_group_cores()
    return allowed if quota is None else max(1, min(allowed, quota))


def _control_group_cores() -> int | None:
    # cgroup v2: "max 100000" or "150000 100000" (time, period); threads beyond the quota only get stopped.
    try:
        time, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return None
    return None if time == "max" else -(-int(time) // int(period))


def private_cache_bytes() -> int:
    """The second-level data cache of a core; 1 MiB where the system does not tell."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (ValueError, OSError):
        size = 0
    return size if size > 0 else 1 << 20
