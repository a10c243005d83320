"""The register of statements: which function carries out, and which claim or test checks, each."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path("book") / "_data" / "index.toml"
FIELDS = {"code", "claims", "tests", "only"}


@dataclass(frozen=True)
class Entry:
    """What stands behind one label: full names of functions and classes, ids of claims, tests."""

    label: str
    code: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    only: str = ""


@dataclass(frozen=True)
class Register:
    """All entries by label, the rooms that must be covered, and what need not be and why."""

    entries: dict[str, Entry]
    rooms: tuple[str, ...] = ()
    without: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def labels_of(self, name: str) -> list[str]:
        """Labels that a function or class carries out, in order; methods count for themselves."""
        return [label for label, entry in self.entries.items() if name in entry.code]

    def dangling(self, labels: Iterable[str], claims: Iterable[str]) -> list[str]:
        """What is wrong with the register: each problem a sentence.

        Parameters
        ----------
        labels
            The labels of the book.
        claims
            The ids of the claims registry.
        """
        there, known = set(labels), set(claims)
        found = list(self.problems)
        found += [f"label {name!r} of the book has no entry" for name in there - set(self.entries)]
        found += [f"label {name!r} is on no page" for name in set(self.entries) - there]
        for entry in self.entries.values():
            name = f"label {entry.label!r}"
            found += [f"{name} names the claim {c!r}, which is not registered" for c in entry.claims
                      if c not in known]  # fmt: skip
            found += [f"{name} names {c!r}, which does not exist" for c in entry.code
                      if lookup(c) is None]  # fmt: skip
            if bool(entry.only) == bool(entry.code or entry.claims or entry.tests):
                found.append(f"{name} needs code, claims or tests, or else a reason in 'only'")
        return sorted(found) + self._uncovered()

    def _uncovered(self) -> list[str]:
        """Public names of the rooms in no entry, and exceptions that are none."""
        used = {name for entry in self.entries.values() for name in entry.code}
        # A class counts as covered by any of its methods.
        used |= {name.rpartition(".")[0] for name in used}
        found = []
        public = [f"{room}.{name}" for room in self.rooms for name in exported(room)]
        for name in public:
            if name not in used and name not in self.without:
                found.append(f"{name} carries out no label; list it, or say why under 'without'")
        for name in self.without:
            if name in used:
                found.append(f"{name} is listed under 'without', and an entry names it")
            elif name not in public:
                found.append(f"{name} is listed under 'without', and no room exports it")
        return found


def read(folder: Path) -> Register | None:
    """The register of a book, or None if it has none.

    Parameters
    ----------
    folder
        Holds ``book/``.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf8"))
    entries, problems = {}, []
    for label, given in content.get("labels", {}).items():
        if unknown := set(given) - FIELDS:
            problems.append(f"label {label!r} has unknown fields {sorted(unknown)}")
        lists = {name: tuple(given.get(name, ())) for name in ("code", "claims", "tests")}
        entries[label] = Entry(label, **lists, only=given.get("only", ""))
    return Register(
        entries,
        tuple(content.get("rooms", {}).get("names", ())),
        dict(content.get("without", {})),
        tuple(problems),
    )


def lookup(name: str) -> Any | None:
    """The object of a full name such as ``attsvm.svm.Solution.rank``, or None."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part, None)
        return found
    return None


def exported(room: str) -> list[str]:
    """Public names of a module of the package."""
    return list(importlib.import_module(room).__all__)
