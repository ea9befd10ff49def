"""Calls: words of the language, universal functions, static callables, and functions that are inlined."""

import ast
import inspect
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from codegen.frontend.blocks import Blocks
from codegen.frontend.diagnostics import Call, Fault
from codegen.frontend.expressions import Expressions, Frame
from codegen.frontend.folding_words import FoldingWords
from codegen.frontend.language import NUMPY_WORDS, WORDS, OutsideKernelError, Word, as_row
from codegen.frontend.memory_words import MemoryWords, block_shape
from codegen.frontend.source import Captured, source_of
from codegen.frontend.values import (
    ArrayReference,
    Block,
    Closure,
    Method,
    RunTimeRange,
    describe,
    is_number,
    is_static,
)

_REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")
_DEEPEST = 64
# Python's functions that only put values together, whatever those are.
_STRUCTURAL = (tuple, list, zip, enumerate, reversed)
_ADVICE: dict[Any, str] = {
    int: "use cast(x, int64)",
    float: "use cast(x, float64)",
    bool: "use x != 0",
    min: "use minimum(a, b) element by element, or x.min() over a block",
    max: "use maximum(a, b) element by element, or x.max() over a block",
    sum: "use x.sum()",
    any: "use x.any()",
    all: "use x.all()",
    round: "use rint(x)",
    pow: "use power(a, b)",
    print: "run the kernel by interpret and look at what it stores",
}


Aliases = Callable[[Any], Word | None]


def no_aliases(_function: Any) -> Word | None:
    """Nothing from elsewhere is a word."""
    return None


class ReturnSignal(Exception):
    """A function returned."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Calls(Expressions):
    """Expressions with calls.

    Parameters
    ----------
    blocks : Blocks
    memory : MemoryWords
    captured : Captured
    aliases : callable
        The word that a function from elsewhere is inside of kernels, or None.
    """

    def __init__(self, blocks: Blocks, memory: MemoryWords, captured: Captured, aliases: Aliases) -> None:
        super().__init__(blocks, memory, captured)
        self.folding = FoldingWords(blocks)
        self._aliases = aliases
        self._active: list[object] = []

    def call(self, node: ast.Call) -> Any:
        """A call of a word, a function or a static callable."""
        callee = self.evaluate(node.func)
        positional: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                positional += self.unpacked(argument.value)
            else:
                positional.append(self.evaluate(argument))
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            named.update(value if keyword.arg is None else {keyword.arg: value})
        word = callee if isinstance(callee, Word) else self._alias(callee)
        if word is not None:
            return self._word_call(word, node, positional, named)
        return self._plain_call(callee, node, positional, named)

    def _alias(self, callee: Any) -> Word | None:
        try:
            found = NUMPY_WORDS.get(callee)
        except TypeError:  # not hashable
            return None
        return self._aliases(callee) if found is None else found

    def _word_call(self, word: Word, node: ast.Call, positional: list[Any], named: dict[str, Any]) -> Any:
        try:
            bound = word.signature.bind(*positional, **named)
        except TypeError as error:
            raise Fault(f"{word.name}{word.signature}: {error}") from None
        bound.apply_defaults()
        try:
            return self.call_word(word.name, bound.arguments)
        except Fault as fault:
            place = list(word.signature.parameters).index(fault.argument) if isinstance(fault.argument, str) else -1
            has_stars = any(isinstance(argument, ast.Starred) for argument in node.args[: place + 1])
            if 0 <= place < len(node.args) and not has_stars:
                raise Fault(str(fault), place) from None
            raise

    def _plain_call(self, callee: Any, node: ast.Call, positional: list[Any], named: dict[str, Any]) -> Any:
        ufunc = callee if isinstance(callee, np.ufunc) else getattr(callee, "numpy", None)
        if isinstance(ufunc, np.ufunc):
            return self._ufunc_call(ufunc, positional, named)
        if isinstance(callee, Closure):
            return self.inline(callee, node, positional, named)
        if isinstance(callee, Method):
            return self._method_call(callee, positional, named)
        if isinstance(callee, (Block, ArrayReference)) or not callable(callee):
            raise Fault(f"{describe(callee)} is no function")
        if callee is range and not is_static(positional):
            return _run_time_range(self.blocks, positional)
        values = [*positional, *named.values()]
        if getattr(callee, "is_kernel", False):
            raise Fault(
                f"{callee.__name__} is a kernel of its own; put what both need into an undecorated function and call that"
            )
        if is_static(values) and not any(isinstance(value, Closure) for value in values):
            try:
                return callee(*positional, **named)
            except OutsideKernelError:
                pass  # it works on blocks after all
        if isinstance(callee, FunctionType):
            source = source_of(callee)
            defaults = {
                name: parameter.default
                for name, parameter in inspect.signature(callee).parameters.items()
                if parameter.default is not inspect.Parameter.empty
            }
            return self.inline(Closure(source, {}, defaults, callee.__code__), node, positional, named)
        if callee in _STRUCTURAL and not any(isinstance(value, (Block, ArrayReference)) for value in values):
            found = callee(*positional, **named)
            return found if isinstance(found, (tuple, list)) else list(found)
        if callee is len and len(positional) == 1:
            return self._length(positional[0])
        if callee is abs and len(positional) == 1:
            return self.blocks.elementwise(np.absolute, positional)
        if isinstance(callee, type) and issubclass(callee, np.generic) and len(positional) == 1:
            return self.call_word("cast", {"value": positional[0], "dtype": callee})
        name = getattr(callee, "__name__", repr(callee))
        found = next((value for value in values if not is_static(value)), None)
        advice = "expected a word of the kernel language, a universal function, or a Python function"
        if isinstance(getattr(np, name, None), np.ufunc):
            advice = f"use np.{name}"
        if isinstance(callee, (type, BuiltinFunctionType)):
            advice = _ADVICE.get(callee, advice)
        raise Fault(f"{name} cannot take {describe(found)}; {advice}")

    def _length(self, value: Any) -> Any:
        if isinstance(value, ArrayReference):
            return self.memory.extent(value, 0)
        if isinstance(value, Block) and value.shape:
            return value.shape[0]
        if isinstance(value, (tuple, list)):
            return len(value)
        raise Fault(f"{describe(value)} has no length")

    def _ufunc_call(self, ufunc: np.ufunc, positional: list[Any], named: dict[str, Any]) -> Any:
        if named:
            raise Fault(
                f"{ufunc.__name__}: keyword arguments are not taken in kernels, found {', '.join(named)}",
                next(iter(named)),
            )
        if is_static(positional):
            return ufunc(*positional)
        for position, value in enumerate(positional):
            if isinstance(value, ArrayReference):
                raise Fault(
                    f"{ufunc.__name__} works on blocks, found {value}; load a block of it: load({value.name}, offsets, shape)",
                    position,
                )
        return self.blocks.elementwise(ufunc, positional)

    def _method_call(self, method: Method, positional: list[Any], named: dict[str, Any]) -> Any:
        word = WORDS["cast" if method.name == "astype" else method.name]
        try:
            bound = word.signature.bind(method.owner, *positional, **named)
        except TypeError as error:
            raise Fault(f"{method.name}: {error}") from None
        bound.apply_defaults()
        return self.call_word(word.name, bound.arguments)

    def call_word(self, name: str, arguments: dict[str, Any]) -> Any:
        """A word of the language on bound arguments."""
        given = dict(arguments)
        if name in _REDUCTIONS:
            return self.folding.reduce(name, given["value"], given.get("axis"), given.get("keepdims", False))
        if name in ("argmax", "argmin"):
            return self.folding.extreme(name, given["value"], given.get("axis"))
        return _WORD_MEANINGS[name](self, **given)

    # --- words that make blocks

    def _zeros(self, shape: Any, dtype: Any) -> Block:
        return self._filled(block_shape(shape, "zeros"), 0, dtype)

    def _ones(self, shape: Any, dtype: Any) -> Block:
        return self._filled(block_shape(shape, "ones"), 1, dtype)

    def _full(self, shape: Any, value: Any, dtype: Any = None) -> Block:
        return self._filled(block_shape(shape, "full"), value, dtype)

    def _filled(self, extents: tuple[int, ...], value: Any, dtype: Any) -> Block:
        if not is_number(value) and not (isinstance(value, Block) and not value.shape):
            raise Fault(f"full: expected a number, found {describe(value)}", "value")
        row = self.blocks.common_dtype((value,)) if dtype is None else self._row(dtype)
        axes = self.blocks.last_axes(len(extents))
        return Block(self.blocks.spread(value, row, extents, axes), extents, axes)

    def _row(self, dtype: Any) -> Any:
        try:
            return as_row(dtype)
        except TypeError as error:
            raise Fault(str(error), "dtype") from None

    def _arange(self, count: Any) -> Block:
        extents = block_shape(count, "arange")
        if len(extents) != 1:
            raise Fault(f"arange: expected one number, found {describe(count)}", "count")
        axes = self.blocks.last_axes(1)
        return Block(self.builder.iota(self.blocks.tile_shape(extents, axes), axes[0]), extents, axes)

    def _cast(self, value: Any, dtype: Any) -> Block:
        if not isinstance(value, Block) and not is_number(value):
            raise Fault(f"cast: expected a block or a number, found {describe(value)}", "value")
        return self.blocks.cast(value, self._row(dtype))

    def _dot(self, a: Any, b: Any, accumulator: Any = None) -> Block:
        return self.folding.dot(a, b, accumulator)

    def _where(self, condition: Any, a: Any, b: Any) -> Any:
        for name, value in (("condition", condition), ("a", a), ("b", b)):
            if isinstance(value, ArrayReference):
                raise Fault(f"where works on blocks, found {value}; load a block of it", name)
        return self.blocks.where(condition, a, b)

    def _clip(self, value: Any, low: Any, high: Any) -> Any:
        return self.blocks.elementwise(np.minimum, (self.blocks.elementwise(np.maximum, (value, low)), high))

    def transpose(self, value: Any, axes: Any = None) -> Block:
        """Axes in another order, reversed if none is given."""
        if not isinstance(value, Block):
            raise Fault(f"transpose: expected a block, found {describe(value)}", "value")
        rank = len(value.shape)
        order = tuple(reversed(range(rank))) if axes is None else tuple(axes)
        if not is_static(order) or sorted(axis % rank if rank else axis for axis in order) != list(range(rank)):
            raise Fault(f"transpose: expected the {rank} axes of {describe(value)} in some order, found {axes}", "axes")
        return self.blocks.transposed(value, tuple(axis % rank for axis in order))

    def _broadcast_to(self, value: Any, shape: Any) -> Block:
        return self.blocks.repeated(value, block_shape(shape, "broadcast_to"))

    # --- inlining

    def inline(self, closure: Closure, node: ast.AST, positional: list[Any], named: dict[str, Any]) -> Any:
        """The value of a function's body on these arguments."""
        name = closure.source.name
        if closure.identity in self._active:
            raise Fault(
                f"{name} calls itself; a kernel's functions are inlined, so recursion would never end: use a loop"
            )
        if len(self._active) >= _DEEPEST:
            raise Fault(f"{name}: functions are nested more than {_DEEPEST} deep")
        try:
            bound = _signature(closure).bind(*positional, **named)
        except TypeError as error:
            raise Fault(f"{name}() {error}") from None
        bound.apply_defaults()
        self._active.append(closure.identity)
        self.calls.append(Call(closure.source.text, name, node))
        self.frames.append(Frame(closure.source, dict(bound.arguments), closure.local, self.depth))
        # On an error the stacks stay as they are: the message has been made, and the translation is over.
        value = self._body_value(closure.source.node)
        self.frames.pop()
        self.calls.pop()
        self._active.pop()
        return value

    def _body_value(self, node: ast.FunctionDef | ast.Lambda) -> Any:
        if isinstance(node, ast.Lambda):
            return self.evaluate(node.body)
        try:
            self.run(node.body)
        except ReturnSignal as signal:
            return signal.value
        return None

    def run(self, statements: list[ast.stmt]) -> None:
        """Run statements; by `Statements`."""
        raise NotImplementedError


_WORD_MEANINGS: dict[str, Callable[..., Any]] = {
    "program_index": lambda self, axis: self.memory.program_index(axis),
    "extent": lambda self, array, axis: self.memory.extent(array, axis),
    "load": lambda self, array, offsets, shape, fill: self.memory.load(array, offsets, shape, fill),
    "store": lambda self, array, offsets, value: self.memory.store(array, offsets, value),
    "zeros": Calls._zeros,
    "ones": Calls._ones,
    "full": Calls._full,
    "arange": Calls._arange,
    "cast": Calls._cast,
    "dot": Calls._dot,
    "where": Calls._where,
    "clip": Calls._clip,
    "transpose": Calls.transpose,
    "broadcast_to": Calls._broadcast_to,
}


def _run_time_range(blocks: Blocks, bounds: list[Any]) -> RunTimeRange:
    if not 1 <= len(bounds) <= 3:
        raise Fault(f"range: expected one to three bounds, found {len(bounds)}")
    begin, end = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) == 3 else 1
    if not isinstance(step, (int, np.integer)) or isinstance(step, bool) or step < 1:
        raise Fault(
            f"range: expected a positive step that is known when the kernel is compiled, found {describe(step)}", 2
        )
    for position, bound in enumerate(bounds[:2]):
        try:
            blocks.index(bound)
        except Fault as fault:
            raise Fault(f"range: {fault}", position) from None
    return RunTimeRange(begin, end, int(step))


def _signature(closure: Closure) -> inspect.Signature:
    """The parameters of a function, from its syntax tree."""
    arguments = closure.source.node.args
    kinds = inspect.Parameter
    rows: list[tuple[ast.arg, Any]] = [(one, kinds.POSITIONAL_ONLY) for one in arguments.posonlyargs]
    rows += [(one, kinds.POSITIONAL_OR_KEYWORD) for one in arguments.args]
    rows += [(arguments.vararg, kinds.VAR_POSITIONAL)] if arguments.vararg else []
    rows += [(one, kinds.KEYWORD_ONLY) for one in arguments.kwonlyargs]
    rows += [(arguments.kwarg, kinds.VAR_KEYWORD)] if arguments.kwarg else []
    return inspect.Signature(
        [kinds(one.arg, kind, default=closure.defaults.get(one.arg, kinds.empty)) for one, kind in rows]
    )
