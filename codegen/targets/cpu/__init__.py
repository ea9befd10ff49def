"""The host: its description, memory, threads, and loader of object code."""

from codegen.targets.cpu.backend import CpuBackend
from codegen.targets.cpu.description import host_target

__all__ = ["CpuBackend", "host_target"]
