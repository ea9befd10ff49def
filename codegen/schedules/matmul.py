"""The tiles of a matrix product: candidates from the target's matmul instructions, a cost for each, and why the others lost."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from codegen import dtypes
from codegen.dtypes import DType
from codegen.ir.products import NARROWEST_PANEL, OperandFacts, refusal
from codegen.target import MatmulInstruction, Target

# Figures of an H200, fitted to 16 shapes with up to 15 schedules each. Cycles that a tile takes besides its slices: the
# first slice's way from memory, and the store of the result.
_TILE_CYCLES = 1200
_CYCLES_PER_COLUMN = 3
# A row of a tile that lies outside of its operand: the copy engine fills it one by one.
_CYCLES_PER_MISSING_ROW = 4
# Operands that changed places, and elements of the result that leave transposed in a cycle.
_SWAPPED_LOADS = 1.3
_SWAPPED_ELEMENTS_PER_CYCLE = 6
# What a multiprocessor gets from memory in a cycle while all of them read.
_MEMORY_BYTES_PER_CYCLE = 18
# A second kernel that adds parts up: its start, and what of the parts a multiprocessor writes or reads in a cycle.
_SECOND_KERNEL_CYCLES = 3500
_PART_BYTES_PER_CYCLE = 10
# Of two schedules that wait for memory alike, the one that computes for less time.
_SHARE_OF_HIDDEN_WORK = 0.1
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
    together : int
        Programs below one another that run side by side and share what they read of the right operand.
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
    together: int = 1
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.instruction:
            return "; ".join(("multiply and add", *self.reasons))
        text = f"{self.instruction} tile {self.m}x{self.n}x{self.k}"
        if self.parts > 1:
            text += f", sum in {self.parts} parts"
        if self.together > 1:
            text += f", {self.together} together"
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
                    if n < NARROWEST_PANEL and one.n > n and row.copies == "tensor maps":
                        continue  # several narrow tiles read the other operand again and again, and wait for it
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
    if row.copies == "tensor maps":
        loading += _CYCLES_PER_MISSING_ROW * (_missing(one.m, m) + _missing(one.n, n))
    if schedule.swapped:
        loading *= _SWAPPED_LOADS
    if row.copies == "tensor maps":
        rounds: float = -(-tiles // target.cores)
    else:
        # Several programs share a multiprocessor.
        rounds = max(1.0, tiles / target.cores)
    working = rounds * (slices * max(arithmetic, loading) + _TILE_CYCLES + _CYCLES_PER_COLUMN * n)
    if schedule.swapped:
        working += rounds * m * n / _SWAPPED_ELEMENTS_PER_CYCLE
    elements = problem.m * problem.k + problem.k * problem.n + problem.m * problem.n
    moving = problem.batch * elements * problem.a.dtype.itemsize / (_MEMORY_BYTES_PER_CYCLE * target.cores)
    cycles = max(working, moving) + _SHARE_OF_HIDDEN_WORK * min(working, moving)
    if schedule.parts > 1:
        moved = 2 * schedule.parts * problem.batch * problem.m * problem.n * dtypes.float32.itemsize
        cycles += _SECOND_KERNEL_CYCLES + moved / (_PART_BYTES_PER_CYCLE * target.cores)
    return cycles


def _missing(extent: int, tile: int) -> float:
    """Rows of a tile outside of the operand, on the average of all tiles."""
    return tile - extent / -(-extent // tile)
