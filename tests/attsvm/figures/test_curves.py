"""Curves: the summary is what numpy says, and what is drawn is what was given."""

from __future__ import annotations

import matplotlib.colors
import numpy as np
import pandas as pd
import pytest

from attsvm import figures, metrics


def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "run": np.repeat(["a", "b"], 40),
            "x": np.tile(np.repeat(np.arange(4), 10), 2),
            "y": rng.normal(size=80),
            "hit": rng.random(80) < 0.3,
        }
    )


def test_summary_against_numpy():
    data = table()
    summary = figures.summarise(data, ["run", "x"], "y").set_index(["run", "x"])
    values = data[(data["run"] == "b") & (data["x"] == 2)]["y"].to_numpy()
    row = summary.loc[("b", 2)]
    assert row["mean"] == pytest.approx(values.mean())
    assert row["std"] == pytest.approx(values.std(ddof=1))
    assert row["high"] - row["mean"] == pytest.approx(1.96 * values.std(ddof=1) / np.sqrt(10))
    assert (summary["quantity"] == "y").all()
    shares = figures.summarise(data, ["run"], "hit")
    assert shares["low"].between(0, 1).all()
    assert shares["high"].between(0, 1).all()


def test_several_quantities_stand_one_below_the_other() -> None:
    data = table()
    both = figures.summarise(data, ["run", "x"], ["y", "hit"])
    parts = [figures.summarise(data, ["run", "x"], quantity) for quantity in ("y", "hit")]
    pd.testing.assert_frame_equal(both, pd.concat(parts))


def test_shares_are_the_estimates_of_each_group() -> None:
    data = table()
    found = figures.shares(data, ["run", "x"], "hit")
    assert list(found) == ["run", "x", "quantity", "mean", "low", "high", "instances"]
    for row in found.itertuples():
        hits = data[(data["run"] == row.run) & (data["x"] == row.x)]["hit"]
        estimate = metrics.share_estimate(hits)
        assert (row.mean, row.low, row.high, row.instances) == (
            estimate.value,
            estimate.low,
            estimate.high,
            estimate.n,
        )


def test_geometric_mean_and_interval() -> None:
    table = pd.DataFrame({"k": [1, 1, 1, 2, 2], "e": [1e-4, 1e-2, 1.0, 3.0, 3.0]})
    found = figures.summarise(table, ["k"], "e", geometric=True).set_index("k")
    assert found["mean"][1] == pytest.approx(1e-2)
    factor = np.exp(1.96 * np.log(100.0) / np.sqrt(3))
    assert found["high"][1] == pytest.approx(1e-2 * factor)
    assert found["low"][1] == pytest.approx(1e-2 / factor)
    assert found.loc[2, ["mean", "low", "high"]].tolist() == pytest.approx([3.0, 3.0, 3.0])
    # The default is untouched, and so is the caller's table.
    assert figures.summarise(table, ["k"], "e")["mean"][0] == pytest.approx(table["e"][:3].mean())


@pytest.mark.parametrize("published", [False, True])
def test_points_are_joined_in_the_order_of_the_axis(published: bool) -> None:
    # A size that is feasible for late seeds only comes last in a table of kept instances.
    table = pd.DataFrame({"d": [5, 5, 10, 10, 3, 3], "rank": [2.0, 4.0, 4.0, 6.0, 1.0, 1.0]})
    summary = figures.summarise(table, ["d"], "rank")
    assert summary["d"].tolist() == [5, 10, 3]
    _, ax = figures.grid()
    figures.band(ax, summary, "d", label="rank", colour="blue", published=published)
    (line,) = ax.lines
    assert line.get_xdata().tolist() == [3, 5, 10]
    assert line.get_ydata().tolist() == [1.0, 3.0, 5.0]
    assert summary["d"].tolist() == [5, 10, 3]  # the caller's table is left alone


def two_arithmetics() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    index = pd.MultiIndex.from_product(
        [["W", "KQ"], ["exact", "published"], range(4), range(5)],
        names=["weights", "gradient", "k", "seed"],
    )
    rows = pd.DataFrame({"y": rng.uniform(0.5, 1, len(index))}, index=index).reset_index()
    return figures.summarise(rows, ["weights", "gradient", "k"], "y")


def test_curves_draw_each_line_and_its_twin() -> None:
    summary = two_arithmetics()
    _, ax = figures.grid()
    lines = {"W": ("train W", "blue"), "KQ": ("train K, Q", "vermilion")}
    figures.curves(ax, summary, "k", "weights", lines, arithmetic="gradient")
    drawn = iter(ax.lines)
    for weights, (label, colour) in lines.items():
        for gradient, dashed in (("exact", False), ("published", True)):
            line = next(drawn)
            rows = summary.set_index(["weights", "gradient"]).loc[(weights, gradient)]
            np.testing.assert_array_equal(line.get_ydata(), rows["mean"])
            assert line.get_label() == label + ", as published" * dashed
            assert line.get_color() == figures.COLOURS[colour]
            assert line.get_marker() == figures.MARKERS[colour]
            assert (line.get_markerfacecolor() == "none") == line.is_dashed() == dashed
    assert next(drawn, None) is None
    assert len(ax.collections) == 2  # a band for exact arithmetic only


def test_two_columns_tell_curves_apart_and_bands_end_at_the_floor() -> None:
    summary = two_arithmetics()
    _, ax = figures.grid()
    lines = {("W", "published"): ("W", "green")}
    figures.curves(ax, summary, "k", ["weights", "gradient"], lines, spread="interval", floor=0.7)
    (line,), (band,) = ax.lines, ax.collections
    rows = summary.query("weights == 'W' and gradient == 'published'")
    np.testing.assert_array_equal(line.get_ydata(), rows["mean"])
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == rows["high"].max()
    assert heights.min() == min(rows["low"].clip(lower=0.7).min(), rows["high"].min())


def test_error_bars_reach_from_low_to_high() -> None:
    shares = figures.shares(table(), ["x"], "hit")
    _, ax = figures.grid()
    figures.band(ax, shares, "x", label="hit", colour="purple", spread="bars")
    (bars,) = ax.collections
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, shares[["low", "high"]], atol=1e-15)


def test_lines_points_and_dots_show_what_they_are_given() -> None:
    _, ax = figures.grid()
    x, y = [1.0, 2.0], [3.0, 5.0]
    figures.points(ax, x, y, "green", "points", hollow=True)
    figures.line(ax, x, y, "blue", "line", published=True)
    figures.authors(ax, x, y)
    figures.dotted(ax, x, y)
    for line in ax.lines:
        assert line.get_xydata().tolist() == [[1.0, 3.0], [2.0, 5.0]]
    points, dashed, dots, dotted = ax.lines
    assert points.get_linestyle() == dots.get_linestyle() == "None"
    assert points.get_markerfacecolor() == dashed.get_markerfacecolor() == "none"
    assert dashed.is_dashed()
    assert dotted.get_linestyle() == ":"
    figures.dotted(ax, x=4.0)
    figures.dotted(ax, y=0.5, colour="blue")
    assert list(ax.lines[-2].get_xdata()) == [4.0, 4.0]
    assert list(ax.lines[-1].get_ydata()) == [0.5, 0.5]


def test_a_panel_gets_letter_axes_ticks_and_legend() -> None:
    _, (first, second) = figures.grid(columns=2)
    figures.line(second, [1, 10], [1, 2], "blue", "a line")
    figures.key(second, "as published", **figures.AS_PUBLISHED)
    figures.panel(first, "One", "x", "y", ylim=(0, 2))
    figures.panel(second, "Two", log="x", ticks=[1, 10], legend="upper left")
    assert first.get_title(loc="left") == "(a) One"
    assert second.get_title(loc="left") == "(b) Two"
    assert (first.get_xlabel(), first.get_ylabel(), first.get_ylim()) == ("x", "y", (0, 2))
    assert (second.get_xscale(), second.get_yscale()) == ("log", "linear")
    assert [text.get_text() for text in second.get_xticklabels()] == ["1", "10"]
    assert [text.get_text() for text in second.get_legend().texts] == ["a line", "as published"]
    _, alone = figures.grid()
    figures.panel(alone, "Only one", ticks={1: "one"})
    assert alone.get_title(loc="left") == "Only one"
    assert [text.get_text() for text in alone.get_xticklabels()] == ["one"]


def test_the_legend_of_arithmetics_has_two_entries() -> None:
    _, ax = figures.grid()
    figures.line(ax, [0, 1], [0, 1], "blue", "hidden")
    figures.arithmetic_legend(ax)
    solid, dashed = ax.get_legend().legend_handles
    assert not solid.is_dashed() and dashed.is_dashed()
    assert [text.get_text() for text in ax.get_legend().texts] == ["certified", "as published"]
    ink = matplotlib.colors.to_rgba(figures.COLOURS["ink"])
    assert matplotlib.colors.to_rgba(solid.get_color()) == ink
