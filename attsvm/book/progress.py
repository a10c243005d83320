"""What a build says while it runs: bars in a terminal, plain lines everywhere else."""

from __future__ import annotations

import sys
from typing import TextIO

from tqdm import tqdm

__all__ = ["Progress"]


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

    def say(self, text: str) -> None:
        """Write one line above whatever bars there are."""
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
        bar = self._bars.get(name)
        if bar is not None:
            bar.total = total
            bar.n = done
            bar.refresh()

    def finish(self, name: str, text: str) -> None:
        """A chapter has ended; ``text`` says how."""
        bar = self._bars.pop(name, None)
        if bar is not None:
            bar.close()
        self.say(f"  {name}: {text}")

    def close(self) -> None:
        """Remove the bars that are left."""
        for bar in self._bars.values():
            bar.close()
        self._bars.clear()
