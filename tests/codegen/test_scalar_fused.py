"""Fused multiply-adds on NumPy arrays: rounded once, whatever the operands; bit for bit what the host computes."""

from fractions import Fraction

import emitted
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scalar_reference import assert_same, patterns, special_values

from codegen import dtypes
from codegen.ir.kernel import Body, Kernel
from codegen.ir.layout import Layout
from codegen.llvm.module import Module
from codegen.scalar.fused import multiply_add

ANY = st.floats(allow_nan=False, allow_infinity=False)
DTYPES = [dtypes.float32, dtypes.float64]


def exact(a: float, b: float, c: float) -> float:
    total = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(total)
    except OverflowError:
        return np.inf if total > 0 else -np.inf


@given(ANY, ANY, ANY)
def test_doubles_are_rounded_once(a, b, c):
    assert multiply_add(np.float64([a]), np.float64([b]), np.float64([c]))[0] == exact(a, b, c)


@given(ANY, ANY, st.integers(-3, 3))
def test_what_rounding_took_from_a_product(a, b, steps):
    with np.errstate(all="ignore"):
        product = np.float64(a) * np.float64(b)
        c = -product + steps * np.spacing(product)
    if np.isfinite(c):
        assert multiply_add(np.float64([a]), np.float64([b]), np.float64([c]))[0] == exact(a, b, float(c))


@given(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3)
def test_singles_are_rounded_once(a, b, c):
    result = multiply_add(np.float32([a]), np.float32([b]), np.float32([c]))[0]
    total = Fraction(a) * Fraction(b) + Fraction(c)
    with np.errstate(over="ignore"):
        nearest = np.float32(exact(a, b, c))
    candidates = [np.nextafter(nearest, np.float32(side)) for side in (-np.inf, np.inf)] + [nearest]
    if np.isfinite(candidates).all():
        least = min(abs(Fraction(float(one)) - total) for one in candidates)
        assert abs(Fraction(float(result)) - total) == least
    else:
        assert result == nearest or np.isfinite(nearest)


FMA = """
declare {type} @llvm.fma.{suffix}({type}, {type}, {type})
define void @fused(ptr %slots, i64 %begin, i64 %end) #0 {{
enter:
  %a.slot = getelementptr ptr, ptr %slots, i64 0
  %b.slot = getelementptr ptr, ptr %slots, i64 1
  %c.slot = getelementptr ptr, ptr %slots, i64 2
  %out.slot = getelementptr ptr, ptr %slots, i64 3
  %a = load ptr, ptr %a.slot
  %b = load ptr, ptr %b.slot
  %c = load ptr, ptr %c.slot
  %out = load ptr, ptr %out.slot
  br label %loop
loop:
  %n = phi i64 [%begin, %enter], [%next, %loop]
  %a.at = getelementptr {type}, ptr %a, i64 %n
  %b.at = getelementptr {type}, ptr %b, i64 %n
  %c.at = getelementptr {type}, ptr %c, i64 %n
  %out.at = getelementptr {type}, ptr %out, i64 %n
  %x = load {type}, ptr %a.at
  %y = load {type}, ptr %b.at
  %z = load {type}, ptr %c.at
  %r = call {type} @llvm.fma.{suffix}({type} %x, {type} %y, {type} %z)
  store {type} %r, ptr %out.at
  %next = add i64 %n, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %leave
leave:
  ret void
}}
attributes #0 = {{ nounwind "target-cpu"="{cpu}" "target-features"="{features}" }}
"""


@pytest.mark.skipif(not emitted.HOST.target.has("fma"), reason="this machine has no fused multiply-add")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_are_those_of_the_machine(dtype):
    target = emitted.HOST.target
    spelled, suffix = {"float32": ("float", "f32"), "float64": ("double", "f64")}[dtype.name]
    text = f'target triple = "{target.triple}"\n' + FMA.format(
        type=spelled, suffix=suffix, cpu=target.cpu, features=target.features
    )
    generator = np.random.default_rng(0)
    scale = 2.0 ** generator.integers(-30, 30, (3, 20_000))
    near = (generator.standard_normal((3, 20_000)) * scale).astype(dtype.numpy)
    special = generator.choice(special_values(dtype), (3, 3000))
    wild = np.stack([patterns(dtype, 1000, seed) for seed in range(3)])
    columns = np.concatenate([near, special, wild], axis=1)
    cancelling = near.copy()
    cancelling[2] = -cancelling[0] * cancelling[1]
    columns = np.ascontiguousarray(np.concatenate([columns, cancelling], axis=1))
    out = np.zeros(columns.shape[1], dtype.numpy)
    slots = np.array([*(row.ctypes.data for row in columns), out.ctypes.data], np.int64)
    code = Module(text, target, "fused").object_code()
    kernel = Kernel("fused", (), (), Body((), ()), Layout((1,), (1,)))
    emitted.HOST.load(code, "fused", lambda: kernel).launch(slots.ctypes.data, out.size)
    assert_same(out, multiply_add(*columns), *columns)
