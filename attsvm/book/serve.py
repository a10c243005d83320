"""A local preview of the site."""

from __future__ import annotations

import functools
import http.server

from attsvm.book.errors import BuildError
from attsvm.book.layout import Layout

__all__ = ["server"]


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files; quiet about success, and never from a browser's cache."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        if not str(code).startswith(("2", "3")):
            super().log_request(code, size)


def server(layout: Layout, host: str, port: int) -> http.server.ThreadingHTTPServer:
    """Make a server for the last site that was built.

    Parameters
    ----------
    layout
        Where the output lies.
    host, port
        Where to listen; port 0 takes any free one.

    Raises
    ------
    BuildError
        If there is no site yet, or the port is taken.
    """
    if not (layout.site / "index.html").is_file():
        raise BuildError(f"no site in {layout.site}", ["build it first: attsvm build"])
    handler = functools.partial(_Handler, directory=str(layout.site))
    try:
        return http.server.ThreadingHTTPServer((host, port), handler)
    except OSError as error:
        raise BuildError(f"cannot listen on {host}:{port}", [str(error)]) from error
