"""Att-SVM and Att-SVM* against cvxpy, closed forms, published numbers and their certificates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from svmtools import (
    NORMS,
    TIGHT,
    assert_certified,
    close,
    combination,
    infeasible,
    instance,
    margins,
    solve,
    stacked,
)

from attsvm import formulations, published, svm
from attsvm.errors import InfeasibleError

SIZES = [(2, 3, 2), (3, 4, 4), (4, 4, 3), (5, 5, 3), (5, 5, 8), (6, 8, 10), (8, 3, 2), (10, 5, 4)]


@NORMS
@pytest.mark.parametrize("size", SIZES)
def test_agrees_with_cvxpy(size, norm):
    for seed in range(3):
        X, Z, tokens = instance(seed, *size)
        solution = solve(X, Z, tokens, norm)
        problem, W = formulations.att_svm(X, Z, tokens, norm=norm, form="matrix")
        reference = formulations.value_of((problem, W), **TIGHT)
        assert_certified(solution, X, Z, tokens)
        assert problem.status == ("infeasible" if reference is None else "optimal")
        assert solution.solved == (reference is not None)
        if solution.solved:
            assert solution.objective == pytest.approx(problem.value, rel=1e-6)
            # √gap is what a gap says of W itself, for the strictly convex norm.
            close(solution.W, reference, 1e-3)


def test_both_verdicts_occur_among_the_sizes():
    verdicts = {solve(*instance(seed, *size)).status for size in SIZES for seed in range(3)}
    assert verdicts == {svm.Status.SOLVED, svm.Status.INFEASIBLE}


@pytest.mark.parametrize("figure", ["A1", "A2"])
def test_published_solutions_of_the_plane(figure):
    data = published.trajectories()[figure]
    X, Z, tokens = np.array(data["X"]), np.array(data["Z"]), np.array(data["optimal"])
    # The nuclear reference came from a first-order solver, which leaves about three digits of W.
    for norm, digits in (("fro", 1e-4), ("nuc", 2e-3)):
        solution, reference = svm.solve(X, Z, tokens, norm=norm), np.array(data[f"W_{norm}"])
        assert np.linalg.norm(solution.W - reference) <= digits * np.linalg.norm(reference)
        assert solution.objective <= np.linalg.norm(reference, norm) * (1 + 1e-3)
        assert solution.gap <= 1e-12


@NORMS
def test_two_tokens_in_closed_form(norm):
    X, Z, tokens = instance(3, 1, 2, 5)
    X, Z = 3.0 * X, 0.5 * Z
    D, z = X[0, tokens[0]] - X[0, 1 - tokens[0]], Z[0]
    solution = svm.solve(X, Z, tokens, norm=norm)
    expected = np.outer(D, z) / ((D @ D) * (z @ z))
    np.testing.assert_allclose(solution.W, expected, rtol=1e-12, atol=1e-14)
    assert solution.objective == pytest.approx(1 / np.sqrt((D @ D) * (z @ z)), rel=1e-12)
    assert solution.rank() == 1


def vector_svm(D):
    """min ‖w‖ s.t. D w ≥ 1, by trying every active set."""
    best = None
    for size in range(1, len(D) + 1):
        for chosen in itertools.combinations(range(len(D)), size):
            A = D[list(chosen)]
            w = np.linalg.pinv(A) @ np.ones(size)
            if (D @ w >= 1 - 1e-9).all() and (best is None or w @ w < best @ best):
                best = w
    return best


def test_orthogonal_queries_split_into_one_svm_per_query():
    n, T, d = 3, 4, 5
    X, _, tokens = instance(11, n, T, d)
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0][:n]
    lengths = np.array([0.5, 1.0, 3.0])
    Z = Q * lengths[:, None]
    solution = svm.solve(X, Z, tokens)
    expected = np.zeros((d, d))
    for i in range(n):
        D = np.delete(X[i, tokens[i]] - X[i], tokens[i], axis=0)
        expected += np.outer(vector_svm(D), Q[i]) / lengths[i]
    np.testing.assert_allclose(solution.W, expected, atol=1e-10 * np.abs(expected).max())


@NORMS
def test_dual_certifies_stationarity(norm):
    X, Z, tokens = instance(5, 6, 8, 10)
    solution = svm.solve(X, Z, tokens, norm=norm)
    M = combination(X, Z, tokens, solution.dual)
    if norm == "fro":
        np.testing.assert_allclose(M, solution.W, atol=1e-11 * np.abs(M).max())
    else:
        assert np.linalg.norm(M, 2) == pytest.approx(1.0, abs=1e-12)
        assert (M * solution.W).sum() == pytest.approx(solution.objective, rel=1e-11)
    # Complementary slackness: a positive multiplier sits on a margin of one.
    assert np.nanmax(np.abs(solution.margins() - 1)[solution.dual > 1e-6]) < 1e-9
    assert (solution.support() >= (solution.dual > 1e-6)).all()
    assert not solution.support()[np.arange(6), tokens].any()


@pytest.mark.parametrize(("norm", "limit"), [("fro", 1e-12), ("nuc", 1e-11)])
def test_gaps_reach_rounding(norm, limit):
    assert max(svm.solve(*instance(s, 6, 8, 10), norm=norm).gap for s in range(10)) <= limit


def test_margins_are_those_of_the_formula():
    X, Z, tokens = instance(5, 4, 5, 6)
    solution = svm.solve(X, Z, tokens)
    table = solution.margins()
    assert np.isnan(table[np.arange(4), tokens]).all()
    np.testing.assert_allclose(table[~np.isnan(table)], margins(X, Z, tokens, solution.W))
    assert solution.min_margin == pytest.approx(np.nanmin(table))


@NORMS
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_equals_one_by_one_in_order(norm, n_jobs):
    items = [instance(seed, 4, 4, 3) for seed in range(7)]
    many = svm.solve_many(*stacked(items), norm=norm, n_jobs=n_jobs)
    for solution, item in zip(many, items, strict=True):
        single = solve(*item, norm)
        assert solution.status is single.status
        np.testing.assert_allclose(solution.W, single.W, rtol=1e-9, atol=1e-9)


def test_pieces_do_not_show(monkeypatch):
    items = [instance(seed, 3, 3, 4) for seed in range(5)]
    mask = np.ones((5, 3, 3), dtype=bool)
    whole = svm.solve_many(*stacked(items), mask=mask)
    monkeypatch.setattr("attsvm.svm._attention._PIECE", 2)
    pieces = svm.solve_many(*stacked(items), mask=mask)
    assert [s.selected.tolist() for s in pieces] == [i[2].tolist() for i in items]
    assert all((a.W == b.W).all() for a, b in zip(whole, pieces, strict=True))


@NORMS
def test_solving_twice_gives_the_same_bits(norm):
    first, second = (svm.solve(*instance(1, 6, 8, 10), norm=norm) for _ in range(2))
    assert (first.W == second.W).all() and (first.dual == second.dual).all()


@NORMS
def test_mask_removes_constraints(norm):
    X, Z, tokens = instance(4, 4, 6, 8)
    mask = np.broadcast_to(np.arange(6) < 4, (4, 6))
    tokens = np.minimum(tokens, 3)
    masked = svm.solve(X, Z, tokens, norm=norm, mask=mask)
    short = svm.solve(X[:, :4], Z, tokens, norm=norm)
    assert masked.objective == pytest.approx(short.objective, rel=1e-10)
    np.testing.assert_allclose(masked.dual[:, :4], short.dual, atol=1e-8)
    assert (masked.dual[:, 4:] == 0).all()
    assert np.isnan(masked.margins()[:, 4:]).all()


def test_infeasible_raises_with_its_proof():
    X, Z, tokens = infeasible()
    with pytest.raises(InfeasibleError, match="combine to zero") as caught:
        svm.solve(X, Z, tokens)
    proof = caught.value.certificate
    assert (proof >= 0).all()
    lengths = np.linalg.norm(X[np.arange(15), tokens][:, None] - X, axis=-1)
    assert (proof * lengths * np.linalg.norm(Z, axis=-1)[:, None]).sum() == pytest.approx(1.0)
    assert np.abs(combination(X, Z, tokens, proof)).max() <= 1e-13
    with pytest.raises(InfeasibleError, match="instance 1"):
        svm.solve_many(
            np.stack([X[:1], X[:1] * 0]), np.stack([Z[:1]] * 2), [[0], [0]], on_infeasible="raise"
        )


def test_tolerance_decides_the_status():
    X, Z, tokens = instance(0, 5, 5, 3)
    solution = svm.solve(X, Z, tokens, tolerance=svm.Tolerance(gap=1e-300))
    solved = solution.gap <= 1e-300
    assert solution.status is (svm.Status.SOLVED if solved else svm.Status.INACCURATE)
    X, Z, tokens = infeasible()
    unreachable = svm.Tolerance(farkas=1e-300)
    assert svm.solve(X, Z, tokens, tolerance=unreachable).status is svm.Status.INACCURATE


@NORMS
def test_large_instance_within_its_certificate(norm):
    item = instance(0, 60, 10, 32)
    assert_certified(svm.solve(*item, norm=norm), *item)


def test_status_reads_as_words_and_repr_says_what_it_is():
    solution = svm.solve(*instance(0, 2, 3, 4))
    assert str(solution.status) == "solved"
    assert "solved" in repr(solution) and "n=2" in repr(solution)
