"""The tiles of a matrix product: candidates from the target's matmul instructions, a cost for each, and why the others lost."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.products import Contiguous, OperandFacts, refusal
from codegen.target import MatmulInstruction, Target

# Cycles that a tile takes besides its slices: the first slice's way from memory, and the store of the result.
_TILE_CYCLES = 1200
_CYCLES_PER_COLUMN = 3
# A second kernel that adds parts up: its start, and what a multiprocessor moves in a cycle through the shared cache.
_SECOND_KERNEL_CYCLES = 4500
_PART_BYTES_PER_CYCLE = 48
_MOST_PARTS = 16
# A program whose part of the sum is shorter than so many slices spends its time on the way to memory.
_FEWEST_SLICES = 4


@dataclass(frozen=True)
class MatmulProblem:
    """A stack of matrix products.

    Attributes
    ----------
    batch, m, n, k : int
    a, b : OperandFacts
    accumulator : DType
    """

    batch: int
    m: int
    n: int
    k: int
    a: OperandFacts
    b: OperandFacts
    accumulator: DType

    def swapped(self) -> "MatmulProblem":
        """The same product as ``(b.T @ a.T).T``, whose long side may be rows instead of columns."""
        return replace(self, m=self.n, n=self.m, a=self.b, b=self.a)


@dataclass(frozen=True)
class MatmulSchedule:
    """How a product is cut into programs.

    Attributes
    ----------
    instruction : str
        Name of the matmul instruction; empty if lanes multiply and add by themselves.
    m, n, k : int
        A tile, and the slice of the summed axis that is worked on at a time.
    parts : int
        Pieces of the summed axis that different programs add up; a second kernel adds them together.
    swapped : bool
        Operands change places, and the result is computed transposed.
    reasons : tuple of str
        Why, for people.
    """

    instruction: str
    m: int = 0
    n: int = 0
    k: int = 0
    parts: int = 1
    swapped: bool = False
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.instruction:
            return "; ".join(("multiply and add", *self.reasons))
        text = f"{self.instruction} tile {self.m}x{self.n}x{self.k}"
        if self.parts > 1:
            text += f", sum in {self.parts} parts"
        if self.swapped:
            text += ", transposed"
        return "; ".join((text, *self.reasons))


def choose_matmul(problem: MatmulProblem, target: Target) -> MatmulSchedule:
    """The fastest schedule by the cost model, with the reasons for which faster instructions were not taken."""
    reasons: list[str] = []
    for row in target.matmul_instructions:
        candidates = list(_candidates(problem, row))
        if candidates:
            best = min(candidates, key=lambda schedule: cost_of(schedule, problem, row, target))
            return replace(best, reasons=tuple(reasons))
        reasons.append(f"{row.name} {_why_not(problem, row)}")
    return MatmulSchedule("", reasons=tuple(reasons))


def _candidates(problem: MatmulProblem, row: MatmulInstruction) -> Iterator[MatmulSchedule]:
    for swapped in (False, True):
        one = problem.swapped() if swapped else problem
        for m in row.rows:
            for n in row.columns:
                for k in row.inner:
                    if refusal(row, m, n, k, one.a, one.b, one.accumulator):
                        continue
                    slices = -(-problem.k // k)
                    parts = 1
                    while parts <= _MOST_PARTS and (parts == 1 or slices >= parts * _FEWEST_SLICES):
                        yield MatmulSchedule(row.name, m, n, k, parts, swapped)
                        parts *= 2


def _why_not(problem: MatmulProblem, row: MatmulInstruction) -> str:
    return refusal(row, row.rows[-1], row.columns[-1], row.inner[0], problem.a, problem.b, problem.accumulator)


def cost_of(schedule: MatmulSchedule, problem: MatmulProblem, row: MatmulInstruction, target: Target) -> float:
    """Cycles that a schedule takes, as a model has them: rounds of tiles, each bound by arithmetic or by what it reads."""
    one = problem.swapped() if schedule.swapped else problem
    m, n, k = schedule.m, schedule.n, schedule.k
    tiles = problem.batch * -(-one.m // m) * -(-one.n // n) * schedule.parts
    slices = ceil(ceil(problem.k / k) / schedule.parts)
    arithmetic = 2 * m * n * k / row.operations_per_cycle
    # Rows of the left operand pass through the multiplier again for each instruction, however few its columns are.
    arithmetic = max(arithmetic, 2 * m * 48 * k / row.operations_per_cycle)
    loading = (m + n) * k * problem.a.dtype.itemsize / row.bytes_per_cycle
    resident = max(1, row.lanes < 256 and 2 or 1)
    rounds = -(-tiles // (target.cores * resident)) if resident == 1 else max(1.0, tiles / target.cores)
    cycles = rounds * (slices * max(arithmetic, loading) + _TILE_CYCLES + _CYCLES_PER_COLUMN * n)
    # A result that is written transposed leaves in short pieces.
    if schedule.swapped:
        cycles += rounds * m * n / 16
    if schedule.parts > 1:
        moved = 2 * schedule.parts * problem.batch * problem.m * problem.n * dtypes.float32.itemsize
        cycles += _SECOND_KERNEL_CYCLES + moved / (_PART_BYTES_PER_CYCLE * target.cores)
    return cycles


def contiguous_axis(strides: tuple[int, ...], inner_axis: int, outer_axis: int) -> Contiguous:
    """Which axis of an operand lies side by side in memory."""
    if strides[inner_axis] == 1:
        return "inner"
    return "outer" if strides[outer_axis] == 1 else "none"
