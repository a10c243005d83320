"""Run one chapter with papermill: what the process does that the rebuild starts per chapter.

It runs the notebook in a kernel of its own and leaves ``notebook.ipynb`` and ``time.json`` in the
chapter's folder, or ``error.json`` if a cell failed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from companion.build.normalise import normalise, objections

__all__ = ["Request", "main"]

ANSI = re.compile(r"\x1b\[[0-9;]*m")
Report = Callable[[tuple[int, int]], None]


@dataclass(frozen=True)
class Request:
    """What is to be executed, and how."""

    folder: Path  # holds `source.ipynb`, and `cwd`, where the kernel runs; the results go there
    log: Path  # the file for whatever the processes print
    environ: Mapping[str, str]  # of both, all of it
    strict: bool  # whether warnings and memory addresses fail the chapter, else are `notes.json`
    forked: bool  # whether this process was forked from one that has the imports behind it


def main(request: Request, progress: Connection) -> None:
    """Execute a chapter; ends the process, with code 1 if the chapter failed.

    After each cell ``progress`` is sent ``(done, total)``.
    """
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C is for the rebuild, which ends its children
    with request.log.open("wb") as stream:
        for standard in (1, 2):
            os.dup2(stream.fileno(), standard)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environ)
    kernel, options = None, {}
    if request.forked:
        from companion.build.forked import ForkedKernel, manager

        kernel = ForkedKernel(progress)
        kernel.start()
        options = {"kernel_manager_class": manager(kernel)}
    # The rebuild asks for an end by SIGTERM; as an exception it shuts the kernel down on its way.
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_the_rebuild, daemon=True).start()
    try:
        error = _execute(request, progress, options)
    finally:
        if kernel is not None:
            kernel.orders.close()  # one that was never launched ends
    if error is not None:
        (request.folder / "error.json").write_text(json.dumps(error, indent=1), encoding="utf-8")
        sys.exit(1)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _end_with_the_rebuild() -> None:
    """End this process and its kernel once the rebuild is gone, even if it was killed outright."""
    import psutil

    rebuild = multiprocessing.parent_process()
    if rebuild is not None:
        rebuild.join()
        for child in psutil.Process().children(recursive=True):
            child.kill()
        os._exit(1)


def _execute(
    request: Request, progress: Connection, options: Mapping[str, Any]
) -> dict[str, Any] | None:
    import papermill
    from papermill.engines import papermill_engines
    from papermill.exceptions import PapermillExecutionError

    papermill_engines.register("attsvm", _engine(progress.send))
    started = time.perf_counter()
    try:
        notebook = papermill.execute_notebook(
            str(request.folder / "source.ipynb"),
            None,
            engine_name="attsvm",
            cwd=str(request.folder / "cwd"),
            progress_bar=False,
            request_save_on_cell_execute=False,
            **options,
        )
    except PapermillExecutionError as failure:
        text = ANSI.sub("", "\n".join(failure.traceback)) or f"{failure.ename}: {failure.evalue}"
        return {"cell": failure.cell_index + 1, "source": failure.source, "traceback": text}
    except KeyboardInterrupt:
        return _error("interrupted")
    except Exception:
        # A kernel that died (out of memory, a crash in C code) or never started.
        return _error(traceback.format_exc())
    seconds = time.perf_counter() - started
    times = [cell.metadata.get("papermill", {}).get("duration") for cell in notebook.cells]
    clean = normalise(notebook)
    problems = objections(clean)
    if problems and request.strict:
        return _error("\n".join(problems))
    (request.folder / "notes.json").write_text(json.dumps(problems), encoding="utf-8")
    text = json.dumps(clean, indent=1, sort_keys=True, ensure_ascii=False)
    (request.folder / "notebook.ipynb").write_text(text + "\n", encoding="utf-8")
    measured = {"seconds": seconds, "cells": [value for value in times if value is not None]}
    measured |= {"memory": _peak_memory()}
    (request.folder / "time.json").write_text(json.dumps(measured), encoding="utf-8")
    return None


def _error(text: str) -> dict[str, Any]:
    """A failure that is not one of a cell."""
    return {"cell": None, "source": "", "traceback": text}


def _peak_memory() -> int | None:
    """Most bytes that the kernel, which has ended, or a worker of it held; None if unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def _engine(report: Report) -> type:
    from papermill.engines import NBClientEngine

    class Engine(NBClientEngine):
        """Papermill's own engine, telling how far it has come."""

        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
            total = len(nb_man.nb.cells)
            complete = nb_man.cell_complete
            report((0, total))

            def cell_complete(cell: Any, cell_index: int = 0, **kwargs: Any) -> Any:
                report((cell_index + 1, total))
                return complete(cell, cell_index=cell_index, **kwargs)

            nb_man.cell_complete = cell_complete
            return super().execute_managed_notebook(nb_man, kernel_name, **options)

    return Engine
