"""What opens on a page is as accessible as the page: axe on previews, instances and boxes."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import open_page, visitor
from looking import AXE, FINDINGS
from playwright.sync_api import Browser, Page

CHAPTER = "book/07-sequences/sequences.html"


def findings(page: Page) -> list[str]:
    page.evaluate(AXE)
    found: list[str] = page.evaluate(FINDINGS)
    return found


@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (390, "dark")])
def test_axe_on_what_opens(browser: Browser, site: Path, width: int, theme: str) -> None:
    """A chapter with everything open, and a preview on the reference of the package."""
    with visitor(browser, site.as_uri(), width, theme) as (page, _):
        open_page(page, f"{site.as_uri()}/{CHAPTER}")
        page.locator(".run-box > summary").click()
        page.locator("details.instances > summary").click()
        page.locator(".instances-values tbody tr").first.wait_for()
        assert findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        open_page(page, f"{site.as_uri()}/book/api/simplex.html")
        page.locator("article a.has-preview").first.hover()
        page.locator("#preview").wait_for()
        assert findings(page) == []
        open_page(page, f"{site.as_uri()}/book/gallery.html#words=nothing-has-this")
        page.get_by_text("No figure fits").wait_for()
        assert findings(page) == []


@pytest.mark.parametrize(
    ("page_name", "stop"),
    [
        ("book/gallery.html", "#gallery-section"),
        ("book/cite.html", ".bibtex-copy"),
        (CHAPTER, "details.instances > summary"),
        ("404.html", "button"),
    ],
)
def test_focus_is_seen(browser: Browser, site: Path, page_name: str, stop: str) -> None:
    """Each control that these pages bring shows when the keyboard is on it."""
    with visitor(browser, site.as_uri(), 1400, "dark") as (page, problems):
        open_page(page, f"{site.as_uri()}/{page_name}")
        page.locator(stop).first.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        outline = page.evaluate(
            "(s) => { const one = document.querySelector(s); const style = getComputedStyle(one);"
            " return [document.activeElement === one, style.outlineStyle, style.outlineWidth]; }",
            stop,
        )
        assert outline == [True, "solid", "2px"]
    assert not problems
