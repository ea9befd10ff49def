"""Python's expressions: what is static is computed, what touches a block becomes operations."""

import ast
import difflib
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from codegen.errors import KernelError
from codegen.frontend.blocks import Blocks, NeedsRank
from codegen.frontend.diagnostics import Call, Fault, kernel_error
from codegen.frontend.language import WORDS
from codegen.frontend.memory_words import MemoryWords
from codegen.frontend.source import Captured, FunctionSource, Outside
from codegen.frontend.values import ArrayReference, Block, Closure, Method, describe, has_truth, is_static

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any], np.ufunc]] = {
    ast.Add: ("+", operator.add, np.add),
    ast.Sub: ("-", operator.sub, np.subtract),
    ast.Mult: ("*", operator.mul, np.multiply),
    ast.Div: ("/", operator.truediv, np.divide),
    ast.FloorDiv: ("//", operator.floordiv, np.floor_divide),
    ast.Mod: ("%", operator.mod, np.remainder),
    ast.Pow: ("**", operator.pow, np.power),
    ast.BitAnd: ("&", operator.and_, np.bitwise_and),
    ast.BitOr: ("|", operator.or_, np.bitwise_or),
    ast.BitXor: ("^", operator.xor, np.bitwise_xor),
    ast.LShift: ("<<", operator.lshift, np.left_shift),
    ast.RShift: (">>", operator.rshift, np.right_shift),
}
_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any], np.ufunc]] = {
    ast.USub: ("-", operator.neg, np.negative),
    ast.UAdd: ("+", operator.pos, np.positive),
    ast.Invert: ("~", operator.invert, np.invert),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[Callable[[Any, Any], Any], np.ufunc]] = {
    ast.Lt: (operator.lt, np.less),
    ast.LtE: (operator.le, np.less_equal),
    ast.Gt: (operator.gt, np.greater),
    ast.GtE: (operator.ge, np.greater_equal),
    ast.Eq: (operator.eq, np.equal),
    ast.NotEq: (operator.ne, np.not_equal),
}
_STATIC_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_AXIS_KINDS = {"None": "new", "Ellipsis": "rest", "slice(None, None, None)": "axis"}
_BLOCK_METHODS = ("astype", "sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "transpose")


class Frame:
    """A function while it is translated: its names, and where names come from that it does not have."""

    def __init__(self, source: FunctionSource, local: dict[str, Any], around: dict[str, Any], depth: int) -> None:
        self.source = source
        self.local = local
        self.around = around
        self.depth = depth
        # Names that are gone, and why.
        self.gone: dict[str, str] = {}


class Given(ast.expr):
    """An expression whose value is known already."""

    _fields = ()

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Expressions:
    """Evaluates expressions; `statements.Statements` adds statements and calls of functions."""

    def __init__(self, blocks: Blocks, memory: MemoryWords, captured: Captured) -> None:
        self.blocks = blocks
        self.builder = blocks.builder
        self.memory = memory
        self.captured = captured
        self.calls: list[Call] = []
        self.frames: list[Frame] = []
        # How many loops and branches of the run time are open.
        self.depth = 0

    @property
    def frame(self) -> Frame:
        """The innermost function."""
        return self.frames[-1]

    def error(self, message: str, node: ast.AST) -> KernelError:
        """An error at a node of the innermost function."""
        return kernel_error(message, node, self.calls)

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression: a block, an array, or a static value."""
        method = EXPRESSIONS.get(type(node))
        if method is None:
            raise self.error(f"{_spelled(node)} cannot be used in a kernel{_advice(node)}", node)
        try:
            return method(self, node)
        except (KernelError, NeedsRank):
            raise
        except Fault as fault:
            raise self.error(str(fault), _blamed(node, fault)) from None
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as problem:
            raise self.error(f"{type(problem).__name__}: {problem}", node) from problem

    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (complex, bytes)):
            raise Fault(
                f"kernels have no elements of type {type(node.value).__name__}; they have booleans, integers and floats"
            )
        return node.value

    def _name(self, node: ast.Name) -> Any:
        return self.look_up(node.id)

    def look_up(self, name: str) -> Any:
        """The value of a name; Fault if there is none."""
        frame = self.frame
        if name in frame.local:
            return frame.local[name]
        if name in frame.gone:
            raise Fault(f"`{name}` {frame.gone[name]}")
        if name in frame.around:
            return frame.around[name]
        try:
            return self.captured.find(frame.source.outside, name)
        except KeyError:
            raise Fault(f"unknown name `{name}`{self._similar(name, frame.source.outside)}") from None

    def _similar(self, name: str, outside: Outside) -> str:
        known = [*self.frame.local, *self.frame.around, *outside.cells, *outside.namespace, *WORDS]
        if isinstance(getattr(np, name, None), np.ufunc):
            return f"; universal functions go by NumPy's names: `import blockarray as np` and np.{name}"
        near = similar_names(name, known)
        if near == name:
            return f"; add `from blockarray.language import {name}`"
        return f"; did you mean `{near}`?" if near else ""

    def _tuple(self, node: ast.Tuple | ast.List) -> Any:
        values: list[Any] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                values += self.unpacked(element.value)
            else:
                values.append(self.evaluate(element))
        return tuple(values) if isinstance(node, ast.Tuple) else values

    def unpacked(self, node: ast.expr) -> list[Any]:
        """The elements of a static sequence."""
        value = self.evaluate(node)
        if isinstance(value, (Block, ArrayReference)):
            raise self.error(f"{describe(value)} cannot be unpacked; it is worked on as a whole", node)
        return list(value)

    def _dictionary(self, node: ast.Dict) -> Any:
        if None in node.keys:
            raise Fault("** in a dictionary cannot be used in a kernel; expected a key for each value")
        return {
            self.evaluate(key): self.evaluate(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }

    def _binary(self, node: ast.BinOp) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        if isinstance(node.op, ast.MatMult):
            return self.call_word("dot", {"a": left, "b": right})
        return self.operate(node.op, left, right)

    def operate(self, kind: ast.operator, left: Any, right: Any) -> Any:
        """An arithmetic operator."""
        symbol, static, ufunc = _BINARY[type(kind)]
        if is_static(left) and is_static(right):
            return static(left, right)
        if isinstance(left, (tuple, list)) and isinstance(right, (tuple, list)) and symbol == "+":
            return left + right  # type: ignore[operator]
        self._refuse_arrays(symbol, left, right)
        return self.blocks.elementwise(ufunc, (left, right))

    def _refuse_arrays(self, symbol: str, *operands: Any) -> None:
        for operand in operands:
            if isinstance(operand, ArrayReference):
                raise Fault(
                    f"`{symbol}` works on blocks, found {operand}; load a block of it: load({operand.name}, offsets, shape)"
                )

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            if has_truth(value):
                return not value
            if isinstance(value, Block) and not value.shape:
                return self.blocks.elementwise(np.logical_not, (value,))
            raise Fault(f"`not` of {describe(value)}; expected a scalar, use ~ or logical_not for blocks")
        symbol, static, ufunc = _UNARY[type(node.op)]
        if is_static(value):
            return static(value)
        self._refuse_arrays(symbol, value)
        result = self.blocks.elementwise(ufunc, (value,))
        return result

    def _boolean(self, node: ast.BoolOp) -> Any:
        is_and = isinstance(node.op, ast.And)
        result: Any = is_and
        for operand in node.values:
            value = self.evaluate(operand)
            if has_truth(value) and has_truth(result):
                result = value
                if bool(value) is not is_and:
                    return value
                continue
            if has_truth(value) and bool(value) is not is_and:
                return value
            self._require_scalar(value, "and" if is_and else "or", operand)
            if has_truth(result):
                result = value
            elif not has_truth(value):
                result = self.blocks.elementwise(np.logical_and if is_and else np.logical_or, (result, value))
        return result

    def _require_scalar(self, value: Any, word: str, node: ast.AST) -> None:
        if not has_truth(value) and not (isinstance(value, Block) and not value.shape):
            advice = {"and": "use & for blocks", "or": "use | for blocks"}.get(
                word, "use where(condition, a, b) for blocks"
            )
            raise self.error(f"`{word}` of {describe(value)}, which has no single truth value; {advice}", node)

    def _compare(self, node: ast.Compare) -> Any:
        left = self.evaluate(node.left)
        result: Any = True
        for kind, operand in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(operand)
            found = self._comparison(kind, left, right)
            if is_static(result):
                result = found if result else result
            elif len(node.ops) > 1:
                self._require_scalar(found, "and", node)
                result = self.blocks.elementwise(np.logical_and, (result, found))
            if len(node.ops) > 1:
                self._require_scalar(result, "and", node)
            left = right
        return result

    def _comparison(self, kind: ast.cmpop, left: Any, right: Any) -> Any:
        special = _STATIC_COMPARISONS.get(type(kind))
        if special is not None:
            if isinstance(kind, (ast.Is, ast.IsNot)) or (is_static(left) and is_static(right)):
                return special(left, right)
            raise Fault(
                f"`in` needs values that are known when the kernel is compiled, found {describe(left)} and {describe(right)}"
            )
        static, ufunc = _COMPARISONS[type(kind)]
        if is_static(left) and is_static(right):
            return static(left, right)
        self._refuse_arrays("a comparison", left, right)
        return self.blocks.elementwise(ufunc, (left, right))

    def _conditional(self, node: ast.IfExp) -> Any:
        condition = self.evaluate(node.test)
        if not has_truth(condition):
            raise self.error(
                f"a condition of {describe(condition)} is known when the kernel runs only; use where(condition, a, b)",
                node.test,
            )
        return self.evaluate(node.body if condition else node.orelse)

    def _attribute(self, node: ast.Attribute) -> Any:
        value = self.evaluate(node.value)
        if isinstance(value, Block):
            return self._attribute_of_block(value, node.attr)
        if isinstance(value, ArrayReference):
            return self._attribute_of_array(value, node.attr)
        if not is_static(value) and not isinstance(value, (tuple, list, dict)):
            raise Fault(f"{describe(value)} has no attribute {node.attr!r}")
        return getattr(value, node.attr)

    def _attribute_of_block(self, block: Block, name: str) -> Any:
        known = {"shape": block.shape, "ndim": len(block.shape), "dtype": block.dtype.numpy}
        if name in known:
            return known[name]
        if name == "T":
            return self.call_word("transpose", {"value": block})
        if name in _BLOCK_METHODS:
            return Method(block, name)
        raise Fault(f"a block has no attribute {name!r}; it has {', '.join([*known, 'T', *_BLOCK_METHODS])}")

    def _attribute_of_array(self, array: ArrayReference, name: str) -> Any:
        if name == "shape":
            return tuple(self.memory.extent(array, axis) for axis in range(len(array.extents)))
        known = {"ndim": len(array.extents), "dtype": array.dtype.numpy}
        if name in known:
            return known[name]
        if name == "size":
            return self._product(self._attribute_of_array(array, "shape"))
        raise Fault(
            f"an array in memory has no attribute {name!r}; it has shape, ndim, dtype, size, and load({array.name}, offsets, shape) "
            "gives a block of it"
        )

    def _product(self, factors: tuple[Any, ...]) -> Any:
        result: Any = 1
        for factor in factors:
            result = self.operate(ast.Mult(), result, factor)
        return result

    def _subscript(self, node: ast.Subscript) -> Any:
        value = self.evaluate(node.value)
        index = self.evaluate(node.slice)
        if isinstance(value, Block):
            return self._with_axes(value, index)
        if isinstance(value, ArrayReference):
            return self.memory.part(value, index if isinstance(index, tuple) else (index,))
        if not is_static(index):
            raise self.error(
                f"an index into {describe(value)} must be known when the kernel is compiled, found {describe(index)}",
                node.slice,
            )
        return value[index]

    def _with_axes(self, block: Block, index: Any) -> Block:
        """``block[:, None]`` and the like: axes of extent 1 are added, nothing is taken out."""
        parts = index if isinstance(index, tuple) else (index,)
        kinds = [_AXIS_KINDS.get(repr(part)) if is_static(part) else None for part in parts]
        if None in kinds or kinds.count("rest") > 1:
            raise Fault(
                "blocks are not indexed: expected `:`, `...` and None, which add axes of extent 1; load the part that is needed, or "
                "choose with where"
            )
        rank, whole = len(block.shape), kinds.count("axis")
        if whole > rank:
            raise Fault(
                f"too many indices: {describe(block)} has {rank} {'axis' if rank == 1 else 'axes'}, found {whole}"
            )
        position = 0
        for kind in kinds:
            if kind == "new":
                block = self.blocks.with_new_axis(block, position)
            position += rank - whole if kind == "rest" else 1
        return block

    def _slice(self, node: ast.Slice) -> slice:
        bounds = [None if part is None else self.evaluate(part) for part in (node.lower, node.upper, node.step)]
        return slice(*bounds)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        (generator,) = node.generators if len(node.generators) == 1 else (None,)
        if generator is None or generator.is_async:
            raise Fault("a comprehension in a kernel has one `for`; nest two comprehensions instead")
        before = dict(self.frame.local)
        values = []
        for item in self.turns(generator.iter):
            self.assign(generator.target, item)
            conditions = [self.evaluate(test) for test in generator.ifs]
            if not is_static(conditions):
                raise Fault(
                    "the condition of a comprehension must be known when the kernel is compiled; use where for blocks"
                )
            if all(conditions):
                values.append(self.evaluate(node.elt))
        self.frame.local.clear()
        self.frame.local.update(before)
        return values if isinstance(node, ast.ListComp) else tuple(values)

    def turns(self, node: ast.expr) -> list[Any]:
        """What a static iterable gives."""
        value = self.evaluate(node)
        if isinstance(value, Block):
            raise self.error(f"{describe(value)} cannot be iterated over; it is worked on as a whole", node)
        if not isinstance(value, (tuple, list)) and not is_static(value):
            raise self.error(
                f"expected something to iterate over that is known when the kernel is compiled, found {describe(value)}",
                node,
            )
        return list(value)

    def _lambda(self, node: ast.Lambda) -> Closure:
        return self.closure(node, "<lambda>")

    def closure(self, node: ast.Lambda | ast.FunctionDef, name: str) -> Closure:
        """A function defined here."""
        frame = self.frame
        source = FunctionSource(name, node, frame.source.text, frame.source.outside)
        return Closure(source, {**frame.around, **frame.local}, self._defaults(node.args), node)

    def _defaults(self, arguments: ast.arguments) -> dict[str, Any]:
        positional = [*arguments.posonlyargs, *arguments.args]
        last = positional[len(positional) - len(arguments.defaults) :]
        found = {one.arg: self.evaluate(value) for one, value in zip(last, arguments.defaults, strict=True)}
        for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if value is not None:
                found[one.arg] = self.evaluate(value)
        return found

    def _formatted(self, node: ast.JoinedStr) -> str:
        parts = []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                found = self.evaluate(value.value)
                parts.append(describe(found) if not is_static(found) else str(found))
            elif isinstance(value, ast.Constant):
                parts.append(str(value.value))
        return "".join(parts)

    # --- by Statements

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind a target."""
        raise NotImplementedError

    def call(self, node: ast.Call) -> Any:
        """A call of a word, a function or a static callable."""
        raise NotImplementedError

    def call_word(self, name: str, arguments: dict[str, Any]) -> Any:
        """A word of the language."""
        raise NotImplementedError


EXPRESSIONS: dict[type[ast.expr], Callable[[Any, Any], Any]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.Tuple: Expressions._tuple,
    ast.List: Expressions._tuple,
    ast.Dict: Expressions._dictionary,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.BoolOp: Expressions._boolean,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._conditional,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.Slice: Expressions._slice,
    ast.ListComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.Lambda: Expressions._lambda,
    ast.JoinedStr: Expressions._formatted,
    ast.Call: lambda self, node: self.call(node),
    Given: lambda self, node: node.value,
}

_ADVICE: dict[type[ast.expr], str] = {
    ast.NamedExpr: "; assign on a line of its own",
    ast.Set: "; use a tuple",
    ast.SetComp: "; use a list comprehension",
    ast.DictComp: "; use a list comprehension",
}
_SPELLED: dict[type[ast.expr], str] = {
    ast.NamedExpr: "`:=`",
    ast.Set: "a set",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dict comprehension",
    ast.Await: "`await`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield from`",
    ast.Starred: "`*` here",
}


def _spelled(node: ast.expr) -> str:
    return _SPELLED.get(type(node), type(node).__name__)


def _advice(node: ast.expr) -> str:
    return _ADVICE.get(type(node), "")


def similar_names(name: str, known: Iterable[str]) -> str:
    """The known name most like `name`, or an empty text."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return near[0] if near else ""


def _blamed(node: ast.expr, fault: Fault) -> ast.AST:
    """The argument that a fault names, or the whole expression."""
    if not isinstance(node, ast.Call) or fault.argument is None:
        return node
    if isinstance(fault.argument, int):
        return node.args[fault.argument] if fault.argument < len(node.args) else node
    return next((keyword.value for keyword in node.keywords if keyword.arg == fault.argument), node)
