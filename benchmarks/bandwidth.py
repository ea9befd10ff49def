"""The copy bandwidth of a device: the ceiling that memory-bound kernels are held against."""

from harness import Report, arguments, copy_bandwidth

from codegen.targets import backend


def main() -> None:
    """Measure, print, write."""
    options = arguments(__doc__ or "").parse_args()
    device = backend(options.device)
    report = Report("bandwidth", device)
    report.add("copy, read and written", gigabytes_per_second=copy_bandwidth(device, options.rounds) / 1e9)
    report.write()


if __name__ == "__main__":
    main()
