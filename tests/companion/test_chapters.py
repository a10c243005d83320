"""Reading committed notebooks, and cleaning executed ones."""

from __future__ import annotations

import copy
import keyword
from pathlib import Path
from typing import Any

import booktools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attsvm.errors import ArgumentError
from companion.build import chapters, normalise
from companion.build.layout import Layout
from companion.errors import BuildError, ChapterError

NAMES = st.from_regex(r"[a-z][a-z_0-9]{0,8}", fullmatch=True).filter(
    lambda name: not keyword.iskeyword(name)
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
).filter(lambda value: "inf" not in repr(value))


def evaluate(source: str) -> dict[str, Any]:
    """What a parameters cell assigns."""
    values: dict[str, Any] = {}
    exec(source, {}, values)
    return values


@given(st.dictionaries(NAMES, st.tuples(VALUES, VALUES, st.booleans()), min_size=1, max_size=4))
def test_folded_cell_assigns_the_new_values_and_keeps_all_else(
    parameters: dict[str, tuple[Any, Any, bool]],
) -> None:
    lines = [f"{name} = {old!r}  # η, the {name}" for name, (old, _, _) in parameters.items()]
    changed = {name: new for name, (_, new, changes) in parameters.items() if changes}
    folded = normalise.fold_parameters("\n".join(lines), changed)
    kept = {name: old for name, (old, _, _) in parameters.items()}
    assert evaluate(folded) == kept | changed
    for name in parameters:
        assert f"  # η, the {name}" in folded


def test_value_over_several_lines_is_folded() -> None:
    source = "sizes = [  # ä\n    1,\n    2,\n]  # end\nstep: float = 0.1\n"
    folded = normalise.fold_parameters(source, {"sizes": [3], "step": 0.5})
    assert folded == "sizes = [3]  # end\nstep: float = 0.5\n"


def test_folding_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="does not assign other"):
        normalise.fold_parameters("step = 1", {"other": 2})


def executed(*outputs: dict[str, Any]) -> dict[str, Any]:
    """A notebook as papermill leaves it behind."""
    papermill = {"duration": 0.1, "start_time": "now"}
    parameters = booktools.code("step = 2  # how far", ["parameters"])
    cell = booktools.code("print(step)") | {"outputs": list(outputs), "execution_count": 7}
    notebook = {
        "cells": [
            parameters,
            cell,
            booktools.code(""),
            normalise.tracing_cell(Path("loaded.json")),
        ],
        "metadata": {"papermill": papermill, "widgets": {}, "kernelspec": {"name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    for one in notebook["cells"]:
        one["metadata"]["papermill"] = dict(papermill)
        one["metadata"]["execution"] = {"iopub.execute_input": "now"}
    return notebook


def outputs(*raw: dict[str, Any]) -> list[dict[str, Any]]:
    """What is left of the outputs of a cell."""
    return normalise.normalise(executed(*raw))["cells"][1]["outputs"]


def stream(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def test_normalised_notebook_is_the_chapter_and_nothing_else() -> None:
    result = {"output_type": "execute_result", "execution_count": 7, "metadata": {}}
    clean = normalise.normalise(executed(result | {"data": {"text/plain": "1"}}))
    assert [(cell["source"], cell["execution_count"]) for cell in clean["cells"]] == [
        ("step = 2  # how far", 1),
        ("print(step)", 2),
        ("", None),
    ]
    assert clean["cells"][1]["outputs"][0]["execution_count"] == 2
    assert clean["metadata"] == {"kernelspec": {"name": "python3"}}
    assert all(set(cell["metadata"]) <= {"tags"} for cell in clean["cells"])
    assert normalise.normalise(copy.deepcopy(clean)) == clean


BAR = "\r  0%|          | 0/3 [00:00<?, ?it/s]\r100%|██████████| 3/3 [00:00<00:00, 9.1it/s]\n"
WIDGET = {normalise.WIDGET: {"model_id": "f19e65"}, "text/plain": "  0%|    | 0/3"}


@pytest.mark.parametrize(
    "between",
    [
        [],
        [stream("stderr", BAR)],
        [{"output_type": "display_data", "metadata": {}, "data": WIDGET}],
    ],
    ids=["nothing", "a progress bar", "a widget"],
)
def test_pieces_of_a_stream_are_joined_however_they_were_cut(between: list[Any]) -> None:
    pieces = [stream("stdout", "a"), *between, stream("stdout", "\nb"), stream("stdout", "\n")]
    assert outputs(*pieces) == [stream("stdout", "a\nb\n")]


def test_progress_bars_go_and_warnings_stay() -> None:
    assert outputs(stream("stderr", BAR)) == []
    warned = normalise.normalise(executed(stream("stderr", f"{BAR}UserWarning: careful\n")))
    assert normalise.objections(warned) == ["cell 2 wrote to stderr: UserWarning: careful"]


@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
def test_memory_address_is_an_objection(kind: str) -> None:
    data = {kind: "<object object at 0x7f3a2c0d4e10>", "image/svg+xml": "<svg/>"}
    shown = {"output_type": "display_data", "metadata": {}, "data": data}
    (found,) = normalise.objections(normalise.normalise(executed(shown)))
    assert "memory address" in found


def test_chapters_come_in_reading_order_and_pages_are_not_chapters(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    booktools.add_chapter(root, "01-demo/b")
    booktools.add_chapter(root, "01-demo/a")
    found = chapters.discover(Layout.of(root))
    assert [chapter.id for chapter in found] == [booktools.CHAPTER, "01-demo/b", "01-demo/a"]
    assert found[0].figures == ["line"]
    assert found[0].parameters("quick") == {}
    assert found[0].parameters("full") == {"points": 5}


FLAT = """\
chapters:
- {file: book/x, sections: [file: book/y]}
- file: book/z
"""
PARTS = """\
parts:
- {caption: One, chapters: [{file: book/x, sections: [file: book/y]}]}
- {caption: Two, chapters: [file: book/z]}
"""


@pytest.mark.parametrize("entries", [FLAT, PARTS])
def test_every_form_of_a_table_of_contents_is_read(tmp_path: Path, entries: str) -> None:
    path = tmp_path / "_toc.yml"
    path.write_text(f"format: jb-book\nroot: book/intro\n{entries}")
    assert chapters.toc_entries(path) == ["book/intro", "book/x", "book/y", "book/z"]


def test_unreadable_table_of_contents_and_notebook_are_named(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    notebook, toc = booktools.notebook_path(root), root / "_toc.yml"
    for path, content, said in (
        (notebook, "{", r"line\.ipynb: cannot be read as a notebook"),
        (notebook, '{"nbformat": 3}', "is not a notebook of format 4"),
        (toc, "root: [", "cannot be read as a table of contents"),
    ):
        path.write_text(content)
        with pytest.raises(BuildError, match=said):
            chapters.discover(Layout.of(root))


def test_problems_of_all_chapters_come_in_one_message(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    booktools.add_chapter(root, "01-demo/other")
    for chapter in (booktools.CHAPTER, "01-demo/other"):
        booktools.edit(root, lambda nb: nb["metadata"]["attsvm"]["full"].update(no=1), chapter)
    booktools.edit(
        root, lambda nb: nb["metadata"]["attsvm"]["figures"].append("line"), "01-demo/other"
    )
    with pytest.raises(ChapterError) as caught:
        chapters.validate(chapters.discover(Layout.of(root)))
    said = str(caught.value)
    assert "3 problems in the chapters" in said
    assert "01-demo/line: unknown parameter no" in said
    assert "01-demo/other: unknown parameter no" in said
    assert f"01-demo/other: figure line also stands in {booktools.CHAPTER}" in said


def test_chapters_are_selected_by_id_or_unique_name(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    booktools.add_chapter(root, "01-demo/twice")
    booktools.add_chapter(root, "02-more/twice")
    found = chapters.discover(Layout.of(root))
    line, _, second = found
    names = ["line", "book/01-demo/line.ipynb", "02-more/twice", "01-demo/line"]
    assert chapters.select(found, names) == [line, second]
    with pytest.raises(ArgumentError, match=r"'twice' \(fits several\)"):
        chapters.select(found, ["twice"])
    with pytest.raises(ArgumentError, match=r"expected one of 01-demo/line, .*, got 'nowhere'"):
        chapters.select(found, ["nowhere"])
    assert chapters.select(found, []) == []


@pytest.mark.parametrize("source", ["a, b = 1, 2", "import os", "a = b = 1", "x += 1", "a: int"])
def test_parameters_cell_takes_plain_assignments_only(source: str) -> None:
    with pytest.raises(ValueError, match="only lines 'name = value' may stand there"):
        list(normalise.assigned(source))
