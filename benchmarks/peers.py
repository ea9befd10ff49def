"""The same rows by other compilers for NumPy code, where they are installed: NumExpr's strings, and loops fused by hand for Numba."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

Function = Callable[..., Any]

NUMEXPR: Mapping[str, str] = {
    "a*x+b": "2.5 * x + 1.5",
    "x+y": "x + y",
    "12-operation chain": "tanh(exp(-(x * y + 0.5) * (x * y + 0.5)) * sqrt(x * x + y * y + 1.0))"
    " - (x * y + 0.5) / sqrt(x * x + y * y + 1.0)",
    "gelu (tanh)": "0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
    "exp": "exp(x)",
    "sin": "sin(x)",
    "sum": "sum(x)",
    "mean((x-y)**2)": "sum((x - y) ** 2)",
}
"""Expressions on arrays x and y, by the name of the row. Those with a sum leave a division out."""


def _loops(numba: ModuleType) -> dict[str, Function]:
    """Functions of (x, out) or (x, y, out), compiled when they are first called."""
    jit = numba.njit(parallel=True, fastmath=True)
    prange = numba.prange
    single = np.float32

    @jit
    def affine(x, out):
        for i in prange(x.size):
            out[i] = single(2.5) * x[i] + single(1.5)

    @jit
    def add(x, y, out):
        for i in prange(x.size):
            out[i] = x[i] + y[i]

    @jit
    def chain(x, y, out):
        for i in prange(x.size):
            a = x[i] * y[i] + single(0.5)
            c = math.sqrt(x[i] * x[i] + y[i] * y[i] + single(1.0))
            out[i] = math.tanh(math.exp(-a * a) * c) - a / c

    @jit
    def gelu(x, out):
        for i in prange(x.size):
            v = x[i]
            inner = single(0.7978845608028654) * (v + single(0.044715) * v * v * v)
            out[i] = single(0.5) * v * (single(1.0) + math.tanh(inner))

    @jit
    def exponential(x, out):
        for i in prange(x.size):
            out[i] = math.exp(x[i])

    @jit
    def softmax(x, out):
        for i in prange(x.shape[0]):
            top = x[i, 0]
            for j in range(x.shape[1]):
                top = max(top, x[i, j])
            total = single(0.0)
            for j in range(x.shape[1]):
                out[i, j] = math.exp(x[i, j] - top)
                total += out[i, j]
            for j in range(x.shape[1]):
                out[i, j] /= total

    @jit
    def log_sum_exp(x, out):
        for i in prange(x.shape[0]):
            top = x[i, 0]
            for j in range(x.shape[1]):
                top = max(top, x[i, j])
            total = single(0.0)
            for j in range(x.shape[1]):
                total += math.exp(x[i, j] - top)
            out[i, 0] = math.log(total) + top

    @jit
    def total_of(x, out):
        total = single(0.0)
        for i in prange(x.size):
            total += x[i]
        out[0] = total

    @jit
    def length(x, out):
        total = single(0.0)
        for i in prange(x.size):
            total += x[i] * x[i]
        out[0] = math.sqrt(total)

    @jit
    def squared_error(x, y, out):
        total = single(0.0)
        for i in prange(x.size):
            total += (x[i] - y[i]) * (x[i] - y[i])
        out[0] = total / x.size

    return {
        "a*x+b": affine,
        "x+y": add,
        "12-operation chain": chain,
        "gelu (tanh)": gelu,
        "exp": exponential,
        "softmax 4096x4096": softmax,
        "softmax 65536x1024": softmax,
        "logsumexp 4096x4096": log_sum_exp,
        "sum": total_of,
        "sqrt(sum(a**2))": length,
        "mean((x-y)**2)": squared_error,
    }


def peers_of(row: str, inputs: list[Any]) -> dict[str, Callable[[], object]]:
    """What computes the row called `row` on these arrays, by the peer's name; empty where none is installed."""
    found: dict[str, Callable[[], object]] = {}
    if row in NUMEXPR and importlib.util.find_spec("numexpr"):
        numexpr = importlib.import_module("numexpr")
        operands = dict(zip("xy", inputs, strict=False))
        found["numexpr"] = lambda: numexpr.evaluate(NUMEXPR[row], operands)
    if importlib.util.find_spec("numba"):
        loop = _loops(importlib.import_module("numba")).get(row)
        if loop is not None:
            # As NumPy's functions do, a call makes the array that it returns.
            found["numba"] = lambda: loop(*inputs, np.empty_like(inputs[0]))
    return found
