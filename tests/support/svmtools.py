"""Instances and independent checks for the tests of attsvm.svm."""

from __future__ import annotations

import numpy as np

from attsvm import svm


def instance(seed, n, T, d):
    """Unit tokens and queries, random selected tokens."""
    g = np.random.default_rng(seed)
    X, Z = g.normal(size=(n, T, d)), g.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=-1, keepdims=True)
    Z /= np.linalg.norm(Z, axis=-1, keepdims=True)
    return X, Z, g.integers(0, T, n)


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


def norm_of(W, norm):
    return np.linalg.norm(W, norm)


def assert_certified(solution, X, Z, selected, gap=1e-9):
    """Recompute the certificate of a solution from nothing but the data, W and λ."""
    assert solution.status in (svm.Status.SOLVED, svm.Status.INFEASIBLE)
    if solution.status is svm.Status.INFEASIBLE:
        c = solution.certificate
        assert (c >= 0).all() and (c > 0).any()
        assert np.abs(combination(X, Z, selected, c)).max() <= 1e-12 * c.max() * max(
            1e-300, np.abs(X).max() * np.abs(Z).max()
        )
        assert np.isnan(solution.W).all()
        return
    rows = margins(X, Z, selected, solution.W)
    assert rows.min(initial=np.inf) >= 1 - 1e-10
    assert (solution.dual >= 0).all()
    assert (solution.dual[np.arange(len(X)), selected] == 0).all()
    dual_norm = {"fro": "fro", "nuc": 2}[solution.norm]
    objective = np.linalg.norm(solution.W, solution.norm)
    if len(rows) == 0:
        assert objective == 0
        return
    bound = solution.dual.sum() / np.linalg.norm(
        combination(X, Z, selected, solution.dual), dual_norm
    )
    assert objective == np.float64(solution.objective) or np.isclose(
        objective, solution.objective, rtol=1e-12
    )
    assert objective - bound <= gap * objective
    assert abs(solution.gap - max(1 - bound / objective, 0)) <= 1e-12


def planted(seed, n, T, d):
    """A feasible instance: the selected tokens are those a random W prefers."""
    g = np.random.default_rng(seed)
    X, Z, W = g.normal(size=(n, T, d)), g.normal(size=(n, d)), g.normal(size=(d, d))
    selected = np.einsum("ntd,de,ne->nt", X, W, Z).argmax(1)
    return X, Z, selected
