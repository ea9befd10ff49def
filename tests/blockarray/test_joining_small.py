"""Joining small arrays that exist: values, dtypes and memory order of NumPy, no kernel, and no shared memory."""

import numpy
import pytest

import blockarray
from blockarray.testing import arrays, assert_matches_numpy


def with_strides(array):
    return array, array.strides


@pytest.mark.parametrize("name", ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"])
def test_small_pieces_of_any_layout(name):
    assert_matches_numpy(
        lambda xp, a, b: with_strides(getattr(xp, name)([a, b, a])),
        arrays("int16", (2, 3)),
        arrays("float32", (2, 3)),
        examples=40,
    )


def test_pieces_that_exist_are_joined_without_kernels():
    pieces = [blockarray.array(numpy.arange(10.0) + k) for k in range(20)]
    before = blockarray.statistics_of_run().kernels
    joined = blockarray.concatenate(pieces)
    stacked = blockarray.stack([one[::-1] for one in pieces], axis=1)
    assert joined.tolist() == numpy.concatenate([one.asnumpy() for one in pieces]).tolist()
    assert stacked.tolist() == numpy.stack([one.asnumpy()[::-1] for one in pieces], axis=1).tolist()
    if pieces[0].device == "cpu":
        assert blockarray.statistics_of_run().kernels == before


def test_writes_are_seen_on_one_side_only():
    piece = blockarray.array(numpy.arange(3.0))
    joined = blockarray.concatenate([piece])
    joined[0], piece[1] = 7, 8
    assert (joined.tolist(), piece.tolist()) == ([7.0, 1.0, 2.0], [0.0, 8.0, 2.0])
    recorded = piece + 1
    piece[:] = 0
    assert blockarray.append(piece, recorded).tolist() == [0.0, 0.0, 0.0, 1.0, 9.0, 3.0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64"])
def test_elements_of_an_array_of_one_number_need_no_kernel(dtype):
    made = [
        blockarray.ones(5, dtype),
        blockarray.full((5,), 3, dtype),
        blockarray.zeros_like(blockarray.ones(5, dtype)),
    ]
    before = blockarray.statistics_of_run().kernels
    for array, value in zip(made, [1, 3, 0], strict=True):
        expected = numpy.full(5, value, dtype)
        assert [type(one) for one in array] == [type(one) for one in expected]
        assert [array[k] for k in range(-5, 5)] == [expected[k] for k in range(-5, 5)]
        assert [float(one) ** 2 for one in array] == [float(one) ** 2 for one in expected]
    assert blockarray.statistics_of_run().kernels == before
