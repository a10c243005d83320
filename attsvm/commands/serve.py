"""``attsvm serve``: show the last site in a browser."""

from __future__ import annotations

import argparse

from attsvm.commands.common import OK, Commands, add, layout_of, with_book

__all__ = ["register"]


def register(commands: Commands) -> None:
    """Add the command."""
    summary = "Show the last site in a browser, from this machine only."
    parser = with_book(add(commands, "serve", run, summary))
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port (default: 8000)")


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from attsvm.book.serve import server

    with server(layout_of(options), options.host, options.port) as running:
        host, port = running.server_address[:2]
        print(f"http://{host!s}:{port}/ (Ctrl-C ends it)", flush=True)
        running.serve_forever()
    return OK
