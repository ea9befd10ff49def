"""Instructions that LLVM has no intrinsic for, as inline assembly."""

from collections.abc import Sequence

from codegen.llvm.context import EmissionContext

Operand = tuple[str, str]
"""Type and name of an operand, as ``("i32", "%v1")``."""

# Lanes must reach these together: LLVM may neither copy them into branches nor move them across.
_TOGETHER = " #0"
_CONSTRAINT = {"i1": "b", "i16": "h", "i32": "r", "i64": "l", "float": "f"}


def constraint(type_: str) -> str:
    """The register class of a type; pointers are 64 bits wide."""
    return "l" if type_.startswith("ptr") else _CONSTRAINT[type_]


def run(context: EmissionContext, text: str, operands: Sequence[Operand] = ()) -> None:
    """Instructions without a result, which touch memory or order it; ``$0`` … are the operands."""
    constraints = ",".join([*(constraint(type_) for type_, _ in operands), "~{memory}"])
    listed = ", ".join(f"{type_} {name}" for type_, name in operands)
    context.writer.line(f'call void asm sideeffect "{_spelled(text)}", "{constraints}"({listed}){_TOGETHER}')


def compute(
    context: EmissionContext,
    text: str,
    results: Sequence[str],
    operands: Sequence[Operand] = (),
    tied: Sequence[Operand] = (),
    effect: bool = False,
) -> list[str]:
    """Instructions with results of the given types.

    `tied` operands are the first results' registers before; then come ``operands``. The numbers in the text count results
    first, then tied operands, then the others. With `effect` they read or order memory.
    """
    constraints = [f"={constraint(type_)}" for type_ in results]
    constraints += [str(position) for position in range(len(tied))]
    constraints += [constraint(type_) for type_, _ in operands]
    if effect:
        constraints.append("~{memory}")
    listed = ", ".join(f"{type_} {name}" for type_, name in (*tied, *operands))
    kind = results[0] if len(results) == 1 else "{" + ", ".join(results) + "}"
    way = " sideeffect" if effect else ""
    whole = context.writer.value(
        f'call {kind} asm{way} "{_spelled(text)}", "{",".join(constraints)}"({listed}){_TOGETHER}'
    )
    if len(results) == 1:
        return [whole]
    return [context.writer.value(f"extractvalue {kind} {whole}, {position}") for position in range(len(results))]


def _spelled(text: str) -> str:
    return text.replace("\n", "\\0A")
