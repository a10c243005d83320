"""Run one chapter with papermill; this is the process that the rebuild starts per chapter.

``python -m companion.build.execute REQUEST PROGRESS_FD`` reads a request (a JSON file), runs the
notebook in a kernel of its own and writes ``notebook.ipynb`` and ``time.json`` beside the request,
or ``error.json`` if a cell failed. One line of JSON per finished cell goes to the descriptor.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from companion.build.normalise import normalise, objections

if TYPE_CHECKING:
    from companion.build.forked import ForkedKernel

__all__ = ["main"]

ANSI = re.compile(r"\x1b\[[0-9;]*m")
Report = Callable[[dict[str, Any]], None]


def main(arguments: list[str] | None = None, kernel: ForkedKernel | None = None) -> int:
    """Execute the chapter that a request names.

    Parameters
    ----------
    arguments
        The request's path and the number of an open file descriptor for progress.
    kernel
        The kernel to use, if there is one already.

    Returns
    -------
    int
        0 if the chapter is done, 1 if it failed.
    """
    request_path, descriptor = arguments if arguments is not None else sys.argv[1:]
    request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    folder = Path(request_path).parent
    # The rebuild asks for an end by SIGTERM; as an exception it shuts the kernel down on its way.
    signal.signal(signal.SIGTERM, _interrupt)
    _die_with(os.getppid())
    with os.fdopen(int(descriptor), "w", encoding="utf-8") as stream:

        def report(event: dict[str, Any]) -> None:
            stream.write(json.dumps(event) + "\n")
            stream.flush()

        error = _execute(request, folder, report, kernel)
    if error is None:
        return 0
    (folder / "error.json").write_text(json.dumps(error, indent=1), encoding="utf-8")
    return 1


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def _die_with(parent: int) -> None:
    """End this process and its kernel once the rebuild is gone, even if it was killed outright."""

    def watch() -> None:
        import psutil

        while os.getppid() == parent:
            time.sleep(1)
        for child in psutil.Process().children(recursive=True):
            child.kill()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _execute(
    request: dict[str, Any], folder: Path, report: Report, kernel: ForkedKernel | None
) -> dict[str, Any] | None:
    import papermill
    from papermill.engines import papermill_engines
    from papermill.exceptions import PapermillExecutionError

    from companion.build.forked import manager

    papermill_engines.register("attsvm", _engine(report))
    options = {} if kernel is None else {"kernel_manager_class": manager(kernel)}
    started = time.perf_counter()
    try:
        notebook = papermill.execute_notebook(
            request["notebook"],
            None,
            parameters=request["parameters"],
            engine_name="attsvm",
            kernel_name=request["kernel"],
            cwd=request["cwd"],
            progress_bar=False,
            request_save_on_cell_execute=False,
            **options,
        )
    except PapermillExecutionError as failure:
        injected = bool(request["parameters"])
        return _cell_error(failure, request["parameters_cell"] if injected else None)
    except KeyboardInterrupt:
        return {"cell": None, "source": "", "traceback": "interrupted"}
    except Exception:
        # A kernel that died (out of memory, a crash in C code) or never started.
        return {"cell": None, "source": "", "traceback": traceback.format_exc()}
    seconds = time.perf_counter() - started
    times = [cell.metadata.get("papermill", {}).get("duration") for cell in notebook.cells]
    clean = normalise(notebook, request["parameters"])
    problems = objections(clean)
    if problems and request["strict"]:
        return {"cell": None, "source": "", "traceback": "\n".join(problems)}
    (folder / "notes.json").write_text(json.dumps(problems), encoding="utf-8")
    text = json.dumps(clean, indent=1, sort_keys=True, ensure_ascii=False)
    (folder / "notebook.ipynb").write_text(text + "\n", encoding="utf-8")
    measured = {"seconds": seconds, "cells": [value for value in times if value is not None]}
    measured |= {"memory": _peak_memory()}
    (folder / "time.json").write_text(json.dumps(measured), encoding="utf-8")
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
            report({"done": 0, "total": total})

            def cell_complete(cell: Any, cell_index: int = 0, **kwargs: Any) -> Any:
                report({"done": cell_index + 1, "total": total})
                return complete(cell, cell_index=cell_index, **kwargs)

            nb_man.cell_complete = cell_complete
            return super().execute_managed_notebook(nb_man, kernel_name, **options)

    return Engine


if __name__ == "__main__":
    sys.exit(main())
