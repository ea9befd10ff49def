"""The grid of a kernel, and which part of each axis a program works on."""

from dataclasses import dataclass

from blockarray.fusion.lower_values import Lowering
from codegen.ir.kernel import GridAxis, IndexParameter, Value


@dataclass
class ProgramPart:
    """Begin and end of the part of each axis that a program works on; the end may lie beyond the axis on kept axes.

    The numbers are made when the kernel begins, so that all code may use them.
    """

    begins: tuple[Value, ...]
    ends: tuple[Value, ...]

    def begin(self, axis: int) -> Value:
        """First index on an axis."""
        return self.begins[axis]

    def end(self, axis: int) -> Value:
        """Behind the last index on an axis."""
        return self.ends[axis]


def blocks_of(lowering: Lowering) -> dict[int, int]:
    """Elements of each grid axis that one program works on, by axis of the domain."""
    schedule = lowering.schedule
    blocks: dict[int, int] = {}
    for axis, row in enumerate(lowering.plan.axes):
        if row.piece:
            blocks[axis] = row.piece
        elif not row.reduced:
            is_wide = schedule.width and axis == lowering.rank - 1
            blocks[axis] = schedule.width if is_wide else schedule.tile[axis]
    return blocks


def grid_of(lowering: Lowering) -> tuple[GridAxis, ...]:
    """One grid axis for each axis that is not gone over by a single program."""
    axes = []
    for axis, block in blocks_of(lowering).items():
        (extent,) = [
            parameter.name
            for parameter in lowering.parameters.parameters
            if isinstance(parameter, IndexParameter) and parameter.value is lowering.parameters.extents[axis]
        ]
        axes.append(GridAxis(extent, block))
    return tuple(axes)


def program_count(lowering: Lowering) -> int:
    """Programs of the whole grid."""
    count = 1
    for axis, block in blocks_of(lowering).items():
        count *= -(-lowering.plan.axes[axis].extent // block)
    return count


def find_part(lowering: Lowering) -> ProgramPart:
    """Emit the numbers of a program and what follows from them."""
    builder, parameters = lowering.builder, lowering.parameters
    blocks = blocks_of(lowering)
    begins = [lowering.zero] * lowering.rank
    ends = list(parameters.extents)
    for position, (axis, block) in enumerate(blocks.items()):
        number = builder.program_index(position, f"program{axis}")
        begins[axis] = builder.map("multiply", number, builder.index(block)) if block > 1 else number
        row = lowering.plan.axes[axis]
        if row.piece:
            lowering.piece_numbers[axis] = number
        if row.piece or (lowering.schedule.width and axis == lowering.rank - 1):
            limit = builder.map("add", begins[axis], builder.index(block))
            ends[axis] = builder.map("minimum", limit, parameters.extents[axis])
    return ProgramPart(tuple(begins), tuple(ends))
