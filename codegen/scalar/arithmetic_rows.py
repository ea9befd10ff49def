"""Rows of the table: arithmetic, division, bits, rounding and the parts of floats."""

from codegen import dtypes
from codegen.dtypes import DType
from codegen.scalar import division, floating_bits, integer, invariant_division, rounding, selection
from codegen.scalar.function import (
    ADD,
    AND,
    DIVIDE,
    MULTIPLY,
    OR,
    SUBTRACT,
    XOR,
    Algebra,
    Definition,
    DefinitionFunction,
    Intrinsic,
    Lowering,
    Number,
    ScalarFunction,
    definitions,
    opcodes,
)

COMMUTATIVE = frozenset({Algebra.COMMUTATIVE})
MONOID = frozenset({Algebra.COMMUTATIVE, Algebra.ASSOCIATIVE})
SEMILATTICE = MONOID | {Algebra.IDEMPOTENT}


def _zero(_dtype: DType) -> Number:
    return 0


def _one(_dtype: DType) -> Number:
    return 1


def _all_ones(dtype: DType) -> Number:
    return {"signed": -1, "boolean": 1}.get(dtype.kind, 2**dtype.bits - 1)


def _uint8(_operands: tuple[DType, ...]) -> DType:
    return dtypes.uint8


def _int32(_operands: tuple[DType, ...]) -> DType:
    return dtypes.int32


def _rounding(name: str, otherwise: Definition, summary: str, of_integers: bool = True) -> ScalarFunction:
    unchanged = Definition(selection.identity) if of_integers else None
    return ScalarFunction(
        name,
        1,
        Lowering(
            float=Intrinsic(f"llvm.{name}", otherwise=otherwise),
            signed=unchanged,
            unsigned=unchanged,
            boolean=unchanged,
        ),
        summary,
        numpy_name=name,
    )


def _dividing(name: str, of_floats: Definition | None, of_integers: Definition, summary: str) -> ScalarFunction:
    return ScalarFunction(
        name,
        2,
        Lowering(float=of_floats, signed=of_integers, unsigned=of_integers),
        summary,
        expensive=20.0,
        numpy_name=None if name == "truncated_divide" else name,
    )


def _unsigned(operands: tuple[DType, ...]) -> DType:
    return dtypes.unsigned_of_width(operands[0].bits)


def _of_divisor(name: str, function: DefinitionFunction, summary: str) -> ScalarFunction:
    return ScalarFunction(name, 1, definitions(integer=function), summary, result=_unsigned, expensive=100.0)


def _dividing_by(name: str, function: DefinitionFunction, summary: str) -> ScalarFunction:
    """Operands: what is divided, the divisor, its `division_multiplier` and its `division_shift`."""
    return ScalarFunction(name, 4, definitions(integer=function), summary, expensive=10.0)


ARITHMETIC_ROWS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        "add", 2, opcodes(ADD, boolean="or"), "sum of two values", identity=_zero, algebra=MONOID, numpy_name="add"
    ),
    ScalarFunction("subtract", 2, opcodes(SUBTRACT), "difference of two values", numpy_name="subtract"),
    ScalarFunction(
        "multiply",
        2,
        opcodes(MULTIPLY, boolean="and"),
        "product of two values",
        identity=_one,
        algebra=MONOID,
        numpy_name="multiply",
    ),
    ScalarFunction("divide", 2, opcodes(DIVIDE), "quotient of two floats", expensive=4.0, numpy_name="divide"),
    _dividing(
        "floor_divide",
        Definition(division.floor_divide_floats),
        Definition(division.floor_divide_integers),
        "quotient rounded down",
    ),
    _dividing(
        "remainder",
        Definition(division.remainder_floats),
        Definition(division.remainder_integers),
        "what division rounded down leaves over, with the sign of the divisor",
    ),
    _dividing(
        "fmod",
        Definition(division.fmod_floats),
        Definition(division.fmod_integers),
        "what division cut towards zero leaves over, with the sign of the dividend",
    ),
    _dividing(
        "truncated_divide",
        None,
        Definition(division.truncated_divide_integers),
        "quotient of integers cut towards zero",
    ),
    _of_divisor(
        "division_multiplier", invariant_division.division_multiplier, "what takes the place of division by an integer"
    ),
    _of_divisor("division_shift", invariant_division.division_shift, "how far the product is moved in that place"),
    _dividing_by(
        "floor_divide_by", invariant_division.floor_divide_by, "`floor_divide` by an integer with its inverse"
    ),
    _dividing_by("remainder_by", invariant_division.remainder_by, "`remainder` by an integer with its inverse"),
    _dividing_by("fmod_by", invariant_division.fmod_by, "`fmod` by an integer with its inverse"),
    _dividing_by(
        "truncated_divide_by",
        invariant_division.truncated_divide_by,
        "`truncated_divide` by an integer with its inverse",
    ),
    ScalarFunction(
        "negative",
        1,
        definitions(float=floating_bits.negative, integer=selection.negative),
        "the value with the opposite sign",
        half="bits",
        numpy_name="negative",
    ),
    ScalarFunction(
        "positive",
        1,
        definitions(float=selection.identity, integer=selection.identity),
        "the value itself",
        half="bits",
        expensive=0.0,
        numpy_name="positive",
    ),
    ScalarFunction(
        "conjugate",
        1,
        definitions(float=selection.identity, integer=selection.identity),
        "the value itself, as it is real",
        half="bits",
        expensive=0.0,
        numpy_name="conjugate",
    ),
    ScalarFunction(
        "absolute",
        1,
        definitions(
            float=floating_bits.absolute,
            signed=selection.absolute,
            unsigned=selection.identity,
            boolean=selection.identity,
        ),
        "magnitude of the value",
        half="bits",
        numpy_name="absolute",
    ),
    ScalarFunction(
        "fabs", 1, definitions(float=floating_bits.absolute), "magnitude of a float", half="bits", numpy_name="fabs"
    ),
    ScalarFunction(
        "copysign",
        2,
        definitions(float=floating_bits.copysign),
        "magnitude of the first with the sign of the second",
        half="bits",
        expensive=3.0,
        numpy_name="copysign",
    ),
    ScalarFunction(
        "nextafter",
        2,
        definitions(float=floating_bits.nextafter),
        "neighbour of the first in the direction of the second",
        half="bits",
        expensive=15.0,
        numpy_name="nextafter",
    ),
    ScalarFunction(
        "spacing",
        1,
        definitions(float=floating_bits.spacing),
        "distance to the neighbour further from zero",
        half="bits",
        expensive=12.0,
        numpy_name="spacing",
    ),
    ScalarFunction(
        "ldexp",
        2,
        definitions(float=floating_bits.ldexp),
        "the first times two to the power of the second, an integer",
        expensive=25.0,
        numpy_name="ldexp",
    ),
    ScalarFunction(
        "frexp_mantissa",
        1,
        definitions(float=floating_bits.frexp_mantissa),
        "mantissa in [1/2, 1)",
        expensive=12.0,
    ),
    ScalarFunction(
        "frexp_exponent",
        1,
        definitions(float=floating_bits.frexp_exponent),
        "exponent that belongs to a mantissa in [1/2, 1)",
        result=_int32,
        expensive=12.0,
    ),
    ScalarFunction(
        "modf_fraction", 1, definitions(float=floating_bits.modf_fraction), "part behind the point", expensive=6.0
    ),
    ScalarFunction("modf_integral", 1, definitions(float=floating_bits.modf_integral), "part before the point"),
    _rounding("floor", Definition(rounding.floor), "largest integer that is not above the value"),
    _rounding("ceil", Definition(rounding.ceil), "smallest integer that is not below the value"),
    _rounding("trunc", Definition(rounding.trunc), "integer next to the value towards zero"),
    _rounding("rint", Definition(rounding.rint), "nearest integer, ties to even", of_integers=False),
    ScalarFunction(
        "bitwise_and",
        2,
        opcodes(AND),
        "bits set in both integers",
        identity=_all_ones,
        algebra=SEMILATTICE,
        numpy_name="bitwise_and",
    ),
    ScalarFunction(
        "bitwise_or",
        2,
        opcodes(OR),
        "bits set in either integer",
        identity=_zero,
        algebra=SEMILATTICE,
        numpy_name="bitwise_or",
    ),
    ScalarFunction(
        "bitwise_xor",
        2,
        opcodes(XOR),
        "bits set in exactly one integer",
        identity=_zero,
        algebra=MONOID,
        numpy_name="bitwise_xor",
    ),
    ScalarFunction(
        "invert",
        1,
        definitions(integer=selection.invert, boolean=selection.invert),
        "every bit flipped",
        numpy_name="invert",
    ),
    ScalarFunction(
        "left_shift",
        2,
        definitions(integer=integer.left_shift),
        "bits moved up by the second value",
        expensive=3.0,
        numpy_name="left_shift",
    ),
    ScalarFunction(
        "right_shift",
        2,
        definitions(integer=integer.right_shift),
        "bits moved down by the second value",
        expensive=3.0,
        numpy_name="right_shift",
    ),
    ScalarFunction(
        "bitwise_count",
        1,
        definitions(integer=integer.bitwise_count),
        "how many bits of the magnitude are set",
        result=_uint8,
        expensive=3.0,
        numpy_name="bitwise_count",
    ),
    ScalarFunction(
        "gcd",
        2,
        definitions(integer=integer.gcd),
        "greatest common divisor",
        identity=_zero,
        algebra=SEMILATTICE,
        expensive=300.0,
        numpy_name="gcd",
    ),
    ScalarFunction(
        "lcm",
        2,
        definitions(integer=integer.lcm),
        "least common multiple",
        identity=_one,
        algebra=SEMILATTICE,
        expensive=320.0,
        numpy_name="lcm",
    ),
)
