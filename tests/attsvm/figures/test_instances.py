"""What a reader can ask of single instances: what is written can be read back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from attsvm import experiments, figures
from attsvm.figures._instances import LIMIT, POINTS, script


def made(count: int, at: np.ndarray, runs: tuple[str, ...] = ("a", "b")) -> pd.DataFrame:
    """Random walks, one for each run, place and instance."""
    generator = np.random.default_rng(3)
    seeds = range(count)
    return pd.concat(
        [
            experiments.tabulate(
                seeds,
                label=run,
                over={"iteration": at},
                height=generator.normal(size=(at.size, count)).cumsum(0),
                distance=10.0 ** generator.uniform(-9, 0, (at.size, count)),
                kind=["even" if s % 2 == 0 else "odd" for s in seeds],
            )
            for run in runs
        ]
    ).drop(columns="fate")


def decoded(coded: list[int | None], quantity: dict[str, Any]) -> np.ndarray:
    """The values again; NaN for gaps."""
    whole = np.cumsum([0 if c is None else c for c in coded]).astype(np.float64)
    whole[[c is None for c in coded]] = np.nan
    values = whole * quantity["unit"]
    return 10.0**values if quantity["log"] else values


WORDS = {"height": "Height", "distance": "Distance"}


def test_values_are_those_of_the_table() -> None:
    table = made(5, np.arange(1, 21))
    content = figures.instances(table, "iteration", WORDS, log=["distance"], note="kind")
    assert content["x"]["values"] == list(range(1, 21))
    assert content["seeds"] == [0, 1, 2, 3, 4] and content["total"] == 5
    assert [curve["name"] for curve in content["curves"]] == ["a", "b"]
    for curve in content["curves"]:
        assert curve["notes"] == ["even", "odd", "even", "odd", "even"]
        for quantity in content["quantities"]:
            rows = table[table["run"] == curve["name"]]
            wide = rows.pivot(index="seed", columns="iteration", values=quantity["name"]).to_numpy()
            back = [decoded(row, quantity) for row in curve["values"][quantity["name"]]]
            mean = decoded(curve["mean"][quantity["name"]], quantity)
            if quantity["log"]:
                np.testing.assert_allclose(back, wide, rtol=0.0012)  # half of 10^0.001
                np.testing.assert_allclose(mean, wide.mean(0), rtol=0.0012)
            else:
                span = table["height"].max() - table["height"].min()
                assert quantity["unit"] <= span / 1e4
                np.testing.assert_allclose(back, wide, atol=0.51 * quantity["unit"])
                np.testing.assert_allclose(mean, wide.mean(0), atol=0.51 * quantity["unit"])


def test_an_instance_that_does_not_count_in_one_run_stays_out_of_it() -> None:
    table = made(4, np.arange(3))
    table = table[~((table["run"] == "b") & (table["seed"] == 2))]
    content = figures.instances(table, "iteration", {"height": "Height"})
    first, second = content["curves"]
    assert first["values"]["height"][2] is not None
    assert second["values"]["height"][2] is None
    assert (first["of"], second["of"]) == (4, 3)
    rest = table[table["run"] == "b"].groupby("iteration")["height"].mean()
    np.testing.assert_allclose(
        decoded(second["mean"]["height"], content["quantities"][0]),
        rest,
        atol=content["quantities"][0]["unit"],
    )


def test_what_has_no_logarithm_is_a_gap() -> None:
    table = made(2, np.arange(1, 5))
    table.loc[(table["seed"] == 1) & (table["iteration"] == 3), "distance"] = 0.0
    content = figures.instances(table, "iteration", {"distance": "Distance"}, log=["distance"])
    coded = content["curves"][0]["values"]["distance"][1]
    assert [c is None for c in coded] == [False, False, True, False]
    last = table[(table["seed"] == 1) & (table["run"] == "a") & (table["iteration"] == 4)]
    value = decoded(coded, content["quantities"][0])[3]
    assert value == pytest.approx(last["distance"].item(), rel=0.0012)


def test_many_instances_are_cut_to_the_limit_and_the_mean_is_not() -> None:
    table = made(300, np.unique(np.geomspace(1, 5000, 200).astype(int)))
    content = figures.instances(table, "iteration", WORDS, log=["iteration", "distance"])
    written = script("many", content)
    assert 0.8 * LIMIT < len(written) <= LIMIT
    assert content["total"] == 300
    shown = len(content["seeds"])
    assert 10 < shown < 300 and content["seeds"] == list(range(shown))
    places = content["x"]["values"]
    assert len(places) <= POINTS and places[0] == 1 and places[-1] == 5000
    rows = table[(table["run"] == "a") & table["iteration"].isin(places)]
    np.testing.assert_allclose(
        decoded(content["curves"][0]["mean"]["height"], content["quantities"][0]),
        rows.groupby("iteration")["height"].mean(),
        atol=content["quantities"][0]["unit"],
    )


def test_the_script_calls_with_the_name_and_json() -> None:
    content = figures.instances(made(2, np.arange(3)), "iteration", {"height": "Höhe"})
    text = script("some-name", content).decode()
    assert text.startswith('attsvmInstances("some-name",') and text.endswith(");\n")
    assert json.loads(text[len('attsvmInstances("some-name",') : -3]) == content
