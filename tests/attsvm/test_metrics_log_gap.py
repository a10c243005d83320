"""log(L − L*): against 500-digit arithmetic, against the loss itself, and at the edges."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from descenttools import with_digits
from hypothesis import given, settings
from hypothesis import strategies as st

from attsvm import AttentionProblem, datasets, descent, metrics, svm
from attsvm.heads import LinearHead


def in_many_digits(problem: AttentionProblem, W: np.ndarray, digits: int = 500) -> float:
    """The same number, straight from its definition."""
    with mpmath.workdps(digits):
        total = mpmath.mpf(0)
        for _, _, s, gamma in with_digits(problem, W):
            total += mpmath.log(1 + mpmath.exp(-(s.T * gamma)[0]))
            total -= mpmath.log(1 + mpmath.exp(-max(gamma)))
        return float(mpmath.log(total / problem.n))


@pytest.mark.parametrize("size", [0.0, 30.0, 1000.0])
def test_agrees_with_decimal_arithmetic(size: float) -> None:
    problem = datasets.random_problem(0, n=3, T=4, d=5)
    # A direction that separates the optimal tokens: gaps of e^-1000 and less occur.
    optimal = problem.scores().argmax(-1)
    W = size * svm.solve(problem.tokens, problem.queries, optimal).W
    expected = in_many_digits(problem, W)
    assert size < 1000 or expected < -900
    assert metrics.log_gap(problem, W) == pytest.approx(expected, rel=1e-12, abs=1e-11)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.floats(0.0, 5.0))
def test_is_the_logarithm_of_the_gap(seed: int, size: float) -> None:
    problem = datasets.random_problem(seed, n=3, T=4, d=5)
    W = size * np.random.default_rng(seed).normal(size=(5, 5))
    loss = descent.train(problem, initial=W, iterations=0, keep=("loss",)).loss[-1]
    optimum = np.logaddexp(0.0, -problem.scores().max(-1)).mean()
    assert np.exp(metrics.log_gap(problem, W)) == pytest.approx(loss - optimum, abs=1e-14)


def test_broadcasts_over_radii_and_instances() -> None:
    problems = datasets.random_problems(range(3), n=2, T=3, d=4)
    W = np.random.default_rng(0).normal(size=(5, 3, 4, 4))
    found = metrics.log_gap(problems, W)
    assert found.shape == (5, 3)
    assert found[4, 2] == metrics.log_gap(problems.instance(2), W[4, 2])


def test_absent_tokens_do_not_count() -> None:
    problem = datasets.random_problem(0, n=3, T=4, d=5)
    mask = np.ones((3, 4), dtype=bool)
    mask[:, 3] = False
    W = np.random.default_rng(1).normal(size=(5, 5))
    masked = AttentionProblem(problem.tokens, problem.queries, problem.labels, problem.head, mask)
    short = AttentionProblem(problem.tokens[:, :3], problem.queries, problem.labels, problem.head)
    assert metrics.log_gap(masked, W) == pytest.approx(float(metrics.log_gap(short, W)), rel=1e-14)


def test_large_scores_do_not_overflow() -> None:
    problem = datasets.random_problem(0, n=3, T=4, d=5)
    steep = replace(problem, head=LinearHead(1200.0 * problem.head.v))
    W = np.random.default_rng(2).normal(size=(5, 5))
    found = metrics.log_gap(steep, W)
    assert found == pytest.approx(in_many_digits(steep, W, 1500), rel=1e-12)


def test_no_gap_where_every_token_is_optimal() -> None:
    problem = datasets.random_problem(0, n=3, T=1, d=5)
    assert metrics.log_gap(problem, np.zeros((5, 5))) == -np.inf
