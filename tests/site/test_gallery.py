"""The gallery: every figure, and a filter that works with keys, from disk, and not at all without
scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import open_page, visitor
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Browser, Page

SHOWN = """() => [...document.querySelectorAll(".gallery > li")]
    .filter((item) => item.checkVisibility())
    .map((item) => item.querySelector("a").hash.slice(5))"""


@pytest.fixture(scope="module")
def figures(site: Path) -> list[dict[str, Any]]:
    """The records of all figures, each with the verdicts of its chapter."""
    results = site / "_static" / "results"
    claims = json.loads((results / "claims.json").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = json.loads((results / "figures.json").read_text(encoding="utf-8"))
    for figure in found:
        figure["verdicts"] = {c["verdict"] for c in claims if c["chapter"] == figure["chapter"]}
    return found


@pytest.fixture
def gallery(browser: Browser, site: Path) -> Iterator[Page]:
    with visitor(browser, site.as_uri(), 1400, "light") as (page, problems):
        open_page(page, f"{site.as_uri()}/book/gallery.html")
        yield page
    assert not problems


def names(figures: list[dict[str, Any]]) -> set[str]:
    return {figure["name"] for figure in figures}


def test_all_figures_lead_to_their_place(site: Path, figures: list[dict[str, Any]]) -> None:
    """Title, pictures that the site has anyway, and a link to the figure in its chapter."""
    page = BeautifulSoup((site / "book/gallery.html").read_text("utf-8"), "html.parser")
    items = page.select(".gallery > li")
    assert len(items) == len(figures) > 20
    by_name = {figure["name"]: figure for figure in figures}
    for item in items:
        link = item.select_one(".gallery-title a")
        assert isinstance(link, Tag)
        address, anchor = str(link["href"]).split("#")
        figure = by_name.pop(anchor.removeprefix("fig-"))
        assert link.get_text() == figure["title"]
        chapter = (site / "book" / address).read_text(encoding="utf-8")
        assert f'id="{anchor}"' in chapter
        pictures = item.select("img")
        assert [str(p["src"]).split("/results/")[1] for p in pictures] == [
            figure["files"]["svg"],
            figure["files"]["dark"],
        ]
        assert all(p["loading"] == "lazy" and p["alt"] == figure["alt"] for p in pictures)
        shown = {badge.get_text() for badge in item.select(".verdict")}
        assert shown == figure["verdicts"]
    assert not by_name


def test_filters_by_section_verdict_and_words(gallery: Page, figures: list[dict[str, Any]]) -> None:
    assert set(gallery.evaluate(SHOWN)) == names(figures)
    section = "05-local-convergence"
    gallery.get_by_label("Section", exact=True).select_option(section)
    inside = [f for f in figures if f["chapter"].startswith(section)]
    assert set(gallery.evaluate(SHOWN)) == names(inside) != names(figures)
    assert gallery.locator(".gallery-form output").inner_text().startswith(f"{len(inside)} of")
    gallery.get_by_label("Section", exact=True).select_option("")
    gallery.get_by_label("Verdict", exact=True).select_option("fails")
    failing = [f for f in figures if "fails" in f["verdicts"]]
    assert set(gallery.evaluate(SHOWN)) == names(failing)
    assert 0 < len(failing) < len(figures)
    gallery.get_by_label("Verdict", exact=True).select_option("")
    gallery.get_by_label("Words", exact=True).fill("Markov  chain")
    assert gallery.evaluate(SHOWN) == ["markov-view"]


def test_the_address_keeps_the_choice(gallery: Page, figures: list[dict[str, Any]]) -> None:
    gallery.get_by_label("Section", exact=True).select_option("06-nonlinear-heads")
    gallery.get_by_label("Words", exact=True).fill("threshold")
    assert gallery.evaluate("location.hash") == "#section=06-nonlinear-heads&words=threshold"
    chosen = gallery.evaluate(SHOWN)
    gallery.reload()
    assert gallery.evaluate(SHOWN) == chosen
    assert gallery.get_by_label("Words", exact=True).input_value() == "threshold"
    gallery.evaluate("location.hash = '#verdict=nonsense&section=07-sequences'")
    gallery.wait_for_function("document.querySelector('[name=section]').value === '07-sequences'")
    assert gallery.evaluate(SHOWN) == ["sequences"]
    gallery.get_by_label("Section", exact=True).select_option("")
    assert gallery.evaluate("location.href").endswith("gallery.html")
    assert set(gallery.evaluate(SHOWN)) == names(figures)


def test_nothing_found_is_said_and_undone(gallery: Page, figures: list[dict[str, Any]]) -> None:
    gallery.get_by_label("Words", exact=True).fill("no figure has these words")
    assert gallery.evaluate(SHOWN) == []
    assert gallery.locator(".gallery-form output").inner_text().startswith("0 of")
    gallery.get_by_role("button", name="Show all figures").click()
    assert set(gallery.evaluate(SHOWN)) == names(figures)
    assert gallery.evaluate("document.activeElement.name") == "section"


def test_by_keyboard_alone(gallery: Page) -> None:
    """From the section to the first figure found, each stop outlined."""
    gallery.get_by_label("Section", exact=True).focus()
    gallery.keyboard.press("End")  # the last section
    first = gallery.evaluate(SHOWN)[0]
    for _ in range(8):  # verdict, words, perhaps the browser's own button to clear them
        gallery.keyboard.press("Tab")
        if gallery.evaluate("document.activeElement.closest('.gallery-title') !== null"):
            break
    outline = "getComputedStyle(document.activeElement.closest('li')).outlineStyle"
    assert gallery.evaluate(outline) == "solid"
    gallery.keyboard.press("Enter")
    gallery.wait_for_url(f"**/*.html#fig-{first}")


@pytest.mark.parametrize("width", [1400, 390])
def test_without_scripts_all_are_shown(
    browser: Browser, site: Path, width: int, figures: list[dict[str, Any]]
) -> None:
    with visitor(browser, site.as_uri(), width, "light", scripts=False) as (page, problems):
        page.goto(f"{site.as_uri()}/book/gallery.html")
        visible = page.locator(".gallery > li").filter(visible=True)
        assert visible.count() == len(figures)
        assert not page.locator(".gallery-form").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not problems
