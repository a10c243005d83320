"""Whole builds of a tiny book, in real processes: papermill, checks, Jupyter Book, the site."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import booktools
import pytest
from booktools import CHAPTER


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny book that has been built once, in full; do not change it."""
    root = booktools.copy_book(tmp_path_factory.mktemp("built"))
    done = booktools.run("build", "--root", root)
    assert done.returncode == 0, done.stderr
    assert f"{CHAPTER}: runs (first run (full))" in done.stderr
    return root


@pytest.fixture
def book(built: Path, tmp_path: Path) -> Path:
    """A private copy of the built book with its cache."""
    root = tmp_path / "a copy"
    shutil.copytree(built, root)
    return root


def test_page_shows_what_was_run(built: Path) -> None:
    page = (built / "_build" / "html" / "book" / "01-demo" / "line.html").read_text()
    text = re.sub(r"<[^>]+>", "", page)
    assert "points = 5  # how many points; full scale: 5" in text
    assert "slope = 2.0  # rise per step" in text
    assert "5 points, slope 2.0" in text
    # The injected cell is folded into the parameters cell, not shown a second time.
    assert text.count("points = 5") == 1


def test_notebook_on_the_site_holds_no_trace_of_the_run(built: Path) -> None:
    source = built / "_build" / "html" / "_sources" / "book" / "01-demo" / "line.ipynb"
    notebook = json.loads(source.read_text())
    assert len(notebook["cells"]) == 3
    assert [cell["id"] for cell in notebook["cells"]] == ["cell-001", "cell-002", "cell-003"]
    assert "papermill" not in source.read_text()
    assert [cell.get("execution_count") for cell in notebook["cells"]] == [None, 1, 2]


def test_results_are_merged_and_indexed(built: Path) -> None:
    results = built / "_build" / "html" / "_static" / "results"
    assert [figure["name"] for figure in json.loads((results / "figures.json").read_text())] == [
        "line"
    ]
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


def test_times_are_also_a_script(built: Path) -> None:
    results = built / "_build" / "html" / "_static" / "results"
    script = (results / "times.js").read_text()
    start, end = "window.attsvmTimes = ", ";\n"
    assert script.startswith(start) and script.endswith(end)
    assert json.loads(script[len(start) : -len(end)]) == json.loads(
        (results / "times.json").read_text()
    )


def test_a_build_leaves_no_scratch_and_no_trace_in_the_sources(built: Path) -> None:
    assert not (built / "_build" / "work").exists()
    sources = booktools.tree(built / "book")
    assert sources == booktools.tree(booktools.TINY / "book")


def test_second_run_executes_nothing(book: Path) -> None:
    before = booktools.tree(book / "_build" / "html")
    done = booktools.run("build", "--root", book)
    assert done.returncode == 0, done.stderr
    assert f"{CHAPTER}: kept (unchanged)" in done.stderr
    assert booktools.executed(book) == []
    assert booktools.tree(book / "_build" / "html") == before


def test_two_full_runs_are_byte_identical(built: Path, tmp_path: Path) -> None:
    other = booktools.copy_book(tmp_path / "elsewhere")
    output = tmp_path / "some output"
    done = booktools.run("build", "--root", other, "--output", output, "--force")
    assert done.returncode == 0, done.stderr
    assert "runs (forced)" in done.stderr
    first, second = booktools.tree(built / "_build" / "html"), booktools.tree(output / "html")
    assert len(first) > 50
    assert ".nojekyll" in first and ".buildinfo" not in first
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []


def change_cell(root: Path) -> None:
    booktools.add_cell(root, "print(points)")


def test_damaged_results_are_noticed(book: Path) -> None:
    kept = next((book / "_build" / "chapters" / CHAPTER).glob("*/results/figures/line.csv"))
    kept.write_text(kept.read_text()[:-4])
    assert booktools.state(book) == "would run its kept results are damaged"


def test_truncated_manifest_is_noticed(book: Path) -> None:
    manifest = next((book / "_build" / "chapters" / CHAPTER).glob("*/manifest.json"))
    manifest.write_text(manifest.read_text()[:40])
    assert booktools.state(book) == "would run its kept results are damaged"


def test_profiles_are_kept_side_by_side(book: Path) -> None:
    assert booktools.state(book, "--profile", "quick") == "would run first run (quick)"
    assert booktools.build(book).returncode == 0
    assert "3 points, slope 2.0" in (book / "_build/html/book/01-demo/line.html").read_text()
    assert booktools.state(book, "--profile", "quick") == "cached unchanged"
    assert booktools.state(book) == "cached unchanged"


def test_only_leaves_other_chapters_as_they_were(book: Path) -> None:
    booktools.add_chapter(book, "01-demo/other", "print('other', size)")
    change_cell(book)
    done = booktools.run("build", "--root", book, "--only", "other")
    assert done.returncode == 0, done.stderr
    assert f"{CHAPTER}: kept (out of date: code changed)" in done.stderr
    assert booktools.executed(book) == ["01-demo/other"]


def test_old_states_are_kept_for_a_way_back(book: Path) -> None:
    original = booktools.notebook_path(book).read_text()
    change_cell(book)
    assert booktools.run("build", "--root", book).returncode == 0
    booktools.notebook_path(book).write_text(original)
    assert booktools.state(book) == "cached unchanged"


def test_notebook_outside_the_table_of_contents_is_mentioned(book: Path) -> None:
    path = booktools.notebook_path(book)
    shutil.copy(path, path.with_name("draft.ipynb"))
    assert re.search(r"01-demo/draft\s+left out", booktools.run("list", "--root", book).stdout)
