"""What is done with a finished site: serving, printing, comparing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from companion.build.layout import Layout
from companion.errors import BuildError

__all__ = ["browser", "last_site"]

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def browser() -> str | None:
    """The browser of this machine that prints the book; None if it is to be Playwright's own."""
    found = (os.environ.get("ATTSVM_CHROMIUM"), *map(shutil.which, BROWSERS))
    return next(filter(None, found), None)


def last_site(layout: Layout) -> Path:
    """The site that was built last; a `BuildError` if there is none."""
    if not (layout.site / "index.html").is_file():
        raise BuildError(f"no site in {layout.site}", ["build it first: attsvm build"])
    return layout.site
