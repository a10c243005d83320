"""Figures are there, are not blank in either theme, and come with all that belongs to them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from browsing import open_page, visitor
from PIL import Image
from playwright.sync_api import Browser

# Pictures load when they come into view; a screenshot has to wait for that.
LOADED = "async (image) => { image.loading = 'eager'; await image.decode(); }"
CARD_PARTS = (".ledger td", "details.passport", ".figure-links a[download]", "figcaption")


@pytest.fixture(scope="module")
def with_figures(site: Path, pages: list[str]) -> list[str]:
    """The pages that show a figure."""
    return [name for name in pages if 'class="figure-card"' in (site / name).read_text("utf-8")]


def _colours(picture: bytes) -> int:
    """Number of clearly different colours in a screenshot."""
    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(32).convert("RGB")
    colours = image.getcolors(image.width * image.height) or []
    return sum(1 for count, _ in colours if count > 20)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_are_not_blank(
    browser: Browser, site: Path, with_figures: list[str], theme: str
) -> None:
    """Each card shows exactly one picture, the one of this theme, with something drawn on it."""
    blank, seen = [], 0
    with visitor(browser, site.as_uri(), 1400, theme) as (page, problems):
        for name in with_figures:
            open_page(page, f"{site.as_uri()}/{name}")
            for card in page.locator(".figure-card").all():
                shown = [one for one in card.locator("img").all() if one.is_visible()]
                assert len(shown) == 1
                assert f"on-{theme}" in (shown[0].get_attribute("class") or "")
                seen += 1
                shown[0].evaluate(LOADED)
                if _colours(shown[0].screenshot()) < 4:
                    blank.append(f"{name}: {shown[0].get_attribute('src')}")
    assert seen > 0
    assert not blank
    assert not problems


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
                card.locator("summary").click()
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


def test_readable_without_scripts(browser: Browser, site: Path) -> None:
    """Text and figures need no JavaScript."""
    with visitor(browser, site.as_uri(), 1400, "light", scripts=False) as (page, problems):
        page.goto(f"{site.as_uri()}/book/intro.html")
        assert page.locator("article h1").is_visible()
        assert page.locator("img.on-light").first.is_visible()
        assert not page.locator("img.on-dark").first.is_visible()
    assert not problems
