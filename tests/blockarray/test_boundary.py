"""What a program hands to libraries that insist on NumPy's own arrays."""

import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import blockarray as np
from blockarray.runner.boundary import converted, converting

PANDAS_PROGRAM = """
import numpy as np
import pandas as pd

x = np.arange(6)
df = pd.DataFrame({"x": x, "y": x * 2.0})
assert type(x).__module__ == "blockarray.ndarray"
print(df[x > 3], df.loc[x > 3], df.x[x > 3], sep="\\n")
print(df.groupby(x % 3).sum(), df.set_index(x + 1).index.tolist())
print(pd.unique(np.array([1, 2, 1])).tolist(), pd.factorize(np.array([1, 2, 1]))[0].tolist())
print(df.loc[x[:3].max()].tolist(), df.iloc[: x[:3].max()].shape, df.head(x[:3].max()).shape)
print(pd.date_range("2024", periods=x[:4].max()))
print(pd.DataFrame({"a": [x.sum(), x.max()]}).dtypes, pd.Series([x.mean(), x.max() * 1.0]).dtype)
print(df.sample(3, random_state=np.random.RandomState(0)))
df.loc[x > 4, "y"] = np.ones(1).sum()
print(df, np.log1p(df["x"]), x * df["x"])
"""


def test_arrays_and_numbers_become_numpys() -> None:
    x = np.arange(4)
    assert type(converted(x)) is numpy.ndarray
    assert type(converted(x.sum())) is numpy.int64
    found = converted({"a": [x, (x.max(), "s")]})
    assert type(found["a"][0]) is numpy.ndarray and type(found["a"][1][0]) is numpy.int64
    assert type(converted(slice(None, x.max())).stop) is numpy.int64


def test_what_holds_none_of_ours_stays_the_same_object() -> None:
    for value in ([1, [2]], {"a": [1]}, (1, (2,)), "s", numpy.arange(2), None):
        assert converted(value) is value


def test_an_entry_keeps_its_name_and_is_given_copies() -> None:
    given = []

    def function(first: object, *, second: object = None) -> None:
        "Documented."
        given.extend((first, second))

    entry = converting(function)
    x = np.arange(3) + 0
    entry(x, second=[x])
    x += 1
    assert (entry.__name__, entry.__doc__) == ("function", "Documented.")
    assert given[0].tolist() == [0, 1, 2] and given[1][0].tolist() == [0, 1, 2]


def test_pandas_in_a_program(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    program = tmp_path / "program.py"
    program.write_text(PANDAS_PROGRAM)
    ours = subprocess.run(
        [sys.executable, "-m", "blockarray", str(program)], capture_output=True, text=True, timeout=300
    )
    program.write_text(PANDAS_PROGRAM.replace('assert type(x).__module__ == "blockarray.ndarray"', ""))
    theirs = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300)
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == theirs.stdout
