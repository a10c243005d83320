"""Single instances behind a curve, small enough to be looked at on the page."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attsvm._typing import FloatArray
from attsvm.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 60_000  # bytes of one figure's instances: a tenth of what a chapter's first view may weigh
POINTS = 33  # places along a curve: the eye follows no more on a panel of this width
LOG_UNIT = 1e-3  # decades: a quarter of a per cent


def instances(
    table: pd.DataFrame,
    x: str,
    quantities: Mapping[str, str],
    *,
    by: str = "run",
    log: Collection[str] = (),
    label: str | None = None,
    note: str | None = None,
) -> dict[str, Any]:
    """Prepare what a reader may ask of single instances: ``figures.publish(…, instances=…)``.

    Values are rounded to what an eye can tell apart (1/10000 of the range, a quarter of a per cent
    on logarithmic axes).  The first instances are kept, in order of their seeds, as many as fit
    into 60 kB; the mean is over all of them.

    Parameters
    ----------
    table
        Tidy, as `experiments.run` gives it: columns ``seed``, ``x``, ``by`` and the quantities;
        only instances that count.
    x, label
        The column along which curves run, and words for it (by default its name).
    quantities
        Column → words for it.
    by
        The column that names the curve.
    log
        Which of ``x`` and the quantities have a logarithmic axis; values that are not positive are
        then left out.
    note
        A column with a word on each instance and curve, e.g. its type of convergence.

    Returns
    -------
    dict
        ``x`` with its values, ``quantities`` with their units, ``seeds``, ``total`` and ``curves``:
        for each its ``mean`` and, in the order of the seeds, ``values``, or None for an instance
        that does not count there.  Numbers are whole multiples of the unit (of the decimal
        logarithm if ``log``), each but the first written as the difference to the one before; None
        for a gap.

    Raises
    ------
    ArgumentError
        If a column is missing, the table is empty, or an instance has two values at one place.
    """
    wanted = {"seed", x, by, *quantities} | ({note} if note else set())
    if lost := wanted - set(table.columns):
        raise ArgumentError("table", f"columns {sorted(wanted)}", f"no {sorted(lost)}")
    if unknown := set(log) - {x, *quantities}:
        raise ArgumentError("log", f"names among {[x, *quantities]}", f"{sorted(unknown)}")
    if table.empty:
        raise ArgumentError("table", "instances", "an empty table")
    if table.duplicated(["seed", x, by]).any():
        raise ArgumentError("table", f"one row for each seed, {x} and {by}", "several")
    places = _spread(np.unique(table[x].to_numpy(dtype=np.float64)), x in log)
    units = {q: LOG_UNIT if q in log else _unit(table[q].to_numpy(float)) for q in quantities}
    seeds = sorted(int(s) for s in table["seed"].unique())
    curves: list[dict[str, Any]] = []
    for run, rows in table.groupby(by, sort=False):
        curve: dict[str, Any] = {"name": str(run), "of": int(rows["seed"].nunique())}
        curve |= {"mean": {}, "values": {}}
        for q in quantities:
            wide = rows.pivot(index="seed", columns=x, values=q).reindex(seeds, columns=places)
            values = wide.to_numpy(dtype=float)
            # Instances that never count here make empty columns of NaN only if all of them do.
            counted = values[~np.isnan(values).all(axis=1)]
            means = counted.mean(axis=0) if len(counted) else np.full(places.size, np.nan)
            curve["mean"][q] = _coded(means, units[q], q in log)
            curve["values"][q] = [_coded(row, units[q], q in log) for row in values]
        if note:
            words = rows.drop_duplicates("seed").set_index("seed")[note].reindex(seeds)
            curve["notes"] = [None if w is None or w != w else str(w) for w in words]
        curves.append(curve)
    content = {
        "x": {"name": x, "label": label or x, "log": x in log, "values": places.tolist()},
        "by": by,
        "quantities": [
            {"name": q, "label": text, "log": q in log, "unit": units[q]}
            for q, text in quantities.items()
        ],
        "total": len(seeds),
    }
    return _fitted(content | ({"note": note} if note else {}), curves, seeds)


def script(name: str, content: Mapping[str, Any]) -> bytes:
    """The file that a page loads for the view: no JSON, which a page opened from disk may not."""
    return f"attsvmInstances({json.dumps(name)},{_dense(content)});\n".encode()


def _dense(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _spread(places: FloatArray, logarithmic: bool) -> FloatArray:
    """At most POINTS of the places, the first and the last among them, evenly to the eye."""
    if logarithmic:
        places = places[places > 0]
    if places.size <= POINTS:
        return places
    at = np.log(places) if logarithmic else places
    targets = np.linspace(at[0], at[-1], POINTS)
    return places[np.unique([np.abs(at - target).argmin() for target in targets])]


def _unit(values: FloatArray) -> float:
    """A power of ten of about a ten-thousandth of the range."""
    size = float(np.nanmax(values) - np.nanmin(values)) or float(np.nanmax(np.abs(values))) or 1.0
    return float(f"1e{int(np.floor(np.log10(size))) - 4}")


def _coded(values: FloatArray, unit: float, logarithmic: bool) -> list[int | None] | None:
    """Whole multiples of the unit as differences, or None if there is no value at all."""
    if logarithmic:
        values = np.log10(values, where=values > 0, out=np.full_like(values, np.nan))
    if np.isnan(values).all():
        return None
    given = ~np.isnan(values)
    whole = np.rint(values[given] / unit).astype(np.int64)
    steps = iter(np.diff(whole, prepend=0).tolist())
    return [next(steps) if there else None for there in given]


def _fitted(
    content: dict[str, Any], curves: list[dict[str, Any]], seeds: list[int]
) -> dict[str, Any]:
    """As many of the first instances as fit into the limit."""
    count = len(seeds)
    while True:
        shown = [
            curve
            | {"values": {q: rows[:count] for q, rows in curve["values"].items()}}
            | ({"notes": curve["notes"][:count]} if "notes" in curve else {})
            for curve in curves
        ]
        result = content | {"seeds": seeds[:count], "curves": shown}
        size = len(_dense(result).encode())
        if size <= LIMIT - 200 or count == 1:  # 200: the call around it
            return result
        count = max(1, min(count - 1, count * (LIMIT - 200) // size))
