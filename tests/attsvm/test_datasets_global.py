"""Planted data for the chapter on global convergence: equal scores, and compression."""

import numpy as np
import pytest

from attsvm import datasets, descent, landscape, selection, svm


def test_equal_scores_are_equal_without_rounding():
    problems = datasets.equal_score_problems(range(20), n=4, T=5, d=3)
    scores = np.sort(problems.scores(), axis=-1)
    assert (scores[..., :-1] == scores[..., :1]).all()
    assert (scores[..., -1] > scores[..., 0]).all()
    assert datasets.equal_score_problem(0, n=2, T=1, d=2).T == 1


def test_spread_moves_scores_only():
    flat = datasets.equal_score_problem(5, n=4, T=5, d=3)
    half = datasets.equal_score_problem(5, n=4, T=5, d=3, spread=0.5)
    drawn = datasets.equal_score_problem(5, n=4, T=5, d=3, spread=1.0)
    optimal = selection.optimal_tokens(flat)
    for other in (half, drawn):
        np.testing.assert_array_equal(other.tokens[..., 1:], flat.tokens[..., 1:])
        np.testing.assert_array_equal(other.queries, flat.queries)
        np.testing.assert_array_equal(selection.optimal_tokens(other), optimal)
    np.testing.assert_allclose(half.scores(), (flat.scores() + drawn.scores()) / 2, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(drawn.tokens, axis=-1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("d", [4, 40])
def test_compression_keeps_logits_scores_solutions_and_descent(d):
    problems = datasets.random_problems(range(3), n=3, T=4, d=d)
    small, U = datasets.compressed(problems)
    assert small.d == min(d, 15)
    np.testing.assert_allclose(
        U.mT @ U, np.broadcast_to(np.eye(small.d), (3, small.d, small.d)), atol=1e-12
    )
    np.testing.assert_allclose(small.scores(), problems.scores(), atol=1e-12)
    W = np.random.default_rng(0).normal(size=(3, d, d))
    np.testing.assert_allclose(
        landscape.logits(small, U.mT @ W @ U), landscape.logits(problems, W), atol=1e-10
    )
    optimal = selection.optimal_tokens(problems)
    full = svm.solve(problems.tokens[0], problems.queries[0], optimal[0])
    less = svm.solve(small.tokens[0], small.queries[0], optimal[0])
    np.testing.assert_allclose(U[0] @ less.W @ U[0].T, full.W, atol=1e-8)
    runs = [
        descent.train(p, initial=start, iterations=50, keep=["logits"])
        for p, start in ((problems, W), (small, U.mT @ W @ U))
    ]
    np.testing.assert_allclose(runs[0].logits, runs[1].logits, atol=1e-7)
