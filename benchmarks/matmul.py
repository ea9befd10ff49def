"""Matrix products of halves beside torch's cuBLAS (GPU), or NumPy (host).

On a GPU the two run in turn, batch by batch, as graphs of launches: device time alone. *Burst* batches are short and follow a
rest; *sustained* ones follow one another, so that the card's power limit is felt by both alike.
"""

import importlib
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import Report, arguments, compare

import blockarray
from blockarray.fusion.plan import Product
from blockarray.kernels.matmul import DeviceProduct
from codegen import dtypes
from codegen.targets import backend
from codegen.targets.nvptx.backend import NvptxBackend

_BURST_SECONDS = 4e-3
_SUSTAINED_SECONDS = 25e-3
_ASSUMED_RATE = 6e14
_LAUNCH_SECONDS = 4e-6


@dataclass(frozen=True)
class Case:
    """A product: extents, how operands lie in memory ("N" row-major, "T" column-major), stack, dtype."""

    m: int
    n: int
    k: int
    layout: str = "NN"
    batch: int = 1
    dtype: str = "float16"

    @property
    def name(self) -> str:
        """What the row is called."""
        stack = f"{self.batch} of " if self.batch > 1 else ""
        return f"{stack}{self.m}x{self.n}x{self.k} {self.layout} {self.dtype}"

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.m * self.n * self.k


CASES = [
    *(Case(size, size, size) for size in (512, 1024, 2048, 4096, 8192, 16384)),
    *(Case(m, size, size) for size in (4096, 8192) for m in (16, 64, 128, 1024)),
    Case(8192, 8192, 1024),
    Case(4096, 11008, 4096),
    *(Case(size, size, size, layout) for size in (4096, 8192) for layout in ("NT", "TN", "TT")),
    Case(1024, 1024, 1024, batch=64),
    *(Case(size, size, size, dtype="bfloat16") for size in (4096, 8192)),
    Case(4095, 4095, 4095),
    Case(1000, 1000, 1000),
]


def on_device(device: NvptxBackend, rounds: int, only: str) -> None:
    """Rows beside torch."""
    torch = importlib.import_module("torch")  # a peer, which the host's rows do without

    stream = torch.cuda.ExternalStream(device.stream)
    report = Report("matmul", device)

    def random(case: Case, rows: int, columns: int, turned: bool) -> Any:
        shape = (columns, rows) if turned else (rows, columns)
        stack = (case.batch, *shape) if case.batch > 1 else shape
        values = torch.randn(stack, device="cuda").to(getattr(torch, case.dtype))
        return values.mT if turned else values

    def product(case: Case, a: Any, b: Any, target: Any) -> tuple[str, Callable[[], None]]:
        views = [(0, tuple(one.shape), tuple(one.stride())) for one in (a, b)]
        step = DeviceProduct(Product(0, 1, 2, dtypes.by_name(case.dtype), *views, tuple(target.shape)), device)
        memories = [device.borrow(one.data_ptr(), one.nbytes, one) for one in (a, b, target)]
        return str(step.schedule), lambda: step.run(memories)

    def graph(work: Callable[[], object], calls: int) -> Any:
        work()
        device.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured, stream=stream):
            for _ in range(calls):
                work()
        return captured

    def seconds(captured: Any, calls: int) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(stream):
            start.record(stream)
            captured.replay()
            end.record(stream)
        end.synchronize()
        return start.elapsed_time(end) / 1000 / calls

    ratios: dict[str, list[float]] = {"burst": [], "sustained": []}
    for case in CASES:
        if only not in case.name:
            continue
        a = random(case, case.m, case.k, case.layout[0] == "T")
        b = random(case, case.k, case.n, case.layout[1] == "T")
        target = torch.full((*a.shape[:-1], b.shape[-1]), math.nan, device="cuda", dtype=a.dtype)
        peer = torch.empty_like(target)
        torch.cuda.synchronize()
        schedule, ours = product(case, a, b, target)
        theirs = lambda a=a, b=b, peer=peer: torch.matmul(a, b, out=peer)  # noqa: E731
        expected = (a[..., :64, :].float() @ b.float()).double()
        values: dict[str, object] = {"schedule": schedule.split(";")[0]}
        for kind, rest, length, batches in (
            ("burst", 0.02, _BURST_SECONDS, rounds),
            ("sustained", 0.0, _SUSTAINED_SECONDS, rounds + 2),
        ):
            calls = max(1, min(400, round(length / (case.operations / _ASSUMED_RATE + _LAUNCH_SECONDS))))
            graphs = {"ours": graph(ours, calls), "cublas": graph(theirs, calls)}
            taken: dict[str, list[float]] = {"ours": [], "cublas": []}
            for number in range(batches):
                for who in ("ours", "cublas") if number % 2 else ("cublas", "ours"):
                    time.sleep(rest)
                    taken[who].append(seconds(graphs[who], calls))
            # The first sustained batches still find a cool card.
            skipped = 2 if kind == "sustained" else 0
            own, other = (statistics.median(taken[who][skipped:]) for who in ("ours", "cublas"))
            values[f"{kind}_tflops"] = case.operations / own / 1e12
            values[f"{kind}_cublas"] = case.operations / other / 1e12
            values[f"{kind}_ratio"] = other / own
            ratios[kind].append(other / own)
        errors = [float((one[..., :64, :].double() - expected).norm() / expected.norm()) for one in (target, peer)]
        values["error"], values["cublas_error"] = errors
        report.add(case.name, **values)
    for kind, found in ratios.items():
        if found:
            report.add(f"geometric mean, {kind}", ratio=statistics.geometric_mean(found), least=min(found))
    print(report.write())


def on_host(rounds: int) -> None:
    """Halves beside NumPy's own product of them, which has no BLAS."""
    report = Report("matmul", backend("cpu"))
    for size in (256, 1024):
        generator = np.random.default_rng(0)
        x, y = (generator.standard_normal((size, size)).astype(np.float16) for _ in range(2))
        a, b = blockarray.array(x), blockarray.array(y)
        rows = max(1, (1 << 22) // size**2)
        measured = compare({"ours": lambda a=a, b=b: blockarray.evaluate(a @ b)}, rounds)["ours"]
        part = compare({"numpy": lambda x=x, y=y, rows=rows: x[:rows] @ y}, 3)["numpy"]
        report.add(
            f"{size}x{size}x{size} float16", seconds=measured.best, speedup=part.best * size / rows / measured.best
        )
    print(report.write())


def main() -> None:
    """The rows of the device that the command line names."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    device = backend(options.device)
    if isinstance(device, NvptxBackend):
        on_device(device, options.rounds, options.only)
    else:
        on_host(options.rounds)


if __name__ == "__main__":
    main()
