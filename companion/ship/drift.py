"""How far the numbers of the claims moved between two builds: other versions, another machine.

Two folders of results go in; a table comes out, one row for each measured number, those that moved
furthest first.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from attsvm.errors import ArgumentError
from companion.run import page
from companion.run.tables import html_table

__all__ = ["Results", "changed_verdicts", "compare", "html_text", "markdown_text", "read",
           "summary"]  # fmt: skip

PROTOCOLS = {"certified": "certified", "as_published": "as published"}
PLACES = ("claims", "_static/results/claims", "html/_static/results/claims")
COLUMNS = ("claim", "chapter", "quantity", "protocol", "old", "new", "difference", "relative",
           "halfwidth", "old verdict", "new verdict")  # fmt: skip
SURPRISES = ("verdict changed", "missing")


@dataclass(frozen=True)
class Results:
    """What one build found: records of claims by id, versions of packages that figures name."""

    claims: Mapping[str, Mapping[str, Any]]
    versions: Mapping[str, str]


def read(folder: str | Path, argument: str = "folder") -> Results:
    """Read the results of a build.

    Parameters
    ----------
    folder
        A site, a build's output folder (``_build``), a folder with ``claims/*.json``, or one that
        holds several of those, e.g. of ``attsvm run`` for one chapter after another.
    argument
        Name of the folder in an error.

    Raises
    ------
    ArgumentError
        If no record is there, one cannot be read, or a claim is there twice.
    """
    root = Path(folder)
    direct = [root / place for place in PLACES if (root / place).is_dir()]
    homes = direct[:1] or sorted(path for path in root.rglob("claims") if path.is_dir())
    claims: dict[str, Any] = {}
    versions: dict[str, str] = {}
    for home in homes:
        for path in sorted(home.glob("*.json")):
            record = _record(path, argument)
            if record["id"] in claims:
                raise ArgumentError(argument, "each claim once", f"{record['id']} also in {path}")
            claims[record["id"]] = record
        for path in sorted(home.parent.glob("figures/*.json")):
            passport = json.loads(path.read_text(encoding="utf-8")).get("passport", {})
            versions |= passport.get("versions", {})
    if not claims:
        raise ArgumentError(argument, "a folder with results of a build (claims/*.json)", str(root))
    return Results(claims, versions)


def _record(path: Path, argument: str) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(argument, "records in JSON", f"{path} ({error})") from error
    if not isinstance(record, dict) or not {"id", "verdict", "certified"} <= set(record):
        raise ArgumentError(argument, "records of claims", f"{path}, which is something else")
    return record


def compare(old: Results, new: Results) -> pd.DataFrame:
    """All numbers of two builds side by side, those of changed verdicts and large moves first.

    Returns
    -------
    DataFrame
        A row for each claim and protocol.  ``old`` and ``new`` are nan where a build has no such
        number, the verdicts "" where it did not judge the claim.  ``relative`` is the size of the
        difference in terms of the larger of the two numbers, from 0 to 2; ``halfwidth`` is half the
        width of the older number's interval, 0 for a single measurement; ``state`` is "verdict
        changed", "missing", "new", "moved" or "same".
    """
    rows = []
    for name in sorted(set(old.claims) | set(new.claims)):
        before, after = old.claims.get(name, {}), new.claims.get(name, {})
        known = before or after
        for key, protocol in PROTOCOLS.items():
            one, other = before.get(key) or {}, after.get(key) or {}
            if one or other:
                row = {
                    "claim": name,
                    "protocol": protocol,
                    "old": float(one.get("value", math.nan)),
                    "new": float(other.get("value", math.nan)),
                    "halfwidth": float(one.get("halfwidth", 0.0)),
                    "old verdict": before.get("verdict", ""),
                    "new verdict": after.get("verdict", ""),
                }
                rows.append(row | {key: known.get(key, "") for key in ("chapter", "quantity")})
    table = pd.DataFrame(rows, columns=COLUMNS)
    # Two infinities of one sign are the same number.
    table["difference"] = (table.new - table.old).mask(table.old == table.new, 0.0)
    size = table.difference.abs()
    scale = np.maximum(table.old.abs(), table.new.abs())
    table["relative"] = (size / scale).mask(size == 0, 0.0)
    was, judged = table["old verdict"], table["new verdict"]
    states = {
        "missing": (judged == "") | (table.new.isna() & table.old.notna()),
        "new": (was == "") | (table.old.isna() & table.new.notna()),
        "verdict changed": was != judged,
        "moved": table.difference != 0,
    }
    table["state"] = np.select(list(states.values()), list(states), "same")
    rank = table.state.map({"verdict changed": 0, "missing": 1, "new": 2}).fillna(3)
    table = table.assign(rank=rank, size=-table.relative.fillna(0.0))
    table = table.sort_values(["rank", "size", "claim"], kind="stable", ignore_index=True)
    return table[[*COLUMNS, "state"]]


def changed_verdicts(moves: pd.DataFrame) -> list[str]:
    """Ids of the claims whose verdict is another one or is missing, sorted."""
    return sorted(set(moves.claim[moves.state.isin(SURPRISES)]))


def summary(old: Results, new: Results, moves: pd.DataFrame) -> list[str]:
    """The outcome in a few lines of plain text."""
    both = moves[moves.state.isin(["verdict changed", "moved", "same"])]
    versions = [
        f"{name} {old.versions.get(name, '–')} → {new.versions.get(name, '–')}"
        for name in sorted(set(old.versions) | set(new.versions))
        if old.versions.get(name) != new.versions.get(name)
    ]
    return [
        f"{len(both)} numbers of {len(set(old.claims) & set(new.claims))} claims compared: "
        f"{(both.difference == 0).sum()} identical, {(both.relative <= 1e-9).sum()} within 1e-9, "
        f"{(both.relative > 0.01).sum()} moved by more than 1 %.",
        f"Verdicts changed or missing: {', '.join(changed_verdicts(moves)) or 'none'}.",
        f"Versions: {', '.join(versions) or 'the same'}.",
    ]


def _shown(moves: pd.DataFrame) -> pd.DataFrame:
    """The moves as people read them: all cells are text."""
    before, after = (moves[f"{which} verdict"].replace("", "–") for which in ("old", "new"))
    widths = moves.difference.abs() / moves.halfwidth.where(moves.halfwidth > 0)
    return pd.DataFrame(
        {
            "claim": moves.claim,
            "protocol": moves.protocol,
            "old": moves.old.map(_number),
            "new": moves.new.map(_number),
            "difference": moves.difference.map(lambda value: _number(value, 2)),
            "in half-widths": widths.map(lambda value: _number(value, 2)),
            "verdict": after.where(before == after, before + " → " + after),
        }
    )


def _number(value: float, digits: int = 8) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}g}".replace("-", "−")


def markdown_text(lines: Sequence[str], moves: pd.DataFrame, limit: int | None = None) -> str:
    """The table in Markdown: all numbers that are not the same, or the first so many."""
    changed = moves[moves.state != "same"]
    table = _shown(changed[:limit])
    rows = [table.columns, ["---"] * len(table.columns), *table.to_numpy()] if len(table) else []
    more = len(changed) - len(table)
    parts = [
        "\n".join(lines),
        "\n".join(f"| {' | '.join(row)} |" for row in rows),
        f"{more} more moved less." if more else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def html_text(lines: Sequence[str], moves: pd.DataFrame) -> str:
    """A page of its own with the summary and every number."""
    title = "Drift of the claims' numbers"
    table = _shown(moves)
    marks = moves.state.isin(SURPRISES).map({True: ' class="changed"', False: ""})
    tags = [
        f'<tr{mark} title="{html.escape(quantity)}">'
        for mark, quantity in zip(marks, moves.quantity, strict=True)
    ]
    body = [
        f"<h1>{title}</h1>",
        *(f"<p>{html.escape(line)}</p>" for line in lines),
        html_table(
            list(table), table.map(html.escape).to_numpy(), numbers=len(table.columns), tags=tags
        ),
    ]
    return page.document(title, "<main>\n" + "\n".join(body) + "\n</main>")
