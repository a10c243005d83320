"""The pages as text: links, anchors and downloads resolve, nothing raw is left over."""

from __future__ import annotations

import csv
import functools
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup, Tag

RAW = re.compile(
    r"\{(?:numref|eq|ref|doc|cite|cite:\w+|glue|glue:\w+|prf:\w+|claim|term|math|download)\}"
    r"|`|\$\$|:::|\((?:eq|thm|def|lem)-[\w-]+\)"
)
MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-"}


@functools.cache
def _soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def _article(path: Path) -> Tag | None:
    return _soup(path).find("article")


def _references(path: Path) -> list[str]:
    """Every address that a page refers to inside the site."""
    soup = _soup(path)
    tags = [tag for tag in soup.find_all(True) if tag.name != "base"]  # it says where links start
    found = [tag[name] for name in ("href", "src") for tag in tags if tag.has_attr(name)]
    return [
        str(one) for one in found if not urlsplit(str(one)).scheme and str(one) not in ("", "#")
    ]


def test_links_resolve(site: Path, pages: list[str]) -> None:
    """Every file that is linked exists and is not empty; every anchor is on its page."""
    problems = []
    for name in pages:
        for address in _references(site / name):
            parts = urlsplit(address)
            target = (site / name).parent / unquote(parts.path) if parts.path else site / name
            if not target.is_file() or target.stat().st_size == 0:
                problems.append(f"{name}: {address} leads nowhere")
            elif parts.fragment and target.suffix == ".html":
                anchor = unquote(parts.fragment)
                if _soup(target.resolve()).find(id=anchor) is None:
                    problems.append(f"{name}: no anchor {address}")
    assert not problems


@pytest.mark.parametrize("kind", ["svg", "pdf", "png", "csv"])
def test_downloads_are_what_they_say(site: Path, kind: str) -> None:
    """Files under a figure can be opened: SVG parses, CSV has rows, PDF and PNG begin right."""
    files = sorted((site / "_static" / "results" / "figures").glob(f"*.{kind}"))
    assert files
    for path in files:
        content = path.read_bytes()
        if kind == "svg":
            assert ET.fromstring(content).tag.endswith("svg"), path.name
        elif kind == "csv":
            rows = list(csv.reader(content.decode("utf-8").splitlines()))
            assert len(rows) > 1, path.name
            assert {len(row) for row in rows} == {len(rows[0])}, path.name
        else:
            assert content.startswith(MAGIC[path.suffix]), path.name


def test_nothing_raw_is_left(site: Path, pages: list[str]) -> None:
    """No role, fence, label or backtick reaches the reader."""
    problems = []
    for name in pages:
        article = _article(site / name)
        if article is None:
            continue
        for text in article.find_all(string=True):
            if text.find_parent(["pre", "code", "script", "style"]):
                continue
            if text.find_parent(class_="math") or not RAW.search(text):
                continue
            problems.append(f"{name}: {text.strip()[:90]!r}")
    assert not problems


def test_images_have_alt_texts(site: Path, pages: list[str]) -> None:
    """Pictures in the text say what they show; ornaments outside of it have an empty text."""
    problems = []
    for name in pages:
        for image in _soup(site / name).find_all("img"):
            alt = image.get("alt")
            inside = image.find_parent("article") is not None
            if alt is None or (inside and len(str(alt).strip()) < 20):
                problems.append(f"{name}: {image.get('src')} has the alt text {alt!r}")
    assert not problems


def test_pages_introduce_themselves(site: Path, pages: list[str]) -> None:
    """Titles differ; pages of the book have one first heading and a description."""
    titles = {}
    for name in pages:
        soup = _soup(site / name)
        title = soup.title.get_text(strip=True) if soup.title else ""
        assert title, name
        assert title not in titles, (name, titles[title])
        titles[title] = name
        if name.startswith("book/"):
            article = _article(site / name)
            assert article is not None, name
            assert len(article.find_all("h1")) == 1, name
            description = soup.find("meta", attrs={"name": "description"})
            assert isinstance(description, Tag), f"{name} has no description"
            assert len(str(description["content"])) > 30, name


def test_ids_are_unique(site: Path, pages: list[str]) -> None:
    """An anchor names one place."""
    for name in filter(lambda page: page.startswith("book/"), pages):
        ids = [str(tag["id"]) for tag in _soup(site / name).find_all(id=True)]
        twice = sorted({one for one in ids if ids.count(one) > 1})
        assert not twice, (name, twice)


def test_pages_have_no_live_code(site: Path, pages: list[str]) -> None:
    """The scripts that every page would declare twice are gone."""
    for name in pages:
        assert "thebe" not in (site / name).read_text(encoding="utf-8").lower(), name


def test_every_claim_on_the_scorecard_leads_to_its_box(site: Path) -> None:
    """The scorecard links each judged claim to the box where it was judged."""
    links = _soup(site / "book" / "scorecard.html").select("table.scorecard a[href*='#claim-']")
    records = list((site / "_static" / "results" / "claims").glob("*.json"))
    assert len(links) == len(records) > 0
    for link in links:
        page, anchor = str(link["href"]).split("#")
        box = _soup((site / "book" / page).resolve()).find(id=anchor)
        assert isinstance(box, Tag)
        assert box.select_one(".verdict span") is not None


def test_the_site_is_small(site: Path) -> None:
    """Someone can carry it away: at most 25 MB, and no font or script that no page asks for."""
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 25e6
    assert not list(site.rglob("*.map"))
    assert not list(site.rglob("*.ttf"))


def test_the_site_carries_no_ballast(site: Path, pages: list[str]) -> None:
    """No icon font; style sheets of the theme without the rules that nothing matches."""
    static = site / "_static"
    assert not (static / "vendor").exists()
    assert not list(site.rglob("*.woff"))
    icons = (static / "site.css").read_text("utf-8")
    assert len(icons) < 200_000
    for name in pages:
        for icon in _soup(site / name).select("i[class*='fa-']"):
            drawn = [one for one in icon["class"] if f".{one}{{--icon" in icons]
            assert drawn, (name, icon["class"])


def test_the_first_view_of_a_page_is_light(site: Path, pages: list[str]) -> None:
    """Page, style sheets and scripts together, without formulas: what every reader waits for."""
    for name in filter(lambda page: page.startswith("book/"), pages):
        soup = BeautifulSoup((site / name).read_text(encoding="utf-8"), "html.parser")
        files = [
            tag.get("src") or tag.get("href")
            for tag in soup.select("script[src], link[rel=stylesheet], link[rel=icon]")
        ]
        weight = 0
        for address in {urlsplit(str(one)).path for one in files}:
            if "katex" not in address:
                weight += ((site / name).parent / address).stat().st_size
        for formula in soup.select(".katex"):
            formula.decompose()
        assert weight + len(str(soup).encode()) < 430_000, name
