"""Gather the book in one folder: pages, executed chapters, and what the chapters wrote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from companion.build.cache import Entry
from companion.build.chapters import Chapter
from companion.build.layout import Layout, files_in
from companion.build.normalise import normalise
from companion.errors import BuildError

__all__ = ["Results", "results_folder", "stage"]

IGNORED = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__", "attsvm-output", "*.pyc")


@dataclass(frozen=True)
class Results:
    """What all chapters wrote, merged: records by name or id, sorted."""

    figures: Mapping[str, Any]
    claims: Mapping[str, Any]


def results_folder(staged: Path) -> Path:
    """Where a staged book has its results; a page links them as ``_static/results/…``."""
    return staged / "book" / "_static" / "results"


def stage(
    layout: Layout, chapters: Sequence[Chapter], profile: str, entries: Mapping[str, Entry]
) -> Path:
    """Copy the book to scratch space with its executed chapters and all results in place.

    Raises
    ------
    BuildError
        If two chapters wrote a file of the same name.
    """
    staged = layout.work / "stage"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    for path in (layout.config, layout.toc):
        shutil.copy2(path, staged / path.name)
    citation = layout.root / "CITATION.cff"
    if citation.is_file():  # a page shows it as BibTeX
        shutil.copy2(citation, staged / citation.name)
    shutil.copytree(layout.book, staged / "book", ignore=IGNORED)
    # Results of an earlier run in plain Jupyter have no place in a rebuilt book.
    shutil.rmtree(results_folder(staged), ignore_errors=True)
    results_folder(staged).mkdir(parents=True)
    for chapter in chapters:
        target = staged / chapter.path.relative_to(layout.root)
        target.write_text(_page(chapter, profile, entries[chapter.id]), encoding="utf-8")
        _merge(entries[chapter.id].results, results_folder(staged), chapter.id)
    return staged


def _page(chapter: Chapter, profile: str, entry: Entry) -> str:
    """The notebook that the page is made of: the chapter as it is now, with its outputs.

    Where code or parameters have changed since and were not to be executed, as it was then.
    """
    content = json.loads(entry.notebook.read_text(encoding="utf-8"))
    if entry.shows(chapter, profile):
        now = chapter.with_values(chapter.parameters(profile)).notebook
        cells, executed = (
            [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
            for notebook in (now, content)
        )
        for cell, done in zip(cells, executed, strict=True):
            cell["outputs"] = done["outputs"]
        content = normalise(now)
    content = _lighter(content)
    return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _lighter(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without the drawings that the page takes from the results anyway.

    Sphinx keeps a copy of each notebook for the download button: with the drawings in it, a site
    would carry every figure three times.
    """
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "application/vnd.attsvm.figure+json" in data:
                data.pop("image/svg+xml", None)
    return notebook


def _merge(source: Path, target: Path, chapter: str) -> None:
    for name, path in files_in(source).items():
        copy = target / name
        if copy.exists():
            raise BuildError(f"chapter {chapter}: another chapter wrote {copy.name} already")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def collect(staged: Path) -> Results:
    """Read the records that lie in a staged book.

    Raises
    ------
    BuildError
        If a record cannot be read.
    """
    folder = results_folder(staged)
    return Results(_records(folder / "figures", "name"), _records(folder / "claims", "id"))


def _records(folder: Path, key: str) -> dict[str, Any]:
    found = {}
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            found[record[key]] = record
        except (ValueError, KeyError, TypeError) as error:
            raise BuildError(f"{path.name}: no readable record", [repr(error)]) from error
    return dict(sorted(found.items()))


def write_indices(staged: Path, results: Results, times: Mapping[str, Any]) -> None:
    """Write one file that lists all figures, one for all claims, and one for all times.

    The times are all that differs from build to build.  They stand in two files: ``times.json``,
    and ``times.js`` for a page that is opened from disk, where a script may be loaded but no JSON.
    """
    folder = results_folder(staged)
    lists = [list(kind.values()) for kind in (results.figures, results.claims)]
    for name, value in zip(("figures", "claims", "times"), (*lists, times), strict=True):
        text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        if name == "times":
            (folder / "times.js").write_text(f"window.attsvmTimes = {text};\n", encoding="utf-8")
