"""Experiments that are killed outright, at random moments, and go on: nothing done is lost."""

from __future__ import annotations

import collections
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from attsvm import chunks

# Each chunk leaves a line when it starts, from whichever process it runs in.
SCRIPT = """\
import sys

from attsvm import experiments


def experiment(seeds):
    import os, time
    import numpy as np
    with open(os.environ["JOURNAL"], "a") as stream:
        stream.write(f"{seeds[0]}\\n")
    time.sleep(0.06)
    x = [np.random.default_rng(seed).standard_normal(400).sum() for seed in seeds]
    return experiments.tabulate(seeds, x=x, word=[f"w{seed}" for seed in seeds])


found = experiments.run(
    experiment, range(96), chunk=2, jobs=int(sys.argv[1]), cache=sys.argv[2], progress=False
)
sys.stdout.write(found.table.to_csv(index=False))
"""
CHUNKS = 48


@dataclass
class Place:
    """A folder with the experiment, its cache and its journal."""

    root: Path

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def started(self) -> list[str]:
        """The first seed of each chunk that was started, in order."""
        journal = self.root / "journal"
        return journal.read_text().split() if journal.exists() else []

    def start(self, jobs: int) -> subprocess.Popen[str]:
        (self.root / "script.py").write_text(SCRIPT)
        return subprocess.Popen(
            [sys.executable, "-W", "error::UserWarning", "script.py", str(jobs), str(self.cache)],
            cwd=self.root,
            env=dict(os.environ) | {"JOURNAL": str(self.root / "journal")},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, process: subprocess.Popen[str], count: int) -> None:
        """Until so many chunks were started."""
        deadline = time.monotonic() + 120
        while len(self.started) < count:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.002)

    def end(self, process: subprocess.Popen[str]) -> tuple[str, dict[str, bytes]]:
        """What a run says that comes to its end, and its entries."""
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        return said, self.entries()

    def entries(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.cache.rglob("*.chunk")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    """Output and entries of a run that nobody kills."""
    place = Place(tmp_path_factory.mktemp("undisturbed"))
    found = place.end(place.start(1))
    assert len(place.started) == len(place.entries()) == CHUNKS
    return found


# 24 kills: twice six of one process, twice six of a process with two workers.
@pytest.mark.parametrize(("jobs", "seed"), [(1, 0), (1, 1), (2, 2), (2, 3)])
def test_killed_at_random_moments_and_resumed(
    tmp_path: Path, undisturbed: tuple[str, dict[str, bytes]], jobs: int, seed: int
) -> None:
    place = Place(tmp_path)
    generator, kills = random.Random(seed), 6
    for _ in range(kills):
        before = len(place.started)
        process = place.start(jobs)
        place.wait_for(process, before + 1)
        # Within a chunk, at its end, or some chunks later.
        time.sleep(generator.uniform(0.0, 0.3))
        # All its processes at once, as when a machine is taken away.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        # Whatever is there under an entry's name is whole.
        sound = [entry for entry in chunks.entries(place.cache) if not entry.problem]
        assert {entry.path.name for entry in sound} == set(place.entries())
    assert place.end(place.start(jobs)) == undisturbed
    # Each kill loses the chunk that a worker was at, and no other.
    starts = collections.Counter(place.started)
    assert len(starts) == CHUNKS
    assert starts.total() - CHUNKS <= kills * jobs


def test_terminated_politely_it_goes_on_too(
    tmp_path: Path, undisturbed: tuple[str, dict[str, bytes]]
) -> None:
    """Ctrl-C with two workers: what the exception says is what the next run finds."""
    place = Place(tmp_path)
    process = place.start(2)
    place.wait_for(process, 6)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert len(place.entries()) >= 1
    assert place.end(place.start(1)) == undisturbed
