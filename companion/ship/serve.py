"""A local preview of the site."""

from __future__ import annotations

import functools
import http.server
from http import HTTPStatus
from pathlib import Path

from companion.build.layout import Layout
from companion.errors import BuildError
from companion.ship import last_site

__all__ = ["server"]


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files; quiet about success, and never from a browser's cache."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer as the hosts of static sites do: what is not there gets the page for that."""
        page = Path(self.directory) / "404.html"
        if code == HTTPStatus.NOT_FOUND and page.is_file():
            # Formatted by `%` with the reason, for which this page has no place.
            self.error_message_format = page.read_text(encoding="utf-8").replace("%", "%%")
        super().send_error(code, message, explain)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        if not str(code).startswith(("2", "3")):
            super().log_request(code, size)


def server(layout: Layout, host: str, port: int) -> http.server.ThreadingHTTPServer:
    """A server for the last site that was built; port 0 takes any free one.

    Raises
    ------
    BuildError
        If there is no site yet, or the port is taken.
    """
    handler = functools.partial(_Handler, directory=str(last_site(layout)))
    try:
        return http.server.ThreadingHTTPServer((host, port), handler)
    except OSError as error:
        raise BuildError(f"cannot listen on {host}:{port}", [str(error)]) from error
