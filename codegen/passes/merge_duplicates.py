"""Compute equal things once: an operation with the operands and attributes of an earlier one gives way to it."""

from collections.abc import Hashable, Sequence

from codegen.analysis.effects import aliased_buffers, written_buffers
from codegen.ir.kernel import Body, Kernel, Value
from codegen.ir.operations import Operation, attribute_names
from codegen.ir.printer import number_text
from codegen.ir.rewriter import Rewriter


def merge_duplicates(kernel: Kernel) -> Kernel:
    """The kernel with each pure operation once, and each load once between two writes that it could see."""
    return _Merger(kernel).rewrite(kernel)


class _Merger(Rewriter):
    """Knows the operations that stand before the one it looks at, in the same body or one around it."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(_Merger._merge)
        self._known: dict[Hashable, tuple[Value, ...]] = {}
        self._writes: dict[Value, int] = {}
        self._aliased = aliased_buffers(kernel)

    def body(self, body: Body) -> Body:
        """An old body rewritten; what it computes is not known behind it."""
        before = dict(self._known)
        try:
            return super().body(body)
        finally:
            self._known = before

    def _merge(self, operation: Operation) -> Sequence[Value] | None:
        """``a = f(x); b = f(x) -> a = f(x); b = a``."""
        if operation.effect == "write" or operation.bodies:
            # A loop's later turns see what its earlier ones wrote, so its writes count from its beginning on.
            self._count_writes(operation)
            return None
        key = self._key(operation)
        found = self._known.get(key)
        if found is None:
            self._known[key] = operation.results
        return found

    def _key(self, operation: Operation) -> Hashable:
        attributes = tuple([_exact(getattr(operation, name)) for name in attribute_names(type(operation))])
        state = self._writes.get(operation.operands[0], 0) if operation.effect == "read" else 0
        return type(operation), operation.operands, attributes, state

    def _count_writes(self, operation: Operation) -> None:
        written = written_buffers(operation)
        if not written.isdisjoint(self._aliased):
            written |= self._aliased
        for buffer in written:
            self._writes[buffer] = self._writes.get(buffer, 0) + 1


def _exact(attribute: object) -> Hashable:
    """An attribute such that equal ones are the same: 0.0 is not -0.0, 1 is neither True nor 1.0, NaN is NaN."""
    if isinstance(attribute, (bool, int, float)):
        return type(attribute), number_text(attribute)
    return attribute
