"""Whole array programs on a GPU that is not there: recorded, fused, lowered, emitted as PTX, and run lane by lane."""

from collections.abc import Callable, Iterator
from types import ModuleType

import numpy
import pytest
from ptx_backend import PtxBackend

import blockarray as np
from codegen.targets import registry

Program = Callable[..., object]


@pytest.fixture(scope="module", autouse=True)
def _gpu() -> Iterator[None]:
    backend = PtxBackend()
    registry._registry.backends[backend.device] = backend
    with np.device(backend.device):
        yield
    del registry._registry.backends[backend.device]


def normalized(xp: ModuleType, x: object) -> object:
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def softmax(xp: ModuleType, x: object) -> object:
    powers = xp.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def accumulated(xp: ModuleType, x: object) -> object:
    total = x[:, 0] * 0
    for column in range(4):
        total = total + x[:, column] * x[:, -1 - column]
    return total


def written(xp: ModuleType, x: object) -> object:
    result = x + 0
    result[1:, ::2] = result[:-1, 1::2] * 2
    result -= result.mean(axis=0)
    return result


def placed(xp: ModuleType, x: object) -> object:
    """Positions that repeat: the last one wins, and a function sees what those before it left."""
    result = x + 0
    rows = numpy.array([3, -1, 3, 0, 3])
    result[rows, 1:4] = x[:5, :3]
    result[[2, 2, 5]] = 7
    xp.add.at(result, (rows, 0), x[:5, 1])
    xp.subtract.at(result, (slice(None), [1, 1, -1]), 0.5)
    xp.negative.at(result, ([1, 1, 1], [0, 0, 0]))
    xp.put(result, [0, -1, 7, 0, 7], [1, 2, 3])
    result.T.flat[[1, 1, -2]] = [5, 6, 7]
    flags = x > 0
    flags[[0, 1, 0]] = [[True], [True], [False]]
    return result + flags


MATRIX = numpy.random.default_rng(0).standard_normal((13, 100)).astype(numpy.float32)
LONG = numpy.random.default_rng(1).standard_normal((3, 3000))
PROGRAMS: dict[str, tuple[Program, tuple[numpy.ndarray, ...]]] = {
    "chain": (lambda xp, x: xp.exp(-x * x) * x + xp.sqrt(abs(x)), (MATRIX,)),
    "float16": (lambda xp, x: x * 2 + 1, (MATRIX.astype(numpy.float16),)),
    "integers": (lambda xp, x: (x * 3 + 7) // 5 % 11, (numpy.arange(-500, 500),)),
    "booleans": (lambda xp, x: (x > 0.5) & (x < 2) | (x == x.max()), (MATRIX,)),
    "broadcast": (lambda xp, x, y: x + y[:, None] * x[0], (MATRIX, MATRIX[:, 3].copy())),
    "slices": (lambda xp, x: x[1:] + x[:-1] * x[1:, ::-1], (MATRIX,)),
    "transpose": (lambda xp, x: x.T * 2 + 1, (MATRIX,)),
    "sum of all": (lambda xp, x: x.sum(), (LONG,)),
    "sum of rows": (lambda xp, x: (x * x).sum(axis=1), (LONG,)),
    "sum of columns": (lambda xp, x: x.sum(axis=0), (MATRIX,)),
    "extremes": (lambda xp, x: x.max(axis=1) - x.min(), (LONG,)),
    "argmax": (lambda xp, x: x.argmax(axis=1), (LONG,)),
    "variance": (lambda xp, x: x.var(axis=1) + x.std(), (LONG,)),
    "softmax": (softmax, (MATRIX,)),
    "long softmax": (softmax, (LONG,)),
    "normalized": (normalized, (MATRIX,)),
    "sum of normalized": (lambda xp, x: normalized(xp, x).sum(), (MATRIX,)),
    "cumsum": (lambda xp, x: xp.cumsum(x, axis=1), (LONG,)),
    "cumsum of columns": (lambda xp, x: xp.cumsum(x, axis=0), (MATRIX,)),
    "any and all": (lambda xp, x: (x > 2.5).any(axis=1) ^ (x < 2.9).all(axis=1), (MATRIX,)),
    "product of matrices": (lambda xp, x: (x @ x.T) * 0.5 + 1, (MATRIX,)),
    "a loop of Python": (accumulated, (MATRIX,)),
    "writes": (written, (MATRIX,)),
    "placed": (placed, (MATRIX,)),
    "choice": (lambda xp, x: xp.choose(x.astype(int) % 3, [x, x[0], -1.0]), (MATRIX,)),
    "slices that bound folds": (lambda xp, x: xp.add.reduceat(x, [0, 3, 4], axis=0), (MATRIX,)),
    "where": (lambda xp, x: xp.where(x > 0, xp.sqrt(abs(x)), xp.sin(x * 1e5)), (MATRIX,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_equal_numpy(name: str) -> None:
    program, arrays = PROGRAMS[name]
    result = numpy.asarray(program(np, *(np.asarray(array) for array in arrays)))
    expected = program(numpy, *arrays)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    tolerance = {"float16": 1e-2, "float32": 2e-5, "float64": 1e-11}.get(result.dtype.name, 0)
    numpy.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
