"""From the key of a recording to launches that are ready: partition, lower and compile once, then only run."""

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass

from blockarray.execution.constants import NumberSlots, SetNumber
from blockarray.execution.library_calls import ProductCall, bind_product
from blockarray.execution.memory import buffer_token
from blockarray.execution.statistics import run as statistics
from blockarray.fusion.explain import Explanation, explain_plan
from blockarray.fusion.lower import LoweredKernel, SlotConstant, SlotNumber, SlotPointer, lower
from blockarray.fusion.partition import make_plan
from blockarray.fusion.plan import Fresh, GraphPlan, Inherited, KernelPlan, Leaf, Scattering, Step
from blockarray.fusion.split import split
from blockarray.graph.nodes import Node
from blockarray.graph.recording import Recording
from blockarray.kernels.matmul import DeviceProduct
from blockarray.kernels.scatter import LoweredScatter, lower_scatter
from codegen.compiler import Executable, compile_kernel
from codegen.dtypes import DType
from codegen.targets.backend import Backend, BoundLaunch

_KEPT_PLANS = 4096


class Launch:
    """A compiled kernel with its slots: what stays is filled in, what changes is listed."""

    __slots__ = ("run", "slots", "pointers", "constants", "programs", "parallel", "executable")

    def __init__(
        self,
        lowered: LoweredKernel | LoweredScatter,
        executable: Executable,
        constants: Mapping[int, tuple[DType, int]],
    ) -> None:
        arguments = lowered.arguments
        count = max(len(arguments), 1)
        self.slots = (ctypes.c_int64 * count)()
        self.pointers: list[tuple[int, int, int]] = []
        self.constants: list[tuple[SetNumber, int, int]] = []
        number_slots = NumberSlots(self.slots, count)
        for position, argument in enumerate(arguments):
            match argument:
                case SlotNumber(value=value):
                    self.slots[position] = value
                case SlotPointer(value_number=number, byte_offset=offset):
                    self.pointers.append((position, number, offset))
                case SlotConstant(value_number=number):
                    dtype, leaf = constants[number]
                    self.constants.append((*number_slots.setter(dtype, position), leaf))
        self.programs = lowered.programs
        self.parallel = lowered.parallel
        self.executable = executable
        self.run: BoundLaunch = executable.bind(ctypes.addressof(self.slots))


@dataclass(frozen=True)
class FreshValue:
    """Memory to allocate: bytes, and the result (position in the roots, or None) it becomes, with that buffer's token."""

    number: int
    nbytes: int
    result: int | None
    token: int


@dataclass(frozen=True)
class InheritedValue:
    """Memory to take over from a leaf (or to copy)."""

    number: int
    leaf: int
    nbytes: int
    result: int
    token: int


class CompiledPlan:
    """Everything that an evaluation needs, apart from the leaves; `found` counts how often it was found again."""

    __slots__ = (
        "found",
        "plan",
        "leaf_numbers",
        "fresh",
        "inherited",
        "steps",
        "value_count",
        "explanation",
        "kernels",
        "bytes_read",
        "bytes_written",
        "avoided",
        "avoided_bytes",
    )

    def __init__(self, recording: Recording, device: Backend) -> None:
        plan: GraphPlan = split(make_plan(recording, device.target), device.target)
        self.plan = plan
        self.found = 0
        self.value_count = len(plan.values)
        self.leaf_numbers: list[tuple[int, int]] = []
        self.fresh: list[FreshValue] = []
        self.inherited: list[InheritedValue] = []
        roots = {recording.nodes.index(root): position for position, root in enumerate(recording.roots)}
        for number, value in enumerate(plan.values):
            match value:
                case Leaf(position=position):
                    self.leaf_numbers.append((number, position))
                case Fresh(dtype=dtype, elements=elements, result=result):
                    root = None if result is None else roots.get(result)
                    token = -1 if result is None else _token_of(recording.nodes[result], device)
                    self.fresh.append(FreshValue(number, max(elements * dtype.itemsize, 1), root, token))
                case Inherited(position=position, dtype=dtype, elements=elements, result=result):
                    nbytes = max(elements * dtype.itemsize, 1)
                    token = _token_of(recording.nodes[result], device)
                    self.inherited.append(InheritedValue(number, position, nbytes, roots[result], token))
        constants = {
            number: (recording.leaves[position].dtype, position)
            for number, position in self.leaf_numbers
            if recording.leaves[position].buffer is None
        }
        self.leaf_numbers = [(number, position) for number, position in self.leaf_numbers if number not in constants]
        self.steps = _prepare_steps(plan, device, constants)
        self.explanation: Explanation = explain_plan(plan, recording)
        self.kernels = len(self.steps)
        self.bytes_read = sum(kernel.bytes_read for kernel in self.explanation.kernels)
        self.bytes_written = sum(kernel.bytes_written for kernel in self.explanation.kernels)
        stored = {value.result for value in plan.values if isinstance(value, Fresh | Inherited)}
        hidden = [
            node for number, node in enumerate(recording.nodes) if number not in stored and _is_array_of_its_own(node)
        ]
        self.avoided = len(hidden)
        self.avoided_bytes = sum(node.nbytes for node in hidden)


def _token_of(node: Node, device: Backend) -> int:
    return buffer_token(node.dtype, node.shape, device)


def _is_array_of_its_own(node: Node) -> bool:
    # What NumPy would have stored: not leaves, and not views.
    return not node.is_leaf and node.describe().split()[0] not in ("view", "iota")


PreparedStep = Launch | ProductCall | DeviceProduct


def _prepare_steps(plan: GraphPlan, device: Backend, constants: Mapping[int, tuple[DType, int]]) -> list[PreparedStep]:
    if len(plan.steps) <= 1:
        return [one for step in plan.steps for one in _prepared(step, device, constants)]
    with ThreadPoolExecutor(min(len(plan.steps), max(device.target.cores, 1))) as pool:
        # Settings that are overridden in this context hold for the threads too.
        waiting = [pool.submit(copy_context().run, _prepared, step, device, constants) for step in plan.steps]
        return [one for future in waiting for one in future.result()]


def _prepared(step: Step, device: Backend, constants: Mapping[int, tuple[DType, int]]) -> list[PreparedStep]:
    if isinstance(step, KernelPlan):
        return [Launch(one, compile_kernel(one.kernel, device), constants) for one in lower(step, device.target)]
    if isinstance(step, Scattering):
        scatter = lower_scatter(step, device.target)
        return [Launch(scatter, compile_kernel(scatter.kernel, device), constants)]
    return [bind_product(step, device)]


Replay = Callable[[Node], bool]
"""Computes a node and says True, or finds that it is something else, changes nothing and says False."""

_plans: OrderedDict[tuple[str, tuple[int, ...]], CompiledPlan] = OrderedDict()

replays: OrderedDict[tuple[int, int, int], list[Replay]] = OrderedDict()
"""Replays of plans (see `replay`) by what is compared first: token, depth and weight of the node asked for."""


def find_plan(recording: Recording, device: Backend) -> CompiledPlan:
    """The compiled plan of a recording, made if it was never seen. The caller holds the evaluation lock."""
    key = (device.device, recording.key)
    plan = _plans.get(key)
    if plan is not None:
        statistics.replays += 1
        plan.found += 1
        return plan
    plan = CompiledPlan(recording, device)
    statistics.plans += 1
    _plans[key] = plan
    if len(_plans) > _KEPT_PLANS:
        _plans.popitem(last=False)
    return plan


def forget_plans() -> None:
    """Drop all plans, so that the next evaluation partitions and lowers again."""
    _plans.clear()
    replays.clear()
