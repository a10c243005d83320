"""Cases in which a solver that trusts itself goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
from svmtools import assert_certified, instance, planted

from attsvm import svm

NORMS = pytest.mark.parametrize("norm", ["fro", "nuc"])


@NORMS
def test_one_token_has_no_constraint(norm):
    X, Z, _ = instance(0, 3, 1, 4)
    solution = svm.solve(X, Z, [0, 0, 0], norm=norm)
    assert solution.status is svm.Status.SOLVED
    assert (solution.W == 0).all() and solution.objective == 0 and solution.gap == 0
    assert solution.min_margin == np.inf and solution.rank() == 0
    assert not solution.support().any()


@NORMS
def test_a_copy_of_the_selected_token_is_infeasible(norm):
    X, Z, tokens = instance(1, 3, 4, 5)
    X[1, (tokens[1] + 2) % 4] = X[1, tokens[1]]
    solution = svm.solve(X, Z, tokens, norm=norm, on_infeasible="return")
    assert solution.status is svm.Status.INFEASIBLE
    expected = np.zeros((3, 4))
    expected[1, (tokens[1] + 2) % 4] = 1.0
    np.testing.assert_array_equal(solution.certificate, expected)
    assert solution.farkas_residual() == 0.0
    assert solution.objective == np.inf and np.isnan(solution.W).all()


@NORMS
def test_a_zero_query_is_infeasible(norm):
    X, Z, tokens = instance(1, 3, 4, 5)
    Z[2] = 0.0
    solution = svm.solve(X, Z, tokens, norm=norm, on_infeasible="return")
    assert solution.status is svm.Status.INFEASIBLE
    assert (solution.certificate[2] > 0).sum() == 3 and (solution.certificate[:2] == 0).all()


@NORMS
def test_opposite_constraints_are_infeasible(norm):
    # Token 0 lies between the other two: it cannot be above both.
    X = np.array([[[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]])
    solution = svm.solve(X, np.array([[1.0, 2.0]]), [0], norm=norm, on_infeasible="return")
    assert solution.status is svm.Status.INFEASIBLE
    assert solution.certificate[0, 1] == pytest.approx(solution.certificate[0, 2])


@NORMS
def test_a_token_in_the_convex_hull_is_infeasible_by_its_weights(norm):
    X, Z, _ = instance(6, 1, 4, 3)
    weights = np.array([0.2, 0.3, 0.5])
    X[0, 0] = weights @ X[0, 1:]
    solution = svm.solve(X, Z, [0], norm=norm, on_infeasible="return")
    assert solution.status is svm.Status.INFEASIBLE
    found = solution.certificate[0, 1:]
    np.testing.assert_allclose(found / found.sum(), weights, atol=1e-12)


@NORMS
def test_repeated_constraints_change_nothing(norm):
    X, Z, tokens = planted(2, 3, 4, 4)
    other = (tokens + 1) % 4
    longer = np.concatenate([X, X[np.arange(3), other][:, None]], axis=1)
    once = svm.solve(X, Z, tokens, norm=norm)
    twice = svm.solve(longer, Z, tokens, norm=norm)
    assert_certified(twice, longer, Z, tokens)
    assert twice.objective == pytest.approx(once.objective, rel=1e-11)


@NORMS
def test_collinear_queries(norm):
    X, Z, tokens = planted(4, 4, 3, 6)
    Z = np.outer([1.0, 2.0, 0.25, 3.0], Z[0])
    solution = svm.solve(X, Z, tokens, norm=norm, on_infeasible="return")
    assert_certified(solution, X, Z, tokens)
    assert solution.status is svm.Status.SOLVED
    assert solution.rank() == 1
    # One query direction: the other norm has the same solution.
    other = svm.solve(X, Z, tokens, norm="fro")
    np.testing.assert_allclose(solution.W, other.W, atol=1e-8 * np.abs(other.W).max())


@NORMS
def test_one_dimension(norm):
    X = np.array([[[3.0], [1.0], [0.5]], [[-1.0], [1.0], [0.0]]])
    solution = svm.solve(X, np.array([[2.0], [-4.0]]), [0, 0], norm=norm)
    # Margins 2·2w, 2.5·2w, −2·−4w, −1·−4w ≥ 1: the first decides, w = 1/4.
    assert pytest.approx(np.array([[0.25]]), rel=1e-14) == solution.W
    infeasible = svm.solve(X, np.array([[2.0], [4.0]]), [0, 0], norm=norm, on_infeasible="return")
    assert infeasible.status is svm.Status.INFEASIBLE


@NORMS
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scaled_tokens(norm, scale):
    X, Z, tokens = instance(7, 6, 8, 10)
    plain = svm.solve(X, Z, tokens, norm=norm)
    scaled = svm.solve(scale * X, Z, tokens, norm=norm)
    assert scaled.status is svm.Status.SOLVED
    np.testing.assert_allclose(scaled.W * scale, plain.W, atol=1e-9 * np.abs(plain.W).max())


@NORMS
def test_queries_of_very_different_length(norm):
    X, Z, tokens = instance(8, 5, 5, 10)
    lengths = 10.0 ** np.array([-6.0, -3.0, 0.0, 3.0, 6.0])
    Z = Z * lengths[:, None]
    solution = svm.solve(X, Z, tokens, norm=norm)
    assert solution.status is svm.Status.SOLVED
    assert solution.min_margin >= 1 - 1e-10


@NORMS
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_scaling_does_not_hide_infeasibility(norm, scale):
    X, Z, tokens = instance(0, 15, 5, 2)
    solution = svm.solve(scale * X, Z, tokens, norm=norm, on_infeasible="return")
    assert solution.status is svm.Status.INFEASIBLE
    assert solution.farkas_residual() <= 1e-14


def test_a_difference_that_underflows_is_not_called_infeasible():
    # 1e-200 is not zero, though its square is: there is a W, if not one that float64 can certify.
    X = np.zeros((1, 2, 2))
    X[0, 0, 0], X[0, 1, 1] = 1e-200, 0.0
    X = np.concatenate([X, np.ones((1, 2, 2)) * [[1.0], [0.5]]])
    solution = svm.solve(X, np.ones((2, 2)), [0, 0], on_infeasible="return")
    assert solution.status is svm.Status.INACCURATE


def test_near_the_threshold_of_feasibility():
    # A token that leaves the convex hull by 10⁻⁵: feasible, with a W of that much length.
    X, Z, _ = instance(6, 1, 4, 2)
    inside = X[0, 1:].mean(0)
    vertex = X[0, 1]
    for depth, expected in [(1e-5, svm.Status.SOLVED), (-1e-5, svm.Status.INFEASIBLE)]:
        X[0, 0] = vertex + depth * (vertex - inside)
        solution = svm.solve(X, Z, [0], on_infeasible="return")
        assert solution.status is expected
        if expected is svm.Status.SOLVED:
            assert solution.objective > 1e4 and solution.gap <= 1e-9
