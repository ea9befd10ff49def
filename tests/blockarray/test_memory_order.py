"""The memory order of results is NumPy's (K) for operands whose axes are not in row-major order."""

import numpy
import pytest

import blockarray

FUNCTIONS = {
    "sort": lambda xp, a: xp.sort(a),
    "sort along the first axis": lambda xp, a: xp.sort(a, axis=0),
    "partition": lambda xp, a: xp.partition(a, 1),
    "nan_to_num": lambda xp, a: xp.nan_to_num(a),
    "sinc": lambda xp, a: xp.sinc(a),
    "gradient": lambda xp, a: xp.gradient(a, axis=0),
    "unwrap": lambda xp, a: xp.unwrap(a),
    "delete": lambda xp, a: xp.delete(a, 1, axis=0),
    "insert": lambda xp, a: xp.insert(a, 1, 5, axis=0),
    "real_if_close": lambda xp, a: xp.real_if_close(a),
    "reversed sum": lambda xp, a: a[::-1] + a[::-1],
    "running sum": lambda xp, a: xp.cumsum(a, axis=0),
    "running sum of diagonals": lambda xp, a: xp.cumsum(xp.diagonal(a), axis=0),
    "part of it": lambda xp, a: xp.sort(a[:, :2]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("exists", [False, True])
def test_results_of_transposed_operands(name, exists):
    results = []
    for xp in (numpy, blockarray):
        whole = xp.arange(60.0).reshape(3, 4, 5)
        if exists and xp is blockarray:
            xp.evaluate(whole)
        results.append(FUNCTIONS[name](xp, whole.T))
    expected, found = results
    assert found.strides == expected.strides
    numpy.testing.assert_allclose(numpy.asarray(found), expected, rtol=1e-12, atol=1e-12)
    assert found.ravel("K").tolist() == pytest.approx(expected.ravel("K").tolist())
