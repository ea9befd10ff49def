"""Schedules: legal for every problem, and the expected strategy for known ones."""

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.schedules.choose import choose, piece_of
from codegen.schedules.schedule import Access, Problem, Schedule, padded, power_of_two_from, power_of_two_to
from codegen.target import Target
from codegen.targets.cpu.description import describe_host
from codegen.targets.nvptx.description import nvptx_target

FEATURES = {"sse4.1": True, "avx2": True, "avx512f": True, "avx512bw": True, "avx512dq": True, "avx512vl": True}
HOST = replace(describe_host("x86_64-unknown-linux-gnu", "x86-64-v4", FEATURES, "x86_64"), cores=2)
OLD_HOST = replace(describe_host("x86_64-unknown-linux-gnu", "x86-64", {}, "x86_64"), cores=2)
GPU = nvptx_target("sm_90a")
TARGETS = (HOST, OLD_HOST, GPU)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    rank = draw(st.integers(1, 4))
    extents = tuple(draw(st.sampled_from((1, 2, 3, 7, 16, 100, 257, 5000, 10**6))) for _ in range(rank))
    reduced = tuple(draw(st.booleans()) for _ in range(rank))
    itemsize = draw(st.sampled_from((1, 2, 4, 8)))
    accesses = []
    for _ in range(draw(st.integers(1, 3))):
        strides, step = [0] * rank, 1
        for axis in draw(st.permutations(range(rank))):
            strides[axis] = draw(st.sampled_from((0, step, step, -step)))
            step *= extents[axis]
        accesses.append(Access(itemsize, tuple(strides), draw(st.sampled_from((0, 1, 4)))))
    has_folds = any(reduced)
    return Problem(
        extents,
        reduced,
        tuple(accesses),
        8 * itemsize,
        draw(st.sampled_from((0.0, 3.0, 30.0, 200.0))),
        (0,) * rank,
        draw(st.integers(1, 3)) if has_folds else 1,
        draw(st.integers(1, 4)) if has_folds else 0,
        sum(reduced) == 1 and draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from((0, 4, 12))),
    )


def check(problem: Problem, schedule: Schedule, target: Target) -> None:
    layout = schedule.layout
    assert len(schedule.tile) == len(schedule.tail) == layout.rank == problem.rank
    assert layout.lane_count <= max(target.max_lanes_per_program, target.clustered_lanes)
    if target.lanes == 1:
        assert layout.lane_count == 1
    else:
        assert layout.lane_count % target.lanes == 0, "whole warps"
    for tile in (schedule.tile, schedule.tail):
        for axis, extent in enumerate(tile):
            assert extent == power_of_two_from(extent)
            assert schedule.tile[axis] % extent == 0
    if schedule.strategy == "whole":
        for axis in problem.reduced_axes:
            assert schedule.tile[axis] >= problem.extents[axis]
    else:
        assert schedule.blocked in problem.reduced_axes
        for axis in problem.reduced_axes:
            assert axis == schedule.blocked or schedule.tile[axis] == 1
    if schedule.strategy == "columns":
        assert schedule.width % schedule.tile[-1] == 0
        assert schedule.width * problem.folds * problem.element_bits // 8 <= target.shared_bytes
    assert schedule.kept_elements * problem.kept_bytes <= target.shared_bytes
    assert str(schedule).startswith(schedule.strategy)
    assert schedule.reasons


@settings(max_examples=500, deadline=None)
@given(problems(), st.sampled_from(TARGETS))
def test_schedules_are_legal(problem: Problem, target: Target) -> None:
    check(problem, choose(problem, target), target)


@settings(max_examples=500, deadline=None)
@given(problems(), st.sampled_from(TARGETS))
def test_tiles_fit_pieces(problem: Problem, target: Target) -> None:
    for axis in problem.reduced_axes:
        piece = piece_of(problem, axis, target)
        if not piece:
            continue
        assert piece == power_of_two_from(piece) and 2 * piece <= problem.extents[axis]
        cut = replace(problem, pieces=tuple(piece if k == axis else 0 for k in range(problem.rank)))
        schedule = choose(cut, target)
        check(
            replace(cut, extents=tuple(min(e, piece) if k == axis else e for k, e in enumerate(cut.extents))),
            schedule,
            target,
        )
        assert piece % schedule.tile[axis] == 0


def rows(count: int, length: int, **facts: object) -> Problem:
    access = Access(4, (length, 1))
    return Problem((count, length), (False, True), (access,), 32, 1.0, (0, 0), folds=1, **facts)  # type: ignore[arg-type]


def columns(length: int, count: int, **facts: object) -> Problem:
    access = Access(4, (count, 1))
    return Problem((length, count), (True, False), (access,), 32, 1.0, (0, 0), folds=1, **facts)  # type: ignore[arg-type]


def test_host_holds_short_rows_whole_and_takes_several() -> None:
    schedule = choose(rows(1000, 7), HOST)
    assert (schedule.strategy, schedule.tile) == ("whole", (8, 8))


def test_host_streams_long_rows_with_chains_of_additions_kept_short() -> None:
    assert choose(rows(100, 5000, sums=True), HOST).steps == 16
    assert choose(rows(100, 5000), HOST).steps == 1
    assert choose(rows(100, 500, sums=True), HOST).steps == 1


def test_host_keeps_costly_values_of_a_row_that_fits_its_memory() -> None:
    assert choose(rows(100, 5000, passes=3, kept_bytes=4), HOST).kept_elements == 16384
    assert choose(rows(100, 10**6, passes=3, kept_bytes=4), HOST).kept_elements == 0


def test_host_folds_many_columns_in_memory_and_few_in_registers() -> None:
    assert choose(columns(1000, 5000), HOST).strategy == "columns"
    assert choose(columns(1000, 60), HOST).strategy == "streaming"


def test_host_reads_a_transposed_operand_in_square_tiles() -> None:
    accesses = (Access(4, (1, 1000)), Access(4, (1000, 1), written=True))
    problem = Problem((1000, 1000), (False, False), accesses, 32, 0.0)
    assert choose(problem, HOST).tile == (8, 8)


@pytest.mark.parametrize(
    ("length", "lanes"), [(64, 128), (1000, 64), (1024, 64), (2048, 128), (4096, 128), (8192, 256)]
)
def test_gpu_holds_rows_in_registers(length: int, lanes: int) -> None:
    schedule = choose(rows(65536, length), GPU)
    assert schedule.strategy == "whole"
    assert schedule.layout.lane_count == lanes
    assert prod(schedule.tile) // lanes <= 32


def rewritten_rows(count: int, length: int) -> Problem:
    """Rows that are read, folded twice, and written."""
    read, written = Access(4, (length, 1)), Access(4, (length, 1), written=True)
    return Problem((count, length), (False, True), (read, written), 32, 40.0, (0, 0), folds=1, passes=3)


@pytest.mark.parametrize(
    ("length", "lanes"),
    [(4096, 256), (8192, 256), (16384, 512), (32768, 1024), (40_000, 2048), (65536, 2048), (262_144, 8192)],
)
def test_gpu_holds_rows_that_are_written_again_in_blocks_and_clusters(length: int, lanes: int) -> None:
    schedule = choose(rewritten_rows(65536, length), GPU)
    assert schedule.strategy == "whole"
    assert schedule.layout.lane_count == lanes
    assert prod(schedule.tile) // lanes <= 32
    older = choose(rewritten_rows(65536, length), nvptx_target("sm_80"))
    assert older.strategy == ("whole" if lanes <= 1024 else "streaming")


def test_gpu_streams_rows_that_do_not_fit() -> None:
    assert choose(rows(65536, 20000), GPU).strategy == "streaming"
    assert choose(replace(rows(65536, 16384), element_bits=64), GPU).strategy == "streaming"


@pytest.mark.parametrize(("offset", "length", "run"), [(0, 4096, 4), (2, 4096, 2), (1, 4096, 1), (0, 4095, 1)])
def test_gpu_runs_follow_alignment(offset: int, length: int, run: int) -> None:
    problem = Problem((100, length), (False, False), (Access(4, (length, 1), offset),), 32, 1.0)
    assert choose(problem, GPU).run[-1] == run


def test_gpu_moves_16_bytes_of_an_aligned_vector_of_any_length() -> None:
    problem = Problem((10**8 + 1,), (False,), (Access(4, (1,)), Access(4, (1,), written=True)), 32, 2.0)
    schedule = choose(problem, GPU)
    assert (schedule.run, schedule.tile) == ((4,), (4096,))


def test_gpu_spreads_small_work_over_more_programs() -> None:
    small = Problem((20_000,), (False,), (Access(4, (1,)),), 32, 2.0)
    assert choose(small, GPU).tile[0] < 4096


@pytest.mark.parametrize("target", TARGETS, ids=("avx512", "sse2", "nvptx"))
def test_large_reductions_to_few_results_are_cut(target: Target) -> None:
    assert piece_of(rows(1, 10**8), 1, target) > 0
    assert piece_of(columns(10**7, 3), 0, target) > 0
    assert piece_of(rows(1, 10_000), 1, target) == 0
    assert piece_of(rows(10_000, 5000), 1, target) == 0


def test_powers_of_two() -> None:
    assert [power_of_two_from(n) for n in (0, 1, 2, 3, 8, 9)] == [1, 1, 2, 4, 8, 16]
    assert [power_of_two_to(n) for n in (0, 1, 2, 3, 8, 9)] == [1, 1, 2, 2, 8, 8]
    assert [padded(n) for n in (0, 1, 2, 3)] == [2, 2, 2, 4]
