"""The table itself: what it covers, what its rows promise, and what it says about mistakes."""

import dataclasses

import numpy as np
import pytest
from scalar_reference import assert_same, special_values

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar import application
from codegen.scalar.function import Algebra, Intrinsic, ScalarFunction, highest, lowest
from codegen.scalar.numpy_core import INSTRUCTIONS, INTRINSICS, NumpyCore, evaluate
from codegen.scalar.table import TABLE, function

# linear algebra, dates, and functions with two results, which are two rows each
ELSEWHERE = {"divmod", "frexp", "modf", "isnat", "matmul", "matvec", "vecdot", "vecmat"}
CHARACTERS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "l",
    "uint64": "L",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
ROWS = list(TABLE.values())


def test_every_ufunc_of_numbers_is_a_row() -> None:
    ufuncs = {value.__name__ for value in vars(np).values() if isinstance(value, np.ufunc)}
    assert ufuncs - ELSEWHERE <= set(TABLE)


@pytest.mark.parametrize("row", [row for row in ROWS if row.numpy_name], ids=lambda row: row.name)
def test_row_takes_what_numpy_takes(row: ScalarFunction) -> None:
    assert row.numpy_name is not None
    if row.name == "clip":
        return
    ufunc = getattr(np, row.numpy_name)
    assert row.arity == ufunc.nin
    loops = {loop.split("->")[0] for loop in ufunc.types}
    for name, character in CHARACTERS.items():
        dtype = dtypes.by_name(name)
        has_loop = character + "i" in loops if row.name == "ldexp" else character * row.arity in loops
        # float_power has the loop of float64 alone, from which halves and float32 come by widening
        if row.name == "float_power" and dtype.kind == "float":
            has_loop = True
        assert row.takes(dtype) == has_loop, f"{row.name} of {name}"


@pytest.mark.parametrize("row", [row for row in ROWS if row.numpy_name and row.identity], ids=lambda row: row.name)
def test_identity_is_numpys_where_numpy_has_one(row: ScalarFunction) -> None:
    assert row.numpy_name is not None
    expected = getattr(np, row.numpy_name).identity
    if expected is None:
        assert row.name in {"maximum", "minimum", "fmax", "fmin", "lcm"}
        return
    for dtype in dtypes.ALL:
        if row.takes(dtype):
            with np.errstate(all="ignore"):
                wanted = np.array(expected).astype(dtype.numpy)
            assert np.array(row.identity_for(dtype)).astype(dtype.numpy) == wanted


@pytest.mark.parametrize("row", [row for row in ROWS if row.is_a(Algebra.COMMUTATIVE)], ids=lambda row: row.name)
def test_commutative_rows(row: ScalarFunction) -> None:
    for dtype in dtypes.ALL:
        if not row.takes(dtype):
            continue
        values = special_values(dtype)
        left, right = (array.ravel() for array in np.meshgrid(values, values))
        assert_same(evaluate(row.name, left, right), evaluate(row.name, right, left), left, right, zero_signs=False)


@pytest.mark.parametrize("row", [row for row in ROWS if row.is_a(Algebra.IDEMPOTENT)], ids=lambda row: row.name)
def test_idempotent_rows(row: ScalarFunction) -> None:
    for dtype in dtypes.ALL:
        if not row.takes(dtype) or row.name.startswith("logical"):
            continue
        values = special_values(dtype)
        values = values[values >= 0] if row.name in ("gcd", "lcm") else values
        assert_same(evaluate(row.name, values, values), values, values)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row_is_well_formed(row: ScalarFunction) -> None:
    assert row.summary and not row.summary.endswith(".")
    assert row.arity in (1, 2, 3, 4)
    assert any(row.takes(dtype) for dtype in dtypes.ALL)
    assert not row.is_a(Algebra.ASSOCIATIVE) or (row.arity == 2 and row.identity is not None)
    for dtype in (dtypes.float32, dtypes.float64):
        assert 0 <= row.ulp_bound(dtype) <= 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.name = "other"  # type: ignore[misc]


def test_bound_of_halves_is_that_of_one_more_rounding() -> None:
    assert function("cbrt").ulp_bound(dtypes.float16) == 0.5 + 2.0**-12
    assert function("power").ulp_bound(dtypes.bfloat16) == 0.5 + 0.6 * 2.0**-12
    assert function("add").ulp_bound(dtypes.float16) == 0


def test_instructions_and_intrinsics_are_known_to_the_numpy_core() -> None:
    for row in ROWS:
        for kind in ("float", "signed", "unsigned", "boolean"):
            primitive = row.lowering.for_kind(kind)
            if isinstance(primitive, Intrinsic):
                assert primitive.name in INTRINSICS
    assert all(opcode.split()[0] in "icmp fcmp fneg" or opcode.islower() for opcode in INSTRUCTIONS)


def test_unknown_function_suggests_similar_ones() -> None:
    with pytest.raises(KeyError, match="no scalar function is called 'maximun'; similar: maximum"):
        function("maximun")
    with pytest.raises(KeyError, match="no scalar function is called 'qqq'"):
        function("qqq")


def test_refused_dtypes_are_named() -> None:
    with pytest.raises(TypeError, match="sin: not defined on operands of dtype int32; expected float values"):
        evaluate("sin", np.arange(3, dtype=np.int32))
    with pytest.raises(TypeError, match="subtract: not defined on operands of dtype bool"):
        evaluate("subtract", np.array([True]), np.array([True]))
    with pytest.raises(TypeError, match="add: 1 operands given, expected 2"):
        evaluate("add", np.ones(3))


def test_values_refuse_to_be_conditions_and_to_mix_dtypes() -> None:
    core = NumpyCore()
    single, double = core.value(np.float32([1, 2])), core.value(np.float64([1, 2]))
    with pytest.raises(TypeError, match="has no truth value.*core.where"):
        bool(single < 1)
    with pytest.raises(TypeError, match="`\\+`: the left operand is float32 and the right one float64"):
        single + double
    with pytest.raises(TypeError, match="`/` is not defined on values of dtype int64; it takes float values"):
        core.value(np.arange(3)) / 2
    with pytest.raises(TypeError, match="`\\+` is not defined on values of dtype float16"):
        core.value(np.float16([1])) + 1
    with pytest.raises(TypeError, match="where: the choices are float32 and float64"):
        core.where(single < 1, single, double)


def test_operators_take_numbers_on_either_side() -> None:
    core = NumpyCore()
    x = core.value(np.array([1.0, 2.0, 4.0]))
    n = core.value(np.array([1, 2, -3], np.int8))
    assert (8.0 / x).array.tolist() == [8, 4, 2]
    assert (1.0 - x).array.tolist() == [0, -1, -3]
    assert (2.0 * x + 1.0).array.tolist() == [3, 5, 9]
    assert (~n).array.tolist() == [-2, -3, 2]
    assert (-n).array.tolist() == [-1, -2, 3]
    assert ((n << 7) >> 7).array.tolist() == [-1, 0, -1]
    assert (core.bits(n) >> 7).array.tolist() == [0, 0, 1]
    assert ((n != 2) & ~(n == 1)).array.tolist() == [False, False, True]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_extremes_of_dtypes(dtype: DType) -> None:
    low, high = np.array(lowest(dtype)).astype(dtype.numpy), np.array(highest(dtype)).astype(dtype.numpy)
    values = special_values(dtype)
    values = values[values == values]
    assert (low <= values).all() and (values <= high).all()
    assert low in values and high in values


def test_target_selects_its_own_lowering() -> None:
    row = function("maximum")
    special = dataclasses.replace(row, on_target={"nvptx": function("minimum").lowering})
    assert special.lowering_for(dtypes.float32, "nvptx") is function("minimum").lowering.float
    assert special.lowering_for(dtypes.float32, "cpu") is row.lowering.float
    core = NumpyCore(target="nvptx")
    values = tuple(core.value(np.array(number)) for number in (1.0, 2.0))
    assert application.apply_primitive(core, special, values).array == 1.0


def test_rare_path_is_computed_only_if_needed() -> None:
    core = NumpyCore()
    x = core.value(np.array([1.0, 5.0]))
    calls = []

    def slow() -> object:
        calls.append(True)
        return x * 10.0

    assert core.select_rare(x > 9.0, slow, x).array.tolist() == [1, 5]
    assert not calls
    assert core.select_rare(x > 2.0, slow, x).array.tolist() == [1, 50]
    assert calls == [True]
