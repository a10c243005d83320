"""``attsvm serve``, ``pdf`` and ``drift``: what is done with a finished site."""

from __future__ import annotations

import argparse
from pathlib import Path

from attsvm.cli import FAILED, OK, Commands, add
from companion.build.commands import layout_of, with_book

__all__ = ["register"]

DRIFT = """\
Compare the claims' numbers of two builds, e.g. with locked and with newest versions.
OLD and NEW are sites, output folders (_build), or folders with claims/*.json.
Exit code 1 says that a verdict changed or is missing.
"""
SHOWN = 20


def register(commands: Commands) -> None:
    """Add the commands."""
    summary = "Show the last site in a browser, from this machine only."
    parser = with_book(add(commands, "serve", _serve, summary))
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port (default: 8000)")
    summary = "Print the last site as one PDF and link it from its pages."
    with_book(add(commands, "pdf", _pdf, summary))
    summary = "Compare the claims' numbers of two builds."
    parser = add(commands, "drift", _drift, summary, DRIFT)
    parser.add_argument("old", metavar="OLD", type=Path)
    parser.add_argument("new", metavar="NEW", type=Path)
    parser.add_argument(
        "--output", metavar="DIR", type=Path, help="write drift.csv, drift.md and index.html there"
    )


def _serve(options: argparse.Namespace) -> int:
    from companion.ship.serve import server

    with server(layout_of(options), options.host, options.port) as running:
        host, port = running.server_address[:2]
        print(f"http://{host!s}:{port}/ (Ctrl-C ends it)", flush=True)
        running.serve_forever()
    return OK


def _pdf(options: argparse.Namespace) -> int:
    from companion.ship.pdf import make

    print(make(layout_of(options, writes=True)))
    return OK


def _drift(options: argparse.Namespace) -> int:
    from attsvm import records
    from companion.ship import drift

    old, new = drift.read(options.old, "OLD"), drift.read(options.new, "NEW")
    moves = drift.compare(old, new)
    lines = drift.summary(old, new, moves)
    print(drift.markdown_text(lines, moves, SHOWN), end="")
    if options.output is not None:
        for name, text in (
            ("drift.csv", moves.to_csv(index=False, na_rep="nan", lineterminator="\n")),
            ("drift.md", drift.markdown_text(lines, moves)),
            ("index.html", drift.html_text(lines, moves)),
        ):
            records.write_bytes(options.output / name, text.encode())
    return FAILED if drift.changed_verdicts(moves) else OK
