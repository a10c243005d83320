"""Timing side by side: medians, ratios, tables.  Shared by the benchmark scripts."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

# One thread for everybody; it only helps if this module is imported before numpy.
_TOO_LATE = "numpy" in sys.modules and os.environ.get("OMP_NUM_THREADS") != "1"
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


NORMS = {"fro": "Frobenius", "nuc": "nuclear"}


@dataclass
class Row:
    """One line of a table: what was done, by whom, in how many (median) seconds of processor time.

    `ratio` is the median of this way's time over attsvm's, measured in turns; `accuracy` what the
    answer is worth, in words with a number; `target` what was to be reached, and whether it was.
    """

    work: str
    who: str
    seconds: float
    ratio: float | None = None
    accuracy: str = ""
    target: str = ""
    reached: bool | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def beside(self, ratio: float, goal: float | None) -> Row:
        """The same with its ratio to attsvm's time, and whether that reaches a goal."""
        target, reached = ("", None) if goal is None else (f"≥ {goal:g} ×", ratio >= goal)
        return replace(self, ratio=ratio, target=target, reached=reached)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds and result of one call.

    With one thread that is the wall time of a quiet machine, and what else the machine does is
    left out.
    """
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def in_turns(
    ways: dict[str, Callable[[Any], Any]], items: Sequence[Any]
) -> tuple[dict[str, list[float]], dict[str, list[Any]]]:
    """Time every way on every item, item by item, so that a slow moment of the machine hits all.

    The first item is run once beforehand and not counted: imports are nobody's work.  A way is
    repeated on an item until 20 ms have passed and its median counts, as `timeit` would do: a
    single call of 200 µs measures the caches that its predecessor left behind.

    Returns times and results, by way, in the order of the items.
    """
    for way in ways.values():
        way(items[0])
    times: dict[str, list[float]] = {name: [] for name in ways}
    results: dict[str, list[Any]] = {name: [] for name in ways}
    for item in items:
        for name, way in ways.items():
            spent: list[float] = []
            while sum(spent) < 0.02:
                seconds, result = timed(lambda way=way, item=item: way(item))
                spent.append(seconds)
            times[name].append(statistics.median(spent))
            results[name].append(result)
    return times, results


def median_ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """Median over the items of slow/fast: both were measured in the same moment."""
    return statistics.median(s / f for s, f in zip(slow, fast, strict=True))


def growth(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Exponent e of seconds ≈ c·size^e by least squares in logarithms."""
    import numpy as np

    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    packages = ("numpy", "scipy", "cvxpy", "clarabel", "torch")
    return {
        "processor": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "one thread": not _TOO_LATE,
        "versions": {name: version(name) for name in packages},
    }


def duration(seconds: float) -> str:
    """A time with a unit that suits it."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g}\u00a0{unit}"
    return f"{seconds:.3g}\u00a0s"


def table(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table."""
    head = ("work", "way", "median", "ratio", "accuracy", "to reach", "")
    lines = [
        (
            row.work,
            row.who,
            duration(row.seconds),
            "" if row.ratio is None else f"{row.ratio:.3g}\u00a0×",
            row.accuracy,
            row.target,
            {None: "", True: "reached", False: "missed"}[row.reached],
        )
        for row in rows
    ]
    return markdown([head, tuple("---" for _ in head), *lines])


def markdown(lines: Iterable[Iterable[str]]) -> str:
    """Lines of a Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(path: Path, name: str, **content: Any) -> None:
    """What was measured, and the machine, as JSON."""
    record = {"name": name, "machine": machine(), **content}
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def peak_memory() -> int:
    """The most bytes that this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def in_its_own_process(script: str, *options: Any) -> Any:
    """What a script prints as JSON in a process of its own, where memory starts from nothing."""
    command = [sys.executable, str(Path(script).resolve()), *map(str, options)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main(text: str, name: str, run: Callable[[bool], Sequence[Row]]) -> None:
    """The command line of a script that measures rows: run it, print and write them."""
    parser = argparse.ArgumentParser(description=text.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer instances, no growth rows")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    with warnings.catch_warnings():
        # cvxpy warns of its own inaccurate solutions; the table states the excess instead.
        warnings.simplefilter("ignore")
        rows = run(options.quick)
    print(table(rows))
    if options.json:
        write(options.json, name, rows=[asdict(row) for row in rows])
