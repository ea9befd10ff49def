"""Where in a user's program an operation was recorded."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    """A source line. Locations never take part in equality or cache keys."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"
