"""Opens pages of the site in Chromium and notes everything that goes wrong."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from playwright.sync_api import Browser, Page, Request, Route

SETTLED = "async () => { await document.fonts.ready; }"


def browser_path() -> str | None:
    """Path of a browser on this machine, or None to let Playwright use its own."""
    from companion.ship import browser  # not before `conftest` has hooked the package

    return browser()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Requests are checked in the browser; the terminal stays clean."""


class Server:
    """A web server for one folder, on a free port of 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        handler = functools.partial(_Quiet, directory=str(folder))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Server:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def visitor(
    browser: Browser, root: str, width: int, theme: str, scripts: bool = True
) -> Iterator[tuple[Page, list[str]]]:
    """A tab, and the list of what went wrong in it: errors, failed and external requests.

    Parameters
    ----------
    browser
        The browser.
    root
        Address of the site; every request to another place is refused and noted.
    width, theme
        Width of the window in pixels; "light" or "dark".
    scripts
        Whether JavaScript runs.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if theme == "dark" else "light",
        java_script_enabled=scripts,
        reduced_motion="reduce",
    )
    context.add_init_script(f"localStorage.mode = localStorage.theme = '{theme}'")
    problems: list[str] = []
    page = context.new_page()

    def note(text: str) -> None:
        problems.append(f"{page.url.removeprefix(root)}: {text}")

    def guard(route: Route) -> None:
        address = route.request.url
        if address.startswith((root, "data:", "blob:")):
            route.continue_()
        else:
            note(f"external request to {address}")
            route.abort()

    context.route("**/*", guard)
    page.on("pageerror", lambda error: note(f"script error: {error}"))

    def failed(request: Request) -> None:
        # Leaving a page cancels what it still loads (the icon of a redirecting page, say).
        if request.failure != "net::ERR_ABORTED":
            note(f"failed request: {request.url} ({request.failure})")

    page.on("requestfailed", failed)
    page.on(
        "response",
        lambda answer: note(f"{answer.status}: {answer.url}") if answer.status >= 400 else None,
    )
    page.on(
        "console",
        lambda message: note(f"console: {message.text}") if message.type == "error" else None,
    )
    yield page, problems
    context.close()


def open_page(page: Page, address: str) -> None:
    """Go there and wait until the fonts are there."""
    page.goto(address, wait_until="load")
    page.evaluate(SETTLED)
