"""When recorded work runs: sharing, replaying, limits, memory, errors, threads."""

import gc
import threading
import weakref

import numpy
import pytest

import blockarray as np
from blockarray.execution.statistics import run as counters
from blockarray.testing import assert_equal_arrays
from codegen.compiler import statistics as compiler_counters


def chain(xp, x, c=1.5):
    return xp.sqrt(abs(x * c + 1.0)) - x / 3.0


def test_same_structure_compiles_and_partitions_nothing():
    x = np.array(numpy.arange(50.0))
    np.evaluate(chain(np, x))
    plans, compiled = counters.plans, compiler_counters.compiled
    for c in (2.0, -7.25, 1e300):
        assert_equal_arrays(chain(np, x, c), chain(numpy, numpy.arange(50.0), c), max_ulp=2)
    assert (counters.plans, compiler_counters.compiled) == (plans, compiled)


def test_new_extents_compile_nothing():
    np.evaluate(chain(np, np.array(numpy.arange(3001.0))))
    compiled = compiler_counters.compiled
    np.evaluate(chain(np, np.array(numpy.arange(4003.0))))
    assert compiler_counters.compiled == compiled


def test_a_large_value_is_kept_when_it_is_needed_a_second_time():
    values = numpy.arange(1 << 17, dtype=float) / (1 << 17)
    x = np.array(values)
    shared = np.exp(x) + 1
    (shared * 2).asnumpy()
    assert shared._cell.node.buffer is None
    (shared * 3).asnumpy()
    assert shared._cell.node.buffer is not None
    assert_equal_arrays(shared, numpy.exp(values) + 1, max_ulp=2)


def test_a_small_value_is_kept_if_it_can_be_read_again():
    x = np.array(numpy.arange(8.0))
    shared = np.exp(x) + 1
    passing = shared * 2
    below = passing._cell.node
    result = passing - shared
    del passing
    np.evaluate(result)
    assert shared._cell.node.buffer is not None
    assert_equal_arrays(shared, numpy.exp(numpy.arange(8.0)) + 1, max_ulp=2)
    # Held by the test, so kept; what only the recording holds is not.
    assert below.buffer is not None
    kernels = counters.bytes_written
    np.evaluate((x * 3 + 1) * 2)
    assert counters.bytes_written - kernels == x.nbytes


def turn_of_five(x):
    y = x * 0.5
    y = y + 0.25
    y = np.sqrt(y)
    y = y * 2.0
    return y - 0.5


def turn_of_seven(x):
    y = x * 0.5
    y = y + 0.25
    y = np.sqrt(y)
    y = y * 2.0
    y = y - 0.5
    y = abs(y)
    return y / 1.5


@pytest.mark.parametrize("turn", [turn_of_five, turn_of_seven])
def test_a_long_loop_makes_few_plans(turn):
    x = np.array(numpy.linspace(0, 1, 100))
    plans = counters.plans
    for _ in range(300):
        x = turn(x)
    assert np.isfinite(x).all()
    assert counters.plans - plans <= 4


def test_a_simulation_that_looks_at_every_step_stops_making_plans():
    grid = np.array(numpy.random.default_rng(0).integers(0, 2, (32, 32)))
    plans = []
    for _ in range(30):
        around = sum(np.roll(np.roll(grid, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        grid = ((around == 3) | ((grid == 1) & (around == 2))).astype(int)
        assert grid.sum() >= 0
        plans.append(counters.plans)
    assert plans[-1] == plans[4]


def test_evaluation_of_several_arrays_at_once():
    x = np.array(numpy.arange(6.0))
    first, second, third = x + 1, (x + 1) * 2, x.sum()
    np.evaluate(first, second, third, numpy.ones(3), 5)
    for one in (first, second, third):
        assert one._cell.node.buffer is not None
    assert_equal_arrays(second, (numpy.arange(6.0) + 1) * 2)


def test_writes_take_over_memory_that_nobody_else_reads():
    x = np.array(numpy.arange(1000.0))
    np.evaluate(x)
    # The first time, making the plan may leave cycles that hold the old value until they are collected: it is copied then.
    x[0] = -1.0
    x[10:20] += 0.0
    np.evaluate(x)
    gc.collect()
    address = x._cell.node.buffer.address
    for turn in range(5):
        x[turn] = -1.0
        x[10:20] += 1.0
        np.evaluate(x)
    assert x._cell.node.buffer.address == address
    reader = x * 2.0
    x[0] = 99.0
    np.evaluate(x)
    assert x._cell.node.buffer.address != address
    assert float(reader[0]) == -2.0 and float(x[0]) == 99.0


def test_many_updates_run_in_constant_memory():
    x = np.zeros(10)
    for _ in range(20_000):
        x += 1.0
    assert x._cell.node.depth <= 64
    assert_equal_arrays(x, numpy.full(10, 20_000.0))


def test_inputs_are_let_go():
    x = np.array(numpy.arange(5.0))
    y = x + 1
    node = y._cell.node
    np.evaluate(y)
    gc.collect()
    assert node.inputs == () and node.depth == 0


def test_failed_operations_change_nothing():
    x = np.array(numpy.arange(6.0))
    y = x * 2
    for bad in (lambda: y + np.zeros(5), lambda: y.reshape(4, 4), lambda: y[9], lambda: np.zeros(3) @ np.zeros(4)):
        with pytest.raises((ValueError, IndexError)):
            bad()
    with pytest.raises(ValueError):
        y += np.zeros((2, 6))
    with pytest.raises(TypeError):
        x //= "two"
    assert_equal_arrays(y, numpy.arange(6.0) * 2)
    assert_equal_arrays(x, numpy.arange(6.0))


def test_threads_read_one_pending_value():
    x = np.arange(3000) * 2 + 1
    y = (x * x).sum()
    seen = []
    start = threading.Barrier(4)

    def look():
        start.wait()
        seen.append(int(y))

    workers = [threading.Thread(target=look) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert seen == [sum((2 * i + 1) ** 2 for i in range(3000))] * 4


def test_kernel_counts_that_are_promised():
    x = np.array(numpy.random.default_rng(0).random((64, 300)).astype("float32"))
    normal = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    e = np.exp(x - x.max(-1, keepdims=True))
    softmax = e / e.sum(-1, keepdims=True)
    norm = np.sqrt((x**2).sum())
    long = x
    for _ in range(15):
        long = long * 0.5 + 1.0
    for expression, most in ((normal, 1), (softmax, 1), (norm, 2), (long, 1)):
        explanation = expression.explain()
        assert 1 <= len(explanation.kernels) <= most, str(explanation)
        assert explanation.temporaries == 0, str(explanation)
    large = np.ones(1 << 21, dtype="float32")
    assert len(np.sqrt((large**2).sum()).explain().kernels) <= 2


def test_numbers_of_every_kind_in_one_kernel():
    for dtype in ("int8", "uint8", "int64", "uint64", "float16", "float32", "float64"):
        values = numpy.arange(5).astype(dtype)
        assert_equal_arrays(np.array(values) * 3 + 2, values * 3 + 2)
    big = numpy.zeros(2, dtype="uint64")
    assert_equal_arrays(np.array(big) + (2**64 - 1), big + (2**64 - 1))


def test_a_second_evaluation_stores_what_new_work_reads_and_nothing_else() -> None:
    x = np.array(numpy.linspace(0, 1, 10_000))
    wave = np.sin(np.exp(x) * 3) + 1
    largest, smallest, total = wave.reshape(10, 1000).max(), wave.min(), wave.sum()
    written = []
    for value in (largest, smallest, total):
        before = np.statistics_of_run().bytes_written
        np.evaluate(value)
        written.append(np.statistics_of_run().bytes_written - before)
    assert written[1] == wave.nbytes + 8  # not the exponential, nor the product
    assert written[0] < wave.nbytes and written[2] == 8
    expected = numpy.sin(numpy.exp(numpy.linspace(0, 1, 10_000)) * 3) + 1
    numpy.testing.assert_allclose([largest, smallest, total], [expected.max(), expected.min(), expected.sum()])


def test_expressions_of_a_window_keep_their_value_when_it_is_written():
    # The window is read by what is written to it, and by what outlives the write.
    for size in (40, 200_000):
        x = np.array(numpy.arange(size, dtype="float64"))
        half = size // 2
        kept, direct = x[:half] * 3, x[:half] * 2
        x[:half] = direct
        np.evaluate(x)
        assert kept[:3].tolist() == [0.0, 3.0, 6.0]
        assert direct[:3].tolist() == [0.0, 2.0, 4.0]
        assert x[:3].tolist() == [0.0, 2.0, 4.0] and x[half].item() == half
        shared = x[:half] + 1
        x[:half] = shared * 10
        np.evaluate(x)
        assert shared[:3].tolist() == [1.0, 3.0, 5.0] and x[:3].tolist() == [10.0, 30.0, 50.0]


def test_making_a_plan_keeps_nothing_alive():
    gc.collect()
    gc.disable()
    try:
        x = np.array(numpy.arange(3000.0).reshape(30, 100))
        np.evaluate(x)
        held = weakref.ref(x._cell.node)
        np.evaluate((np.exp(x - x.max(axis=1, keepdims=True)) + x.cumsum(axis=0)).mean(axis=0) * 1.5)
        del x
        assert held() is None
    finally:
        gc.enable()
