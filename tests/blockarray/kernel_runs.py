"""Kernels of the language run in every way: on the host, by the interpreter, and as PTX on the machine of `ptx_machine`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
from ptx_backend import PtxBackend

import blockarray as np
from blockarray.language import Kernel
from codegen.targets import registry

Results = tuple[numpy.ndarray, ...]


@contextmanager
def ptx_device() -> Iterator[str]:
    """A GPU that is not there; its name."""
    backend = PtxBackend()
    registry._registry.backends[backend.device] = backend
    try:
        yield backend.device
    finally:
        del registry._registry.backends[backend.device]


def as_results(found: Any) -> Results:
    """A kernel's result as NumPy arrays."""
    return tuple(numpy.asarray(one) for one in (found if isinstance(found, tuple) else (found,)))


def run_everywhere(kernel: Kernel, *arguments: Any, as_ptx: bool = True, **named: Any) -> dict[str, Results]:
    """The outputs of a kernel by the way in which it was run."""
    found = {
        "host": as_results(kernel(*arguments, **named)),
        "interpreter": as_results(kernel.interpret(*arguments, **named)),
    }
    if as_ptx:
        with ptx_device() as device:
            moved = [np.asarray(one).to_device(device) if isinstance(one, numpy.ndarray) else one for one in arguments]
            found["ptx"] = as_results(kernel(*moved, **named))
    return found


def assert_everywhere(
    kernel: Kernel, arguments: tuple[Any, ...], expected: Any, *, ulp: float = 0, as_ptx: bool = True, **named: Any
) -> None:
    """Each way gives what is expected: the same dtype, and values within `ulp` units in the last place."""
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for way, results in run_everywhere(kernel, *arguments, as_ptx=as_ptx, **named).items():
        for result, one in zip(results, wanted, strict=True):
            one = numpy.asarray(one)
            assert (result.dtype, result.shape) == (one.dtype, one.shape), way
            if ulp:
                precision = float(numpy.finfo(one.dtype).eps) if one.dtype.kind == "f" else 0.0
                numpy.testing.assert_allclose(result, one, rtol=ulp * precision, atol=ulp * precision, err_msg=way)
            else:
                numpy.testing.assert_array_equal(result, one, err_msg=way)
