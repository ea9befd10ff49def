"""Every example in the documentation and in public docstrings runs."""

import doctest
import importlib
import linecache
import pkgutil
import re
from pathlib import Path

import pytest

import blockarray
import codegen

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def modules():
    """Names of all modules with docstrings, those that need a GPU package aside."""
    for package in (codegen, blockarray):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield found.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_a_page(page):
    # Blocks of one page share their names; a block without prompts is a program of its own and must run too.
    text = page.read_text(encoding="utf-8")
    names: dict = {}
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)):
        if ">>>" not in block:
            # Kernels are translated from their source.
            place = f"<{page.name}, block {number}>"
            linecache.cache[place] = (len(block), None, block.splitlines(keepends=True), place)
            exec(compile(block, place, "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(block, names, f"{page.name}, block {number}", str(page), 0)
        output: list[str] = []
        failed, _ = runner.run(test, out=output.append, clear_globs=False)
        names.update(test.globs)
        assert failed == 0, "".join(output)


@pytest.mark.parametrize("name", sorted(modules()))
def test_examples_of_a_module(name):
    module = importlib.import_module(name)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name, module=module):
        runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)
