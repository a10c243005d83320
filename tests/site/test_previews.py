"""Resting on a reference shows the statement: with the mouse and with keys, never with a finger."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import pytest
from browsing import Server, open_page, visitor
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page

from companion.site.previews import cut

CALL = re.compile(r'attsvmPreviews\("([\w/-]+)", "([\w+/=]+)"\);\n')
CHAPTER = "book/05-local-convergence/cones.html"


def statements(path: Path) -> tuple[str, dict[str, str]]:
    match = CALL.fullmatch(path.read_text(encoding="utf-8"))
    assert match, path.name
    return match[1], json.loads(gzip.decompress(base64.b64decode(match[2])))


def test_cutting_takes_the_inside_without_its_place() -> None:
    page = (
        '<main><div id="a" class="x"><p id="b">One &lt; <a href="#q" class="r">two</a>'
        '<a class="headerlink" href="#a">#<i>!</i></a> &#8800; <br>three</p>'
        '<svg viewBox="0 0 1 1"><path d="M0 0"/></svg></div><p id="c">four</p></main>'
    )
    found = cut(page, {"a", "b", "c", "d"})
    inner = 'One &lt; <span class="r">two</span> &#8800; <br>three'
    assert found == {
        "b": inner,
        "a": f'<p>{inner}</p><svg viewbox="0 0 1 1"><path d="M0 0"/></svg>',
        "c": "four",
    }


def test_every_previewed_reference_has_its_statement(site: Path, pages: list[str]) -> None:
    """Whatever promises a preview finds one, and it says something."""
    known = dict(statements(path) for path in (site / "_static/previews").glob("*.js"))
    count = 0
    for name in pages:
        soup = BeautifulSoup((site / name).read_text(encoding="utf-8"), "html.parser")
        for link in soup.select("a.has-preview"):
            address, anchor = str(link["href"]).split("#")
            target = (site / name).parent / address if address else site / name
            page = target.resolve().relative_to(site.resolve()).as_posix().removesuffix(".html")
            assert len(known[page][anchor]) > 20, (name, str(link))
            count += 1
    assert count > 200


def test_statements_bring_no_ids_and_no_addresses(site: Path) -> None:
    for path in (site / "_static/previews").glob("*.js"):
        for name, html in statements(path)[1].items():
            soup = BeautifulSoup(html, "html.parser")
            assert not soup.find_all(id=True), name
            assert not soup.find_all(["a", "script"]), name


def opened(page: Page) -> str | None:
    box = page.locator("#preview")
    return box.inner_text() if box.count() and box.is_visible() else None


@pytest.mark.parametrize("origin", ["disk", "server"])
def test_the_mouse_opens_and_leaves(
    browser: Browser, site: Path, server: Server, origin: str
) -> None:
    """It comes with the mouse, may be entered, and goes; nothing is loaded before."""
    root = site.as_uri() if origin == "disk" else server.address
    with visitor(browser, root, 1400, "light") as (page, problems):
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        open_page(page, f"{root}/{CHAPTER}")
        assert not [one for one in asked if "/previews/" in one]
        link = page.locator("article a.has-preview[href*='#thm-local']").first
        link.hover()
        page.locator("#preview").wait_for()
        assert "Local convergence" in (opened(page) or "")
        assert link.get_attribute("aria-describedby") == "preview"
        box = page.locator("#preview").bounding_box()
        assert box is not None
        assert box["x"] >= 0 and box["x"] + box["width"] <= 1400
        page.locator("#preview").hover()
        page.wait_for_timeout(500)
        assert opened(page)
        page.mouse.move(5, 5)
        page.locator("#preview").wait_for(state="hidden")
        assert link.get_attribute("aria-describedby") is None
        assert len([one for one in asked if "/previews/" in one]) == 1
    assert not problems


def test_keys_open_and_escape_closes(browser: Browser, site: Path) -> None:
    with visitor(browser, site.as_uri(), 1400, "dark") as (page, problems):
        open_page(page, f"{site.as_uri()}/{CHAPTER}")
        page.locator("article summary").first.focus()
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('a.has-preview')"):
                break
        page.locator("#preview").wait_for()
        assert opened(page)
        page.keyboard.press("Escape")
        assert opened(page) is None
        assert page.evaluate("document.activeElement.matches('a.has-preview')")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("#"))
    assert not problems


def test_a_finger_follows_the_link(browser: Browser, site: Path) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(f"{site.as_uri()}/{CHAPTER}")
    link = page.locator("article a.has-preview[href*='#thm-local']").first
    target = str(link.get_attribute("href")).split("/")[-1]
    link.tap()
    page.wait_for_url(f"**/{target}")
    assert opened(page) is None
    context.close()


def test_formulas_are_drawn_where_a_page_has_none(browser: Browser, site: Path) -> None:
    """The reference of the package has no formula; the statements that it leads to have."""
    with visitor(browser, site.as_uri(), 390, "light") as (page, problems):
        open_page(page, f"{site.as_uri()}/book/api/simplex.html")
        page.locator("article a.has-preview[href*='#equation-simplex-projection']").first.hover()
        page.locator("#preview").wait_for()
        page.wait_for_timeout(300)
        text = opened(page) or ""
        assert "\\" not in text and "$" not in text
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        height = "document.querySelector('#preview').getBoundingClientRect().height"
        assert 40 < page.evaluate(height) < 500
    assert not problems
