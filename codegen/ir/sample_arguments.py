"""Arguments to try a kernel with: given ones are checked, the others are made up, always the same for one seed."""

from collections.abc import Mapping

import numpy as np
from numpy.lib.stride_tricks import as_strided

from codegen.dtypes import DType
from codegen.errors import KernelError
from codegen.ir.kernel import BufferParameter, IndexParameter, Kernel, ScalarParameter

Sample = int | float | bool | np.ndarray

# A prime, so that tiles of every size meet an edge.
_EXTENT = 37


def sample_arguments(kernel: Kernel, given: Mapping[str, Sample], seed: int = 0) -> dict[str, Sample]:
    """An argument for each parameter of a kernel.

    Parameters
    ----------
    kernel : Kernel
    given : mapping
        Arguments by parameter name: numbers, and arrays whose elements are copied into memory of the buffer's form.
    seed : int
        Of the random numbers that fill what is not given.

    Returns
    -------
    dict
        Extents that are not given are 37, rounded up to what divides them; buffers are aligned and strided as stated,
        row-major where a stride is a run-time number. Written buffers begin with zeros.
    """
    names = [parameter.name for parameter in kernel.parameters]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise KernelError(f"kernel {kernel.name} has no parameter {unknown[0]!r}; it has {', '.join(names) or 'none'}")
    generator = np.random.default_rng(seed)
    result: dict[str, Sample] = {}
    for parameter in kernel.parameters:
        if isinstance(parameter, IndexParameter):
            result[parameter.name] = _index(parameter, given.get(parameter.name))
    for parameter in kernel.parameters:
        if isinstance(parameter, ScalarParameter):
            made = _elements(parameter.dtype, (), generator)
            result[parameter.name] = _scalar(parameter, given.get(parameter.name, made.item()))
        elif isinstance(parameter, BufferParameter):
            result[parameter.name] = _buffer(parameter, result, given.get(parameter.name), generator)
    return {name: result[name] for name in names}


def _index(parameter: IndexParameter, given: Sample | None) -> int:
    if given is None:
        return -(-_EXTENT // parameter.divisible) * parameter.divisible
    if isinstance(given, bool) or not isinstance(given, int) or given % parameter.divisible:
        raise KernelError(f"{parameter.name}: expected an integer that {parameter.divisible} divides, found {given!r}")
    return given


def _scalar(parameter: ScalarParameter, given: Sample) -> Sample:
    if isinstance(given, np.ndarray):
        raise KernelError(f"{parameter.name}: expected a number, found an array")
    return np.array(given).astype(parameter.dtype.numpy).item()


def _buffer(
    parameter: BufferParameter, numbers: Mapping[str, Sample], given: Sample | None, generator: np.random.Generator
) -> np.ndarray:
    kind = parameter.type
    shape = tuple(extent if isinstance(extent, int) else int(numbers[extent]) for extent in kind.extents)
    array = _memory(parameter, shape)
    if given is not None:
        if not isinstance(given, np.ndarray) or given.shape != shape:
            found = getattr(given, "shape", given)
            raise KernelError(f"{parameter.name}: expected an array of shape {shape}, found {found}")
        array[...] = given.astype(kind.dtype.numpy)
    elif not parameter.written:
        array[...] = _elements(kind.dtype, shape, generator)
    return array


def _memory(parameter: BufferParameter, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros with the strides and the alignment that a buffer's type states."""
    kind = parameter.type
    itemsize = kind.dtype.itemsize
    strides: list[int] = []
    reach = 1
    for extent, stride in zip(reversed(shape), reversed(kind.strides), strict=True):
        if stride is None:
            unit = max(1, kind.alignment // itemsize)
            stride = reach if not strides else -(-reach // unit) * unit
        reach = max(reach, abs(stride) * extent)
        strides.insert(0, stride)
    before = sum(-stride * (extent - 1) for stride, extent in zip(strides, shape, strict=True) if stride < 0 < extent)
    count = before + max(1, reach) * max(1, len(shape))
    raw = np.zeros(count * itemsize + 2 * kind.alignment, np.uint8)
    start = -(raw.ctypes.data + before * itemsize) % kind.alignment + before * itemsize
    origin = raw[start : start + (count - before) * itemsize].view(kind.dtype.numpy)
    return as_strided(origin, shape, [stride * itemsize for stride in strides])


def _elements(dtype: DType, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    if dtype.kind == "boolean":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind == "float":
        return generator.normal(0.0, 2.0, shape).astype(dtype.numpy)
    lowest = 0 if dtype.kind == "unsigned" else -100
    return generator.integers(lowest, 100, shape).astype(dtype.numpy)
