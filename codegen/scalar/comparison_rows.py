"""Rows of the table: comparison, logic, choice, classification of values."""

import math

from codegen.dtypes import DType
from codegen.scalar import floating_bits, selection
from codegen.scalar.function import (
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    NOT_EQUAL,
    Algebra,
    Definition,
    Instruction,
    Intrinsic,
    Lowering,
    Number,
    ScalarFunction,
    boolean,
    definitions,
    highest,
    last,
    lowest,
    opcodes,
)

COMMUTATIVE = frozenset({Algebra.COMMUTATIVE})
MONOID = frozenset({Algebra.COMMUTATIVE, Algebra.ASSOCIATIVE})
SEMILATTICE = MONOID | {Algebra.IDEMPOTENT}


def _zero(_dtype: DType) -> Number:
    return 0


def _one(_dtype: DType) -> Number:
    return 1


def _lowest_or_nan(dtype: DType) -> Number:
    return math.nan if dtype.kind == "float" else lowest(dtype)


def _highest_or_nan(dtype: DType) -> Number:
    return math.nan if dtype.kind == "float" else highest(dtype)


def _comparison(name: str, by_kind: dict[str, str], summary: str, symmetric: bool = False) -> ScalarFunction:
    algebra = COMMUTATIVE if symmetric else frozenset()
    return ScalarFunction(name, 2, opcodes(by_kind), summary, result=boolean, algebra=algebra, numpy_name=name)


def _logical(name: str, function: Definition, opcode: str, summary: str) -> ScalarFunction:
    return ScalarFunction(
        name,
        2,
        Lowering(float=function, signed=function, unsigned=function, boolean=Instruction(opcode)),
        summary,
        result=boolean,
        identity=_one if name == "logical_and" else _zero,
        algebra=MONOID if name == "logical_xor" else SEMILATTICE,
        numpy_name=name,
    )


def _extreme(
    name: str, function: Definition, stem: str, summary: str, on_gpu: Definition | None = None
) -> ScalarFunction:
    upper = stem == "max"
    skips_nan = name.startswith("f")
    identities = (_lowest_or_nan, _highest_or_nan) if skips_nan else (lowest, highest)
    return ScalarFunction(
        name,
        2,
        Lowering(
            float=function,
            signed=Intrinsic(f"llvm.s{stem}"),
            unsigned=Intrinsic(f"llvm.u{stem}"),
            boolean=Instruction("or" if upper else "and"),
        ),
        summary,
        identity=identities[0] if upper else identities[1],
        algebra=SEMILATTICE,
        expensive=3.0,
        numpy_name=name,
        on_target={} if on_gpu is None else {"nvptx": Lowering(float=on_gpu)},
    )


def _classification(name: str, by_float: Definition, of_integer: Definition | None, summary: str) -> ScalarFunction:
    return ScalarFunction(
        name,
        1,
        Lowering(float=by_float, signed=of_integer, unsigned=of_integer, boolean=of_integer),
        summary,
        result=boolean,
        half="bits",
        expensive=2.0,
        numpy_name=name,
    )


def _mixed(name: str, function: Definition, summary: str) -> ScalarFunction:
    return ScalarFunction(name, 2, Lowering(signed=function), summary, result=boolean, expensive=2.0)


_NEVER, _ALWAYS = Definition(selection.never), Definition(selection.always)
_WHERE = Definition(selection.where)

COMPARISON_ROWS: tuple[ScalarFunction, ...] = (
    _comparison("less", LESS, "whether the first is below the second"),
    _comparison("less_equal", LESS_EQUAL, "whether the first is not above the second"),
    _comparison("greater", GREATER, "whether the first is above the second"),
    _comparison("greater_equal", GREATER_EQUAL, "whether the first is not below the second"),
    _comparison("equal", EQUAL, "whether two values are equal", symmetric=True),
    _comparison("not_equal", NOT_EQUAL, "whether two values differ", symmetric=True),
    _mixed(
        "less_signed_unsigned",
        Definition(selection.signed_less_unsigned),
        "whether a signed integer is below an unsigned one of its width",
    ),
    _mixed(
        "less_equal_signed_unsigned",
        Definition(selection.signed_less_equal_unsigned),
        "whether a signed integer is not above an unsigned one of its width",
    ),
    _mixed(
        "equal_signed_unsigned",
        Definition(selection.signed_equal_unsigned),
        "whether a signed and an unsigned integer of one width are equal",
    ),
    _logical("logical_and", Definition(selection.logical_and), "and", "whether both values differ from zero"),
    _logical("logical_or", Definition(selection.logical_or), "or", "whether either value differs from zero"),
    _logical("logical_xor", Definition(selection.logical_xor), "xor", "whether exactly one value differs from zero"),
    ScalarFunction(
        "logical_not",
        1,
        definitions(
            float=selection.logical_not, integer=selection.logical_not, boolean=selection.logical_not_of_boolean
        ),
        "whether the value is zero",
        result=boolean,
        numpy_name="logical_not",
    ),
    _extreme(
        "maximum",
        Definition(selection.maximum),
        "max",
        "the greater of two values, NaN if either is",
        on_gpu=Definition(selection.maximum_in_hardware),
    ),
    _extreme(
        "minimum",
        Definition(selection.minimum),
        "min",
        "the smaller of two values, NaN if either is",
        on_gpu=Definition(selection.minimum_in_hardware),
    ),
    _extreme("fmax", Definition(selection.fmax), "max", "the greater of two values, a number rather than NaN"),
    _extreme("fmin", Definition(selection.fmin), "min", "the smaller of two values, a number rather than NaN"),
    ScalarFunction(
        "clip",
        3,
        definitions(float=selection.clip, integer=selection.clip, boolean=selection.clip),
        "the first value held between the second and the third",
        expensive=6.0,
        numpy_name="clip",
    ),
    ScalarFunction(
        "where",
        3,
        Lowering(float=_WHERE, signed=_WHERE, unsigned=_WHERE, boolean=_WHERE),
        "the second value where the first is true, else the third",
        result=last,
        half="bits",
    ),
    ScalarFunction(
        "sign",
        1,
        definitions(
            float=selection.sign_of_float, signed=selection.sign_of_signed, unsigned=selection.sign_of_unsigned
        ),
        "-1, 0 or 1 by the sign of the value",
        expensive=5.0,
        numpy_name="sign",
    ),
    ScalarFunction(
        "heaviside",
        2,
        definitions(float=selection.heaviside),
        "0 below zero, 1 above, the second value at zero",
        expensive=6.0,
        numpy_name="heaviside",
    ),
    _classification("isnan", Definition(floating_bits.isnan), _NEVER, "whether the value is not a number"),
    _classification("isinf", Definition(floating_bits.isinf), _NEVER, "whether the value is infinite"),
    _classification(
        "isfinite", Definition(floating_bits.isfinite), _ALWAYS, "whether the value is neither infinite nor NaN"
    ),
    _classification("signbit", Definition(floating_bits.signbit), None, "whether the sign bit is set"),
)
