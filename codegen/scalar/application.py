"""Applying rows of the table to the values of any core: the one place that widens halves and picks the lowering."""

from codegen import dtypes
from codegen.scalar.casts import cast
from codegen.scalar.function import CoreFunctions, Definition, Instruction, Intrinsic, ScalarFunction, ScalarValue
from codegen.scalar.table import function


def apply(core: CoreFunctions, name: str, *values: ScalarValue) -> ScalarValue:
    """Apply the row called `name` to values of a core.

    Parameters
    ----------
    core : CoreFunctions
    name : str
        A row of the table; KeyError names similar ones.
    *values : ScalarValue
        The operands, promoted already: one common dtype, unless the row says otherwise.

    Returns
    -------
    ScalarValue
        Of dtype ``function(name).result_dtype(*operand_dtypes)``. float16 and bfloat16 operands of rows that say so
        are widened to float32, and a result of the operands' dtype is rounded back once.
    """
    row = function(name)
    operands = tuple(core.dtype(value) for value in values)
    result = row.result_dtype(*operands)
    if row.half == "widen" and any(dtype.is_half for dtype in operands):
        return _apply_widened(core, row, values, result.is_half, operands)
    return apply_primitive(core, row, values)


def apply_primitive(core: CoreFunctions, row: ScalarFunction, values: tuple[ScalarValue, ...]) -> ScalarValue:
    """Apply a row's lowering to values whose dtypes it takes as they are."""
    dtype = row.deciding_operand(tuple(core.dtype(value) for value in values))
    primitive = row.lowering_for(dtype, core.target)
    if isinstance(primitive, Instruction):
        return core.instruction(primitive.opcode, *values)
    if isinstance(primitive, Definition):
        return primitive.function(core, *values)
    if isinstance(primitive, Intrinsic):
        if primitive.otherwise is None or core.has(row.name):
            return core.intrinsic(primitive.name, *values)
        return primitive.otherwise.function(core, *values)
    raise TypeError(f"{row.name}: not defined on operands of dtype {dtype}; expected one of the row's kinds")


def _apply_widened(
    core: CoreFunctions,
    row: ScalarFunction,
    values: tuple[ScalarValue, ...],
    round_back: bool,
    operands: tuple[dtypes.DType, ...],
) -> ScalarValue:
    wide = tuple(
        cast(core, value, dtypes.float32) if dtype.is_half else value
        for value, dtype in zip(values, operands, strict=True)
    )
    result = apply_primitive(core, row, wide)
    if not round_back:
        return result
    return cast(core, result, row.deciding_operand(operands))
