"""``attsvm build``: execute the chapters that changed and render the site."""

from __future__ import annotations

import argparse

from attsvm.commands.common import OK, Commands, add, layout_of, with_book, with_profile
from attsvm.errors import ArgumentError

__all__ = ["register"]


def register(commands: Commands) -> None:
    """Add the command."""
    parser = with_book(
        add(commands, "build", run, "Execute the chapters that changed and render the site.")
    )
    with_profile(parser)
    parser.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="chapters at a time (default: 2)"
    )


def run(options: argparse.Namespace) -> int:
    """Build the site, print where it lies."""
    from attsvm.book.build import build

    if options.jobs < 1:
        raise ArgumentError("jobs", "a positive number", str(options.jobs))
    layout = layout_of(options, writes=True)
    site = build(layout, options.profile, only=options.only, jobs=options.jobs, force=options.force)
    print(site / "index.html")
    return OK
