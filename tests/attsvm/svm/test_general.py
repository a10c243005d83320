"""Gen-SVM: margins across and equalities within the selected sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from svmtools import NORMS, TIGHT, close, combination, instance

from attsvm import formulations, svm
from attsvm.errors import InfeasibleError

FIRST_ORDER = {"solver": "SCS", "eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 100_000}


def several(seed, n, T, d, share=0.4):
    """Random selected sets and the attention of random weights."""
    X, Z, tokens = instance(seed, n, T, d)
    g = np.random.default_rng([seed, 7])
    selected = g.random((n, T)) < share
    selected[np.arange(n), tokens] = True
    return X, Z, selected, attention_of(X, 3 * g.normal(size=(d, d)), Z)


def attention_of(X, W, Z):
    return softmax(np.einsum("ntd,de,ne->nt", X, W, Z), axis=1)


def assert_constraints(X, Z, selected, attention, solution):
    """The paper's formulas with loops."""
    for i in range(len(X)):
        inside, outside = np.flatnonzero(selected[i]), np.flatnonzero(~selected[i])
        for t in inside:
            for tau in outside:
                assert (X[i, t] - X[i, tau]) @ solution.W_mm @ Z[i] >= 1 - 1e-9
            for tau in inside:
                assert abs((X[i, t] - X[i, tau]) @ solution.W_mm @ Z[i]) <= 1e-9
                ratio = np.log(attention[i, t] / attention[i, tau])
                found = (X[i, t] - X[i, tau]) @ solution.W_fin @ Z[i]
                assert found == pytest.approx(ratio, abs=1e-8)


@NORMS
@pytest.mark.parametrize("size", [(2, 3, 3), (3, 4, 4), (3, 4, 6), (5, 4, 8)])
def test_agrees_with_cvxpy(size, norm):
    for seed in range(3):
        X, Z, selected, attention = several(seed, *size)
        solution = svm.solve_general(X, Z, selected, attention, norm=norm, on_infeasible="return")
        margin = formulations.general_svm(X, Z, selected, norm=norm)
        finite = formulations.finite_part(X, Z, selected, attention, norm=norm)
        # Clarabel gives up on some of the semidefinite programs with many equalities.
        options = TIGHT if norm == "fro" else FIRST_ORDER
        W_mm = formulations.value_of(margin, **options)
        W_fin = formulations.value_of(finite, **options)
        assert solution.finite.status is svm.Status.SOLVED
        # Flat directions of the nuclear norm: a gap of 1e-9 leaves 1e-4 in W.
        np.testing.assert_allclose(solution.W_fin, W_fin, atol=2e-3)
        if W_mm is None:
            assert solution.status is svm.Status.INFEASIBLE
            continue
        assert solution.status is svm.Status.SOLVED
        assert solution.objective == pytest.approx(margin[0].value, rel=1e-5)
        assert solution.gap <= 1e-9 and solution.finite.gap <= 1e-9
        assert_constraints(X, Z, selected, attention, solution)


@pytest.mark.parametrize(("norm", "dual_norm"), [("fro", "fro"), ("nuc", 2)])
def test_dual_certificate_by_hand(norm, dual_norm):
    X, Z, selected, attention = several(1, 3, 4, 6)
    solution = svm.solve_general(X, Z, selected, attention, norm=norm)
    reference = selected.argmax(1)
    assert (solution.dual[np.arange(3), reference] == 0).all()
    assert (solution.dual[~selected] >= 0).all()
    M = combination(X, Z, reference, solution.dual)
    bound = solution.dual[~selected].sum() / np.linalg.norm(M, dual_norm)
    assert solution.bound == pytest.approx(bound, rel=1e-12)
    assert np.linalg.norm(solution.W_mm, norm) - bound <= 1e-11 * bound


@NORMS
def test_one_selected_token_is_the_attention_svm(norm):
    X, Z, tokens = instance(3, 4, 5, 8)
    selected = np.zeros((4, 5), dtype=bool)
    selected[np.arange(4), tokens] = True
    general = svm.solve_general(X, Z, selected, selected.astype(float), norm=norm)
    single = svm.solve(X, Z, tokens, norm=norm)
    close(general.W_mm, single.W, 1e-9)
    assert (general.W_fin == 0).all() and general.finite.violation == 0


@NORMS
def test_every_token_selected_leaves_only_the_finite_part(norm):
    X, Z, _, attention = several(2, 2, 3, 6)
    selected = np.ones((2, 3), dtype=bool)
    solution = svm.solve_general(X, Z, selected, attention, norm=norm)
    assert (solution.W_mm == 0).all() and solution.objective == 0
    np.testing.assert_allclose(attention_of(X, solution.W_fin, Z), attention, rtol=1e-8)


def test_combined_is_least_squares():
    X, Z, selected, attention = several(4, 3, 4, 8)
    solution = svm.solve_general(X, Z, selected, attention)
    W = solution.W_fin + 7.5 * solution.W_mm
    assert solution.factor(W) == pytest.approx(7.5)
    np.testing.assert_allclose(solution.combined(W), W, atol=1e-12)
    noise = np.random.default_rng(0).normal(size=W.shape)
    best = np.linalg.norm(W + noise - solution.combined(W + noise))
    for R in (7.0, 7.4, 7.6, 8.0):
        assert best <= np.linalg.norm(W + noise - solution.W_fin - R * solution.W_mm)
    # Plain least squares is not clipped.
    assert solution.factor(solution.W_fin - 2 * solution.W_mm) == pytest.approx(-2.0)


def test_infeasible_margins_are_proved():
    # The selected tokens lie on both sides of the other one: equal logits force its logit to match.
    X = np.array([[[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]])
    Z, selected = np.array([[1.0, 2.0]]), np.array([[True, True, False]])
    attention = np.array([[0.5, 0.5, 0.0]])
    solution = svm.solve_general(X, Z, selected, attention, on_infeasible="return")
    assert solution.status is svm.Status.INFEASIBLE
    c = solution.certificate[0]
    assert c[2] > 0
    D = X[0, 0] - X[0]
    np.testing.assert_allclose(c @ D, 0.0, atol=1e-14)
    assert np.isnan(solution.W_mm).all() and np.isnan(solution.combined(np.eye(2))).all()
    with pytest.raises(InfeasibleError, match="selected sets"):
        svm.solve_general(X, Z, selected, attention)


def test_contradicting_attention_is_proved():
    # Two sequences with the same tokens and query but other ratios.
    X, Z, _ = instance(0, 1, 3, 4)
    X, Z = np.repeat(X, 2, axis=0), np.repeat(Z, 2, axis=0)
    selected = np.array([[True, True, False]] * 2)
    attention = np.array([[0.5, 0.5, 0.0], [0.8, 0.2, 0.0]])
    solution = svm.solve_general(X, Z, selected, attention, on_infeasible="return")
    assert solution.status is svm.Status.SOLVED
    assert solution.finite.status is svm.Status.INFEASIBLE
    c = solution.finite.certificate
    D = X[:, :1] - X
    np.testing.assert_allclose(np.einsum("nt,ntd->d", c, D), 0.0, atol=1e-14)
    logs = np.log(attention[:, :1] / np.where(selected, attention, 1.0)) * selected
    assert (c * logs).sum() > 0
    with pytest.raises(InfeasibleError, match="contradict"):
        svm.solve_general(X, Z, selected, attention)
    # Equal ratios repeat a constraint, which is no contradiction.
    agreed = svm.solve_general(X, Z, selected, attention[[1, 1]])
    assert agreed.finite.status is svm.Status.SOLVED


@NORMS
def test_mask(norm):
    X, Z, selected, attention = several(5, 3, 4, 8)
    mask = np.broadcast_to(np.arange(6) < 4, (3, 6))
    padded = np.concatenate([X, X[:, :2]], axis=1)
    wide, weights = (np.pad(a, ((0, 0), (0, 2))) for a in (selected, attention))
    masked = svm.solve_general(padded, Z, wide, weights, norm=norm, mask=mask)
    plain = svm.solve_general(X, Z, selected, attention, norm=norm)
    close(masked.W_mm, plain.W_mm, 1e-9)


def test_repr():
    assert "solved" in repr(svm.solve_general(*several(1, 2, 3, 4), on_infeasible="return"))
