"""Known kernels: one kernel for each, right for ordinary and for special values, in place too, and shared between sizes."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emitted import ptx_of
from plans import HOST, compare, evaluate_plan, run_as_ptx, run_in_interpreter, run_on_host, target_text
from test_emitter_ptx import assemble, needs_ptxas

from blockarray.fusion.lower import lower
from blockarray.fusion.plan import (
    Apply,
    Convert,
    DomainAxis,
    Fold,
    KernelPlan,
    Number,
    Position,
    Read,
    RunningFold,
    Statement,
    Take,
    Write,
)
from codegen import dtypes
from codegen.passes import pipeline
from codegen.targets.nvptx.description import nvptx_target

GPU = nvptx_target("sm_90a")
NARROW_GPU = replace(GPU, max_lanes_per_program=32)
F32 = dtypes.float32


def rows_plan(name: str, rows: int, columns: int, statements: tuple[Statement, ...], *writes: Write) -> KernelPlan:
    return KernelPlan(name, (DomainAxis(rows), DomainAxis(columns, True)), statements, writes)


def softmax(rows: int, columns: int) -> KernelPlan:
    return rows_plan(
        "softmax",
        rows,
        columns,
        (
            Read(0, F32, 0, (columns, 1)),
            Fold("maximum", (0,), 0, F32),
            Apply("subtract", (0, 1), F32),
            Apply("exp", (2,), F32),
            Fold("add", (3,), 0, F32),
            Apply("divide", (3, 4), F32),
        ),
        Write(1, 5, 0, (columns, 1)),
    )


def layer_norm(rows: int, columns: int) -> KernelPlan:
    return rows_plan(
        "layer_norm",
        rows,
        columns,
        (
            Read(0, F32, 0, (columns, 1)),
            Fold("add", (0,), 0, F32),
            Number(2, F32),
            Apply("divide", (1, 2), F32),
            Apply("subtract", (0, 3), F32),
            Apply("square", (4,), F32),
            Fold("add", (5,), 0, F32),
            Apply("divide", (6, 2), F32),
            Apply("sqrt", (7,), F32),
            Apply("divide", (4, 8), F32),
            Read(3, F32, 0, (0, 1)),
            Apply("multiply", (9, 10), F32),
        ),
        Write(1, 11, 0, (columns, 1)),
        Write(4, 8, 0, (1, 0)),
    )


def drawn(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(count, np.float32)


LENGTHS = (7, 64, 65, 300, 1024, 5003)


@pytest.mark.parametrize("columns", LENGTHS)
def test_softmax(columns: int) -> None:
    memory = {0: 10 * drawn(5 * columns), 1: np.zeros(5 * columns, np.float32)}
    plan = softmax(5, columns)
    compare(evaluate_plan(plan, memory), run_on_host(plan, memory), 2e-6)


@pytest.mark.parametrize("columns", (7, 64, 65, 1000, 1024, 2500))
@pytest.mark.parametrize("target", (GPU, NARROW_GPU), ids=("wide", "narrow"))
def test_softmax_as_ptx(columns: int, target: object) -> None:
    memory = {0: 10 * drawn(3 * columns), 1: np.zeros(3 * columns, np.float32)}
    plan = softmax(3, columns)
    compare(evaluate_plan(plan, memory), run_as_ptx(plan, memory, target), 2e-6)  # type: ignore[arg-type]


def test_softmax_of_special_rows() -> None:
    x = drawn(6 * 100).reshape(6, 100)
    x[0, 3], x[1, 99], x[2, 0], x[3], x[4] = np.nan, np.inf, -np.inf, -np.inf, 3e38
    memory = {0: x.reshape(-1), 1: np.zeros(600, np.float32)}
    plan = softmax(6, 100)
    expected = evaluate_plan(plan, memory)
    compare(expected, run_on_host(plan, memory), 2e-6)
    compare(expected, run_as_ptx(plan, memory, GPU), 2e-6)


@pytest.mark.parametrize("columns", LENGTHS)
def test_layer_norm_of_data_far_from_zero(columns: int) -> None:
    memory = {
        0: drawn(4 * columns) + 1000,
        1: np.zeros(4 * columns, np.float32),
        2: np.array([columns], np.float32),
        3: drawn(columns, 1),
        4: np.zeros(4, np.float32),
    }
    plan = layer_norm(4, columns)
    x = memory[0].astype(np.float64).reshape(4, columns)
    found = run_on_host(plan, memory)
    deviation = x.std(1)
    expected = (x - x.mean(1, keepdims=True)) / deviation[:, None] * memory[3]
    np.testing.assert_allclose(found[4], deviation, rtol=1e-4)
    np.testing.assert_allclose(found[1].reshape(4, columns), expected, rtol=1e-3, atol=1e-3)


def test_a_costly_value_of_a_row_is_computed_once() -> None:
    text = target_text(softmax(4, 1000), HOST.target)
    assert text.count("map exp") == 2, "one for full tiles and one for what is left"
    assert "allocate" in text
    assert target_text(layer_norm(4, 1000), HOST.target).count("allocate") == 0


def test_rows_too_long_to_keep_are_computed_anew() -> None:
    text = target_text(softmax(4, 200_000), HOST.target)
    assert "allocate" not in text
    assert text.count("map exp") == 4


@pytest.mark.parametrize("columns", (100, 3000))
def test_in_place_over_several_passes(columns: int) -> None:
    plan = replace(softmax(3, columns), aliased=frozenset({0}))
    plan = replace(plan, writes=(Write(0, 5, 0, (columns, 1)),))
    memory = {0: drawn(3 * columns)}
    expected = evaluate_plan(plan, memory)
    compare(expected, run_on_host(plan, memory), 2e-6)


def test_two_writes_in_place_read_before_either_is_stored() -> None:
    axes = (DomainAxis(1000),)
    statements = (
        Read(0, F32, 0, (1,)),
        Read(1, F32, 0, (1,)),
        Apply("add", (0, 1), F32),
        Apply("subtract", (0, 1), F32),
    )
    plan = KernelPlan("swap", axes, statements, (Write(0, 2, 0, (1,)), Write(1, 3, 0, (1,))), frozenset({0, 1}))
    memory = {0: drawn(1000), 1: drawn(1000, 1)}
    expected = evaluate_plan(plan, memory)
    compare(expected, run_on_host(plan, memory))
    compare(expected, run_as_ptx(plan, memory, GPU))


def argmax_plan(rows: int, columns: int, name: str = "argmax") -> KernelPlan:
    return rows_plan(
        "position",
        rows,
        columns,
        (Read(0, F32, 0, (columns, 1)), Position(0, (0, 1)), Fold(name, (0, 1), 1, dtypes.int64)),
        Write(1, 2, 0, (1, 0)),
    )


@pytest.mark.parametrize("name", ("argmax", "argmin"))
@pytest.mark.parametrize("columns", (5, 64, 200, 1500))
def test_positions_of_ties_nans_and_infinities(name: str, columns: int) -> None:
    generator = np.random.default_rng(3)
    x = generator.integers(-2, 3, (40, columns)).astype(np.float32)
    x[5:10, columns // 2 :] = np.nan
    x[10:15] = -np.inf
    x[15:20] = np.inf
    x[20, -1] = x[21, 0] = np.nan
    memory = {0: x.reshape(-1), 1: np.zeros(40, np.int64)}
    plan = argmax_plan(40, columns, name)
    expected = getattr(np, name)(x, axis=1)
    for found in (run_on_host(plan, memory), run_as_ptx(plan, memory, GPU), run_as_ptx(plan, memory, NARROW_GPU)):
        np.testing.assert_array_equal(found[1], expected)


@pytest.mark.parametrize("shape", ((3, 4, 5, 6), (1, 70, 2, 90), (40, 1, 33, 3)))
@pytest.mark.parametrize("reduced", ((0, 2), (1, 3), (0, 3), (1, 2), (0, 1, 3)))
def test_several_reduced_axes_between_kept_ones(shape: tuple[int, ...], reduced: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)
    strides = tuple(stride // 4 for stride in x.strides)
    kept = [0] * 4
    step = 1
    for axis in reversed(range(4)):
        if axis not in reduced:
            kept[axis] = step
            step *= shape[axis]
    axes = tuple(DomainAxis(extent, axis in reduced) for axis, extent in enumerate(shape))
    statements = (Read(0, F32, 0, strides), Fold("add", (0,), 0, F32))
    plan = KernelPlan("sum", axes, statements, (Write(1, 1, 0, tuple(kept)),))
    memory = {0: x.reshape(-1), 1: np.zeros(step, np.float32)}
    expected = x.sum(axis=reduced).reshape(-1)
    for found in (
        run_on_host(plan, memory),
        run_in_interpreter(plan, memory, GPU),
        run_in_interpreter(plan, memory, NARROW_GPU),
    ):
        np.testing.assert_array_equal(found[1], expected)


@pytest.mark.parametrize("columns", (900, 2100))
def test_columns_in_several_passes(columns: int) -> None:
    axes = (DomainAxis(37, True), DomainAxis(columns))
    plan = replace(softmax(37, columns), axes=axes)
    memory = {0: 10 * drawn(37 * columns), 1: np.zeros(37 * columns, np.float32)}
    assert lower(plan, HOST.target)[0].schedule.strategy == "columns"
    expected = evaluate_plan(plan, memory)
    compare(expected, run_on_host(plan, memory), 2e-6)
    compare(expected, run_in_interpreter(plan, memory, HOST.target), 2e-6)


def test_a_sum_is_as_accurate_as_numpys() -> None:
    x = np.random.default_rng(0).random((2, 1_000_003), np.float32)
    plan = rows_plan(
        "sum", 2, 1_000_003, (Read(0, F32, 0, (1_000_003, 1)), Fold("add", (0,), 0, F32)), Write(1, 1, 0, (1, 0))
    )
    found = run_on_host(plan, {0: x.reshape(-1), 1: np.zeros(2, np.float32)})[1]
    exact = x.astype(np.float64).sum(1)
    assert np.all(np.abs(found - exact) <= 8 * np.spacing(exact.astype(np.float32)))


def test_running_sums_of_floats() -> None:
    x = np.random.default_rng(0).random((3, 5000), np.float32)
    plan = rows_plan(
        "running", 3, 5000, (Read(0, F32, 0, (5000, 1)), RunningFold("add", 0, F32)), Write(1, 1, 0, (5000, 1))
    )
    memory = {0: x.reshape(-1), 1: np.zeros(15000, np.float32)}
    exact = x.astype(np.float64).cumsum(1).reshape(-1)
    np.testing.assert_allclose(run_on_host(plan, memory)[1], exact, rtol=2e-6)
    np.testing.assert_allclose(run_as_ptx(plan, memory, GPU)[1], exact, rtol=2e-6)


def test_positions_and_gathered_elements_beyond_the_edge_are_not_touched() -> None:
    """Lanes without a point compute a position that may be anywhere."""
    axes = (DomainAxis(13),)
    statements = (
        Position(0, (1,)),
        Number(1, dtypes.int64),
        Apply("multiply", (0, 1), dtypes.int64),
        Take(0, F32, 0, (2,), (1,), (0,)),
    )
    plan = KernelPlan("every_third", axes, statements, (Write(2, 3, 0, (1,)),))
    memory = {0: drawn(37), 1: np.array([3], np.int64), 2: np.zeros(13, np.float32)}
    expected = evaluate_plan(plan, memory)
    compare(expected, run_on_host(plan, memory))
    compare(expected, run_as_ptx(plan, memory, GPU))
    compare(expected, run_in_interpreter(plan, memory, HOST.target))


def test_nothing_to_write_needs_no_kernel() -> None:
    axes = (DomainAxis(0), DomainAxis(5))
    plan = KernelPlan("empty", axes, (Read(0, F32, 0, (5, 1)),), (Write(1, 0, 0, (5, 1)),))
    assert lower(plan, HOST.target) == ()


@pytest.mark.parametrize("target", (HOST.target, GPU), ids=("cpu", "nvptx"))
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (softmax(100, 1001), softmax(101, 1003)),
        (softmax(64, 1008), softmax(1024, 992)),
        (layer_norm(50, 333), layer_norm(70, 335)),
        (argmax_plan(50, 333), argmax_plan(70, 335)),
    ],
)
def test_sizes_of_one_class_share_a_kernel(first: KernelPlan, second: KernelPlan, target: object) -> None:
    assert target_text(first, target) == target_text(second, target)  # type: ignore[arg-type]


def test_elements_of_a_chain_stay_in_registers() -> None:
    statements: list[Statement] = [Read(0, F32, 0, (1,)), Number(1, F32)]
    for number in range(30):
        statements.append(
            Apply(("multiply", "add", "maximum")[number % 3], (len(statements) - 1 if number else 0, 1), F32)
        )
    plan = KernelPlan("chain", (DomainAxis(10_000),), tuple(statements), (Write(2, len(statements) - 1, 0, (1,)),))
    text = target_text(plan, HOST.target)
    assert (text.count("= load "), text.count("store "), text.count("allocate")) == (1, 1, 0)


def test_halves_and_conversions() -> None:
    axes = (DomainAxis(9), DomainAxis(50, True))
    statements = (
        Read(0, dtypes.float16, 0, (50, 1)),
        Convert(0, F32),
        Fold("add", (1,), 0, F32),
        Convert(2, dtypes.float16),
        Apply("subtract", (0, 3), dtypes.float16),
    )
    plan = KernelPlan("halves", axes, statements, (Write(1, 3, 0, (1, 0)), Write(2, 4, 0, (50, 1))))
    x = np.random.default_rng(0).integers(-8, 9, 450).astype(np.float16)
    memory = {0: x, 1: np.zeros(9, np.float16), 2: np.zeros(450, np.float16)}
    expected = evaluate_plan(plan, memory)
    compare(expected, run_on_host(plan, memory))
    compare(expected, run_as_ptx(plan, memory, GPU))


PTX_PLANS = {
    "softmax of 1024": softmax(65536, 1024),
    "softmax of 1000": softmax(65536, 1000),
    "softmax of 16384": softmax(4096, 16384),
    "softmax of 100000": softmax(4096, 100_000),
    "layer norm of 8192": layer_norm(8192, 8192),
    "positions": argmax_plan(1000, 3000),
    "columns": replace(softmax(4096, 4096), axes=(DomainAxis(4096, True), DomainAxis(4096))),
}


@needs_ptxas
@pytest.mark.parametrize("name", PTX_PLANS)
def test_ptxas_takes_kernels_without_spills(name: str, tmp_path: Path) -> None:
    for lowered in lower(PTX_PLANS[name], GPU):
        said = assemble(ptx_of(pipeline.run(lowered.kernel, GPU), GPU), "sm_90a", tmp_path)
        assert "0 bytes spill stores, 0 bytes spill loads" in said, said


def test_aligned_vectors_move_sixteen_bytes_at_once() -> None:
    axes = (DomainAxis(1 << 28),)
    statements = (Read(0, F32, 0, (1,)), Number(1, F32), Apply("multiply", (0, 1), F32), Apply("add", (2, 1), F32))
    plan = KernelPlan("scaled", axes, statements, (Write(2, 3, 0, (1,)),))
    (lowered,) = lower(plan, GPU)
    text = ptx_of(pipeline.run(lowered.kernel, GPU), GPU)
    assert len(re.findall(r"ld\.global\.nc\.v4", text)) == len(re.findall(r"ld\.global", text)) == 4
    assert len(re.findall(r"st\.global\.v4", text)) == len(re.findall(r"st\.global", text)) == 4
