"""Errors of NumPy's types, texts and order, and those of blockarray's own functions."""

import numpy
import pytest

import blockarray
import codegen.settings
from codegen.errors import TargetError


def outcome(function, xp):
    """The type and the text of what `function` raises, or its value."""
    try:
        value = function(xp)
    except Exception as error:
        return type(error), str(error)
    return numpy.asarray(value)


def read_only(xp, dtype="f8"):
    array = xp.ones(3, dtype)
    array.flags.writeable = False
    return array


def in_place(xp, array, other, name="__iadd__"):
    return getattr(array, name)(other)


def delete(array, key):
    del array[key]


RAISING = {
    "in-place broadcast": lambda xp: in_place(xp, xp.ones((8, 6)), xp.ones((4, 6))),
    "output of another shape": lambda xp: in_place(xp, xp.ones(3), xp.ones((4, 3))),
    "signed with unsigned": lambda xp: xp.less(xp.ones((3, 2), "u8"), xp.ones((2, 3), "i8")),
    "unsigned with signed": lambda xp: xp.not_equal(xp.ones((3, 2), "i8"), xp.ones((2, 3), "u8")),
    "read-only before shapes": lambda xp: in_place(xp, read_only(xp), xp.ones(4)),
    "read-only before casting": lambda xp: in_place(xp, read_only(xp, "i8"), 1.5),
    "read-only before exponents": lambda xp: in_place(xp, read_only(xp, "i8"), -1, "__ipow__"),
    "read-only before indices": lambda xp: read_only(xp).__setitem__(5, 1),
    "read-only before index types": lambda xp: read_only(xp).__setitem__("a", 1),
    "shapes before exponents": lambda xp: xp.ones((3, 2), "i8") ** xp.full((2, 3), -1),
    "exponents": lambda xp: xp.ones(3, "i8") ** xp.array(-1),
    "inner of matrices": lambda xp: xp.inner(xp.ones((2, 3)), xp.ones((2, 4))),
    "inner of vectors": lambda xp: xp.inner(xp.ones(3), xp.ones(4)),
    "inner of a matrix and a vector": lambda xp: xp.inner(xp.ones((2, 3)), xp.ones(4)),
    "inner of three axes": lambda xp: xp.inner(xp.ones((2, 2, 3)), xp.ones((5, 2, 4))),
    "deleting": lambda xp: delete(xp.ones(2), 0),
    "text compared": lambda xp: xp.ones(2) < "a",
    "None compared": lambda xp: xp.ones(2) >= None,
    "nothing to take the largest of": lambda xp: xp.nanmax(xp.array([])),
    "65 axes": lambda xp: xp.ones((1,) * 65),
    "view of other items": lambda xp: xp.arange(8).reshape(2, 4)[:, ::2].view("i4"),
}


@pytest.mark.parametrize("case", RAISING)
@pytest.mark.filterwarnings("ignore::blockarray.HostFallbackWarning")
def test_errors_are_numpys(case):
    expected = outcome(RAISING[case], numpy)
    assert isinstance(expected, tuple), "NumPy raises nothing: the case tests nothing"
    assert outcome(RAISING[case], blockarray) == expected


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("number", [300, -1, 2**40, 2**63, -(2**63) - 1, 2**64, 10**20, -(10**20)])
def test_integers_outside_the_dtype(dtype, number):
    expected = outcome(lambda xp: xp.ones(2, dtype) * number, numpy)
    found = outcome(lambda xp: xp.ones(2, dtype) * number, blockarray)
    if isinstance(expected, tuple):
        assert found == expected
    else:
        numpy.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("index", [3, -4, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, 2**70, -(2**70)])
def test_indices_that_no_array_has(index):
    for read in (lambda xp: xp.ones(3)[index], lambda xp: xp.ones((2, 3))[0, index], lambda xp: xp.ones((3, 2))[index]):
        assert outcome(read, blockarray) == outcome(read, numpy)
    assert outcome(lambda xp: xp.ones(3).__setitem__(index, 1), blockarray) == outcome(
        lambda xp: xp.ones(3).__setitem__(index, 1), numpy
    )


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "f2", "f4", "f8"])
@pytest.mark.parametrize("deg", [False, True])
def test_angle_has_the_width_of_its_numbers(dtype, deg):
    values = numpy.array([1, 0, 1]).astype(dtype) * numpy.array([1, 1, 1], dtype)
    expected, found = numpy.angle(values, deg), blockarray.angle(blockarray.array(values), deg)
    assert found.dtype == expected.dtype
    numpy.testing.assert_array_equal(numpy.asarray(found), expected)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress_as_function_and_method(axis):
    for xp in (numpy, blockarray):
        values = xp.arange(6).reshape(2, 3)
        results = [
            numpy.asarray(values.compress([False, True], axis=axis)),
            numpy.asarray(xp.compress([False, True], values, axis=axis)),
            numpy.asarray(values.compress(xp.array([True, False]), axis)),
        ]
        if xp is numpy:
            expected = results
    for one, other in zip(results, expected, strict=True):
        numpy.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", [None, 0, b"cpu", ["cpu"]])
def test_devices_are_named_by_text(name):
    with pytest.raises(TypeError, match=r"device: expected a str such as 'cpu' or 'cuda:0', found"):
        blockarray.set_device(name)
    with pytest.raises(TargetError, match=r"there is none called 'tpu', expected 'cpu', 'cuda'"):
        blockarray.set_device("tpu")


@pytest.mark.parametrize("function", [blockarray.evaluate, blockarray.explain])
def test_what_has_its_value_may_stand_among_arrays(function):
    function(blockarray.ones(2) + 1, numpy.ones(2), numpy.float32(1), 3, True, 1j)
    for wrong in ("text", None, [blockarray.ones(2)]):
        with pytest.raises(TypeError, match=rf"{function.__name__}\(\) expected arrays of blockarray .*, found"):
            function(blockarray.ones(2), wrong)


def test_a_folder_for_dumps_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with codegen.settings.override(dump=("block",), dump_directory=tmp_path / "file" / "dump", cache=False):
        with pytest.raises(OSError, match="BLOCKARRAY_DUMP_DIR: expected a folder that can be written"):
            blockarray.evaluate(blockarray.arange(7, dtype="i2") * 3 + 11 - blockarray.arange(7, dtype="i2"))
