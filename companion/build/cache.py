"""What has been executed already, and why a chapter must run again.

An executed chapter is kept with all that determined its outputs: its code cells and parameters, the
files beside it, its entries in the registry of claims, the modules that its kernel had loaded when
it ended, and the versions of the libraries that these import.  Each part is hashed for itself and
stored beside the results, so that the next build can say *what* changed.  Prose, tags, comments and
docstrings are no part: a page takes them from the chapter as it is now.

An entry is written to one side and renamed into place; it counts only if every file of it still has
the checksum it was stored with.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attsvm import claims, sources
from companion.build.chapters import Chapter
from companion.build.layout import Layout, files_in
from companion.build.normalise import source_of

__all__ = ["Decision", "Entry", "checksums", "components", "decide", "relevant",
           "siblings", "snapshot", "store"]  # fmt: skip

# How each part of a key is named to the reader; modules and libraries go by their own names.
CHANGES = {
    "cells": "code changed",
    "parameters": "parameters changed",
    "files": "files beside it changed",
    "claims": "claims changed",
    "tool": "the way chapters are executed changed",
    "python": "Python changed",
}
EDITED = "edited while the chapter ran"

# Of the tool itself only these two have a say in what a chapter leaves.
TOOL = ("execute.py", "normalise.py")

QUOTES = ("'", '"')

# Tags that change what executing a cell does.
TAGS = ("parameters", "raises-exception", "skip-execution")

# So many superseded entries stay per chapter and profile: going back to a branch costs nothing.
KEPT = 3


@dataclass(frozen=True)
class Entry:
    """One executed chapter on disk."""

    folder: Path  # holds `notebook.ipynb`, `results/`, `time.json` and `manifest.json`
    manifest: dict[str, Any]  # chapter, profile, components, loaded modules, checksums, moment

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

    def shows(self, chapter: Chapter, profile: str) -> bool:
        """Whether it was made with the code and the parameters that the chapter has now."""
        return _written(chapter, profile).items() <= self.manifest["components"].items()

    def is_sound(self) -> bool:
        """Whether every file is there with the checksum it was stored with."""
        return bool(self.manifest["files"] == checksums(_content(self.folder)))


@dataclass(frozen=True)
class Decision:
    """Whether a chapter runs in this build."""

    chapter: Chapter
    profile: str
    entry: Entry | None  # the executed chapter to use; None if it has to run
    reason: str  # why, in a few words
    forced: bool = False  # whether the user wants everything computed anew

    @property
    def runs(self) -> bool:
        """Whether the chapter has to be executed."""
        return self.entry is None


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def checksums(files: Mapping[str, Path]) -> dict[str, str]:
    """SHA-256 of each file, by name."""
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def _content(folder: Path) -> dict[str, Path]:
    """The files of an entry that its manifest speaks of."""
    return {name: path for name, path in files_in(folder).items() if name != "manifest.json"}


def siblings(chapter: Chapter) -> dict[str, Path]:
    """Files beside the notebook that it might read: all but pages, notebooks and leftovers."""
    leftovers = {".ipynb_checkpoints", "attsvm-output", "__pycache__"}
    return {
        name: path
        for name, path in files_in(chapter.path.parent).items()
        if path.suffix not in (".ipynb", ".md") and not leftovers & set(path.parts)
    }


def components(
    layout: Layout, chapter: Chapter, profile: str, loaded: Iterable[str] = ()
) -> dict[str, str]:
    """Hash, part by part, all that the outputs of a chapter depend on.

    Of the modules that were ``loaded`` when it ended, ``"module NAME"`` is one of the package or of
    the book's folder, ``"library NAME"``, with its version, one that is installed.
    """
    tool = [sources.digest(Path(__file__).parent / name) for name in TOOL]
    own = [repr(claim) for claim in claims.registry() if claim.chapter == chapter.id]
    modules = _modules(layout, loaded)
    ours = {name.partition(".")[0] for name in modules}
    libraries = {name.partition(".")[0] for name in loaded} - ours
    return {
        **_written(chapter, profile),
        "files": _hash(sorted(checksums(siblings(chapter)).items())),
        "claims": _hash(own),
        "tool": _hash(tool),
        "python": _hash([platform.python_version(), platform.system(), platform.machine()]),
        **{f"module {name}": sources.digest(path) for name, path in modules.items()},
        **{f"library {name}": version for name, version in sources.versions(libraries).items()},
    }


def _modules(layout: Layout, names: Iterable[str]) -> dict[str, Path]:
    """Those modules that lie in this package or in the book's folder."""
    found = {}
    for name in sorted(names):
        path = sources.locate(name) or sources.locate(name, layout.root)
        if path is not None and name.partition(".")[0] != "companion":
            found[name] = path
    return found


def snapshot(layout: Layout) -> dict[str, str]:
    """Digests of all modules that a chapter may load, as they are before any chapter runs."""
    packages = {sources.HOME / "attsvm", *(p.parent for p in layout.root.glob("*/__init__.py"))}
    names = [
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        for package in packages
        for path in package.rglob("*.py")
    ]
    found = _modules(layout, names)
    return {f"module {name}": sources.digest(path) for name, path in found.items()}


def relevant(layout: Layout, names: Iterable[str]) -> list[str]:
    """Modules by full name where their code counts, others by that of their library."""
    full = set(_modules(layout, names))
    return sorted(full | {name.partition(".")[0] for name in set(names) - full})


def _written(chapter: Chapter, profile: str) -> dict[str, str]:
    """Hashes of what stands in a chapter: its code cells, with tags that matter; its parameters."""
    kernel = chapter.notebook.get("metadata", {}).get("kernelspec", {}).get("name")
    found: list[Any] = [kernel]
    for cell in chapter.notebook["cells"]:
        if cell["cell_type"] == "code":
            tags = cell.get("metadata", {}).get("tags", [])
            found.append((_code(source_of(cell)), sorted(set(tags) & set(TAGS))))
    return {"cells": _hash(found), "parameters": _hash([profile, chapter.parameters(profile)])}


@functools.lru_cache(maxsize=1000)
def _code(source: str) -> str:
    try:
        tree = sources.code(source)
    except SyntaxError:
        return source  # a cell may speak to IPython: %pip, !ls
    # A semicolon at the end hides the value of the last line; a text alone is a value to show.
    last = re.sub(r"#.*", "", source.rstrip().rpartition("\n")[2])
    return f"{tree};" if last.rstrip().endswith(";") else f"{tree}{source.lstrip()[:1] in QUOTES}"


def entries(layout: Layout, chapter: Chapter, profile: str) -> list[Entry]:
    """Executed states of a chapter in a profile, newest first; unreadable ones are left out."""
    found = [
        Entry(path.parent, manifest)
        for path in _manifests(layout, chapter)
        if (manifest := _read_manifest(path)) and manifest["profile"] == profile
    ]
    return sorted(found, key=lambda entry: entry.manifest["finished"], reverse=True)


def _manifests(layout: Layout, chapter: Chapter) -> Iterator[Path]:
    return (layout.chapters / chapter.id).glob("*/manifest.json")


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # a damaged entry: the chapter runs again and replaces it
    needed = {"profile", "components", "loaded", "files", "finished"}
    return manifest if isinstance(manifest, dict) and needed <= set(manifest) else None


def decide(
    layout: Layout, chapter: Chapter, profile: str, *, force: bool = False, stale: bool = False
) -> Decision:
    """Decide whether a chapter must run.

    ``force`` runs it whatever the cache holds; ``stale`` is content with the newest executed state,
    should it be out of date.
    """
    decision = Decision(chapter, profile, None, "forced", forced=force)
    if force:
        return decision
    damaged = replace(decision, reason="its kept results are damaged")
    kept = entries(layout, chapter, profile)
    changes = [_changes(layout, chapter, entry) for entry in kept]
    for entry, changed in zip(kept, changes, strict=True):
        if not changed:
            return (
                replace(decision, entry=entry, reason="unchanged") if entry.is_sound() else damaged
            )
    if not kept:
        readable = all(map(_read_manifest, _manifests(layout, chapter)))
        return replace(decision, reason=f"first run ({profile})") if readable else damaged
    reason = ", ".join(changes[0])
    if stale and kept[0].is_sound():
        return replace(decision, entry=kept[0], reason=f"out of date: {reason}")
    return replace(decision, reason=reason)


def _changes(layout: Layout, chapter: Chapter, entry: Entry) -> list[str]:
    """What differs now from what an entry was made of, in words."""
    before = entry.manifest["components"]
    now = components(layout, chapter, entry.manifest["profile"], entry.manifest["loaded"])
    return explain(before, now)


def explain(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Say which parts of a key differ, each in a few words; at most four."""
    differing = [name for name in {**after, **before} if before.get(name) != after.get(name)]
    words = []
    for name in sorted(differing, key=[*CHANGES, *sorted(differing)].index):
        kind, _, what = name.partition(" ")
        if kind == "module":
            words.append(f"{what} changed")
        elif kind == "library":
            words.append(f"{what} {before.get(name, 'absent')} → {after.get(name, 'absent')}")
        else:
            words.append(CHANGES[name])
    return words if len(words) <= 4 else [*words[:3], f"{len(words) - 3} more"]


def store(
    layout: Layout,
    decision: Decision,
    prepared: Path,
    loaded: Sequence[str],
    started: Mapping[str, str],
) -> Entry:
    """Move a freshly executed chapter into the cache, whole or not at all.

    Parameters
    ----------
    layout
        Where the book lies.
    decision
        The decision that the execution followed from.
    prepared
        Folder on the same file system with ``notebook.ipynb``, ``results/`` and ``time.json``.
    loaded
        Names of the modules that were loaded when it ended.
    started
        The `components` and `snapshot` of the time before it began.
    """
    chapter = decision.chapter
    # Sources that were edited while the chapter ran: which of the two states it saw is unknown, so
    # its results serve this build but are out of date for the next one.
    seen = {
        name: EDITED if started.get(name, value) != value else value
        for name, value in components(layout, chapter, decision.profile, loaded).items()
    }
    key = _hash(sorted(seen.items()))[:20]
    manifest = {
        "chapter": chapter.id,
        "profile": decision.profile,
        "components": seen,
        "loaded": sorted(loaded),
        "files": checksums(files_in(prepared)),
        "finished": time.time(),
    }
    text = json.dumps(manifest, indent=1, sort_keys=True)
    (prepared / "manifest.json").write_text(text + "\n", encoding="utf-8")
    target = layout.chapters / chapter.id / key
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        shutil.rmtree(target)
    os.rename(prepared, target)
    for old in entries(layout, chapter, decision.profile)[KEPT:]:
        shutil.rmtree(old.folder)
    return Entry(target, manifest)
