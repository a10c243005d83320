"""Run the chapters that must run, a few at a time, each in a process of its own."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from attsvm.book.cache import Decision, Entry, siblings, store
from attsvm.book.chapters import KERNEL
from attsvm.book.errors import ChapterError
from attsvm.book.layout import Layout, commit, source_date
from attsvm.book.progress import Progress
from attsvm.book.warm import Warm, WarmChapter, pays

__all__ = ["environment", "run"]

# Seconds that a process gets to end by itself before it is killed.
GRACE = 5.0


def environment(layout: Layout) -> dict[str, str]:
    """The environment of kernels and of Jupyter Book: the user's, less what could change outputs.

    Parameters
    ----------
    layout
        Where the book lies.
    """
    # Python's own switches would change warnings and imports; PYTHONPATH stays, it is a choice.
    dropped = {"PYTHONWARNINGS", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONOPTIMIZE"}
    # A cache of experiments would let a chapter skip what it is meant to compute.
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
class _Job:
    decision: Decision
    folder: Path
    log: Path
    process: subprocess.Popen[bytes] | WarmChapter
    progress: IO[bytes]
    started: float

    @property
    def name(self) -> str:
        return self.decision.chapter.id


def run(
    layout: Layout, decisions: Sequence[Decision], *, jobs: int, progress: Progress
) -> dict[str, Entry]:
    """Execute chapters and keep their results.

    Parameters
    ----------
    layout
        Where the book lies.
    decisions
        What to execute, in this order.
    jobs
        How many chapters run at the same time.
    progress
        Told how far they are.

    Returns
    -------
    dict
        The entry of every chapter, by id.

    Raises
    ------
    ChapterError
        As soon as one chapter fails; the others are stopped, finished ones stay in the cache.
    """
    if not decisions:
        return {}
    base = environment(layout) | {"ATTSVM_COMMIT": commit(layout.root)}
    _prepare_fonts(base)
    warm = Warm(base) if pays(len(decisions)) else None
    waiting = list(decisions)
    running: list[_Job] = []
    finished: dict[str, Entry] = {}
    try:
        with selectors.DefaultSelector() as selector:
            while waiting or running:
                while waiting and len(running) < jobs:
                    job = _start(layout, waiting.pop(0), base, warm)
                    running.append(job)
                    selector.register(job.progress, selectors.EVENT_READ, job)
                    progress.start(job.name)
                events = selector.select(timeout=1.0)
                if not events:
                    progress.tick()
                for selected, _ in events:
                    job = selected.data
                    line = job.progress.readline()
                    if line:
                        event = json.loads(line)
                        progress.advance(job.name, event["done"], event["total"])
                        continue
                    # End of file: the process is ending.
                    selector.unregister(job.progress)
                    finished[job.name] = _finish(layout, job, progress)
                    running.remove(job)
    finally:
        for job in running:
            _kill(job.process)
            job.progress.close()
        if warm is not None:
            warm.close()
        progress.close()
    return finished


def _prepare_fonts(base: Mapping[str, str]) -> None:
    """Let matplotlib build its font list once: within a chapter it would warn about the wait."""
    if not list(Path(base["MPLCONFIGDIR"]).glob("fontlist-*.json")):
        subprocess.run(
            [sys.executable, "-c", "import matplotlib.font_manager"],
            env=dict(base),
            capture_output=True,
            check=False,  # whatever is wrong with matplotlib, the chapter that needs it will say
        )


def _start(layout: Layout, decision: Decision, base: Mapping[str, str], warm: Warm | None) -> _Job:
    chapter = decision.chapter
    folder = layout.work / "chapters" / chapter.id
    if folder.exists():
        shutil.rmtree(folder)
    cwd, results = folder / "cwd", folder / "results"
    cwd.mkdir(parents=True)
    results.mkdir()
    # A private copy of the chapter's folder: whatever the chapter writes stays out of the sources.
    for name, path in siblings(chapter).items():
        (cwd / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, cwd / name)
    cells = chapter.notebook["cells"]
    request = {
        "notebook": "source.ipynb",
        "parameters": chapter.parameters(decision.profile),
        "parameters_cell": cells.index(chapter.parameters_cell),
        "kernel": KERNEL,
        "cwd": str(cwd),
    }
    # As it was when the decision was made; the file may be edited while others run.
    (folder / "source.ipynb").write_text(json.dumps(chapter.notebook), encoding="utf-8")
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    log = layout.logs / f"{chapter.id}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    environ = {
        "ATTSVM_OUTPUT": str(results),
        "ATTSVM_CHAPTER": chapter.id,
        "ATTSVM_PROFILE": decision.profile,
    }
    reading, writing = os.pipe()
    process: subprocess.Popen[bytes] | WarmChapter
    with log.open("wb") as stream:
        if warm is not None:
            process = warm.start(folder, environ, writing, stream.fileno())
        else:
            process = _process(folder, dict(base) | environ, writing, stream)
    os.close(writing)
    pipe = os.fdopen(reading, "rb")
    return _Job(decision, folder, log, process, pipe, time.perf_counter())


def _process(
    folder: Path, environ: Mapping[str, str], progress: int, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "attsvm.book.execute", "request.json", str(progress)],
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        pass_fds=[progress],
        # Ctrl-C in the terminal reaches the rebuild only, which then ends its children.
        start_new_session=True,
    )


def _finish(layout: Layout, job: _Job, progress: Progress) -> Entry:
    code = job.process.wait()
    job.progress.close()
    seconds = time.perf_counter() - job.started
    if code != 0:
        progress.finish(job.name, f"FAILED after {seconds:.1f} s")
        raise _failure(job, code)
    prepared = job.folder / "prepared"
    prepared.mkdir()
    for name in ("notebook.ipynb", "results"):
        os.rename(job.folder / name, prepared / name)
    for kind in ("figures", "claims"):
        (prepared / "results" / kind).mkdir(exist_ok=True)
    times = json.loads((job.folder / "time.json").read_text(encoding="utf-8"))
    times["kernel"] = _take_times(prepared / "results" / "times")
    (prepared / "time.json").write_text(json.dumps(times, sort_keys=True), encoding="utf-8")
    entry = store(layout, job.decision, prepared)
    shutil.rmtree(job.folder)
    progress.finish(job.name, f"done in {seconds:.1f} s")
    return entry


def _take_times(folder: Path) -> dict[str, Any]:
    """Collect times that the kernel measured, away from the results, which must not vary."""
    if not folder.is_dir():
        return {}
    times = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
    }
    shutil.rmtree(folder)
    return times


def _failure(job: _Job, code: int) -> ChapterError:
    path = job.folder / "error.json"
    if not path.is_file():
        tail = job.log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
        return ChapterError(
            f"chapter {job.name}: its process ended with code {code}", [*tail, f"log: {job.log}"]
        )
    error = json.loads(path.read_text(encoding="utf-8"))
    if error["cell"] is None:
        where = f"chapter {job.name}"
    else:
        lines = [line for line in error["source"].splitlines() if line.strip()]
        first = f" ({lines[0].strip()})" if lines else ""
        where = f"chapter {job.name}, cell {error['cell']}{first}"
    return ChapterError(f"{where} failed", [*error["traceback"].splitlines(), f"log: {job.log}"])


def _kill(process: subprocess.Popen[bytes] | WarmChapter) -> None:
    """End a chapter's process with its kernel, and whatever workers the kernel has."""
    try:
        root = psutil.Process(process.pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        process.wait()
        return
    for member in family:
        _signal(member, "terminate")
    _, alive = psutil.wait_procs(family, timeout=GRACE)
    for member in alive:
        _signal(member, "kill")
    process.wait()


def _signal(member: psutil.Process, method: str) -> None:
    try:
        getattr(member, method)()
    except psutil.NoSuchProcess:
        return  # it ended in the meantime, which is what was wanted
