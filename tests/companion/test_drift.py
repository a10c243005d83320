"""Drift: what moved between two builds is found, ordered, written, and told by the exit code."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import booktools
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from attsvm import cli
from attsvm.errors import ArgumentError
from companion.ship import drift

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def record(name: str, value: float, verdict: str = "holds", **more: object) -> dict[str, object]:
    about = {"chapter": "01-demo/line", "quantity": "length"}
    return booktools.measured(name, value, verdict, **(about | more))


@pytest.fixture
def builds(tmp_path: Path) -> tuple[Path, Path]:
    old = booktools.write_results(
        tmp_path / "old",
        record("a.same", 1.0),
        record("b.moved", 2.0),
        record("c.verdict", 3.0),
        record("d.gone", 4.0),
        record("e.both", 5.0, as_published={"value": 6.0, "halfwidth": 0.0}),
        versions={"numpy": "1", "torch": "2"},
    )
    new = booktools.write_results(
        tmp_path / "new",
        record("a.same", 1.0),
        record("b.moved", 2.5),
        record("c.verdict", 3.0001, "fails"),
        record("e.both", 5.0, as_published={"value": 6.6, "halfwidth": 0.0}),
        record("f.fresh", 7.0),
        versions={"numpy": "1.1", "torch": "2"},
    )
    return old, new


def test_every_number_is_compared_and_what_matters_comes_first(builds: tuple[Path, Path]) -> None:
    moves = drift.compare(*(drift.read(folder) for folder in builds))
    assert list(zip(moves.claim, moves.protocol, moves.state, strict=True)) == [
        ("c.verdict", "certified", "verdict changed"),
        ("d.gone", "certified", "missing"),
        ("f.fresh", "certified", "new"),
        ("b.moved", "certified", "moved"),
        ("e.both", "as published", "moved"),
        ("a.same", "certified", "same"),
        ("e.both", "certified", "same"),
    ]
    assert (moves.difference[3], moves.relative[3]) == (0.5, 0.2)
    assert drift.changed_verdicts(moves) == ["c.verdict", "d.gone"]


@given(NUMBERS, NUMBERS)
def test_difference_vanishes_only_between_equal_numbers(old: float, new: float) -> None:
    one, other = (drift.Results({"a": record("a", value)}, {}) for value in (old, new))
    move, swapped = drift.compare(one, other).loc[0], drift.compare(other, one).loc[0]
    assert (move.state == "same") == (old == new)
    assert 0 <= move.relative <= 2 or math.isinf(new - old)
    assert swapped.relative == move.relative


def test_command_prints_writes_and_tells_by_its_exit_code(
    builds: tuple[Path, Path], tmp_path: Path
) -> None:
    old, new = builds
    done = booktools.run("drift", old, new, "--output", tmp_path / "out", code=1)
    assert done.stderr == ""
    assert "Verdicts changed or missing: c.verdict, d.gone." in done.stdout
    assert "Versions: numpy 1 → 1.1." in done.stdout
    assert "| b.moved | certified | 2 | 2.5 | 0.5 | 1 | holds |" in done.stdout
    assert "| c.verdict | certified | 3 | 3.0001 | 0.0001 | 0.0002 | holds → fails |" in done.stdout
    assert "a.same" not in done.stdout
    with (tmp_path / "out" / "drift.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 7
    moved = next(row for row in rows if row["claim"] == "b.moved")
    assert (float(moved["old"]), float(moved["new"]), moved["state"]) == (2.0, 2.5, "moved")
    assert (tmp_path / "out" / "drift.md").read_text() == done.stdout
    page = BeautifulSoup((tmp_path / "out" / "index.html").read_text(), "html.parser")
    assert len(page.select("tbody tr")) == 7
    assert [row.td.text for row in page.select("tr.changed")] == ["c.verdict", "d.gone"]
    assert not page.select("script, link, img")


def test_same_build_has_no_drift(
    builds: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["drift", str(builds[0]), str(builds[0])]) == 0
    said = capsys.readouterr().out
    assert "6 numbers of 5 claims compared: 6 identical" in said
    assert "|" not in said


def test_results_are_found_where_builds_leave_them(builds: tuple[Path, Path]) -> None:
    old, new = builds
    home = old.parent
    (home / "_build/html/_static").mkdir(parents=True)
    old.rename(home / "_build/html/_static/results")
    results = drift.read(home / "_build")
    assert results == drift.read(home / "_build/html")
    assert results == drift.read(home / "_build/html/_static/results")
    assert results.versions == {"numpy": "1", "torch": "2"}
    (home / "runs").mkdir()
    new.rename(home / "runs/one")
    booktools.write_results(home / "runs/two", record("g.other", 1.0), versions={"scipy": "3"})
    several = drift.read(home / "runs")
    assert sorted(several.claims) == ["a.same", "b.moved", "c.verdict", "e.both", "f.fresh",
                                      "g.other"]  # fmt: skip
    assert several.versions == {"numpy": "1.1", "scipy": "3", "torch": "2"}


def test_claim_that_is_there_twice_is_refused(builds: tuple[Path, Path]) -> None:
    with pytest.raises(ArgumentError, match=r"OLD: expected each claim once, got .* also in"):
        drift.read(builds[0].parent, "OLD")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "records in JSON"),
        ("[]", "records of claims"),
        ('{"id": "x"}', "records of claims"),
        (None, "a folder with results of a build (claims/*.json)"),
    ],
)
def test_what_is_no_result_is_refused(
    tmp_path: Path, content: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "claims").mkdir()
    if content is not None:
        (tmp_path / "claims" / "x.json").write_text(content)
    assert cli.main(["drift", str(tmp_path), str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"attsvm: OLD: expected {said}, got {tmp_path}")
    assert error.count("\n") == 1
