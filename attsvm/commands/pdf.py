"""``attsvm pdf``: print the last site as one PDF."""

from __future__ import annotations

import argparse

from attsvm.commands.common import OK, Commands, add, layout_of, with_book

__all__ = ["register"]


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "Print the last site as one PDF and link it from its pages."
    with_book(add(commands, "pdf", run, summary))


def run(options: argparse.Namespace) -> int:
    """Print the book, say where the PDF lies."""
    from attsvm.book.pdf import make

    print(make(layout_of(options, writes=True)))
    return OK
