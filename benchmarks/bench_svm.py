"""How fast is `attsvm.svm`, beside the same programs in cvxpy, on one thread in one run?

    python benchmarks/bench_svm.py [--quick] [--json svm.json]

Opponents: *authors' way*, a constraint object for each token and cvxpy's default solver, and
*cvxpy, matrix*, one matrix constraint (Clarabel, at the tolerance stated).  Times are medians over
instances, ratios are medians of ratios taken instance by instance, processor time throughout.
Compilation by cvxpy is part of its time: it has to be done for every instance.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import warnings
from collections.abc import Callable
from typing import Any

from _measure import Row, growth, in_turns, median_ratio, table, timed, write

# isort: split
# The line above limits everybody to one thread, which has to happen before numpy is imported.
import numpy as np

from attsvm import formulations, svm

TIGHT = {"solver": "CLARABEL", "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}


def instance(seed: int, n: int, T: int, d: int) -> tuple[Any, Any, Any]:
    """Unit tokens and queries as in the paper's experiments, random selected tokens."""
    g = np.random.default_rng(seed)
    X, Z = g.normal(size=(n, T, d)), g.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    Z /= np.linalg.norm(Z, axis=-1, keepdims=True)
    return X, Z, g.integers(0, T, n)


def _cvxpy(form: str, norm: str, **options: Any) -> Callable[[Any], Any]:
    return lambda item: formulations.value_of(
        formulations.att_svm(*item, norm=norm, form=form), **options
    )


def _off(W: Any, solution: svm.Solution) -> float:
    """Relative excess of a feasible multiple of W over the certified lower bound."""
    D = solution.X[np.arange(len(solution.selected)), solution.selected][:, None] - solution.X
    margins = np.einsum("ntd,de,ne->nt", D, W, solution.Z)
    margins[np.arange(len(solution.selected)), solution.selected] = np.inf
    size = np.linalg.norm(W, solution.norm) / margins.min()
    return float(size / solution.bound - 1)


def against_cvxpy(
    norm: str, size: tuple[int, int, int], count: int, targets: dict[str, float]
) -> list[Row]:
    """attsvm against both cvxpy programs."""
    items = [instance(seed, *size) for seed in range(count)]
    ways = {
        "attsvm, svm.solve": lambda item: svm.solve(*item, norm=norm),
        "authors' way": _cvxpy("token", norm),
        "cvxpy, matrix": _cvxpy("matrix", norm, **TIGHT),
    }
    times, results = in_turns(ways, items)
    ours = next(iter(ways))
    solutions = results[ours]
    name = {"fro": "Frobenius", "nuc": "nuclear"}[norm]
    work = f"{name}, n={size[0]} T={size[1]} d={size[2]}"
    rows = [
        Row(
            work,
            ours,
            statistics.median(times[ours]),
            accuracy=f"certified gap ≤ {max(s.gap for s in solutions):.0e}",
        )
    ]
    for who in list(ways)[1:]:
        ratio = median_ratio(times[who], times[ours])
        excess = max(_off(W, s) for W, s in zip(results[who], solutions, strict=True))
        goal = targets.get(who)
        rows.append(
            Row(
                work,
                who,
                statistics.median(times[who]),
                ratio,
                f"largest excess over the bound {excess:.0e}",
                "" if goal is None else f"≥ {goal:g} ×",
                None if goal is None else ratio >= goal,
            )
        )
    return rows


def batch(norm: str, size: tuple[int, int, int], count: int, limit: float | None) -> Row:
    """`svm.solve_many`, time for one instance."""
    items = [instance(seed, *size) for seed in range(count)]
    stacked = [np.stack(part) for part in zip(*items, strict=True)]
    svm.solve_many(*[part[:2] for part in stacked], norm=norm)
    runs = [timed(lambda: svm.solve_many(*stacked, norm=norm)) for _ in range(3)]
    seconds = statistics.median(t for t, _ in runs) / count
    name = {"fro": "Frobenius", "nuc": "nuclear"}[norm]
    return Row(
        f"{name}, {count} instances n={size[0]} T={size[1]} d={size[2]}",
        "attsvm, svm.solve_many",
        seconds,
        accuracy=f"certified gap ≤ {max(s.gap for s in runs[0][1]):.0e}",
        target="" if limit is None else f"≤ {1e3 * limit:g} ms each",
        reached=None if limit is None else seconds <= limit,
    )


def large(norm: str, size: tuple[int, int, int], target: str, gap: float, limit: float) -> Row:
    """One large instance, with the peak memory of the process so far."""
    item = instance(0, *size)
    seconds, solution = timed(lambda: svm.solve(*item, norm=norm, on_infeasible="return"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    name = {"fro": "Frobenius", "nuc": "nuclear"}[norm]
    n, T, d = size
    return Row(
        f"{name}, n={n} T={T} d={d} ({n * (T - 1)} constraints)",
        "attsvm, svm.solve",
        seconds,
        accuracy=f"{solution.status}, certified gap {solution.gap:.0e}, peak memory {peak:.2f} GB",
        target=target,
        reached=solution.status is svm.Status.SOLVED
        and solution.gap <= gap
        and peak < 2
        and seconds <= limit,
    )


def grows(norm: str, axis: str, sizes: list[tuple[int, int, int]], repeats: int) -> Row:
    """Exponent of the time in one of n, T, d."""
    place = "nTd".index(axis)
    seconds = []
    for size in sizes:
        items = [instance(seed, *size) for seed in range(repeats)]
        times, _ = in_turns(
            {"": lambda item: svm.solve(*item, norm=norm, on_infeasible="return")}, items
        )
        seconds.append(statistics.median(times[""]))
    exponent = growth([size[place] for size in sizes], seconds)
    name = {"fro": "Frobenius", "nuc": "nuclear"}[norm]
    first, last = sizes[0], sizes[-1]
    fixed = " ".join(f"{k}={v}" for k, v in zip("nTd", first, strict=True) if k != axis)
    return Row(
        f"{name}, growth in {axis} from {first[place]} to {last[place]} ({fixed})",
        "attsvm, svm.solve",
        seconds[-1],
        accuracy=f"time ∝ {axis}^{exponent:.1f}",
        more={"sizes": sizes, "seconds": seconds},
    )


def run(quick: bool) -> list[Row]:
    count = 5 if quick else 15
    frobenius = {"authors' way": 100.0, "cvxpy, matrix": 20.0}
    rows = against_cvxpy("fro", (6, 8, 10), count, frobenius)
    rows += against_cvxpy("fro", (15, 5, 20), count, frobenius)
    rows += against_cvxpy("nuc", (5, 5, 20), 3 if quick else 5, {"cvxpy, matrix": 25.0})
    many = 100 if quick else 1000
    rows.append(batch("fro", (6, 8, 10), many, None))
    rows.append(batch("fro", (15, 5, 20), many, None))
    rows.append(batch("nuc", (6, 8, 10), 100, 0.020))
    rows.append(large("fro", (200, 20, 64), "gap ≤ 1e-8, < 2 GB, < 16 s", 1e-8, 16.0))
    rows.append(large("nuc", (100, 10, 64), "certified", 1e-8, np.inf))
    if not quick:
        for norm in ("fro", "nuc"):
            rows.append(grows(norm, "n", [(n, 5, 32) for n in (4, 8, 16, 32, 64)], 5))
            rows.append(grows(norm, "T", [(8, T, 32) for T in (3, 6, 12, 24, 48)], 5))
            rows.append(grows(norm, "d", [(16, 8, d) for d in (12, 24, 48, 96)], 5))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer instances, no growth rows")
    parser.add_argument("--json", help="also write the rows to this file")
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        # cvxpy warns of its own inaccurate solutions; the table states the excess instead.
        warnings.simplefilter("ignore")
        rows = run(arguments.quick)
    print(table(rows))
    if arguments.json:
        write(arguments.json, "svm", rows)


if __name__ == "__main__":
    main()
