"""The frame of a command, and the package's own: `attsvm solve` and `attsvm train`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = object

__all__ = ["FAILED", "INTERRUPTED", "OK", "USAGE", "Commands", "add"]

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes of every command."""


def add(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
    description: str = "",
    epilog: str = "",
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
    description, epilog
        Text of the command's own help, its lines kept as they are; by default the summary.

    Returns
    -------
    ArgumentParser
        To add options to.
    """
    parser = commands.add_parser(
        name,
        help=summary,
        description=description or summary,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser
