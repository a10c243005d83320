"""The regularisation path: certified points, and the direction it tends to."""

from __future__ import annotations

import numpy as np
import pytest
from descenttools import cosine, figure_a, problem
from scipy.optimize import minimize

from attsvm import datasets, descent, svm
from attsvm.descent._ball import minimize_over_ball
from attsvm.descent._path_loss import LogGap
from attsvm.heads import LinearHead
from attsvm.problem import AttentionProblem

NORMS = pytest.mark.parametrize("norm", ["fro", "nuc"])


def log_gap(p, W):
    """log(L − L*) by subtraction: good to 1e-16 of L."""
    logits = np.einsum("itd,de,ie->it", p.tokens, W, p.queries)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    s = weights / weights.sum(-1, keepdims=True)
    gamma = p.scores()
    value = np.logaddexp(0, -(s * gamma).sum(-1)).mean() - np.logaddexp(0, -gamma.max(-1)).mean()
    return np.log(value)


@pytest.mark.parametrize("size", [0.1, 3.0, 30.0])
def test_derivatives(size):
    p = problem(1, batch=(), masked=False)
    gap = LogGap(p)
    g = np.random.default_rng(1)
    C, move = size * g.normal(size=gap.shape), 1e-5 * g.normal(size=gap.shape)
    for function in (gap, gap.limit):
        _, gradient, hessian = function(C)
        above, below = function(C + move), function(C - move)
        assert np.linalg.norm(gradient) > 1e-4
        assert (above[0] - below[0]) / 2 == pytest.approx(
            float((gradient * move).sum()), rel=1e-5, abs=1e-13
        )
        np.testing.assert_allclose(
            (above[1] - below[1]).ravel() / 2,
            hessian @ move.ravel(),
            atol=1e-6 * np.linalg.norm(move) * np.abs(hessian).max() + 1e-15,
        )
    if size < 10:
        assert gap(C)[0] == pytest.approx(log_gap(p, gap.weights(C)), rel=1e-9)


def test_limit_is_where_the_gap_goes():
    p = problem(2, batch=(), d=20)
    solution = svm.solve(p.tokens, p.queries, p.scores().argmax(-1))
    gap = LogGap(p)
    for factor in (20, 2000):
        C = gap.coordinates(factor * solution.W)
        assert gap(C)[0] == pytest.approx(gap.limit(C)[0], abs=1e-6)
        assert gap(C)[0] < -0.9 * factor


@NORMS
@pytest.mark.parametrize("seed", range(3))
def test_path_tends_to_the_svm(norm, seed):
    p = datasets.random_problem(seed, n=4, T=4, d=8)
    solution = svm.solve(p.tokens, p.queries, p.scores().argmax(-1), norm=norm)
    radii = solution.objective * np.geomspace(0.1, 1000, 13)
    path = descent.regularization_path(p, radii, norm=norm)
    sizes = [np.linalg.norm(W, norm) for W in path.W]
    np.testing.assert_allclose(sizes, radii, rtol=1e-9)
    assert path.residual.max() < 1e-7
    assert (np.diff(path.log_gap) < 0).all()
    off = [1 - cosine(W, solution.W) for W in path.W]
    assert off[-1] < 1e-4 and off[-1] < off[-4] < off[0]
    # At the last radius the loss is L* to 400 digits; autograd's float64 could not see it.
    assert path.log_gap[-1] < -900


@NORMS
def test_residual_is_recomputed_from_autograd(norm):
    import torch
    from descenttools import loss

    p = problem(3, batch=(), n=3, T=4, d=5)
    for R in (0.5, 5.0):
        path = descent.regularization_path(p, [R], norm=norm)
        W = torch.tensor(path.W[0], requires_grad=True)
        (g,) = torch.autograd.grad(loss(p, W), W)
        g = g.numpy()
        if norm == "fro":
            assert 1 - cosine(-g, path.W[0]) < 1e-12
        else:
            assert -np.vdot(g, path.W[0]) == pytest.approx(R * np.linalg.norm(g, 2), rel=1e-7)


def test_frobenius_point_against_scipy():
    p = problem(4, batch=(), n=3, T=4, d=4)
    R = 3.0
    path = descent.regularization_path(p, [R])
    best = np.inf
    for seed in range(8):
        start = np.random.default_rng(seed).normal(size=16)

        def on_sphere(w):
            return log_gap(p, R * w.reshape(4, 4) / np.linalg.norm(w))

        best = min(best, minimize(on_sphere, start, method="BFGS", options={"gtol": 1e-9}).fun)
    assert path.log_gap[0] == pytest.approx(best, abs=1e-7)


@NORMS
@pytest.mark.parametrize("key", ["A1", "A2"])
def test_planar_instances(norm, key):
    p, record = figure_a(key)
    target = np.array(record["W_fro" if norm == "fro" else "W_nuc"])
    size = np.linalg.norm(target, norm)
    path = descent.regularization_path(p, size * np.array([1.0, 10.0, 100.0, 1000.0]), norm=norm)
    assert path.residual.max() < 1e-7
    assert 1 - cosine(path.W[-1], target) < 1e-4


def test_inner_minimum():
    # One query, tokens in conflict: the same difference must grow and shrink; the best W is finite.
    X = np.array([[[1.0], [0.0]], [[0.0], [1.0]]])
    sides = AttentionProblem(X, np.ones((2, 1)), np.array([1.0, -1.0]), LinearHead([1.0]))
    flat = descent.regularization_path(sides, [1.0, 100.0])
    values = [log_gap(sides, np.array([[w]])) for w in np.linspace(-1, 1, 2001)]
    assert flat.log_gap[0] <= min(values) + 1e-9


@NORMS
def test_no_slope_no_weights(norm):
    p = problem(5, batch=(), T=1)
    path = descent.regularization_path(p, [1.0, 2.0], norm=norm)
    assert (path.W == 0).all() and (path.residual == 0).all()
    assert (path.log_gap == -np.inf).all()


def test_masked_tokens_are_ignored():
    p = problem(6, batch=(), masked=True)
    other = p.tokens.copy()
    other[~p.mask] += 5.0
    changed = AttentionProblem(other, p.queries, p.labels, p.head, p.mask)
    one, two = (descent.regularization_path(q, [1.0, 50.0]) for q in (p, changed))
    np.testing.assert_allclose(one.W, two.W, atol=1e-7)


@pytest.mark.parametrize("radius", [0.3, 1.0, 40.0])
def test_ball_solver_on_a_quadratic(radius):
    # Indefinite, with a known multiplier: the solution has (H + μ) x = −b, H + μ ⪰ 0.
    g = np.random.default_rng(0)
    H = g.normal(size=(6, 6))
    H, b = H + H.T, g.normal(size=6)

    def function(x):
        return float(b @ x + 0.5 * x @ H @ x), b + H @ x, H

    def residual(x, gradient):
        mu = -(gradient @ x) / (x @ x)
        return float(np.linalg.norm(gradient + mu * x))

    x, left = minimize_over_ball(function, np.ones(6), radius, residual, 1e-10)
    mu = -((b + H @ x) @ x) / (x @ x)
    assert left < 1e-8 and np.linalg.norm(x) == pytest.approx(radius)
    assert mu > 0 and np.linalg.eigvalsh(H + mu * np.eye(6))[1] > 0
