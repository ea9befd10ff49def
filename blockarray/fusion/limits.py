"""How large a kernel may get, and where a larger one is cut: between statements, where the fewest bytes are alive."""

from blockarray.fusion.expansion import Expansion
from blockarray.fusion.plan import Apply, Convert, Fold, Number, Position, Read, RunningFold, Statement, Take

MOST_STATEMENTS = 150
MOST_BUFFERS = 24
TOO_LARGE = f"a kernel has at most {MOST_STATEMENTS} statements and {MOST_BUFFERS} buffers"

# Not the first good place after few statements: parts of about this size at least.
_FEWEST_STATEMENTS = 40
_SPARE_BUFFERS = 6


def operands_of(statement: Statement) -> tuple[int, ...]:
    """Earlier statements whose values a statement uses."""
    match statement:
        case Apply(operands=operands) | Fold(operands=operands):
            return operands
        case Convert(operand=operand) | RunningFold(operand=operand):
            return (operand,)
        case Take(positions=positions):
            return positions
    return ()


def source_of(statement: Statement) -> int | None:
    """The value whose memory a statement reads."""
    return statement.source if isinstance(statement, Read | Take) else None


def is_too_large(kernel: Expansion) -> bool:
    """Whether the kernel passes a limit."""
    return len(kernel.statements) > MOST_STATEMENTS or kernel.buffer_count() > MOST_BUFFERS


def values_to_store(kernel: Expansion) -> set[int]:
    """Values that, stored by other kernels, bring a kernel that is too large within the limits; empty if there are none."""
    statements = kernel.statements
    last_use = list(range(len(statements)))
    for position, statement in enumerate(statements):
        for operand in operands_of(statement):
            last_use[operand] = position
    written = {statement for _, statement in kernel.outputs}
    found: set[int] = set()
    alive: set[int] = set()
    ending: dict[int, list[int]] = {}
    start = 0
    sources: set[int] = set()
    best: tuple[int, int, int] | None = None
    best_alive: set[int] = set()
    position = 0
    while position < len(statements):
        statement = statements[position]
        source = source_of(statement)
        if source is not None:
            sources.add(source)
        if not isinstance(statement, Read | Number | Position) and last_use[position] > position:
            alive.add(position)
            ending.setdefault(last_use[position], []).append(position)
        for over in ending.pop(position, ()):
            alive.discard(over)
        length = position + 1 - start
        full = length >= MOST_STATEMENTS * 3 // 5 or len(sources) + len(alive) >= MOST_BUFFERS - _SPARE_BUFFERS
        worthwhile = length >= _FEWEST_STATEMENTS or len(sources) + len(alive) >= MOST_BUFFERS // 2
        if worthwhile and alive and _can_be_stored(kernel, alive, written):
            cost = sum(kernel.graph.nodes[kernel.origins[one]].nbytes for one in alive)
            price = (len(alive), cost, -position)
            if best is None or price[:2] <= best[:2]:
                best, best_alive = price, set(alive)
        if full and best is not None:
            found |= {kernel.origins[one] for one in best_alive}
            start = -best[2] + 1
            position = start
            # The next part reads the values that were just stored.
            sources = {-1 - one for one in best_alive}
            alive, ending = set(), {}
            best, best_alive = None, set()
            continue
        position += 1
    return found


def _can_be_stored(kernel: Expansion, alive: set[int], written: set[int]) -> bool:
    for one in alive:
        number = kernel.origins[one]
        if number < 0 or kernel.graph.is_leaf(number):
            return False
        if one in written and any(seed.target == number for seed in kernel.seeds):
            return False
    return True
