"""The machines that kernels run on: their descriptions and, at run time, their backends."""

from codegen.targets.registry import backend, cuda_available

__all__ = ["backend", "cuda_available"]
