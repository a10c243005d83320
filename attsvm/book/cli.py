"""The ``attsvm`` command line."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from collections.abc import Sequence
from typing import Any

from attsvm import __version__
from attsvm.book.errors import BuildError
from attsvm.book.layout import PROFILES, Layout
from attsvm.errors import ArgumentError

__all__ = ["main"]

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


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
        _complain(str(error))
        return USAGE
    except BuildError as error:
        _complain(str(error))
        return FAILED
    except OSError as error:
        # A full disk, a folder that has gone: the reason is the machine's, not the program's.
        _complain(f"{error.strerror or error}: {error.filename or 'while writing the output'}")
        return FAILED
    except KeyboardInterrupt:
        _complain("interrupted; finished chapters are kept")
        return INTERRUPTED


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def _complain(text: str) -> None:
    print(f"attsvm: {text}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="attsvm",
        description="Rebuild the companion to 'Transformers as Support Vector Machines'.",
        epilog="Exit codes: 0 all well, 1 something failed, 2 wrong usage, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"attsvm {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, summary: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=summary, description=summary)
        sub.set_defaults(run=run)
        sub.add_argument("--root", metavar="DIR", help="the book (default: here or above)")
        sub.add_argument("--output", metavar="DIR", help="where to write (default: _build)")
        return sub

    def profiled(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--profile",
            default="full",
            metavar="NAME",
            help=f"{' or '.join(PROFILES)} (default: full, the paper's own scale)",
        )
        sub.add_argument(
            "--only",
            nargs="+",
            action="extend",
            default=[],
            metavar="CHAPTER",
            help="bring only these chapters up to date; the others come from the cache",
        )
        sub.add_argument("--force", action="store_true", help="run chapters that are unchanged too")

    build = command("build", _build, "Execute the chapters that changed and render the site.")
    profiled(build)
    build.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="chapters at a time (default: 2)"
    )
    profiled(command("list", _list, "List the chapters, and say which would run and why."))
    clean = command("clean", _clean, "Remove the site and the executed chapters.")
    clean.add_argument("--keep-cache", action="store_true", help="keep the executed chapters")
    serve = command("serve", _serve, "Show the last site in a browser, from this machine only.")
    serve.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    serve.add_argument("--port", type=int, default=8000, help="port (default: 8000)")
    return parser


def _build(options: argparse.Namespace) -> int:
    from attsvm.book.build import build

    if options.jobs < 1:
        raise ArgumentError("jobs", "a positive number", str(options.jobs))
    layout = Layout.of(options.root, options.output, writes=True)
    site = build(layout, options.profile, only=options.only, jobs=options.jobs, force=options.force)
    print(site / "index.html")
    return OK


def _list(options: argparse.Namespace) -> int:
    from attsvm.book.build import plan
    from attsvm.book.chapters import strays

    layout = Layout.of(options.root, options.output)
    decisions = plan(layout, options.profile, only=options.only, force=options.force)
    width = max((len(decision.chapter.id) for decision in decisions), default=0)
    for decision in decisions:
        state = "would run" if decision.runs else "cached"
        print(f"{decision.chapter.id:<{width}}  {state:<9}  {decision.reason}")
    for name in strays(layout, [decision.chapter for decision in decisions]):
        print(f"{name:<{width}}  left out   not in the table of contents")
    return OK


def _clean(options: argparse.Namespace) -> int:
    from attsvm.book.guard import exclusive

    layout = Layout.of(options.root, options.output, writes=True)
    # Only what a build makes, by name: the folder may hold other things.
    made = [layout.site, layout.work, layout.logs, layout.settings, layout.times]
    if not options.keep_cache:
        made.append(layout.chapters)
    with exclusive(layout, _complain):
        for path in made:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        layout.guard.unlink(missing_ok=True)
    if not any(layout.output.iterdir()):
        layout.output.rmdir()
    return OK


def _serve(options: argparse.Namespace) -> int:
    from attsvm.book.serve import server

    with server(Layout.of(options.root, options.output), options.host, options.port) as running:
        host, port = running.server_address[:2]
        print(f"http://{host!s}:{port}/ (Ctrl-C ends it)", flush=True)
        running.serve_forever()
    return OK


if __name__ == "__main__":
    sys.exit(main())
