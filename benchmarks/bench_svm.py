"""How fast is `attsvm.svm`, beside the same programs in cvxpy, on one thread in one run?

    python benchmarks/bench_svm.py [--quick] [--json svm.json]

Opponents: *authors' way*, a constraint object for each token and cvxpy's default solver, and
*cvxpy, matrix*, one matrix constraint (Clarabel, at the tolerance stated).  Times are medians over
instances, ratios are medians of ratios taken instance by instance, processor time throughout.
Compilation by cvxpy is part of its time: it has to be done for every instance.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import _measure
from _measure import NORMS, Row, growth, in_turns, median_ratio, timed

# isort: split
# The line above limits everybody to one thread, which has to happen before numpy is imported.
import numpy as np
import svm_grid

from attsvm import formulations, svm

TIGHT = {"solver": "CLARABEL", "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
Size = tuple[int, int, int]


def plain(count: int, size: Size) -> list[tuple[Any, ...]]:
    """Tokens, queries and selected tokens of instances as in the paper's experiments."""
    generators = map(np.random.default_rng, range(count))
    return [tuple(svm_grid.plain(g, *size).values()) for g in generators]


def named(norm: str, size: Size) -> str:
    """Norm and size in words."""
    return "{}, n={} T={} d={}".format(NORMS[norm], *size)


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


def against_cvxpy(norm: str, size: Size, count: int, targets: dict[str, float]) -> list[Row]:
    """attsvm against both cvxpy programs."""
    ours = "attsvm, svm.solve"
    ways = {
        ours: lambda item: svm.solve(*item, norm=norm),
        "authors' way": _cvxpy("token", norm),
        "cvxpy, matrix": _cvxpy("matrix", norm, **TIGHT),
    }
    times, results = in_turns(ways, plain(count, size))
    solutions, rows = results[ours], []
    for who in ways:
        row = Row(named(norm, size), who, statistics.median(times[who]))
        if who == ours:
            row.accuracy = f"certified gap ≤ {max(s.gap for s in solutions):.0e}"
        else:
            excess = max(_off(W, s) for W, s in zip(results[who], solutions, strict=True))
            row.accuracy = f"largest excess over the bound {excess:.0e}"
            row = row.beside(median_ratio(times[who], times[ours]), targets.get(who))
        rows.append(row)
    return rows


def batch(norm: str, size: Size, count: int, limit: float | None) -> Row:
    """`svm.solve_many`, time for one instance."""
    stacked = [np.stack(part) for part in zip(*plain(count, size), strict=True)]
    svm.solve_many(*[part[:2] for part in stacked], norm=norm)
    runs = [timed(lambda: svm.solve_many(*stacked, norm=norm)) for _ in range(3)]
    seconds = statistics.median(t for t, _ in runs) / count
    return Row(
        named(norm, size).replace(",", f", {count} instances"),
        "attsvm, svm.solve_many",
        seconds,
        accuracy=f"certified gap ≤ {max(s.gap for s in runs[0][1]):.0e}",
        target="" if limit is None else f"≤ {1e3 * limit:g} ms each",
        reached=None if limit is None else seconds <= limit,
    )


def large(norm: str, size: Size, target: str, gap: float, limit: float) -> Row:
    """One large instance, with the peak memory of the process so far."""
    (item,) = plain(1, size)
    seconds, solution = timed(lambda: svm.solve(*item, norm=norm, on_infeasible="return"))
    peak = _measure.peak_memory() / 2**30
    return Row(
        f"{named(norm, size)} ({size[0] * (size[1] - 1)} constraints)",
        "attsvm, svm.solve",
        seconds,
        accuracy=f"{solution.status}, certified gap {solution.gap:.0e}, peak memory {peak:.2f} GB",
        target=target,
        reached=solution.solved and solution.gap <= gap and peak < 2 and seconds <= limit,
    )


def grows(norm: str, axis: str, sizes: list[Size], repeats: int) -> Row:
    """Exponent of the time in one of n, T, d."""
    place = "nTd".index(axis)
    seconds = []
    for size in sizes:
        way = {"": lambda item: svm.solve(*item, norm=norm, on_infeasible="return")}
        seconds.append(statistics.median(in_turns(way, plain(repeats, size))[0][""]))
    exponent = growth([size[place] for size in sizes], seconds)
    first, last = sizes[0], sizes[-1]
    fixed = " ".join(f"{k}={v}" for k, v in zip("nTd", first, strict=True) if k != axis)
    return Row(
        f"{NORMS[norm]}, growth in {axis} from {first[place]} to {last[place]} ({fixed})",
        "attsvm, svm.solve",
        seconds[-1],
        accuracy=f"time ∝ {axis}^{exponent:.1f}",
        more={"sizes": sizes, "seconds": seconds},
    )


def run(quick: bool) -> list[Row]:
    """All rows."""
    count, many = (5, 100) if quick else (15, 1000)
    frobenius = {"authors' way": 100.0, "cvxpy, matrix": 20.0}
    rows = [
        *against_cvxpy("fro", (6, 8, 10), count, frobenius),
        *against_cvxpy("fro", (15, 5, 20), count, frobenius),
        *against_cvxpy("nuc", (5, 5, 20), 3 if quick else 5, {"cvxpy, matrix": 25.0}),
        batch("fro", (6, 8, 10), many, None),
        batch("fro", (15, 5, 20), many, None),
        batch("nuc", (6, 8, 10), 100, 0.020),
        large("fro", (200, 20, 64), "gap ≤ 1e-8, < 2 GB, < 16 s", 1e-8, 16.0),
        large("nuc", (100, 10, 64), "certified", 1e-8, np.inf),
    ]
    for norm in () if quick else NORMS:
        rows.append(grows(norm, "n", [(n, 5, 32) for n in (4, 8, 16, 32, 64)], 5))
        rows.append(grows(norm, "T", [(8, T, 32) for T in (3, 6, 12, 24, 48)], 5))
        rows.append(grows(norm, "d", [(16, 8, d) for d in (12, 24, 48, 96)], 5))
    return rows


if __name__ == "__main__":
    _measure.main(__doc__, "svm", run)
