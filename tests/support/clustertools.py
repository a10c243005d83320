"""A real Dask cluster for tests: a scheduler and workers, each a process that can be killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

WAIT = 120.0
"""Seconds within which a process has to come up; a limit, not a measurement."""


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Return once a condition holds; a `TimeoutError` says what did not happen."""
    limit = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError(what)
        time.sleep(0.02)


class Cluster:
    """A scheduler and some workers of one thread each, on this machine.

    Parameters
    ----------
    folder
        For logs and the workers' scratch space.
    workers
        How many to start with.
    settings
        Environment variables of the workers, beside this process's own.
    """

    def __init__(self, folder: Path, workers: int, **settings: str) -> None:
        self._folder = folder
        self._settings = settings
        self._processes: list[subprocess.Popen[bytes]] = []
        self._logs: list[IO[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.address = ""
        self._wanted = workers

    def __enter__(self) -> Cluster:
        log = self._folder / "scheduler.log"
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = self._start("scheduler", log, *options)
        pattern = re.compile(r"Scheduler at:\s+(tcp://\S+)")
        wait_for(lambda: bool(pattern.search(log.read_text())), f"no scheduler: {log.read_text()}")
        found = pattern.search(log.read_text())
        self.address = found[1] if found else ""
        for _ in range(self._wanted):
            self.add_worker()
        return self

    def _start(self, role: str, log: Path, *options: str) -> subprocess.Popen[bytes]:
        stream = log.open("wb")
        self._logs.append(stream)
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", role, *options],
            stdout=stream,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self._folder,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | self._settings,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start one more worker, without the nanny that would replace it if it died."""
        number = len(self.workers)
        log = self._folder / f"worker-{number}.log"
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
        options += ["--name", f"worker-{number}", "--local-directory", str(self._folder)]
        process = self._start("worker", log, self.address, *options)
        self.workers.append(process)
        wait_for(lambda: "Registered to" in log.read_text(), f"no worker: {log.read_text()}")
        return process

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        for stream in self._logs:
            stream.close()
