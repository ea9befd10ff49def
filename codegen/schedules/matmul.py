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
_COLUMNS_OF_OVERHEAD = 16
# What a multiprocessor gets in a cycle while all of them read: from memory, or where all arrays may still be in the cache.
_MEMORY_BYTES_PER_CYCLE = 18
_CACHE_BYTES_PER_CYCLE = 45
_SHARE_OF_CACHE = 0.75
# A second kernel that adds parts up: its start, and what of the parts a multiprocessor writes or reads in a cycle.
_SECOND_KERNEL_CYCLES = 3500
_PART_BYTES_PER_CYCLE = 10
# Of two schedules that wait for memory alike, the one that computes for less time.
_SHARE_OF_HIDDEN_WORK = 0.1
_MOST_PARTS = 16
# Programs that share a sum: until all parts have arrived, and what arrives of them in a cycle.
_SHARING_CYCLES = 2000
_SHARED_BYTES_PER_CYCLE = 9
# Of all multiprocessors, those that clusters of so many programs find room on: a cluster lies in one part of the card.
_SHARE_FOR_CLUSTERS = {1: 1.0, 2: 0.97, 4: 0.85, 8: 0.75}
_FEWEST_SHARED_SLICES = 2
# What a program must be able to hold: stages of operands, and the tile on its way out.
_FEWEST_STAGES = 4
_STORED_BYTES = 33 << 10
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
    sharers : int
        Programs that share a sum and each other's memory; one of them adds their parts together and goes on.
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
    sharers: int = 1
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.instruction:
            return "; ".join(("multiply and add", *self.reasons))
        text = f"{self.instruction} tile {self.m}x{self.n}x{self.k}"
        if self.parts > 1:
            text += f", sum in {self.parts} parts"
        if self.sharers > 1:
            text += f", sum shared by {self.sharers}"
        if self.together > 1:
            text += f", {self.together} together"
        if self.swapped:
            text += ", transposed"
        return "; ".join((text, *self.reasons))


def choose_matmul(problem: MatmulProblem, target: Target) -> MatmulSchedule:
    """The fastest schedule by the cost model, with the reasons for which faster instructions were not taken."""
    reasons: list[str] = []
    for row in target.matmul_instructions:
        candidates = list(_candidates(problem, row, target))
        if candidates:
            best = min(candidates, key=lambda schedule: cost_of(schedule, problem, row, target))
            return replace(best, reasons=tuple(reasons))
        reasons.append(f"{row.name} {_why_not(problem, row)}")
    return MatmulSchedule("", reasons=tuple(reasons))


def _candidates(problem: MatmulProblem, row: MatmulInstruction, target: Target) -> Iterator[MatmulSchedule]:
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
                    for sharers in _sharers(problem, row, m, n, k, target):
                        yield MatmulSchedule(row.name, m, n, k, 1, swapped, sharers=sharers)
                    # A second kernel for the parts pays where many programs run at once.
                    while parts <= (_MOST_PARTS if row.lanes > 1 else 1) and (
                        parts == 1 or slices >= parts * _FEWEST_SLICES
                    ):
                        yield MatmulSchedule(row.name, m, n, k, parts, swapped)
                        parts *= 2


def _sharers(problem: MatmulProblem, row: MatmulInstruction, m: int, n: int, k: int, target: Target) -> Iterator[int]:
    """How many programs can share a sum: their parts lie beside the operands."""
    if row.copies != "tensor maps":
        return
    itemsize = problem.a.dtype.itemsize
    kept = _FEWEST_STAGES * (m + n) * k * itemsize + _STORED_BYTES
    for sharers in (2, 4, 8):
        parts = (sharers - 1) * m * n * problem.accumulator.itemsize
        if kept + parts <= target.shared_bytes and problem.k >= sharers * _FEWEST_SHARED_SLICES * k:
            yield sharers


def _why_not(problem: MatmulProblem, row: MatmulInstruction) -> str:
    return refusal(row, row.rows[-1], row.columns[-1], row.inner[0], problem.a, problem.b, problem.accumulator)


def cost_of(schedule: MatmulSchedule, problem: MatmulProblem, row: MatmulInstruction, target: Target) -> float:
    """Cycles that a schedule takes, as a model has them: rounds of tiles, each bound by arithmetic or by what it reads."""
    one = problem.swapped() if schedule.swapped else problem
    m, n, k = schedule.m, schedule.n, schedule.k
    tiles = problem.batch * -(-one.m // m) * -(-one.n // n) * schedule.parts * schedule.sharers
    slices = ceil(ceil(problem.k / k) / (schedule.parts * schedule.sharers))
    # A narrow tile passes its rows through the multiplier for few columns.
    arithmetic = 2 * m * (n + _COLUMNS_OF_OVERHEAD) * k / row.operations_per_cycle
    loading = (m + n) * k * problem.a.dtype.itemsize / row.bytes_per_cycle
    if row.copies == "tensor maps":
        loading += _CYCLES_PER_MISSING_ROW * (_missing(one.m, m) + _missing(one.n, n))
    if schedule.swapped:
        loading *= _SWAPPED_LOADS
    if row.copies == "tensor maps":
        rounds: float = ceil(tiles / (target.cores * _SHARE_FOR_CLUSTERS[schedule.sharers]))
    else:
        # Several programs share a multiprocessor.
        rounds = max(1.0, tiles / target.cores)
    working = rounds * (slices * max(arithmetic, loading) + _TILE_CYCLES + _CYCLES_PER_COLUMN * n)
    if schedule.sharers > 1:
        parts_bytes = (schedule.sharers - 1) * m * n * problem.accumulator.itemsize
        working += rounds * (_SHARING_CYCLES + parts_bytes / _SHARED_BYTES_PER_CYCLE)
    if schedule.swapped:
        working += rounds * m * n / _SWAPPED_ELEMENTS_PER_CYCLE
    elements = problem.batch * (problem.m * problem.k + problem.k * problem.n + problem.m * problem.n)
    nbytes = elements * problem.a.dtype.itemsize
    is_near = nbytes <= target.cache_bytes * _SHARE_OF_CACHE
    moving = nbytes / ((_CACHE_BYTES_PER_CYCLE if is_near else _MEMORY_BYTES_PER_CYCLE) * target.cores)
    cycles = max(working, moving) + _SHARE_OF_HIDDEN_WORK * min(working, moving)
    if schedule.parts > 1:
        moved = 2 * schedule.parts * problem.batch * problem.m * problem.n * dtypes.float32.itemsize
        cycles += _SECOND_KERNEL_CYCLES + moved / (_PART_BYTES_PER_CYCLE * target.cores)
    return cycles


def _missing(extent: int, tile: int) -> float:
    """Rows of a tile outside of the operand, on the average of all tiles."""
    return tile - extent / -(-extent // tile)
