"""Bandwidth over the length of rows: one total of elements, cut into rows of 1 to 1 000 000, for several dtypes.

A schedule changes with the length of a row and with what divides it. A point far below both of its neighbours is a length at
which it was chosen badly.
"""

import numpy as np
from harness import Report, arguments, compare, copy_bandwidth, device_clock
from rows import kernels_of

import blockarray
from codegen.targets import backend
from codegen.targets.backend import Backend

HOST_ELEMENTS, DEVICE_ELEMENTS = 1 << 21, 1 << 26
LENGTHS = (1, 2, 3, 5, 7, 8, 12, 16, 25, 31, 32, 48, 64, 65, 100, 127, 128, 129, 200, 250, 256, 300, 500, 512, 777)
LENGTHS += (1000, 1024, 1025, 1500, 2000, 2048, 3000, 4096, 4097, 6000, 8192, 10_000, 16_384, 20_000, 32_768, 50_000)
LENGTHS += (65_536, 100_000, 131_072, 200_000, 262_144, 500_000, 524_288, 1_000_000)


def softmax(x):
    """Over rows."""
    powers = blockarray.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def total(x):
    """Over rows."""
    return x.sum(axis=1)


EXPRESSIONS = {
    "softmax": (softmax, ("float16", "float32", "float64")),
    "sum": (total, ("float16", "float32", "float64", "int64")),
}


def beside_neighbours(values: list[float]) -> list[float]:
    """Each value over the lower one of its neighbours: below 1 only in a dip."""
    found = []
    for place, value in enumerate(values):
        beside = values[max(0, place - 1) : place] + values[place + 1 : place + 2]
        found.append(value / min(beside) if beside else 1.0)
    return found


def rows_of(values: blockarray.ndarray, length: int) -> blockarray.ndarray:
    """As many rows of this length as there are."""
    rows = values.size // length
    return values[: rows * length].reshape(rows, length)


def bandwidths(
    results: list[blockarray.ndarray], values: blockarray.ndarray, device: Backend, rounds: int
) -> list[float]:
    """Bytes a second, each input and output counted once, that the kernels of each result reach.

    All are timed in turn, and the least time of each counts: what else the machine did is not that length's fault.
    """
    launches = {str(place): kernels_of(result) for place, result in enumerate(results)}
    measured = compare(launches, rounds, sample_seconds=0.003, clock=device_clock(device), before=device.synchronize)
    moved = [values.nbytes + result.nbytes for result in results]
    return [size / measured[str(place)].best for place, size in enumerate(moved)]


def main() -> None:
    """Measure, print, write."""
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--only", default="", help="expressions and dtypes whose name contains this, such as 'sum float32'"
    )
    options = parser.parse_args()
    device = backend(options.device)
    on_host = options.device == "cpu"
    elements = HOST_ELEMENTS if on_host else DEVICE_ELEMENTS
    report = Report("sweep", device)
    bandwidth = copy_bandwidth(device)
    report.add("copy", gigabytes_per_second=bandwidth / 1e9)
    generator = np.random.default_rng(0)
    blockarray.set_device(options.device)
    for name, (expression, dtypes) in EXPRESSIONS.items():
        for dtype in dtypes:
            if options.only not in f"{name} {dtype}":
                continue
            values = blockarray.array((generator.standard_normal(elements) * 4).astype(dtype))
            reached = bandwidths(
                [expression(rows_of(values, length)) for length in LENGTHS], values, device, options.rounds
            )
            for length, speed, beside in zip(LENGTHS, reached, beside_neighbours(reached), strict=True):
                report.add(
                    f"{name} {dtype} {length}",
                    expression=name,
                    dtype=dtype,
                    length=length,
                    gigabytes_per_second=speed / 1e9,
                    of_copy=speed / bandwidth,
                    of_neighbours=beside,
                )
    report.write()


if __name__ == "__main__":
    main()
