"""arange and linspace: NumPy's values to the bit, computed by the kernel that uses them."""

import numpy
import pytest
from hypothesis import given, settings, strategies

import blockarray as np

NUMBERS = (
    strategies.floats(-100, 100)
    | strategies.integers(-30, 30)
    | strategies.sampled_from([0.1, -0.0, 1e-300, 1e20, numpy.float32(0.7), numpy.float16(0.5), numpy.int64(4)])
)
STEPS = strategies.floats(0.01, 5) | strategies.floats(-5, -0.01) | strategies.integers(-3, 3) | NUMBERS
DTYPES = strategies.sampled_from([None, None, "float16", "float32", "float64", "int32", "int64"])


def outcome(function, *arguments, **keywords):
    """The value's bytes and what they are, or the error."""
    try:
        with numpy.errstate(all="ignore"):
            value = function(*arguments, **keywords)
    except (ValueError, OverflowError, ZeroDivisionError, TypeError, MemoryError) as error:
        return type(error), str(error)
    step = None
    if isinstance(value, tuple):
        value, step = value
        step = (type(step), numpy.asarray(step).tobytes())
    host = numpy.asarray(value)
    return host.dtype, host.shape, host.tobytes(), step


@settings(max_examples=200, deadline=None)
@given(NUMBERS, NUMBERS, STEPS, DTYPES)
def test_arange(start, stop, step, dtype):
    if step != 0 and abs((float(stop) - float(start)) / float(step)) > 1e5:
        return
    assert outcome(np.arange, start, stop, step, dtype) == outcome(numpy.arange, start, stop, step, dtype)


@settings(max_examples=200, deadline=None)
@given(
    NUMBERS | strategies.just(numpy.linspace(-3, 5, 6).reshape(2, 3)),
    NUMBERS,
    strategies.sampled_from([-1, 0, 1, 2, 3, 50, 1001]),
    strategies.booleans(),
    strategies.booleans(),
    DTYPES,
    strategies.sampled_from([0, -1]),
)
def test_linspace(start, stop, count, endpoint, retstep, dtype, axis):
    given = {"endpoint": endpoint, "retstep": retstep, "dtype": dtype, "axis": axis}
    assert outcome(np.linspace, start, stop, count, **given) == outcome(numpy.linspace, start, stop, count, **given)


@pytest.mark.parametrize("make", [lambda: np.arange(0, 1, 0.001), lambda: np.linspace(0, 1, 1000)])
def test_what_uses_a_range_computes_it(make):
    plan = np.sqrt(make() + 1).explain()
    assert len(plan.kernels) == 1 and plan.temporaries == 0 and plan.kernels[0].bytes_read == 0
