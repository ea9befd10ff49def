"""Folds that depend on another fold of the same elements, but can be found in one walk over them.

A sum of squared deviations from a kept value c is ``s + n (m - c)**2`` with the mean m, the sum s of squared deviations from m,
and the number n of elements, whatever c is. A sum of exponentials of how far elements are below their maximum is carried along
with the maximum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from blockarray.fusion.plan import Apply, Convert, Fold, Number, Position, Read, RunningFold, Statement, Take


@dataclass(frozen=True)
class OneWalk:
    """How a fold that depends on a kept value is found without it.

    Attributes
    ----------
    combiner : {"welford", "maximum_sum_exp"}
    elements, kept : int
        Statements: what is folded, and the kept value.
    """

    combiner: str
    elements: int
    kept: int


def find_one_walk(statements: Sequence[Statement], reduced: Sequence[int], number: int) -> OneWalk | None:
    """How fold `number` is found in the walk that finds the kept value it depends on; None if it needs another walk.

    Parameters
    ----------
    statements : sequence of Statement
    reduced : sequence of int
        Axes that folds fold over.
    number : int
        A statement.
    """
    fold = statements[number]
    if not isinstance(fold, Fold) or fold.combiner != "add" or len(fold.operands) != 1:
        return None
    outer = statements[fold.operands[0]]
    if not isinstance(outer, Apply) or outer.dtype.kind != "float" or outer.dtype is not fold.dtype:
        return None
    difference = statements[outer.operands[0]]
    if not isinstance(difference, Apply) or difference.function != "subtract":
        return None
    elements, kept = difference.operands
    if not _comes_from_folds(statements, reduced, kept) or _depends_on_fold(statements, elements):
        return None
    if outer.function == "square" or (outer.function == "multiply" and outer.operands[0] == outer.operands[1]):
        return OneWalk("welford", elements, kept)
    top = statements[kept]
    if outer.function == "exp" and isinstance(top, Fold) and top.combiner == "maximum" and top.operands == (elements,):
        return OneWalk("maximum_sum_exp", elements, kept)
    return None


def _below(statement: Statement) -> tuple[int, ...]:
    match statement:
        case Apply(operands=operands) | Fold(operands=operands) | Take(positions=operands):
            return operands
        case Convert(operand=operand) | RunningFold(operand=operand):
            return (operand,)
    return ()


def _depends_on_fold(statements: Sequence[Statement], number: int) -> bool:
    waiting, seen = [number], set()
    while waiting:
        one = waiting.pop()
        if isinstance(statements[one], Fold | RunningFold):
            return True
        seen.add(one)
        waiting += [operand for operand in _below(statements[one]) if operand not in seen]
    return False


def _comes_from_folds(statements: Sequence[Statement], reduced: Sequence[int], number: int) -> bool:
    """Whether a value is made of folds, and else of what is the same along the reduced axes."""
    waiting, seen, has_fold = [number], set(), False
    while waiting:
        one = waiting.pop()
        seen.add(one)
        statement = statements[one]
        match statement:
            case Fold():
                has_fold = True
                continue
            case Read(strides=strides) | Position(strides=strides):
                if any(strides[axis] for axis in reduced):
                    return False
            case Take() | RunningFold():
                return False
            case Number():
                continue
        waiting += [operand for operand in _below(statement) if operand not in seen]
    return has_fold
