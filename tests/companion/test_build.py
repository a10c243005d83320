"""Whole builds of a tiny book, in real processes: papermill, checks, Jupyter Book, the site."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import booktools
import pytest
from booktools import CHAPTER

FULL = ("--profile", "full")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny book that has been built once, in full; do not change it."""
    root = booktools.copy_book(tmp_path_factory.mktemp("built"))
    assert f"{CHAPTER}: runs (first run (full))" in booktools.build(root, *FULL)
    return root


@pytest.fixture
def book(built: Path, tmp_path: Path) -> Path:
    """A private copy of the built book with its cache."""
    return Path(shutil.copytree(built, tmp_path / "a copy"))


def test_page_shows_what_was_run(built: Path) -> None:
    text = re.sub(r"<[^>]+>", "", booktools.page(built))
    assert text.count("points = 5  # how many points; full scale: 5") == 1
    assert "slope = 2.0  # rise per step" in text
    assert "5 points, slope 2.0" in text
    assert text.count("points = ") == 1


def test_notebook_on_the_site_holds_no_trace_of_the_run(built: Path) -> None:
    source = built / "_build" / "html" / "_sources" / "book" / "01-demo" / "line.ipynb"
    cells = json.loads(source.read_text())["cells"]
    assert [cell["id"] for cell in cells] == ["cell-001", "cell-002", "cell-003"]
    assert "papermill" not in source.read_text()
    assert [cell.get("execution_count") for cell in cells] == [None, 1, 2]


def test_results_are_merged_and_indexed(built: Path) -> None:
    results = built / "_build" / "html" / "_static" / "results"
    figures = json.loads((results / "figures.json").read_text())
    assert [figure["name"] for figure in figures] == ["line"]
    assert json.loads((results / "claims.json").read_text()) == []
    for kind in ("svg", "pdf", "png", "csv"):
        assert (results / "figures" / f"line.{kind}").stat().st_size > 0
    assert (results / "figures" / "line.csv").read_text().count("\n") == 6


def test_times_are_measured_and_kept_apart(built: Path) -> None:
    times = json.loads((built / "_build" / "times.json").read_text())
    assert times["executed"] == [CHAPTER]
    assert times["chapters"][CHAPTER]["seconds"] > 0
    assert times["build"]["rendering"] > 0
    # A kernel with numpy and matplotlib; anything far off would be a wrong unit.
    assert 5e7 < times["chapters"][CHAPTER]["memory"] < 3e9
    # On the site they are a script, too.
    results = built / "_build" / "html" / "_static" / "results"
    times = json.loads((results / "times.json").read_text())
    script = (results / "times.js").read_text()
    assert json.loads(script.removeprefix("window.attsvmTimes = ").removesuffix(";\n")) == times


def test_a_build_leaves_no_scratch_and_no_trace_in_the_sources(built: Path) -> None:
    assert not (built / "_build" / "work").exists()
    assert booktools.tree(built / "book") == booktools.tree(booktools.TINY / "book")


def test_second_run_executes_nothing(book: Path) -> None:
    before = booktools.tree(book / "_build" / "html")
    assert f"{CHAPTER}: kept (unchanged)" in booktools.build(book, *FULL)
    assert booktools.executed(book) == []
    assert booktools.tree(book / "_build" / "html") == before


def test_two_full_runs_are_byte_identical(built: Path, tmp_path: Path) -> None:
    other = booktools.copy_book(tmp_path / "elsewhere")
    output = tmp_path / "some output"
    assert "runs (forced)" in booktools.build(other, *FULL, "--output", output, "--force")
    first, second = booktools.tree(built / "_build" / "html"), booktools.tree(output / "html")
    assert len(first) > 50
    assert ".nojekyll" in first and ".buildinfo" not in first
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []


@pytest.mark.parametrize(
    ("file", "lost"), [("results/figures/line.csv", 4), ("manifest.json", 400)]
)
def test_damaged_results_are_noticed(book: Path, file: str, lost: int) -> None:
    kept = next((book / "_build" / "chapters" / CHAPTER).glob(f"*/{file}"))
    kept.write_text(kept.read_text()[:-lost])
    assert booktools.state(book) == "would run its kept results are damaged"


def test_profiles_are_kept_side_by_side(book: Path) -> None:
    assert booktools.state(book, "--profile", "quick") == "would run first run (quick)"
    booktools.build(book)
    assert "3 points, slope 2.0" in booktools.page(book)
    assert booktools.state(book, "--profile", "quick") == "cached unchanged"
    assert booktools.state(book) == "cached unchanged"


def test_only_leaves_other_chapters_as_they_were(book: Path) -> None:
    booktools.add_chapter(book, "01-demo/other", "print('other', size)")
    booktools.edit(book, lambda nb: nb["metadata"]["attsvm"]["full"].update(points=4))
    said = booktools.build(book, *FULL, "--only", "other")
    assert f"{CHAPTER}: kept (out of date: parameters changed)" in said
    assert booktools.executed(book) == ["01-demo/other"]
    assert "points = 5" in re.sub(r"<[^>]+>", "", booktools.page(book))


def test_old_states_are_kept_for_a_way_back(book: Path) -> None:
    original = booktools.notebook_path(book).read_text()
    booktools.add_cell(book, "print(points)")
    booktools.build(book, *FULL)
    booktools.notebook_path(book).write_text(original)
    assert booktools.state(book) == "cached unchanged"


def test_notebook_outside_the_table_of_contents_is_mentioned(book: Path) -> None:
    path = booktools.notebook_path(book)
    shutil.copy(path, path.with_name("draft.ipynb"))
    assert re.search(r"01-demo/draft\s+left out", booktools.run("list", "--root", book).stdout)
