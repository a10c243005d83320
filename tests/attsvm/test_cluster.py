"""Experiments on a real Dask cluster: the same bytes, and nothing lost when processes die.

The client is a process of its own too, because what it defines in its main program is what a
notebook's cells define: workers get it by value.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import joblib
import pytest
from clustertools import WAIT, Cluster, wait_for

import attsvm
from attsvm import experiments

CLIENT = '''
"""python client.py EXPERIMENT WAY FOLDER ADDRESS: run it, leave table.csv in the folder."""
import os, pathlib, signal, sys, time
import joblib
import numpy as np
from attsvm import errors, experiments

kind, way, folder, address = sys.argv[1:]


def mark(seeds, folder=folder):
    path = pathlib.Path(folder, "marks", f"{seeds[0]}-{time.time_ns()}")
    path.write_text(str(os.getpid()))


def attention(seeds):
    from attsvm import datasets, descent, selection, svm

    mark(seeds)
    problems = datasets.random_problems(seeds, n=4, T=5, d=6)
    run = descent.train(problems, "KQ", iterations=100, seeds=seeds)
    chosen = selection.selected_tokens(run.attention[-1])
    solutions = svm.solve_many(problems.tokens, problems.queries, chosen, norm="nuc")
    norms = np.linalg.norm(run.W[-1], axis=(-2, -1))
    return experiments.tabulate(
        seeds, norm=norms, objective=[s.objective for s in solutions], first=run.W[-1][:, 0, 0]
    )


def light(seeds):
    mark(seeds)
    time.sleep(0.1)
    values = [np.random.default_rng(seed).normal() for seed in seeds]
    return experiments.tabulate(seeds, value=values)


def deadly(seeds):
    mark(seeds)
    if 5 in seeds:
        os.kill(os.getpid(), signal.SIGKILL)
    return experiments.tabulate(seeds, value=1.0)


def go(**more):
    cache = os.path.join(folder, "cache")
    function, size, count = {"attention": (attention, 3, 18), "light": (light, 2, 60),
                             "deadly": (deadly, 1, 8)}[kind]
    found = experiments.run(
        function, range(count), chunk=size, cache=cache, progress=False, **more
    )
    found.table.to_csv(os.path.join(folder, "table.csv"), index=False)


try:
    if way == "config":
        from distributed import Client

        with Client(address), joblib.parallel_config("dask"):
            go()
    else:
        go(**({"jobs": 1} if way == "jobs" else {}))
except errors.AttsvmError as error:
    print(error)
    sys.exit(3)
'''


class Work:
    """One client and its folder: table, cache, and a mark for each chunk that was begun."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "marks").mkdir(parents=True)
        (folder / "client.py").write_text(CLIENT)

    def start(self, kind: str, way: str = "environment", address: str = "") -> None:
        """Begin to run an experiment; an address goes into ATTSVM_DASK unless the way says else."""
        environment = {k: v for k, v in os.environ.items() if k != "ATTSVM_CACHE"}
        environment["OMP_NUM_THREADS"] = "1"
        environment["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = "3s"
        if address and way != "config":
            environment["ATTSVM_DASK"] = address
        self.process = subprocess.Popen(
            [sys.executable, "client.py", kind, way, str(self.folder), address],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, code: int = 0) -> str:
        """Wait for the client, insist on its exit code, and answer what it printed."""
        try:
            said, complained = self.process.communicate(timeout=2 * WAIT)
        finally:
            self.process.kill()
        assert self.process.returncode == code, said + complained
        return said

    def run(self, kind: str, way: str = "environment", address: str = "", code: int = 0) -> str:
        """Run an experiment to its end."""
        self.start(kind, way, address)
        return self.end(code)

    @property
    def table(self) -> bytes:
        """The outcome; equal bytes mean equal bits, since every digit is written."""
        return (self.folder / "table.csv").read_bytes()

    @property
    def marks(self) -> list[int]:
        """The process that ran each chunk, in the order of the chunks' seeds and of time."""
        paths = (self.folder / "marks").iterdir()
        order = sorted(paths, key=lambda path: tuple(map(int, path.name.split("-"))))
        # A worker may die between making the file and filling it.
        return [int(path.read_text() or 0) for path in order]

    @property
    def chunks(self) -> int:
        """How many finished chunks the cache holds."""
        return len(list((self.folder / "cache").rglob("*.chunk")))


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "work")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the experiments give on this machine alone."""
    tables = {}
    for kind in ("attention", "light"):
        work = Work(tmp_path_factory.mktemp(kind))
        work.run(kind)
        assert set(work.marks) == {work.process.pid}
        tables[kind] = work.table
    return tables


@pytest.mark.parametrize("way", ["config", "environment"])
def test_workers_give_the_same_bytes(
    cluster: Cluster, expected: dict[str, bytes], work: Work, way: str
) -> None:
    work.run("attention", way, cluster.address)
    assert work.table == expected["attention"]
    assert set(work.marks) == {process.pid for process in cluster.workers[:2]}


def test_jobs_asked_for_by_number_stay_here(
    cluster: Cluster, expected: dict[str, bytes], work: Work
) -> None:
    work.run("light", "jobs", cluster.address)
    assert work.table == expected["light"]
    assert set(work.marks) == {work.process.pid}


@pytest.mark.parametrize("begun", [3, 11, 23])
def test_worker_killed_on_the_way_loses_nothing(
    tmp_path: Path, work: Work, expected: dict[str, bytes], begun: int
) -> None:
    with Cluster(tmp_path, workers=2) as cluster:
        work.start("light", address=cluster.address)
        victim = cluster.workers[0]
        wait_for(
            lambda: victim.pid in work.marks and len(work.marks) >= begun, "no chunk begins there"
        )
        victim.kill()
        work.end()
    assert work.table == expected["light"]
    assert work.chunks == 30
    assert set(work.marks) - {0} == {process.pid for process in cluster.workers}


def test_single_worker_works_and_a_later_one_helps(
    tmp_path: Path, work: Work, expected: dict[str, bytes]
) -> None:
    with Cluster(tmp_path, workers=1) as cluster:
        work.start("light", address=cluster.address)
        wait_for(lambda: work.chunks >= 1, "no chunk ends")
        # As a batch system would: one more as soon as it is free, the first one gone.
        cluster.add_worker()
        cluster.workers[0].kill()
        work.end()
    assert work.table == expected["light"]
    assert set(work.marks) - {0} == {process.pid for process in cluster.workers}


def test_lost_scheduler_is_told_and_the_next_run_goes_on(
    tmp_path: Path, work: Work, expected: dict[str, bytes]
) -> None:
    with Cluster(tmp_path, workers=2) as cluster:
        work.start("light", address=cluster.address)
        wait_for(lambda: work.chunks >= 4, "no chunk ends")
        cluster.scheduler.kill()
        said = work.end(code=3)
    assert said == (
        f"the Dask scheduler at {cluster.address} is gone; chunks that were finished are in the "
        "cache, if one is set: run it again to go on\n"
    )
    kept = work.chunks
    assert 4 <= kept < 30
    shutil.rmtree(work.folder / "marks")
    (work.folder / "marks").mkdir()
    work.run("light")
    assert len(work.marks) == 30 - kept
    assert work.table == expected["light"]


def test_chunk_that_brings_its_worker_down_is_named(tmp_path: Path, work: Work) -> None:
    settings = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with Cluster(tmp_path, workers=2, **settings) as cluster:
        said = work.run("deadly", address=cluster.address, code=3)
    assert said.startswith("a chunk brought down 1 worker (out of memory?); smaller chunks")
    assert not (work.folder / "table.csv").exists()


def test_worker_with_another_source_is_refused(tmp_path: Path, work: Work) -> None:
    other = tmp_path / "other"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(attsvm.__file__).parent, other / "attsvm", ignore=ignored)
    with (other / "attsvm" / "simplex.py").open("a") as stream:
        stream.write("EDITED = True\n")
    with Cluster(tmp_path, workers=1, PYTHONPATH=str(other)) as cluster:
        said = work.run("light", address=cluster.address, code=3)
    assert said.startswith("the worker on ")
    assert "has source " in said
    assert said.endswith("; install the same\n")
    assert work.marks == []


def test_scheduler_that_does_not_answer_is_told(work: Work) -> None:
    said = work.run("light", address="tcp://127.0.0.1:9", code=3)
    assert said.startswith("no Dask scheduler answers at 'tcp://127.0.0.1:9' (ATTSVM_DASK): ")
    assert said.count("\n") == 1
    assert work.marks == []


def test_backend_that_gives_results_all_at_once_will_do(tmp_path: Path) -> None:
    """As Ray's does: it cannot say when a chunk ends."""
    made = {"calls": 0}

    class AllAtOnce(joblib.parallel.BACKENDS["threading"]):  # type: ignore[misc, name-defined]
        supports_return_generator = False

        def start_call(self) -> None:
            made["calls"] += 1
            super().start_call()

    def doubled(seeds: list[int]) -> object:
        return experiments.tabulate(seeds, value=[2 * seed for seed in seeds])

    joblib.parallel.register_parallel_backend("all-at-once", AllAtOnce)
    with joblib.parallel_config("all-at-once", n_jobs=2):
        found = experiments.run(doubled, range(7), chunk=2, progress=False, cache=tmp_path)
    assert made["calls"] == 1
    assert found.table["value"].tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert len(list(tmp_path.rglob("*.chunk"))) == 4
