"""Rank and solution set of the nuclear-norm program."""

from __future__ import annotations

import numpy as np
import pytest
from svmtools import close, instance, margins, planted, solve

from attsvm import svm


@pytest.mark.parametrize(("n", "mean"), [(5, 2.6), (10, 3.8), (15, 4.7)])
def test_rank_is_far_below_the_bound_and_stable(n, mean):
    ranks = []
    for seed in range(12):
        solution = svm.solve(*instance(seed, n, 5, 20), norm="nuc")
        counted = {solution.rank(tolerance) for tolerance in (1e-10, 1e-7, 1e-5, 1e-4)}
        assert len(counted) == 1
        ranks.append(solution.rank())
        # Singular values fall from size one to rounding at the rank: nothing in between.
        values = solution.singular_values()
        assert values[solution.rank()] < 1e-12 * values[0]
    assert np.mean(ranks) == pytest.approx(mean, abs=0.5)


def two_corners():
    """Constraints W_11 ≥ 1 and W_22 ≥ 1: every [[1, a], [a, 1]] with |a| ≤ 1 is optimal."""
    X = np.zeros((2, 2, 2))
    X[0, 0], X[1, 0] = [1, 0], [0, 1]
    return X, np.eye(2), [0, 0]


def test_a_face_of_solutions_is_reported():
    solution = svm.solve(*two_corners(), norm="nuc")
    face = solution.face()
    assert solution.objective == pytest.approx(2.0, rel=1e-12)
    assert (face.dimension, face.rank, face.lowest_rank) == (1, 2, 1)
    assert solution.rank_interval() == (1, 2)
    assert np.linalg.norm(face.W, "nuc") == pytest.approx(2.0, rel=1e-9)
    assert margins(*two_corners(), face.W).min() >= 1 - 1e-9
    assert np.linalg.matrix_rank(face.W, tol=1e-9) == 1


def test_rank_constraint():
    solution = svm.solve(*two_corners(), norm="nuc")
    assert not solution.rank_constraint_binds(1)
    generic = svm.solve(*instance(0, 6, 8, 10), norm="nuc")
    rank = generic.rank()
    assert rank > 1
    assert not generic.rank_constraint_binds(rank)
    assert generic.rank_constraint_binds(rank - 1)


def test_a_face_within_larger_dimensions():
    # k orthogonal corners: correlation matrices of size k, dimension k(k−1)/2, rank 1 possible.
    k = 4
    X = np.zeros((k, 2, k))
    X[np.arange(k), 0] = np.eye(k)
    solution = svm.solve(X, np.eye(k), [0] * k, norm="nuc")
    face = solution.face()
    assert (face.dimension, face.rank) == (k * (k - 1) // 2, k)
    # An extreme correlation matrix of size k has rank r with r(r+1)/2 ≤ k.
    assert face.lowest_rank * (face.lowest_rank + 1) // 2 <= k
    np.testing.assert_allclose(np.diag(face.W), 1.0, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_generic_solutions_are_unique(seed):
    solution = solve(*instance(seed, 5, 6, 6), "nuc")
    assert solution.status is svm.Status.SOLVED
    face = solution.face()
    assert (face.dimension, face.lowest_rank) == (0, face.rank)
    close(face.W, solution.W, 1e-7)


def test_frobenius_solutions_are_unique_by_strict_convexity():
    solution = svm.solve(*planted(0, 4, 4, 4))
    assert solution.face().dimension == 0
    assert solution.rank_interval() == (solution.rank(), solution.rank())


def test_no_constraint_has_rank_zero():
    solution = svm.solve(*instance(0, 2, 1, 3), norm="nuc")
    assert solution.rank_interval() == (0, 0)
    assert not solution.rank_constraint_binds(0)
