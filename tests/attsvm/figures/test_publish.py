"""Figures: what is drawn is what is stored, in all forms, the same bytes each time."""

import inspect
import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest

from attsvm import datasets, experiments, figures, selection, svm
from attsvm.errors import ArgumentError, AttsvmError
from attsvm.selection import Ledger

ALT = "One curve rises from zero to one; the other one, drawn dashed, falls from one to zero again."

SIZE, NAMES = np.int64(3), [("a", 1), ("b", 2)]


def ledger():
    entries = Ledger()
    entries.add("a", range(10), ["kept"] * 9 + ["infeasible"])
    return entries


def drawn():
    y = np.random.default_rng(0).normal(size=80)
    table = pd.DataFrame({"run": ["a", "b"] * 40, "x": np.arange(80) // 20, "y": y})
    summary = figures.summarise(table, ["run", "x"], "y")
    fig, (ax, other) = figures.grid(columns=2)
    certified, theirs = (summary[summary["run"] == run] for run in ("a", "b"))
    figures.band(ax, certified, "x", label="a", colour="blue", marker="o")
    figures.band(ax, theirs, "x", label="b", colour="vermilion", published=True)
    figures.panel(ax, "Curves", "$x$", "y", legend="best")
    other.set(xlim=(-2, 2), ylim=(-2, 2))
    figures.tokens(other, [[1, 1], [-1, 0.5]], 0, "green")
    figures.ray(other, [1, 2], "green")
    figures.boundary(other, [1, 2], [0.5, 0.5], "green")
    figures.path(other, [[0, 0], [0.5, 0.7], [1, 1.8]], "green", every=1)
    return fig, summary


def publish(fig, summary, **changes):
    options = dict(
        title="Up and down",
        alt=ALT,
        caption="Two curves.",
        ledger=ledger(),
        parameters=dict(n=np.int64(3), sizes=(1, 2)),
        seeds="0..9",
    )
    # Not through the wrapper that checks shapes: `publish` reads the variables of its caller.
    write = inspect.unwrap(figures.publish)
    write(fig, changes.pop("name", "up-and-down"), summary, **(options | changes))


@pytest.fixture
def output(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTSVM_OUTPUT", str(tmp_path))
    monkeypatch.setenv("ATTSVM_CHAPTER", "01-test/figures")
    return tmp_path / "figures"


def test_all_forms_are_written(output):
    fig, summary = drawn()
    publish(fig, summary)
    record = json.loads((output / "up-and-down.json").read_text())
    assert set(record["files"]) == {"svg", "dark", "pdf", "png", "csv"}
    for file in record["files"].values():
        assert (output.parent / file).stat().st_size > 100
    for kind in ("svg", "dark"):
        ElementTree.parse(output.parent / record["files"][kind])
    assert (output / "up-and-down.pdf").read_bytes().startswith(b"%PDF")
    assert (output / "up-and-down.png").read_bytes().startswith(b"\x89PNG")
    again = pd.read_csv(output / "up-and-down.csv")
    pd.testing.assert_frame_equal(again, summary, check_dtype=False)
    assert record["chapter"] == "01-test/figures"
    assert record["ledger"][0]["fates"] == {"kept": 9, "infeasible": 1}
    assert record["passport"]["parameters"] == {"n": 3, "sizes": [1, 2]}
    assert record["alt"] == ALT


def test_the_same_figure_gives_the_same_bytes(output):
    contents = []
    for _ in range(2):
        publish(*drawn())
        contents.append({p.name: p.read_bytes() for p in sorted(output.iterdir())})
    assert contents[0] == contents[1]


def test_the_dark_drawing_differs_in_colours_only(output):
    publish(*drawn())
    light = (output / "up-and-down.svg").read_text()
    dark = (output / "up-and-down-dark.svg").read_text()
    strip = re.compile("#[0-9a-f]{6}")
    assert strip.sub("", light) == strip.sub("", dark)
    assert figures.COLOURS["ink"] in light
    for colour in figures.COLOURS.values():
        assert colour not in dark


def test_the_passport_is_read_off_the_solutions(output):
    problems = datasets.random_problems(range(6), n=3, T=4, d=2)
    chosen = np.zeros((6, 3), dtype=int)
    fro, nuc = (
        svm.solve_many(problems.tokens, problems.queries, chosen, norm=norm)
        for norm in ("fro", "nuc")
    )

    def experiment(seeds):
        return experiments.tabulate(
            seeds, label="tiny", solutions=[[fro[s] for s in seeds], [nuc[s] for s in seeds]]
        )

    found = experiments.run(experiment, range(6), chunk=4, progress=False)
    assert found.table["fate"].tolist() == selection.fates(fro, nuc)
    assert {"kept", "infeasible"} <= set(found.table["fate"])
    fig, summary = drawn()
    further = {"solvers": {"as published": "another one"}, "tolerances": {"threshold": 0.5}}
    names = {"ledger": None, "seeds": None, "parameters": "SIZE NAMES"}
    publish(fig, summary, found=found, **names, **further)
    record = json.loads((output / "up-and-down.json").read_text())
    kept = found.table["fate"] == "kept"
    worst = {
        name: float(f"{max(s.gap for s, k in zip(group, kept, strict=True) if k):.0e}")
        for name, group in (("Frobenius", fro), ("nuclear", nuc))
    }
    passport = record["passport"]
    assert passport["solvers"] == {
        "Frobenius": "attsvm.svm, active set",
        "nuclear": "attsvm.svm, interior point, polished",
        "as published": "another one",
    }
    assert passport["tolerances"] == {
        "relative gap, Frobenius": 1e-9,
        "relative gap, nuclear": 1e-8,
        "largest gap found, Frobenius": worst["Frobenius"],
        "largest gap found, nuclear": worst["nuclear"],
        "threshold": 0.5,
    }
    assert passport["seeds"] == "0..5"
    assert passport["parameters"] == {"SIZE": 3, "NAMES": [["a", 1], ["b", 2]]}
    assert record["ledger"] == found.ledger.as_record()


def test_solutions_outside_an_experiment_are_in_the_passport_too(output):
    X = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    tolerance = svm.Tolerance(gap=1e-7)
    solution = svm.solve(X, X[:, 0], np.array([0]), tolerance=tolerance)
    publish(*drawn(), solutions=[solution])
    passport = json.loads((output / "up-and-down.json").read_text())["passport"]
    assert passport["solvers"] == {"Frobenius": "attsvm.svm, active set"}
    assert passport["tolerances"]["relative gap, Frobenius"] == 1e-7
    assert passport["tolerances"]["largest gap found, Frobenius"] <= 1e-7


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_every_colour_can_be_read_on_its_page():
    from attsvm.figures._style import PALETTE

    for name, (light, dark) in PALETTE.items():
        if name != "grid":
            assert 1.05 / (luminance(light) + 0.05) >= 4.5, name
            assert (luminance(dark) + 0.05) / (luminance("#15181c") + 0.05) >= 4.5, name


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"ledger": None}, "found"),
        ({"seeds": None}, "found"),
        ({"parameters": "ALT x"}, "parameters"),
        ({"name": "Up and Down"}, "name"),
        ({"alt": "A figure."}, "alt"),
        ({"summary": pd.DataFrame()}, "data"),
    ],
)
def test_what_is_missing_is_named_and_nothing_written(output, changes, argument):
    fig, summary = drawn()
    with pytest.raises(ArgumentError) as error:
        publish(fig, **{"summary": summary} | changes)
    assert error.value.argument == argument
    assert not output.exists()


def test_an_output_that_cannot_be_written_is_a_clear_error(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("ATTSVM_OUTPUT", str(blocked))
    with pytest.raises(AttsvmError, match="cannot write"):
        publish(*drawn())


def test_coordinates_keep_a_hundredth_of_a_point(output, monkeypatch):
    from attsvm.figures import _publish

    fig, summary = drawn()
    publish(fig, summary)
    light = (output / "up-and-down.svg").read_text()
    monkeypatch.setattr(_publish, "_rounded", lambda attribute: attribute.group())
    full = _publish._svg(fig, "up-and-down")
    numbers = re.compile(r"-?\d+\.?\d*")
    ours, theirs = ([float(x) for x in numbers.findall(text)] for text in (light, full))
    assert len(light) < len(full)
    np.testing.assert_allclose(ours, theirs, atol=0.00501)
