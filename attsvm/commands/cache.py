"""``attsvm cache``: look into the cache of finished chunks, measure it, clear it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from attsvm.commands.common import OK, Commands, add

__all__ = ["register"]

DESCRIPTION = """\
The cache holds finished chunks of experiments. `experiments.run` writes them where the environment
variable ATTSVM_CACHE or its argument cache=… says; a build of the book keeps those of chapters that
are not finished in _build/chunks, and removes them when they are.

  list   one line for each entry: size, experiment, seeds; or what is wrong with it
  size   number of entries and bytes
  clear  remove all entries; nothing else that lies there
"""


def register(commands: Commands) -> None:
    """Add the command."""
    parser = add(
        commands, "cache", run, "List, measure or clear the cache of finished chunks.", DESCRIPTION
    )
    parser.add_argument("action", choices=["list", "size", "clear"])
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="the folder (default: $ATTSVM_CACHE, else _build/chunks of the book here)",
    )


def run(options: argparse.Namespace) -> int:
    """Do what was asked."""
    from attsvm import cache

    folder = _folder(options.cache)
    if options.action == "clear":
        count, size = cache.clear(folder)
        print(f"{folder}: {count} entries removed, {_bytes(size)}")
        return OK
    found = list(cache.entries(folder))
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


def _folder(given: str | None) -> Path:
    from attsvm.book.layout import Layout

    named = given or os.environ.get("ATTSVM_CACHE")
    return Path(named).expanduser().absolute() if named else Layout.of().chunks


def _seeds(seeds: tuple[int, ...]) -> str:
    rising = seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}..{seeds[-1]}" if rising and len(seeds) > 1 else ", ".join(map(str, seeds))


def _bytes(size: int) -> str:
    return (
        f"{size} B"
        if size < 1000
        else f"{size / 1e3:.1f} kB"
        if size < 1e6
        else f"{size / 1e6:.1f} MB"
    )
