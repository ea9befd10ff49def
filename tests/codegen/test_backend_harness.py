"""The benchmarks' harness: what it computes from times, not the times."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import harness


def measurement(name: str, *seconds: float) -> harness.Measurement:
    return harness.Measurement(name, seconds, tuple(2 * value for value in seconds))


def test_speedup_is_the_median_of_the_rounds_ratios():
    comparison = harness.Comparison({"old": measurement("old", 4, 40, 6), "new": measurement("new", 2, 10, 2)})
    assert comparison.speedups("new", over="old") == (2, 4, 3)
    assert comparison.speedup("new", over="old") == 3
    assert comparison.cpu_speedup("new", over="old") == 3
    assert comparison["old"].median == 6
    assert comparison["new"].best == 2


def test_spread():
    assert harness.relative_spread([1.0]) == 0.0
    assert harness.relative_spread([5.0, 5.0, 5.0]) == 0.0
    assert harness.relative_spread([8.0, 9.0, 10.0, 11.0, 12.0]) == pytest.approx(0.15)


def test_rounds_are_interleaved():
    log: list[str] = []
    clock_calls: list[int] = []

    def clock(work, calls):
        clock_calls.append(calls)
        work()
        return calls * 0.25

    candidates = {name: (lambda name=name: log.append(name)) for name in "abc"}
    comparison = harness.compare(candidates, rounds=4, sample_seconds=1.0, clock=clock, before=lambda: log.append("-"))
    timed = "".join(log).split("-")[-12:]
    assert [sorted(timed[start : start + 3]) for start in range(0, 12, 3)] == [["a", "b", "c"]] * 4
    assert clock_calls[-12:] == [4] * 12
    assert all(comparison[name].seconds == (0.25,) * 4 for name in "abc")


def test_report_says_where_it_was_measured(host, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OUT", str(tmp_path))
    report = harness.Report("example", host)
    report.add("row", seconds=0.123456, count=3)
    path = report.write()
    assert path == tmp_path / "example-cpu.json"
    content = json.loads(path.read_text())
    assert content["rows"] == [{"name": "row", "seconds": 0.123456, "count": 3}]
    assert {"commit", "processor", "numpy", "llvmlite", "target", "time"} <= content["environment"].keys()
    assert "seconds 0.1235  count 3" in capsys.readouterr().out


@pytest.mark.gpu
def test_copy_kernel_copies(gpu):
    assert harness.copy_bandwidth(gpu, rounds=1) > 1e9
