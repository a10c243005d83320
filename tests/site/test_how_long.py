"""The page of measured times: a script fills its tables, also when it is opened from disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

PAGE = "book/how-long/index.html"


@pytest.fixture
def times(site: Path) -> dict:
    """What the build measured."""
    return json.loads((site / "_static" / "results" / "times.json").read_text(encoding="utf-8"))


def test_tables_hold_every_chapter_and_the_authors_way(
    site: Path, browser: Browser, times: dict
) -> None:
    page = browser.new_page()
    page.goto((site / PAGE).as_uri())
    heads = page.locator("#times-of-chapters tbody th").all_inner_texts()
    assert heads[:-1] == sorted(times["chapters"])
    assert heads[-1] == f"All, profile {times['profile']}"
    links = page.locator("#times-of-chapters tbody a")
    targets = links.evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    assert targets
    for target in targets:
        assert (site / "book" / "how-long" / target).resolve().is_file()
    rows = page.locator("#times-of-both-ways tbody tr")
    measured = times["chapters"]["how-long/authors-way"]["kernel"]["authors-way"]
    assert rows.count() == len(measured) == 4
    for text in rows.all_inner_texts():
        assert text.rstrip().endswith("×") and "NaN" not in text
    page.close()


def test_without_scripts_the_page_says_where_the_numbers_are(site: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / PAGE).as_uri())
    link = page.locator("#times-of-chapters tbody a")
    target = link.get_attribute("href")
    assert target is not None
    assert (site / "book" / "how-long" / target).resolve().is_file()
    context.close()


def test_no_measured_time_is_in_the_page_itself(site: Path, times: dict) -> None:
    text = (site / PAGE).read_text(encoding="utf-8")
    for chapter in times["chapters"].values():
        assert str(chapter["seconds"]) not in text
