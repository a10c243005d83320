"""A grid of runs of one chapter: its points, their processes, the table and page that join them."""

from __future__ import annotations

import html
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from attsvm import records
from attsvm.claims import plain
from attsvm.errors import ArgumentError
from companion.run import page, parameters
from companion.run.parameters import Parameter, shown
from companion.run.single import RECORD
from companion.run.tables import claim_rows, html_table, write_claims

__all__ = ["Point", "points", "run_all", "write_index", "write_table"]

# More runs than this are a slip of the keyboard.
MOST = 10_000


@dataclass(frozen=True)
class Point:
    """One run of a sweep: the values that it varies or sets, and the folder where it lies."""

    chosen: Mapping[str, Any]
    folder: Path

    @property
    def record(self) -> dict[str, Any] | None:
        """Content of ``run.json``; None if the run is not finished."""
        path = self.folder / RECORD
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
    axes = {name: _values(by_name.get(name), value) for name, value in file.items()}
    for name, text in texts.items():
        parameter = by_name.get(name)
        axes[name] = parameters.parse(parameter, text) if parameter else [text]
    size = math.prod(map(len, axes.values()))
    if size > MOST:
        raise ArgumentError("-p", f"a grid of at most {MOST} runs", str(size))
    found: dict[Path, Point] = {}
    for combination in itertools.product(*axes.values()):
        given = dict(zip(axes, combination, strict=True))
        complete = parameters.check(known, given, profile)
        chosen = {name: complete[name] for name in axes}
        point = Point(chosen, folder / "runs" / (parameters.slug(chosen) or "standard"))
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
    failed: dict[Path, str] = {}
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(_failure, command, point): point for point in todo}
        try:
            for number, ended in enumerate(as_completed(running), start=1):
                point, said = running[ended], ended.result()
                if said:
                    failed[point.folder] = said
                state = f"FAILED: {said}" if said else "done"
                print(f"{number}/{len(todo)}  {point}: {state}", file=sys.stderr, flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in psutil.Process().children():
                child.terminate()
            raise
    return failed


def _failure(command: Sequence[str], point: Point) -> str:
    """Run one point; why it failed, in a line, or nothing."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
        json.dump(dict(point.chosen), file)
        file.flush()
        done = subprocess.run(
            [*command, "--params", file.name, "--output", str(point.folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            # Ctrl-C is for the sweep, which then ends its runs.
            start_new_session=True,
        )
    # A verdict that is not the registered one is a finding, not a failure.
    if done.returncode == 0 or point.record is not None:
        return ""
    said = done.stdout.strip().splitlines()
    errors = [line for line in said if line.startswith("attsvm: ")]
    return (errors or said[-1:] or ["no word of why"])[-1].removeprefix("attsvm: ")


def write_table(path: Path, known: Sequence[Parameter], done: Sequence[Point]) -> None:
    """All measured claims of a sweep as one tidy CSV: parameters, claim, side, numbers, verdict."""
    rows = [
        {name: shown(value) for name, value in record["parameters"].items()} | row
        for point in done
        if (record := point.record) is not None
        for row in claim_rows(record)
    ]
    write_claims(path, rows, [parameter.name for parameter in known])


def write_index(
    path: Path, chapter: str, done: Sequence[Point], failed: Mapping[Path, str]
) -> None:
    """The page that links the runs and shows each claim over the grid; failures by folder."""
    names = list(done[0].chosen) if done else []
    claims: dict[str, str] = {}  # statements by id
    runs: list[list[str]] = []
    for point in done:
        record = point.record
        if record is None or point.folder in failed:
            said = html.escape(failed.get(point.folder, "not finished"))
            cells = ["–", f'<span class="changed">{said}</span>']
        else:
            claims |= {claim["id"]: claim["statement"] for claim in record["claims"]}
            target = Path(os.path.relpath(point.folder / record["main"], path.parent)).as_posix()
            link = f'<a href="{html.escape(target)}">{html.escape(record["main"])}</a>'
            counts = Counter(claim["verdict"] for claim in record["claims"])
            verdicts = ", ".join(f"{count} × {word}" for word, count in counts.items())
            cells = [link, verdicts or "no claims"]
        runs.append([*map(html.escape, map(shown, point.chosen.values())), *cells])
    parts = [
        f"<h1>Sweep of {html.escape(chapter)}</h1>",
        f"<p>{len(done)} runs; all measured numbers are in "
        '<a href="claims.csv">claims.csv</a>.</p>',
        "<h2>Runs</h2>",
        html_table([*names, "Run", "Verdicts"], runs, numbers=len(names)),
    ]
    head = [*names, "Certified", "As published", "Verdict"]
    for name, statement in claims.items():
        rows = [_measured(point, name) for point in done]
        parts += [
            f"<h2>{html.escape(name)}</h2><p>{html.escape(plain(statement))}</p>",
            html_table(head, rows, numbers=len(names) + 2),
        ]
    text = page.document(f"Sweep of {chapter}", "\n".join(parts))
    records.write_bytes(path, text.encode())


def _measured(point: Point, name: str) -> list[str]:
    """The values of a point, both estimates of a claim and its verdict."""
    cells = ["not measured", "–", "–"]
    for claim in (point.record or {"claims": []})["claims"]:
        if claim["id"] == name:
            sides = (claim["certified"], claim["as_published"])
            estimates = ["–" if side is None else page.estimate(side) for side in sides]
            cells = [*estimates, claim["verdict"]]
    return [html.escape(text) for text in (*map(shown, point.chosen.values()), *cells)]
