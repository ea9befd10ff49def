"""What ran so far, for people: totals, and a log of kernels."""

from blockarray.execution.statistics import RunStatistics
from blockarray.execution.statistics import run as _run
from codegen.compiler import statistics as _compiler


def statistics_of_run() -> RunStatistics:
    """Totals of this process: kernels, bytes moved, temporaries avoided, plans made.

    Examples
    --------
    >>> import blockarray as np
    >>> before = np.statistics_of_run().kernels
    >>> np.evaluate(np.arange(3) + 1)
    >>> np.statistics_of_run().kernels - before
    1
    """
    found = _run.snapshot()
    found.compiled = _compiler.compiled
    return found


def kernel_log(enabled: bool) -> None:
    """Keep a text of each evaluation's kernels from now on (or stop and forget them)."""
    _run.log = [] if enabled else None


def explain_run() -> str:
    """The kernels that ran since `kernel_log(True)`, in order."""
    return "\n".join(_run.log or [])
