"""The ``attsvm`` command line: what is common to all commands of `attsvm.commands`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from typing import Any

from attsvm import __version__, commands
from attsvm.commands.common import FAILED, INTERRUPTED, USAGE, complain
from attsvm.errors import ArgumentError, AttsvmError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        By default those of the process.

    Returns
    -------
    int
        0 if all went well, 1 if a chapter, a claim or the rendering failed, 2 for wrong usage, 130
        if interrupted.
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


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attsvm",
        description="The companion to 'Transformers as Support Vector Machines': rebuild the book, "
        "run one chapter with other parameters, solve or train a problem of your own.",
        epilog="Exit codes: 0 all well, 1 something failed, 2 wrong usage, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"attsvm {__version__}")
    commands.register(parser.add_subparsers(required=True, metavar="COMMAND"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
