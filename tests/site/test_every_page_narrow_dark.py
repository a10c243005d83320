"""Every page from a web server, narrow, in the dark theme: clean, drawn, and nothing spills.

One file for each combination, so that they run side by side.
"""

from __future__ import annotations

from browsing import Server
from looking import NARROW, visit
from playwright.sync_api import Browser


def test_every_page(browser: Browser, server: Server, pages: list[str]) -> None:
    """No error, no failed or external request, no overflow, nothing undrawn or blank."""
    assert not visit(browser, server.address, pages, NARROW, "dark")
