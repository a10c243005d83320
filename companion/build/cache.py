"""What has been executed already, and why a chapter must run again.

An executed chapter is kept under a key: a hash of everything that can change its outputs. The
parts of the key are hashed one by one and stored beside the results, so that the next build can
say *what* changed. An entry is written to one side and renamed into place; it counts only if every
file of it still has the checksum it was stored with.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import attsvm
from companion.build.chapters import Chapter, source_of
from companion.build.layout import Layout

__all__ = ["Decision", "Entry", "decide", "store"]

# In the order in which they are named to the reader.
CHANGES = {
    "cells": "cells changed",
    "files": "files beside it changed",
    "attsvm": "attsvm changed",
    "lock": "lock changed",
    "parameters": "parameters changed",
    "python": "Python changed",
}

# The rebuild itself cannot change what a chapter computes, except in these two rooms.
BUILDER_SOURCES = ("execute.py", "normalise.py")

# So many superseded entries stay per chapter and profile: going back to a branch costs nothing.
KEPT = 3


@dataclass(frozen=True)
class Entry:
    """One executed chapter on disk.

    Parameters
    ----------
    folder
        Holds ``notebook.ipynb``, ``results/``, ``time.json`` and ``manifest.json``.
    manifest
        Content of the last: chapter, profile, key, components, checksums, moment.
    """

    folder: Path
    manifest: dict[str, Any]

    @property
    def notebook(self) -> Path:
        """The executed, normalised notebook."""
        return self.folder / "notebook.ipynb"

    @property
    def results(self) -> Path:
        """What the chapter wrote: figures and claims."""
        return self.folder / "results"

    @property
    def time(self) -> dict[str, Any]:
        """What was measured of the execution: times in seconds, peak memory in bytes."""
        return json.loads((self.folder / "time.json").read_text(encoding="utf-8"))

    def is_sound(self) -> bool:
        """Whether every file is there with the checksum it was stored with."""
        recorded: dict[str, str] = self.manifest["files"]
        return recorded == _checksums(self.folder)


@dataclass(frozen=True)
class Decision:
    """Whether a chapter runs in this build.

    Parameters
    ----------
    chapter
        The chapter.
    profile
        ``"quick"`` or ``"full"``.
    components
        Hashes of what the outputs depend on, part by part.
    entry
        The executed chapter to use; None if it has to run.
    reason
        Why, in a few words.
    forced
        Whether the user wants everything computed anew.
    """

    chapter: Chapter
    profile: str
    components: Mapping[str, str]
    entry: Entry | None
    reason: str
    forced: bool = False

    @property
    def runs(self) -> bool:
        """Whether the chapter has to be executed."""
        return self.entry is None

    @property
    def key(self) -> str:
        """Name of the entry that belongs to the chapter as it is now."""
        return _hash(sorted(self.components.items()))[:20]


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _hash_files(paths: Mapping[str, Path]) -> str:
    return _hash([(name, _hash_file(path)) for name, path in sorted(paths.items())])


def _hash_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _checksums(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): _hash_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / "manifest.json"
    }


def _attsvm_sources() -> str:
    package = Path(attsvm.__file__).parent
    sources = [path for path in package.rglob("*") if path.is_file()]
    sources += [Path(__file__).parent / name for name in BUILDER_SOURCES]
    return _hash_files({str(path): path for path in sources if "__pycache__" not in path.parts})


def siblings(chapter: Chapter) -> dict[str, Path]:
    """Files beside the notebook that it might read: all but pages, notebooks and leftovers."""
    folder = chapter.path.parent
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.suffix not in (".ipynb", ".md")
        and not {".ipynb_checkpoints", "attsvm-output", "__pycache__"} & set(path.parts)
    }


def components(layout: Layout, chapter: Chapter, profile: str) -> dict[str, str]:
    """Hash, part by part, all that the outputs of a chapter depend on.

    Parameters
    ----------
    layout
        Where the book lies.
    chapter
        The chapter.
    profile
        ``"quick"`` or ``"full"``.
    """
    metadata = {k: v for k, v in chapter.notebook.get("metadata", {}).items() if k != "attsvm"}
    cells = [
        (cell["cell_type"], source_of(cell), cell.get("metadata", {}))
        for cell in chapter.notebook["cells"]
    ]
    return {
        "cells": _hash([cells, metadata, chapter.id]),
        "files": _hash_files(siblings(chapter)),
        "attsvm": _attsvm_sources(),
        "lock": _hash_file(layout.lock) if layout.lock.is_file() else "",
        "parameters": _hash([profile, chapter.parameters(profile)]),
        "python": _hash([platform.python_version(), platform.system(), platform.machine()]),
    }


def entries(layout: Layout, chapter: Chapter, profile: str) -> Iterator[Entry]:
    """Executed states of a chapter in a profile, newest first; unreadable ones are left out."""
    found = []
    for path in (layout.chapters / chapter.id).glob("*/manifest.json"):
        manifest = _read_manifest(path)
        if manifest and manifest["profile"] == profile:
            found.append(Entry(path.parent, manifest))
    yield from sorted(found, key=lambda entry: entry.manifest["finished"], reverse=True)


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # a damaged entry: the chapter runs again and replaces it
    needed = {"profile", "components", "files", "finished"}
    return manifest if isinstance(manifest, dict) and needed <= set(manifest) else None


def decide(
    layout: Layout, chapter: Chapter, profile: str, *, force: bool = False, stale: bool = False
) -> Decision:
    """Decide whether a chapter must run.

    Parameters
    ----------
    layout
        Where the book lies.
    chapter
        The chapter.
    profile
        ``"quick"`` or ``"full"``.
    force
        Run it whatever the cache holds.
    stale
        Be content with the newest executed state, should it be out of date.
    """
    parts = components(layout, chapter, profile)
    decision = Decision(chapter, profile, parts, None, "forced", forced=force)
    if force:
        return decision
    kept = list(entries(layout, chapter, profile))
    current = next((entry for entry in kept if entry.folder.name == decision.key), None)
    if current is not None:
        if current.is_sound():
            return replace(decision, entry=current, reason="unchanged")
        return replace(decision, reason="its kept results are damaged")
    if (layout.chapters / chapter.id / decision.key).exists():
        return replace(decision, reason="its kept results are damaged")
    if not kept:
        return replace(decision, reason=f"first run ({profile})")
    reason = explain(kept[0].manifest["components"], parts)
    if stale and kept[0].is_sound():
        return replace(decision, entry=kept[0], reason=f"out of date: {reason}")
    return replace(decision, reason=reason)


def explain(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Say which parts of a key differ."""
    changed = [text for name, text in CHANGES.items() if before.get(name) != after.get(name)]
    return ", ".join(changed)


def store(layout: Layout, decision: Decision, prepared: Path) -> Entry:
    """Move a freshly executed chapter into the cache, whole or not at all.

    Parameters
    ----------
    layout
        Where the book lies.
    decision
        The decision that the execution followed from.
    prepared
        Folder on the same file system with ``notebook.ipynb``, ``results/`` and ``time.json``.
    """
    now = components(layout, decision.chapter, decision.profile)
    # Sources that were edited while the chapter ran: which of the two states it saw is unknown, so
    # its results serve this build but are out of date for the next one.
    seen = {
        name: value if now[name] == value else "edited while the chapter ran"
        for name, value in decision.components.items()
    }
    key = replace(decision, components=seen).key
    manifest = {
        "chapter": decision.chapter.id,
        "profile": decision.profile,
        "key": key,
        "components": seen,
        "files": _checksums(prepared),
        "finished": time.time(),
    }
    text = json.dumps(manifest, indent=1, sort_keys=True)
    (prepared / "manifest.json").write_text(text + "\n", encoding="utf-8")
    target = layout.chapters / decision.chapter.id / key
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        shutil.rmtree(target)
    os.rename(prepared, target)
    for old in list(entries(layout, decision.chapter, decision.profile))[KEPT:]:
        shutil.rmtree(old.folder)
    return Entry(target, manifest)
