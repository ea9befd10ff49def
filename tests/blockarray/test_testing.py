"""``blockarray.testing``: the strategies draw what they say, the comparison sees what differs, and messages show it."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import blockarray
from blockarray import testing
from blockarray.testing import (
    Arguments,
    arrays,
    arrays_with_axes,
    as_blockarray,
    assert_equal_arrays,
    assert_matches_numpy,
    axes,
    broadcastable_arrays,
    broadcastable_shapes,
    dtypes,
    scalars,
    ulp_distance,
)
from blockarray.testing.layouts import copy_with_layout, layout_of

ROOT = Path(blockarray.__file__).absolute().parent.parent
every = settings(max_examples=200, deadline=None, database=None)
all_dtypes = dtypes("boolean", "signed", "unsigned", "float", "bfloat", "complex")


def library(**functions: object) -> SimpleNamespace:
    """NumPy under another name, with some functions replaced: what a faulty array library looks like."""
    return SimpleNamespace(**{**vars(numpy), **functions})


# ---------------------------------------------------------------------------------------------------------- comparison


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ml_dtypes.bfloat16])
def test_ulp_distance_counts_representable_numbers(dtype):
    one = numpy.ones((), dtype)
    unsigned = f"u{one.dtype.itemsize}"
    bits = one.view(unsigned)
    above = (bits + numpy.ones((), unsigned) * 3).view(dtype)
    assert ulp_distance(above, one) == ulp_distance(one, above) == 3
    smallest = numpy.ones((), unsigned).view(dtype)
    assert ulp_distance(smallest, -smallest) == 2
    assert ulp_distance(smallest, numpy.zeros((), dtype)) == 1
    assert ulp_distance(-numpy.zeros((), dtype), numpy.zeros((), dtype)) == 0
    special = numpy.array([numpy.nan, numpy.inf, -numpy.inf, numpy.nan, numpy.inf, 1], dtype)
    other = numpy.array([-numpy.nan, numpy.inf, numpy.inf, 1, 1, 1], dtype)
    assert [int(distance) < 2**63 for distance in ulp_distance(special, other)] == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]


def test_ulp_distance_of_complex_numbers_is_the_larger_part_s():
    z = numpy.array([1 + 1j])
    assert ulp_distance(z, numpy.nextafter(z.real, 2) + 1j * numpy.nextafter(numpy.nextafter(z.imag, 2), 2)) == [2]


def test_ulp_distance_refuses_what_has_no_ulp():
    with pytest.raises(TypeError, match="expected arrays of one dtype, found float32 and float64"):
        ulp_distance(numpy.float32(1), numpy.float64(1))
    with pytest.raises(TypeError, match="found int64"):
        ulp_distance(numpy.int64([1]), numpy.int64([1]))


@every
@given(arrays(all_dtypes))
def test_an_array_equals_itself(array):
    assert_equal_arrays(array, array.copy())


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (numpy.zeros(2), numpy.zeros(3), "shapes differ: expected (3,), found (2,)"),
        (numpy.zeros(2, "f4"), numpy.zeros(2), "dtypes differ: expected float64, found float32"),
        (
            numpy.array([[1, 2], [3, 5]]),
            numpy.array([[1, 2], [3, 4]]),
            "1 of 4 elements differ (int64, shape (2, 2)):\n   index  expected  found\n  (1, 1)         4      5",
        ),
        (
            numpy.array([1.0, numpy.nan]),
            numpy.array([numpy.nextafter(1.0, 2), 2.0]),
            "2 of 2 elements differ (float64, shape (2,), at most 0 ulp allowed, found infinitely many):\n"
            "  index            expected  found              ulp\n"
            "    (0)  1.0000000000000002    1.0                1\n"
            "    (1)                 2.0    nan  infinitely many",
        ),
        (numpy.array(-0.0), numpy.array(0.0), "zeros of different sign"),
        (numpy.arange(9), numpy.arange(9) + 1, "... and 4 more"),
        (numpy.array(["a"]), numpy.array(["b"]), "1 of 1 elements differ"),
        (True, False, "1 of 1 elements differ (bool, shape ())"),
    ],
)
def test_messages_show_what_differs(actual, expected, message):
    with pytest.raises(AssertionError) as raised:
        assert_equal_arrays(actual, expected)
    assert message in str(raised.value)


def test_what_is_allowed_to_differ():
    one, above = numpy.float32([1.0]), numpy.float32([1.0000002])
    assert_equal_arrays(above, one, max_ulp=2)
    assert_equal_arrays(above, one, max_ulp={"float32": 2})
    assert_equal_arrays(above, one, relative_tolerance=1e-6)
    assert_equal_arrays(above, one, absolute_tolerance=1e-6)
    assert_equal_arrays(-0.0, 0.0, signed_zeros=False)
    assert_equal_arrays(numpy.float32(1), 1.0, check_dtype=False)
    assert_equal_arrays(numpy.array([5, 7]), numpy.array([5, 8]), absolute_tolerance=1)
    for wrong in ({"max_ulp": {"float64": 2}}, {"relative_tolerance": 1e-8}, {"max_ulp": 1}):
        with pytest.raises(AssertionError):
            assert_equal_arrays(above, one, **wrong)
    with pytest.raises(AssertionError):
        assert_equal_arrays(
            numpy.array([numpy.inf]), numpy.array([1.0]), relative_tolerance=1e9, absolute_tolerance=1e300
        )


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"max_ulp": -1}, ValueError),
        ({"max_ulp": "4"}, TypeError),
        ({"max_ulp": {4: 4}}, TypeError),
        ({"max_ulp": {"float32": float("nan")}}, ValueError),
        ({"relative_tolerance": -1e-3}, ValueError),
        ({"absolute_tolerance": True}, TypeError),
    ],
)
def test_wrong_tolerances(wrong, error):
    with pytest.raises(error, match=next(iter(wrong))):
        assert_equal_arrays(1.0, 1.0, **wrong)


# ------------------------------------------------------------------------------------------------------------- layouts


@every
@given(arrays(all_dtypes, max_dims=4))
def test_a_copy_has_the_same_layout(array):
    layout = layout_of(array)
    assert layout is not None
    copy, row = copy_with_layout(array, numpy)
    assert isinstance(copy, numpy.ndarray) and isinstance(row, numpy.ndarray)
    assert (copy.shape, copy.dtype, copy.tobytes()) == (array.shape, array.dtype, array.tobytes())
    strides = zip(array.shape, array.strides, copy.strides, strict=True)
    assert array.size == 0 or all(one == other for extent, one, other in strides if extent > 1)
    assert row.ndim == 1 and row.size == layout.base_size and (not copy.size or numpy.shares_memory(copy, row))


def test_every_layout_is_drawn():
    seen: set[str] = set()

    @settings(max_examples=300, deadline=None, database=None)
    @given(arrays("int32", min_dims=2, min_side=2))
    def look(array):
        layout = layout_of(array)
        assert layout is not None
        names = {
            "contiguous": array.flags.c_contiguous and not layout.offset,
            "offset": layout.offset > 0,
            "transposed": layout.axes != tuple(range(len(layout.axes))),
            "reversed": any(stride < 0 for stride in array.strides),
            "strided": any(item.step not in (None, 1, -1) for item in layout.index),
            "broadcast": 0 in array.strides,
        }
        seen.update(name for name, found in names.items() if found)

    look()
    assert seen == {"contiguous", "offset", "transposed", "reversed", "strided", "broadcast"}


@pytest.mark.parametrize("layout", ["contiguous", "offset", "transposed", "reversed", "strided", "broadcast"])
def test_layouts_can_be_chosen(layout):
    @settings(max_examples=60, deadline=None, database=None)
    @given(arrays("int16", min_dims=1, min_side=2, layouts=[layout]))
    def look(array):
        if layout != "broadcast":
            assert 0 not in array.strides
        if layout != "reversed":
            assert all(stride >= 0 for stride in array.strides)
        if layout == "contiguous":
            assert array.flags.c_contiguous

    look()


def test_windows_that_overlap_have_no_layout():
    windows = numpy.lib.stride_tricks.sliding_window_view(numpy.arange(5), 3)
    assert layout_of(windows) is None
    copy, _ = copy_with_layout(windows, numpy)
    assert isinstance(copy, numpy.ndarray)
    numpy.testing.assert_array_equal(copy, windows)


def test_layout_as_text():
    array = numpy.arange(24).reshape(4, 6)[:, 4::-2].T
    assert str(layout_of(array)) == "row.reshape((4, 6))[:, 4::-2].transpose((1, 0))"
    assert str(layout_of(numpy.arange(9)[2:8:3])) == "row[2:].reshape((4,))[::3]"
    assert str(layout_of(numpy.broadcast_to(numpy.arange(3)[:, None], (3, 2)))) == (
        "broadcast_to(row.reshape((3,))[:, None], (3, 2))"
    )


@settings(max_examples=60, deadline=None, database=None)
@given(arrays(dtypes("boolean", "signed", "float")))
def test_as_blockarray_keeps_the_values(array):
    copy = as_blockarray(array)
    assert isinstance(copy, blockarray.ndarray)
    assert_equal_arrays(copy, array)


def test_as_blockarray_refuses_lists():
    with pytest.raises(TypeError, match="expected a numpy.ndarray, found list"):
        as_blockarray([1, 2])  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------- strategies


@every
@given(st.data(), st.integers(1, 4))
def test_shapes_broadcast(data, count):
    shapes = data.draw(broadcastable_shapes(count))
    assert len(shapes) == count
    assert len(numpy.broadcast_shapes(*shapes)) <= 3


@every
@given(broadcastable_arrays(3, "int8", max_dims=2, max_side=4))
def test_arrays_broadcast(several):
    assert isinstance(several, Arguments) and len(several) == 3
    assert max(numpy.broadcast_shapes(*(array.shape for array in several)), default=0) <= 4


@every
@given(arrays_with_axes("int8"))
def test_axes_fit_their_array(pair):
    array, axis = pair
    array.sum(axis=axis)


@every
@given(st.data(), st.integers(0, 5))
def test_axes_are_different(data, ndim):
    axis = data.draw(axes(ndim))
    assert numpy.zeros((1,) * ndim).sum(axis=axis) is not None
    if isinstance(axis, tuple):
        assert len({place % ndim for place in axis}) == len(axis)


def test_axes_can_be_chosen():
    @settings(max_examples=50, deadline=None, database=None)
    @given(axes(3, none=False, several=False), axes(3, single=False, several=False), axes(2, none=False, single=False))
    def look(single, none, several):
        assert isinstance(single, int) and none is None and isinstance(several, tuple)

    look()


@every
@given(st.data(), dtypes("float", "bfloat", "complex"))
def test_kinds_of_values(data, dtype):
    finite = data.draw(arrays(dtype, values="finite"))
    assert numpy.isfinite(finite).all()
    moderate = data.draw(arrays(dtype, values="moderate"))
    wide = numpy.complex128 if dtype.kind == "c" else numpy.float64
    assert (numpy.abs(moderate.astype(wide).real) <= 1000).all()


@every
@given(st.data(), dtypes("signed", "unsigned", "float", "bfloat"))
def test_bounds_hold(data, dtype):
    array = data.draw(arrays(dtype, minimum=1, maximum=100))
    assert ((array.astype(float) >= 1) & (array.astype(float) <= 100)).all()


def test_special_values_are_drawn():
    seen: set[str] = set()

    @settings(max_examples=400, deadline=None, database=None)
    @given(arrays("float32", min_dims=1, min_side=1, layouts=["contiguous"]))
    def look(array):
        magnitude = numpy.abs(array)
        tests = {
            "negative nan": numpy.isnan(array) & numpy.signbit(array),
            "payload": numpy.isnan(array) & (array.view("u4") & 0xFFFF != 0),
            "infinity": numpy.isinf(array),
            "negative zero": (array == 0) & numpy.signbit(array),
            "subnormal": (magnitude > 0) & (magnitude < numpy.finfo("f4").tiny),
            "largest": magnitude == numpy.finfo("f4").max,
            "above one": magnitude == numpy.nextafter(numpy.float32(1), numpy.float32(2)),
        }
        seen.update(name for name, found in tests.items() if found.any())

    look()
    assert len(seen) == 7, seen


def test_extremes_of_integers_are_drawn():
    seen: set[int] = set()

    @settings(max_examples=300, deadline=None, database=None)
    @given(arrays("int64", shape=4))
    def look(array):
        seen.update(array.tolist())

    look()
    assert {-(2**63), 2**63 - 1, 0, 1, -1} <= seen


@every
@given(scalars(), scalars(dtypes("float")), scalars("int8", minimum=3, maximum=5), scalars(values="moderate"))
def test_scalars(plain, floating, bounded, moderate):
    assert type(plain) in (bool, int, float) and isinstance(floating, numpy.floating)
    assert isinstance(bounded, numpy.int8) and 3 <= bounded <= 5
    assert abs(moderate) < 1000


def test_long_arrays_are_drawn_quickly():
    @settings(max_examples=20, deadline=None, database=None)
    @given(arrays("float32", shape=(300, 70), layouts=["strided"]))
    def look(array):
        assert array.shape == (300, 70)

    look()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: arrays(shape="abc"), TypeError, "shape: expected an int, a tuple of int, or a strategy, found 'abc'"),
        (lambda: arrays(shape=(2, -1)), ValueError, "shape: expected an int of at least 0, found -1"),
        (lambda: arrays(shape=(2, 1.5)), TypeError, "shape: expected an int, found 1.5"),
        (lambda: arrays("nonsense"), TypeError, "dtype"),
        (lambda: arrays(values="odd"), ValueError, "values: expected one of 'any', 'finite', 'moderate', found 'odd'"),
        (lambda: arrays(layouts="strided"), TypeError, "layouts: expected several names"),
        (lambda: arrays(layouts=["odd"]), ValueError, "layouts: expected names among 'contiguous'"),
        (lambda: arrays(layouts=[]), ValueError, "at least one name"),
        (lambda: arrays(min_dims=3, max_dims=2), ValueError, "max_dims: expected an int between 3 and 64, found 2"),
        (lambda: arrays(min_side=-1), ValueError, "min_side"),
        (lambda: arrays(max_side=True), TypeError, "max_side: expected an int, found True"),
        (lambda: arrays(minimum=1), TypeError, "maximum: expected a number, since the other bound is given"),
        (lambda: arrays(minimum=2, maximum=1), ValueError, "expected minimum <= maximum, found 2 and 1"),
        (lambda: arrays(minimum=0, maximum=float("inf")), ValueError, "maximum: expected a finite number"),
        (lambda: scalars(values="finite", minimum=0, maximum=1), TypeError, "exclude each other"),
        (lambda: dtypes("double"), ValueError, "dtypes: expected kinds among 'boolean'"),
        (lambda: axes(-1), ValueError, "axes: ndim"),
        (lambda: axes(0, none=False, several=False), ValueError, "nothing to draw for ndim 0"),
        (lambda: broadcastable_shapes(0), ValueError, "count: expected an int between 1 and 64, found 0"),
        (lambda: broadcastable_arrays(2, layouts=["odd"]), ValueError, "layouts"),
        (lambda: arrays_with_axes(none=False, single=False, several=False), ValueError, "nothing to draw"),
    ],
)
def test_wrong_arguments_of_strategies(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ------------------------------------------------------------------------------------------------ assert_matches_numpy


def failure(function: object, *inputs: object, **keywords: object) -> str:
    with pytest.raises(AssertionError) as raised:
        assert_matches_numpy(function, *inputs, **{"examples": 60, "seed": 1, **keywords})  # type: ignore[arg-type]
    return str(raised.value)


def test_a_library_that_is_right_passes():
    copy = library()
    assert_matches_numpy("add", broadcastable_arrays(2), namespace=copy)
    assert_matches_numpy("linalg.norm", arrays("float64", 3), namespace=copy)
    assert_matches_numpy(lambda x, axis: x.sum(axis=axis), arrays_with_axes(), namespace=copy)
    assert_matches_numpy(lambda x: {"a": (x, 1.5, None), "b": ["s", x.dtype]}, arrays(), namespace=copy)
    assert_matches_numpy(lambda xp, x: xp.reshape(x, (2, 3)), arrays(), namespace=copy)  # mostly exceptions


def test_wrong_values_are_found_and_shrunk():
    faulty = library(negative=lambda x: numpy.where(x == 5, x, -x))
    message = failure("negative", arrays("int32", values="moderate"), namespace=faulty, examples=300)
    assert message == (
        "negative differs from NumPy: result: 1 of 1 elements differ (int32, shape ()):\n"
        "  index  expected  found\n"
        "     ()        -5      5\n"
        "for the arguments\n"
        "  0: array(5, dtype=int32)"
    )


def test_values_within_the_bound_pass():
    close = library(sqrt=lambda x: numpy.nextafter(numpy.sqrt(x), numpy.inf))
    inputs = arrays("float64", minimum=1, maximum=2)
    assert_matches_numpy("sqrt", inputs, max_ulp=1, namespace=close)
    assert_matches_numpy("sqrt", inputs, max_ulp=0, relative_tolerance=1e-15, namespace=close)
    assert "found 1" in failure("sqrt", inputs, max_ulp=0, namespace=close)
    assert "found 1" in failure("sqrt", inputs, max_ulp={"float32": 1}, namespace=close)


def test_dtype_shape_and_structure_are_compared():
    assert "dtypes differ: expected bool, found int8" in failure(
        "isnan", arrays("float32"), namespace=library(isnan=lambda x: numpy.isnan(x).astype("i1"))
    )
    assert "shapes differ" in failure(
        "sum", arrays("int8"), namespace=library(sum=lambda x: numpy.sum(x, keepdims=True).reshape(1))
    )
    assert "expected 2 items, found" in failure("modf", arrays("float32"), namespace=library(modf=numpy.floor))
    assert "result[1]" in failure(
        "modf",
        arrays("float32", (1,), minimum=1, maximum=2),
        namespace=library(modf=lambda x: (numpy.modf(x)[0], x + 1)),
    )
    assert "expected 3, found 4" in failure(lambda xp, x: "3" if xp is numpy else "4", 0).replace("'", "")
    assert "expected int 3, found float 3.0" in failure(lambda xp: 3 if xp is numpy else 3.0, namespace=library())


def test_signs_of_zeros_are_compared():
    faulty = library(negative=lambda x: 0 - x)
    assert "zeros of different sign" in failure("negative", arrays("float32"), namespace=faulty)
    assert_matches_numpy("negative", arrays("float32"), namespace=faulty, signed_zeros=False)


def test_exceptions_are_compared():
    def reduce(xp, x, axis):
        if xp is not numpy and axis == 5:
            raise ValueError("axis is wrong")
        return x.sum(axis=axis)

    assert_matches_numpy(reduce, arrays("int8"), 7, namespace=library(), allow_only_errors=True)
    # AxisError is a ValueError, but a program may catch the one and not the other
    text = failure(reduce, arrays("int8"), 5, namespace=library())
    assert (
        "expected AxisError: axis 5 is out of bounds" in text and "found ValueError: axis is wrong (raised at " in text
    )
    assert "expected no exception, found ZeroDivisionError" in failure(
        lambda xp: 1 / (xp is numpy), namespace=library()
    )
    assert "ValueError: x, found no exception" in failure(raising_in_numpy, namespace=library())


def raising_in_numpy(xp: object) -> None:
    if xp is numpy:
        raise ValueError("x")


def test_messages_of_exceptions_are_compared_when_asked():
    def refuse(xp):
        raise TypeError("expected" if xp is numpy else "something else")

    assert_matches_numpy(refuse, namespace=library(), allow_only_errors=True)
    assert "expected expected\n  found    something else" in failure(refuse, namespace=library(), check_messages=True)


def test_private_exceptions_count_as_their_public_base():
    def subtract(xp, x):
        if xp is numpy:
            return x - x  # NumPy raises a private subclass of TypeError for booleans
        raise TypeError("numpy boolean subtract")

    assert_matches_numpy(subtract, arrays("bool"), namespace=library(), allow_only_errors=True)


def test_arguments_are_compared_afterwards():
    def scale(xp, x):
        x *= 2
        if xp is not numpy:
            x[..., :1] += 1

    text = failure(scale, arrays("int32", min_dims=1, min_side=1, layouts=["contiguous"]), namespace=library())
    assert "arguments afterwards[0]" in text


def test_writes_beside_a_view_are_seen():
    def stray(xp, x):
        if xp is not numpy and x.base is not None:
            x.base[...] = 0
        x[...] = 0

    text = failure(stray, arrays("int32", min_dims=1, min_side=2, layouts=["strided"]), namespace=library())
    assert "arguments afterwards[0]" in text and "which lies in memory as row" in text


def test_assumptions_hold():
    def divide(x):
        assume((x != 0).all())
        return 1 // x

    assert_matches_numpy(divide, arrays("int64", shape=2), namespace=library())


def test_keywords_and_plain_values():
    assert_matches_numpy(
        lambda x, y, *, axis, keepdims: (x + y).sum(axis=axis, keepdims=keepdims),
        arrays("int64", (2, 3)),
        numpy.arange(3),
        keywords={"axis": axes(2), "keepdims": st.booleans()},
        namespace=library(),
    )


def test_arrays_of_another_library_reach_the_function():
    seen: list[type] = []

    def look(x, several):
        seen.append(type(x))
        seen.append(type(several[0]))
        return x + several[0]

    assert_matches_numpy(look, arrays("float32", 3), st.tuples(arrays("float32", 3)), examples=3)
    assert {kind for kind in seen if not issubclass(kind, numpy.ndarray)} == {blockarray.ndarray}
    assert any(issubclass(kind, numpy.ndarray) for kind in seen)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: assert_matches_numpy(3), TypeError, "function: expected a callable or the name"),
        (lambda: assert_matches_numpy("sinus"), AttributeError, "numpy has no 'sinus'"),
        (lambda: assert_matches_numpy("pi"), TypeError, "'pi' is not a function"),
        (
            lambda: assert_matches_numpy("sin", arrays),
            TypeError,
            r"input 0: expected a strategy, found the function arrays",
        ),
        (lambda: assert_matches_numpy("sin", examples=0), ValueError, "examples: expected at least 1, found 0"),
        (lambda: assert_matches_numpy("sin", examples=1.5), TypeError, "examples: expected an int, found 1.5"),
        (lambda: assert_matches_numpy("sin", max_ulp=-1), ValueError, "max_ulp"),
        (lambda: assert_matches_numpy("sin", seed="x"), TypeError, "seed"),
        (lambda: assert_matches_numpy("sin", signed_zeros=1), TypeError, "signed_zeros: expected a bool, found 1"),
        (lambda: assert_matches_numpy("sin", namespace=doctest), TypeError, "namespace: expected an array library"),
    ],
)
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ------------------------------------------------------------------------------------------------------ the package


def test_without_hypothesis_the_message_names_the_extra():
    script = """
import sys
sys.modules["hypothesis"] = None
import blockarray.testing
assert blockarray.testing.ulp_distance(1.0, 1.0) == 0
try:
    from blockarray.testing import arrays
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == (
        "blockarray.testing.arrays needs Hypothesis, which is not installed: pip install 'blockarray[testing]'\n"
    ), done.stderr


def test_names_of_numpy_testing_are_there():
    assert testing.assert_allclose is numpy.testing.assert_allclose
    with pytest.raises(AttributeError, match="module 'blockarray.testing' has no attribute 'not_there'"):
        testing.not_there  # type: ignore[attr-defined]
    assert set(testing.__all__) <= set(dir(testing)) and "assert_allclose" in dir(testing)
    assert all(getattr(testing, name) is not None for name in testing.__all__)


@pytest.mark.parametrize("name", ["", ".arguments", ".comparison", ".layouts", ".matching", ".strategies"])
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"blockarray.testing{name}")
    names = {key: getattr(testing, key) for key in testing.__all__}
    failures, count = doctest.testmod(
        module, extraglobs={**names, **vars(module)}, optionflags=doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert failures == 0 and count > 0


def test_functions_that_never_return_are_not_taken_for_correct():
    def misspelt(xp, x):
        return xp.squareroot(x)

    with pytest.raises(
        AssertionError, match="misspelt: no result was compared.*has no attribute.*allow_only_errors=True"
    ):
        assert_matches_numpy(misspelt, arrays("float32"), examples=5)

    def refuse(x):
        raise ValueError("never")

    assert_matches_numpy(refuse, arrays("float32"), examples=5, allow_only_errors=True)
    with pytest.raises(TypeError, match="allow_only_errors: expected a bool"):
        assert_matches_numpy(refuse, arrays("float32"), allow_only_errors=1)  # type: ignore[arg-type]


def test_a_text_is_not_a_strategy():
    with pytest.raises(TypeError, match=r"input 0: expected a strategy or a plain value, found the text 'float64'"):
        assert_matches_numpy("sqrt", "float64")
    assert_matches_numpy("ravel", arrays("int8", (2, 3)), keywords={"order": "F"}, examples=5)
