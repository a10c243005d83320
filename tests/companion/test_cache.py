"""What makes a chapter run again, and what does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import booktools
import pytest
from booktools import CHAPTER

EXPERIMENT = """
from attsvm import experiments
from attsvm.figures import COLOURS
from attsvm.simplex import project


def spread(seeds):
    return experiments.tabulate(seeds, value=[float(project([s, 0.0])[0]) for s in seeds])


found = experiments.run(spread, range(4), chunk=2, progress=False)
print("sum", found.table["value"].sum())
"""


FULL = ("--profile", "full")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny book whose chapter runs an experiment too, built once in full; do not change it."""
    root = booktools.copy_book(tmp_path_factory.mktemp("built"))
    booktools.add_cell(root, EXPERIMENT)
    (root / "book" / "01-demo" / "data.csv").write_text("1\n")
    booktools.build(root, *FULL)
    return root


@pytest.fixture
def book(built: Path, tmp_path: Path) -> Path:
    """A private copy of the built book with its cache."""
    return Path(shutil.copytree(built, tmp_path / "a copy"))


Change = Callable[[dict[str, Any]], object]


def cell(notebook: dict[str, Any], kind: str) -> dict[str, Any]:
    """The last cell of a kind."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind][-1]


def parameters(notebook: dict[str, Any]) -> dict[str, Any]:
    """The parameters cell."""
    return next(c for c in notebook["cells"] if "parameters" in c["metadata"].get("tags", []))


NOTHING: dict[str, Change] = {
    "prose": lambda nb: cell(nb, "markdown").update(source="# Another title\n\nOther words."),
    "a new paragraph": lambda nb: nb["cells"].insert(
        1, {"cell_type": "markdown", "id": "new", "metadata": {}, "source": "More."}
    ),
    "a tag": lambda nb: cell(nb, "code")["metadata"].update(tags=["hide-input"]),
    "an id": lambda nb: cell(nb, "code").update(id="other"),
    "what editors write": lambda nb: nb["metadata"].update(language_info={"version": "3.99"}),
    "a comment": lambda nb: cell(nb, "code").update(source="# why\n" + EXPERIMENT),
    "a docstring": lambda nb: cell(nb, "code").update(
        source=EXPERIMENT.replace("    return", '    """Doc."""\n    return')
    ),
    "lines": lambda nb: cell(nb, "code").update(source=EXPERIMENT.splitlines(keepends=True)),
}
SOMETHING: dict[str, tuple[Change, str]] = {
    "code": (lambda nb: cell(nb, "code").update(source=EXPERIMENT + "print(1)"), "code changed"),
    "a hidden value": (lambda nb: cell(nb, "code").update(source=EXPERIMENT + ";"), "code changed"),
    "order": (lambda nb: nb["cells"].reverse(), "code changed"),
    "a default": (
        lambda nb: parameters(nb).update(source="points = 3\nslope = 1.0"), "code changed"),
    "a tag that counts": (
        lambda nb: cell(nb, "code")["metadata"].update(tags=["raises-exception"]), "code changed"),
    "full scale": (
        lambda nb: nb["metadata"]["attsvm"]["full"].update(points=4), "parameters changed"),
}  # fmt: skip


@pytest.mark.parametrize("change", NOTHING.values(), ids=NOTHING)
def test_what_changes_no_result_runs_nothing(book: Path, change: Change) -> None:
    booktools.edit(book, change)
    assert booktools.state(book) == "cached unchanged"


@pytest.mark.parametrize(("change", "reason"), SOMETHING.values(), ids=SOMETHING)
def test_what_changes_results_is_named(book: Path, change: Change, reason: str) -> None:
    booktools.edit(book, change)
    assert booktools.state(book) == f"would run {reason}"


def test_a_page_shows_the_prose_and_comments_of_now(book: Path) -> None:
    booktools.edit(book, NOTHING["prose"])
    booktools.edit(book, NOTHING["a comment"])
    booktools.build(book, *FULL)
    assert booktools.executed(book) == []
    page = booktools.page(book)
    assert "Other words." in page and "# why" in page
    assert "5 points" in page and "sum 3.5" in page


def test_data_beside_a_chapter_counts_with_it(book: Path) -> None:
    (book / "book" / "01-demo" / "data.csv").write_text("2\n")
    assert booktools.state(book) == "would run files beside it changed"


def test_the_lock_is_only_a_text(book: Path) -> None:
    (book / "requirements.lock").write_text("numpy==1\n")
    assert booktools.state(book) == "cached unchanged"


def append(module: Path, source: str) -> None:
    """Add to a module of a copy of the package."""
    with module.open("a") as stream:
        stream.write(source)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, to be changed."""
    return booktools.copy_package(tmp_path / "source")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("simplex.py", "would run attsvm.simplex changed"),
        ("_checks.py", "would run attsvm._checks changed"),  # what the experiment calls calls it
        ("figures/_style.py", "would run attsvm.figures._style changed"),
        ("datasets.py", "cached unchanged"),
        ("svm/_nuclear.py", "cached unchanged"),
        ("cli.py", "cached unchanged"),
    ],
)
def test_only_modules_that_a_chapter_loads_count(
    book: Path, package: Path, name: str, reason: str
) -> None:
    environment = {"PYTHONPATH": str(package.parent)}
    append(package / name, "# a comment\n")
    assert booktools.state(book, environment=environment) == "cached unchanged"
    append(package / name, "CHANGED = True\n")
    assert booktools.state(book, environment=environment) == reason


def test_the_tool_counts_only_where_chapters_are_executed(book: Path, package: Path) -> None:
    environment = {"PYTHONPATH": str(package.parent)}
    for name, reason in (
        ("build/render.py", "cached unchanged"),
        ("site/maths.py", "cached unchanged"),
        ("build/normalise.py", "would run the way chapters are executed changed"),
    ):
        append(package.parent / "companion" / name, "CHANGED = True\n")
        assert booktools.state(book, environment=environment) == reason


def test_an_installed_version_counts_if_it_is_imported(book: Path, tmp_path: Path) -> None:
    other = tmp_path / "libraries"
    for name in ("numpy", "papermill"):
        metadata = other / f"{name}-99.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 99\n")
        path = f"{booktools.settings()['PYTHONPATH']}:{other}"
        state = booktools.state(book, environment={"PYTHONPATH": path})
        shutil.rmtree(metadata)
        assert (
            state.startswith("would run numpy ") if name == "numpy" else state.endswith("unchanged")
        )


def used(root: Path) -> tuple[list[str], set[Path]]:
    """Modules that the chapter's entry was made of, and the chunks that are kept."""
    entries = (root / "_build" / "chapters" / CHAPTER).glob("*/manifest.json")
    manifest = max((json.loads(path.read_text()) for path in entries), key=lambda m: m["finished"])
    return manifest["loaded"], set((root / "_build" / "chunks").rglob("*.chunk"))


def test_a_figure_style_draws_again_from_the_chunks(book: Path, package: Path) -> None:
    loaded, kept = used(book)
    assert "attsvm.simplex" in loaded and len(kept) == 2
    environment = {"PYTHONPATH": str(package.parent)}
    append(package / "figures" / "_style.py", "CHANGED = True\n")
    before = {path: path.stat().st_mtime_ns for path in kept}
    booktools.build(book, *FULL, environment=environment)
    assert booktools.executed(book) == [CHAPTER]
    # The experiment was not computed again, and what it depends on is still known.
    assert {path: path.stat().st_mtime_ns for path in used(book)[1]} == before
    assert used(book)[0] == loaded


def test_changed_code_computes_the_experiment_again(book: Path, package: Path) -> None:
    changed = "\n\ndef project(points):\n    import numpy as np\n    return np.full(2, 0.5)\n"
    append(package / "simplex.py", changed)
    booktools.build(book, *FULL, environment={"PYTHONPATH": str(package.parent)})
    assert "sum 2.0" in booktools.page(book)
    # Chunks of code that is no more are gone.
    assert len(used(book)[1]) == 2


def test_all_changes_at_once_are_named(book: Path, package: Path) -> None:
    for change, _ in (SOMETHING["code"], SOMETHING["full scale"]):
        booktools.edit(book, change)
    append(package / "errors.py", "CHANGED = True\n")
    said = booktools.build(book, *FULL, environment={"PYTHONPATH": str(package.parent)})
    assert f"{CHAPTER}: runs (code changed, parameters changed, attsvm.errors changed)" in said
    assert "4 points" in booktools.page(book)
