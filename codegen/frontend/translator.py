"""From a Python function and the kinds of its arguments to a kernel of block IR."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from codegen.errors import KernelError
from codegen.frontend.blocks import Blocks, KernelBuilder, NeedsRank
from codegen.frontend.calls import Aliases, ReturnSignal, no_aliases
from codegen.frontend.diagnostics import Call, kernel_error
from codegen.frontend.expressions import Frame
from codegen.frontend.memory_words import MemoryWords
from codegen.frontend.parameters import BufferView, KernelParameters, Slot
from codegen.frontend.signature import ArrayKind, IndexKind, ScalarKind, Specialisation, StaticKind
from codegen.frontend.source import Captured, FunctionSource, source_of
from codegen.frontend.statements import Statements
from codegen.frontend.values import ArrayReference
from codegen.ir.kernel import GridAxis, Kernel
from codegen.ir.layout import Layout
from codegen.schedules.blocks import layout_of_blocks
from codegen.target import Target

_HIGHEST_RANK = 8


@dataclass(frozen=True)
class Translation:
    """A kernel that a function became.

    Attributes
    ----------
    kernel : Kernel
    slots : tuple of Slot
        What each slot of a launch holds.
    views : mapping
        By buffer parameter: the array argument that it shows, and how.
    stored : frozenset of str
        Array parameters that the kernel writes.
    has_dot : bool
        It multiplies blocks.
    captured : Captured
        What it took from outside of the function.
    """

    kernel: Kernel
    slots: tuple[Slot, ...]
    views: Mapping[str, BufferView]
    stored: frozenset[str]
    has_dot: bool
    captured: Captured = field(repr=False)


def translate(
    function: FunctionType, specialisation: Specialisation, target: Target, aliases: Aliases = no_aliases
) -> Translation:
    """The kernel of a function for arguments of some kinds.

    Parameters
    ----------
    function : function
        With a parameter for each argument of the specialisation.
    specialisation : Specialisation
    target : Target
        Facts about the machine, for the layout.
    aliases : callable, optional
        The word that a function from elsewhere is inside of kernels, or None.

    Raises
    ------
    KernelError
        With the line of the source that is wrong.
    """
    source = source_of(function)
    kinds = [kind for _, kind in specialisation.arguments if isinstance(kind, ArrayKind)]
    rank = max([1, *(len(kind.extents) for kind in kinds)])
    lowered = False
    while rank <= _HIGHEST_RANK:
        translator = _Translator(source, specialisation, target, aliases, rank)
        try:
            found = translator.translation()
        except NeedsRank as needed:
            rank = needed.rank
            continue
        # Blocks of a product have two axes; leading axes of arrays stay outside of its tile.
        if lowered or not found.has_dot or translator.needed_rank == rank:
            return found
        rank, lowered = translator.needed_rank, True
    raise KernelError(f"{source.name}: blocks of more than {_HIGHEST_RANK} axes; expected fewer")


class _Translator:
    def __init__(
        self,
        source: FunctionSource,
        specialisation: Specialisation,
        target: Target,
        aliases: Aliases,
        rank: int,
    ) -> None:
        self._source = source
        self._specialisation = specialisation
        self._target = target
        self._rank = rank
        self._parameters = KernelParameters(specialisation)
        self._captured = Captured()
        self._builder = KernelBuilder()
        self._blocks = blocks = Blocks(self._builder, rank)
        inputs, grid_axes = specialisation.inputs, specialisation.grid_axes
        self._memory = MemoryWords(blocks, self._parameters, inputs, grid_axes)
        self._statements = Statements(blocks, self._memory, self._captured, aliases)

    @property
    def needed_rank(self) -> int:
        """Axes that a tile with products needs."""
        return max(2, self._blocks.highest_rank)

    def translation(self) -> Translation:
        """Run the body; the kernel."""
        source, statements = self._source, self._statements
        statements.calls.append(Call(source.text, source.name, None))
        statements.frames.append(Frame(source, self._arguments(), {}, 0))
        try:
            if isinstance(source.node.body, list):
                statements.run(source.node.body)
            else:
                statements.evaluate(source.node.body)
        except ReturnSignal:
            pass
        grid = self._grid()
        parameters, slots = self._parameters.finished()
        layout = self._layout()
        name = source.name if source.name.isidentifier() and source.name.isascii() else "anonymous"
        kernel = self._builder.kernel(f"{name}_kernel", parameters, grid, layout)
        stored, has_dot = frozenset(self._parameters.stored), statements.folding.has_dot
        return Translation(kernel, tuple(slots), self._parameters.views, stored, has_dot, self._captured)

    def _arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, kind in self._specialisation.arguments:
            match kind:
                case ArrayKind(dtype=dtype, extents=extents):
                    found[name] = ArrayReference(name, dtype, extents)
                case ScalarKind() | IndexKind():
                    found[name] = self._parameters.number(name)
                case StaticKind(value=value):
                    found[name] = value
        return found

    def _grid(self) -> tuple[GridAxis, ...]:
        given = self._specialisation.grid_axes
        if given is not None:
            return tuple(GridAxis(f"grid{axis}") for axis in range(given))
        candidates = self._memory.grid_candidates
        count = max(self._memory.used_axes, default=-1) + 1
        axes = []
        for axis in range(count):
            if axis not in self._memory.used_axes:
                axes.append(GridAxis(1))  # nobody asks which program it is
                continue
            if len(candidates.get(axis, ())) != 1:
                raise self._grid_error(axis, candidates.get(axis, []))
            axes.append(candidates[axis][0])
        return tuple(axes)

    def _grid_error(self, axis: int, candidates: list[GridAxis]) -> KernelError:
        if candidates:
            why = f"stores ask for different ones ({', '.join(f'{one.extent} by {one.block}' for one in candidates)})"
        else:
            why = f"no store has program_index({axis}) times the block's extent as its offset"
        message = f"{self._source.name}: the number of programs along grid axis {axis} cannot be derived: {why}; pass grid=(…)"
        return kernel_error(message, self._source.node, self._statements.calls)

    def _layout(self) -> Layout:
        operations = self._builder.operations()
        return layout_of_blocks(operations, self._rank, self._target)
