"""``python -m blockarray``: programs run as with python, on blockarray; comparing finds what differs and nothing else."""

from __future__ import annotations

import builtins
import importlib
import os
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pytest

import blockarray
from blockarray.runner import values
from blockarray.runner.agreement import Tolerance, compare_outputs, compare_values
from blockarray.runner.command import main
from blockarray.runner.comparison import Comparison, Run
from blockarray.runner.program import Program, ProgramNotFoundError
from blockarray.runner.recording import STATISTICS, Record
from blockarray.runner.report import report
from blockarray.runner.substitution import ProgramFiles, ProgramImports
from blockarray.runner.tracebacks import trim
from blockarray.runner.values import Unreadable

ROOT = Path(blockarray.__file__).absolute().parent.parent
Result = subprocess.CompletedProcess[str]


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))
    return file


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., Result]:
    """Runs python in ``tmp_path``, without a GPU, with the library on its path."""

    def run(*arguments: str, stdin: str = "", **environment: str) -> Result:
        full = {**os.environ, "PYTHONPATH": str(ROOT), "BLOCKARRAY_DEVICE": "cpu", "PYTHONHASHSEED": "0", **environment}
        full.pop("PYTHONWARNINGS", None)
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=full,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.fixture
def run(python: Callable[..., Result]) -> Callable[..., Result]:
    """Runs ``python -m blockarray`` in ``tmp_path``."""
    return lambda *arguments, **keywords: python("-m", "blockarray", *arguments, **keywords)


# ---------------------------------------------------------------------------------------------------------- running


def test_numpy_is_replaced_in_the_program_and_in_modules_beside_it(tmp_path, run):
    write(tmp_path, "program.py", """
        import importlib, sys
        import numpy as np
        import numpy.linalg as la
        import numpy.lib.stride_tricks
        import numpy
        from numpy import ones
        from numpy.random import default_rng
        from sibling import made_there
        from package.inner import made_deeper
        namespace = {}
        exec("import numpy as q", namespace)

        def where(array):
            return type(array).__module__.partition(".")[0]

        print(where(np.zeros(2)), where(numpy.arange(3)), where(ones(2)), where(made_there()), where(made_deeper()))
        print(importlib.import_module("numpy") is np, namespace["q"] is np, numpy is np, la is np.linalg)
        print(numpy.lib.stride_tricks.__name__, default_rng(0).integers(5, size=3).shape)
        print(where(np.zeros(2) + 1), np.pi, np.float32(2.5), np.__name__)
        print(sys.modules["numpy"] is not np, sys.modules["numpy"].zeros(1).__class__.__module__)
    """)  # fmt: skip
    write(tmp_path, "sibling.py", "import numpy\ndef made_there(): return numpy.zeros(3)\n")
    write(tmp_path, "package/__init__.py", "")
    write(tmp_path, "package/inner.py", "from numpy import zeros\ndef made_deeper(): return zeros(3)\n")
    result = run("program.py")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "blockarray blockarray blockarray blockarray blockarray",
        "True True True True",
        "numpy.lib.stride_tricks (3,)",
        "blockarray 3.141592653589793 2.5 numpy",
        "True numpy",
    ]


def test_installed_packages_keep_numpy(tmp_path, run):
    write(tmp_path, "libraries/site-packages/installed.py", "import numpy\ndef make(): return numpy.zeros(2)\n")
    write(tmp_path, "elsewhere/other.py", "import numpy\ndef make(): return numpy.zeros(2)\n")
    program = """
        import sys
        sys.path += [r"{0}/libraries/site-packages", r"{0}/elsewhere"]
        import installed, other
        print(type(installed.make()).__module__, type(other.make()).__module__.partition(".")[0])
    """
    write(tmp_path, "project/program.py", program.format(tmp_path))
    result = run("project/program.py")
    assert result.stdout == "numpy numpy\n", result.stderr
    result = run("--also", "elsewhere", "project/program.py")
    assert result.stdout == "numpy blockarray\n", result.stderr


def test_star_import_and_numpy_testing(tmp_path, run):
    write(tmp_path, "program.py", """
        from numpy import *
        import numpy.testing as npt
        import numpy.typing
        x = arange(4.0)
        npt.assert_allclose(x, [0, 1, 2, 3])
        y: numpy.typing.NDArray = sqrt(x)
        print(type(x).__module__.partition(".")[0], float(y[3]) == 3 ** 0.5)
    """)  # fmt: skip
    result = run("program.py")
    assert result.stdout == "blockarray True\n", result.stderr


def test_the_program_sees_what_python_gives_it(tmp_path, python, run):
    write(tmp_path, "project/program.py", """
        '''Its documentation.'''
        import sys, os, inspect
        def f(): pass
        class Record: pass
        print(sys.argv, sys.path[0], __name__, __file__, __doc__, __spec__, __package__)
        print(sys.modules["__main__"].f is f, Record.__module__, inspect.getsource(f).strip(), os.getcwd())
        print(sorted(name for name in globals() if name.startswith("__")))
        print(repr(sys.stdin.read()))
        sys.stdout.write("no newline at the end")
    """)  # fmt: skip
    arguments = ["project/program.py", "--compare", "-x", "a b", "--", "--help"]
    expected, found = python(*arguments, stdin="given"), run(*arguments, stdin="given")
    assert found.stdout == expected.stdout
    assert found.returncode == expected.returncode == 0
    assert found.stderr == expected.stderr == ""


def test_a_folder_with_main_runs(tmp_path, python, run):
    write(tmp_path, "project/__main__.py", "import sys, part; print(sys.argv, part.value, sys.path[0] != '')\n")
    write(tmp_path, "project/part.py", "value = 3\n")
    assert run("project", "a").stdout == python("project", "a").stdout == "['project', 'a'] 3 True\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import sys\nsys.exit(7)\n", id="exit code"),
        pytest.param("import sys\nsys.exit('a message')\n", id="exit message"),
        pytest.param("raise SystemExit\n", id="exit without code"),
        pytest.param("def f(x):\n    return 1 / x\n\nf(0)\n", id="exception"),
        pytest.param("try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n", id="cause"),
        pytest.param("import broken\n", id="exception in a sibling"),
        pytest.param("import not_there\n", id="missing module"),
        pytest.param("import numpy.not_there\n", id="missing numpy module"),
        pytest.param("raise ExceptionGroup('g', [ValueError(1), TypeError(2)])\n", id="group"),
        pytest.param("import sys\nsys.excepthook = lambda *a: print('own hook', a[0].__name__)\n1 / 0\n", id="own hook"),
        pytest.param("x = = 1\n", id="syntax"),
        pytest.param("import numpy as np\nnp.zeros(3).shape[5]\n", id="error beside the library"),
        pytest.param("import numpy as np\nnp.zeros(3) + np.zeros(4)\n", id="error of the library"),
        pytest.param("import numpy as np\ndef f():\n    np.zeros((2, 3)).sum(axis=2)\nf()\n", id="axis error"),
    ],
)  # fmt: skip
def test_ends_as_python_ends_it(tmp_path, python, run, text):
    write(tmp_path, "program.py", text)
    write(tmp_path, "broken.py", "def g():\n    raise RuntimeError('broken')\ng()\n")
    expected, found = python("program.py"), run("program.py")
    assert found.returncode == expected.returncode
    assert found.stdout == expected.stdout
    # NumPy's Python-written wrappers show up in its own tracebacks, and in ours nothing of the library does.
    assert program_lines(found.stderr, tmp_path) == program_lines(expected.stderr, tmp_path)
    assert str(ROOT / "blockarray") not in found.stderr


def program_lines(text: str, folder: Path) -> list[str]:
    """``text`` without frames of files outside ``folder``, and without blanks at line ends."""
    kept, frame_kept = [], True
    for line in text.splitlines():
        if line.startswith("  File "):
            frame_kept = str(folder) in line
        elif not line.startswith("    "):
            frame_kept = True
        if frame_kept:
            kept.append(line.rstrip().replace("numpy.exceptions.", ""))
    return kept


def test_null_bytes_are_a_syntax_error(tmp_path, run):
    (tmp_path / "program.py").write_bytes(b"x = 1\ny = \0\n")
    result = run("program.py")
    assert result.returncode == 1
    assert "SyntaxError" in result.stderr and "null bytes" in result.stderr and "runner" not in result.stderr


def test_missing_program(run):
    result = run("nowhere.py")
    assert result.returncode == 2 and result.stdout == ""
    assert re.fullmatch(
        r"python -m blockarray: can't open file '.*/nowhere.py': \[Errno 2\] No such file or directory\n", result.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required"),
        (["--tolerance", "-1", "p.py"], "expected a number of at least 0, found '-1'"),
        (["--tolerance", "nan", "p.py"], "expected a number of at least 0, found 'nan'"),
        (["--compare", "--ignore", "(", "p.py"], "'(' is not a regular expression"),
        (["--ignore", "x", "p.py"], "--ignore is about the lines that --compare compares"),
        (["--also", "nowhere", "p.py"], "--also: 'nowhere' is not a folder"),
        (["--device", "abacus", "p.py"], "--device abacus: "),
        (["--unknown", "p.py"], "unrecognized arguments: --unknown"),
    ],
)
def test_wrong_options(tmp_path, capsys, monkeypatch, arguments, message):
    write(tmp_path, "p.py", "raise RuntimeError('must not run')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ending:
        main(arguments)
    assert ending.value.code == 2
    assert message in capsys.readouterr().err


def test_device_and_explain(tmp_path, run):
    write(tmp_path, "program.py", """
        import numpy as np
        x = np.arange(1000.0)
        print((np.sqrt(x) * 2 + 1).sum() > 0)
    """)  # fmt: skip
    result = run("--device", "cpu", "--explain", "program.py")
    assert result.returncode == 0, result.stderr
    first, _, explanation = result.stdout.partition("\n")
    assert first == "True"
    assert "kernel" in explanation and "sqrt" in explanation


def test_help_names_every_option(run):
    text = run("--help").stdout
    options = (
        "--compare",
        "--explain",
        "--device",
        "--tolerance",
        "--absolute-tolerance",
        "--ignore",
        "--also",
        "--full-traceback",
    )
    assert all(option in text for option in options)


# --------------------------------------------------------------------------------------------------------- comparing


def test_comparing_a_program_that_agrees(tmp_path, run):
    write(tmp_path, "program.py", """
        import sys
        import numpy as np

        class Model:
            def __init__(self):
                self.weights = np.linspace(0, 1, 7)

        x = np.linspace(0, 1, 1000, dtype=np.float32)
        mean = x.mean()
        model = Model()
        table = {"a": [x > 0.5, 3], "b": (1.5, "text")}
        _private = object()
        print("mean", mean, "of", x.shape, object())
        print(np.sin(x[::100]))
        print(sys.stdin.read(), sys.argv[1:])
    """)  # fmt: skip
    result = run("--compare", "program.py", "--flag", stdin="given")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "NumPy and blockarray agree (" in result.stdout
    assert "7 values" in result.stdout  # x, mean, model.weights, and the four in the table
    for row in ("time", "kernels launched", "bytes moved", "temporaries avoided"):
        assert re.search(rf"^{row} ", result.stdout, re.MULTILINE), row


def test_comparing_finds_every_difference(tmp_path, run):
    write(tmp_path, "program.py", """
        import numpy as np
        replaced = type(np.ones(1)).__module__.startswith("blockarray")
        x = np.arange(12.0).reshape(3, 4)
        x[1, 2] += 1e-3 * replaced
        narrow = x.astype(np.float32 if replaced else np.float64)
        longer = np.zeros(3 + replaced)
        if replaced:
            extra = 1
        del replaced
        print("third", 3 + 1e-2 * (x[1, 2] - 6))
        print("loss", x[1, 2])
    """)  # fmt: skip
    result = run("--compare", "program.py")
    assert result.returncode == 1
    assert "DISAGREE at 5 places" in result.stdout, result.stdout
    for text in (
        "output, line 2",
        "x[1, 2] (1 of 12 elements differ)",
        "narrow (dtypes differ)",
        "longer (shapes differ)",
        "extra",
    ):
        assert text in result.stdout
    assert "not repeatable" not in result.stdout
    assert run("--compare", "--tolerance", "0.01", "program.py").stdout.count("DISAGREE at 3 places") == 1


def test_comparing_a_program_that_is_not_repeatable(tmp_path, run):
    write(tmp_path, "program.py", "import os\nprint('process', os.getpid())\nprint('done')\n")
    result = run("--compare", "program.py")
    assert result.returncode == 1
    assert "the program is not repeatable" in result.stdout
    assert run("--compare", "--ignore", "^process", "program.py").returncode == 0


def test_comparing_programs_that_fail(tmp_path, run):
    write(tmp_path, "alike.py", "import numpy as np\nnp.zeros(2) + np.zeros(3)\n")
    result = run("--compare", "alike.py")
    assert result.returncode == 1
    assert "the program FAILS, under NumPy as under blockarray; until then they agree" in result.stdout
    assert "The end of both: ValueError: operands could not be broadcast together" in result.stdout
    write(tmp_path, "unfinished.py", "import numpy as np\nx = np.ones(2\n")
    result = run("--compare", "unfinished.py")
    assert result.returncode == 1
    assert "unfinished.py: the program FAILS" in result.stdout and "The end of both: SyntaxError" in result.stdout
    write(tmp_path, "one.py", "import numpy as np\nassert type(np.ones(1)).__module__ == 'numpy', 'no'\nx = 3\n")
    result = run("--compare", "one.py")
    assert result.returncode == 1
    assert "end of the program" in result.stdout and "AssertionError: no" in result.stdout
    write(tmp_path, "gone.py", "import os\nos._exit(3)\n")
    result = run("--compare", "gone.py")
    assert result.returncode == 3


def test_comparing_explains(tmp_path, run):
    write(tmp_path, "program.py", "import numpy as np\nprint(np.cos(np.arange(10.0)).sum())\n")
    result = run("--compare", "--explain", "program.py")
    assert result.returncode == 0, result.stdout
    assert "cos" in result.stdout.partition("temporaries avoided")[2]


# ------------------------------------------------------------------------------------------------- agreement of texts


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("a 1.0000001 b", "a 1.0000002 b"),
        ("[1.  2.5]\n", "[1.         2.5000001]\n"),
        ("[[1. 2.]\n [3. 4.]]", "[[1. 2.]\n [3. 4.00000001]]"),
        ("[1. 2.\n 3.]", "[1. 2. 3.00000001]"),
        ("x = -1e-14", "x = 3e-15"),
        ("nan inf -inf", "nan inf -inf"),
        ("0.1235 end", "0.1236 end"),
        ("1.5+2j", "1.5000001+2.0000001j"),
        ("<object at 0x7f0012345678>", "<object at 0x7f00aaaaaaaa>"),
        ("5 of 7", "5 of 7"),
        ("1", "1.000001"),
        ("trailing   \n", "trailing\n"),
        ("-0.0", "0.0"),
    ],
)
def test_outputs_that_agree(expected, found):
    assert compare_outputs(expected, found, Tolerance()) == []
    assert compare_outputs(found, expected, Tolerance()) == []


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("a 1.0 b", "a 1.1 b"),
        ("a 1.0 b", "c 1.0 b"),
        ("5 of 7", "5 of 8"),
        ("1000000", "1000001"),
        ("0.12", "0.13"),
        ("a b", "a  b"),
        ("a\nb", "a b"),
        ("1\n2", "1 2"),
        ("1\n2\n", "1\n2\n3\n"),
        ("nan", "inf"),
        ("nan", "0.0"),
        ("inf", "-inf"),
        ("1+2j", "1+3j"),
        ("1j", "1.0"),
        ("5", "5.0"),
        ("version 1.2.3", "version 1.2.4"),
        ("True", "False"),
        ("x1", "x2"),
        ("[1. 2.]", "[1. 2. 3.]"),
        ("text", ""),
    ],
)
def test_outputs_that_differ(expected, found):
    assert len(compare_outputs(expected, found, Tolerance())) == 1
    assert len(compare_outputs(found, expected, Tolerance())) == 1


def test_numbers_are_compared_on_beyond_a_difference():
    differences = compare_outputs("a 1.0\nb 2.0\nc 3.0", "a 1.5\nb 2.0\nc 3.5", Tolerance())
    assert [difference.place for difference in differences] == ["output, line 1", "output, line 3"]
    assert differences[1].expected == "c 3.0" and differences[1].found == "c 3.5"
    assert differences[1].remark == "3.0 and 3.5 are 0.5 apart"


def test_ignored_lines():
    assert compare_outputs("a 1\ntook 3 s\nb", "a 1\ntook 4 s\nb", Tolerance(), re.compile("^took")) == []


# ------------------------------------------------------------------------------------------------ agreement of values


def agree(expected: object, found: object, tolerance: Tolerance | None = None) -> bool:
    return compare_values("v", expected, found, tolerance or Tolerance()) is None


def test_values_that_agree():
    noise = 1 + 1e-9 * numpy.arange(6.0).reshape(2, 3)
    x = numpy.arange(6.0).reshape(2, 3)
    assert agree(x, x * noise)
    assert agree(numpy.float32([1e6, 1e-3]), numpy.float32([1e6, 2e-3]))  # rounding of the size of the largest
    assert agree(numpy.array([numpy.nan, numpy.inf]), numpy.array([numpy.nan, numpy.inf]))
    assert agree(numpy.array(3.0), 3.0)
    assert agree(2 + 1j, 2 + 1j + 1e-9)
    assert agree(numpy.array("text"), numpy.array("text"))
    assert agree("text", "text") and agree(b"x", b"x") and agree(7, 7)
    assert agree(numpy.array([]), numpy.array([]))
    assert agree(Unreadable("ValueError: no"), Unreadable("ValueError: no"))


def test_values_that_differ():
    x = numpy.arange(6.0)
    assert not agree(x, x.reshape(2, 3))
    assert not agree(x, x.astype(numpy.float32))
    assert not agree(x, x + 1e-3)
    assert not agree(numpy.arange(6), numpy.array([0, 1, 2, 3, 4, 6]))
    assert not agree(numpy.int64(2**60) + numpy.arange(2), numpy.int64(2**60) + numpy.array([0, 2]))
    assert not agree(numpy.array([numpy.nan]), numpy.array([0.0]))
    assert not agree(numpy.array([numpy.inf]), numpy.array([-numpy.inf]))
    assert not agree(numpy.array([1 + 1j]), numpy.array([1 + 2j]))
    assert not agree("text", "other") and not agree("3", 3)
    assert not agree(x, Unreadable("IndexError: no"))
    assert not agree(x, x * (1 + 1e-7), Tolerance(1e-9, 0))


def test_difference_names_the_element():
    x = numpy.arange(6.0).reshape(2, 3)
    y = x.copy()
    y[1, 0] += 1
    y[1, 2] += 1
    difference = compare_values("x", x, y, Tolerance())
    assert difference is not None
    assert (difference.place, difference.remark) == ("x[1, 0]", "2 of 6 elements differ")
    assert "3.0" in difference.expected and "4.0" in difference.found


# ---------------------------------------------------------------------------------------------------- finding values


class Broken:
    """Passes for an array that cannot be computed."""

    def __array__(self, dtype: object = None, copy: object = None) -> numpy.ndarray:
        raise IndexError("index 5 is out of bounds")


def test_values_are_found_stored_and_loaded(tmp_path):
    class Own:
        def __init__(self) -> None:
            self.bias = numpy.float32(2)
            self.itself = self

    recursive: list[object] = [1]
    recursive.append(recursive)
    objects = numpy.array([numpy.arange(2), "s"], dtype=object)
    namespace = {
        "x": numpy.arange(3), "_hidden": 1, "numpy": numpy, "f": test_ignored_lines, "Own": Own, "own": Own(),
        "nested": {"k": [1.5, (True, "s")], 2: b"b"}, "recursive": recursive, "objects": objects, "none": None,
        "broken": Broken(), "foreign": Path("x"),
    }  # fmt: skip
    offsets = values.store(values.collect(namespace, Broken, frozenset({__name__})), tmp_path / "values")
    assert set(offsets) == {
        "x", "own.bias", "nested['k'][0]", "nested['k'][1][0]", "nested['k'][1][1]", "nested[2]", "recursive[0]",
        "objects.flat[0]", "objects.flat[1]", "broken",
    }  # fmt: skip
    loaded = {path: values.load(tmp_path / "values", offset) for path, offset in offsets.items()}
    assert loaded["nested['k'][1][1]"] == "s" and loaded["nested['k'][0]"] == 1.5
    assert isinstance(loaded["own.bias"], numpy.ndarray) and loaded["own.bias"].dtype == numpy.float32
    assert loaded["broken"] == Unreadable("IndexError: index 5 is out of bounds")


# -------------------------------------------------------------------------------------------------------- substitution


@pytest.fixture
def imports(tmp_path: Path) -> Iterator[ProgramImports]:
    """A substitute made of a module that has little; installed for the files in ``tmp_path``."""
    native = types.ModuleType("small")
    native.asarray = lambda array: ("native", array.tolist())  # type: ignore[attr-defined]
    native.zeros = lambda count: ("zeros", count)  # type: ignore[attr-defined]
    native.random = types.ModuleType("small.random")  # type: ignore[attr-defined]
    native.random.default_rng = lambda: "own generator"
    replaced = ProgramImports(native, ProgramFiles([tmp_path]))
    replaced.install()
    yield replaced
    replaced.remove()


def execute(text: str, file: Path | str) -> dict[str, object]:
    namespace: dict[str, object] = {"__file__": str(file), "__name__": "executed"}
    exec(textwrap.dedent(text), namespace)
    return namespace


def test_substitute_completes_the_native_module_by_numpy(tmp_path, imports):
    program = tmp_path / "program.py"
    found = execute("""
        import numpy as np
        from numpy.random import default_rng, SeedSequence
        from numpy import float32, emath
        import numpy.polynomial.polynomial as poly
        made = np.zeros(3)
    """, program)  # fmt: skip
    assert found["made"] == ("zeros", 3)
    assert found["default_rng"]() == "own generator"  # type: ignore[operator]
    assert found["SeedSequence"] is numpy.random.SeedSequence
    assert found["float32"] is numpy.float32
    assert found["emath"] is numpy.emath
    assert found["poly"] is numpy.polynomial.polynomial
    np = found["np"]
    with pytest.warns(RuntimeWarning, match="small has no numpy.tri: NumPy's runs in its place, on the host"):
        assert np.tri(2) == ("native", [[1.0, 0.0], [1.0, 1.0]])  # type: ignore[attr-defined]
    assert np.tri(1) == ("native", [[1.0]])  # type: ignore[attr-defined]  # said once
    with pytest.raises(AttributeError, match="module 'numpy' has no attribute 'not_there'"):
        np.not_there  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'not_there' from 'numpy'"):
        execute("from numpy import not_there", program)
    assert "tri" in dir(np) and "zeros" in dir(np)


def test_files_outside_keep_numpy(imports):
    assert execute("import numpy", "/somewhere/else.py")["numpy"] is numpy
    assert execute("import numpy.linalg", "/somewhere/else.py")["numpy"] is numpy


def test_import_is_given_back(tmp_path):
    before = builtins.__import__, importlib.import_module
    imports = ProgramImports(blockarray, ProgramFiles([tmp_path]))
    imports.install()
    assert builtins.__import__ is not before[0]
    imports.remove()
    assert (builtins.__import__, importlib.import_module) == before


def test_which_files_are_the_program(tmp_path):
    files = ProgramFiles([tmp_path], [tmp_path / "library"])
    assert files.own(str(tmp_path / "program.py")) and files.own(str(tmp_path / "deep" / "er.py"))
    assert not files.own(str(tmp_path / "library" / "part.py"))
    assert not files.own(str(tmp_path / "venv" / "lib" / "site-packages" / "p.py"))
    assert not files.own(str(tmp_path.parent / "p.py"))
    assert not ProgramFiles([Path("/")]).own(os.__file__)
    inside = ProgramFiles([tmp_path / "site-packages" / "p"])
    assert inside.own(str(tmp_path / "site-packages" / "p" / "program.py"))


# ------------------------------------------------------------------------------------------------ programs, tracebacks


def test_finding_a_program(tmp_path):
    with pytest.raises(ProgramNotFoundError, match="can't find '__main__.py' in"):
        Program.find(str(tmp_path))
    file = write(tmp_path, "real/program.py", "x = 1\n")
    (tmp_path / "link.py").symlink_to(file)
    program = Program.find(str(tmp_path / "link.py"), ["a"])
    assert program.file == tmp_path / "link.py" and program.directory == (tmp_path / "real").resolve()
    assert program.arguments == ("a",)


def test_only_errors_of_the_user_lose_the_library_s_lines(tmp_path):
    library = tmp_path / "library" / "inside.py"

    def raised(error: str) -> list[str]:
        inner: dict[str, object] = {}
        exec(compile(f"def f():\n    raise {error}\n", str(library), "exec"), inner)
        try:
            exec(compile("f()", str(tmp_path / "program.py"), "exec"), {"f": inner["f"]})
        except Exception as caught:
            trim(caught, [str(tmp_path / "library")])
            names, traceback = [], caught.__traceback__
            while traceback is not None:
                names.append(Path(traceback.tb_frame.f_code.co_filename).name)
                traceback = traceback.tb_next
            return names
        raise AssertionError("nothing was raised")

    this = Path(__file__).name
    assert raised("ValueError(1)") == [this, "program.py"]
    assert raised("AssertionError(1)") == [this, "program.py", "inside.py"]


def test_report_of_runs_without_a_record(tmp_path):
    for name in ("output.txt", "errors.txt"):
        write(tmp_path, name, "last words\n")
    counted = dict.fromkeys(STATISTICS, 0) | {"kernels": 3, "bytes_read": 2_500_000, "bytes_written": 500}
    killed = Run(tmp_path, -9, None)
    whole = Run(tmp_path, 0, Record(1.5, None, {}, counted))
    text = report(Comparison(whole, killed, (), 0, 1), "p.py", Tolerance())
    assert "Standard error under blockarray:\n    last words" in text
    text = report(Comparison(killed, whole, (), 0, 1), "p.py", Tolerance())
    assert "The end of both: ended by signal 9" in text
    assert re.search(r"kernels launched +- +3 ", text) and "read 2.5 MB, written 500 B" in text
