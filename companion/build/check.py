"""Hold what the chapters wrote against what they, and the registry of claims, promise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from companion.build.chapters import Chapter
from companion.build.stage import Results, results_folder

__all__ = ["claim_problems", "figure_problems"]


def figure_problems(chapters: Sequence[Chapter], results: Results, staged: Path) -> list[str]:
    """What is wrong with the figures and their files in a staged book; empty if all is well."""
    problems = _promises(chapters, "figures", results.figures, "published")
    for name, record in results.figures.items():
        if not str(record.get("alt", "")).strip():
            problems.append(f"figure {name}: has no alt text")
        files: dict[str, Any] = record.get("files", {})
        if not files:
            problems.append(f"figure {name}: lists no files")
        for kind, relative in sorted(files.items()):
            path = results_folder(staged) / str(relative)
            if not path.is_file():
                problems.append(f"figure {name}: its {kind} file {relative} is missing")
            elif path.stat().st_size == 0:
                problems.append(f"figure {name}: its {kind} file {relative} is empty")
    return problems


def claim_problems(chapters: Sequence[Chapter], results: Results) -> list[str]:
    """What is wrong with the claims; empty if every one was judged as expected."""
    from attsvm import claims

    built = {chapter.id for chapter in chapters}
    problems = _promises(chapters, "claims", results.claims, "reported")
    problems += claims.check(results.claims, built)
    registered = {claim.id for claim in claims.registry()}
    for name, record in results.claims.items():
        if name not in registered:
            problems.append(f"claim {name}: is not in the registry of claims")
        elif record.get("chapter") not in built:
            problems.append(f"claim {name}: reported by unknown chapter {record.get('chapter')!r}")
    return list(dict.fromkeys(problems))


def _promises(chapters: Sequence[Chapter], kind: str, found: Iterable[str], verb: str) -> list[str]:
    """Compare what the chapters declare with what there is, both ways."""
    owner = {name: chapter.id for chapter in chapters for name in getattr(chapter, kind)}
    noun = kind[:-1]
    missing = [
        f"{noun} {name}: chapter {owner[name]} declares it but has not {verb} it"
        for name in sorted(set(owner) - set(found))
    ]
    extra = [
        f"{noun} {name}: {verb}, but no chapter declares it in metadata.attsvm.{kind}"
        for name in sorted(set(found) - set(owner))
    ]
    return missing + extra
