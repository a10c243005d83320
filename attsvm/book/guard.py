"""Keep two builds in one output folder apart: the second waits until the first has ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator

from attsvm.book.layout import Layout

__all__ = ["exclusive"]


@contextlib.contextmanager
def exclusive(layout: Layout, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the output folder for one build.

    The operating system drops the lock when its process ends, however it ends: none is ever stale.

    Parameters
    ----------
    layout
        Where the book lies.
    say
        Told once if another build has to be waited for.
    """
    layout.output.mkdir(parents=True, exist_ok=True)
    with layout.guard.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            owner = stream.read().strip() or "unknown"
            say(f"Another build (process {owner}) is using {layout.output}: waiting for it.")
            fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        stream.truncate()
        stream.write(f"{os.getpid()}\n")
        stream.flush()
        yield
