"""Reads what the chapters left behind: figure and claim records in the staged book."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sphinx.environment import BuildEnvironment

STATIC = "_static/results"
"""Where the results are on the site, relative to its root."""


def folder(env: BuildEnvironment) -> Path:
    """Where the results of all chapters were merged to, in the staged book."""
    return Path(env.srcdir) / "book" / "_static" / "results"


def figure(env: BuildEnvironment, name: str) -> dict[str, Any] | None:
    """The record of a figure, or None if no chapter published it."""
    path = folder(env) / "figures" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf8")) if path.is_file() else None


def claims(env: BuildEnvironment) -> dict[str, dict[str, Any]]:
    """The records of all judged claims by id, in alphabetical order."""
    records = {}
    for path in sorted((folder(env) / "claims").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf8"))
        records[record["id"]] = record
    return records


def missing_files(env: BuildEnvironment, record: dict[str, Any]) -> list[str]:
    """Names of the files of a figure record that are absent or empty."""
    paths = (folder(env) / name for name in record["files"].values())
    return [path.name for path in paths if not path.is_file() or path.stat().st_size == 0]
