"""``attsvm sweep``: one chapter over a grid of parameters."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attsvm.commands.common import FAILED, OK, Commands, add, on_cluster, with_cluster
from attsvm.commands.run import with_parameters
from attsvm.errors import ArgumentError

if TYPE_CHECKING:
    from attsvm.book.grid import Point

__all__ = ["register"]

DESCRIPTION = """\
Run one chapter at every point of a grid.

Commas separate the values of a parameter; where the parameter is a list itself, semicolons do.
All points are checked before the first one runs. The folder then holds runs/ with a folder for
each point, claims.csv with every measured number (a row for each run, claim and side), and
index.html, which links the runs. Give the same command again to go on after an interruption;
add values to extend the grid: runs that are finished are not repeated.

  attsvm sweep local-convergence -p d=4,8,16 -p n=3,6
  attsvm sweep rank -p "dimensions=5,15;10,20" -p instances=5
"""
EPILOG = "Exit codes: 0 all runs done, 1 a run failed, 2 wrong usage, 130 interrupted."


def register(commands: Commands) -> None:
    """Add the command."""
    parser = add(commands, "sweep", run, "Run one chapter over a grid of parameters.", DESCRIPTION)
    parser.epilog = EPILOG
    with_parameters(parser, "NAME=VALUES", "the values of a parameter, e.g. d=4,8,16")
    parser.add_argument(
        "--output", metavar="DIR", help="where to write (default: a folder in attsvm-runs)"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="runs at a time (default: 1)"
    )
    with_cluster(parser)


def run(options: argparse.Namespace) -> int:
    """Run what is not done yet, write table and page."""
    from attsvm.book import chapters, grid, parameters
    from attsvm.book.layout import Layout

    options.interrupted = "interrupted; give the same command again to go on"
    on_cluster(options.dask)
    if options.jobs < 1:
        raise ArgumentError("jobs", "a positive number", str(options.jobs))
    layout = Layout.of(options.root)
    chapters.check_profile(options.profile)
    (chapter,) = chapters.select(chapters.discover(layout), [options.chapter])
    chapters.validate([chapter])
    name = chapter.id.rpartition("/")[2]
    folder = Path(options.output or Path("attsvm-runs") / f"{name}_sweep").expanduser().absolute()
    known = parameters.parameters_of(chapter)
    todo = grid.points(
        known,
        parameters.assignments(options.p),
        parameters.read_file(options.params) if options.params else {},
        options.profile,
        folder,
    )
    Layout.of(layout.root, folder, writes=True)
    command = [sys.executable, "-m", "attsvm", "run", chapter.id, "--root", str(layout.root)]
    failed = _run_all([*command, "--profile", options.profile], todo, options.jobs)
    grid.write_table(folder / "claims.csv", known, [p for p in todo if p.folder not in failed])
    grid.write_index(folder / "index.html", chapter.id, todo, failed)
    print(f"{len(todo) - len(failed)} of {len(todo)} runs done")
    for point in todo:
        if point.folder in failed:
            print(f"  {point}: {failed[point.folder]}")
    print(folder / "index.html")
    return FAILED if failed else OK


def _run_all(command: Sequence[str], todo: Sequence[Point], jobs: int) -> dict[Path, str]:
    """Give each point a process of `attsvm run`; what failed, by folder.

    A run that is finished answers at once: the process sees that for itself.
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
