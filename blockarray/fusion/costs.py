"""Store a value, or compute it again for each use: whichever is less work, in bytes moved and what the arithmetic is worth in bytes."""

from collections.abc import Iterable

from blockarray.fusion.decisions import Decisions
from blockarray.fusion.expansion import Expansion
from blockarray.graph.nodes import Cast, Gather, Map, Reduce, View
from codegen.scalar.table import TABLE

# One addition in a kernel that waits for memory costs about as much as half a byte of traffic: a core adds 16 to 32 billion
# float32 a second in registers, and reads 10 to 15 billion bytes.
BYTES_PER_ADDITION = 0.5
# Starting one more kernel takes some microseconds.
BYTES_PER_KERNEL = 32_768
_GATHER_ADDITIONS = 8.0
# Arithmetic that hides behind the loads and stores of any kernel.
_HIDDEN_ADDITIONS = 6.0
_MOST = 1e12

SHARED = "several kernels use it, and storing it once is less work than computing it for each"
REPEATED = "it would be computed many times for each element that is used"


def additions(decisions: Decisions) -> list[float]:
    """For each value what one element costs, in additions, if everything below that is not stored is computed for it."""
    graph = decisions.graph
    found: list[float] = []
    for number, node in enumerate(graph.nodes):
        if graph.is_leaf(number):
            found.append(0.0)
            continue
        total = 0.0
        for one in set(graph.inputs[number]):
            total += 1.0 if one in decisions.stored else found[one]
        match node:
            case Map(function=function):
                total += TABLE[function].expensive
            case Cast():
                total += 1.0
            case Reduce():
                operand = graph.inputs[number][0]
                total = (total + 1.0) * (graph.sizes[operand] / max(graph.sizes[number], 1))
            case Gather():
                total += _GATHER_ADDITIONS
            case View():
                pass
            case _:
                total += 1.0
        found.append(min(total, _MOST))
    return found


def _bytes_read(decisions: Decisions, number: int) -> float:
    """Bytes that computing the whole value reads, each stored value below counted once."""
    graph = decisions.graph
    seen: set[int] = set()
    waiting = [(number, float(graph.sizes[number]))]
    total = 0.0
    while waiting:
        one, elements = waiting.pop()
        for below in graph.inputs[one]:
            if below in seen:
                continue
            seen.add(below)
            node = graph.nodes[below]
            if graph.is_leaf(below) or below in decisions.stored:
                total += min(elements, graph.sizes[below]) * node.dtype.itemsize
                continue
            more = elements
            if type(node) is Reduce:
                more = elements * graph.sizes[graph.inputs[below][0]] / max(graph.sizes[below], 1)
            waiting.append((below, more))
    return total


def share_work(decisions: Decisions, kernels: Iterable[Expansion]) -> bool:
    """Decide which values that several accesses or kernels compute are stored instead. Returns whether any is."""
    graph = decisions.graph
    uses: dict[int, list[list[tuple[int, int]]]] = {}
    suspects = False
    for kernel in kernels:
        for number, found in kernel.uses.items():
            entry = uses.setdefault(number, [])
            entry.append(found)
            if not suspects and (len(entry) > 1 or len(found) > 1 or found[0][1] > graph.sizes[number]):
                suspects = True
    if not suspects:
        return False
    work: list[float] | None = None
    decided: set[int] = set()
    consumers: dict[int, list[int]] = {}
    for number in sorted(uses, reverse=True):
        by_kernel = uses[number]
        for one in graph.inputs[number]:
            consumers.setdefault(one, []).append(number)
        size = graph.sizes[number]
        computed = sum(points for found in by_kernel for _, points in found)
        if number in decisions.stored or computed <= size:
            continue
        above = consumers.get(number, ())
        if above and all(one in decided for one in above):
            # Every use is below a value that was just stored: what is left is seen in the next round.
            decided.add(number)
            continue
        if work is None:
            work = additions(decisions)
        reason = _worth_storing(decisions, number, by_kernel, work[number])
        if reason is not None:
            decisions.share(number, reason)
            decided.add(number)
    return any(number in decisions.stored for number in decided)


def _worth_storing(
    decisions: Decisions, number: int, by_kernel: list[list[tuple[int, int]]], work: float
) -> str | None:
    graph = decisions.graph
    node = graph.nodes[number]
    itemsize = node.dtype.itemsize
    size = graph.sizes[number]
    arithmetic = work * BYTES_PER_ADDITION
    # Several views in one kernel read the same lines of cache, so only their arithmetic counts; so does a row that is computed
    # again for each point of another axis, where little arithmetic hides behind the memory traffic.
    again = 0.0
    for found in by_kernel:
        differ = max(found)[0]
        again += differ * arithmetic
        rest = sum(points for _, points in found) - differ
        again += rest * max(work - (0.0 if len(found) > 1 else _HIDDEN_ADDITIONS), 0.0) * BYTES_PER_ADDITION
    read = _bytes_read(decisions, number) / max(size, 1)
    used = sum(max(found)[0] for found in by_kernel)
    again += used * read
    once = size * (arithmetic + read + itemsize) + used * itemsize
    if len(by_kernel) == 1:
        # The kernel that uses it cannot be the one that stores it.
        once += BYTES_PER_KERNEL
    elif not any(differ == size == points for found in by_kernel for differ, points in found):
        once += BYTES_PER_KERNEL
    if once >= again:
        return None
    return SHARED if len(by_kernel) > 1 else REPEATED
