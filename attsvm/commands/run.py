"""``attsvm run``: one chapter with other parameters, into a folder of its own."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attsvm.commands.common import FAILED, OK, Commands, add, on_cluster, with_cluster

if TYPE_CHECKING:
    from attsvm.book.single import Run

__all__ = ["register", "report", "with_parameters"]

DESCRIPTION = """\
Execute one chapter with parameters of your choice and render it.

The folder then holds the page (which needs no network), the executed notebook, figures/ with
their data, claims/ and claims.csv, and run.json. A run that was cut off goes on where it was when
the same command is given again; one that is finished is not repeated, unless --force says so.

  attsvm params local-convergence
  attsvm run local-convergence -p d=20 -p instances=50
  attsvm run rank -p dimensions=5,10,20 --output my-run
"""
EPILOG = """\
Exit codes: 0 done; 1 a cell failed, or parameters were not changed and a verdict is not the
registered one; 2 wrong usage, such as an unknown parameter; 130 interrupted.
"""


def register(commands: Commands) -> None:
    """Add the command."""
    parser = add(
        commands,
        "run",
        run,
        "Execute one chapter with other parameters and render it.",
        DESCRIPTION,
    )
    parser.epilog = EPILOG
    with_parameters(parser, "NAME=VALUE", "a parameter's value; a list is written 2,5,10")
    parser.add_argument(
        "--to", choices=["html", "ipynb"], default="html", help="what to render (default: html)"
    )
    parser.add_argument(
        "--output", metavar="DIR", help="where to write (default: a folder in attsvm-runs)"
    )
    with_cluster(parser)
    parser.add_argument("--force", action="store_true", help="execute even if it is done already")


def with_parameters(parser: argparse.ArgumentParser, metavar: str, help: str) -> None:
    """Add what `attsvm run` and `attsvm sweep` have in common: the chapter and its parameters."""
    parser.add_argument("chapter", metavar="CHAPTER", help="its id, or the last part of it")
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
    parser.add_argument("--root", metavar="DIR", help="the book (default: here or above)")


def run(options: argparse.Namespace) -> int:
    """Execute and render the chapter, print the verdicts and where the page lies."""
    from attsvm.book import chapters, parameters, single
    from attsvm.book.layout import Layout

    options.interrupted = "interrupted; give the same command again to go on"
    on_cluster(options.dask)
    layout = Layout.of(options.root)
    chapters.check_profile(options.profile)
    (chapter,) = chapters.select(chapters.discover(layout), [options.chapter])
    chapters.validate([chapter])
    known = parameters.parameters_of(chapter)
    given: dict[str, Any] = parameters.read_file(options.params) if options.params else {}
    given |= parameters.assignments(options.p)
    values = parameters.check(known, given, options.profile)
    name = chapter.id.rpartition("/")[2]
    chosen = {key: values[key] for key in given}
    profile = "" if options.profile == "quick" else f"_{options.profile}"
    default = Path("attsvm-runs") / "_".join(filter(None, [name + profile, single.slug(chosen)]))
    done = single.run(
        layout,
        chapter,
        known,
        values,
        Path(options.output).expanduser().absolute() if options.output else default.absolute(),
        profile=options.profile,
        to=options.to,
        force=options.force,
    )
    return report(done)


def report(done: Run) -> int:
    """Print the verdicts of a run; the exit code that follows from them."""
    from attsvm.book.page import estimate

    changed = ", ".join(f"{name} = {value}" for name, value in done.changed.items())
    state = "" if done.fresh else " (done before; --force executes it again)"
    print(f"{done.record['chapter']}: {changed or 'profile ' + done.record['profile']}{state}")
    width = max((len(claim["id"]) for claim in done.claims), default=0)
    for claim in done.claims:
        print(f"  {claim['id']:<{width}}  {claim['verdict']}: {estimate(claim['certified'])}")
    for note in done.record["notes"]:
        print(f"  Note: {note}")
    surprises = [claim for claim in done.claims if claim["verdict"] != claim["expected"]]
    code = OK
    if not done.claims:
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
