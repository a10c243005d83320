"""axe-core on every page, light and dark: nothing serious, nothing critical."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import open_page, visitor
from playwright.sync_api import Browser

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
FINDINGS = """async () => {
    const result = await axe.run(document, { resultTypes: ["violations"] });
    return result.violations
        .filter((one) => ["serious", "critical"].includes(one.impact))
        .flatMap((one) => one.nodes.map(
            (node) => `${one.id}: ${node.target.join(" ")} ${node.html.slice(0, 90)}`));
}"""


@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (390, "dark")])
def test_axe(browser: Browser, site: Path, pages: list[str], width: int, theme: str) -> None:
    """No finding that would keep someone out."""
    findings: list[str] = []
    with visitor(browser, site.as_uri(), width, theme) as (page, _):
        for name in pages:
            open_page(page, f"{site.as_uri()}/{name}")
            page.evaluate(AXE)
            findings += [f"{name}: {text}" for text in page.evaluate(FINDINGS)]
    assert not findings


def test_keyboard_shows_where_it_is(browser: Browser, site: Path) -> None:
    """The first stop skips to the text; a focused link is outlined."""
    with visitor(browser, site.as_uri(), 1400, "light") as (page, _):
        open_page(page, f"{site.as_uri()}/book/intro.html")
        page.keyboard.press("Tab")
        first = page.evaluate("document.activeElement.getAttribute('href')")
        assert first == "#main-content"
        page.locator("article a").first.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
