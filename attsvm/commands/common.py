"""What several commands share: exit codes, options, and how to complain."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attsvm.book.layout import Layout

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = object

__all__ = ["FAILED", "INTERRUPTED", "OK", "USAGE", "Commands", "add", "complain", "on_cluster",
           "with_book", "with_cluster"]  # fmt: skip

#: Exit codes of every command.
OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def add(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
    description: str = "",
) -> argparse.ArgumentParser:
    """Add a command.

    Parameters
    ----------
    commands
        The command line's commands.
    name
        What the user types.
    run
        Takes the parsed options, returns the exit code.
    summary
        One sentence for ``attsvm --help``.
    description
        Text of the command's own help, its lines kept as they are; by default the summary.
    """
    parser = commands.add_parser(
        name,
        help=summary,
        description=description or summary,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def with_book(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the options that say where the book lies and where its builds go."""
    parser.add_argument("--root", metavar="DIR", help="the book (default: here or above)")
    parser.add_argument("--output", metavar="DIR", help="where to write (default: _build)")
    return parser


def with_profile(parser: argparse.ArgumentParser) -> None:
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
    from attsvm.book.layout import Layout

    return Layout.of(options.root, options.output, writes=writes)


def with_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a cluster."""
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="compute on the cluster of this Dask scheduler"
    )


def on_cluster(address: str | None) -> None:
    """Let chapters that this process starts compute on the cluster of a Dask scheduler.

    Parameters
    ----------
    address
        Where it listens; None for no cluster.

    Raises
    ------
    ArgumentError
        If that is no address.
    """
    import os
    import re

    from attsvm._cluster import ADDRESS
    from attsvm.errors import ArgumentError

    if address is None:
        return
    if not re.fullmatch(r"[a-z]+://[^\s/]+:\d+", address):
        raise ArgumentError("dask", "an address such as tcp://10.0.0.1:8786", repr(address))
    os.environ[ADDRESS] = address


def complain(text: str) -> None:
    """Say on standard error what is wrong."""
    print(f"attsvm: {text}", file=sys.stderr)
