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
    """Progress of chapters that run side by side.

    Parameters
    ----------
    stream
        Where to write; standard error by default, as progress is no result.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self._bars: dict[str, tqdm] = {}
        self._cells: dict[str, str] = {}
        self._spoke = time.monotonic()

    def say(self, text: str) -> None:
        """Write one line above whatever bars there are."""
        self._spoke = time.monotonic()
        if self.live:
            tqdm.write(text, file=self.stream)
        else:
            print(text, file=self.stream, flush=True)

    def start(self, name: str) -> None:
        """A chapter starts."""
        if self.live:
            # The lowest free line, so that bars do not write over each other.
            taken = {bar.pos for bar in self._bars.values()}
            position = next(row for row in range(len(taken) + 1) if -row not in taken)
            self._bars[name] = tqdm(
                desc=name, total=1, unit="cell", leave=False, file=self.stream, position=position
            )
        else:
            self.say(f"  {name}: running")

    def advance(self, name: str, done: int, total: int) -> None:
        """A chapter has finished ``done`` of ``total`` cells."""
        self._cells[name] = f"{done} of {total} cells"
        bar = self._bars.get(name)
        if bar is not None:
            bar.total = total
            bar.n = done
            bar.refresh()

    def tick(self) -> None:
        """Show that time passes; to be called about once a second."""
        for bar in self._bars.values():
            bar.refresh()
        if not self.live and self._cells and time.monotonic() - self._spoke > SILENCE:
            self.say("  " + "; ".join(f"{name}: {text}" for name, text in self._cells.items()))

    def finish(self, name: str, text: str) -> None:
        """A chapter has ended; ``text`` says how."""
        self._cells.pop(name, None)
        bar = self._bars.pop(name, None)
        if bar is not None:
            bar.close()
        self.say(f"  {name}: {text}")

    def close(self) -> None:
        """Remove the bars that are left."""
        for bar in self._bars.values():
            bar.close()
        self._bars.clear()
