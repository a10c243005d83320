"""What runs measured as tables: in CSV for programs, in HTML for readers."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attsvm import records

__all__ = ["claim_rows", "html_table", "write_claims"]

COLUMNS = ("claim", "side", "value", "halfwidth", "n", "published", "verdict", "registered")


def claim_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The measured numbers in a ``run.json``: a row for each claim and side."""
    return [
        {
            "claim": claim["id"],
            "side": side,
            **{name: claim[key][name] for name in ("value", "halfwidth", "n")},
            "published": claim["published"],
            "verdict": claim["verdict"],
            "registered": claim["expected"],
        }
        for claim in record["claims"]
        for key, side in (("certified", "certified"), ("as_published", "published"))
        if claim[key] is not None
    ]


def write_claims(
    path: Path, rows: Iterable[Mapping[str, Any]], parameters: Sequence[str] = ()
) -> None:
    """Write rows of `claim_rows` as CSV, the columns of the parameters that they have in front."""
    import pandas as pd

    table = pd.DataFrame(rows, columns=[*parameters, *COLUMNS])
    table = table.astype({"value": float, "halfwidth": float, "published": float})
    records.write_bytes(path, table.to_csv(index=False, lineterminator="\n").encode())


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: int = 0,
    tags: Iterable[str] | None = None,
) -> str:
    """A table in HTML.

    Parameters
    ----------
    head
        Names of the columns, as text.
    rows
        The cells, as HTML.
    numbers
        So many columns from the left are not wrapped, and their digits stand below each other.
    tags
        The opening tag of each row; by default a plain one.
    """

    def row(cells: Sequence[str]) -> str:
        kinds = [' class="number"'] * numbers + [""] * (len(cells) - numbers)
        return "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, cells, strict=True))

    names = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    lines = [row(cells) for cells in rows]
    opened = ["<tr>"] * len(lines) if tags is None else tags
    body = "\n".join(f"{tag}{line}</tr>" for tag, line in zip(opened, lines, strict=True))
    return f"<table><thead><tr>{names}</tr></thead><tbody>\n{body}\n</tbody></table>"
