"""Products of windows on matmul instructions: what is recognised, what PTX computes, what assembles."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emitted import ptx_of
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import run_lowered_as_ptx

from blockarray.fusion.plan import Product
from blockarray.fusion.products import View, schedule_of
from blockarray.kernels.matmul import PARTS, lower_product
from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import InternalCompilerError
from codegen.ir.interpreter import interpret
from codegen.ir.kernel import BufferParameter, Kernel
from codegen.ir.operations import DotLoop
from codegen.ir.parser import parse
from codegen.ir.printer import print_kernel
from codegen.ir.products import dot_loops
from codegen.ir.verifier import verify
from codegen.passes import pipeline
from codegen.schedules.matmul import MatmulSchedule
from codegen.target import Target
from codegen.targets.nvptx.description import nvptx_target
from codegen.targets.nvptx.launch_plan import launch_plan

AMPERE, HOPPER = nvptx_target("sm_80"), nvptx_target("sm_90a")


def dense(shape: tuple[int, ...], turned: bool = False, padding: int = 0) -> View:
    """A view of rows one after the other, or of columns."""
    (*batch, rows, columns) = shape
    strides = (1, rows + padding) if turned else (columns + padding, 1)
    length = (rows + padding) * columns if turned else rows * (columns + padding)
    outer = []
    for extent in reversed(batch):
        outer.insert(0, length)
        length *= extent
    return 0, shape, (*outer, *strides)


def product_of(m: int, n: int, k: int, a: View, b: View, dtype: DType = dtypes.float16) -> Product:
    return Product(0, 1, 2, dtype, a, b, (*a[1][:-2], m, n))


def plain(m: int, n: int, k: int, dtype: DType = dtypes.float16) -> Product:
    return product_of(m, n, k, dense((m, k)), dense((k, n)), dtype)


def memory_of(view: View, dtype: DType, seed: int) -> np.ndarray:
    offset, shape, strides = view
    size = offset + sum((extent - 1) * max(stride, 0) for extent, stride in zip(shape, strides, strict=True)) + 1
    return np.random.default_rng(seed).integers(-3, 4, size).astype(dtype.numpy)


def strided(memory: np.ndarray, view: View) -> np.ndarray:
    offset, shape, strides = view
    steps = [stride * memory.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(memory[offset:], shape, steps).astype(np.float64)


def check(product: Product, target: Target = AMPERE, schedule: MatmulSchedule | None = None) -> None:
    """Run a product's kernels as PTX: small integers, so that every order of additions gives the same."""
    chosen = schedule or schedule_of(product, target)
    a, b = memory_of(product.a_view, product.dtype, 1), memory_of(product.b_view, product.dtype, 2)
    expected = (strided(a, product.a_view) @ strided(b, product.b_view)).astype(product.dtype.numpy)
    memory = {0: a, 1: b, 2: np.full(expected.size, -7, product.dtype.numpy)}
    if chosen.parts > 1:
        memory[PARTS] = np.full(chosen.parts * expected.size, np.nan, np.float32)
    for lowered in lower_product(product, target, chosen):
        verify(lowered.kernel)
        memory = run_lowered_as_ptx(lowered.kernel, lowered.arguments, lowered.programs, memory, target)
    np.testing.assert_array_equal(memory[2].reshape(expected.shape).astype(float), expected.astype(float))


@pytest.mark.parametrize("a_turned", [False, True])
@pytest.mark.parametrize("b_turned", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_all_orders_of_operands(a_turned: bool, b_turned: bool, dtype: DType) -> None:
    product = product_of(40, 24, 72, dense((40, 72), a_turned), dense((72, 24), b_turned), dtype)
    assert schedule_of(product, AMPERE).instruction == "mma"
    check(product)


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 70), st.integers(1, 40), st.integers(1, 90), st.booleans(), st.booleans(), st.integers(0, 3))
def test_odd_shapes(m: int, n: int, k: int, a_turned: bool, b_turned: bool, padding: int) -> None:
    check(product_of(m, n, k, dense((m, k), a_turned, padding), dense((k, n), b_turned, padding)))


def test_stacks_with_a_repeated_operand() -> None:
    repeated = (0, (2, 30, 20), (0, 20, 1))
    check(product_of(9, 20, 30, dense((2, 9, 30)), repeated))


def test_rows_that_go_backwards() -> None:
    backwards = (7 * 16, (8, 16), (-16, 1))
    product = product_of(8, 9, 16, backwards, dense((16, 9)))
    check(product)


def test_neighbours_that_lie_apart() -> None:
    check(product_of(8, 9, 16, (1, (8, 16), (40, 2)), (0, (16, 9), (30, 3))))


@pytest.mark.parametrize("schedule", [
    MatmulSchedule("mma", 128, 128, 32), MatmulSchedule("mma", 64, 16, 32, 4), MatmulSchedule("mma", 64, 64, 16), MatmulSchedule("mma", 64, 32, 32, 2, True),
], ids=str)  # fmt: skip
def test_other_schedules(schedule: MatmulSchedule) -> None:
    check(plain(72, 80, 200), schedule=schedule)


def test_infinities_and_nan_pass_as_the_sum_gives_them() -> None:
    product = plain(16, 16, 32)
    a, b = memory_of(product.a_view, dtypes.float16, 1), np.ones(512, np.float16)
    a[3], a[40], a[41] = np.inf, np.inf, -np.inf
    memory = {0: a, 1: b, 2: np.zeros(256, np.float16)}
    for lowered in lower_product(product, AMPERE):
        memory = run_lowered_as_ptx(lowered.kernel, lowered.arguments, lowered.programs, memory, AMPERE)
    result = memory[2].reshape(16, 16)
    assert np.isposinf(result[0]).all() and np.isnan(result[1]).all() and np.isfinite(result[2:]).all()


# --- what is recognised


@pytest.mark.parametrize("target", [AMPERE, HOPPER], ids=["sm_80", "sm_90a"])
def test_the_loop_and_the_operation_mean_the_same(target: Target) -> None:
    product = plain(96, 80, 136)
    (lowered,) = lower_product(product, target, replace(schedule_of(product, target), parts=1))
    chosen = pipeline.run(lowered.kernel, target)
    assert len(list(dot_loops(chosen.body))) == 1
    results = [interpreted(kernel, product) for kernel in (lowered.kernel, chosen)]
    np.testing.assert_array_equal(*results)


def interpreted(kernel: Kernel, product: Product) -> np.ndarray:
    (m, n), k = product.shape, product.a_view[1][1]
    a = memory_of(product.a_view, product.dtype, 1).reshape(m, k)
    b = memory_of(product.b_view, product.dtype, 2).reshape(k, n)
    result = np.zeros((m, n), product.dtype.numpy)
    arguments = {"m": m, "n": n, "k": k, "a": a, "b": b, "c": result}
    parameter = kernel.parameter("c")
    assert isinstance(parameter, BufferParameter)
    if parameter.type.strides[-1] != 1:
        arguments = {"m": n, "n": m, "k": k, "a": b.T, "b": a.T, "c": result.T}
    interpret(kernel, arguments)
    return result


def test_text_of_a_selected_kernel_reads_back() -> None:
    (lowered,) = lower_product(plain(256, 256, 256), HOPPER, MatmulSchedule("wgmma", 128, 64, 64))
    text = print_kernel(pipeline.run(lowered.kernel, HOPPER))
    assert print_kernel(parse(text)) == text
    assert "lanes 64x4 run 1x2 register 1 group 8x4 turns 2x1" in text


def test_float32_stays_exact() -> None:
    product = plain(64, 64, 64, dtypes.float32)
    schedule = schedule_of(product, HOPPER)
    assert schedule.instruction == ""
    assert "wgmma multiplies float16 and bfloat16, not float32" in str(schedule)
    (lowered,) = lower_product(product, HOPPER)
    assert not any(dot_loops(pipeline.run(lowered.kernel, HOPPER).body))


def test_reasons_name_what_the_copy_engine_cannot_take() -> None:
    odd = schedule_of(plain(64, 64, 65), HOPPER)
    assert odd.instruction == "mma"
    assert str(odd).endswith("wgmma needs rows at multiples of 16 bytes, the left operand has 2")
    assert schedule_of(plain(64, 64, 64), HOPPER).instruction == "wgmma"


def test_a_window_that_is_read_otherwise_in_the_loop_is_no_product() -> None:
    (lowered,) = lower_product(plain(256, 256, 256), HOPPER, MatmulSchedule("wgmma", 128, 64, 64))
    text = print_kernel(lowered.kernel).replace("fill=0", "fill=1", 1)
    assert not any(isinstance(one, DotLoop) for one in pipeline.run(parse(text), HOPPER).body.operations)


def test_launch_needs_no_more_than_a_multiprocessor_has() -> None:
    for n in (16, 32, 64, 128, 256):
        schedule = MatmulSchedule("wgmma", 128, n, 64)
        product = product_of(512, 512, 512, dense((512, 512)), dense((512, 512), turned=True))
        (lowered,) = lower_product(product, HOPPER, schedule)
        plan = launch_plan(pipeline.run(lowered.kernel, HOPPER), HOPPER)
        assert plan.ring is not None and plan.ring.stages >= 3
        assert plan.dynamic_shared_bytes <= HOPPER.shared_bytes
        assert plan.threads == 384


def test_clusters_say_so_in_the_text_and_in_the_code() -> None:
    for schedule in (
        MatmulSchedule("wgmma", 128, 128, 64, together=2),
        MatmulSchedule("wgmma", 128, 64, 64, sharers=2),
    ):
        (lowered,) = lower_product(plain(512, 512, 512), HOPPER, schedule)
        kernel = pipeline.run(lowered.kernel, HOPPER)
        assert " together 2" in print_kernel(kernel)
        assert print_kernel(parse(print_kernel(kernel))) == print_kernel(kernel)
        plan = launch_plan(kernel, HOPPER)
        assert plan.ring is not None and plan.ring.cluster == 2
        assert ".reqnctapercluster 2, 1, 1" in ptx_of(kernel, HOPPER)


def test_more_blocks_than_a_cluster_holds_are_refused() -> None:
    (lowered,) = lower_product(
        plain(512, 512, 2048), HOPPER, MatmulSchedule("wgmma", 128, 16, 64, sharers=16, swapped=True)
    )
    with pytest.raises(InternalCompilerError, match="16 blocks share a sum, expected at most 8"):
        launch_plan(pipeline.run(lowered.kernel, HOPPER), HOPPER)


def test_tiles_that_do_not_fit_are_refused_before_they_could_hang() -> None:
    (lowered,) = lower_product(plain(512, 512, 2048), HOPPER, MatmulSchedule("wgmma", 128, 256, 64, sharers=4))
    with pytest.raises(InternalCompilerError, match="stages fit into shared memory, expected 3"):
        launch_plan(pipeline.run(lowered.kernel, HOPPER), HOPPER)


@pytest.mark.parametrize(("m", "n", "k"), [(512, 512, 512), (16, 4096, 4096), (128, 8192, 8192), (1536, 1536, 1536)])
def test_chosen_schedules_can_be_launched(m: int, n: int, k: int) -> None:
    for lowered in lower_product(plain(m, n, k), HOPPER):
        plan = launch_plan(pipeline.run(lowered.kernel, HOPPER), HOPPER)
        assert plan.dynamic_shared_bytes <= HOPPER.shared_bytes


# --- what assembles


def assembler() -> str | None:
    """ptxas, from the path or beside this Python."""
    beside = list(Path(sys.prefix).glob("lib/python*/site-packages/nvidia/*/bin/ptxas"))
    return shutil.which("ptxas") or (str(beside[0]) if beside else None)


ASSEMBLED = [
    ("sm_90a", MatmulSchedule("wgmma", 128, 256, 64), False),
    ("sm_90a", MatmulSchedule("wgmma", 128, 64, 64), True),
    ("sm_90a", MatmulSchedule("wgmma", 128, 128, 64, together=2), True),
    ("sm_90a", MatmulSchedule("wgmma", 128, 64, 64, sharers=4), False),
    ("sm_90a", MatmulSchedule("wgmma", 128, 16, 64, 4, True), False),
    ("sm_80", MatmulSchedule("mma", 128, 128, 32), False),
    ("sm_89", MatmulSchedule("mma", 128, 128, 32), True),
    ("sm_100a", MatmulSchedule("mma", 128, 64, 32), True),
]


@pytest.mark.skipif(assembler() is None, reason="ptxas is not here")
@pytest.mark.parametrize(("cpu", "schedule", "turned"), ASSEMBLED, ids=str)
def test_code_assembles_without_spills(cpu: str, schedule: MatmulSchedule, turned: bool, tmp_path: Path) -> None:
    target = nvptx_target(cpu)
    product = product_of(1024, 1024, 1024, dense((1024, 1024), turned), dense((1024, 1024), turned))
    kernel = pipeline.run(lower_product(product, target, schedule)[0].kernel, target)
    assert any(dot_loops(kernel.body))
    source = tmp_path / "kernel.ptx"
    source.write_text(ptx_of(kernel, target))
    command = [str(assembler()), "-v", "-arch", cpu, str(source), "-o", str(tmp_path / "kernel.cubin")]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    said = said.stdout + said.stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in said
    # C7508 to C7519: the assembler put waits between matrix instructions, or ignored what registers were asked for.
    assert "C75" not in said
