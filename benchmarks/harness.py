"""Measuring: interleaved rounds of several candidates, medians with their spread, the machine's copy bandwidth, results as JSON.

A time alone says little on a machine that others use too. Candidates are therefore timed in turn, round by round in
random order, and compared by the ratios within each round: what slows a round down slows all of them.
"""

import argparse
import datetime
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import llvmlite
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script in this folder finds the packages beside it

from codegen.ir.kernel import Body, IndexParameter, Kernel  # noqa: E402
from codegen.ir.layout import Layout  # noqa: E402
from codegen.targets import backend  # noqa: E402
from codegen.targets.backend import Backend  # noqa: E402
from codegen.targets.nvptx.backend import NvptxBackend  # noqa: E402

Work = Callable[[], object]
Clock = Callable[[Work, int], float]
"""Seconds that so many calls of some work take."""


def host_clock(work: Work, calls: int) -> float:
    """Wall time of the calls."""
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return time.perf_counter() - start


def device_clock(device: Backend) -> Clock:
    """Time on the device: of the GPU's own clock between first and last kernel, or wall time on the host."""
    if not isinstance(device, NvptxBackend):
        return host_clock

    def measure(work: Work, calls: int) -> float:
        def repeat() -> None:
            for _ in range(calls):
                work()

        return device.seconds(repeat)

    return measure


@dataclass(frozen=True)
class Measurement:
    """Times of one candidate.

    Attributes
    ----------
    name : str
    seconds : tuple of float
        Per call, one entry for each round.
    cpu_seconds : tuple of float
        Processor time of this process per call, all threads; on a shared machine steadier than wall time.
    """

    name: str
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median seconds per call."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """Least seconds per call."""
        return min(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        return relative_spread(self.seconds)


@dataclass(frozen=True)
class Comparison:
    """Candidates that were measured in the same rounds."""

    measurements: Mapping[str, Measurement]

    def __getitem__(self, name: str) -> Measurement:
        return self.measurements[name]

    def speedups(self, name: str, over: str) -> tuple[float, ...]:
        """How many times as fast `name` was as `over`, round by round."""
        pairs = zip(self[name].seconds, self[over].seconds, strict=True)
        return tuple(base / own for own, base in pairs)

    def speedup(self, name: str, over: str) -> float:
        """Median over the rounds of how many times as fast `name` is as `over`."""
        return statistics.median(self.speedups(name, over))

    def cpu_speedup(self, name: str, over: str) -> float:
        """Like `speedup`, by processor time."""
        pairs = zip(self[name].cpu_seconds, self[over].cpu_seconds, strict=True)
        return statistics.median(base / max(own, 1e-12) for own, base in pairs)


def relative_spread(values: Sequence[float]) -> float:
    """Half the distance between the quartiles, as a share of the median; 0 for fewer than 2 values."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 2 / statistics.median(values)


def compare(
    candidates: Mapping[str, Work],
    rounds: int = 9,
    sample_seconds: float = 0.02,
    clock: Clock = host_clock,
    before: Work | None = None,
) -> Comparison:
    """Time candidates in interleaved rounds.

    Parameters
    ----------
    candidates : mapping from str to callable
    rounds : int
        Every candidate is timed once in each.
    sample_seconds : float
        A sample repeats its candidate until it lasts about this long.
    clock : callable
    before : callable, optional
        Called before each sample, outside the time: waits for a queue, flushes a cache.
    """
    settle = before if before is not None else _nothing
    calls: dict[str, int] = {}
    for name, work in candidates.items():
        work()  # compiles, allocates, faults pages in
        calls[name] = _calls_for(work, sample_seconds, clock, settle)
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    cpu_seconds: dict[str, list[float]] = {name: [] for name in candidates}
    order = list(candidates)
    shuffler = random.Random(0)
    for _ in range(rounds):
        shuffler.shuffle(order)
        for name in order:
            settle()
            cpu_start = time.process_time()
            seconds[name].append(clock(candidates[name], calls[name]) / calls[name])
            cpu_seconds[name].append((time.process_time() - cpu_start) / calls[name])
    return Comparison({name: Measurement(name, tuple(seconds[name]), tuple(cpu_seconds[name])) for name in candidates})


def _nothing() -> None:
    return


def _calls_for(work: Work, sample_seconds: float, clock: Clock, settle: Work) -> int:
    calls = 1
    while True:
        settle()
        taken = clock(work, calls)
        if taken >= sample_seconds / 4 or calls >= 1 << 20:
            return max(1, round(calls * sample_seconds / max(taken, 1e-9)))
        calls *= 4


# --- the machine's copy bandwidth, in bytes read and written per second

HOST_COPY_BYTES = 1 << 28
"""Of each array: far beyond what caches hold that belong to one machine of ours alone."""

DEVICE_COPY_BYTES = 1 << 30
_COPY_LANES = 256
_COPY_BYTES_PER_PROGRAM = _COPY_LANES * 64

# Four independent 16-byte loads for each lane before the first store: enough bytes under way to fill the memory's
# pipeline. The driver's own device-to-device copy is no ceiling, it reaches only two thirds of this.
_COPY_PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 source, .param .u64 target) .maxntid 256, 1, 1
{
  .reg .b32 %r<3>;
  .reg .b32 %a<17>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [source];
  ld.param.u64 %rd2, [target];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r1, 16384;
  mul.wide.u32 %rd4, %r2, 16;
  add.u64 %rd3, %rd3, %rd4;
  add.u64 %rd5, %rd1, %rd3;
  add.u64 %rd6, %rd2, %rd3;
  ld.global.nc.v4.b32 {%a1, %a2, %a3, %a4}, [%rd5];
  ld.global.nc.v4.b32 {%a5, %a6, %a7, %a8}, [%rd5+4096];
  ld.global.nc.v4.b32 {%a9, %a10, %a11, %a12}, [%rd5+8192];
  ld.global.nc.v4.b32 {%a13, %a14, %a15, %a16}, [%rd5+12288];
  st.global.v4.b32 [%rd6], {%a1, %a2, %a3, %a4};
  st.global.v4.b32 [%rd6+4096], {%a5, %a6, %a7, %a8};
  st.global.v4.b32 [%rd6+8192], {%a9, %a10, %a11, %a12};
  st.global.v4.b32 [%rd6+12288], {%a13, %a14, %a15, %a16};
  ret;
}
"""


def copy_bandwidth(device: Backend, rounds: int = 7) -> float:
    """Bytes per second that a large copy reads and writes on a device: the ceiling of memory-bound work."""
    return _device_copy(device, rounds) if isinstance(device, NvptxBackend) else _host_copy(rounds)


def _host_copy(rounds: int) -> float:
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    device = backend("cpu")
    memories = [device.allocate(HOST_COPY_BYTES) for _ in range(2)]
    source, target = (np.frombuffer(memory.array, np.float64) for memory in memories)  # type: ignore[attr-defined]
    target[:] = source[:] = 1.0
    bounds = np.linspace(0, source.size, threads + 1).astype(int)

    def copy() -> None:
        workers = [
            threading.Thread(target=np.copyto, args=(target[start:stop], source[start:stop]))
            for start, stop in zip(bounds[:-1], bounds[1:], strict=True)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    measured = compare({"copy": copy}, rounds, sample_seconds=0.1)["copy"]
    return 2 * HOST_COPY_BYTES / measured.median


def _device_copy(device: NvptxBackend, rounds: int) -> float:
    source, target = (device.allocate(DEVICE_COPY_BYTES) for _ in range(2))
    slots = np.array([source.address, target.address], np.int64)
    kernel = two_slot_kernel("copy", _COPY_LANES)
    run = device.load(device.link(_COPY_PTX.encode(), "copy"), "copy", lambda: kernel).bind(slots.ctypes.data)
    programs = DEVICE_COPY_BYTES // _COPY_BYTES_PER_PROGRAM
    measured = compare(
        {"copy": lambda: run(programs)},
        rounds,
        clock=device_clock(device),
        before=device.synchronize,
    )["copy"]
    return 2 * DEVICE_COPY_BYTES / measured.median


def two_slot_kernel(name: str, lanes: int) -> Kernel:
    """What `Backend.load` needs to know of a hand-written kernel with two slots."""
    from_outside = tuple(IndexParameter(parameter) for parameter in ("first", "second"))
    return Kernel(name, from_outside, (), Body((), ()), Layout((lanes,), (1,)))


# --- results


@dataclass
class Report:
    """Rows of one benchmark, printed as they come and written as JSON with where and on what they were measured.

    Parameters
    ----------
    benchmark : str
        Names the file.
    device : Backend
    """

    benchmark: str
    device: Backend
    rows: list[dict[str, object]] = field(default_factory=list)

    def add(self, name: str, **values: object) -> None:
        """Print and keep a row."""
        self.rows.append({"name": name, **values})
        print(f"{name:40} " + "  ".join(f"{key} {_shown(value)}" for key, value in values.items()), flush=True)

    def write(self) -> Path:
        """Write ``$OUT/<benchmark>-<device>.json``; by default $OUT is benchmarks/results."""
        folder = Path(os.environ.get("OUT") or ROOT / "benchmarks" / "results")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.benchmark}-{self.device.device.replace(':', '')}.json"
        content = {"benchmark": self.benchmark, "environment": environment(self.device), "rows": self.rows}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return path


def environment(device: Backend) -> dict[str, object]:
    """Where and on what a measurement was taken."""
    facts: dict[str, object] = {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "device": device.device,
        "target": device.target.cpu,
        "processor": processor_name(),
        "cores": backend("cpu").target.cores,
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "llvmlite": llvmlite.__version__,
    }
    if isinstance(device, NvptxBackend):
        facts["card"] = device.card()
        facts["driver_cuda"] = device.driver_version()
        facts["driver"] = _driver_release()
    return facts


def commit() -> str:
    """The commit that is checked out, with ``+`` if files differ from it; ``"unknown"`` outside a repository."""
    try:
        revision = _output("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD")
        changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return revision + ("+" if changed else "")


def processor_name() -> str:
    """The processor's name as its maker gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _driver_release() -> str:
    try:
        return _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark takes: ``--device`` and ``--rounds``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds")
    return parser
