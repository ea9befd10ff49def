"""Replays: a recording that was seen often runs in one go, and one that differs in anything does not run as it."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockarray as np
from blockarray.execution import evaluate, plan_cache, replay
from blockarray.execution.statistics import run as counters
from blockarray.testing import assert_equal_arrays


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Write a replay as soon as a plan is found a second time."""
    monkeypatch.setattr(evaluate, "FOUND_AGAIN", 1)
    plan_cache.forget_plans()


def run_often(function, *values, times=4):
    expected = function(numpy, *values)
    found = []
    for _ in range(times):
        ours = [np.array(value) for value in values]
        found.append(function(np, *ours).asnumpy())
        assert_equal_arrays(found[-1], expected, relative_tolerance=1e-12, absolute_tolerance=1e-12)
        assert_equal_arrays(found[-1], found[0])


@pytest.fixture
def written(monkeypatch):
    """Counts the replays that ran."""
    ran = []
    original = replay._written

    def counted(recording, plan):
        function = original(recording, plan)

        def run(node):
            done = function(node)
            ran.append(done)
            return done

        return run

    monkeypatch.setattr(replay, "_written", counted)
    return ran


@pytest.mark.parametrize(
    "function",
    [
        lambda xp, x, y: x * 2.0 + y,
        lambda xp, x, y: (x - x.mean(axis=1, keepdims=True)) / y.std(),
        lambda xp, x, y: xp.exp(x[1:, ::2]) - y[:-1, 1::2],
        lambda xp, x, y: xp.concatenate([x, y])[2:6].sum(axis=0),
        lambda xp, x, y: x @ y.T + 1.0,
        lambda xp, x, y: xp.where(x > y, x, 0.5).argmax(axis=1),
        lambda xp, x, y: xp.cumsum(x, axis=1)[:, -1] + y.sum(axis=1),
    ],
)
def test_many_kinds_of_recordings(function, written):
    values = numpy.random.default_rng(0).normal(size=(2, 4, 4))
    run_often(function, values[0], values[1])
    assert written and written[-1]


def test_counts_are_those_of_the_general_way():
    x = np.array(numpy.ones((30, 40)))
    before = counters.snapshot()
    steps = []
    for _ in range(4):
        np.evaluate((x + 1).sum(axis=1))
        now = counters.snapshot()
        steps.append([getattr(now, name) - getattr(before, name) for name in
                      ("kernels", "bytes_read", "bytes_written", "temporaries_avoided", "temporary_bytes_avoided")])  # fmt: skip
        before = now
    assert steps[0] == steps[-1] and steps[0][0] == 1
    assert counters.replays >= 3


def test_nodes_that_are_one_stay_one():
    a, b = (np.array(numpy.arange(5.0) + k) for k in range(2))
    for _ in range(3):
        y = np.sqrt(a)
        assert_equal_arrays(y * y, numpy.sqrt(numpy.arange(5.0)) ** 2, max_ulp=2)
        assert_equal_arrays(a * a, numpy.arange(5.0) ** 2)
    # Two nodes of the same kinds where the plan has one.
    assert_equal_arrays(
        np.sqrt(a) * np.sqrt(b), numpy.sqrt(numpy.arange(5.0)) * numpy.sqrt(numpy.arange(5.0) + 1), max_ulp=2
    )
    assert_equal_arrays(a * b, numpy.arange(5.0) * (numpy.arange(5.0) + 1))


def test_constants_that_were_equal_may_differ():
    x = np.array(numpy.arange(5.0))
    for _ in range(3):
        assert_equal_arrays(x * 2.0 + 2.0, numpy.arange(5.0) * 2 + 2)
    assert_equal_arrays(x * 2.0 + 3.0, numpy.arange(5.0) * 2 + 3)
    for _ in range(3):
        assert_equal_arrays(x * 5.0 + 7.0, numpy.arange(5.0) * 5 + 7)
    assert_equal_arrays(x * 4.0 + 4.0, numpy.arange(5.0) * 4 + 4)


def test_shape_dtype_and_alignment_tell_recordings_apart():
    for shape in [(6,), (2, 3), (1, 6), (6,)]:
        for dtype in ["float32", "float64", "int64"]:
            run_often(lambda xp, x: x + x[::-1], numpy.arange(6).astype(dtype).reshape(shape))


def test_windows_at_other_places():
    values = numpy.arange(500.0)
    x = np.array(values)
    np.evaluate(x)
    for start in (8, 16, 24, 25, 26, 40, 48, 13, 0):
        assert_equal_arrays(x[start : start + 40] * 2.0, values[start : start + 40] * 2)
    pending = x + 1.0
    for start in (8, 16, 24):
        assert_equal_arrays(pending[start : start + 40] * 2.0, (values[start : start + 40] + 1) * 2)


def test_a_value_computed_before_is_kept_all_the_same():
    x = np.array(numpy.arange(8.0))
    for _ in range(4):
        shared = np.exp(x) + 1
        (shared * 2).asnumpy()
        (shared * 3).asnumpy()
        assert shared._cell.node.buffer is not None


def test_an_error_on_the_way_leaves_the_recording_whole(monkeypatch):
    x = np.array(numpy.arange(8.0))
    for _ in range(3):
        np.evaluate(x * 7.0)
    (found,) = [one for known in plan_cache.replays.values() for one in known]
    y = x * 7.0

    def full(nbytes):
        raise MemoryError("full")

    monkeypatch.setitem(found.__kwdefaults__, "allocate", full)
    with pytest.raises(MemoryError):
        np.evaluate(y)
    monkeypatch.undo()
    assert_equal_arrays(y, numpy.arange(8.0) * 7)


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "multiply", "subtract", "maximum"]), st.integers(0, 5), st.integers(0, 5)),
        min_size=1,
        max_size=6,
    ),
    order=st.permutations(range(3)),
)
def test_random_expressions_over_the_same_leaves(steps, order):
    values = [numpy.arange(12.0).reshape(3, 4) - 4 * k for k in range(3)]
    leaves = [np.array(values[k]) for k in order]
    ours, theirs = list(leaves), [values[k] for k in order]
    for name, a, b in steps:
        left, right = a % len(ours), b % len(ours)
        ours.append(getattr(np, name)(ours[left], ours[right]))
        theirs.append(getattr(numpy, name)(theirs[left], theirs[right]))
    assert_equal_arrays(ours[-1], theirs[-1])
