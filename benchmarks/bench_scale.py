"""What does an instance cost, in time and memory, and what does a cluster add?

    python benchmarks/bench_scale.py [--json scale.json]

The work is that of the chapter on local convergence: draw instances, train W and (K, Q) for 2000
iterations, solve both SVMs of the selected tokens.  Each size runs in a process of its own, one
thread, on one chunk; seconds are processor time, memory is the most that the process held, less
what it held before the chunk.  Descent costs the same in every iteration, so it is measured over
few and scaled up.

The cluster is Dask's scheduler with one and two worker processes on this machine.  Its chunks wait
rather than compute: what is measured is the handing out of work, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import _measure

ITERATIONS = 2000
MEASURED = 100
SIZES = [(3, 4, 5), (6, 8, 10), (10, 10, 20), (20, 10, 32), (40, 20, 64)]
CHUNK = {(3, 4, 5): 100, (6, 8, 10): 100, (10, 10, 20): 50, (20, 10, 32): 20, (40, 20, 64): 4}


def cost(n: int, T: int, d: int) -> dict[str, Any]:
    """Seconds and bytes for a chunk of instances of one size, in this process."""
    from attsvm import datasets, descent, selection, svm

    def work(seeds: range, iterations: int) -> tuple[float, float]:
        started = time.process_time()
        problems = datasets.random_problems(seeds, n=n, T=T, d=d)
        runs = [
            descent.train(problems, weights, iterations=iterations, seeds=seeds)
            for weights in ("W", "KQ")
        ]
        trained = time.process_time()
        for run in runs:
            chosen = selection.selected_tokens(run.attention[-1])
            for norm in ("fro", "nuc"):
                svm.solve_many(problems.tokens, problems.queries, chosen, norm=norm)
        return trained - started, time.process_time() - trained

    instances = CHUNK[n, T, d]
    work(range(2), 10)  # imports and first calls are paid once
    before = _measure.peak_memory()
    descents, solvers = work(range(instances), MEASURED)
    return {
        "n": n,
        "T": T,
        "d": d,
        "instances": instances,
        "descent": descents / instances * ITERATIONS / MEASURED,
        "solvers": solvers / instances,
        "base": before,
        "memory": _measure.peak_memory() - before,
    }


def waiting(seeds: list[int], seconds: float) -> Any:
    """A chunk that takes a known time and no processor."""
    from attsvm import experiments

    time.sleep(seconds)
    return experiments.tabulate(seeds, value=1.0)


def cluster() -> dict[str, Any]:
    """How two workers compare with one, and what a chunk costs beside its own time."""
    import functools

    import joblib
    from distributed import Client, LocalCluster

    from attsvm import experiments

    def seconds(chunks: int, each: float) -> float:
        function = functools.partial(waiting, seconds=each)
        started = time.perf_counter()
        experiments.run(function, range(chunks), chunk=1, progress=False, label="wait")
        return time.perf_counter() - started

    one, two, overhead = [], [], []
    with tempfile.TemporaryDirectory() as scratch:
        for workers in (1, 2, 1, 2, 1, 2):
            with (
                LocalCluster(
                    workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                    local_directory=scratch,
                ) as running,
                Client(running),
                joblib.parallel_config("dask"),
            ):
                seconds(2 * workers, 0.0)
                (one if workers == 1 else two).append(seconds(20, 0.5))
                if workers == 2:
                    overhead.append(seconds(300, 0.0) / 300)
    return {
        "chunks": 20,
        "seconds of a chunk": 0.5,
        "one worker": statistics.median(one),
        "two workers": statistics.median(two),
        "ratio": _measure.median_ratio(one, two),
        "overhead": statistics.median(overhead),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--size", type=int, nargs=3, metavar=("n", "T", "d"), help="only this one")
    options = parser.parse_args()
    if options.size:
        print(json.dumps(cost(*options.size)))
        return
    sizes = [_measure.in_its_own_process(__file__, "--size", *size) for size in SIZES]
    found = {"iterations": ITERATIONS, "sizes": sizes, "cluster": cluster()}
    print(json.dumps(found, indent=1, ensure_ascii=False))
    if options.json:
        _measure.write(options.json, "scale", **found)


if __name__ == "__main__":
    main()
