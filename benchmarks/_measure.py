"""Timing side by side: medians, ratios, tables.  Shared by the benchmark scripts."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

# One thread for everybody; it only helps if this module is imported before numpy.
_TOO_LATE = "numpy" in sys.modules and os.environ.get("OMP_NUM_THREADS") != "1"
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


@dataclass
class Row:
    """One line of a table.

    Parameters
    ----------
    work
        What was done.
    who
        "attsvm" or the name of the other way.
    seconds
        Median processor time of one piece of work.
    ratio
        Median of the other way's time over attsvm's, measured in turns; None for attsvm itself.
    accuracy
        What the answer is worth, in words with a number.
    target
        The ratio or time to reach, in words; "" if none.
    reached
        Whether it was; None if there is no target.
    """

    work: str
    who: str
    seconds: float
    ratio: float | None = None
    accuracy: str = ""
    target: str = ""
    reached: bool | None = None
    more: dict[str, Any] = field(default_factory=dict)


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

    Returns
    -------
    times, results
        By way, in the order of the items.
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
    lines = [head, tuple("---" for _ in head)]
    for row in rows:
        lines.append(
            (
                row.work,
                row.who,
                duration(row.seconds),
                "" if row.ratio is None else f"{row.ratio:.3g}\u00a0×",
                row.accuracy,
                row.target,
                {None: "", True: "reached", False: "missed"}[row.reached],
            )
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(path: str | Path, name: str, rows: Sequence[Row]) -> None:
    """Rows and machine as JSON."""
    record = {"name": name, "machine": machine(), "rows": [asdict(row) for row in rows]}
    Path(path).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
