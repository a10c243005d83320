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


def paths(env: BuildEnvironment, kind: str) -> list[Path]:
    """The records of one kind, ``"figures"`` or ``"claims"``, in alphabetical order."""
    return sorted((folder(env) / kind).glob("*.json"))


def figure(env: BuildEnvironment, name: str) -> dict[str, Any] | None:
    """The record of a figure, or None if no chapter published it."""
    path = folder(env) / "figures" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf8")) if path.is_file() else None


def figures(env: BuildEnvironment) -> list[dict[str, Any]]:
    """The records of all figures in the order of the book's pages, then by name."""
    order = {page: place for place, page in enumerate(env.collect_relations())}
    records = [json.loads(path.read_text(encoding="utf8")) for path in paths(env, "figures")]
    last = len(order)
    return sorted(records, key=lambda one: (order.get(f"book/{one['chapter']}", last), one["name"]))


def claims(env: BuildEnvironment) -> dict[str, dict[str, Any]]:
    """The records of all judged claims by id, in alphabetical order of their files."""
    records = (json.loads(path.read_text(encoding="utf8")) for path in paths(env, "claims"))
    return {record["id"]: record for record in records}


def places(env: BuildEnvironment) -> dict[str, tuple[str, str]]:
    """Claim id → page and verdict, for the claims on the pages that were read."""
    return env.domaindata["companion"]["claims"]


def missing_files(env: BuildEnvironment, record: dict[str, Any]) -> list[str]:
    """Names of the files of a figure record that are absent or empty."""
    files = (folder(env) / name for name in record["files"].values())
    return [path.name for path in files if not path.is_file() or path.stat().st_size == 0]
