"""The parts of the project know only what they may know, and nothing that belongs together is left out."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.ir.interpreter import OPERATION_MEANINGS
from codegen.ir.operations import OPERATIONS, attribute_names
from codegen.llvm.emitter import EMITTERS
from codegen.passes import pipeline

ROOT = Path(__file__).parent.parent
FILES = sorted(path for package in ("codegen", "blockarray") for path in (ROOT / package).rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in FILES]

BASE = {"codegen.dtypes", "codegen.errors", "codegen.settings", "codegen.target"}
# What each part of the compiler may import besides itself; parts further down know nothing of those further up.
MAY_IMPORT = {
    "codegen.dtypes": set(),
    "codegen.errors": set(),
    "codegen.settings": {"codegen.errors"},
    "codegen.target": {"codegen.dtypes"},
    "codegen.scalar": BASE,
    "codegen.ir": BASE | {"codegen.scalar"},
    "codegen.analysis": BASE | {"codegen.scalar", "codegen.ir"},
    "codegen.passes": BASE | {"codegen.scalar", "codegen.ir", "codegen.analysis"},
    "codegen.schedules": BASE | {"codegen.scalar", "codegen.ir"},
    "codegen.cache": BASE,
    "codegen.llvm": BASE | {"codegen.scalar", "codegen.ir", "codegen.analysis"},
    "codegen.targets": BASE | {"codegen.scalar", "codegen.ir", "codegen.analysis", "codegen.llvm"},
    "codegen.frontend": BASE | {"codegen.scalar", "codegen.ir", "codegen.schedules"},
    "codegen.compiler": BASE
    | {"codegen.cache", "codegen.ir", "codegen.llvm", "codegen.passes", "codegen.targets", "codegen.scalar"},
    "blockarray.graph": {"codegen"},
    "blockarray.fusion": {"codegen", "blockarray.graph"},
    "blockarray.kernels": {"codegen", "blockarray.graph", "blockarray.fusion"},
    "blockarray.execution": {"codegen", "blockarray.graph", "blockarray.fusion", "blockarray.kernels"},
}
# Packages that come from elsewhere, and the only places that know them.
ONLY_IN = {
    "llvmlite": ("codegen/llvm/", "codegen/targets/"),
    "cuda": ("codegen/targets/nvptx/",),
}
# The version of llvmlite is part of cache keys.
EXCEPTIONS = {("codegen/compiler.py", "llvmlite")}
# Packages that a user may not have, which are looked for when they are needed.
LAZY = {"cuda", "hypothesis", "scipy", "dask", "torch", "cupy"}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in FILES}


def imported(node: ast.AST) -> Iterator[str]:
    """Modules that an import statement names; ``from package import module`` names the module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide where a name comes from"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in MODULES else str(node.module)


def is_for_types(node: ast.AST) -> bool:
    """Whether a statement is ``if TYPE_CHECKING:``."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers see."""
    for node in ast.iter_child_nodes(tree):
        if not is_for_types(node):
            yield node
            yield from at_run_time(node)


def part_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_every_file_says_what_it_is(path: Path) -> None:
    docstring = ast.get_docstring(tree_of(path))
    assert docstring, "a file begins with a docstring"
    assert docstring.splitlines()[0].strip().endswith((".", "!", "?", ":")), "its first line is a sentence"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_parts_import_only_what_lies_below(path: Path) -> None:
    part = part_of(module_of(path))
    for node in ast.walk(tree_of(path)):
        for name in imported(node):
            if module_of(path).startswith("codegen"):
                assert not name.startswith("blockarray"), "the compiler knows nothing of arrays"
            if part not in MAY_IMPORT or not name.startswith(("codegen", "blockarray")):
                continue
            allowed = MAY_IMPORT[part] | {part}
            # Names for type checkers may come from a neighbour that imports this part.
            if part == "blockarray.graph" and part_of(name) == "blockarray.execution":
                continue
            assert part_of(name) in allowed or name.split(".")[0] in allowed, f"{part} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_packages_from_elsewhere_stay_in_their_place(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    for node in ast.walk(tree_of(path)):
        for module in imported(node):
            package = module.split(".")[0]
            if package in ONLY_IN and (name, package) not in EXCEPTIONS:
                assert name.startswith(ONLY_IN[package]), f"{name} imports {package}"


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_imports_stand_at_the_top_and_name_what_they_take(path: Path) -> None:
    tree = tree_of(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names), "no star imports"
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        for node in ast.walk(function):
            for name in imported(node):
                assert name.split(".")[0] in LAZY, f"{name} is imported inside of a function"


def test_imports_have_no_cycles() -> None:
    imports = {
        module_of(path): {name for node in at_run_time(tree_of(path)) for name in imported(node) if name in MODULES}
        for path in FILES
    }
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        if module in path:
            pytest.fail(f"a cycle: {' imports '.join((*path[path.index(module) :], module))}")
        if module not in done:
            for name in sorted(imports[module]):
                visit(name, (*path, module))
            done.add(module)

    for module in sorted(imports):
        visit(module, ())


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_complete(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation.name == name
    assert operation.__doc__ and not operation.__doc__.startswith(f"{operation.__name__}("), (
        "an operation has a docstring"
    )
    assert "infer" in vars(operation), "an operation infers the types of its results"
    assert operation in OPERATION_MEANINGS, "the interpreter has no meaning for it"
    assert operation in EMITTERS, "the emitter has no code for it"
    names = attribute_names(operation)
    assert "function" not in names or names[0] == "function", "the text has a function right behind the name"


def test_nothing_is_given_a_meaning_that_is_no_operation() -> None:
    assert set(OPERATION_MEANINGS) == set(EMITTERS) == set(OPERATIONS.values())


def test_each_pass_has_a_file_of_its_name() -> None:
    for row in pipeline.PASSES:
        assert (ROOT / "codegen" / "passes" / f"{row.name}.py").exists(), row.name


@pytest.mark.parametrize("path", sorted((ROOT / "codegen" / "passes").glob("*.py")), ids=lambda path: path.name)
def test_passes_ask_for_facts_not_names(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "target":
            assert node.attr not in ("name", "kind", "triple", "cpu"), "ask what a target has, not what it is called"
