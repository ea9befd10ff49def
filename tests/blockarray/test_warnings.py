"""Warnings of NumPy's kinds, which point at the line of the user's program."""

import inspect
import warnings

import numpy
import pytest

import blockarray

WARNING = {
    "a fit": lambda xp: xp.polyfit(xp.array([1.0, 1.0]), xp.array([1.0, 2.0]), 1),
    "nothing but NaN": lambda xp: xp.nanmedian(xp.array([numpy.nan])),
    "variance of one": lambda xp: xp.array([1.0]).var(ddof=1),
    "deviation of one": lambda xp: xp.array([1]).std(ddof=1),
    "deviation along an axis": lambda xp: xp.std(xp.ones((2, 1)), axis=1, ddof=2),
    "mean of nothing": lambda xp: xp.array([]).mean(),
    "mean of nothing along an axis": lambda xp: xp.mean(xp.ones((0, 3)), axis=0),
    "variance of nothing": lambda xp: xp.var(xp.array([])),
}
# Kernels say nothing of what they divide: these come with the others in NumPy.
OF_KERNELS = ("invalid value", "divide by zero")


def warned(function, xp):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(xp)
    return [one for one in caught if not str(one.message).startswith(OF_KERNELS)]


@pytest.mark.parametrize("case", WARNING)
def test_warnings_are_numpys_and_point_at_the_users_line(case):
    function = WARNING[case]
    expected, found = warned(function, numpy), warned(function, blockarray)
    assert [(one.category, str(one.message)) for one in found] == [(one.category, str(one.message)) for one in expected]
    assert found
    for one in found:
        assert (one.filename, one.lineno) == (__file__, inspect.getsourcelines(function)[1])


def test_means_of_something_do_not_warn():
    for function in (
        lambda xp: xp.mean(xp.ones((3, 0, 2)), axis=0),
        lambda xp: xp.var(xp.ones(2), ddof=1),
        lambda xp: xp.mean(xp.ones(2)),
    ):
        assert not warned(function, blockarray)


def test_errors_inside_numpy_still_tell_where_they_were_raised():
    with pytest.raises(ValueError, match="could not be broadcast") as raised:
        blockarray.trapezoid(blockarray.ones((2, 3)), blockarray.ones((5, 7)))
    assert any("numpy" in str(entry.path) for entry in raised.traceback)
