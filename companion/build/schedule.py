"""Run the chapters that must run, a few at a time, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from attsvm import chunks
from companion.build.cache import (
    Decision,
    Entry,
    components,
    relevant,
    siblings,
    snapshot,
    store,
)
from companion.build.chapters import Chapter
from companion.build.execute import Request, main
from companion.build.layout import Layout, commit, source_date
from companion.build.normalise import tracing_cell
from companion.build.progress import Progress
from companion.build.warm import Context, starter
from companion.errors import ChapterError

__all__ = ["Job", "Left", "environment", "execute", "launch", "prepare_fonts", "run", "settle"]

# What a kernel notes in the job's folder: the modules it has loaded, the chunks it has used.
LOADED, USED = "loaded.json", "used.jsonl"

# Seconds that a process gets to end by itself before it is killed.
GRACE = 5.0


def environment(layout: Layout) -> dict[str, str]:
    """The environment of kernels and Jupyter Book: the user's, less what could change outputs."""
    # Python's own switches would change warnings and imports; PYTHONPATH stays, it is a choice.
    dropped = {"PYTHONWARNINGS", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONOPTIMIZE"}
    # The reader's own cache of experiments would let a chapter skip what it is meant to compute; it
    # gets one of its own, which lives until the chapter is done.
    dropped |= {"MPLBACKEND", "ATTSVM_CACHE"}
    values = {key: value for key, value in os.environ.items() if key not in dropped}
    for name in ("ipython", "jupyter", "matplotlib"):
        (layout.settings / name).mkdir(parents=True, exist_ok=True)
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
    return values | {
        # One thread each: two chapters run side by side, and sums keep their order.
        **{f"{name}_NUM_THREADS": "1" for name in threads},
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "SOURCE_DATE_EPOCH": str(source_date(layout.root)),
        # A reader's own profile, kernels and style must not reach the book.
        "IPYTHONDIR": str(layout.settings / "ipython"),
        "JUPYTER_CONFIG_DIR": str(layout.settings / "jupyter"),
        "JUPYTER_DATA_DIR": str(layout.settings / "jupyter"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "MPLCONFIGDIR": str(layout.settings / "matplotlib"),
        # The rebuild shows progress by cells; a bar inside a page would be frozen noise.
        "TQDM_DISABLE": "1",
        # Debuggers are not used here, and say so at length.
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


@dataclass
class Job:
    """A chapter that is being executed in a process of its own."""

    name: str
    folder: Path  # scratch space; the results are made in it
    log: Path  # what the process prints
    process: BaseProcess  # `companion.build.execute`, which has the kernel for a child
    progress: Connection  # where it says how many cells are done, of how many
    started: float  # on the clock `time.perf_counter`, in seconds
    resumed: int = 0  # chunks of experiments that an earlier, unfinished execution has left


class Left(NamedTuple):
    """What a chapter that has ended leaves."""

    folder: Path  # holds `notebook.ipynb`, `results/` and `time.json`
    modules: list[str]  # loaded in its kernel or where its chunks were computed, as in `relevant`
    chunks: set[str]  # names of the chunks of its experiments


def run(
    layout: Layout, decisions: Sequence[Decision], *, jobs: int, progress: Progress
) -> dict[str, Entry]:
    """Execute chapters, ``jobs`` at a time and in this order, and keep their results, by id.

    Raises
    ------
    ChapterError
        As soon as one chapter fails; the others are stopped, finished ones stay in the cache.
    """
    if not decisions:
        return {}
    base = environment(layout) | {"ATTSVM_COMMIT": commit(layout.root)}
    prepare_fonts(base)
    context = starter(len(decisions), base)
    by_name = {decision.chapter.id: decision for decision in decisions}
    modules = snapshot(layout)
    began: dict[str, dict[str, str]] = {}
    finished: dict[str, Entry] = {}

    def start(name: str) -> Job:
        decision = by_name[name]
        began[name] = components(layout, decision.chapter, decision.profile) | modules
        return _start(layout, decision, base, context, progress)

    def finish(job: Job) -> None:
        decision = by_name[job.name]
        left = settle(layout, job)
        finished[job.name] = store(layout, decision, left.folder, left.modules, began[job.name])
        shutil.rmtree(job.folder)
        # The chunks stay: a figure that changes draws again from them. Those of code that is no
        # more would only pile up.
        for entry in chunks.entries(_chunks(layout, decision)):
            if entry.path.stem not in left.chunks:
                entry.path.unlink(missing_ok=True)

    execute(list(by_name), start, finish, jobs=jobs, progress=progress)
    return finished


def _chunks(layout: Layout, decision: Decision) -> Path:
    # Quick and full runs have nothing in common, and must not remove each other's.
    return layout.chunks / decision.chapter.id / decision.profile


def execute(
    names: Sequence[str],
    start: Callable[[str], Job],
    finish: Callable[[Job], None],
    *,
    jobs: int,
    progress: Progress,
) -> None:
    """Execute chapters, a few at a time; if one fails or the user interrupts, end the others.

    Parameters
    ----------
    names
        What to execute, in this order.
    start
        Launches the job of a name.
    finish
        Takes the results of a job that has ended; its error ends the others.
    jobs
        How many run at the same time.
    progress
        Told how far they are.
    """
    waiting = list(names)
    running: list[Job] = []
    try:
        with selectors.DefaultSelector() as selector:
            while waiting or running:
                while waiting and len(running) < jobs:
                    job = start(waiting.pop(0))
                    running.append(job)
                    selector.register(job.progress, selectors.EVENT_READ, job)
                    progress.start(job.name)
                events = selector.select(timeout=1.0)
                if not events:
                    progress.tick()
                for selected, _ in events:
                    job = selected.data
                    try:
                        progress.advance(job.name, *job.progress.recv())
                    except EOFError:  # the process is ending
                        selector.unregister(job.progress)
                        _end(job, finish, progress)
                        running.remove(job)
    finally:
        for job in running:
            _kill(job.process)
            job.progress.close()
        progress.close()


def _end(job: Job, finish: Callable[[Job], None], progress: Progress) -> None:
    job.process.join()
    job.progress.close()
    seconds = time.perf_counter() - job.started
    try:
        finish(job)
    except ChapterError:
        progress.finish(job.name, f"FAILED after {seconds:.1f} s")
        raise
    progress.finish(job.name, f"done in {seconds:.1f} s")


def prepare_fonts(base: Mapping[str, str]) -> None:
    """Let matplotlib build its font list once: within a chapter it would warn about the wait."""
    if not list(Path(base["MPLCONFIGDIR"]).glob("fontlist-*.json")):
        subprocess.run(
            [sys.executable, "-c", "import matplotlib.font_manager"],
            env=dict(base),
            capture_output=True,
            check=False,  # whatever is wrong with matplotlib, the chapter that needs it will say
        )


def _start(
    layout: Layout,
    decision: Decision,
    base: Mapping[str, str],
    context: Context,
    progress: Progress,
) -> Job:
    """Start a chapter of the book, which goes on where an earlier build was cut off."""
    chapter, profile = decision.chapter, decision.profile
    kept = _chunks(layout, decision)
    if decision.forced:
        shutil.rmtree(kept, ignore_errors=True)
    # Said here: a warning within the chapter would fail it.
    for entry in chunks.sweep(kept):
        progress.say(f"  {chapter.id}: {entry.path} {entry.problem}; computing it anew")
    resumed = sum(1 for _ in chunks.entries(kept))
    if resumed:
        progress.say(f"  {chapter.id}: {resumed} chunks of an earlier run are kept")
    chosen = chapter.with_values(chapter.parameters(profile))
    job = launch(layout, chosen, profile, {**base, "ATTSVM_CACHE": str(kept)}, context)
    job.resumed = resumed
    return job


def launch(
    layout: Layout,
    chapter: Chapter,
    profile: str,
    base: Mapping[str, str],
    context: Context,
    *,
    strict: bool = True,
) -> Job:
    """Start the process that executes a chapter as it stands.

    Parameters
    ----------
    layout
        Scratch space and logs go below its output folder.
    chapter
        The chapter.
    profile
        What the chapter is told it runs in.
    base
        The environment, see `environment`.
    context
        What starts the process, see `warm.starter`.
    strict
        Whether warnings and memory addresses fail the chapter; else they become ``notes.json``.
    """
    folder = layout.work / "chapters" / chapter.id
    shutil.rmtree(folder, ignore_errors=True)
    results = folder / "results"
    results.mkdir(parents=True)
    # A private copy of the chapter's folder: whatever the chapter writes stays out of the sources.
    (folder / "cwd").mkdir()
    for name, path in siblings(chapter).items():
        copy = folder / "cwd" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    # As it was when the decision was made; the file may be edited while others run.
    cells = [*chapter.notebook["cells"], tracing_cell(folder / LOADED)]
    text = json.dumps(chapter.notebook | {"cells": cells})
    (folder / "source.ipynb").write_text(text, encoding="utf-8")
    log = layout.logs / f"{chapter.id}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    environ = {
        **base,
        "ATTSVM_OUTPUT": str(results),
        "ATTSVM_CHAPTER": chapter.id,
        "ATTSVM_PROFILE": profile,
        "ATTSVM_USED": str(folder / USED),
    }
    reading, writing = context.Pipe(duplex=False)
    forked = context.get_start_method() == "forkserver"
    request = Request(folder, log, environ, strict, forked)
    process = context.Process(target=main, args=(request, writing))
    process.start()
    writing.close()
    return Job(chapter.id, folder, log, process, reading, time.perf_counter())


def settle(layout: Layout, job: Job) -> Left:
    """Put together what a chapter that has ended leaves, in a folder within the job's.

    Raises
    ------
    ChapterError
        If the chapter failed.
    """
    job.process.join()
    if job.process.exitcode != 0:
        raise _failure(job)
    prepared = job.folder / "prepared"
    prepared.mkdir()
    for name in ("notebook.ipynb", "results"):
        os.rename(job.folder / name, prepared / name)
    for kind in ("figures", "claims"):
        (prepared / "results" / kind).mkdir(exist_ok=True)
    times = json.loads((job.folder / "time.json").read_text(encoding="utf-8"))
    times["kernel"] = _take_times(prepared / "results" / "times")
    if job.resumed:
        # The seconds are those of this execution only: a part of the work had been done before.
        times["resumed"] = job.resumed
    (prepared / "time.json").write_text(json.dumps(times, sort_keys=True), encoding="utf-8")
    loaded = set(json.loads((job.folder / LOADED).read_text(encoding="utf-8")))
    path = job.folder / USED
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    notes = [json.loads(line) for line in lines]
    loaded.update(*(note["modules"] for note in notes))
    return Left(prepared, relevant(layout, loaded), {note["chunk"] for note in notes})


def _take_times(folder: Path) -> dict[str, Any]:
    """Collect times that the kernel measured, away from the results, which must not vary."""
    paths = sorted(folder.glob("*.json"))
    times = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    shutil.rmtree(folder, ignore_errors=True)
    return times


def _failure(job: Job) -> ChapterError:
    path = job.folder / "error.json"
    if not path.is_file():
        tail = job.log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
        return ChapterError(
            f"chapter {job.name}: its process ended with code {job.process.exitcode}",
            [*tail, f"log: {job.log}"],
        )
    error = json.loads(path.read_text(encoding="utf-8"))
    where = f"chapter {job.name}"
    if error["cell"] is not None:
        lines = [line for line in error["source"].splitlines() if line.strip()]
        first = f" ({lines[0].strip()})" if lines else ""
        where += f", cell {error['cell']}{first}"
    return ChapterError(f"{where} failed", [*error["traceback"].splitlines(), f"log: {job.log}"])


def _kill(process: BaseProcess) -> None:
    """End a chapter's process with its kernel, and whatever workers the kernel has."""
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(process.pid)
        family = [root, *root.children(recursive=True)]
    for end in ("terminate", "kill"):
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                getattr(member, end)()
        _, family = psutil.wait_procs(family, timeout=GRACE)
    process.join()
