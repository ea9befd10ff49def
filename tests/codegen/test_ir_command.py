"""``python -m codegen`` and the arguments it makes up."""

from pathlib import Path

import numpy as np
import pytest

from codegen import __main__ as command
from codegen import dtypes
from codegen.errors import KernelError
from codegen.ir.builder import Builder
from codegen.ir.kernel import BufferParameter, IndexParameter, ScalarParameter
from codegen.ir.layout import Layout
from codegen.ir.sample_arguments import sample_arguments
from codegen.ir.types import BufferType
from codegen.passes import pipeline

TEXT = """\
kernel total(
  m: index
  n: index
  f: scalar float32
  x: buffer float32[m, n] strides (?, 1) align 16
  y: buffer float32[m, 1] strides (1, 0) align 4 written
) grid (m by 4) layout lanes 1x1 run 1x1 register 16 {
  %zero: int64 = constant dtype=int64 number=0 shape=()
  %four: int64 = constant dtype=int64 number=4 shape=()
  %program: int64 = program_index axis=0
  %row: int64 = map multiply %program, %four
  %start: float32[4, 16] = constant dtype=float32 number=0.0 shape=(4, 16)
  %sum: float32[4, 16] = for %zero, %n, %start step=16 (%column: int64, %sum.2: float32[4, 16]) {
    %value: float32[4, 16] = load %x, %row, %column shape=(4, 16) checked=(true, true) fill=0.0
    %next: float32[4, 16] = map add %sum.2, %value
    yield %next
  }
  %all: float32[4, 1] = reduce add %sum axis=1
  %factor: float32[4, 1] = broadcast %f shape=(4, 1)
  %scaled: float32[4, 1] = map multiply %all, %factor
  store %y, %row, %zero, %scaled checked=(true, false)
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "total.ir"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


def test_show(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["show", file]) == 0
    assert capsys.readouterr().out == TEXT


@pytest.mark.parametrize(
    ("stage", "part"),
    [("distributed", "@ lanes 1x1"), ("llvm", "define void @total(ptr %slots"), ("assembly", "total:")],
)
def test_show_a_stage(file: str, stage: str, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["show", "--stage", stage, file]) == 0
    assert part in capsys.readouterr().out


def test_opt_shows_each_pass(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["opt", file]) == 0
    out = capsys.readouterr().out
    assert [line.split(":")[0] for line in out.splitlines() if line.startswith("# ")] == [
        f"# {row.name}" for row in pipeline.PASSES
    ]
    assert "# canonicalize: nothing to do" in out
    assert "checked=(false, false)" in out


def test_opt_with_one_pass(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["opt", file, "--pass", "split_last_turns"]) == 0
    assert capsys.readouterr().out == "# split_last_turns: nothing to do\n"


def test_run_on_made_up_arguments(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["run", file]) == 0
    assert "y: float32[37, 1] interpreter and host agree" in capsys.readouterr().out


def test_run_on_given_arguments(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.arange(15.0).reshape(3, 5))
    options = ["--set", "m=3", "--set", "n=5", "--set", "f=0.5", "--set", f"x={tmp_path / 'x.npy'}"]
    assert command.main(["run", file, *options]) == 0
    out = capsys.readouterr().out
    assert out == "y: float32[3, 1] interpreter and host agree\n[[ 5. ]\n [17.5]\n [30. ]]\n"


def test_run_of_a_kernel_for_lanes(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(file).write_text(TEXT.replace("lanes 1x1 run 1x1 register 16", "lanes 2x16 run 1x1 register 1"))
    assert command.main(["run", file]) == 0
    assert "interpreter and host agree" in capsys.readouterr().out


def test_run_tells_that_results_differ(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "run_on_host", lambda kernel, arguments: arguments["y"].fill(3))
    assert command.main(["run", file]) == 1
    out = capsys.readouterr().out
    assert "INTERPRETER AND HOST DIFFER" in out
    assert "host:\n[[3.]" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "k=3"], "kernel total has no parameter 'k'; it has m, n, f, x, y"),
        (["--set", "n=many"], "--set n=many: expected NAME=VALUE with a number"),
        (["--set", "n=2.5"], "n: expected an integer that 1 divides, found 2.5"),
        (["--set", "x=2"], "x: expected an array of shape (37, 37), found 2"),
    ],
)
def test_wrong_arguments(file: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["run", file, *options]) == 1
    assert message in capsys.readouterr().err


def test_text_that_is_wrong(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(file).write_text(TEXT.replace("reduce add", "reduce ad"))
    assert command.main(["show", file]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"{file}: line 18: reduce: no combiner is called 'ad'")
    assert error.endswith("^\n")


def test_a_file_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["show", str(tmp_path / "none.ir")]) == 1
    assert "No such file" in capsys.readouterr().err


def arguments_for(kind: BufferType, written: bool = False, **given: object) -> np.ndarray:
    parameters = [IndexParameter("n", 8), BufferParameter("x", kind, written)]
    kernel = Builder().kernel("example", parameters, [], Layout((), ()))
    return sample_arguments(kernel, given)["x"]


@pytest.mark.parametrize("strides", [(None, 1), (None, None), (0, 1), (-40, 1), (1, 40), (100, -2), (0, 0)])
@pytest.mark.parametrize("alignment", [4, 64])
def test_buffers_have_the_form_of_their_type(strides: tuple, alignment: int) -> None:
    found = arguments_for(BufferType(dtypes.float32, (3, "n"), strides, alignment))
    assert found.shape == (3, 40)
    assert found.ctypes.data % alignment == 0
    for stated, stride in zip(strides, found.strides, strict=True):
        assert stated is None or stride == 4 * stated
    if strides[0] is None:
        assert found.strides[0] % alignment == 0
    assert np.unique(found).size > 1 or strides == (0, 0)


def test_empty_buffers_and_buffers_of_one_element() -> None:
    assert arguments_for(BufferType(dtypes.int8, ("n", 3), (None, 1), 1), n=0).shape == (0, 3)
    assert arguments_for(BufferType(dtypes.bfloat16, (), (), 2)).shape == ()


def test_written_buffers_begin_with_zeros() -> None:
    assert not arguments_for(BufferType(dtypes.float64, ("n",), (1,), 8), written=True).any()


def test_extents_are_multiples_of_what_divides_them() -> None:
    parameters = [IndexParameter("n", 16), ScalarParameter("c", dtypes.uint8)]
    kernel = Builder().kernel("example", parameters, [], Layout((), ()))
    assert sample_arguments(kernel, {})["n"] == 48
    assert sample_arguments(kernel, {"c": 300})["c"] == 44
    with pytest.raises(KernelError, match="n: expected an integer that 16 divides, found 24"):
        sample_arguments(kernel, {"n": 24})
