"""``attsvm params``, ``run`` and ``sweep``: one chapter with parameters of the reader's choice."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attsvm.cli import FAILED, OK, Commands, add
from attsvm.errors import ArgumentError

if TYPE_CHECKING:
    from companion.build.chapters import Chapter
    from companion.build.layout import Layout
    from companion.run.single import Run

__all__ = ["register"]

RUN = """\
Execute one chapter with parameters of your choice and render it.

The folder then holds the page (which needs no network), the executed notebook, figures/ with
their data, claims/ and claims.csv, and run.json. A run that was cut off goes on where it was when
the same command is given again; one that is finished is not repeated, unless --force says so.

  attsvm params local-convergence
  attsvm run local-convergence -p d=20 -p instances=50
  attsvm run rank -p dimensions=5,10,20 --output my-run
"""
RUN_CODES = """\
Exit codes: 0 done; 1 a cell failed, or parameters were not changed and a verdict is not the
registered one; 2 wrong usage, such as an unknown parameter; 130 interrupted.
"""
SWEEP = """\
Run one chapter at every point of a grid.

Commas separate the values of a parameter; where the parameter is a list itself, semicolons do.
All points are checked before the first one runs. The folder then holds runs/ with a folder for
each point, claims.csv with every measured number (a row for each run, claim and side), and
index.html, which links the runs. Give the same command again to go on after an interruption;
add values to extend the grid: runs that are finished are not repeated.

  attsvm sweep local-convergence -p d=4,8,16 -p n=3,6
  attsvm sweep rank -p "dimensions=5,15;10,20" -p instances=5
"""
SWEEP_CODES = "Exit codes: 0 all runs done, 1 a run failed, 2 wrong usage, 130 interrupted."


def register(commands: Commands) -> None:
    """Add the commands."""
    summary = "List the parameters of a chapter: type, default, full scale, range and meaning."
    parser = _with_chapter(add(commands, "params", _params, summary))
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    summary = "Execute one chapter with other parameters and render it."
    parser = _with_chapter(add(commands, "run", _run, summary, RUN, RUN_CODES))
    _with_parameters(parser, "NAME=VALUE", "a parameter's value; a list is written 2,5,10")
    parser.add_argument(
        "--to", choices=["html", "ipynb"], default="html", help="what to render (default: html)"
    )
    parser.add_argument("--force", action="store_true", help="execute even if it is done already")
    summary = "Run one chapter over a grid of parameters."
    parser = _with_chapter(add(commands, "sweep", _sweep, summary, SWEEP, SWEEP_CODES))
    _with_parameters(parser, "NAME=VALUES", "the values of a parameter, e.g. d=4,8,16")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="runs at a time (default: 1)"
    )


def _with_chapter(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("chapter", metavar="CHAPTER", help="its id, or the last part of it")
    parser.add_argument("--root", metavar="DIR", help="the book (default: here or above)")
    return parser


def _with_parameters(parser: argparse.ArgumentParser, metavar: str, help: str) -> None:
    """Add what `attsvm run` and `attsvm sweep` have in common."""
    parser.add_argument("-p", action="append", default=[], metavar=metavar, help=help)
    parser.add_argument(
        "--params", metavar="FILE", help="a YAML or JSON file of parameters; -p goes before it"
    )
    parser.add_argument(
        "--profile",
        default="quick",
        metavar="NAME",
        help="quick or full: what the other parameters take (default: quick)",
    )
    parser.add_argument(
        "--output", metavar="DIR", help="where to write (default: a folder in attsvm-runs)"
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="compute on the cluster of this Dask scheduler"
    )


def _chapter_of(options: argparse.Namespace) -> tuple[Layout, Chapter]:
    """The book, and the chapter named, which can be built."""
    from companion.build import chapters
    from companion.build.layout import Layout

    layout = Layout.of(options.root)
    (chapter,) = chapters.select(chapters.discover(layout), [options.chapter])
    chapters.validate([chapter])
    return layout, chapter


def _prepare(options: argparse.Namespace) -> None:
    """Check what run and sweep are told of the profile and of a cluster."""
    from companion.build import chapters

    options.interrupted = "interrupted; give the same command again to go on"
    chapters.check_profile(options.profile)
    if options.dask is not None:
        if not re.fullmatch(r"[a-z]+://[^\s/]+:\d+", options.dask):
            wanted = "an address such as tcp://10.0.0.1:8786"
            raise ArgumentError("dask", wanted, repr(options.dask))
        os.environ["ATTSVM_DASK"] = options.dask  # kernels inherit it


def _params(options: argparse.Namespace) -> int:
    from companion.run.parameters import parameters_of, shown

    _, chapter = _chapter_of(options)
    rows = [
        {
            "name": parameter.name,
            "type": parameter.type,
            "default": parameter.default,
            "full": parameter.full,
            "range": parameter.limits,
            "meaning": parameter.meaning,
        }
        for parameter in parameters_of(chapter)
    ]
    if options.json:
        print(json.dumps({"chapter": chapter.id, "parameters": rows}, indent=1, ensure_ascii=False))
        return OK
    print(f"{chapter.id}: attsvm run {chapter.name} -p NAME=VALUE")
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        scale = "" if row["full"] == row["default"] else f" (full scale {shown(row['full'])})"
        print(f"\n  {row['name']:<{width}}  {row['type']}, default {shown(row['default'])}{scale}")
        print(f"  {'':<{width}}  {row['meaning']}{'; ' if row['range'] else ''}{row['range']}")
    return OK


def _run(options: argparse.Namespace) -> int:
    from companion.run import parameters, single

    _prepare(options)
    layout, chapter = _chapter_of(options)
    known = parameters.parameters_of(chapter)
    given = parameters.read_file(options.params) if options.params else {}
    given |= parameters.assignments(options.p)
    values = parameters.check(known, given, options.profile)
    profile = "" if options.profile == "quick" else options.profile
    words = [chapter.name, profile, parameters.slug({key: values[key] for key in given})]
    default = Path("attsvm-runs") / "_".join(filter(None, words))
    folder = Path(options.output or default).expanduser().absolute()
    how = {"profile": options.profile, "to": options.to, "force": options.force}
    return _report(single.run(layout, chapter, known, values, folder, **how))


def _report(done: Run) -> int:
    """Print the verdicts of a run; the exit code that follows from them."""
    from companion.run.page import estimate

    record = done.record
    changed = ", ".join(f"{name} = {value}" for name, value in record["changed"].items())
    state = "" if done.fresh else " (done before; --force executes it again)"
    print(f"{record['chapter']}: {changed or 'profile ' + record['profile']}{state}")
    claims = record["claims"]
    width = max((len(claim["id"]) for claim in claims), default=0)
    for claim in claims:
        print(f"  {claim['id']:<{width}}  {claim['verdict']}: {estimate(claim['certified'])}")
    for note in record["notes"]:
        print(f"  Note: {note}")
    surprises = [claim for claim in claims if claim["verdict"] != claim["expected"]]
    code = OK
    if not claims:
        print("This chapter judges no claims.")
    elif changed:
        print("Parameters were changed: the verdicts are shown, not compared with the registered.")
    elif surprises:
        code = FAILED
        for claim in surprises:
            print(f"Not as registered: {claim['id']} should be {claim['expected']!r}.")
    else:
        print("All verdicts are the registered ones.")
    print(done.main)
    return code


def _sweep(options: argparse.Namespace) -> int:
    from companion.build.layout import Layout
    from companion.run import parameters, sweep

    _prepare(options)
    if options.jobs < 1:
        raise ArgumentError("jobs", "a positive number", str(options.jobs))
    layout, chapter = _chapter_of(options)
    default = Path("attsvm-runs") / f"{chapter.name}_sweep"
    folder = Path(options.output or default).expanduser().absolute()
    known = parameters.parameters_of(chapter)
    todo = sweep.points(
        known,
        parameters.assignments(options.p),
        parameters.read_file(options.params) if options.params else {},
        options.profile,
        folder,
    )
    Layout.of(layout.root, folder, writes=True)
    command = [sys.executable, "-m", "attsvm", "run", chapter.id, "--root", str(layout.root)]
    failed = sweep.run_all([*command, "--profile", options.profile], todo, options.jobs)
    sweep.write_table(folder / "claims.csv", known, [p for p in todo if p.folder not in failed])
    sweep.write_index(folder / "index.html", chapter.id, todo, failed)
    print(f"{len(todo) - len(failed)} of {len(todo)} runs done")
    for point in todo:
        if point.folder in failed:
            print(f"  {point}: {failed[point.folder]}")
    print(folder / "index.html")
    return FAILED if failed else OK
