"""Python's statements: assignments, branches, loops."""

import ast
from collections.abc import Callable
from typing import Any

from codegen.frontend.calls import Calls, ReturnSignal
from codegen.frontend.carried import (
    Carried,
    assigned_names,
    joined_state,
    last_assignments,
    unchanged,
    without_inner_edges,
)
from codegen.frontend.diagnostics import Fault
from codegen.frontend.expressions import Given
from codegen.frontend.values import ArrayReference, Block, RunTimeRange, describe, has_truth, is_static
from codegen.ir.kernel import Value
from codegen.ir.location import Location
from codegen.ir.operations import Operation
from codegen.ir.types import INDEX

# A range of the compile time with more turns becomes a loop of the run time.
MOST_UNROLLED = 32
# Rounds in which the kinds of carried values must have settled.
_MOST_ROUNDS = 6

_UNSUPPORTED: dict[type[ast.stmt], str] = {
    ast.While: "`while` cannot be used in a kernel; expected `for … in range(…)`",
    ast.With: "`with` cannot be used in a kernel",
    ast.Try: "`try` cannot be used in a kernel, where nothing is raised",
    ast.Raise: "`raise` was reached while the kernel was compiled",
    ast.Import: "`import` cannot stand in a kernel; import at the top of the file",
    ast.ImportFrom: "`import` cannot stand in a kernel; import at the top of the file",
    ast.Global: "`global` cannot be used in a kernel; pass the value as a parameter",
    ast.Nonlocal: "`nonlocal` cannot be used in a kernel; return the value instead",
    ast.Delete: "`del` cannot be used in a kernel, and need not be",
    ast.ClassDef: "`class` cannot stand in a kernel",
    ast.Match: "`match` cannot be used in a kernel; expected `if` on static values",
    ast.Break: "`break` cannot be used in a kernel; let the bounds of the range say where the loop ends",
    ast.Continue: "`continue` cannot be used in a kernel; choose with where(condition, a, b)",
    ast.AsyncFunctionDef: "`async` cannot be used in a kernel",
    ast.AsyncFor: "`async` cannot be used in a kernel",
    ast.AsyncWith: "`async` cannot be used in a kernel",
}


class Statements(Calls):
    """Runs statements."""

    def run(self, statements: list[ast.stmt]) -> None:
        """Run statements, one after the other."""
        for statement in statements:
            self.builder.location = Location(self.frame.source.text.file, statement.lineno)
            handler = _STATEMENTS.get(type(statement))
            if handler is None:
                text = _UNSUPPORTED.get(type(statement), f"{type(statement).__name__} cannot be used in a kernel")
                raise self.error(text, _keyword_of(statement))
            handler(self, statement)

    def _expression(self, node: ast.Expr) -> None:
        self.evaluate(node.value)

    def _pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def _assignment(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))

    def _augmented(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.error(_target_advice(node.target), node.target)
        try:
            before = self.look_up(node.target.id)
        except Fault as fault:
            raise self.error(str(fault), node.target) from None
        right = self.evaluate(node.value)
        operands = [
            ast.copy_location(Given(value), part) for value, part in ((before, node.target), (right, node.value))
        ]
        operation = ast.copy_location(ast.BinOp(operands[0], node.op, operands[1]), node)  # type: ignore[arg-type]
        self.assign(node.target, self.evaluate(operation))

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind a name, or the names of a tuple."""
        if isinstance(target, ast.Name):
            self.frame.local[target.id] = value
            self.frame.gone.pop(target.id, None)
            return
        if isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (Block, ArrayReference)):
                raise self.error(f"{describe(value)} cannot be unpacked; it is worked on as a whole", target)
            values = list(value)
            if any(isinstance(element, ast.Starred) for element in target.elts):
                raise self.error("`*` cannot stand among the targets of an assignment in a kernel", target)
            if len(values) != len(target.elts):
                raise self.error(f"expected {len(target.elts)} values to unpack, found {len(values)}", target)
            for element, one in zip(target.elts, values, strict=True):
                self.assign(element, one)
            return
        raise self.error(_target_advice(target), target)

    def _return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.evaluate(node.value)
        if self.depth > self.frame.depth:
            raise self.error(
                "`return` out of a loop or branch of the run time; assign to a name and return it at the end", node
            )
        if len(self.frames) == 1 and value is not None:
            raise self.error("a kernel returns nothing; store its results: store(array, offsets, value)", node)
        raise ReturnSignal(value)

    def _function(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            raise self.error("a function inside of a kernel takes no decorators", node.decorator_list[0])
        closure = self.closure(node, node.name)
        self.frame.local[node.name] = closure

    def _assert(self, node: ast.Assert) -> None:
        condition = self.evaluate(node.test)
        if not is_static(condition):
            raise self.error(
                f"`assert` of {describe(condition)}; only what is known when the kernel is compiled can be asserted",
                node.test,
            )
        if not condition:
            message = "" if node.msg is None else f": {self.evaluate(node.msg)}"
            raise self.error(f"the assertion does not hold{message}", node.test)

    # --- branches

    def _if(self, node: ast.If) -> None:
        condition = self.evaluate(node.test)
        if has_truth(condition):
            self.run(node.body if condition else node.orelse)
            return
        if not isinstance(condition, Block) or condition.shape:
            raise self.error(
                f"`if` of {describe(condition)}, which has no single truth value; choose with where(condition, a, b)",
                node.test,
            )
        chosen = self.evaluate(
            ast.copy_location(ast.Compare(Given(condition), [ast.NotEq()], [ast.Constant(0)]), node.test)
        )
        self._run_time_branch(
            node, chosen.value if condition.weak or condition.dtype.name != "bool" else condition.value
        )

    def _run_time_branch(self, node: ast.If, condition: Value) -> None:
        frame = self.frame
        before, gone = dict(frame.local), dict(frame.gone)
        bodies = (node.body, node.orelse)
        names = list(dict.fromkeys(name for body in bodies for name in assigned_names(body)))
        ends, inner = [], set()
        for body in bodies:
            frame.local, frame.gone = dict(before), dict(gone)
            inner |= self._tried(lambda body=body: self.run(body))  # type: ignore[misc]
            ends.append(frame.local)
        states: dict[str, Carried] = {}
        after = dict(before)
        for name in names:
            if not all(name in end for end in ends):
                after.pop(name, None)
                gone[name] = f"is assigned in one branch of the `if` at line {node.lineno} only; give it a value before"
                continue
            first, second = (end[name] for end in ends)
            if unchanged(first, second):
                after[name] = first
                continue
            place = last_assignments([*node.body, *node.orelse])[name]
            try:
                states[name] = joined_state(self.blocks, name, first, second, "in one branch", "in the other")
            except Fault as fault:
                raise self.error(str(fault), place) from None

        def fill(body: list[ast.stmt]) -> Callable[[], list[Value]]:
            def run() -> list[Value]:
                frame.local, frame.gone = dict(before), dict(gone)
                self.depth += 1
                self.run(body)
                self.depth -= 1
                return [state.value_of(self.blocks, frame.local[name]) for name, state in states.items()]

            return run

        results = self.builder.branch(condition, fill(node.body), fill(node.orelse))
        for (name, state), value in zip(states.items(), results, strict=True):
            after[name] = without_inner_edges(state.block(value), inner)
        frame.local, frame.gone = after, gone

    def _tried(self, run: Callable[[], None]) -> set[Value]:
        """Run statements whose operations are dropped; the values that they defined."""
        self.builder.open_body()
        self.depth += 1
        run()
        self.depth -= 1
        return set(_defined(self.builder.close_body()))

    # --- loops

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            raise self.error("`else` of a loop cannot be used in a kernel, where no loop is left early", node.orelse[0])
        iterable = self.evaluate(node.iter)
        if isinstance(iterable, range) and len(iterable) > MOST_UNROLLED and iterable.step > 0:
            iterable = RunTimeRange(iterable.start, iterable.stop, iterable.step)
        if isinstance(iterable, RunTimeRange):
            self._run_time_loop(node, iterable)
            return
        for item in self.turns(ast.copy_location(Given(iterable), node.iter)):  # type: ignore[arg-type]
            self.assign(node.target, item)
            self.run(node.body)

    def _run_time_loop(self, node: ast.For, bounds: RunTimeRange) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.error("the index of a range is one number; expected a name", node.target)
        frame, target = self.frame, node.target.id
        before, gone = dict(frame.local), dict(frame.gone)
        begin, end = self.blocks.index(bounds.begin), self.blocks.index(bounds.end)
        names = [name for name in assigned_names(node.body) if name in before and name != target]
        states: dict[str, Carried] = {}

        def enter(index: Value, values: dict[str, Value]) -> None:
            frame.local, frame.gone = dict(before), dict(gone)
            frame.local[target] = Block(index, weak=int, from_zero=begin.from_zero)
            for name, state in states.items():
                frame.local[name] = state.block(values[name])
            self.run(node.body)

        for _ in range(_MOST_ROUNDS):
            index = Value(INDEX)
            parameters = {name: Value(state.type_of(self.blocks)) for name, state in states.items()}
            inner = self._tried(lambda index=index, parameters=parameters: enter(index, parameters))  # type: ignore[misc]
            inner |= {index, *parameters.values()}
            if not self._settled(node, names, before, states, inner):
                break
        else:
            raise self.error("values that the loop hands on from turn to turn never come to have one type", node.iter)
        initial = [state.initial(self.blocks) for state in states.values()]

        def turn(index: Value, *values: Value) -> list[Value]:
            self.depth += 1
            enter(index, dict(zip(states, values, strict=True)))
            self.depth -= 1
            return [state.value_of(self.blocks, frame.local[name]) for name, state in states.items()]

        label = target if target.isascii() else ""
        results = self.builder.loop(begin.value, end.value, bounds.step, initial, turn, label)
        after = dict(before)
        for (name, state), value in zip(states.items(), results, strict=True):
            after[name] = state.block(value)
        for name in [*assigned_names(node.body), target]:
            if name not in before or name == target:
                after.pop(name, None)
                what = "is the index of the loop" if name == target else "is assigned in the loop"
                gone[name] = (
                    f"{what} at line {node.lineno} only, and has no value behind it; give it one before the loop"
                )
        frame.local, frame.gone = after, gone

    def _settled(
        self, node: ast.For, names: list[str], before: dict[str, Any], states: dict[str, Carried], inner: set[Value]
    ) -> bool:
        """Compare a turn's end with its beginning; whether carried values have changed their kind."""
        places = last_assignments(node.body)
        changed = False
        for name in names:
            end = self.frame.local.get(name, before[name])
            if isinstance(end, Block):
                end = without_inner_edges(end, inner)
            start = states[name].example if name in states else before[name]
            if name not in states and unchanged(start, end):
                continue
            try:
                state = joined_state(self.blocks, name, start, end, "before the loop", "after a turn", before[name])
            except Fault as fault:
                raise self.error(str(fault), places[name]) from None
            if name not in states or not states[name].is_like(state):
                changed = True
            states[name] = state
        return changed


def _defined(operations: list[Operation]) -> list[Value]:
    found: list[Value] = []
    for operation in operations:
        found += operation.results
        for body in operation.bodies:
            found += body.parameters
            found += _defined(list(body.operations))
    return found


def _target_advice(target: ast.expr) -> str:
    if isinstance(target, ast.Subscript):
        return "elements are not assigned; expected store(array, offsets, value), or where(condition, a, b) for blocks"
    return "expected a name to assign to"


def _keyword_of(statement: ast.stmt) -> ast.AST:
    """A node for the keyword that a statement begins with: carets under a whole body say little."""
    words = {ast.AsyncFunctionDef: "async", ast.AsyncFor: "async", ast.AsyncWith: "async", ast.ClassDef: "class"}
    simple = (ast.Break, ast.Continue, ast.Raise, ast.Delete, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom)
    if isinstance(statement, simple):
        return statement
    length = len(words.get(type(statement), type(statement).__name__.lower()))
    mark = ast.Pass()
    mark.lineno = mark.end_lineno = statement.lineno
    mark.col_offset, mark.end_col_offset = statement.col_offset, statement.col_offset + length
    return mark


_STATEMENTS: dict[type[ast.stmt], Callable[[Any, Any], None]] = {
    ast.Expr: Statements._expression,
    ast.Pass: Statements._pass,
    ast.Assign: Statements._assignment,
    ast.AnnAssign: Statements._annotated,
    ast.AugAssign: Statements._augmented,
    ast.Return: Statements._return,
    ast.FunctionDef: Statements._function,
    ast.Assert: Statements._assert,
    ast.If: Statements._if,
    ast.For: Statements._for,
}
