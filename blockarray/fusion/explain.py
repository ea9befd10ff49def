"""What a plan does, for people and for tests: kernels, why each of them ends, bytes moved, intermediate arrays stored."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod

from blockarray.fusion.lower import schedule_of
from blockarray.fusion.plan import Fresh, GraphPlan, KernelPlan, Product, Read, Scattering, Step, Take, Write
from blockarray.fusion.products import describe_schedule
from blockarray.graph.recording import Recording
from codegen.target import Target

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class KernelExplanation:
    """One kernel, or one call of a library, of an evaluation.

    Attributes
    ----------
    name : str
    operations : tuple of str
        The recorded operations that it does, with the lines of the program that recorded them.
    bytes_read, bytes_written : int
        Each distinct element once.
    reason : str
        Why the kernel ends where it does.
    domain : str
        The points it works on; folded axes are marked.
    """

    name: str
    operations: tuple[str, ...]
    bytes_read: int
    bytes_written: int
    reason: str
    domain: str
    _schedule: Callable[[], str] = field(repr=False, compare=False)

    @property
    def schedule(self) -> str:
        """The sizes that were chosen for the target."""
        return self._schedule()

    def __str__(self) -> str:
        moved = f"reads {readable_bytes(self.bytes_read)}, writes {readable_bytes(self.bytes_written)}"
        lines = [f"{self.name}  {self.domain}  {moved}"]
        lines += [f"    {operation}" for operation in self.operations]
        lines.append(f"  ends here: {self.reason}")
        lines.append(f"  schedule: {self.schedule}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Temporary:
    """Memory for values that are no results.

    Attributes
    ----------
    dtype : str
    elements, nbytes : int
    reason : str
        Why it is stored.
    """

    dtype: str
    elements: int
    nbytes: int
    reason: str

    def __str__(self) -> str:
        return f"{self.dtype}, {self.elements} elements, {readable_bytes(self.nbytes)}: {self.reason}"


@dataclass(frozen=True)
class Explanation:
    """What evaluating some arrays takes. Prints as text.

    Attributes
    ----------
    kernels : tuple of KernelExplanation
        In the order in which they run.
    temporary_arrays : tuple of Temporary
        Intermediate arrays that have to be stored; `temporaries` is how many.
    partial_results : tuple of Temporary
        What the pieces of a reduction that is spread over programs come to.
    """

    kernels: tuple[KernelExplanation, ...] = ()
    temporary_arrays: tuple[Temporary, ...] = ()
    partial_results: tuple[Temporary, ...] = ()

    @property
    def temporaries(self) -> int:
        """Number of intermediate arrays that have to be stored."""
        return len(self.temporary_arrays)

    @property
    def temporary_bytes(self) -> int:
        """Bytes of the intermediate arrays."""
        return sum(one.nbytes for one in self.temporary_arrays)

    @property
    def partial_bytes(self) -> int:
        """Bytes of the partial results."""
        return sum(one.nbytes for one in self.partial_results)

    @property
    def bytes_read(self) -> int:
        """Bytes that all kernels read."""
        return sum(kernel.bytes_read for kernel in self.kernels)

    @property
    def bytes_written(self) -> int:
        """Bytes that all kernels write."""
        return sum(kernel.bytes_written for kernel in self.kernels)

    def __str__(self) -> str:
        if not self.kernels:
            return "nothing to compute"
        lines = [f"{_counted(len(self.kernels), 'kernel')}, {_counted(self.temporaries, 'temporary array')}"]
        for number, kernel in enumerate(self.kernels):
            lines.append(f"{number}: {kernel}")
        lines += [f"temporary array: {one}" for one in self.temporary_arrays]
        if self.partial_results:
            count = _counted(len(self.partial_results), "array")
            lines.append(f"partial results: {count}, {readable_bytes(self.partial_bytes)}")
        return "\n".join(lines)

    __repr__ = __str__


def explain_plan(plan: GraphPlan, recording: Recording) -> Explanation:
    """Explain a plan, large reductions cut already.

    Parameters
    ----------
    plan : GraphPlan
    recording : Recording
        What the plan was made for.
    """
    written: dict[int, str] = {}
    for step in plan.steps:
        for target in _targets(step):
            written.setdefault(target, step.reason)
    temporaries: list[Temporary] = []
    partial_results: list[Temporary] = []
    for number, value in enumerate(plan.values):
        if isinstance(value, Fresh) and value.result is None:
            reason = written.get(number, "")
            found = Temporary(value.dtype.name, value.elements, value.elements * value.dtype.itemsize, reason)
            (partial_results if value.partial else temporaries).append(found)
    kernels = tuple(_explained(step, plan, recording) for step in plan.steps)
    return Explanation(kernels, tuple(temporaries), tuple(partial_results))


def _explained(step: Step, plan: GraphPlan, recording: Recording) -> KernelExplanation:
    if isinstance(step, Product):
        return _explained_product(step, recording.roots[0].device.target)
    if isinstance(step, Scattering):
        return _explained_scatter(step)
    device = recording.roots[0].device
    extents = tuple(axis.extent for axis in step.axes)
    read = written = 0
    for source, accesses in _by_source(step).items():
        read += _distinct(plan, source, accesses, extents)
    for write in step.writes:
        written += prod(_written_extents(write, step)) * _itemsize(plan, step, write)
    return KernelExplanation(
        step.name,
        step.operations,
        read,
        written,
        step.reason,
        _domain(step),
        lambda: str(schedule_of(step, device.target)),
    )


def _explained_product(step: Product, target: Target) -> KernelExplanation:
    itemsize = step.dtype.itemsize
    read = sum(
        prod(extent for extent, stride in zip(shape, strides, strict=True) if stride) * itemsize
        for _, shape, strides in (step.a_view, step.b_view)
    )
    shape = ", ".join(map(str, step.shape))
    domain = f"[{shape}] x {step.a_view[1][-1]}"
    written = prod(step.shape) * itemsize
    return KernelExplanation(
        "matrix_product", step.operations, read, written, step.reason, domain, lambda: describe_schedule(step, target)
    )


def _explained_scatter(step: Scattering) -> KernelExplanation:
    touched = min(step.count, step.elements) * step.dtype.itemsize
    values = 0 if step.value is None else (1 if step.single else step.count) * step.value_dtype.itemsize
    read = step.count * 8 + values + (touched if step.function is not None else 0)
    name = "scatter" if step.function is None else f"scatter_{step.function}"
    domain = f"[{step.count}]"
    return KernelExplanation(name, step.operations, read, touched, step.reason, domain, lambda: "one after the other")


def _targets(step: Step) -> Iterable[int]:
    return (step.target,) if isinstance(step, Product | Scattering) else (write.target for write in step.writes)


Accesses = list[tuple[int, tuple[int, ...], int]]


def _by_source(step: KernelPlan) -> dict[int, Accesses]:
    """Offset, strides and item size of every access to a source."""
    found: dict[int, Accesses] = {}
    for statement in step.statements:
        match statement:
            case Read(source=source, dtype=dtype, offset=offset, strides=strides):
                found.setdefault(source, []).append((offset, strides, dtype.itemsize))
            case Take(source=source, dtype=dtype):
                # Which elements are taken is known when it runs: at most one for each point.
                found.setdefault(source, []).append((0, (1,) * len(step.axes), dtype.itemsize))
    return found


def _distinct(plan: GraphPlan, source: int, accesses: Accesses, extents: tuple[int, ...]) -> int:
    """Bytes that accesses to one source read, what several of them read counted once as far as it can be told."""
    total = 0
    lowest, highest = None, None
    itemsize = accesses[0][2]
    for offset, strides, _ in accesses:
        total += prod(extent for extent, stride in zip(extents, strides, strict=True) if stride)
        ends = [stride * (extent - 1) for extent, stride in zip(extents, strides, strict=True) if extent]
        low, high = offset + sum(end for end in ends if end < 0), offset + sum(end for end in ends if end > 0)
        lowest = low if lowest is None else min(lowest, low)
        highest = high if highest is None else max(highest, high)
    assert lowest is not None and highest is not None
    total = min(total, highest - lowest + 1)
    value = plan.values[source]
    if isinstance(value, Fresh):
        total = min(total, value.elements)
    return total * itemsize


def _written_extents(write: Write, step: KernelPlan) -> list[int]:
    return [
        axis.pieces if axis.piece else axis.extent
        for axis, stride in zip(step.axes, write.strides, strict=True)
        if stride
    ]


def _itemsize(plan: GraphPlan, step: KernelPlan, write: Write) -> int:
    value = plan.values[write.target]
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        raise TypeError(f"kernel {step.name} writes to value {write.target}, which is a leaf; leaves are only read")
    return dtype.itemsize


def _domain(step: KernelPlan) -> str:
    words = [f"fold {axis.extent}" if axis.reduced else str(axis.extent) for axis in step.axes]
    return f"[{', '.join(words)}]"


def readable_bytes(count: int) -> str:
    """A number of bytes in the unit that suits it."""
    size = float(count)
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} {_UNITS[-1]}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
