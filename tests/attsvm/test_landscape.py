"""The loss surface: gradient and directional derivative against autograd, stationary points."""

import numpy as np
import pytest
from descenttools import autograd

from attsvm import datasets, descent, landscape, selection, svm
from attsvm.problem import AttentionProblem


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_gradient_is_autograds(scale):
    problems = datasets.random_problems(range(4), n=3, T=4, d=5)
    W = scale * np.random.default_rng(0).normal(size=(2, 4, 5, 5))
    ours = landscape.gradient(problems, W)
    for k in range(2):
        for i in range(4):
            (theirs,) = autograd(problems.instance(i), [W[k, i]])
            np.testing.assert_allclose(ours[k, i], theirs, rtol=1e-9, atol=1e-14)


def test_descent_rate_is_the_inner_product_with_the_gradient():
    problems = datasets.random_problems(range(5), n=3, T=4, d=5)
    rng = np.random.default_rng(1)
    W, V = rng.normal(size=(2, 5, 5, 5)), rng.normal(size=(5, 5, 5))
    found = landscape.descent_rate(problems, W, landscape.logits(problems, V))
    inner = -np.einsum("kbij,bij->kb", landscape.gradient(problems, W), V)
    np.testing.assert_array_equal(found.positive, inner > 0)
    np.testing.assert_allclose(found.log_size, np.log(np.abs(inner)), rtol=1e-9)
    assert found.positive.any() and not found.positive.all()


def test_descent_rate_keeps_its_sign_where_the_gradient_underflows():
    problem = datasets.random_problem(0, n=3, T=4, d=5)
    solution = svm.solve(problem.tokens, problem.queries, selection.optimal_tokens(problem))
    along = landscape.solution_logits([solution])[0]
    far = landscape.descent_rate(problem, 1e4 * solution.W, along)
    assert far.log_size < -1000
    assert far.positive  # along W_mm the optimal tokens lead every pair that still counts
    # Against exact descent, which knows the size of the gradient in logarithms: at W_mm's own
    # direction the inner product is at most ‖∇L‖ ‖W_mm‖.
    run = descent.train(problem, initial=1e4 * solution.W, iterations=0, keep=["log_gradient_norm"])
    assert far.log_size <= run.log_gradient_norm[0] + np.log(np.linalg.norm(solution.W)) + 1e-9


def test_conditions_of_the_landscape_theorem_make_the_loss_fall_everywhere():
    problems = datasets.equal_score_problems(range(10), n=4, T=4, d=4)
    optimal = selection.optimal_tokens(problems)
    solutions = svm.solve_many(problems.tokens, problems.queries, optimal)
    W = 30 * np.random.default_rng(2).normal(size=(50, 10, 4, 4))
    found = landscape.descent_rate(problems, W, landscape.solution_logits(solutions))
    assert found.positive.all()
    assert (found.log_up == -np.inf).all()  # equal scores contribute nothing, not even rounding


def test_solution_logits_are_minus_the_margins():
    problems = datasets.random_problems(range(3), n=3, T=4, d=6)
    optimal = selection.optimal_tokens(problems)
    solutions = svm.solve_many(problems.tokens, problems.queries, optimal)
    ours = landscape.solution_logits(solutions)
    raw = landscape.logits(problems, np.stack([s.W for s in solutions]))
    raw -= np.take_along_axis(raw, optimal[..., None], -1)
    np.testing.assert_allclose(ours, raw, atol=1e-8)
    assert (ours[np.stack([s.support() for s in solutions])] == -1.0).all()


def test_masked_tokens_count_for_nothing():
    full = datasets.random_problem(3, n=3, T=4, d=5)
    mask = np.ones((3, 5), dtype=bool)
    mask[:, 4] = False
    junk = np.concatenate([full.tokens, np.full((3, 1, 5), 7.0)], axis=1)
    masked = AttentionProblem(junk, full.queries, full.labels, full.head, mask)
    W, V = np.random.default_rng(4).normal(size=(2, 5, 5))
    np.testing.assert_allclose(landscape.gradient(masked, W), landscape.gradient(full, W))
    ours = landscape.descent_rate(masked, W, landscape.logits(masked, V))
    theirs = landscape.descent_rate(full, W, landscape.logits(full, V))
    np.testing.assert_allclose(ours.log_size, theirs.log_size)


def test_stationary_points_are_stationary():
    rng = np.random.default_rng(0)
    starts = rng.normal(size=(24, 3, 3)) * np.geomspace(1, 20, 24)[:, None, None]
    found = []
    for seed in range(12):
        problem = datasets.equal_score_problem(seed, n=6, T=4, d=3, spread=0.5)
        for point in landscape.stationary_points(problem, starts):
            if point is not None:
                found.append(point)
                assert point.newton <= 1e-8
                size = np.abs(autograd(problem, [point.W])).max()
                # Small against the curvature, not only small.
                assert size <= 1e-7 * np.abs(point.curvatures).max()
    assert found


def test_no_stationary_point_where_the_queries_separate_the_labels():
    # One sequence: along v z' the variance of the scores grows, whatever W is.
    problem = datasets.random_problem(0, n=1, T=4, d=2)
    starts = np.random.default_rng(0).normal(size=(20, 2, 2)) * 5
    assert landscape.stationary_points(problem, starts) == [None] * 20
