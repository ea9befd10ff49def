"""What stands around a product in one kernel: a bias, an activation, a residual, on accumulators where the instruction left them."""

import re

import numpy as np
import pytest
from emitted import ptx_of, run_as_ptx

from codegen import dtypes
from codegen.ir.builder import Builder
from codegen.ir.interpreter import interpret
from codegen.ir.kernel import BufferParameter, GridAxis, IndexParameter, Kernel
from codegen.ir.parser import parse
from codegen.ir.printer import print_kernel
from codegen.ir.products import accumulator_layout, dot_loops
from codegen.ir.types import BufferType
from codegen.passes import pipeline
from codegen.passes.select_matmul import select_matmul
from codegen.target import MatmulInstruction
from codegen.targets.nvptx.description import nvptx_target
from codegen.targets.nvptx.launch_plan import launch_plan
from codegen.targets.nvptx.matmul_instructions import MMA, WGMMA

HALF, SINGLE = dtypes.float16, dtypes.float32


def fused(row: MatmulInstruction, m: int, n: int) -> Kernel:
    """``maximum(a @ b + bias, 0) * scale + residual``, rounded once."""
    k = row.inner[0]
    sizes = {name: IndexParameter(name, 16) for name in ("m", "n", "k")}

    def buffer(name: str, *axes: str, written: bool = False) -> BufferParameter:
        strides = (None,) * (len(axes) - 1) + (1,)
        return BufferParameter(name, BufferType(HALF, axes, strides, 32), written)

    a, b, residual = buffer("a", "m", "k"), buffer("b", "k", "n"), buffer("residual", "m", "n")
    bias, scale = buffer("bias", "n"), BufferParameter("scale", BufferType(SINGLE, ("m", 1), (1, 0), 16))
    target = buffer("target", "m", "n", written=True)
    builder = Builder()
    place = [
        builder.map("multiply", builder.program_index(axis), builder.index(extent))
        for axis, extent in enumerate((m, n))
    ]

    def add_slice(inner, total):
        left = builder.load(a.value, (place[0], inner), (m, k))
        return (builder.dot(left, builder.load(b.value, (inner, place[1]), (k, n)), total),)

    start = builder.constant(SINGLE, 0, (m, n))
    (total,) = builder.loop(builder.index(0), sizes["k"].value, k, [start], add_slice)

    def widened(value):
        return builder.broadcast(builder.cast(value, SINGLE), (m, n))

    row_of_bias = builder.reshape(builder.load(bias.value, (place[1],), (n,)), (1, n))
    column_of_scale = builder.load(scale.value, (place[0], builder.index(0)), (m, 1))
    total = builder.map("add", total, widened(row_of_bias))
    total = builder.map("maximum", total, builder.constant(SINGLE, 0, (m, n)))
    total = builder.map("multiply", total, widened(column_of_scale))
    total = builder.map("add", total, widened(builder.load(residual.value, tuple(place), (m, n))))
    builder.store(target.value, tuple(place), builder.cast(total, HALF))
    parameters = (*sizes.values(), a, b, bias, scale, residual, target)
    return builder.kernel("fused", parameters, (GridAxis("m", m), GridAxis("n", n)), accumulator_layout(row, m))


def arguments(m: int, n: int, k: int) -> dict[str, "np.ndarray | int | float | bool"]:
    generator = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return generator.integers(-3, 4, shape).astype(np.float16)

    return {
        "m": m, "n": n, "k": k, "a": draw(m, k), "b": draw(k, n), "bias": draw(n),
        "scale": draw(m, 1).astype(np.float32), "residual": draw(m, n), "target": np.zeros((m, n), np.float16),
    }  # fmt: skip


def test_epilogue_on_warps() -> None:
    target = nvptx_target("sm_90a")
    kernel = pipeline.run(fused(MMA, 64, 32), target)
    assert len(list(dot_loops(kernel.body))) == 1
    given = arguments(80, 48, 64)
    a, b, bias, scale, residual = (
        np.asarray(given[name], np.float64) for name in ("a", "b", "bias", "scale", "residual")
    )
    expected = (np.maximum(a @ b + bias, 0) * scale + residual).astype(np.float16)
    interpret(kernel, given)
    np.testing.assert_array_equal(given["target"], expected)
    given["target"] = np.zeros((80, 48), np.float16)
    run_as_ptx(kernel, given)
    np.testing.assert_array_equal(given["target"], expected)


@pytest.mark.parametrize("n", [64, 128])
def test_epilogue_behind_the_ring(n: int) -> None:
    target = nvptx_target("sm_90a")
    kernel = pipeline.run(fused(WGMMA, 128, n), target)
    plan = launch_plan(kernel, target)
    assert plan.ring is not None and len(plan.ring.stores) == 1
    text = ptx_of(kernel, target)
    assert f"wgmma.mma_async.sync.aligned.m64n{n}k16" in text and "stmatrix" in text


def test_a_vector_that_would_change_its_axis_is_left_to_the_plain_dot() -> None:
    target = nvptx_target("sm_90a")
    kernel = fused(WGMMA, 128, 128)
    text = print_kernel(kernel)
    turned = text.replace("scale: buffer float32[m, 1] strides (1, 0)", "scale: buffer float32[m] strides (1)")
    assert turned != text
    lines = []
    for line in turned.splitlines():
        if "load %scale" in line:
            name, offset = re.match(r"\s*(%\w+):.*load %scale, (%[\w.]+),", line).groups()
            lines.append(f"  %whole: float32[128] = load %scale, {offset} shape=(128) checked=(true) fill=0")
            line = f"  {name}: float32[128, 1] = reshape %whole shape=(128, 1)"
        lines.append(line)
    changed = select_matmul(parse("\n".join(lines) + "\n"), target)
    assert not any(dot_loops(changed.body))
    assert any(dot_loops(select_matmul(kernel, target).body))
