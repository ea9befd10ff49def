"""What recording, replaying and compiling cost: microseconds an operation, a known chain, a new kernel."""

import time

import numpy as np
from harness import Report, arguments, compare

import blockarray
from blockarray.execution.plan_cache import forget_plans
from blockarray.execution.statistics import run as statistics
from codegen import settings
from codegen.compiler import forget_kernels
from codegen.targets import backend


def chain(xp, x, shift=0.5):
    """Ten operations."""
    y = x * 2.0 + shift
    y = y * y - x
    y = abs(y) + 1.0
    y = xp.sqrt(y) / 3.0
    return (y - x) * 0.25


def main() -> None:
    """Measure, print, write."""
    options = arguments(__doc__ or "").parse_args()
    device = backend(options.device)
    blockarray.set_device(options.device)
    report = Report("overhead", device)
    values = np.random.default_rng(0).standard_normal(1000)
    x = blockarray.array(values)
    blockarray.evaluate(x)

    def record() -> None:
        x + x

    def record_number() -> None:
        x * 2.0

    measured = compare({"x + x": record, "x * 2.0": record_number}, options.rounds)
    for name in ("x + x", "x * 2.0"):
        report.add(f"recording {name}", microseconds=measured[name].median * 1e6, spread=measured[name].spread)

    def replay() -> None:
        blockarray.evaluate(chain(blockarray, x))

    def add() -> None:
        blockarray.evaluate(x + x)

    replay()
    add()
    plans = statistics.plans
    measured = compare(
        {
            "10 operations": replay,
            "10 operations, numpy": lambda: chain(np, values),
            "x + x": add,
            "x + x, numpy": lambda: values + values,
        },
        options.rounds,
    )
    if statistics.plans != plans:
        raise SystemExit("a structure that was seen before was partitioned again")
    for name, one in measured.measurements.items():
        report.add(f"on 1000 elements: {name}", microseconds=one.median * 1e6, spread=one.spread)

    milliseconds = []
    with settings.override(cache=False):
        for _ in range(15):
            expression = chain(blockarray, x)
            forget_kernels()
            forget_plans()
            start = time.perf_counter()
            blockarray.evaluate(expression)
            blockarray.synchronize()
            milliseconds.append((time.perf_counter() - start) * 1e3)
    report.add("a new kernel of 10 operations", milliseconds=float(np.median(milliseconds[1:])))
    report.write()


if __name__ == "__main__":
    main()
