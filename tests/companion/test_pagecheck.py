"""Rendered pages are checked: dead links, missing anchors and mute pictures are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from companion.build.pagecheck import page_problems

PAGE = '<html><body><main><article id="top-of-it">{}</article></main></body></html>'


def site(folder: Path, content: str) -> Path:
    (folder / "book").mkdir()
    (folder / "book" / "one.html").write_text(PAGE.format(content))
    (folder / "two words.html").write_text(PAGE.format('<p id="here">x</p>'))
    (folder / "data.csv").write_text("a,b\n1,2\n")
    (folder / "empty.csv").touch()
    return folder


def test_a_site_that_holds_together(tmp_path: Path) -> None:
    content = (
        '<a href="../two%20words.html#here">a</a> <a href="#top-of-it">b</a> <a href="#">c</a>'
        '<a href="https://example.org/none">d</a> <img src="../data.csv" alt="what it shows">'
    )
    assert page_problems(site(tmp_path, content)) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('<a href="../no.html">a</a>', "the link ../no.html leads nowhere"),
        ('<a href="../empty.csv" download>a</a>', "the link ../empty.csv leads nowhere"),
        ('<script src="no.js"></script>', "the link no.js leads nowhere"),
        ('<a href="../two%20words.html#no">a</a>', "names an anchor that is not there"),
        ('<a href="#no">a</a>', "the link #no names an anchor that is not there"),
        ('<img src="../data.csv" alt=" ">', "the picture ../data.csv has no alt text"),
        ('<img src="../data.csv">', "the picture ../data.csv has no alt text"),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, content: str, problem: str) -> None:
    problems = page_problems(site(tmp_path, content))
    assert len(problems) == 1
    assert problems[0].startswith("book/one.html: ")
    assert problem in problems[0]


def test_ornaments_outside_of_the_text_may_be_mute(tmp_path: Path) -> None:
    folder = site(tmp_path, "")
    (folder / "three.html").write_text('<nav><img src="data.csv" alt=""></nav>')
    assert page_problems(folder) == []
