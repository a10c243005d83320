"""log(L − L*): against 500-digit arithmetic, against the loss itself, and at the edges."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attsvm import AttentionProblem, datasets, descent, metrics, svm
from attsvm.errors import ArgumentError
from attsvm.heads import LinearHead


def in_many_digits(problem: AttentionProblem, W: np.ndarray, digits: int = 500) -> float:
    """The same number, straight from its definition, in decimal arithmetic."""

    def exact(array: np.ndarray) -> list:
        return [exact(row) if np.ndim(row) else Decimal(float(row)) for row in array]

    def dot(a: list, b: list) -> Decimal:
        return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))

    with localcontext() as context:
        context.prec = digits
        tokens, queries, weights = exact(problem.tokens), exact(problem.queries), exact(W)
        v, total = exact(problem.head.v), Decimal(0)
        for X, z, label in zip(tokens, queries, problem.labels, strict=True):
            key = [dot(row, z) for row in weights]
            powers = [dot(x, key).exp() for x in X]
            gamma = [int(label) * dot(x, v) for x in X]
            margin = dot(powers, gamma) / sum(powers)
            total += (1 + (-margin).exp()).ln() - (1 + (-max(gamma)).exp()).ln()
        return float((total / problem.n).ln())


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
    steep = AttentionProblem(
        problem.tokens, problem.queries, problem.labels, LinearHead(1200.0 * problem.head.v)
    )
    W = np.random.default_rng(2).normal(size=(5, 5))
    found = metrics.log_gap(steep, W)
    assert found == pytest.approx(in_many_digits(steep, W, 1500), rel=1e-12)


def test_no_gap_where_every_token_is_optimal() -> None:
    problem = datasets.random_problem(0, n=3, T=1, d=5)
    assert metrics.log_gap(problem, np.zeros((5, 5))) == -np.inf


def test_wrong_input_is_named() -> None:
    problem = datasets.random_problem(0, n=3, T=4, d=5)
    with pytest.raises(ArgumentError, match="W"):
        metrics.log_gap(problem, np.zeros((4, 4)))
    with pytest.raises(ArgumentError, match="problem"):
        metrics.log_gap(datasets.relu_problem(0, n=3, T=4, d=5), np.zeros((5, 5)))
    many = datasets.random_problems(range(3), n=3, T=4, d=5)
    with pytest.raises(ArgumentError, match="broadcast"):
        metrics.log_gap(many, np.zeros((2, 5, 5)))
