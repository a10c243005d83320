"""Instances and independent checks for the tests of attsvm.svm."""

from __future__ import annotations

import numpy as np
import pytest

from attsvm import svm

NORMS = pytest.mark.parametrize("norm", ["fro", "nuc"])
TIGHT = {"solver": "CLARABEL", "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}


def instance(seed, n, T, d):
    """Unit tokens and queries, random selected tokens."""
    g = np.random.default_rng(seed)
    X, Z = g.normal(size=(n, T, d)), g.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    Z /= np.linalg.norm(Z, axis=-1, keepdims=True)
    return X, Z, g.integers(0, T, n)


def infeasible():
    """More constraints than a W of this size can meet."""
    return instance(0, 15, 5, 2)


def planted(seed, n, T, d):
    """A feasible instance: the selected tokens are those a random W prefers."""
    g = np.random.default_rng(seed)
    X, Z, W = g.normal(size=(n, T, d)), g.normal(size=(n, d)), g.normal(size=(d, d))
    return X, Z, np.einsum("ntd,de,ne->nt", X, W, Z).argmax(1)


def stacked(items):
    """Instances of one size as arrays with a leading axis."""
    return [np.stack(part) for part in zip(*items, strict=True)]


def solve(X, Z, selected, norm="fro", **options):
    """`svm.solve` that returns infeasible solutions."""
    return svm.solve(X, Z, selected, norm=norm, on_infeasible="return", **options)


def close(W, expected, tolerance):
    """Equal up to a multiple of the largest entry expected."""
    np.testing.assert_allclose(W, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def margins(X, Z, selected, W):
    """The paper's formula with loops: a list over (i, t), t ≠ α_i."""
    return np.array(
        [
            (X[i, selected[i]] - X[i, t]) @ W @ Z[i]
            for i in range(len(X))
            for t in range(X.shape[1])
            if t != selected[i]
        ]
    )


def combination(X, Z, selected, multipliers):
    """Σ λ_it (x_{i,α_i} − x_it) z_i' with loops."""
    M = np.zeros((X.shape[2], X.shape[2]))
    for i in range(len(X)):
        for t in range(X.shape[1]):
            M += multipliers[i, t] * np.outer(X[i, selected[i]] - X[i, t], Z[i])
    return M


def assert_certified(solution, X, Z, selected, gap=1e-9):
    """Recompute the certificate of a solution from nothing but the data, W and λ."""
    if solution.status is svm.Status.INFEASIBLE:
        c = solution.certificate
        assert (c >= 0).all() and (c > 0).any()
        size = max(1e-300, np.abs(X).max() * np.abs(Z).max())
        assert np.abs(combination(X, Z, selected, c)).max() <= 1e-12 * c.max() * size
        assert np.isnan(solution.W).all()
        return
    assert solution.status is svm.Status.SOLVED
    rows = margins(X, Z, selected, solution.W)
    assert rows.min(initial=np.inf) >= 1 - 1e-10
    assert (solution.dual >= 0).all()
    assert (solution.dual[np.arange(len(X)), selected] == 0).all()
    objective = np.linalg.norm(solution.W, solution.norm)
    assert objective == pytest.approx(solution.objective, rel=1e-12)
    if len(rows) == 0:
        assert objective == 0
        return
    M = combination(X, Z, selected, solution.dual)
    bound = solution.dual.sum() / np.linalg.norm(M, {"fro": "fro", "nuc": 2}[solution.norm])
    assert objective - bound <= gap * objective
    assert abs(solution.gap - max(1 - bound / objective, 0)) <= 1e-12
