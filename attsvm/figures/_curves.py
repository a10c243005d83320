"""Curves with bands: means over instances and their spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attsvm.errors import ArgumentError
from attsvm.figures._style import COLOURS
from attsvm.metrics import wilson_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def summarise(
    table: pd.DataFrame, by: Sequence[str], value: str, geometric: bool = False
) -> pd.DataFrame:
    """Mean over instances with its spread, for each group: the numbers a curve with a band shows.

    Parameters
    ----------
    table
        Tidy table.
    by
        Columns that name a point of a curve.
    value
        The column to average.  A column of truth values becomes a share, with Wilson's interval.
    geometric
        Average the logarithm, for logarithmic axes: mean, low and high are then the geometric mean
        and the ends of its interval, std and sem those of the natural logarithm.

    Returns
    -------
    DataFrame
        ``by``, then quantity, mean, std (over instances, n − 1), sem (standard error), low, high
        (95 % interval of the mean), instances.

    Raises
    ------
    ArgumentError
        If a column is missing or a value is not finite, or not positive where its logarithm is
        averaged.
    """
    if lost := {*by, value} - set(table.columns):
        raise ArgumentError("table", f"columns {sorted({*by, value})}", f"no {sorted(lost)}")
    share = table[value].dtype.kind == "b"
    if share:
        table = table.assign(**{value: table[value].astype(float)})
    if not np.isfinite(table[value].to_numpy(dtype=float)).all():
        raise ArgumentError("table", f"finite values of {value}", "NaN or infinity")
    if geometric:
        if not (table[value] > 0).all():
            raise ArgumentError("table", f"positive values of {value}", f"{table[value].min():g}")
        table = table.assign(**{value: np.log(table[value])})
    grouped = table.groupby(list(by), sort=False)[value]
    result = grouped.agg(mean="mean", std="std", instances="count").reset_index()
    result["std"] = result["std"].fillna(0.0)
    result["sem"] = result["std"] / np.sqrt(result["instances"])
    if share:
        result["low"], result["high"] = wilson_interval(result["mean"], result["instances"])
    else:
        result["low"] = result["mean"] - 1.96 * result["sem"]
        result["high"] = result["mean"] + 1.96 * result["sem"]
    if geometric:
        ends = ["mean", "low", "high"]
        result[ends] = np.exp(result[ends])
    result.insert(len(by), "quantity", value)
    return result


def band(
    ax: Axes,
    summary: pd.DataFrame,
    x: str,
    *,
    label: str,
    colour: str,
    published: bool = False,
    spread: str = "std",
    marker: str = "",
) -> None:
    """Draw a mean curve with a band; published arithmetic is dashed, certified solid.

    Parameters
    ----------
    ax
        Where to draw.
    summary
        Rows of one curve, from `summarise`.
    x
        Column of the horizontal axis.
    label
        Text of the legend.
    colour
        A name from `COLOURS`.
    published
        Whether this is the published protocol (drawn dashed, without a band's fill).
    spread
        "std": mean ± one standard deviation over instances, as the paper draws; "interval": the 95
        % interval of the mean.
    marker
        A matplotlib marker, so that colour never is the only difference.
    """
    line = COLOURS[colour]
    # Groups come in the order in which instances first fell into them, which need not be that of x.
    summary = summary.sort_values(x)
    at, mean = summary[x].to_numpy(), summary["mean"].to_numpy()
    if spread == "std":
        low, high = mean - summary["std"].to_numpy(), mean + summary["std"].to_numpy()
    else:
        low, high = summary["low"].to_numpy(), summary["high"].to_numpy()
    every = max(1, len(at) // 8)
    if published:
        ax.plot(at, mean, color=line, ls=(0, (4, 2)), lw=1.5, marker=marker, mfc="none",
                markevery=every, label=label)  # fmt: skip
    else:
        ax.fill_between(at, low, high, color=line, alpha=0.18, lw=0)
        ax.plot(at, mean, color=line, marker=marker, markevery=every, label=label)
