"""Curves with bands: means over instances and their spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attsvm._typing import ArrayLike
from attsvm.errors import ArgumentError
from attsvm.figures._style import AS_PUBLISHED, COLOURS, MARKERS
from attsvm.metrics import wilson_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def summarise(
    table: pd.DataFrame, by: Sequence[str], value: str | Sequence[str], geometric: bool = False
) -> pd.DataFrame:
    """Mean over instances with its spread, for each group: the numbers a curve with a band shows.

    Parameters
    ----------
    table, by
        Tidy table, and its columns that name a point of a curve.
    value
        The column to average, or several, one below the other in the result.  A column of truth
        values becomes a share, with Wilson's interval.
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
        If a column is missing, or a value is not finite, or not positive for `geometric`.
    """
    if not isinstance(value, str):
        import pandas as pd

        return pd.concat([summarise(table, by, each, geometric) for each in value])
    if lost := {*by, value} - set(table.columns):
        raise ArgumentError("table", f"columns {sorted({*by, value})}", f"no {sorted(lost)}")
    share, values = table[value].dtype.kind == "b", table[value].astype(float)
    if not np.isfinite(values).all():
        raise ArgumentError("table", f"finite values of {value}", "NaN or infinity")
    if geometric and not (values > 0).all():
        raise ArgumentError("table", f"positive values of {value}", f"{values.min():g}")
    values = np.log(values) if geometric else values
    grouped = table.assign(**{value: values}).groupby(list(by), sort=False)[value]
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


def shares(table: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Share of instances with a property for each group, as `summarise` without std and sem.

    Parameters
    ----------
    table, by
        As for `summarise`.
    value
        A column of truth values.

    Returns
    -------
    DataFrame
        ``by``, then quantity, mean, low, high (Wilson's 95 % interval), instances.

    Raises
    ------
    ArgumentError
        If a column is missing, or the values are not boolean.
    """
    if value in table and table[value].dtype.kind != "b":
        raise ArgumentError("value", "a column of truth values", f"{table[value].dtype}")
    return summarise(table, by, value)[[*by, "quantity", "mean", "low", "high", "instances"]]


def band(
    ax: Axes,
    summary: pd.DataFrame,
    x: str,
    *,
    label: str | None,
    colour: str,
    published: bool = False,
    spread: str = "std",
    marker: str | None = None,
) -> None:
    """Draw a mean curve with a band; published arithmetic is dashed, certified solid.

    Parameters
    ----------
    ax, label, colour
        Panel, text of the legend, a name from `COLOURS`.
    summary, x
        Rows of one curve, from `summarise`, and their column of the horizontal axis.
    published
        Whether this is the published protocol (drawn dashed, without a band's fill).
    spread
        "std": mean ± one standard deviation over instances, as the paper draws; "interval": the 95
        % interval of the mean; "bars": that interval as error bars, for a few places only.
    marker
        A matplotlib marker; by default the colour's own, so that colour never is the only
        difference.
    """
    # Groups come in the order in which instances first fell into them, which need not be that of x.
    summary = summary.sort_values(x)
    at, mean = summary[x].to_numpy(), summary["mean"].to_numpy()
    if spread == "std":
        low, high = mean - summary["std"].to_numpy(), mean + summary["std"].to_numpy()
    else:
        low, high = summary["low"].to_numpy(), summary["high"].to_numpy()
    marker = MARKERS[colour] if marker is None else marker
    look: dict[str, Any] = dict(color=COLOURS[colour], marker=marker, label=label)
    every = max(1, len(at) // 8)
    if published:
        ax.plot(at, mean, **look, **AS_PUBLISHED, markevery=every)
    elif spread == "bars":
        error = np.maximum([mean - low, high - mean], 0)
        ax.errorbar(at, mean, yerr=error, **look, capsize=3, elinewidth=1)
    else:
        ax.fill_between(at, low, high, color=look["color"], alpha=0.18, lw=0)
        ax.plot(at, mean, **look, markevery=every)


def curves(
    ax: Axes,
    summary: pd.DataFrame,
    x: str,
    by: str | Sequence[str],
    lines: Mapping[Any, tuple[str | None, str]],
    *,
    spread: str = "std",
    arithmetic: str | None = None,
    floor: float | None = None,
) -> None:
    """Draw several curves with their bands, each with its twin in published arithmetic.

    Parameters
    ----------
    ax, x, spread
        As for `band`.
    summary, by
        Rows of all curves, and of others, from `summarise` or `shares`, and the column or columns
        that tell the curves apart.
    lines
        Value of ``by`` (a tuple for several columns) → text of the legend, or None, and colour.
    arithmetic
        A column with the words "exact" and "published": the published rows are drawn dashed and
        called "…, as published".  Without it all rows of a curve are certified.
    floor
        Cut the bands here, for logarithmic axes.

    Raises
    ------
    ArgumentError
        If there is no row for a line, or a curve has two rows at one place.
    """
    if floor is not None:
        summary = summary.assign(low=summary["low"].clip(lower=floor))
    groups = dict(list(summary.groupby(by if isinstance(by, str) else list(by), sort=False)))
    for key, (label, colour) in lines.items():
        if key not in groups:
            raise ArgumentError("lines", f"values of {by} in the table", repr(key))
        rows = groups[key]
        for word in ("exact", "published") if arithmetic else ("exact",):
            part = rows[rows[arithmetic] == word] if arithmetic else rows
            if part.empty:
                continue
            if part[x].duplicated().any():
                raise ArgumentError("summary", f"one row of {key!r} at each {x}", "several")
            published = word == "published"
            name = f"{label}, as published" if label and published else label
            band(ax, part, x, label=name, colour=colour, published=published, spread=spread)


def points(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    colour: str,
    label: str | None = None,
    *,
    hollow: bool = False,
    **options: Any,
) -> None:
    """Draw single values, not joined, each with the marker of its colour.

    Parameters
    ----------
    ax, colour, label
        As for `band`.
    x, y
        (points,).
    hollow
        Draw the outline only.
    **options
        Passed on to `matplotlib.axes.Axes.plot`.
    """
    look: dict[str, Any] = {"ls": "", "marker": MARKERS[colour], "ms": 4.5}
    look |= {"mfc": "none"} if hollow else {}
    ax.plot(x, y, color=COLOURS[colour], label=label, **(look | options))


def line(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    colour: str,
    label: str | None = None,
    *,
    published: bool = False,
    **options: Any,
) -> None:
    """Draw one curve without a band: a single run, or means that came without a spread.

    Parameters
    ----------
    ax, x, y, colour, label, **options
        As for `points`.
    published
        Whether this is the published protocol (drawn dashed, with open markers).
    """
    look: dict[str, Any] = {"marker": MARKERS[colour]} | (dict(AS_PUBLISHED) if published else {})
    ax.plot(x, y, color=COLOURS[colour], label=label, **(look | options))


def authors(ax: Axes, x: ArrayLike, y: ArrayLike, label: str | None = "authors' code") -> None:
    """Dots of the results that the authors' own code gave, above all curves.

    Parameters
    ----------
    ax, x, y, label
        As for `points`.
    """
    points(ax, x, y, "ink", label, marker=".", ms=6, zorder=5)


def dotted(
    ax: Axes,
    x: float | ArrayLike | None = None,
    y: float | ArrayLike | None = None,
    colour: str = "grey",
    label: str | None = None,
) -> None:
    """A dotted line to compare with: a threshold, a bound, a slope, the diagonal.

    Parameters
    ----------
    ax, colour, label
        As for `band`.
    x, y
        One number: across the whole panel, at this place; both, (points,) each: a line.
    """
    look: dict[str, Any] = dict(color=COLOURS[colour], ls=":", lw=1.3, label=label)
    if x is None:
        ax.axhline(y, **look)  # type: ignore[arg-type]
    elif y is None:
        ax.axvline(x, **look)  # type: ignore[arg-type]
    else:
        ax.plot(x, y, **look)
