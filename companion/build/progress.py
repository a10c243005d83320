"""What a build says while it runs: bars in a terminal, plain lines everywhere else."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from tqdm import tqdm

__all__ = ["Progress"]

# Seconds between two signs of life where there are no bars, as in the log of a CI run.
SILENCE = 60.0


class Progress:
    """Progress of chapters that run side by side; tqdm draws the bars and finds each its line.

    Parameters
    ----------
    stream
        Where to write; standard error by default, as progress is no result.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self._bars: dict[str, tqdm] = {}
        self._live = self.stream.isatty()
        self._spoke = time.monotonic()

    def say(self, text: str) -> None:
        """Write one line above whatever bars there are."""
        self._spoke = time.monotonic()
        tqdm.write(text, file=self.stream)
        self.stream.flush()

    def start(self, name: str) -> None:
        """A chapter starts."""
        self._bars[name] = tqdm(
            desc=name, total=1, unit="cell", leave=False, file=self.stream, disable=not self._live
        )
        if not self._live:
            self.say(f"  {name}: running")

    def advance(self, name: str, done: int, total: int) -> None:
        """A chapter has finished ``done`` of ``total`` cells."""
        bar = self._bars[name]
        bar.total, bar.n = total, done
        bar.refresh()

    def tick(self) -> None:
        """Show that time passes; to be called about once a second."""
        for bar in self._bars.values():
            bar.refresh()
        if not self._live and self._bars and time.monotonic() - self._spoke > SILENCE:
            states = (f"{name}: {b.n} of {b.total} cells" for name, b in self._bars.items())
            self.say("  " + "; ".join(states))

    def finish(self, name: str, text: str) -> None:
        """A chapter has ended; ``text`` says how."""
        self._bars.pop(name).close()
        self.say(f"  {name}: {text}")

    def close(self) -> None:
        """Remove the bars that are left."""
        for bar in self._bars.values():
            bar.close()
        self._bars.clear()
