"""``attsvm drift``: how far the numbers of the claims moved between two builds."""

from __future__ import annotations

import argparse
from pathlib import Path

from attsvm.commands.common import FAILED, OK, Commands, add

__all__ = ["register"]

SHOWN = 20


def register(commands: Commands) -> None:
    """Add the command."""
    parser = add(
        commands,
        "drift",
        run,
        "Compare the claims' numbers of two builds.",
        "Compare the claims' numbers of two builds, e.g. with locked and with newest versions.\n"
        "OLD and NEW are sites, output folders (_build), or folders with claims/*.json.\n"
        "Exit code 1 says that a verdict changed or is missing.",
    )
    parser.add_argument("old", metavar="OLD", type=Path)
    parser.add_argument("new", metavar="NEW", type=Path)
    parser.add_argument(
        "--output", metavar="DIR", type=Path, help="write drift.csv, drift.md and index.html there"
    )


def run(options: argparse.Namespace) -> int:
    """Print the numbers that moved most, write the files."""
    from attsvm import records
    from attsvm.book import drift

    old, new = drift.read(options.old, "OLD"), drift.read(options.new, "NEW")
    moves = drift.compare(old, new)
    lines = drift.summary(old, new, moves)
    print(drift.markdown_text(lines, moves, SHOWN), end="")
    if options.output is not None:
        for name, text in (
            ("drift.csv", drift.csv_text(moves)),
            ("drift.md", drift.markdown_text(lines, moves)),
            ("index.html", drift.html_text(lines, moves)),
        ):
            records.write_bytes(options.output / name, text.encode())
    return FAILED if drift.changed_verdicts(moves) else OK
