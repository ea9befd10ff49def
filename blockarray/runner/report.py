"""The text that ``--compare`` prints: a verdict, the differences, and a table of what the two runs cost."""

from __future__ import annotations

from collections.abc import Mapping

from blockarray.runner.agreement import Difference, Tolerance
from blockarray.runner.comparison import Comparison, Run

_SHOWN_DIFFERENCES = 12
_SHOWN_ERROR_LINES = 25


def report(comparison: Comparison, program: str, tolerance: Tolerance) -> str:
    """What a user reads after ``python -m blockarray --compare PROGRAM.py``."""
    parts = [_verdict(comparison, program, tolerance)]
    if comparison.differences:
        parts.append(_differences(comparison))
    failed = [
        text for text in map(_errors, ("NumPy", "blockarray"), (comparison.reference, comparison.substituted)) if text
    ]
    parts += failed
    parts.append(_table(comparison))
    return "\n\n".join(parts) + "\n"


def _verdict(comparison: Comparison, program: str, tolerance: Tolerance) -> str:
    compared = (
        f"{_count(comparison.lines_compared, 'line')} of output and "
        f"{_count(comparison.values_compared, 'value')} left in its globals, "
        f"numbers to {tolerance.relative:g} relative"
    )
    if comparison.differences:
        places = _count(len(comparison.differences), "place")
        return f"{program}: NumPy and blockarray DISAGREE at {places} ({compared})"
    if comparison.reference.exit_code:
        # Nothing after the failure was compared: that both fail the same way says little of the program.
        return (
            f"{program}: the program FAILS, under NumPy as under blockarray; until then they agree ({compared})\n"
            f"The end of both: {comparison.reference.ending()}"
        )
    return f"{program}: NumPy and blockarray agree ({compared})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _differences(comparison: Comparison) -> str:
    shown = [_difference(difference) for difference in comparison.differences[:_SHOWN_DIFFERENCES]]
    more = len(comparison.differences) - len(shown)
    if more:
        shown.append(f"... and {more} more")
    if not comparison.repeatable:
        shown.append(
            "Two runs under NumPy disagree as well: the program is not repeatable. Does it print the time, or draw\n"
            "random numbers without a seed? Lines of output can be left out with --ignore."
        )
    return "\n".join(shown)


def _difference(difference: Difference) -> str:
    remark = f" ({difference.remark})" if difference.remark else ""
    return f"{difference.place}{remark}\n    NumPy       {difference.expected}\n    blockarray  {difference.found}"


def _errors(name: str, run: Run) -> str:
    if run.exit_code == 0:
        return ""
    lines = run.error_output.splitlines()
    if not lines:
        return ""
    kept = lines[-_SHOWN_ERROR_LINES:]
    head = f"Standard error under {name}" + (f", last {len(kept)} lines:" if len(kept) < len(lines) else ":")
    return "\n".join([head, *(f"    {line}" for line in kept)])


def _table(comparison: Comparison) -> str:
    before, after = comparison.reference.record, comparison.substituted.record
    rows = [("", "NumPy", "blockarray", "")]
    ratio = (
        f"{before.seconds / after.seconds:.2f} times NumPy's speed" if before and after and after.seconds > 0 else ""
    )
    rows.append(("time", _seconds(before.seconds) if before else "-", _seconds(after.seconds) if after else "-", ratio))
    if after is not None and after.statistics:
        rows += [(name, "-", text, remark) for name, text, remark in _costs(after.statistics)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows]
    lines.insert(1, "-" * (sum(widths) + 4))
    return "\n".join(lines)


def _costs(statistics: Mapping[str, int]) -> list[tuple[str, str, str]]:
    moved = statistics["bytes_read"] + statistics["bytes_written"]
    split = f"read {_bytes(statistics['bytes_read'])}, written {_bytes(statistics['bytes_written'])}"
    compiled = f"{_count(statistics['plans'], 'plan')} made, {_count(statistics['compiled'], 'kernel')} compiled"
    return [
        ("kernels launched", f"{statistics['kernels']:,}", compiled),
        ("bytes moved", _bytes(moved), split),
        (
            "temporaries avoided",
            f"{statistics['temporaries_avoided']:,}",
            _bytes(statistics["temporary_bytes_avoided"]),
        ),
    ]


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 0.1 else f"{seconds * 1e3:.2f} ms"


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
