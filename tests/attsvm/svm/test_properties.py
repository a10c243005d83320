"""What has to hold of every Att-SVM, whatever the data (Hypothesis draws sizes and seeds)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from svmtools import assert_certified, close, instance, planted, solve

from attsvm import svm

SIZES = st.tuples(st.integers(1, 6), st.integers(2, 6), st.integers(1, 7))
SEEDS = st.integers(0, 2**32 - 1)
NORMS = st.sampled_from(["fro", "nuc"])
SETTINGS = settings(max_examples=40, deadline=None, derandomize=True)


def same(plain, other, W, norm):
    """Both have one objective, and W is the plain solution (the nuclear one may not be unique)."""
    assert other == pytest.approx(plain.objective, rel=1e-8)
    if norm == "fro":
        close(W, plain.W, 1e-7)


@SETTINGS
@given(SEEDS, SIZES, NORMS)
def test_every_answer_is_certified(seed, size, norm):
    item = instance(seed, *size)
    assert_certified(solve(*item, norm), *item)


@SETTINGS
@given(SEEDS, SIZES, NORMS, st.floats(-3, 3))
def test_scaling_tokens_and_queries_by_c_divides_W_by_c_squared(seed, size, norm, exponent):
    X, Z, tokens = planted(seed, *size)
    c = 10.0**exponent
    plain = svm.solve(X, Z, tokens, norm=norm)
    scaled = svm.solve(c * X, c * Z, tokens, norm=norm)
    same(plain, scaled.objective * c**2, scaled.W * c**2, norm)


@SETTINGS
@given(SEEDS, SIZES, NORMS)
def test_orthogonal_changes_of_basis_carry_over(seed, size, norm):
    X, Z, tokens = planted(seed, *size)
    g, d = np.random.default_rng(seed), size[2]
    P, Q = (np.linalg.qr(g.normal(size=(d, d)))[0] for _ in range(2))
    plain = svm.solve(X, Z, tokens, norm=norm)
    turned = svm.solve(X @ P.T, Z @ Q.T, tokens, norm=norm)
    same(plain, turned.objective, P.T @ turned.W @ Q, norm)


@SETTINGS
@given(SEEDS, SIZES, NORMS)
def test_permuting_tokens_and_sequences_permutes_the_dual(seed, size, norm):
    X, Z, tokens = planted(seed, *size)
    n, T, _ = size
    g = np.random.default_rng(seed)
    order, places = g.permutation(n), g.permutation(T)
    plain = svm.solve(X, Z, tokens, norm=norm)
    moved = svm.solve(X[order][:, places], Z[order], np.argsort(places)[tokens[order]], norm=norm)
    same(plain, moved.objective, moved.W, norm)
    if norm == "fro" and n * (T - 1) <= size[2]:
        # As many rows as dimensions or fewer: the multipliers are unique too.
        expected = plain.dual[order][:, places]
        np.testing.assert_allclose(moved.dual, expected, atol=1e-6 * max(expected.max(), 1e-300))


@SETTINGS
@given(SEEDS, SIZES, NORMS)
def test_an_inactive_token_changes_nothing(seed, size, norm):
    X, Z, tokens = planted(seed, *size)
    plain = svm.solve(X, Z, tokens, norm=norm)
    # A token with margin 2 in every sequence: x_α − 2 W z / ‖W z‖², by construction.
    direction = Z @ plain.W.T
    far = X[np.arange(size[0]), tokens] - 2 * direction / (direction**2).sum(1, keepdims=True)
    longer = np.concatenate([X, far[:, None]], axis=1)
    more = svm.solve(longer, Z, tokens, norm=norm)
    np.testing.assert_allclose(
        np.einsum("nd,nd->n", X[np.arange(size[0]), tokens] - far, direction), 2.0
    )
    same(plain, more.objective, more.W, norm)


@SETTINGS
@given(SEEDS, SIZES)
def test_nuclear_objective_lies_between_frobenius_and_root_rank_times_it(seed, size):
    item = planted(seed, *size)
    frobenius, nuclear = svm.solve(*item), svm.solve(*item, norm="nuc")
    assert nuclear.objective >= frobenius.objective * (1 - 1e-9)
    assert nuclear.objective <= np.sqrt(frobenius.rank(1e-9)) * frobenius.objective * (1 + 1e-9)


@SETTINGS
@given(SEEDS, SIZES, NORMS)
def test_removing_a_constraint_never_raises_the_objective(seed, size, norm):
    X, Z, tokens = planted(seed, *size)
    mask = np.ones(size[:2], dtype=bool)
    i = seed % size[0]
    mask[i, (tokens[i] + 1 + seed % (size[1] - 1)) % size[1]] = False
    full = svm.solve(X, Z, tokens, norm=norm)
    fewer = svm.solve(X, Z, tokens, norm=norm, mask=mask)
    assert fewer.objective <= full.objective * (1 + 1e-8)


@SETTINGS
@given(SEEDS, SIZES, NORMS)
def test_rank_is_at_most_min_of_n_and_d(seed, size, norm):
    solution = svm.solve(*planted(seed, *size), norm=norm)
    assert 1 <= solution.rank(1e-9) <= min(size[0], size[2])


@SETTINGS
@given(SEEDS, SIZES)
def test_planted_tokens_are_feasible_and_their_negative_is_not_the_solution(seed, size):
    X, Z, tokens = planted(seed, *size)
    solution, negative = svm.solve(X, Z, tokens), svm.solve(X, -Z, tokens)
    assert solution.status is svm.Status.SOLVED
    assert np.nanmax(negative.margins()) >= 1 - 1e-9
    close(negative.W, -solution.W, 1e-7)
