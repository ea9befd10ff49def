"""The shipped programs: they know nothing of blockarray, and compute the same on it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import blockarray

ROOT = Path(blockarray.__file__).absolute().parent.parent
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"

# What each program must print, whoever computes: facts about the data, not about the last digits.
FACTS = {
    "climate.py": [
        "2284 weeks, 59 of them missing",
        "growth 1.337 ppm a year",
        "warmest years: 1997 (+2.69), 1983 (+2.61)",
    ],
    "photograph.py": ["Photograph of 512 x 512 pixels, uint8", "13209 edge pixels", "busiest tile: row 5, column 6"],
    "penguins.py": ["342 penguins: 151 Adelie, 68 Chinstrap, 123 Gentoo", "differences of the loss: True", "0.9912"],
}

# Less work than by default: enough to take every line of the program.
ARGUMENTS = {"climate.py": ["20"], "photograph.py": ["3"], "penguins.py": ["100"]}


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "BLOCKARRAY_DEVICE": "cpu"}


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environment(), capture_output=True, text=True, timeout=300, cwd=EXAMPLES
    )


def test_every_program_is_tested():
    assert {file.name for file in EXAMPLES.glob("*.py")} == set(FACTS) == set(ARGUMENTS)


@pytest.mark.parametrize("name", sorted(FACTS))
def test_program_does_not_know_blockarray(name):
    text = (EXAMPLES / name).read_text()
    assert "blockarray" not in text
    assert re.search(r"^import numpy as np$", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(FACTS))
def test_numpy_and_blockarray_agree(name):
    result = python("-m", "blockarray", "--compare", name, *ARGUMENTS[name])
    assert result.returncode == 0, result.stdout + result.stderr
    assert "NumPy and blockarray agree" in result.stdout
    launched = re.search(r"kernels launched +- +([\d,]+)", result.stdout)
    assert launched is not None and int(launched.group(1).replace(",", "")) > 0


@pytest.mark.parametrize("name", sorted(FACTS))
def test_facts_about_the_data(name):
    output = python("-m", "blockarray", name).stdout
    for fact in FACTS[name]:
        assert fact in output


def test_every_data_file_has_its_source_and_licence():
    readme = (EXAMPLES / "README.md").read_text()
    rows = {match.group(1): match.group(0) for match in re.finditer(r"^\| `data/(\S+)` .*$", readme, re.MULTILINE)}
    assert set(rows) == {file.name for file in (EXAMPLES / "data").iterdir()}
    for row in rows.values():
        assert re.search(r"public domain|CC0", row.rpartition("|")[0].rpartition("|")[2])
