"""Ten thousand random instances: is every answer of `attsvm.svm` certified, and does cvxpy agree?

    python benchmarks/svm_grid.py [--instances 10000] [--norm fro nuc] [--json grid.json]

The grid crosses sizes (n, T, d) with kinds of data (`KINDS`): plain, self-attention, scaled, near
and beyond the feasibility threshold, degenerate.  An answer counts as *uncertified* if its status
is "inaccurate".  A random tenth is also put to cvxpy (Clarabel, one matrix constraint); a
*disagreement* is a different verdict on feasibility, or an objective that differs by more than 1e-5
relative.  cvxpy works on the same rows scaled to length one, or it could not read the scaled
instances at all.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _measure  # noqa: F401 (one thread, hence before numpy)

# isort: split
import numpy as np

from attsvm import svm

SIZES = [
    (1, 2, 1), (1, 2, 3), (1, 8, 4), (2, 1, 3), (2, 3, 2), (3, 3, 1), (3, 4, 4), (4, 4, 3), (5, 5,
    2), (5, 5, 3), (5, 5, 5), (5, 5, 20), (5, 10, 5), (5, 15, 4), (5, 15, 10), (6, 8, 10), (10, 5,
    4), (10, 5, 10), (15, 5, 4), (15, 5, 5), (15, 5, 20), (8, 4, 12),
]  # fmt: skip
KINDS = [
    "plain", "self-attention", "planted", "single precision", "scaled tokens", "uneven queries",
    "uneven sequences", "duplicates", "redundant", "collinear queries", "zero query", "lattice",
    "one-hot", "masked",
]  # fmt: skip


def plain(g: np.random.Generator, n: int, T: int, d: int) -> dict[str, Any]:
    """Unit tokens and queries as in the paper's experiments, random selected tokens."""
    X, Z = g.normal(size=(n, T, d)), g.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    Z /= np.linalg.norm(Z, axis=-1, keepdims=True)
    return {"X": X, "Z": Z, "selected": g.integers(0, T, n)}


def of_kind(kind: str, g: np.random.Generator, n: int, T: int, d: int) -> dict[str, Any]:
    """An instance of one of `KINDS`: a plain one, changed, or one of small integers."""
    if kind == "lattice":  # ties, dependent rows, solutions that are not unique
        X, Z = g.integers(-1, 2, (n, T, d)).astype(float), g.integers(-1, 2, (n, d)).astype(float)
        return {"X": X, "Z": Z, "selected": g.integers(0, T, n)}
    if kind == "one-hot":  # a vocabulary of unit vectors, as in next-token prediction
        X, Z = np.eye(d)[g.integers(0, d, (n, T))], np.eye(d)[g.integers(0, d, n)]
        return {"X": X, "Z": Z, "selected": g.integers(0, T, n)}
    made = plain(g, n, T, d)
    X, Z, selected = made.values()
    match kind:
        case "self-attention":
            made["Z"] = X[:, 0].copy()
        case "planted":  # selected is what a random W prefers: feasible, whatever the size
            W = g.normal(size=(d, d))
            made["selected"] = np.einsum("ntd,de,ne->nt", X, W, Z).argmax(1)
        case "single precision":
            made |= {name: made[name].astype(np.float32).astype(float) for name in "XZ"}
        case "scaled tokens":
            made["X"] = X * 10.0 ** g.choice([-6, 6])
        case "uneven queries":
            made["Z"] = Z * 10.0 ** g.uniform(-3, 3, (n, 1))
        case "uneven sequences":
            made["X"] = X * 10.0 ** g.uniform(-2, 2, (n, 1, 1))
        case "duplicates" if T > 1:  # another token is a copy of a selected one: infeasible
            i = int(g.integers(n))
            X[i, (selected[i] + 1) % T] = X[i, selected[i]]
        case "redundant" if T > 2:  # tokens that are not selected repeat, so constraints do
            for i in range(n):
                others = np.flatnonzero(np.arange(T) != selected[i])
                X[i, others[-1]] = X[i, others[0]]
        case "collinear queries":
            made["Z"] = Z[:1] * g.choice([-2.0, 0.5, 1.0], (n, 1))
        case "zero query":
            Z[int(g.integers(n))] = 0.0
        case "masked":
            made["mask"] = g.random((n, T)) < 0.7
            made["mask"][np.arange(n), selected] = True
    return made


def instances(
    count: int, seed: int = 0
) -> Iterator[tuple[str, tuple[int, int, int], dict[str, Any]]]:
    """`count` instances, kinds and sizes in turn; a shorter run is a prefix of a longer one."""
    for index in range(count):
        kind = KINDS[index % len(KINDS)]
        size = SIZES[(index // len(KINDS)) % len(SIZES)]
        yield kind, size, of_kind(kind, np.random.default_rng([seed, index]), *size)


def oracle(instance: dict[str, Any], norm: str) -> tuple[str, float]:
    """Status and objective by cvxpy with Clarabel, in rows of length one."""
    import cvxpy as cp

    X, Z, tokens = instance["X"], instance["Z"], instance["selected"]
    n, T, d = X.shape
    mask = instance.get("mask", np.ones((n, T), dtype=bool)).copy()
    mask[np.arange(n), tokens] = False
    sequence, token = np.nonzero(mask)
    D = X[sequence, tokens[sequence]] - X[sequence, token]
    dn, zn = np.linalg.norm(D, axis=1), np.linalg.norm(Z, axis=1)[sequence]
    if (dn * zn == 0).any():
        return "infeasible", float("inf")
    if len(D) == 0:
        return "optimal", 0.0
    b = 1 / (dn * zn)
    W = cp.Variable((d, d))
    rows = cp.sum(cp.multiply((D / dn[:, None]) @ W, Z[sequence] / zn[:, None]), axis=1)
    size = cp.norm(W, "fro") if norm == "fro" else cp.normNuc(W)
    problem = cp.Problem(cp.Minimize(size), [rows >= b / b.max()])
    options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver="CLARABEL", max_iter=300, **options)
        except cp.SolverError:
            return "failed", float("nan")
    value = problem.value if problem.value is not None else float("nan")
    return str(problem.status), float(value) * b.max()


def disagreement(solution: svm.Solution, status: str, value: float) -> str | None:
    """What cvxpy says otherwise, or None; its own failures are no disagreement."""
    if status in ("failed", "optimal_inaccurate", "infeasible_inaccurate", "user_limit"):
        return None
    if (status == "infeasible") != (solution.status is svm.Status.INFEASIBLE):
        return f"cvxpy: {status}, here: {solution.status}"
    if status == "optimal" and abs(value - solution.objective) > 1e-5 * max(value, 1e-300):
        return f"objective {value!r}, here {solution.objective!r}"
    return None


def run(count: int, norm: str, seed: int = 0, tenth: int = 10) -> dict[str, Any]:
    """Solve `count` instances and compare every `tenth`-th (in random order) with cvxpy."""
    by_kind: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    gaps, residuals, uncertified, disagreements = [], [], [], []
    unable, spent = 0, 0.0
    chosen = np.random.default_rng([seed, 1]).permutation(count)[: count // tenth]
    asked = set(chosen.tolist())
    for index, (kind, size, instance) in enumerate(instances(count, seed)):
        start = time.perf_counter()
        solution = svm.solve(**instance, norm=norm, on_infeasible="return")
        spent += time.perf_counter() - start
        by_kind[kind][str(solution.status)] += 1
        where = {"index": index, "kind": kind, "size": size}
        if solution.status is svm.Status.SOLVED:
            gaps.append(solution.gap)
        elif solution.status is svm.Status.INFEASIBLE:
            residuals.append(solution.farkas_residual())
        else:
            uncertified.append(where | {"gap": solution.gap, "margin": solution.min_margin})
        if index in asked:
            status, value = oracle(instance, norm)
            unable += status not in ("optimal", "infeasible")
            if other := disagreement(solution, status, value):
                disagreements.append(where | {"what": other})
    return {
        "norm": norm,
        "instances": count,
        "seed": seed,
        "fates": dict(sum(by_kind.values(), Counter())),
        "by kind": {kind: dict(counts) for kind, counts in by_kind.items()},
        "largest gap": max(gaps, default=0.0),
        "share of gaps above 1e-12": float(np.mean(np.array(gaps) > 1e-12)) if gaps else 0.0,
        "largest Farkas residual": max(residuals, default=0.0),
        "uncertified": uncertified,
        "compared with cvxpy": len(asked),
        "cvxpy gave no clear answer": unable,
        "disagreements": disagreements,
        "seconds in attsvm": spent,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=10_000, help="for each norm")
    parser.add_argument("--norm", nargs="+", choices=["fro", "nuc"], default=["fro", "nuc"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write the reports to this file")
    options = parser.parse_args()
    reports = [run(options.instances, norm, options.seed) for norm in options.norm]
    text = json.dumps(reports, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text, encoding="utf-8")
    return int(any(report["uncertified"] or report["disagreements"] for report in reports))


if __name__ == "__main__":
    sys.exit(main())
