"""The book on paper: every chapter is in it, every link leads somewhere, no page is blank."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pypdf import PdfReader
from pypdf.generic import IndirectObject

from companion.ship.pdf import NAME
from companion.ship.stitch import outline

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def printed(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the site after ``attsvm pdf``: the site under test stays as it is."""
    output = tmp_path_factory.mktemp("print")
    shutil.copytree(site, output / "html")
    command = [sys.executable, "-m", "attsvm", "pdf", "--output", str(output)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(output / "html" / NAME)
    return output / "html"


@pytest.fixture(scope="module")
def book(printed: Path) -> PdfReader:
    """The PDF."""
    return PdfReader(printed / NAME)


@pytest.fixture(scope="module")
def texts(book: PdfReader) -> list[str]:
    """The text of every page."""
    return [page.extract_text() for page in book.pages]


def _entries(outlines: list[Any]) -> Iterator[Any]:
    for entry in outlines:
        if isinstance(entry, list):
            yield from _entries(entry)
        else:
            yield entry


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def test_pages(book: PdfReader, texts: list[str]) -> None:
    """A4, none blank, numbered at the foot."""
    assert len(book.pages) > 100
    for number, (page, text) in enumerate(zip(book.pages, texts, strict=True), start=1):
        assert (round(page.mediabox.width), round(page.mediabox.height)) == (595, 842)
        assert len(_squeezed(text)) > 20, f"page {number} is blank"
        if number > 1:
            assert re.search(rf"\b{number}\b", text), f"page {number} has no number"


def test_outline_and_contents(book: PdfReader, texts: list[str], site: Path) -> None:
    """Every chapter is in the outline and in the contents, with the page on which it begins."""
    toc = yaml.safe_load((REPOSITORY / "_toc.yml").read_text(encoding="utf-8"))
    begins: dict[str, list[int]] = {}  # two headings may have one name
    for entry in _entries(book.outline):
        number = book.get_destination_page_number(entry)
        assert number is not None
        begins.setdefault(_squeezed(str(entry.title)), []).append(number + 1)
    contents = _squeezed("".join(texts[1:4]))
    parts = outline(toc)
    assert len(parts) > 20
    for part in parts:
        html = (site / f"{part.page}.html").read_text(encoding="utf-8")
        title = re.search(r"<title>(.*?)(?: · .*?)?(?: &#8212; .*?)?</title>", html, re.DOTALL)
        assert title is not None
        name = _squeezed(title[1].replace("&amp;", "&"))
        assert name in begins, part.page
        assert any(f"{name}{number}" in contents for number in begins[name]), part.page


def test_links_lead_somewhere(book: PdfReader) -> None:
    """Links stay inside the document or go to the web, never to a file of some machine."""
    named = set(book.named_destinations)
    inside = outside = 0
    for page in book.pages:
        for reference in page.get("/Annots", []):
            link = reference.get_object()
            if link.get("/Subtype") != "/Link":
                continue
            target = link.get("/Dest", link.get("/A", {}).get("/D"))
            if target is None:
                assert str(link["/A"]["/URI"]).startswith(("http://", "https://"))
                outside += 1
            elif isinstance(target, list):
                assert isinstance(target[0], IndirectObject)
                inside += 1
            else:
                assert str(target) in named, target
                inside += 1
    assert inside > 200
    assert outside > 5


def test_text_can_be_found(texts: list[str]) -> None:
    """Theorems, proofs, claims and captions are text."""
    whole = _squeezed("".join(texts))
    for words in ("Theorem1", "Proof.", "Lemma1", "Fig.1", "Claim", "Parameters", "References"):
        assert words in whole, words


def test_measured_times_are_printed(texts: list[str], site: Path) -> None:
    """The tables that a script fills on the site are filled on paper too, without links."""
    times = json.loads((site / "_static" / "results" / "times.json").read_text("utf-8"))
    whole = _squeezed("".join(texts))
    assert "Filledbyascript" not in whole
    assert _squeezed(f"All, profile {times['profile']}") in whole
    for chapter in times["chapters"]:
        assert chapter in whole


def test_the_site_offers_it(printed: Path, site: Path) -> None:
    """Every page of the printed site links the PDF; where there is none, no page does."""
    pages = sorted((printed / "book").rglob("*.html"))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        link = re.search(rf'<a href="([^"]*{re.escape(NAME)})" download>', text)
        assert link is not None, page.name
        assert (page.parent / link[1]).resolve() == (printed / NAME).resolve()
    if not (site / NAME).exists():
        assert not [page for page in site.rglob("*.html") if NAME in page.read_text("utf-8")]
    assert (printed / NAME).stat().st_size < 8e6


def test_no_site_no_pdf(tmp_path: Path) -> None:
    """Without a site there is one clear line, and exit code 1."""
    command = [sys.executable, "-m", "attsvm", "pdf", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no site in" in done.stderr
    assert "Traceback" not in done.stderr
