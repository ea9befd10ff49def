"""What ran: counters and a log of kernels, for people and for tests."""

from dataclasses import dataclass, field, replace


@dataclass
class RunStatistics:
    """Totals of this process.

    Attributes
    ----------
    kernels : int
        Kernels launched, library products included.
    bytes_read, bytes_written : int
        By those kernels, each distinct element once.
    temporaries_avoided : int
        Recorded intermediate arrays that no memory was made for.
    temporary_bytes_avoided : int
        Their bytes.
    plans : int
        Recordings that had to be partitioned.
    replays : int
        Evaluations whose plan was known.
    transfers, transfer_bytes : int
        Copies between host and device, explicit or not.
    """

    kernels: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    temporaries_avoided: int = 0
    temporary_bytes_avoided: int = 0
    plans: int = 0
    replays: int = 0
    transfers: int = 0
    transfer_bytes: int = 0
    compiled: int = 0
    log: list[str] | None = field(default=None, repr=False)

    def snapshot(self) -> "RunStatistics":
        """A copy that no longer changes."""
        return replace(self, log=None)


run = RunStatistics()
