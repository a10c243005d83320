"""Figures come with all that belongs to them; printing gives a clean paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import open_page, visitor
from playwright.sync_api import Browser

CARD_PARTS = (".ledger td", "details.passport", ".figure-links a[download]", "figcaption")


@pytest.fixture(scope="module")
def with_figures(site: Path, pages: list[str]) -> list[str]:
    """The pages that show a figure."""
    return [name for name in pages if 'class="figure-card"' in (site / name).read_text("utf-8")]


def test_cards_are_complete(browser: Browser, site: Path, with_figures: list[str]) -> None:
    """On its own page a figure has a ledger, a passport, four downloads and a way to its cell."""
    seen = 0
    with visitor(browser, site.as_uri(), 1400, "light") as (page, _):
        for name in with_figures:
            open_page(page, f"{site.as_uri()}/{name}")
            for card in page.locator(".figure-card:has(.passport)").all():
                seen += 1
                for part in CARD_PARTS:
                    assert card.locator(part).count() > 0, (name, part)
                assert card.locator("a[download]").count() == 4
                card.locator(".passport > summary").click()
                assert card.locator(".passport-entries").is_visible()
                target = card.locator(".figure-origin").get_attribute("href") or ""
                assert page.locator(f'[id="{target.removeprefix("#")}"] pre').count() > 0
    assert seen > 0


def test_print_is_a_clean_paper(browser: Browser, site: Path) -> None:
    """On paper: no frame of the site, light figures even from a dark page."""
    with visitor(browser, site.as_uri(), 1400, "dark") as (page, problems):
        open_page(page, f"{site.as_uri()}/book/intro.html")
        page.emulate_media(media="print")
        assert page.locator("img.on-light").first.is_visible()
        assert not page.locator("img.on-dark").first.is_visible()
        for frame in (".bd-sidebar-primary", ".figure-links", ".prev-next-footer"):
            assert not page.locator(frame).first.is_visible(), frame
        assert len(page.pdf()) > 10_000
    assert not problems
