"""``attsvm build``, ``list``, ``clean`` and ``cache``: the rebuild on the command line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from attsvm.cli import OK, Commands, add, complain
from attsvm.errors import ArgumentError

if TYPE_CHECKING:
    from companion.build.layout import Layout

__all__ = ["layout_of", "register", "with_book"]

CACHE = """\
The cache holds finished chunks of experiments. `experiments.run` writes them where the environment
variable ATTSVM_CACHE or its argument cache=… says; a build of the book keeps those of its chapters
in _build/chunks, so that a chapter that was cut off, or whose figure changed, goes on from there.

  list   one line for each entry: size, experiment, seeds; or what is wrong with it
  size   number of entries and bytes
  clear  remove all entries; nothing else that lies there
"""


def register(commands: Commands) -> None:
    """Add the commands."""
    summary = "Execute the chapters that changed and render the site."
    parser = with_book(add(commands, "build", _build, summary))
    _with_profile(parser)
    parser.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="chapters at a time (default: 2)"
    )
    summary = "List the chapters, and say which would run and why."
    _with_profile(with_book(add(commands, "list", _list, summary)))
    parser = with_book(add(commands, "clean", _clean, "Remove the site and the executed chapters."))
    parser.add_argument("--keep-cache", action="store_true", help="keep the executed chapters")
    summary = "List, measure or clear the cache of finished chunks."
    parser = add(commands, "cache", _cache, summary, CACHE)
    parser.add_argument("action", choices=["list", "size", "clear"])
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="the folder (default: $ATTSVM_CACHE, else _build/chunks of the book here)",
    )


def with_book(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the options that say where the book lies and where its builds go."""
    parser.add_argument("--root", metavar="DIR", help="the book (default: here or above)")
    parser.add_argument("--output", metavar="DIR", help="where to write (default: _build)")
    return parser


def _with_profile(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which chapters run, and how large."""
    parser.add_argument(
        "--profile",
        default="full",
        metavar="NAME",
        help="quick or full (default: full, the paper's own scale)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="CHAPTER",
        help="bring only these chapters up to date; the others come from the cache",
    )
    parser.add_argument("--force", action="store_true", help="run chapters that are unchanged too")


def layout_of(options: argparse.Namespace, *, writes: bool = False) -> Layout:
    """The book and the output folder that the options of `with_book` name."""
    from companion.build.layout import Layout

    return Layout.of(options.root, options.output, writes=writes)


def _build(options: argparse.Namespace) -> int:
    from companion.build.build import build

    if options.jobs < 1:
        raise ArgumentError("jobs", "a positive number", str(options.jobs))
    layout = layout_of(options, writes=True)
    site = build(layout, options.profile, only=options.only, jobs=options.jobs, force=options.force)
    print(site / "index.html")
    return OK


def _list(options: argparse.Namespace) -> int:
    from companion.build.build import plan
    from companion.build.chapters import strays

    layout = layout_of(options)
    decisions = plan(layout, options.profile, only=options.only, force=options.force)
    width = max((len(decision.chapter.id) for decision in decisions), default=0)
    for decision in decisions:
        state = "would run" if decision.runs else "cached"
        print(f"{decision.chapter.id:<{width}}  {state:<9}  {decision.reason}")
    for name in strays(layout, [decision.chapter for decision in decisions]):
        print(f"{name:<{width}}  left out   not in the table of contents")
    return OK


def _clean(options: argparse.Namespace) -> int:
    from companion.build.guard import exclusive
    from companion.build.layout import remove

    layout = layout_of(options, writes=True)
    # Only what a build makes, by name: the folder may hold other things.
    made = [layout.site, layout.work, layout.logs, layout.settings, layout.times]
    if not options.keep_cache:
        made += [layout.chapters, layout.chunks]
    with exclusive(layout, complain):
        for path in (*made, layout.guard):
            remove(path)
    if not any(layout.output.iterdir()):
        layout.output.rmdir()
    return OK


def _cache(options: argparse.Namespace) -> int:
    from attsvm import chunks
    from companion.build.layout import Layout

    named = options.cache or os.environ.get("ATTSVM_CACHE")
    folder = Path(named).expanduser().absolute() if named else Layout.of().chunks
    if options.action == "clear":
        count, size = chunks.clear(folder)
        print(f"{folder}: {count} entries removed, {_bytes(size)}")
        return OK
    found = list(chunks.entries(folder))
    if options.action == "list":
        for entry in found:
            if entry.problem:
                what = f"{entry.path.relative_to(folder)} {entry.problem}"
            else:
                what = f"{entry.label}, seeds {_seeds(entry.seeds)}"
            print(f"{_bytes(entry.size):>9}  {what}")
    bad = sum(bool(entry.problem) for entry in found)
    note = f", {bad} of them unusable" if bad else ""
    print(f"{folder}: {len(found)} entries{note}, {_bytes(sum(entry.size for entry in found))}")
    return OK


def _seeds(seeds: tuple[int, ...]) -> str:
    rising = seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}..{seeds[-1]}" if rising and len(seeds) > 1 else ", ".join(map(str, seeds))


def _bytes(size: int) -> str:
    for unit, scale in (("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"
