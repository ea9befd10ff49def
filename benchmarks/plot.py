"""Draw the results that lie in benchmarks/results (or in the folder that is given) as the pictures of docs/performance.md."""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # the backend is chosen first

ROOT = Path(__file__).resolve().parent.parent
RESULTS, IMAGES = ROOT / "benchmarks" / "results", ROOT / "docs" / "images"


def place_of(environment: dict[str, Any]) -> str:
    """On what and from which commit results are."""
    card = environment.get("card") or f"{environment['processor']}, {environment['cores']} cores"
    return f"{card}; commit {environment['commit']}, {environment['time'][:10]}"


def draw_sweep(content: dict[str, Any], path: Path) -> None:
    """One line for each dtype, one axis for each expression."""
    rows = [row for row in content["rows"] if "length" in row]
    expressions = list(dict.fromkeys(row["expression"] for row in rows))
    figure, axes = pyplot.subplots(1, len(expressions), figsize=(5.5 * len(expressions), 4), squeeze=False)
    for axis, expression in zip(axes[0], expressions, strict=True):
        chosen = [row for row in rows if row["expression"] == expression]
        for dtype in dict.fromkeys(row["dtype"] for row in chosen):
            line = [row for row in chosen if row["dtype"] == dtype]
            lengths, speeds = [row["length"] for row in line], [row["gigabytes_per_second"] for row in line]
            axis.plot(lengths, speeds, marker=".", linewidth=1, label=dtype)
        axis.set(xscale="log", yscale="log", xlabel="elements in a row", ylabel="GB/s", title=f"{expression} of rows")
        axis.grid(True, which="both", alpha=0.25)
        axis.legend()
    save(figure, content, path)


def draw_rows(content: dict[str, Any], path: Path) -> None:
    """Bars: how many times as fast as the peers, or the share of the copy bandwidth where there is no peer."""
    rows = [row for row in content["rows"] if "of_copy" in row]
    measures = [name for name in ("over_numpy", "over_numexpr", "over_numba") if any(name in row for row in rows)]
    measures = measures or ["of_copy"]
    figure, axis = pyplot.subplots(figsize=(8, 0.34 * len(rows) * max(1, len(measures) * 0.6) + 1.2))
    height = 0.8 / len(measures)
    for number, measure in enumerate(measures):
        places = [place + number * height for place in range(len(rows))]
        axis.barh(places, [row.get(measure, 0.0) for row in rows], height, label=measure.replace("_", " "))
    axis.axvline(1.0, color="black", linewidth=0.8)
    axis.set_yticks([place + 0.4 - height / 2 for place in range(len(rows))], [row["name"] for row in rows])
    axis.invert_yaxis()
    if measures != ["of_copy"]:
        axis.set_xscale("log")
    axis.set_xlabel("times as fast" if measures != ["of_copy"] else "share of the copy bandwidth")
    axis.grid(True, axis="x", alpha=0.25)
    axis.legend()
    save(figure, content, path)


def save(figure: Any, content: dict[str, Any], path: Path) -> None:
    """Write an SVG that is the same for the same results."""
    figure.suptitle(place_of(content["environment"]), fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    print(path)


DRAWN = {"sweep": draw_sweep, "elementwise": draw_rows, "reductions": draw_rows}


def main() -> None:
    """Draw everything that is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--images", type=Path, default=IMAGES)
    options = parser.parse_args()
    matplotlib.rcParams["svg.hashsalt"] = "blockarray"
    for file in sorted(options.results.glob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        draw = DRAWN.get(content["benchmark"])
        if draw is not None:
            draw(content, options.images / f"{file.stem}.svg")


if __name__ == "__main__":
    main()
