"""Keep two builds in one output folder apart: the second waits until the first has ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator

from companion.build.layout import Layout

__all__ = ["exclusive"]


@contextlib.contextmanager
def exclusive(layout: Layout, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the output folder for one build; ``say`` is told if another has to be waited for.

    The operating system drops the lock when its process ends, however it ends: none is ever stale.
    `filelock` would save five lines of these, and need a second file to say who holds the first.
    """
    with contextlib.ExitStack() as stack:
        while True:
            layout.output.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(layout.guard.open("a+", encoding="utf-8"))
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                stream.seek(0)
                owner = stream.read().strip() or "unknown"
                say(f"Another build (process {owner}) is using {layout.output}: waiting for it.")
                fcntl.flock(stream, fcntl.LOCK_EX)
            if os.fstat(stream.fileno()).st_nlink:
                break
            stream.close()  # `attsvm clean` removed this file while we waited for it
        stream.truncate(0)
        stream.write(f"{os.getpid()}\n")
        stream.flush()
        yield
