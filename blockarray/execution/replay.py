"""Known recordings in one go: a plan that was found again and again becomes a function that checks and runs.

Walking a recording, making its key and looking the plan up costs more than a small kernel. What the walk finds is the same every time, so
it is written out once as straight-line Python: take the inputs apart, compare the tokens, fill the slots, launch. A recording
that is different in anything is turned down before anything is changed, and goes the general way.
"""

from blockarray.execution.memory import Buffer
from blockarray.execution.plan_cache import CompiledPlan, Launch, Replay, replays
from blockarray.execution.statistics import run as statistics
from blockarray.graph.nodes import Constant, Node, View, Window
from blockarray.graph.recording import Recording

FOUND_AGAIN = 16
"""So often a plan is found the general way before its replay is written, which takes as long as some fifty general ways."""

_LARGEST = 64
_KEPT_OUTLINES = 1024
_KEPT_OF_ONE_OUTLINE = 4


def find_replays(node: Node) -> list[Replay] | None:
    """Replays that may fit a pending node."""
    return replays.get((node.token, node.depth, node.weight))


def keep_replay(recording: Recording, plan: CompiledPlan) -> None:
    """Write the replay of a recording whose plan was found, if it is of a kind that can be replayed."""
    if not _is_replayable(recording, plan):
        return
    root = recording.nodes[-1]
    outline = (root.token, root.depth, root.weight)
    known = replays.setdefault(outline, [])
    known.insert(0, _written(recording, plan))
    del known[_KEPT_OF_ONE_OUTLINE:]
    if len(replays) > _KEPT_OUTLINES:
        replays.popitem(last=False)


def _is_replayable(recording: Recording, plan: CompiledPlan) -> bool:
    """One node was asked for, which is last; other results are nodes below it that are kept."""
    if recording.has_updates or recording.computed_before or len(recording.nodes) > _LARGEST or plan.inherited:
        return False
    if recording.roots[-1] is not recording.nodes[-1]:
        return False
    inside = {node for node in recording.nodes if node.depth for node in node.inputs}
    results = {value.result for value in plan.fresh if value.result is not None}
    return inside.issuperset(recording.roots[:-1]) and results == set(range(len(recording.roots)))


class _Writer:
    """Lines of a replay, and the objects that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, object] = {"statistics": statistics, "Buffer": Buffer, "Window": Window}

    def line(self, text: str) -> None:
        """One more line."""
        self.lines.append(f"    {text}\n")

    def name(self, name: str, value: object) -> str:
        """A name for an object."""
        self.names[name] = value
        return name

    def function(self, parameter: str) -> Replay:
        """The lines as a function; what they name is bound as defaults, which are read faster than globals."""
        bound = ", ".join(f"{name}={name}" for name in self.names)
        source = f"def replay({parameter}, *, {bound}):\n{''.join(self.lines)}"
        scope = dict(self.names)
        # The text is made of numbers and of names chosen here, nothing of it comes from outside.
        exec(compile(source, "<replay>", "exec"), scope)
        return scope["replay"]  # type: ignore[return-value]


def _written(recording: Recording, plan: CompiledPlan) -> Replay:
    writer = _Writer()
    nodes, roots = recording.nodes, recording.roots
    numbers = {node: number for number, node in enumerate(nodes)}
    _write_checks(writer, recording, numbers)
    pending = [number for number, node in enumerate(nodes) if node.depth]
    for number in pending:
        writer.line(f"n{number}.recomputed = 1")
    _write_run(writer, recording, plan, numbers)
    for value in plan.fresh:
        if value.result is not None:
            name = f"n{numbers[roots[value.result]]}"
            writer.line(f"{name}.buffer = Buffer(m{value.number}, {value.token})")
            writer.line(f"{name}.token = {value.token}")
            writer.line(f"{name}.inputs = ()")
            writer.line(f"{name}.depth = {name}.weight = 0")
    writer.line("statistics.replays += 1")
    for counter, amount in (
        ("kernels", plan.kernels),
        ("bytes_read", plan.bytes_read),
        ("bytes_written", plan.bytes_written),
        ("temporaries_avoided", plan.avoided),
        ("temporary_bytes_avoided", plan.avoided_bytes),
    ):
        if amount:
            writer.line(f"statistics.{counter} += {amount}")
    writer.line("return True")
    return writer.function(f"n{numbers[nodes[-1]]}")


def _write_checks(writer: _Writer, recording: Recording, numbers: dict[Node, int]) -> None:
    """Take the recording apart from the root down, and turn it down where it differs.

    Nodes that are one here must be one there, since the plan computes them once. Nodes that differ here may be one there.
    """
    root = recording.nodes[-1]
    named = {root}
    waiting = [root]
    writer.line(f"if n{numbers[root]}.recomputed: return False")
    while waiting:
        node = waiting.pop()
        number = numbers[node]
        targets, same, fresh = [], [], []
        for position, one in enumerate(node.inputs):
            name = f"n{numbers[one]}"
            if one in named:
                name = f"{name}_{number}_{position}"
                same.append(f"{name} is not n{numbers[one]}")
            else:
                named.add(one)
                fresh.append(one)
            targets.append(name)
        if targets:
            writer.line(f"{', '.join(targets)}, = n{number}.inputs")
        conditions = [*same]
        for one in fresh:
            name = f"n{numbers[one]}"
            conditions.append(f"{name}.token != {one.token}")
            if one.depth:
                conditions.append(f"{name}.recomputed")
                waiting.append(one)
        if type(node) is View and type(node.inputs[0]) is Window and node.inputs[0] in fresh:
            conditions.append(f"type(n{numbers[node.inputs[0]]}) is not Window")
        if conditions:
            writer.line(f"if {' or '.join(conditions)}: return False")
    # Equal constants are one value to a plan, see `linearize`.
    first: dict[tuple[object, object], int] = {}
    for node in recording.leaves:
        if type(node) is Constant and node.value:
            known = first.setdefault((node.value, node.dtype), numbers[node])
            if known != numbers[node]:
                writer.line(f"if n{numbers[node]}.value != n{known}.value: return False")


def _write_run(writer: _Writer, recording: Recording, plan: CompiledPlan, numbers: dict[Node, int]) -> None:
    """Allocate, fill the slots, launch: what `evaluate` does from lists, written out."""
    device = writer.name("allocate", recording.roots[0].device.allocate)
    addresses: dict[int, str] = {}
    memories: dict[int, str] = {}
    for number, position in plan.leaf_numbers:
        name = f"n{numbers[recording.leaves[position]]}"
        addresses[number] = f"{name}.buffer.address"
        memories[number] = f"{name}.buffer.memory"
    for value in plan.fresh:
        writer.line(f"m{value.number} = {device}({value.nbytes})")
        addresses[value.number] = f"m{value.number}.address"
        memories[value.number] = f"m{value.number}"
    for place, step in enumerate(plan.steps):
        for put, (setter, slot, position) in enumerate(step.constants):
            name = writer.name(f"put{place}_{put}", setter)
            writer.line(f"{name}({slot}, n{numbers[recording.leaves[position]]}.value)")
        run = writer.name(f"run{place}", step.run)
        if not isinstance(step, Launch):
            listed = ", ".join(memories.get(number, "None") for number in range(plan.value_count))
            writer.line(f"{run}(({listed},))")
            continue
        slots = writer.name(f"slots{place}", step.slots)
        for position, number, offset in step.pointers:
            moved = f" + {offset}" if offset else ""
            writer.line(f"{slots}[{position}] = {addresses[number]}{moved}")
        writer.line(f"{run}({step.programs}, {step.parallel})")
