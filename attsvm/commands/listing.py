"""``attsvm list``: the chapters, and which of them a build would run."""

from __future__ import annotations

import argparse

from attsvm.commands.common import OK, Commands, add, layout_of, with_book, with_profile

__all__ = ["register"]


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "List the chapters, and say which would run and why."
    with_profile(with_book(add(commands, "list", run, summary)))


def run(options: argparse.Namespace) -> int:
    """Print one line for each chapter."""
    from attsvm.book.build import plan
    from attsvm.book.chapters import strays

    layout = layout_of(options)
    decisions = plan(layout, options.profile, only=options.only, force=options.force)
    width = max((len(decision.chapter.id) for decision in decisions), default=0)
    for decision in decisions:
        state = "would run" if decision.runs else "cached"
        print(f"{decision.chapter.id:<{width}}  {state:<9}  {decision.reason}")
    for name in strays(layout, [decision.chapter for decision in decisions]):
        print(f"{name:<{width}}  left out   not in the table of contents")
    return OK
