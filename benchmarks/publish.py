"""Put the measured tables where people look: the README and a page of the book.

`make bench` calls this after the scripts that measure; they leave their rows in
``benchmarks/results/*.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from _measure import Row, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "book" / "_data" / "benchmarks.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- benchmarks: written by make bench -->", "<!-- end of benchmarks -->"
TITLES = {"svm": "Solvers", "descent": "Descent"}


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """The records of the scripts, by name."""
    found = (json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json")))
    records = {record["name"]: record for record in found}
    if not records:
        raise SystemExit(f"no results in {folder}: run `make bench`")
    return records


def machine(record: dict[str, Any]) -> str:
    """A sentence about where the numbers come from."""
    of = record["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in of["versions"].items())
    thread = "one thread" if of["one thread"] else "several threads"
    where = f"{of['system']} ({of['processor']}), Python {of['python']}, {thread}"
    return f"Measured on {where}: {versions}."


def page(records: dict[str, dict[str, Any]]) -> str:
    """All rows, for the book."""
    parts = []
    for name, title in TITLES.items():
        if name in records:
            rows = [Row(**row) for row in records[name]["rows"]]
            parts.append(f"## {title}\n\n{table(rows)}\n\n{machine(records[name])}\n")
    return "\n".join(parts)


def summary(records: dict[str, dict[str, Any]]) -> str:
    """The rows that have a target, for the README."""
    rows = [
        Row(**row)
        for name in TITLES
        if name in records
        for row in records[name]["rows"]
        if row["target"]
    ]
    return f"{table(rows)}\n\n{machine(next(iter(records.values())))}"


def replaced(text: str, block: str) -> str:
    """The README with a new block between the marks."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def main() -> None:
    records = results(RESULTS)
    PAGE.write_text(page(records), "utf-8")
    README.write_text(replaced(README.read_text("utf-8"), summary(records)), "utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)} and the table of {README.name}")


if __name__ == "__main__":
    main()
