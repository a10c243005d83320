"""A book of another subject goes through every command: the tool knows nothing of this one's."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import booktools
from pypdf import PdfReader


def test_a_book_about_something_else_goes_through_every_command(tmp_path: Path) -> None:
    book = booktools.copy_book(tmp_path, booktools.WALKS)
    source = "".join(path.read_text() for path in book.rglob("*.[imy]*") if path.is_file())
    assert "random" in source and not re.search(r"attention|transformer|token", source)
    site, chunks = book / "_build" / "html", tmp_path / "chunks"

    def attsvm(*arguments: object) -> str:
        environment = {"ATTSVM_CACHE": str(chunks)}
        return booktools.run(*arguments, environment=environment, cwd=tmp_path).stdout

    assert attsvm("build", "--root", book, "--profile", "quick") == f"{site / 'index.html'}\n"
    assert "steps = 16" in re.sub("<.*?>", "", booktools.page(book, "01-walks/spread"))
    assert (site / "_static/results/figures/spread.svg").is_file()
    listing = attsvm("list", "--root", book, "--profile", "quick")
    assert re.findall(r"^(\S+) +cached", listing, re.MULTILINE) == [
        "01-walks/spread",
        "02-area/circle",
    ]

    rows = json.loads(attsvm("params", "circle", "--json", "--root", book))["parameters"]
    assert [(row["name"], row["full"], row["range"]) for row in rows] == [
        ("darts", 10000, "at least 1"),
        ("seeds", [0, 1, 2], "at least 0, ascending"),
    ]
    attsvm("run", "spread", "-p", "steps=9", "--root", book, "--output", "nine")
    assert len((tmp_path / "nine/figures/spread.csv").read_text().splitlines()) == 10
    assert "walk, seeds 30..39" in attsvm("cache", "list")
    assert "4 entries" in attsvm("cache", "clear")

    # A claim of its own: the registry of a build is the package's, so this comes after the build.
    claim = booktools.report("02-area/circle", "area.circle", "np.mean(estimates)", "True")
    booktools.add_cell(book, claim, "02-area/circle")
    booktools.edit(
        book,
        lambda notebook: notebook["metadata"]["attsvm"].update(claims=["area.circle"]),
        "02-area/circle",
    )
    grid = ["circle", "-p", "darts=10,1000", "--root", book, "--output", "grid"]
    assert attsvm("sweep", *grid).startswith("2 of 2 runs done\n")
    runs = tmp_path / "grid" / "runs"
    drift = attsvm("drift", runs / "darts-10", runs / "darts-1000")
    assert "2 numbers of 1 claims compared: 1 identical" in drift
    assert "| area.circle | certified |" in drift

    assert attsvm("pdf", "--root", book) == f"{site / 'attsvm-book.pdf'}\n"
    pages = [page.extract_text() for page in PdfReader(site / "attsvm-book.pdf").pages]
    assert "Random walks" in pages[0] and "An area that darts measure" in pages[-1]
    with (
        booktools.serving(book) as address,
        urllib.request.urlopen(f"{address}book/start.html", timeout=30) as page,
    ):
        assert b"The whole book as PDF" in page.read()
    attsvm("clean", "--root", book)
    assert not site.exists()
