"""The only place where recorded nodes become data."""

import threading
import weakref

from blockarray.execution.memory import Buffer
from blockarray.execution.plan_cache import CompiledPlan, Launch, find_plan
from blockarray.execution.statistics import run as statistics
from blockarray.graph.nodes import Node, Source, Update
from blockarray.graph.recording import Recording, linearize
from codegen.targets.backend import Memory

# One evaluation at a time: plans own the slots their kernels read, and a node must be computed once.
lock = threading.RLock()

# A value recomputed this often is stored with the next evaluation that needs it.
_RECOMPUTATIONS = 1


def evaluate_nodes(*nodes: Node) -> None:
    """Compute the value of each node; those that have one are left alone.

    An update is computed by itself after all it builds on, oldest first, so that each can take over the memory of the value it
    replaces when nothing reads that any more.
    """
    with lock:
        if len(nodes) == 1:
            if not nodes[0].depth:
                return
            roots = nodes
        else:
            roots = tuple(dict.fromkeys(node for node in nodes if node.depth))
            if not roots:
                return
        recording = linearize(roots)
        if recording.has_updates:
            updates = [weakref.ref(node) for node in recording.nodes if type(node) is Update and node.buffer is None]
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
        if recording.computed_before:
            recording = _with_kept_values(recording)
        for node in recording.nodes:
            node.recomputed += 1
        plan = find_plan(recording, roots[0].device)
        _run(plan, recording.roots, recording.leaves)


def _evaluate_alone(update: Update) -> None:
    recording = linearize((update,))
    plan = find_plan(recording, update.device)
    leaves = recording.leaves
    del recording
    _run(plan, (update,), leaves)


def _with_kept_values(recording: Recording) -> Recording:
    """Add the nodes that an earlier evaluation computed without keeping the value: it is stored this time."""
    roots = recording.roots
    kept = [
        node
        for node in recording.nodes
        if node.recomputed >= _RECOMPUTATIONS and node.depth and node.worth_keeping and node not in roots
    ]
    return linearize((*kept, *roots)) if kept else recording


def _run(plan: CompiledPlan, roots: tuple[Node, ...], leaves: list[Node]) -> None:
    """Run a plan. `leaves` is emptied, so that values which only this evaluation still reads can be taken over."""
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
    restore: list[tuple[Node, Source]] = []
    if plan.inherited:
        for taken in plan.inherited:
            root = roots[taken.result]
            base, replacement = root.inputs
            old = base.buffer
            assert old is not None
            again = (base.shape, base.dtype, device, old)
            reference = weakref.ref(base)
            del base
            root.inputs = ()
            leaves.clear()
            memory = old.memory
            if reference() is not None or old.shared:
                memory = device.allocate(taken.nbytes)
                device.copy(old.memory, 0, memory, 0, root.nbytes)
            restore.append((root, Source(*again)))
            root.inputs = (restore[-1][1], replacement)
            memories[taken.number] = memory
            addresses[taken.number] = memory.address
            buffers.append((root, Buffer(memory, taken.token)))
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
