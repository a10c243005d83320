"""How a chapter's process starts: anew, or forked from one with the heavy imports behind it.

Papermill, a kernel, PyTorch, pandas and seaborn take five seconds to import, more than many a
chapter takes to compute.  Where fork is safe (Linux; on macOS it is not, once Accelerate is loaded)
and several chapters are to run, the standard library's fork server imports them once.  It forks for
each chapter, and the chapter's process forks its kernel before it starts any thread.  Memory is
shared, state is not.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.forkserver
import os
import sys
from collections.abc import Iterator, Mapping
from multiprocessing.context import ForkServerContext, SpawnContext

__all__ = ["PRELOAD", "Context", "environ", "pays", "starter"]

# Fewer chapters than this start faster on their own.
WORTH_IT = 4
PRELOAD = (
    "papermill.engines",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "pandas",
    "seaborn",
    "torch",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "companion.build.execute",
    "companion.build.frozen",
)

Context = ForkServerContext | SpawnContext


def pays(chapters: int) -> bool:
    """Whether this many chapters are better forked than started one by one."""
    return sys.platform == "linux" and chapters >= WORTH_IT


def starter(chapters: int, values: Mapping[str, str]) -> Context:
    """What starts the processes of so many chapters, in an environment of these values."""
    if not pays(chapters):
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOAD))
    # matplotlib reads its backend on import; a kernel would set this one a little later.
    backend = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    # The folder it is started in is no place to import from.
    with environ({**values, **backend, "PYTHONSAFEPATH": "1"}):
        multiprocessing.forkserver.ensure_running()
    return context


@contextlib.contextmanager
def environ(values: Mapping[str, str]) -> Iterator[None]:
    """Let new processes have these values for all of their environment while the block lasts."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
