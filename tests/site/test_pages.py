"""Pages from a folder on disk, without scripts, the front door and the search."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Server, visitor
from looking import NARROW, SPILLING, WIDE, visit
from playwright.sync_api import Browser

READABLE = """() => {
    const article = document.querySelector("article");
    const found = article.innerText.length > 300 ? [] : ["no text"];
    for (const box of article.querySelectorAll(".math"))
        if (box.checkVisibility() && box.getBoundingClientRect().width < 2)
            found.push(`formula not drawn: ${box.textContent.slice(0, 60)}`);
    for (const image of article.querySelectorAll("img.figure-image"))
        if (image.checkVisibility() !== image.classList.contains("on-light"))
            found.push(`wrong picture: ${image.src}`);
    return found;
}"""


def test_every_page_from_disk(browser: Browser, site: Path, pages: list[str]) -> None:
    """All pages from a folder, as someone reads them who downloaded the site."""
    assert not visit(browser, site.as_uri(), pages, NARROW, "dark")


def test_every_page_without_scripts(browser: Browser, site: Path, pages: list[str]) -> None:
    """Text, formulas and figures need no JavaScript, and nothing spills."""
    found = []
    with visitor(browser, site.as_uri(), NARROW, "light", scripts=False) as (page, problems):
        for name in filter(lambda name: name.startswith("book/"), pages):
            page.goto(f"{site.as_uri()}/{name}", wait_until="load")
            wrong = page.evaluate(READABLE) + page.evaluate(SPILLING)
            found += [f"{name}: {text}" for text in wrong]
        assert not found + problems


def test_some_page_has_maths(site: Path, pages: list[str]) -> None:
    """The checks look at something: the book is full of formulas."""
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


def test_excerpts_of_a_search_show_a_formula_once(browser: Browser, site: Path) -> None:
    text = (site / "book" / "02-attention-svm" / "index.html").read_text(encoding="utf8")
    assert "katex-mathml" in text
    with visitor(browser, site.as_uri(), WIDE, "light") as (page, _):
        page.goto(f"{site.as_uri()}/search.html")
        excerpt = page.evaluate("text => Search.htmlToText(text, '')", text)
        page.goto(f"{site.as_uri()}/book/02-attention-svm/index.html")
        page.evaluate("document.querySelectorAll('.katex-mathml, script').forEach(e => e.remove())")
        seen = page.evaluate("document.querySelector('[role=main]').textContent")
    # Letters only: headings carry a link sign here.
    assert "".join(filter(str.isalpha, excerpt)) == "".join(filter(str.isalpha, seen))
