"""Arrays of ours beside objects of other libraries: NumPy's protocols decide, and NumPy with its own arrays is the oracle."""

import copy
import operator
import pickle
from typing import Any

import numpy
import numpy.lib.mixins
import pytest

import blockarray as np
from blockarray.foreign import speaks_ours

BINARY = (operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.eq, operator.matmul)


class Converts:
    """What has an array of ours for ``__array__``."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([1, 2], dtype=dtype)


class Decides(Converts):
    """Written for our namespace: gets arrays of ours."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return ufunc, method, [type(one) for one in inputs], keywords


class Later(Decides):
    """A subclass is asked before its base, wherever it stands."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return "later"


class Refuses:
    def __array_ufunc__(self, *arguments: Any, **keywords: Any) -> Any:
        return NotImplemented


class TakesNone:
    __array_ufunc__ = None

    def __radd__(self, other: Any) -> Any:
        return "radd", type(other)

    def __rmatmul__(self, other: Any) -> Any:
        return "rmatmul", type(other)

    def __gt__(self, other: Any) -> Any:
        return "gt", type(other)


class GoesFirst:
    __array_priority__ = 10.0

    def __rmul__(self, other: Any) -> Any:
        return "rmul", type(other)


class WantsNumpy:
    """As a sparse matrix: its operators return NotImplemented for all but NumPy's arrays."""

    __array_priority__ = 10.0

    def __add__(self, other: Any) -> Any:
        return "sum" if isinstance(other, numpy.ndarray) else NotImplemented

    __radd__ = __add__


def written_elsewhere() -> Any:
    """A class whose module knows NumPy alone."""
    source = """
class Elsewhere:
    kept = []

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        self.kept.extend(inputs)
        return ufunc, method, [type(one) for one in inputs]
"""
    namespace: dict[str, Any] = {"numpy": numpy, "__name__": "elsewhere"}
    exec(source, namespace)
    return namespace["Elsewhere"]


@pytest.mark.filterwarnings("error")
def test_arrays_of_ours_come_from_array_methods() -> None:
    assert type(np.asarray(Converts())) is np.ndarray
    assert np.asarray(Converts()).tolist() == [1, 2]
    assert np.array(Converts(), dtype="float32").dtype == "float32"
    assert np.sum(Converts()) == 3
    assert (np.ones(2) + Converts()).tolist() == [2.0, 3.0]
    assert (Converts() + np.ones(2)).tolist() == [2.0, 3.0]
    assert np.stack([Converts(), Converts()]).tolist() == [[1, 2], [1, 2]]
    assert np.concatenate([Converts(), np.zeros(1)]).tolist() == [1.0, 2.0, 0.0]
    assert np.array([[Converts(), Converts()]]).shape == (1, 2, 2)
    assert np.sort(Converts()).tolist() == [1, 2]


def test_what_is_no_array_is_refused_as_by_numpy() -> None:
    class Wrong:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return [1, 2]

    with pytest.raises(ValueError, match="not producing an array"):
        np.ones(2) + Wrong()


def test_code_that_knows_ours_decides_with_ours() -> None:
    ones = np.ones(2)
    assert (ones + Decides())[:3] == (np.add, "__call__", [np.ndarray, Decides])
    assert np.multiply(Decides(), 1.0)[2] == [Decides, float]
    assert np.add.reduce(Decides(), axis=1)[:2] == (np.add, "reduce")
    assert np.sum(Decides())[:2] == (np.add, "reduce")
    assert np.add.accumulate(Decides())[1] == "accumulate"
    assert np.add.outer(ones, Decides())[1:3] == ("outer", [np.ndarray, Decides])
    assert np.add.reduceat(Decides(), [0])[1] == "reduceat"
    assert np.matmul(ones, Decides())[:2] == (np.matmul, "__call__")
    assert (ones @ Decides())[0] is np.matmul
    out = Decides()
    assert np.add(1, 2, out=out)[3]["out"] == (out,)
    assert np.add(1, 2, out)[3]["out"] == (out,)
    assert np.exp(Decides(), casting="no")[3] == {"casting": "no"}
    assert divmod(ones, Decides())[0] is np.divmod
    assert (ones ** Decides())[0] is np.power
    assert (ones < Decides())[0] is np.less


def test_subclasses_are_asked_first_and_all_may_refuse() -> None:
    assert np.add(Decides(), Later()) == "later"
    with pytest.raises(TypeError, match=r"all returned NotImplemented from __array_ufunc__\(<ufunc 'add'>, '__call__'"):
        np.ones(2) + Refuses()


def test_code_that_knows_numpy_decides_with_numpy() -> None:
    elsewhere = written_elsewhere()
    assert not speaks_ours(elsewhere, "__array_ufunc__") and speaks_ours(Decides, "__array_ufunc__")
    ones = np.ones(2)
    assert ones + elsewhere() == (numpy.add, "__call__", [numpy.ndarray, elsewhere])
    assert np.exp(elsewhere()) == (numpy.exp, "__call__", [elsewhere])
    assert np.add.reduce(elsewhere()) == (numpy.add, "reduce", [elsewhere])
    assert ones @ elsewhere() == (numpy.matmul, "__call__", [numpy.ndarray, elsewhere])


def test_what_others_get_is_theirs_to_keep() -> None:
    elsewhere = written_elsewhere()
    x = np.arange(3) + 0
    np.add(x, elsewhere())
    x += 10
    assert x.tolist() == [10, 11, 12]
    assert elsewhere.kept[0].tolist() == [0, 1, 2]


def test_no_ufunc_means_the_reflected_operator() -> None:
    ones = np.ones((2, 2))
    assert ones + TakesNone() == ("radd", np.ndarray)
    assert ones @ TakesNone() == ("rmatmul", np.ndarray)
    assert (ones < TakesNone()) == ("gt", np.ndarray)
    assert ones.sum() + TakesNone() == ("radd", type(ones.sum()))
    with pytest.raises(TypeError):
        np.add(ones, TakesNone())
    with pytest.raises(TypeError):
        ones - TakesNone()


def test_priority_means_the_reflected_operator() -> None:
    assert np.ones(2) * GoesFirst() == ("rmul", np.ndarray)
    assert np.ones(2) + WantsNumpy() == "sum"
    assert WantsNumpy() + np.ones(2) == "sum"


@pytest.mark.parametrize("operation", BINARY)
@pytest.mark.parametrize("make", [numpy.matrix, lambda value: numpy.ma.masked_equal(value, 2)])
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_subclasses_of_numpy_arrays_keep_their_meaning(operation: Any, make: Any) -> None:
    theirs = make([[1.0, 2.0], [3.0, 4.0]])
    host = numpy.arange(1.0, 5.0).reshape(2, 2)
    ours = np.asarray(host)
    for found, expected in (
        (operation(ours, theirs), operation(host, theirs)),
        (operation(theirs, ours), operation(theirs, host)),
    ):
        assert type(found) is type(expected)
        numpy.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_functions_ask_the_methods_of_subclasses() -> None:
    masked = numpy.ma.masked_equal([1.0, 2.0, 6.0], 2.0)
    for name in ("sum", "mean", "max", "min", "std", "cumsum"):
        numpy.testing.assert_array_equal(getattr(np, name)(masked), getattr(numpy, name)(masked))
    matrix = numpy.matrix([[1, 2], [3, 4]])
    assert type(np.sum(matrix, axis=0)) is numpy.matrix
    x = np.ones((2, 2))
    x += matrix
    assert type(x) is np.ndarray and x.tolist() == [[2.0, 3.0], [4.0, 5.0]]


def test_mixins_written_for_our_namespace() -> None:
    class Wrapped(numpy.lib.mixins.NDArrayOperatorsMixin):
        def __init__(self, value: Any) -> None:
            self.value = value

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
            if not all(isinstance(one, np.ndarray | Wrapped | int | float) for one in inputs):
                return NotImplemented
            plain = [one.value if isinstance(one, Wrapped) else one for one in inputs]
            return Wrapped(getattr(ufunc, method)(*plain, **keywords))

    x = np.arange(3)
    for found in (x + Wrapped(x), Wrapped(x) + x, np.add(x, Wrapped(x)), 2 * Wrapped(x)):
        assert type(found) is Wrapped and type(found.value) is np.ndarray
        assert found.value.tolist() == [0, 2, 4]


def test_pandas_decides() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": range(5), "y": [1.5] * 5})
    series, host = frame["x"], numpy.arange(5)
    ours = np.asarray(host)
    for found, expected in (
        (np.log1p(series), numpy.log1p(series)),
        (ours * series, host * series),
        (series * ours, series * host),
        (ours.max() * series, host.max() * series),
        (ours + series > 3, host + series > 3),
        (np.maximum(series, ours), numpy.maximum(series, host)),
        (np.exp(frame), numpy.exp(frame)),
        (np.ones((2, 5)) @ frame, numpy.ones((2, 5)) @ frame),
        (np.mean(frame, axis=0), numpy.mean(frame, axis=0)),
        (np.clip(series, 2, 3), numpy.clip(series, 2, 3)),
        (np.round(frame, 1), numpy.round(frame, 1)),
    ):
        assert type(found) is type(expected)
        assert found.equals(expected)
    holed = pandas.Series([1.0, None, 3.0])
    assert np.sum(holed) == numpy.sum(holed) == 4.0


def test_sparse_matrices_decide() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    host = numpy.arange(9.0).reshape(3, 3)
    ours = np.asarray(host)
    for kind in (sparse.csr_matrix, sparse.csr_array):
        theirs = kind(numpy.diag([1.0, 2.0, 3.0]))
        for operation in (operator.add, operator.sub, operator.matmul):
            for found, expected in (
                (operation(ours, theirs), operation(host, theirs)),
                (operation(theirs, ours), operation(theirs, host)),
            ):
                numpy.testing.assert_array_equal(numpy.asarray(found), numpy.asarray(expected))
        numpy.testing.assert_array_equal(numpy.asarray(ours[0] @ theirs), host[0] @ theirs)


@pytest.mark.parametrize("make", ["default_rng", "RandomState"])
def test_generators_are_numpys_to_others(make: str) -> None:
    ours, theirs = getattr(np.random, make)(3), getattr(numpy.random, make)(3)
    assert isinstance(ours, type(theirs))
    for name, arguments in (
        ("normal", (0, 1, 5)),
        ("permutation", (6,)),
        ("choice", (10, 3)),
        ("multivariate_normal", ([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]], 4)),
        ("standard_normal", (3,)),
    ):
        found = getattr(ours, name)(*arguments)
        assert type(found) is np.ndarray
        numpy.testing.assert_array_equal(found.asnumpy(), getattr(theirs, name)(*arguments))
    for kept in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours)):
        again = copy.deepcopy(theirs)
        assert type(kept) is type(ours)
        numpy.testing.assert_array_equal(kept.normal(size=2).asnumpy(), again.normal(size=2))
    shuffled, expected = np.arange(5), numpy.arange(5)
    ours.shuffle(shuffled)
    theirs.shuffle(expected)
    assert shuffled.tolist() == expected.tolist()


def test_pandas_takes_generators() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": range(9)})
    for make in ("RandomState", "default_rng"):
        found = frame.sample(3, random_state=getattr(np.random, make)(0))
        assert found.equals(frame.sample(3, random_state=getattr(numpy.random, make)(0)))
