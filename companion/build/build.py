"""One build from start to end, and the question what a build would do."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from companion.build import cache, chapters, check, render, schedule
from companion.build import stage as staging
from companion.build.guard import exclusive
from companion.build.layout import Layout
from companion.build.progress import Progress
from companion.errors import BuildError

__all__ = ["build", "plan"]


def plan(
    layout: Layout, profile: str, *, only: Sequence[str] = (), force: bool = False
) -> list[cache.Decision]:
    """Decide for every chapter whether it runs, and why.

    Parameters
    ----------
    layout
        Where the book lies.
    profile
        ``"quick"`` or ``"full"``.
    only
        Chapters to bring up to date. The others are taken from the cache as they are, even if they
        are out of date, and run only if they have never been executed in this profile.
    force
        Run the chapters (those of ``only``, if given) whatever the cache holds.

    Raises
    ------
    ArgumentError
        If the profile or a chapter does not exist.
    ChapterError
        If a chapter cannot be built as it stands.
    """
    chapters.check_profile(profile)
    found = chapters.discover(layout)
    wanted = chapters.select(found, only) if only else found
    chapters.validate(found)
    return [
        cache.decide(layout, one, profile, force=force and one in wanted, stale=one not in wanted)
        for one in found
    ]


def build(
    layout: Layout,
    profile: str = "full",
    *,
    only: Sequence[str] = (),
    jobs: int = 2,
    force: bool = False,
) -> Path:
    """Execute what must be executed, render the book and put the site in place.

    Parameters
    ----------
    layout
        Where the book lies and where the output goes.
    profile, only, force
        See `plan`.
    jobs
        How many chapters run at the same time.

    Returns
    -------
    Path
        The site's folder. If anything fails, the last good site is still there.

    Raises
    ------
    ArgumentError
        If the profile or a chapter does not exist.
    BuildError
        If a chapter, a check or the rendering fails.
    """
    progress = Progress()
    with exclusive(layout, progress.say):
        decisions = plan(layout, profile, only=only, force=force)
        for name in chapters.strays(layout, [decision.chapter for decision in decisions]):
            progress.say(f"Note: {name} is not in the table of contents and is left out.")
        try:
            return _build(layout, profile, decisions, jobs, progress)
        finally:
            shutil.rmtree(layout.work, ignore_errors=True)


def _build(
    layout: Layout,
    profile: str,
    decisions: Sequence[cache.Decision],
    jobs: int,
    progress: Progress,
) -> Path:
    shutil.rmtree(layout.work, ignore_errors=True)  # left by a build that was killed
    layout.work.mkdir(parents=True)
    book = [decision.chapter for decision in decisions]
    stale = [decision for decision in decisions if decision.runs]
    progress.say(f"{len(book)} chapters, profile {profile}; {len(stale)} to run")
    for decision in decisions:
        state = "runs" if decision.runs else "kept"
        progress.say(f"  {decision.chapter.id}: {state} ({decision.reason})")
    began = time.perf_counter()
    entries = schedule.run(layout, stale, jobs=jobs, progress=progress)
    executed = sorted(entries)
    rendering = time.perf_counter()
    entries |= {one.chapter.id: one.entry for one in decisions if one.entry is not None}
    staged = staging.stage(layout, book, profile, entries)
    results = staging.collect(staged)
    problems = check.figure_problems(book, results, staged)
    problems += check.claim_problems(book, results)
    if problems:
        count = len(problems)
        raise BuildError(f"{count} promise{'s' if count > 1 else ''} of the book broken", problems)
    times: dict[str, Any] = {
        "profile": profile,
        "chapters": {name: entry.time for name, entry in sorted(entries.items())},
    }
    staging.write_indices(staged, results, times)
    progress.say("Rendering with Jupyter Book")
    html = render.render(layout, staged)
    laps = {"chapters": rendering - began, "rendering": time.perf_counter() - rendering}
    site = render.publish(layout, html)
    times |= {"build": laps, "executed": executed}
    layout.times.write_text(json.dumps(times, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    progress.say(
        f"Done: {len(executed)} chapters executed in {laps['chapters']:.1f} s, rendered in "
        f"{laps['rendering']:.1f} s; {len(results.figures)} figures, {len(results.claims)} claims "
        "judged"
    )
    return site
