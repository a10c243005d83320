"""From statements to code and back: complete in the book, and refused where it dangles."""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
import smallbook
from bs4 import BeautifulSoup, Tag

import attsvm
from attsvm.claims import registry
from companion.site import register

REGISTER = register.read(smallbook.REPOSITORY)
assert REGISTER is not None
LABELS = list(REGISTER.entries)


@functools.cache
def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@functools.cache
def functions_of(file: str) -> set[str]:
    """Names of the test functions of a file below ``tests/``."""
    tree = ast.parse((smallbook.REPOSITORY / "tests" / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_named_tests_exist() -> None:
    """The build cannot see the tests, so this is where their names are checked."""
    named = [test for entry in REGISTER.entries.values() for test in entry.tests]
    assert len(named) > 30
    for test in named:
        file, _, function = test.partition("::")
        assert function in functions_of(file), test


def test_the_register_holds_by_itself() -> None:
    """Code and claims exist, every public function of the rooms is in it or excused."""
    assert REGISTER.dangling(LABELS, [claim.id for claim in registry()]) == []


def made(**changes: Any) -> register.Register:
    entry = {"code": ("attsvm.simplex.project",), "claims": (), "tests": (), "only": ""} | changes
    return register.Register({"thm-a": register.Entry("thm-a", **entry)})


@pytest.mark.parametrize(
    ("entry", "labels", "message"),
    [
        ({}, ["thm-a", "thm-b"], "label 'thm-b' of the book has no entry"),
        ({}, [], "label 'thm-a' is on no page"),
        ({"code": ("attsvm.svm.guess",)}, ["thm-a"], "'attsvm.svm.guess', which does not exist"),
        ({"code": ("numpy.nothing.at.all",)}, ["thm-a"], "which does not exist"),
        ({"claims": ("no.claim",)}, ["thm-a"], "the claim 'no.claim', which is not registered"),
        ({"code": ()}, ["thm-a"], "needs code, claims or tests"),
        ({"only": "prose"}, ["thm-a"], "needs code, claims or tests"),
    ],
)
def test_what_dangles_is_named(entry: dict[str, Any], labels: list[str], message: str) -> None:
    (problem,) = made(**entry).dangling(labels, ["some.claim"])
    assert message in problem


def test_a_room_must_be_covered() -> None:
    room = "attsvm.simplex"  # exports project and optimal_attention
    entries = made().entries
    missing = register.Register(entries, (room,)).dangling(["thm-a"], [])
    assert [p.split()[0] for p in missing] == ["attsvm.simplex.optimal_attention"]
    excused = {"attsvm.simplex.optimal_attention": "because"}
    assert register.Register(entries, (room,), excused).dangling(["thm-a"], []) == []
    twice = excused | {"attsvm.simplex.project": "because"}
    (problem,) = register.Register(entries, (room,), twice).dangling(["thm-a"], [])
    assert "is listed under 'without', and an entry names it" in problem
    (problem,) = register.Register(entries, (room,), excused | {"attsvm.simplex.x": "?"}).dangling(
        ["thm-a"], []
    )
    assert "no room exports it" in problem


PAGE = """# Page

Here is a statement, and all that one can say of it.

:::{prf:theorem} A name
:label: thm-a

It holds that

$$ a = b $$ (inner)
:::

$$ c = d $$ (outer)
"""
INDEX = """
[labels.thm-a]
code = ["attsvm.simplex.project"]
tests = ["test_simplex.py::test_against_a_solver"]
[labels.inner]
only = "it stands in the theorem"
[labels.outer]
code = ["attsvm.simplex.project", "attsvm.simplex.optimal_attention"]
"""
API = """# Reference

It has one module.

```{eval-rst}
.. automodule:: attsvm.simplex
   :members:
```

```{bibliography}
```
"""
STATEMENTS = "# Statements\n\nAll of them.\n\n:::{code-index}\n:::\n"
FILES = {
    "book/01-part/index.md": PAGE,
    "book/statements.md": STATEMENTS,
    "book/reference.md": API,
    "book/_data/index.toml": INDEX,
}


def test_a_small_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways on three pages: boxes and equations to the reference, and back."""
    site, warnings = smallbook.build(tmp_path, FILES, monkeypatch)
    assert not warnings
    page = soup(site / "book/01-part/index.html")
    box = page.find(id="thm-a")
    assert isinstance(box, Tag)
    line = box.select_one("p.in-code")
    assert line is not None
    assert line.get_text() == "Implemented by simplex.project · tested by a\xa0test"
    targets = [str(a["href"]) for a in line.find_all("a")]
    assert targets == ["../reference.html#attsvm.simplex.project", "../statements.html#index-thm-a"]
    lines = page.select("p.in-code.of-equation")
    assert [one.get_text() for one in lines] == [
        "Implemented by simplex.project, simplex.optimal_attention"
    ]
    reference = soup(site / "book/reference.html")
    entry = reference.find(id="attsvm.simplex.project")
    assert isinstance(entry, Tag)
    back = entry.find_next("dd").select("a.has-preview")  # type: ignore[union-attr]
    assert {str(a["href"]) for a in back} == {
        "01-part/index.html#thm-a",
        "01-part/index.html#equation-outer",
    }
    rows = soup(site / "book/statements.html").select(".statement-row")
    assert [row["id"] for row in rows] == ["index-thm-a", "index-inner", "index-outer"]
    assert rows[0].get_text().strip().startswith("Theorem 1 (A name)")
    assert "Stated only: it stands in the theorem." in rows[1].get_text()


@pytest.mark.parametrize(
    ("name", "old", "new", "warning"),
    [
        ("book/01-part/index.md", "thm-a", "thm-b", "label 'thm-b' of the book has no entry"),
        ("book/_data/index.toml", "simplex.project", "simplex.push", "which does not exist"),
        ("book/reference.md", "simplex", "heads", "attsvm.simplex.project is on no page"),
        ("book/_data/index.toml", "only =", "onyl =", "unknown fields ['onyl']"),
    ],
)
def test_a_book_that_dangles_does_not_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str, warning: str
) -> None:
    files = FILES | {name: FILES[name].replace(old, new)}
    _, warnings = smallbook.build(tmp_path, files, monkeypatch)
    assert warning in warnings


def test_every_label_has_its_line(site: Path, pages: list[str]) -> None:
    """On the built site: a row in the index, and a line on the page unless it is only stated."""
    index = soup(site / "book/statements.html")
    rows = {str(row["id"]): row for row in index.select(".statement-row")}
    assert set(rows) == {f"index-{label}" for label in LABELS}
    for label, entry in REGISTER.entries.items():
        row = rows[f"index-{label}"]
        link = row.find("a")
        assert isinstance(link, Tag)
        address, anchor = str(link["href"]).split("#")
        target = soup((site / "book" / address).resolve()).find(id=anchor)
        assert isinstance(target, Tag), label
        if entry.only:
            assert f"Stated only: {entry.only}." in row.get_text()
            continue
        if "math" in target.get("class", []):  # an equation: in a statement, or with its own line
            inside = target.find_parent(class_="proof")
            line = target.find_next_sibling()
            assert inside is not None or "of-equation" in line.get("class", []), label  # type: ignore[union-attr, operator]
        else:
            assert target.select_one("p.in-code") is not None, label
        assert len(row.select(".statement-claims li")) == len(entry.claims), label


def test_the_reference_leads_back(site: Path) -> None:
    """Each function that an entry names says so in the reference."""
    for entry in REGISTER.entries.values():
        for name in entry.code:
            room = name.split(".")[1]
            heading = soup(site / f"book/api/{room}.html").find(id=name)
            assert isinstance(heading, Tag), name
            body = heading.find_next_sibling("dd")
            assert isinstance(body, Tag), name
            anchors = {str(a["href"]).split("#")[-1] for a in body.select("a.has-preview")}
            assert {entry.label, f"equation-{entry.label}"} & anchors, (name, entry.label)


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    """All that the modules of the package export, and every module has a page."""
    # The command line is not for chapters.
    rooms = {m.name for m in pkgutil.iter_modules(attsvm.__path__)} - {"cli", "commands"}
    rooms = {room for room in rooms if not room.startswith("_")}
    undocumented = []
    for room in rooms:
        module = importlib.import_module(f"attsvm.{room}")
        page = soup(site / f"book/api/{room}.html")
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            documented = page.find(id=f"attsvm.{room}.{name}") is not None
            if callable(value) and not documented:
                undocumented.append(f"{room}.{name}")
    assert not undocumented


def test_the_reference_reads_as_written(site: Path) -> None:
    """No system message, and no mark of reStructuredText that lost its meaning."""
    for path in sorted((site / "book/api").glob("*.html")):
        article = soup(path).find("article")
        assert isinstance(article, Tag)
        assert not article.select(".system-message, .problematic"), path.name
        for dropped in article.find_all(["pre", "code", "dt"]):
            dropped.extract()
        text = article.get_text()
        for sign in ("``", ":ref:", ":param", "\\*"):
            assert sign not in text, (path.name, sign)
        assert not re.search(r"\*\*\w[^*\n]*\*\*", text), path.name
