"""The projection onto the simplex against its optimality conditions, a solver and training."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attsvm import datasets, descent, simplex

SEEDS = st.integers(0, 2**32 - 1)
SETTINGS = settings(max_examples=50, deadline=None, derandomize=True)


@SETTINGS
@given(SEEDS, st.integers(1, 12), st.floats(-3, 6))
def test_optimality_conditions(seed, T, exponent):
    y = 10.0**exponent * np.random.default_rng(seed).normal(size=T)
    s = simplex.project(y)
    scale = max(1.0, np.abs(y).max())
    assert (s >= 0).all()
    assert s.sum() == pytest.approx(1.0, abs=1e-9 * scale)
    # y − s is one constant θ where s > 0, and at most θ elsewhere.
    rest = y - s
    theta = rest[s > 0]
    np.testing.assert_allclose(theta, theta[0], atol=1e-9 * scale)
    assert (rest <= theta[0] + 1e-9 * scale).all()


def test_against_a_solver():
    rng = np.random.default_rng(3)
    for T in (1, 2, 5, 9):
        y = rng.normal(size=T)
        s = cp.Variable(T, nonneg=True)
        cp.Problem(cp.Minimize(cp.sum_squares(s - y)), [cp.sum(s) == 1]).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(simplex.project(y), s.value, atol=1e-6)


def test_points_of_the_simplex_stay_and_shifts_do_not_matter():
    inside = np.array([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(simplex.project(inside), inside, atol=1e-15)
    np.testing.assert_allclose(simplex.project(inside + 1e9), inside, atol=1e-6)
    np.testing.assert_allclose(simplex.project([7.0]), [1.0])
    np.testing.assert_allclose(simplex.project([2.0, 2.0, 2.0, -50.0]), [1 / 3, 1 / 3, 1 / 3, 0])


def test_optimal_attention_has_the_largest_margin():
    problem = datasets.orthonormal_problem(5, n=2, T=4, d=6, ridge=0.4)
    best = simplex.optimal_attention(problem)

    def margin(s):
        return problem.head.value(np.einsum("nt,ntd->nd", s, problem.tokens))

    rng = np.random.default_rng(0)
    for _ in range(500):
        assert (margin(rng.dirichlet(np.full(4, 0.5), size=2)) <= margin(best) + 1e-12).all()


def test_training_finds_the_optimal_attention():
    problems = datasets.orthonormal_problems(range(6), n=1, T=5, d=5, ridge=0.3)
    run = descent.train(problems, step=1.0, rule="decaying", iterations=4000, seeds=range(6))
    best = simplex.optimal_attention(problems)
    assert 1 < (best > 0).sum(-1).mean() < 5
    np.testing.assert_allclose(run.attention[-1], best, atol=0.02)


def test_without_ridge_one_token():
    problems = datasets.orthonormal_problems(range(4), n=2, T=3, d=5, ridge=0.0)
    np.testing.assert_array_equal(
        simplex.optimal_attention(problems), np.eye(3)[problems.scores().argmax(-1)]
    )
