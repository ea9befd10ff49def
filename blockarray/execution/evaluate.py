"""The only place where recorded nodes become data."""

import sys
import threading
import weakref

from blockarray.execution.memory import Buffer, buffer_token, through_windows, window_of, window_range
from blockarray.execution.plan_cache import CompiledPlan, Launch, find_plan
from blockarray.execution.replay import FOUND_AGAIN, find_replays, keep_replay
from blockarray.execution.statistics import run as statistics
from blockarray.graph.nodes import Contract, Gather, Node, Reduce, Scan, Scatter, Source, Update, View, Window
from blockarray.graph.recording import Recording, linearize
from codegen.targets.backend import Memory

# One evaluation at a time: plans own the slots their kernels read, and a node must be computed once.
lock = threading.RLock()

# A value recomputed this often is stored with the next evaluation that needs it.
_RECOMPUTATIONS = 1

# Written to memory in the time of a launch, some microseconds.
_SMALL_BYTES = 1 << 16


def evaluate_nodes(*nodes: Node) -> None:
    """Compute the value of each node; those that have one are left alone.

    An update is computed by itself after all it builds on, oldest first, so that each can take over the memory of the value it
    replaces when nothing reads that any more.
    """
    with lock:
        if len(nodes) == 1:
            (node,) = nodes
            if not node.depth:
                return
            replays = find_replays(node)
            if replays is not None and statistics.log is None:
                for replay in replays:
                    if replay(node):
                        return
            roots = nodes
        else:
            roots = tuple(dict.fromkeys(node for node in nodes if node.depth))
            if not roots:
                return
        recording = linearize(roots)
        if recording.has_updates:
            updates = [
                weakref.ref(node)
                for node in recording.nodes
                if isinstance(node, Update | Scatter) and node.buffer is None
            ]
            del recording
            for reference in updates:
                update = reference()
                if update is not None and update.buffer is None:
                    _evaluate_alone(update)
                    del update
            roots = tuple(node for node in roots if node.depth)
            if not roots:
                return
            recording = linearize(roots)
        if recording.views and through_windows(recording.views):
            recording = linearize(roots)
        recording = _with_kept_values(recording)
        for node in recording.nodes:
            if node.depth:
                node.recomputed += 1
        plan = find_plan(recording, roots[0].device)
        if plan.found == FOUND_AGAIN:
            keep_replay(recording, plan)
        run_plan(plan, recording.roots, recording.leaves)


def _evaluate_alone(update: Update | Scatter) -> None:
    """Compute an update whose inputs build on no pending update.

    The kernel writes into a window of the old value's memory, which is taken over if nothing else can read it, and into a copy of it
    otherwise. What the new elements are computed from may lie in the same memory: then either it is read exactly where it is
    written, or the copy is taken as well.
    """
    # What a scatter writes, and where, is memory of its own.
    evaluate_nodes(*(update.inputs if isinstance(update, Scatter) else update.inputs[:1]))
    base, *rest = update.inputs
    old = base.buffer
    assert old is not None
    dtype, device, itemsize = update.dtype, update.device, update.dtype.itemsize
    twin: Update | Scatter
    if isinstance(update, Scatter):
        first, extent = 0, base.size
        window = window_of(base, first, extent)
        twin = Scatter(window, rest[0], tuple(rest[1:]), update.function, update.working)
    else:
        first, extent = window_range(update.offset, update.view_shape, update.strides, itemsize)
        window = window_of(base, first, extent)
        twin = Update(window, rest[0], update.offset - first, update.view_shape, update.strides)
    recording = linearize((twin,))
    if recording.views and through_windows(recording.views):
        recording = linearize((twin,))
    plan = find_plan(recording, device)
    if isinstance(twin, Scatter):
        safe = not old.shared and base not in rest
    else:
        safe = not old.shared and _reads_where_it_writes(recording, window, old, twin)
    again = Source(base.shape, dtype, device, old)
    reference = weakref.ref(base)
    update.inputs = ()
    # From here on only the recording holds what the update is computed from, unless something else will read it too.
    del base, rest, window
    memory = old.memory
    if not safe or reference() is not None or _is_read_elsewhere(recording, old):
        memory = device.allocate(old.memory.nbytes)
        device.copy(old.memory, 0, memory, 0, old.memory.nbytes)
    try:
        run_plan(plan, (twin,), recording.leaves, memory.address + first * itemsize, memory)
    except BaseException:
        update.inputs = (again, *twin.inputs[1:])
        raise
    if twin.buffer is not None:
        # The plan made the window's new value elsewhere.
        device.copy(twin.buffer.memory, 0, memory, first * itemsize, extent * itemsize)
    update.settle(Buffer(memory, buffer_token(dtype, update.shape, device)))


def _reads_where_it_writes(recording: Recording, window: Window, old: Buffer, twin: Update) -> bool:
    """Whether all reads of the memory that an update writes are at the very point that is written, or apart from all of them."""
    inside = {known() for known in (old.windows or {}).values()}
    begin, end = window.buffer.address, window.buffer.address + window.nbytes  # type: ignore[union-attr]
    combines = any(type(node) in (Reduce, Scan, Gather, Contract) for node in recording.nodes if node.depth)
    for node in recording.nodes:
        if type(node) is not View or not node.inputs:
            continue
        read = node.inputs[0]
        if type(read) is not Window or read not in inside:
            continue
        start = read.buffer.address  # type: ignore[union-attr]
        if start >= end or start + read.nbytes <= begin:
            continue
        same = read is window and (node.offset, node.shape, node.strides) == (
            twin.offset,
            twin.view_shape,
            twin.strides,
        )
        if not same or combines:
            return False
    return True


def _references(nodes: list[Node], position: int) -> int:
    node = nodes[position]
    return sys.getrefcount(node)


def _count_references(node: Node) -> int:
    return sys.getrefcount(node)


def _passed() -> int:
    (found,) = {_count_references(one) for one, _ in {object(): 0}.items()}  # type: ignore[arg-type]
    return found


# What `_count_references` counts of a key that nothing but its dictionary holds.
_PASSED = _passed() + 1  # the list of nodes of the recording

# What `_references` counts of an object that only the list holds.
_IN_A_LIST = _references([object()], 0)  # type: ignore[list-item]


def _is_read_elsewhere(recording: Recording, old: Buffer) -> bool:
    """Whether something outside the recording of an update can still read the memory `old` through a window.

    That is a window that the recording does not use, or a pending node of it between such a window and the update that is held by
    something else as well: an array of the user's program, or a node recorded on top of it.
    """
    inside = {id(leaf) for leaf in recording.leaves}
    windows = set()
    for known in (old.windows or {}).values():
        window = known()
        if window is not None:
            if id(window) not in inside:
                return True
            windows.add(id(window))
        del window
    held: dict[int, int] = {}
    for holder in (*(node.inputs for node in recording.nodes), recording.leaves, recording.views, recording.roots):
        for position in range(len(holder)):
            number = id(holder[position])
            held[number] = held.get(number, 0) + 1
    reading: set[int] = set()
    nodes = recording.nodes
    # The last node is the update itself.
    for position in range(len(nodes) - 1):
        number = id(nodes[position])
        if number not in windows and not any(id(one) in reading for one in nodes[position].inputs):
            continue
        reading.add(number)
        if _references(nodes, position) > _IN_A_LIST + held.get(number, 0):
            return True
    return False


def _with_kept_values(recording: Recording) -> Recording:
    """Add nodes that can be read again after this evaluation: they are stored, and whatever only they need is let go.

    Small ones at once: they are stored faster than a kernel is launched that computes them once more. Large ones when they were
    computed before, so that an array that only one expression reads is never written. What cannot be stored (a view, an array
    that is not worth it yet) is made of nodes that can be read again as well.
    """
    roots = recording.roots
    readable = _readable_later(recording)
    if not readable:
        return recording
    kept: list[Node] = []
    for node in reversed(recording.nodes):
        if node not in readable or not node.depth:
            continue
        if node.worth_keeping and (node.recomputed >= _RECOMPUTATIONS or node.nbytes <= _SMALL_BYTES):
            kept.append(node)
        else:
            readable.update(node.inputs)
    kept = [node for node in reversed(kept) if node not in roots]
    return linearize((*kept, *roots)) if kept else recording


def _readable_later(recording: Recording) -> set[Node]:
    """Pending nodes, the roots aside, that something outside of a recording holds: an array, or a node recorded on top."""
    held = _held_inside(recording)
    # The keys of `held` are references too.
    found = {node for node, count in held.items() if _count_references(node) > _PASSED + count}
    return found.difference(recording.roots)


def _held_inside(recording: Recording) -> dict[Node, int]:
    """How often nodes of a recording hold each pending one of it. A function of its own: its variables hold nodes as well."""
    held: dict[Node, int] = {}
    for node in recording.nodes:
        for one in node.inputs:
            if one.depth:
                held[one] = held.get(one, 0) + 1
    for view in recording.views:
        held[view] = held.get(view, 0) + 1
    return held


def run_plan(
    plan: CompiledPlan,
    roots: tuple[Node, ...],
    leaves: list[Node],
    target_address: int = 0,
    target: Memory | None = None,
) -> None:
    """Run a plan on the values of `leaves`; an update in it writes to `target_address`, inside the memory `target`."""
    device = roots[0].device
    memories: list[Memory | None] = [None] * plan.value_count
    addresses = [0] * plan.value_count
    for number, position in plan.leaf_numbers:
        buffer = leaves[position].buffer
        memories[number] = buffer.memory  # type: ignore[union-attr]  # these leaves are evaluated
        addresses[number] = buffer.address  # type: ignore[union-attr]
    for step in plan.steps:
        if step.constants:
            for put, slot, position in step.constants:
                put(slot, leaves[position].value)  # type: ignore[attr-defined]  # these leaves are constants
    buffers: list[tuple[Node, Buffer]] = []
    for value in plan.fresh:
        memory = device.allocate(value.nbytes)
        memories[value.number] = memory
        addresses[value.number] = memory.address
        if value.result is not None:
            buffers.append((roots[value.result], Buffer(memory, value.token)))
    for taken in plan.inherited:
        memories[taken.number] = device.borrow(target_address, taken.nbytes, target)
        addresses[taken.number] = target_address
    for step in plan.steps:
        if isinstance(step, Launch):
            slots = step.slots
            for position, number, offset in step.pointers:
                slots[position] = addresses[number] + offset
            step.run(step.programs, step.parallel)
        else:
            step.run(memories)
    for node, buffer in buffers:
        node.settle(buffer)
    statistics.kernels += plan.kernels
    statistics.bytes_read += plan.bytes_read
    statistics.bytes_written += plan.bytes_written
    statistics.temporaries_avoided += plan.avoided
    statistics.temporary_bytes_avoided += plan.avoided_bytes
    if statistics.log is not None:
        statistics.log.append(str(plan.explanation))
