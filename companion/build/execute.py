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
from typing import TYPE_CHECKING, Any

from companion.build.normalise import normalise, objections

if TYPE_CHECKING:
    from companion.build.forked import ForkedKernel

__all__ = ["Request", "main"]

ANSI = re.compile(r"\x1b\[[0-9;]*m")
Report = Callable[[tuple[int, int]], None]


@dataclass(frozen=True)
class Request:
    """What is to be executed, and how.

    Attributes
    ----------
    folder
        Holds ``source.ipynb``; the results go there.
    cwd
        Where the kernel runs.
    log
        The file for whatever the processes print.
    environ
        The environment of both, all of it.
    kernel
        Name of the kernel.
    parameters
        Values that replace those of the parameters cell.
    parameters_cell
        Index of that cell.
    strict
        Whether warnings and memory addresses fail the chapter; else they become ``notes.json``.
    """

    folder: Path
    cwd: Path
    log: Path
    environ: Mapping[str, str]
    kernel: str
    parameters: Mapping[str, Any]
    parameters_cell: int
    strict: bool


def main(request: Request, progress: Connection, forked: bool) -> None:
    """Execute a chapter; ends the process, with code 1 if the chapter failed.

    Parameters
    ----------
    request
        The chapter.
    progress
        Is sent ``(done, total)`` after each cell.
    forked
        Whether this process was forked from one that has the imports behind it.
    """
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C is for the rebuild, which ends its children
    with request.log.open("wb") as stream:
        for standard in (1, 2):
            os.dup2(stream.fileno(), standard)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environ)
    kernel = None
    if forked:
        from companion.build.forked import ForkedKernel

        kernel = ForkedKernel(inherited=[progress.fileno()])
        if kernel.pid == 0:
            # A kernel loads what its chapter imports, and nothing of ours before: see `cache`.
            for name in [m for m in sys.modules if m.partition(".")[0] in ("attsvm", "companion")]:
                del sys.modules[name]
            kernel.serve()
            return
    # The rebuild asks for an end by SIGTERM; as an exception it shuts the kernel down on its way.
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_the_rebuild, daemon=True).start()
    error = _execute(request, progress, kernel)
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
    request: Request, progress: Connection, kernel: ForkedKernel | None
) -> dict[str, Any] | None:
    import papermill
    from papermill.engines import papermill_engines
    from papermill.exceptions import PapermillExecutionError

    from companion.build.forked import manager

    papermill_engines.register("attsvm", _engine(progress.send))
    options = {} if kernel is None else {"kernel_manager_class": manager(kernel)}
    started = time.perf_counter()
    try:
        notebook = papermill.execute_notebook(
            str(request.folder / "source.ipynb"),
            None,
            parameters=dict(request.parameters),
            engine_name="attsvm",
            kernel_name=request.kernel,
            cwd=str(request.cwd),
            progress_bar=False,
            request_save_on_cell_execute=False,
            **options,
        )
    except PapermillExecutionError as failure:
        injected = bool(request.parameters)
        return _cell_error(failure, request.parameters_cell if injected else None)
    except KeyboardInterrupt:
        return {"cell": None, "source": "", "traceback": "interrupted"}
    except Exception:
        # A kernel that died (out of memory, a crash in C code) or never started.
        return {"cell": None, "source": "", "traceback": traceback.format_exc()}
    seconds = time.perf_counter() - started
    times = [cell.metadata.get("papermill", {}).get("duration") for cell in notebook.cells]
    clean = normalise(notebook, request.parameters)
    problems = objections(clean)
    if problems and request.strict:
        return {"cell": None, "source": "", "traceback": "\n".join(problems)}
    (request.folder / "notes.json").write_text(json.dumps(problems), encoding="utf-8")
    text = json.dumps(clean, indent=1, sort_keys=True, ensure_ascii=False)
    (request.folder / "notebook.ipynb").write_text(text + "\n", encoding="utf-8")
    measured = {"seconds": seconds, "cells": [value for value in times if value is not None]}
    measured |= {"memory": _peak_memory()}
    (request.folder / "time.json").write_text(json.dumps(measured), encoding="utf-8")
    return None


def _peak_memory() -> int | None:
    """Most memory that the kernel, which has ended, or a worker of it held; None if unknown.

    Returns
    -------
    int or None
        Resident memory in bytes.
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def _cell_error(failure: Any, parameters_cell: int | None) -> dict[str, Any]:
    index = failure.cell_index
    if parameters_cell is not None and index > parameters_cell:
        index -= 1  # the injected cell is no cell of the chapter
    text = ANSI.sub("", "\n".join(failure.traceback)) or f"{failure.ename}: {failure.evalue}"
    return {"cell": index + 1, "source": failure.source, "traceback": text}


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
