"""Put the measured tables where people look: the README and two pages of the book.

`make bench` calls this after the scripts that measure; they leave their rows in
``benchmarks/results/*.json``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from _measure import Row, duration, markdown, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "book" / "_data" / "benchmarks.md"
SIZING = ROOT / "book" / "_data" / "sizing.md"
SIZING_TEXT = ROOT / "benchmarks" / "sizing.txt"
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


def rows(records: dict[str, dict[str, Any]], name: str) -> list[Row]:
    """The rows that a script left."""
    return [Row(**row) for row in records.get(name, {"rows": []})["rows"]]


def page(records: dict[str, dict[str, Any]]) -> str:
    """All rows, for the book."""
    return "\n".join(
        f"## {title}\n\n{table(rows(records, name))}\n\n{machine(records[name])}\n"
        for name, title in TITLES.items()
        if name in records
    )


def summary(records: dict[str, dict[str, Any]]) -> str:
    """The rows that have a target, for the README."""
    chosen = [row for name in TITLES for row in rows(records, name) if row.target]
    return f"{table(chosen)}\n\n{machine(next(iter(records.values())))}"


def sizing(record: dict[str, Any]) -> str:
    """What an instance costs, and what ten million of them would."""
    cluster = record["cluster"]
    head = (
        "n", "T", "d", "one instance", "in it, the SVMs", "chunk of 1 s", "worker's memory",
        "10⁴ instances", "10⁷ instances", "10⁷ on 1\u202f000 cores",
    )  # fmt: skip
    lines: list[tuple[str, ...]] = [head, tuple("---:" for _ in head)]
    for size in record["sizes"]:
        one = size["descent"] + size["solvers"]
        hours = one / 3600
        lines.append((
            *(str(size[name]) for name in ("n", "T", "d")), duration(one),
            f"{size['solvers'] / one:.0%}", f"{max(1, round(1 / one))}",
            f"{(size['base'] + size['memory']) / 1e9:.2f} GB", f"{1e4 * hours:.2g} core-hours",
            f"{plain(1e7 * hours)} core-hours", f"{plain(1e7 * hours / 1000, 2)} h",
        ))  # fmt: skip
    one = sum(record["sizes"][1][part] for part in ("descent", "solvers"))
    least = 1000 * cluster["overhead"]
    chunk = math.ceil(least / one / 10) * 10
    return SIZING_TEXT.read_text("utf-8").format(
        table=markdown(lines),
        machine=machine(record),
        record=record,
        cluster=cluster,
        middle=record["sizes"][1],
        memory=math.ceil(max(size["memory"] for size in record["sizes"]) / 1e6),
        handing=1000 * cluster["overhead"],
        rate=1 / cluster["overhead"],
        least=least,
        chunk=chunk,
        chunks=plain(1e7 / chunk),
    )


def plain(number: float, digits: int = 3) -> str:
    """A number as people write it: thin spaces between thousands, no exponent."""
    rounded = float(f"{number:.{digits}g}")
    text = f"{rounded:,.0f}" if rounded >= 10 ** (digits - 1) else f"{rounded:g}"
    return text.replace(",", "\u202f")


def replaced(text: str, block: str) -> str:
    """The README with a new block between the marks."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def main() -> None:
    records = results(RESULTS)
    PAGE.write_text(page(records), "utf-8")
    SIZING.write_text(sizing(records["scale"]), "utf-8")
    README.write_text(replaced(README.read_text("utf-8"), summary(records)), "utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)} and the table of {README.name}")


if __name__ == "__main__":
    main()
