"""Every page, wide and narrow, light and dark: it loads clean, maths is drawn, nothing spills."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Server, open_page, visitor
from playwright.sync_api import Browser, Page

WIDE, NARROW = 1400, 390

# What a reader sees of an article, without code and without formulas.
VISIBLE_TEXT = """() => {
    const article = document.querySelector("article") ?? document.querySelector("main");
    const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    const parts = [];
    while (walker.nextNode()) {
        const parent = walker.currentNode.parentElement;
        if (!parent.closest("pre, code, script, style, .math")) {
            parts.push(walker.currentNode.data);
        }
    }
    return parts.join("");
}"""
UNDRAWN_MATHS = """() => [...document.querySelectorAll("article .math")]
    .filter((box) => {
        const drawn = box.querySelector(".katex-html .katex-base");
        return !drawn || drawn.getBoundingClientRect().width < 2
            || !box.querySelector("math :is(mi, mn, mo)") || box.querySelector("merror");
    })
    .map((box) => box.textContent.slice(0, 80))"""
SPILLING = """() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.querySelectorAll("body *")]
        .filter((one) => one.getBoundingClientRect().right > width + 1)
        .slice(0, 5).map((one) => `${one.tagName}.${one.className}`);
}"""
BROKEN_IMAGES = """async () => {
    const seen = [...document.querySelectorAll("article img")]
        .filter((image) => getComputedStyle(image).display !== "none");
    for (const image of seen) image.loading = "eager";
    await Promise.all(seen.map((image) => image.decode().catch(() => null)));
    return seen.filter((image) => !image.complete || image.naturalWidth < 50
        || image.getBoundingClientRect().width < 50).map((image) => image.src);
}"""


def _look(page: Page, name: str) -> list[str]:
    """What is wrong with the page that is open."""
    problems = [f"{name}: maths not drawn: {text}" for text in page.evaluate(UNDRAWN_MATHS)]
    problems += [f"{name}: image not drawn: {address}" for address in page.evaluate(BROKEN_IMAGES)]
    problems += [f"{name}: wider than the window: {what}" for what in page.evaluate(SPILLING)]
    text = page.evaluate(VISIBLE_TEXT)
    problems += [f"{name}: raw {sign!r}" for sign in ("$", "\\(", "\\[", "\\begin") if sign in text]
    return problems


@pytest.mark.parametrize(("width", "theme"), [(WIDE, "light"), (NARROW, "dark")])
def test_pages_over_http(
    browser: Browser, server: Server, pages: list[str], width: int, theme: str
) -> None:
    """All pages from a web server."""
    with visitor(browser, server.address, width, theme) as (page, problems):
        for name in pages:
            open_page(page, f"{server.address}/{name}")
            problems += _look(page, name)
    assert not problems


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_pages_from_disk(
    browser: Browser, site: Path, pages: list[str], width: int, theme: str
) -> None:
    """All pages from a folder, as someone reads them who downloaded the site."""
    with visitor(browser, site.as_uri(), width, theme) as (page, problems):
        for name in pages:
            open_page(page, f"{site.as_uri()}/{name}")
            problems += _look(page, name)
    assert not problems


def test_some_page_has_maths(site: Path, pages: list[str]) -> None:
    """The checks above look at something: the book is full of formulas."""
    assert sum((site / name).read_text("utf-8").count('class="math') for name in pages) > 10


def test_the_front_door(browser: Browser, site: Path) -> None:
    """The root of the site leads to the landing page."""
    with visitor(browser, site.as_uri(), WIDE, "light") as (page, problems):
        page.goto(f"{site.as_uri()}/index.html")
        page.wait_for_url("**/book/intro.html")
        assert page.locator("h1").count() == 1
    assert not problems


@pytest.mark.parametrize("origin", ["disk", "server"])
def test_search_finds_a_page(browser: Browser, site: Path, server: Server, origin: str) -> None:
    """The search works without a network, from a folder as from a server."""
    root = site.as_uri() if origin == "disk" else server.address
    with visitor(browser, root, WIDE, "light") as (page, _):
        page.goto(f"{root}/search.html?q=scorecard")
        page.locator("#search-results li a").first.wait_for()
        assert "scorecard" in page.locator("#search-results").inner_text().lower()
