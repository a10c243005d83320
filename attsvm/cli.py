"""The ``attsvm`` command line: `solve`, `train`, and the commands that are installed beside them.

A distribution adds commands by an entry point in the group ``attsvm.commands`` that names a
function ``register(commands)``; the companion tool of this repository does.  Modules import
argparse and little else when they are loaded: ``attsvm --help`` loads all of them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import signal
import sys
from collections.abc import Sequence

from attsvm import __version__
from attsvm.commands import FAILED, INTERRUPTED, OK, USAGE, Commands, add
from attsvm.errors import ArgumentError, AttsvmError

__all__ = ["FAILED", "GROUP", "INTERRUPTED", "OK", "USAGE", "Commands", "add", "complain", "main"]

GROUP = "attsvm.commands"
"""Entry point group of functions that add commands."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default with the arguments of the process; the exit code.

    0 if all went well, 1 if something failed, 2 for wrong usage, 130 if interrupted.
    """
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return options.run(options)
    except ArgumentError as error:
        complain(str(error))
        return USAGE
    except AttsvmError as error:
        complain(str(error))
        return FAILED
    except OSError as error:
        # A full disk, a folder that has gone: the reason is the machine's, not the program's.
        complain(f"{error.strerror or error}: {error.filename or 'while writing the output'}")
        return FAILED
    except KeyboardInterrupt:
        complain(getattr(options, "interrupted", "interrupted; finished chapters are kept"))
        return INTERRUPTED


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    from attsvm.commands import solve, train

    parser = argparse.ArgumentParser(
        prog="attsvm",
        description="The companion to 'Transformers as Support Vector Machines': solve or train a "
        "problem of your own; in a checkout also rebuild the book and run its chapters.",
        epilog="Exit codes: 0 all well, 1 something failed, 2 wrong usage, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"attsvm {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    solve.register(commands)
    train.register(commands)
    for plugin in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda p: p.name):
        plugin.load()(commands)
    return parser


def complain(text: str) -> None:
    """Say on standard error what is wrong."""
    print(f"attsvm: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
