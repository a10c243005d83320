"""Cases in which a solver that trusts itself goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
from svmtools import NORMS, assert_certified, close, infeasible, instance, planted, solve

from attsvm import svm

SOLVED, INFEASIBLE = svm.Status.SOLVED, svm.Status.INFEASIBLE


@NORMS
def test_one_token_has_no_constraint(norm):
    X, Z, _ = instance(0, 3, 1, 4)
    solution = svm.solve(X, Z, [0, 0, 0], norm=norm)
    assert solution.status is SOLVED
    assert (solution.W == 0).all() and solution.objective == 0 and solution.gap == 0
    assert solution.min_margin == np.inf and solution.rank() == 0
    assert not solution.support().any()


@NORMS
def test_a_copy_of_the_selected_token_is_infeasible(norm):
    X, Z, tokens = instance(1, 3, 4, 5)
    copy = (tokens[1] + 2) % 4
    X[1, copy] = X[1, tokens[1]]
    solution = solve(X, Z, tokens, norm)
    assert solution.status is INFEASIBLE
    assert np.argwhere(solution.certificate).tolist() == [[1, copy]]
    assert solution.certificate.sum() == 1.0 and solution.farkas_residual() == 0.0
    assert solution.objective == np.inf and np.isnan(solution.W).all()


@NORMS
def test_a_zero_query_is_infeasible(norm):
    X, Z, tokens = instance(1, 3, 4, 5)
    Z[2] = 0.0
    solution = solve(X, Z, tokens, norm)
    assert solution.status is INFEASIBLE
    assert (solution.certificate[2] > 0).sum() == 3 and (solution.certificate[:2] == 0).all()


@NORMS
@pytest.mark.parametrize(("d", "weights"), [(2, [0.5, 0.5]), (3, [0.2, 0.3, 0.5])])
def test_a_token_in_the_convex_hull_is_infeasible_by_its_weights(norm, d, weights):
    X, Z, _ = instance(6, 1, len(weights) + 1, d)
    X[0, 0] = weights @ X[0, 1:]
    solution = solve(X, Z, [0], norm)
    assert solution.status is INFEASIBLE
    found = solution.certificate[0, 1:]
    np.testing.assert_allclose(found / found.sum(), weights, atol=1e-12)


@NORMS
def test_repeated_constraints_change_nothing(norm):
    X, Z, tokens = planted(2, 3, 4, 4)
    longer = np.concatenate([X, X[np.arange(3), (tokens + 1) % 4][:, None]], axis=1)
    twice = svm.solve(longer, Z, tokens, norm=norm)
    assert_certified(twice, longer, Z, tokens)
    once = svm.solve(X, Z, tokens, norm=norm)
    assert twice.objective == pytest.approx(once.objective, rel=1e-11)


@NORMS
@pytest.mark.parametrize(
    ("lengths", "T", "tolerance"), [([1.0], 6, 1e-10), ([1.0, 2.0, 0.25, 3.0], 3, 1e-8)]
)
def test_one_query_direction_makes_both_norms_agree(norm, lengths, T, tolerance):
    X, Z, tokens = planted(4, len(lengths), T, 6)
    Z = np.outer(lengths, Z[0])
    solution = solve(X, Z, tokens, norm)
    assert_certified(solution, X, Z, tokens)
    assert solution.status is SOLVED and solution.rank() == 1
    close(solution.W, svm.solve(X, Z, tokens).W, tolerance)


@NORMS
def test_one_dimension(norm):
    X = np.array([[[3.0], [1.0], [0.5]], [[-1.0], [1.0], [0.0]]])
    solution = svm.solve(X, np.array([[2.0], [-4.0]]), [0, 0], norm=norm)
    # Margins 2·2w, 2.5·2w, −2·−4w, −1·−4w ≥ 1: the first decides, w = 1/4.
    assert pytest.approx(np.array([[0.25]]), rel=1e-14) == solution.W
    assert solve(X, np.array([[2.0], [4.0]]), [0, 0], norm).status is INFEASIBLE


@NORMS
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_scale_of_tokens_hides_nothing(norm, scale):
    X, Z, tokens = instance(7, 6, 8, 10)
    scaled = svm.solve(scale * X, Z, tokens, norm=norm)
    assert scaled.status is SOLVED
    close(scaled.W * scale, svm.solve(X, Z, tokens, norm=norm).W, 1e-9)
    X, Z, tokens = infeasible()
    solution = solve(scale * X, Z, tokens, norm)
    assert solution.status is INFEASIBLE
    assert solution.farkas_residual() <= 1e-14


@NORMS
def test_queries_of_very_different_length(norm):
    X, Z, tokens = instance(8, 5, 5, 10)
    Z = Z * 10.0 ** np.array([-6.0, -3.0, 0.0, 3.0, 6.0])[:, None]
    solution = svm.solve(X, Z, tokens, norm=norm)
    assert solution.status is SOLVED
    assert solution.min_margin >= 1 - 1e-10


def test_a_difference_that_underflows_is_not_called_infeasible():
    # 1e-200 is not zero, though its square is: there is a W, if not one that float64 can certify.
    X = np.zeros((1, 2, 2))
    X[0, 0, 0], X[0, 1, 1] = 1e-200, 0.0
    X = np.concatenate([X, np.ones((1, 2, 2)) * [[1.0], [0.5]]])
    assert solve(X, np.ones((2, 2)), [0, 0]).status is svm.Status.INACCURATE


@pytest.mark.parametrize(("depth", "expected"), [(1e-5, SOLVED), (-1e-5, INFEASIBLE)])
def test_near_the_threshold_of_feasibility(depth, expected):
    # A token that leaves the convex hull by 10⁻⁵: feasible, with a W of that much length.
    X, Z, _ = instance(6, 1, 4, 2)
    X[0, 0] = X[0, 1] + depth * (X[0, 1] - X[0, 1:].mean(0))
    solution = solve(X, Z, [0])
    assert solution.status is expected
    if expected is SOLVED:
        assert solution.objective > 1e4 and solution.gap <= 1e-9
