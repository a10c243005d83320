"""The skeleton of every page, and the keyboard; axe-core runs in the visits to every page."""

from __future__ import annotations

import itertools
from pathlib import Path

from browsing import open_page, visitor
from bs4 import BeautifulSoup
from playwright.sync_api import Browser

FOCUS = """() => {
    const style = getComputedStyle(document.activeElement);
    return [document.activeElement.outerHTML.slice(0, 80), style.outlineStyle, style.outlineWidth];
}"""


def test_headings_and_landmarks(site: Path, pages: list[str]) -> None:
    """One first heading, no level skipped; one main part; navigations and formulas have names."""
    problems = []
    for name in pages:
        soup = BeautifulSoup((site / name).read_text(encoding="utf-8"), "html.parser")
        if len(soup.select("main, [role=main]")) != 1:
            problems.append(f"{name}: {len(soup.select('main, [role=main]'))} main parts")
        if not soup.html or not soup.html.get("lang"):
            problems.append(f"{name}: no language")
        levels = [int(tag.name[1]) for tag in soup.select("article :is(h1, h2, h3, h4, h5, h6)")]
        if name.startswith("book/") and (levels[:1] != [1] or levels.count(1) != 1):
            problems.append(f"{name}: begins with headings {levels[:3]}")
        skips = [pair for pair in itertools.pairwise(levels) if pair[1] > pair[0] + 1]
        problems += [f"{name}: heading {after} follows {before}" for before, after in skips]
    assert not problems


def test_keyboard_shows_where_it_is(browser: Browser, site: Path) -> None:
    """The first stop skips to the text; every stop of a page is outlined."""
    with visitor(browser, site.as_uri(), 1400, "light") as (page, _):
        open_page(page, f"{site.as_uri()}/book/02-attention-svm/rank.html")
        page.keyboard.press("Tab")
        first = page.evaluate("document.activeElement.getAttribute('href')")
        assert first == "#main-content"
        unseen = []
        for _ in range(60):
            page.keyboard.press("Tab")
            element, style, width = page.evaluate(FOCUS)
            if element.startswith("<body"):
                break
            if style == "none" or width == "0px":
                unseen.append(element)
        assert not unseen
