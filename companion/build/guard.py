"""Keep two builds in one output folder apart: the second waits until the first has ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from companion.build.layout import Layout

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
    with contextlib.ExitStack() as stack:
        while True:
            layout.output.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(layout.guard.open("a+", encoding="utf-8"))
            _lock(stream, layout, say)
            if _is_at(stream, layout.guard):
                break
            stream.close()  # `attsvm clean` removed this file while we waited for it
        stream.seek(0)
        stream.truncate()
        stream.write(f"{os.getpid()}\n")
        stream.flush()
        yield


def _lock(stream: IO[str], layout: Layout, say: Callable[[str], None]) -> None:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.seek(0)
        owner = stream.read().strip() or "unknown"
        say(f"Another build (process {owner}) is using {layout.output}: waiting for it.")
        fcntl.flock(stream, fcntl.LOCK_EX)


def _is_at(stream: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False
