"""The chapters of a book: which notebooks its table of contents names, and what each declares."""

from __future__ import annotations

import copy
import difflib
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attsvm.errors import ArgumentError
from companion.build.layout import PROFILES, Layout
from companion.build.normalise import assigned, fold_parameters, source_of
from companion.errors import BuildError, ChapterError

__all__ = ["Chapter", "discover", "select", "strays", "toc_entries"]

KERNEL = "python3"


@dataclass(frozen=True)
class Chapter:
    """One executable notebook of the book."""

    id: str  # "<section folder>/<name>"
    path: Path  # the committed notebook
    notebook: dict[str, Any]  # its content (format 4)

    @property
    def name(self) -> str:
        """The last part of the id."""
        return self.id.rpartition("/")[2]

    @property
    def declared(self) -> dict[str, Any]:
        """``metadata.attsvm`` of the notebook."""
        value = self.notebook.get("metadata", {}).get("attsvm", {})
        return value if isinstance(value, dict) else {}

    @property
    def figures(self) -> list[str]:
        """Names of the figures that the chapter publishes."""
        return list(self.declared.get("figures", []))

    @property
    def claims(self) -> list[str]:
        """Ids of the claims that the chapter reports on."""
        return list(self.declared.get("claims", []))

    @property
    def parameters_cell(self) -> dict[str, Any] | None:
        """The code cell tagged ``parameters``, if there is one."""
        for cell in self.notebook["cells"]:
            tags = cell.get("metadata", {}).get("tags", [])
            if cell["cell_type"] == "code" and "parameters" in tags:
                return cell
        return None

    def parameters(self, profile: str) -> dict[str, Any]:
        """What a profile changes: nothing for ``quick``, the full values for ``full``."""
        return dict(self.declared.get("full", {})) if profile == "full" else {}

    def with_values(self, values: Mapping[str, Any]) -> Chapter:
        """The chapter with these values in its parameters cell, where a page shows them."""
        chapter = replace(self, notebook=copy.deepcopy(self.notebook))
        if cell := chapter.parameters_cell:
            cell["source"] = fold_parameters(source_of(cell), values)
        return chapter

    @functools.cached_property
    def problems(self) -> list[str]:
        """Why the chapter cannot be built; empty for a sound one."""
        return list(_problems(self))


def _problems(chapter: Chapter) -> Iterator[str]:
    metadata = chapter.notebook.get("metadata", {})
    kernel = metadata.get("kernelspec", {}).get("name")
    if kernel != KERNEL:
        yield f"its kernel is {kernel!r}, expected {KERNEL!r}"
    for number, cell in enumerate(chapter.notebook["cells"], start=1):
        if cell["cell_type"] == "code" and (cell.get("outputs") or cell.get("execution_count")):
            yield f"cell {number} has outputs: strip them before committing"
    yield from _declaration_problems(chapter, metadata)
    cell = chapter.parameters_cell
    if cell is None:
        yield "no code cell is tagged 'parameters'"
        return
    try:
        known = [name for name, *_ in assigned(source_of(cell))]
    except (SyntaxError, ValueError) as error:
        yield f"its parameters cell cannot be read: {error}"
        return
    unknown = sorted(set(chapter.parameters("full")) - set(known))
    if unknown:
        yield (
            f"unknown parameter{'s' if len(unknown) > 1 else ''} {', '.join(unknown)} in "
            f"metadata.attsvm.full; the parameters cell has {', '.join(known) or 'none'}"
        )


def _declaration_problems(chapter: Chapter, metadata: dict[str, Any]) -> Iterator[str]:
    if not isinstance(metadata.get("attsvm"), dict):
        yield "metadata.attsvm is missing (full, figures, claims)"
        return
    if not isinstance(chapter.declared.get("full", {}), dict):
        yield "metadata.attsvm.full must map parameter names to values"
    for key in ("figures", "claims"):
        value = chapter.declared.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            yield f"metadata.attsvm.{key} must be a list of names"


def toc_entries(toc: Path) -> list[str]:
    """Every file that a ``_toc.yml`` names, in reading order.

    Raises
    ------
    BuildError
        If it cannot be read.
    """
    import yaml

    try:
        content = yaml.safe_load(toc.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise BuildError(f"{toc}: cannot be read as a table of contents", [str(error)]) from error
    return list(_walk(content))


def _walk(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key in ("root", "file"):
            if isinstance(node.get(key), str):
                yield node[key]
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _walk(item)


def discover(layout: Layout) -> list[Chapter]:
    """The chapters of the book, in reading order.

    Raises
    ------
    BuildError
        If a notebook that the table of contents names cannot be read.
    """
    chapters = []
    for entry in toc_entries(layout.toc):
        path = layout.root / (entry if entry.endswith(".ipynb") else f"{entry}.ipynb")
        if path.is_file():
            name = path.relative_to(layout.root).with_suffix("").as_posix()
            chapters.append(Chapter(name.removeprefix("book/"), path, _read(path)))
    return chapters


def _read(path: Path) -> dict[str, Any]:
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BuildError(f"{path}: cannot be read as a notebook", [str(error)]) from error
    if not isinstance(notebook, dict) or notebook.get("nbformat") != 4 or "cells" not in notebook:
        raise BuildError(f"{path}: is not a notebook of format 4")
    return notebook


def strays(layout: Layout, chapters: Sequence[Chapter]) -> list[str]:
    """Notebooks below ``book/`` that the table of contents leaves out."""
    known = {chapter.path for chapter in chapters}
    return sorted(
        path.relative_to(layout.book).with_suffix("").as_posix()
        for path in layout.book.rglob("*.ipynb")
        if path not in known and ".ipynb_checkpoints" not in path.parts
    )


def validate(chapters: Sequence[Chapter]) -> None:
    """Refuse chapters that cannot be built, all of them in one message.

    Raises
    ------
    ChapterError
        If any chapter has a problem.
    """
    lines = [f"{chapter.id}: {problem}" for chapter in chapters for problem in chapter.problems]
    for kind in ("figures", "claims"):
        owner: dict[str, str] = {}
        for chapter in chapters:
            for name in getattr(chapter, kind):
                if name in owner:
                    lines.append(f"{chapter.id}: {kind[:-1]} {name} also stands in {owner[name]}")
                owner[name] = chapter.id
    if lines:
        count = len(lines)
        raise ChapterError(f"{count} problem{'s' if count > 1 else ''} in the chapters", lines)


def select(chapters: Sequence[Chapter], names: Sequence[str]) -> list[Chapter]:
    """The chapters with these ids; a name without its folder, or its beginning, will do if unique.

    Raises
    ------
    ArgumentError
        If a name fits no chapter, or several.
    """
    chosen = []
    for name in names:
        wanted = name.removeprefix("book/").removesuffix(".ipynb")
        fits = (
            [chapter for chapter in chapters if chapter.id == wanted]
            or [chapter for chapter in chapters if chapter.name == wanted]
            or [chapter for chapter in chapters if wanted and chapter.name.startswith(wanted)]
        )
        if len(fits) != 1:
            raise ArgumentError("chapter", *_no_single(wanted, fits, chapters))
        if fits[0] not in chosen:
            chosen.append(fits[0])
    return chosen


def _no_single(name: str, fits: Sequence[Chapter], chapters: Sequence[Chapter]) -> tuple[str, str]:
    """What was expected and what came, where a name does not name one chapter."""
    if fits:
        return f"one of {', '.join(chapter.id for chapter in fits)}", f"{name!r} (fits several)"
    forms = {form: c.id for c in chapters for form in (c.id, c.name)}
    close = difflib.get_close_matches(name, forms, n=3)
    if close:
        meant = " or ".join(dict.fromkeys(forms[form] for form in close))
        return "a chapter of the book (attsvm list names them)", f"{name!r}; did you mean {meant}?"
    return f"one of {', '.join(chapter.id for chapter in chapters) or 'none'}", repr(name)


def check_profile(profile: str) -> None:
    """Refuse a profile that does not exist, by an `ArgumentError`."""
    if profile not in PROFILES:
        raise ArgumentError("profile", f"one of {', '.join(PROFILES)}", repr(profile))
