"""Explanations as users ask for them."""

import numpy
import pytest

import blockarray as np

HOST_VALUES = numpy.random.default_rng(3).random((64, 100)).astype("float32")


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_softmax_and_z_score_take_one_kernel_and_no_temporary_array() -> None:
    x = np.array(HOST_VALUES)
    for result in (softmax(x), (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)):
        found = result.explain()
        assert (len(found.kernels), found.temporaries, found.temporary_bytes) == (1, 0, 0)
        assert found.kernels[0].bytes_read == found.kernels[0].bytes_written == HOST_VALUES.nbytes


def test_root_of_a_large_sum_takes_at_most_two_kernels() -> None:
    a = np.ones(3_000_000)
    found = np.explain(np.sqrt(np.sum(a**2)))
    assert len(found.kernels) <= 2 and found.temporary_bytes == 0


def test_several_arrays_are_explained_together() -> None:
    x = np.array(HOST_VALUES)
    assert len(np.explain(x + 1, x * 2).kernels) == 1


def test_operations_name_lines_of_the_program() -> None:
    (kernel,) = (np.array(HOST_VALUES) * 2).explain().kernels
    assert kernel.operations[0].startswith("multiply -> float32[64, 100]  at test_explain.py:")


def test_explaining_computes_nothing() -> None:
    before = np.statistics_of_run().kernels
    text = str(softmax(np.array(HOST_VALUES)).explain())
    assert np.statistics_of_run().kernels == before
    assert "ends here: its result was asked for" in text and "schedule: " in text


def test_arrays_with_values_need_no_kernel() -> None:
    x = np.array(HOST_VALUES)
    assert str(x.explain()) == "nothing to compute"


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match=r"explain\(\) expected arrays of blockarray .*, found list: pass each array"):
        np.explain([1, 2])


def test_functions_of_several_operations_name_the_line_that_called_them() -> None:
    x = np.array(HOST_VALUES)
    (kernel,) = ((x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)).explain().kernels
    assert len(kernel.operations) > 6
    assert all("  at test_explain.py:" in operation for operation in kernel.operations)
