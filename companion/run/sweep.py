"""A grid of runs of one chapter: its points, their processes, the table and page that join them."""

from __future__ import annotations

import html
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attsvm import records
from attsvm.claims import plain
from attsvm.errors import ArgumentError
from companion.run import page, parameters, single
from companion.run.parameters import Parameter, shown

__all__ = ["Point", "points", "run_all", "write_index", "write_table"]

# More runs than this are a slip of the keyboard.
MOST = 10_000


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Attributes
    ----------
    chosen
        The values of the parameters that the sweep varies or sets.
    values
        Those of all parameters.
    folder
        Where the run lies.
    """

    chosen: Mapping[str, Any]
    values: Mapping[str, Any]
    folder: Path

    @property
    def record(self) -> dict[str, Any] | None:
        """Content of ``run.json``; None if the run is not finished."""
        path = self.folder / single.RECORD
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def __str__(self) -> str:
        return ", ".join(f"{name} = {shown(value)}" for name, value in self.chosen.items())


def points(
    known: Sequence[Parameter],
    texts: Mapping[str, str],
    file: Mapping[str, Any],
    profile: str,
    folder: Path,
) -> list[Point]:
    """The points of a grid, the last parameter varying fastest; all are checked.

    Parameters
    ----------
    known
        The chapter's parameters.
    texts
        Values by name as the command line gives them: commas separate runs, for a parameter that is
        a list semicolons.
    file
        Values by name from a file: a list of values, or one value for all runs.
    profile
        What the other parameters take.
    folder
        The sweep's folder.

    Raises
    ------
    ArgumentError
        If a name is unknown, a value is out of range in combination with the others, a point occurs
        twice, or there are more than 10 000.
    """
    by_name = {parameter.name: parameter for parameter in known}
    axes: dict[str, list[Any]] = {}
    for name, value in file.items():
        axes[name] = _values(by_name.get(name), value)
    for name, text in texts.items():
        parameter = by_name.get(name)
        axes[name] = parameters.parse(parameter, text) if parameter else [text]
    size = 1
    for values in axes.values():
        size *= len(values)
    if size > MOST:
        raise ArgumentError("-p", f"a grid of at most {MOST} runs", str(size))
    found: dict[Path, Point] = {}
    for combination in itertools.product(*axes.values()):
        given = dict(zip(axes, combination, strict=True))
        complete = parameters.check(known, given, profile)
        chosen = {name: complete[name] for name in axes}
        point = Point(chosen, complete, folder / "runs" / (single.slug(chosen) or "standard"))
        if point.folder in found:
            raise ArgumentError("-p", "each point once", f"{point} twice")
        found[point.folder] = point
    return list(found.values())


def _values(parameter: Parameter | None, value: Any) -> list[Any]:
    """What a file gives for one parameter, as the values of an axis."""
    if parameter is None or not isinstance(value, list):
        return [value]
    if not value:
        raise ArgumentError(parameter.name, "at least one value", "none")
    nested = isinstance(value[0], list)
    return value if nested or not parameter.is_list else [value]


def run_all(command: Sequence[str], todo: Sequence[Point], jobs: int) -> dict[Path, str]:
    """Give each point a process of `attsvm run`, which answers at once if the run is finished.

    Parameters
    ----------
    command
        Of the run, less parameters and folder.
    todo
        The points.
    jobs
        How many run at the same time.

    Returns
    -------
    dict
        What the points that failed said, by folder.
    """
    waiting = list(todo)
    running: list[tuple[Point, subprocess.Popen[bytes], Path]] = []
    failed: dict[Path, str] = {}
    done = 0
    with tempfile.TemporaryDirectory() as scratch:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    point = waiting.pop(0)
                    running.append((point, *_start(command, point, Path(scratch))))
                time.sleep(0.05)
                for item in [item for item in running if item[1].poll() is not None]:
                    running.remove(item)
                    point, process, log = item
                    said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                    done += 1
                    state = "done"
                    # A verdict that is not the registered one is a finding, not a failure.
                    if process.returncode != 0 and point.record is None:
                        errors = [line for line in said if line.startswith("attsvm: ")]
                        words = (errors or said[-1:] or ["no word of why"])[-1]
                        failed[point.folder] = words.removeprefix("attsvm: ")
                        state = f"FAILED: {failed[point.folder]}"
                    print(f"{done}/{len(todo)}  {point}: {state}", file=sys.stderr, flush=True)
        finally:
            for _, process, _ in running:
                process.terminate()
            for _, process, _ in running:
                process.wait()
    return failed


def _start(
    command: Sequence[str], point: Point, scratch: Path
) -> tuple[subprocess.Popen[bytes], Path]:
    file = scratch / f"{point.folder.name}.json"
    file.write_text(json.dumps(dict(point.chosen)), encoding="utf-8")
    log = file.with_suffix(".log")
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*command, "--params", str(file), "--output", str(point.folder)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the sweep, which then ends its runs.
            start_new_session=True,
        )
    return process, log


def write_table(path: Path, known: Sequence[Parameter], done: Sequence[Point]) -> None:
    """All measured claims of a sweep as one tidy CSV: parameters, claim, side, numbers, verdict."""
    rows = []
    for point in done:
        record = point.record
        if record is not None:
            values = {name: shown(value) for name, value in record["parameters"].items()}
            rows += [(values, row) for row in single.claim_rows(record)]
    single.write_table(path, [parameter.name for parameter in known], rows)


def write_index(
    path: Path, chapter: str, done: Sequence[Point], failed: Mapping[Path, str]
) -> None:
    """The page that links the runs and shows each claim over the grid.

    Parameters
    ----------
    path
        The page.
    chapter
        The chapter's id.
    done
        All points.
    failed
        What went wrong, by folder.
    """
    names = list(done[0].chosen) if done else []
    claims: dict[str, str] = {}
    for point in done:
        for claim in (point.record or {"claims": []})["claims"]:
            claims[claim["id"]] = claim["statement"]
    head = "".join(f'<th scope="col"><code>{html.escape(name)}</code></th>' for name in names)
    parts = [
        f"<h1>Sweep of {html.escape(chapter)}</h1>",
        f"<p>{len(done)} runs; all measured numbers are in "
        '<a href="claims.csv">claims.csv</a>.</p>',
        "<h2>Runs</h2>",
        f'<table><thead><tr>{head}<th scope="col">Run</th><th scope="col">Verdicts</th></tr>'
        "</thead><tbody>",
        *(_run_row(point, path.parent, failed) for point in done),
        "</tbody></table>",
    ]
    for name, statement in claims.items():
        parts += [
            f"<h2>{html.escape(name)}</h2><p>{html.escape(plain(statement))}</p>",
            f'<table><thead><tr>{head}<th scope="col">Certified</th>'
            '<th scope="col">As published</th><th scope="col">Verdict</th></tr></thead><tbody>',
            *(_claim_row(point, name) for point in done),
            "</tbody></table>",
        ]
    text = page.document(f"Sweep of {chapter}", "\n".join(parts))
    records.write_bytes(path, text.encode())


def _cells(point: Point) -> str:
    return "".join(
        f'<td class="number">{html.escape(shown(value))}</td>' for value in point.chosen.values()
    )


def _run_row(point: Point, home: Path, failed: Mapping[Path, str]) -> str:
    record = point.record
    if record is None or point.folder in failed:
        said = failed.get(point.folder, "not finished")
        link, verdicts = "–", f'<span class="changed">{html.escape(said)}</span>'
    else:
        target = Path(os.path.relpath(point.folder / record["main"], home)).as_posix()
        link = f'<a href="{html.escape(target)}">{html.escape(record["main"])}</a>'
        words = [claim["verdict"] for claim in record["claims"]]
        counts = {word: words.count(word) for word in dict.fromkeys(words)}
        verdicts = ", ".join(f"{count} × {word}" for word, count in counts.items()) or "no claims"
    return f"<tr>{_cells(point)}<td>{link}</td><td>{verdicts}</td></tr>"


def _claim_row(point: Point, name: str) -> str:
    record = point.record or {"claims": []}
    claim = next((claim for claim in record["claims"] if claim["id"] == name), None)
    if claim is None:
        return f'<tr>{_cells(point)}<td colspan="3">not measured</td></tr>'
    sides = [
        "–" if claim[side] is None else page.estimate(claim[side])
        for side in ("certified", "as_published")
    ]
    cells = "".join(f'<td class="number">{html.escape(side)}</td>' for side in sides)
    return f"<tr>{_cells(point)}{cells}<td>{html.escape(claim['verdict'])}</td></tr>"
