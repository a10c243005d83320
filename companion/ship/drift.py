"""How far the numbers of the claims moved between two builds: other versions, another machine.

Two folders of results go in; a table comes out, one row for each measured number, those that moved
furthest first.
"""

from __future__ import annotations

import csv
import html
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attsvm.errors import ArgumentError

__all__ = ["Move", "Results", "changed_verdicts", "compare", "csv_text", "html_text",
           "markdown_text", "read", "summary"]  # fmt: skip

PROTOCOLS = {"certified": "certified", "as_published": "as published"}
PLACES = ("claims", "_static/results/claims", "html/_static/results/claims")


@dataclass(frozen=True)
class Results:
    """What one build found.

    Attributes
    ----------
    claims
        Records of the claims by id.
    versions
        Versions of the packages that its figures name.
    """

    claims: Mapping[str, Mapping[str, Any]]
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Move:
    """One measured number, before and after.

    Attributes
    ----------
    claim, chapter, quantity
        What was measured, and where.
    protocol
        "certified" or "as published".
    old, new
        The numbers; nan where a build has none.
    halfwidth
        Half the width of the older number's interval; 0 for a single measurement.
    old_verdict, new_verdict
        The verdicts on the claim; "" where a build did not judge it.
    """

    claim: str
    chapter: str
    quantity: str
    protocol: str
    old: float
    new: float
    halfwidth: float
    old_verdict: str
    new_verdict: str

    @property
    def difference(self) -> float:
        """New minus old; nan if one is missing, 0 if both are the same infinity."""
        return 0.0 if self.old == self.new else self.new - self.old

    @property
    def relative(self) -> float:
        """Size of the difference in terms of the larger of the two numbers, from 0 to 2."""
        scale = max(abs(self.old), abs(self.new))
        return abs(self.difference) / scale if self.difference and scale else abs(self.difference)

    @property
    def state(self) -> str:
        """ "verdict changed", "missing", "new", "moved" or "same"."""
        if not self.new_verdict or (math.isnan(self.new) and not math.isnan(self.old)):
            return "missing"
        if not self.old_verdict or (math.isnan(self.old) and not math.isnan(self.new)):
            return "new"
        if self.old_verdict != self.new_verdict:
            return "verdict changed"
        return "moved" if self.difference else "same"


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
    return Results(claims, dict(sorted(versions.items())))


def _record(path: Path, argument: str) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(argument, "records in JSON", f"{path} ({error})") from error
    if not isinstance(record, dict) or not {"id", "verdict", "certified"} <= set(record):
        raise ArgumentError(argument, "records of claims", f"{path}, which is something else")
    return record


def compare(old: Results, new: Results) -> list[Move]:
    """All numbers of two builds side by side, those of changed verdicts and large moves first."""
    moves = []
    for name in sorted(set(old.claims) | set(new.claims)):
        before, after = old.claims.get(name, {}), new.claims.get(name, {})
        known = before or after
        for key, protocol in PROTOCOLS.items():
            one, other = before.get(key) or {}, after.get(key) or {}
            if one or other:
                moves.append(
                    Move(
                        claim=name,
                        chapter=known.get("chapter", ""),
                        quantity=known.get("quantity", ""),
                        protocol=protocol,
                        old=float(one.get("value", math.nan)),
                        new=float(other.get("value", math.nan)),
                        halfwidth=float(one.get("halfwidth", 0.0)),
                        old_verdict=before.get("verdict", ""),
                        new_verdict=after.get("verdict", ""),
                    )
                )
    order = {"verdict changed": 0, "missing": 1, "new": 2}
    return sorted(
        moves, key=lambda move: (order.get(move.state, 3), -_known(move.relative), move.claim)
    )


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def changed_verdicts(moves: Iterable[Move]) -> list[str]:
    """Ids of the claims whose verdict is another one or is missing, sorted."""
    states = ("verdict changed", "missing")
    return sorted({move.claim for move in moves if move.state in states})


def summary(old: Results, new: Results, moves: Sequence[Move]) -> list[str]:
    """The outcome in a few lines of plain text."""
    compared = [move for move in moves if move.state in ("verdict changed", "moved", "same")]
    same = sum(not move.difference for move in compared)
    tiny = sum(move.relative <= 1e-9 for move in compared)
    changed = changed_verdicts(moves)
    lines = [
        f"{len(compared)} numbers of {len(set(old.claims) & set(new.claims))} claims compared: "
        f"{same} identical, {tiny} within 1e-9, {sum(m.relative > 0.01 for m in compared)} moved "
        "by more than 1 %."
    ]
    lines.append(f"Verdicts changed or missing: {', '.join(changed) if changed else 'none'}.")
    names = sorted(set(old.versions) | set(new.versions))
    versions = [
        f"{name} {old.versions.get(name, '–')} → {new.versions.get(name, '–')}"
        for name in names
        if old.versions.get(name) != new.versions.get(name)
    ]
    lines.append(f"Versions: {', '.join(versions) if versions else 'the same'}.")
    return lines


COLUMNS = ("claim", "chapter", "quantity", "protocol", "old", "new", "difference", "relative",
           "halfwidth", "old verdict", "new verdict", "state")  # fmt: skip
HEAD = ("claim", "protocol", "old", "new", "difference", "in half-widths", "verdict")


def _row(move: Move) -> tuple[str, ...]:
    verdict = move.new_verdict or "–"
    if move.old_verdict != move.new_verdict:
        verdict = f"{move.old_verdict or '–'} → {verdict}"
    widths = abs(move.difference) / move.halfwidth if move.halfwidth > 0 else math.nan
    return (
        move.claim,
        move.protocol,
        _number(move.old),
        _number(move.new),
        _number(move.difference, 2),
        _number(widths, 2),
        verdict,
    )


def _number(value: float, digits: int = 8) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}g}".replace("-", "−")


def markdown_text(lines: Sequence[str], moves: Sequence[Move], limit: int | None = None) -> str:
    """The table in Markdown: all numbers that are not the same, or the first so many.

    Parameters
    ----------
    lines
        The summary.
    moves
        What `compare` gave.
    limit
        Rows to show at most.
    """
    changed = [move for move in moves if move.state != "same"]
    shown = changed[:limit]
    rows = [HEAD, tuple("---" for _ in HEAD), *(_row(move) for move in shown)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows) if shown else ""
    more = f"{len(changed) - len(shown)} more moved less." if len(changed) > len(shown) else ""
    return "\n\n".join(part for part in ("\n".join(lines), table, more) if part) + "\n"


def csv_text(moves: Sequence[Move]) -> str:
    """Every number in full precision, as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for move in moves:
        writer.writerow(
            [move.claim, move.chapter, move.quantity, move.protocol]
            + [repr(v) for v in (move.old, move.new, move.difference, move.relative)]
            + [repr(move.halfwidth), move.old_verdict, move.new_verdict, move.state]
        )
    return stream.getvalue()


PAGE = """\
<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Drift of the claims' numbers</title>
<style>
:root {{ color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }}
body {{ max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }}
div {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25rem .75rem; text-align: left; border-bottom: 1px solid #8886; }}
tr.changed {{ font-weight: 600; }}
</style>
</head>
<body>
<main>
<h1>Drift of the claims' numbers</h1>
{lines}
<div>
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
</main>
</body>
</html>
"""


def html_text(lines: Sequence[str], moves: Sequence[Move]) -> str:
    """A page of its own with the summary and every number."""
    rows = []
    for move in moves:
        cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in _row(move))
        mark = ' class="changed"' if move.state in ("verdict changed", "missing") else ""
        rows.append(f'<tr{mark} title="{html.escape(move.quantity)}">{cells}</tr>')
    return PAGE.format(
        lines="\n".join(f"<p>{html.escape(line)}</p>" for line in lines),
        head="".join(f'<th scope="col">{name}</th>' for name in HEAD),
        rows="\n".join(rows),
    )
