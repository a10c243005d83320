"""Parameters of chapters: read from comments and metadata, checked before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import booktools
import pytest

from attsvm import cli
from attsvm.errors import ArgumentError
from companion.build.chapters import Chapter, discover, select
from companion.build.layout import Layout
from companion.errors import ChapterError
from companion.run.parameters import assignments, check, parameters_of, parse, read_file

CHAPTERS = discover(Layout.of(booktools.REPOSITORY))


def chapter(source: str, **declared: Any) -> Chapter:
    notebook = {
        "cells": [booktools.code(source, ["parameters"])],
        "metadata": {"attsvm": declared},
    }
    return Chapter("01-demo/made-up", Path("made-up.ipynb"), notebook)


MADE_UP = """\
n = 3  # sequences; at least 1
T = 4  # tokens; at least 2; at most 64
d = 5  # dimension; at least max(T − 1, n), so that all are feasible; full scale: 50
step = 0.1  # length of a step; above 0; below 2
sizes = [4, 8]  # sizes, 4 among them; each at least n
rates = (0.0, 0.5)  # rates; each at least 0, ascending
widths = [2, 9]  # widths; each at least 1; one at least T + n
name = "linear"  # a word
fast = True  # whether to hurry
seed = 0  # of the start
count = (
    7  # how many
)
"""


@pytest.fixture
def known():
    made = chapter(MADE_UP, full={"d": 50}, range={"sizes": {"includes": [4]}})
    return parameters_of(made)


@pytest.mark.parametrize("one", CHAPTERS, ids=lambda one: one.id)
def test_every_parameter_of_the_book_is_documented_and_in_range(one: Chapter) -> None:
    found = parameters_of(one)
    assert found
    for parameter in found:
        assert parameter.meaning, f"{parameter.name} has no meaning"
        assert parameter.type in {f"{p}{kind}" for p in ("", "list of ") for kind in
                                  ("int", "float", "str", "bool")}  # fmt: skip
        if parameter.kind in (int, float):
            assert {"at_least", "above"} & set(parameter.range), parameter.name
    for profile in ("quick", "full"):
        values = check(found, {}, profile)
        # What the range says holds for the book's own values, given as a reader would.
        assert check(found, values, "quick") == values


def test_numbers_of_the_full_scale_are_written_as_people_write_them() -> None:
    """A value that rounding has spoilt equals none of those that a chapter compares it with."""

    def numbers(value: object) -> list[float]:
        if isinstance(value, list | tuple):
            return [number for entry in value for number in numbers(entry)]
        return [value] if isinstance(value, float) else []

    spoilt = [
        (one.id, name, number)
        for one in CHAPTERS
        for name, value in one.parameters("full").items()
        for number in numbers(value)
        if float(f"{number:.9g}") != number
    ]
    assert not spoilt


def test_meaning_type_and_range_come_from_the_notebook(known) -> None:
    found = {parameter.name: parameter for parameter in known}
    assert [(p.name, p.type, p.meaning, p.limits) for p in known] == [
        ("n", "int", "sequences", "at least 1"),
        ("T", "int", "tokens", "at least 2, at most 64"),
        ("d", "int", "dimension", "at least max(T - 1, n)"),
        ("step", "float", "length of a step", "above 0, below 2"),
        ("sizes", "list of int", "sizes, 4 among them", "at least n, with 4 among them"),
        ("rates", "list of float", "rates", "at least 0, ascending"),
        ("widths", "list of int", "widths", "at least 1, one at least T + n"),
        ("name", "str", "a word", ""),
        ("fast", "bool", "whether to hurry", ""),
        ("seed", "int", "of the start", "at least 0"),
        ("count", "int", "how many", "at least 1"),
    ]
    assert (found["d"].default, found["d"].full) == (5, 50)


def test_values_are_read_in_the_type_of_the_default(known) -> None:
    given = {"n": "2", "step": "1", "sizes": "4, 8", "rates": [0, 1], "name": "relu",
             "fast": "False"}  # fmt: skip
    values = check(known, given)
    assert [values[name] for name in given] == [2, 1.0, [4, 8], (0.0, 1.0), "relu", False]
    assert isinstance(values["step"], float) and values["d"] == 5
    assert check(known, {"step": "1e-3"})["step"] == 1e-3
    assert check(known, {}, "full")["d"] == 50


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"N": 3}, "parameter: expected one of .*did you mean n.*got 'N'"),
        ({"colour": "red"}, "parameter: expected one of n, T, d.*got 'colour'"),
        ({"n": "three"}, "n: expected a whole number, got three"),
        ({"n": 2.5}, "n: expected a whole number, got 2.5"),
        ({"n": True}, "n: expected a whole number, got True"),
        ({"n": "3,4"}, "n: expected a whole number, got 3,4"),
        ({"step": "inf"}, "step: expected a number, got inf"),
        ({"step": "1e999"}, "step: expected a finite number, got 1e999"),
        ({"fast": "yes"}, "fast: expected True or False, got yes"),
        ({"n": 0}, "n: expected at least 1, got 0"),
        ({"T": 65}, "T: expected at most 64, got 65"),
        ({"step": 0}, "step: expected above 0, got 0"),
        ({"step": 2}, "step: expected below 2, got 2"),
        ({"T": 8, "widths": 99}, r"d: expected at least max\(T - 1, n\) = 7, got 5"),
        ({"sizes": "4,1"}, "sizes: expected entries, at least n = 3, got 4,1"),
        ({"sizes": "6,8"}, "sizes: expected entries, with 4 among them, got 6,8"),
        ({"sizes": []}, "sizes: expected a list of int, got an empty list"),
        ({"sizes": "4,4"}, "sizes: expected each entry once"),
        ({"rates": "1,0"}, "rates: expected entries, ascending, got 1.0,0.0"),
        ({"widths": "2,6"}, r"widths: expected entries, one at least T \+ n = 7, got 2,6"),
        ({"seed": -1}, "seed: expected at least 0, got -1"),
        ({"count": 0}, "count: expected at least 1, got 0"),
    ],
)
def test_bad_values_are_refused_in_one_line(known, given, said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as caught:
        check(known, given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "declared", "said"),
    [
        ("n = 3  # at least __import__('os')", {}, "cannot be understood"),
        ("n = 3  # some; at least n.real", {}, "cannot be understood"),
        ("n = 3  # some; at least m", {}, "name 'm' is not defined"),
        ("n = 3  # some; at least max(2)", {}, "not one of numbers"),
        ("n = 3  # some; at least 2 +", {}, "invalid syntax"),
        ("n = 3", {"range": {"m": {"at_least": 1}}}, "range names m"),
        ("n = 3", {"range": {"n": {"least": 1}}}, "unknown key least"),
        ("n = []", {}, "n is an empty list"),
        ("n = None", {}, "neither a number, a text nor a list"),
        ("n = max(1, 2)", {}, "malformed"),
    ],
)
def test_what_cannot_be_understood_names_the_chapter(source: str, declared, said: str) -> None:
    with pytest.raises(ChapterError, match=f"01-demo/made-up: its parameters: .*{said}"):
        parameters_of(chapter(source, **declared))


def test_assignments_of_the_command_line() -> None:
    assert assignments(["d=4", " n = 3 ", "w=a=b"]) == {"d": "4", "n": "3", "w": "a=b"}
    for bad in (["d"], ["=4"], ["d="], ["d=1", "d=2"]):
        with pytest.raises(ArgumentError, match="-p"):
            assignments(bad)


def test_values_of_a_grid(known) -> None:
    by_name = {parameter.name: parameter for parameter in known}
    assert parse(by_name["n"], "1, 2,3") == ["1", "2", "3"]
    assert parse(by_name["sizes"], "4,8;[4, 16]") == ["4,8", "[4, 16]"]
    with pytest.raises(ArgumentError, match="n"):
        parse(by_name["n"], "1,,2")


def test_files_of_parameters(tmp_path: Path, known) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("n: 2\nstep: 1e-3\nsizes: [4, 8]\n")  # YAML reads 1e-3 as a text
    assert check(known, read_file(path))["step"] == 1e-3
    path.write_text(json.dumps({"n": 2}))
    assert read_file(path) == {"n": 2}
    for text in ("- a\n- b\n", "n: [", "3", "1: 2"):
        path.write_text(text)
        with pytest.raises(ArgumentError, match="params"):
            read_file(path)
    with pytest.raises(ArgumentError, match="No such file"):
        read_file(tmp_path / "nowhere.yaml")


def test_chapters_answer_to_short_names() -> None:
    def ids(name: str) -> list[str]:
        return [one.id for one in select(CHAPTERS, [name])]

    assert ids("rank") == ["02-attention-svm/rank"]
    assert ids("rank-and") == ["02-attention-svm/rank-and-tolerance"]
    with pytest.raises(ArgumentError, match=r"got 'rnak'; did you mean 02-attention-svm/rank\?"):
        ids("rnak")
    with pytest.raises(ArgumentError, match=r"several-tokens-thresholds.*fits several"):
        ids("several")


def test_params_lists_what_a_reader_needs(capsys: pytest.CaptureFixture[str]) -> None:
    root = ["--root", str(booktools.REPOSITORY)]
    assert cli.main(["params", "local-convergence", *root]) == 0
    said = capsys.readouterr().out
    assert "instances   int, default 20 (full scale 100)" in said
    assert "dimension of a token; at least 1" in said
    assert cli.main(["params", "rank", "--json", *root]) == 0
    rows = json.loads(capsys.readouterr().out)["parameters"]
    assert [row["name"] for row in rows] == ["dimensions", "instances"]
    assert rows[0]["type"] == "list of int" and rows[1]["full"] == 100
    assert cli.main(["params", "rnak", *root]) == 2
    assert capsys.readouterr().err.count("\n") == 1
