"""A benchmark row: one expression on float32 arrays, under NumPy, its compilers and blockarray, in interleaved rounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from harness import Report, arguments, compare, copy_bandwidth, device_clock
from peers import peers_of

import blockarray
from blockarray.execution.evaluate import run_plan
from blockarray.execution.plan_cache import find_plan
from blockarray.graph.recording import linearize
from codegen.targets import backend


@dataclass(frozen=True)
class Row:
    """One expression.

    Attributes
    ----------
    name : str
    expression : callable
        ``expression(xp, *arrays)``.
    arrays : int
        Inputs, all of one shape.
    traffic : float
        Arrays of that shape that must be moved at least: inputs once, outputs once.
    host, device : int
        Elements (1-d); 0 leaves the row out there.
    shape, host_shape : tuple of int
        Instead of `host` and `device`, for arrays of more axes.
    """

    name: str
    expression: Callable[..., Any]
    traffic: float
    arrays: int = 1
    host: int = 0
    device: int = 0
    shape: tuple[int, ...] = ()
    host_shape: tuple[int, ...] = ()

    def extents(self, on_host: bool) -> tuple[int, ...]:
        """The arrays' shape on a kind of device."""
        if on_host and self.host_shape:
            return self.host_shape
        size = self.host if on_host else self.device
        return self.shape or ((size,) if size else ())


def kernels_of(array: blockarray.ndarray) -> Callable[[], None]:
    """The kernels that evaluating `array` launches, to be launched again on the same memory."""
    recording = linearize((array._cell.node,))
    plan = find_plan(recording, array._cell.node.device)
    # By hand: `evaluate` would store small values that this recording still holds, by another plan.
    run_plan(plan, recording.roots, recording.leaves)

    def launch() -> None:
        for step in plan.steps:
            step.run(step.programs, step.parallel)  # type: ignore[union-attr]  # the rows have no library products

    return launch


_DRAWN = 1 << 22


def normal_numbers(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal random numbers; large arrays repeat some millions of them, as drawing them all takes longer than measuring."""
    return np.resize(generator.standard_normal(min(_DRAWN + 7, prod(shape)), np.float32), shape)


def run(benchmark: str, description: str | None, rows: Sequence[Row]) -> None:
    """Measure rows on the device that the command line names, print them and write them."""
    parser = arguments(description or "")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    device = backend(options.device)
    on_host = options.device == "cpu"
    report = Report(benchmark, device)
    bandwidth = copy_bandwidth(device)
    report.add("copy", gigabytes_per_second=bandwidth / 1e9)
    generator = np.random.default_rng(0)
    blockarray.set_device(options.device)
    for row in rows:
        shape = row.extents(on_host)
        if not shape or options.only not in row.name:
            continue
        inputs = [normal_numbers(generator, shape) for _ in range(row.arrays)]
        ours = [blockarray.array(one) for one in inputs]

        def fused(row: Row = row, ours: list = ours) -> None:
            blockarray.evaluate(row.expression(blockarray, *ours))

        moved = row.traffic * inputs[0].nbytes
        kernels = len(blockarray.explain(row.expression(blockarray, *ours)).kernels)
        if on_host:

            def plain(row: Row = row, inputs: list = inputs) -> None:
                row.expression(np, *inputs)

            peers = peers_of(row.name, inputs)
            measured = compare({"blockarray": fused, "numpy": plain, **peers}, options.rounds, sample_seconds=0.05)
            own = measured["blockarray"]
            report.add(
                row.name,
                milliseconds=own.median * 1e3,
                spread=own.spread,
                of_copy=moved / own.median / bandwidth,
                over_numpy=measured.speedup("blockarray", "numpy"),
                **{f"over_{name}": measured.speedup("blockarray", name) for name in peers},
                kernels=kernels,
            )
            continue
        candidates = {"kernels": kernels_of(row.expression(blockarray, *ours)), "evaluated": fused}
        measured = compare(candidates, options.rounds, clock=device_clock(device))
        own = measured["kernels"]
        # Recording and launching take longer than the kernels of a small row: both are shown.
        report.add(
            row.name,
            milliseconds=own.median * 1e3,
            spread=own.spread,
            of_copy=moved / own.median / bandwidth,
            evaluated_milliseconds=measured["evaluated"].median * 1e3,
            kernels=kernels,
        )
    report.write()
