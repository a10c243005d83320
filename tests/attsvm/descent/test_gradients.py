"""The closed-form gradients: against autograd, against long digits, against each other."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest
import torch
from descenttools import HEADS, autograd, cosine, figure_a, given, problem, with_digits

from attsvm import descent
from attsvm.heads import LinearHead
from attsvm.problem import AttentionProblem


def starting(seed, batch, d, m, parameterization, size=1.0):
    g = np.random.default_rng(100 + seed)
    if parameterization == "W":
        return [size * g.normal(size=(*batch, d, d))]
    return [size * g.normal(size=(*batch, d, m)) for _ in range(2)]


def one_plain_step(p, arrays, gradient, ridge=0.0):
    """The gradient that `train` uses, read off a plain step of length one."""
    step = {"step": 1.0, "iterations": 1, "gradient": gradient, "rule": "plain", "ridge": ridge}
    run = descent.train(p, "W" if len(arrays) == 1 else "KQ", initial=given(arrays), **step)
    after = run.state.arrays.values()
    return [before - now for before, now in zip(arrays, after, strict=True)]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("parameterization", ["W", "KQ"])
@pytest.mark.parametrize("ridge", [0.0, 0.02])
@pytest.mark.parametrize("gradient", ["exact", "published"])
def test_autograd(head, masked, parameterization, ridge, gradient):
    p = problem(1, head=head, masked=masked)
    arrays = starting(1, p.batch_shape, p.d, 3, parameterization)
    ours = one_plain_step(p, arrays, gradient, ridge)
    for i in range(len(p)):
        theirs = autograd(p.instance(i), [a[i] for a in arrays], ridge)
        for mine, other in zip(ours, theirs, strict=True):
            assert np.linalg.norm(other) > 1e-3
            # The step is subtracted from weights of order one: 1e-16 absolute is all there is.
            np.testing.assert_allclose(mine[i], other, rtol=1e-11, atol=2e-15)


def unit_gradient(p, W, digits, ridge=0):
    """The normalised gradient of loss (+ ridge) by the naive formulas in `digits` digits."""
    with mpmath.workdps(digits):
        total = 2 * ridge * mpmath.matrix(W.tolist())
        for X, z, s, gamma in with_digits(p, W):
            margin = (s.T * gamma)[0]
            slope = -1 / (1 + mpmath.exp(margin)) / p.n
            inner = [slope * s[t] * (gamma[t] - margin) for t in range(p.T)]
            total += (X.T * mpmath.matrix(inner)) * z.T
        return np.array((total / mpmath.mnorm(total, "f")).tolist(), dtype=float)


@pytest.mark.parametrize("size", [30.0, 300.0, 5000.0])
def test_saturated_direction_against_long_digits(size):
    p = problem(3, batch=(), n=3, T=4, d=4)
    W = size * np.random.default_rng(3).normal(size=(4, 4))
    run = descent.train(p, iterations=1, initial=W, step=1.0)
    logits = descent.train(p, iterations=0, initial=W, keep=("logits",)).logits[-1]
    spread = logits.max(-1, keepdims=True) - logits
    if size == 5000.0:
        assert np.sort(spread, -1)[:, 1].min() > 745  # exp underflows: autograd would give zero
    reference = unit_gradient(p, W, digits=int(spread.max() / 2.3) + 40)
    # Logits of this size carry an error of size · 1e-16, which is the relative error of a weight.
    np.testing.assert_allclose(W - run.state.W, reference, atol=20 * size * 1e-15)


@pytest.mark.parametrize("exponent", [-20, -80, -300, -1000])
def test_ridge_balances_the_true_gradient(exponent):
    # Weights so large that the gradient is about as small as the ridge.
    p = problem(4, batch=(), n=2, T=3, d=3)
    direction = descent.train(p, iterations=3000).W[-1]
    direction /= np.linalg.norm(direction)
    lengths = np.linspace(1, 20000, 101)
    still = {"iterations": 0, "keep": "log_gradient_norm"}
    runs = [descent.train(p, initial=R * direction, **still) for R in lengths]
    norms = np.array([run.log_gradient_norm[0] for run in runs])
    log_ridge = exponent * np.log(10.0)
    balance = norms - (log_ridge + np.log(2 * lengths))
    R = lengths[np.abs(balance).argmin()]
    # A few steps around the balance, where both terms count.
    for offset in (-3.0, 0.0, 3.0):
        W = (R + offset) * direction
        run = descent.train(p, iterations=1, initial=W, step=1.0, log_ridge=log_ridge)
        ridge = mpmath.mpf(10) ** exponent
        reference = unit_gradient(p, W, digits=abs(exponent) + 60, ridge=ridge)
        np.testing.assert_allclose(W - run.state.W, reference, atol=1e-8)


def test_ridge_and_log_ridge_are_the_same():
    p = problem(5)
    one = descent.train(p, iterations=50, ridge=1e-30)
    other = descent.train(p, iterations=50, log_ridge=float(np.log(1e-30)))
    assert np.array_equal(one.W, other.W)


def test_direction_at_the_norm_of_a_million_iterations():
    # Two sequences, two tokens: the SVM splits and is known in closed form.
    X = np.array([[[1.0, 0.0], [-1.0, 0.0]], [[0.0, 2.0], [0.0, -1.0]]])
    Z = np.array([[1.0, 0.0], [0.0, 1.0]])
    p = AttentionProblem(X, Z, np.ones(2), LinearHead(np.array([1.0, 0.5])))
    # Steps of ten: nearly the norm that a million steps of 0.1 reach.
    run = descent.train(
        p, step=10.0, iterations=10_000, keep=("W", "attention", "log_gradient_norm")
    )
    solution = np.array([[1 / 2, 0.0], [0.0, 1 / 3]])
    assert run.log_gradient_norm[-1] < np.log(1e-300)
    assert run.attention[-1].min() == 0.0
    assert np.linalg.norm(run.W[-1]) > 0.7 * 1e5
    assert 1 - cosine(run.W[-1], solution) < 1e-7  # the step is 1e-4 of the norm


def test_published_walks_off_where_exact_converges():
    p, record = figure_a("A1")
    target = np.array(record["W_fro"])
    settings = {"iterations": 10_000}
    exact = descent.train(p, **settings)
    published = descent.train(p, gradient="published", **settings)
    assert 1 - cosine(exact.W[-1], target) < 1e-5
    assert 1 - cosine(published.W[-1], target) > 1e-3


def test_huge_scores_saturate_the_loss_but_not_the_direction():
    # ℓ' is below 1e-400 here; only its logarithm is a float.
    p = problem(6, batch=())
    big = AttentionProblem(p.tokens, p.queries, np.ones(4), LinearHead(1e4 * p.head.v))
    W = np.random.default_rng(6).normal(size=(p.d, p.d)) * 10
    run = descent.train(big, iterations=1, initial=W, step=1.0)
    assert np.linalg.norm(W - run.state.W) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("gradient", ["exact", "published"])
@pytest.mark.parametrize("parameterization", ["W", "KQ"])
def test_stationary_points_do_not_move(gradient, parameterization):
    # All tokens of a sequence alike: the loss does not depend on W.
    p = problem(7)
    single = replace(p, tokens=p.tokens[..., :1, :])
    alike = replace(p, tokens=np.repeat(single.tokens, p.T, axis=-2))
    for still in (alike, single):
        arrays = starting(7, p.batch_shape, p.d, 4, parameterization)
        how = {"iterations": 5, "gradient": gradient, "ridge": 0.0, "initial": given(arrays)}
        run = descent.train(still, parameterization, **how)
        tolerance = 0.0 if gradient == "exact" or still is single else 1.0
        for before, now in zip(arrays, run.state.arrays.values(), strict=True):
            assert np.isfinite(now).all()
            assert np.abs(now - before).max() <= tolerance


def test_duplicates_of_the_best_token_leave_the_others_exact():
    # A tie between selected tokens never resolves, and must not drown the rest of the gradient.
    p = problem(8, batch=(), n=2, T=4, d=5)
    best = p.scores().argmax(-1)
    doubled = np.concatenate([p.tokens, p.tokens[np.arange(2), best][:, None]], axis=1)
    twice = AttentionProblem(doubled, p.queries, p.labels, p.head)
    run = descent.train(twice, iterations=5_000, keep=("W", "attention", "log_gradient_norm"))
    alone = descent.train(p, iterations=5_000)
    assert run.log_gradient_norm[-1] < -50
    np.testing.assert_allclose(np.sort(run.attention[-1], -1)[:, -2:], 0.5, atol=1e-9)
    assert 1 - cosine(run.W[-1], alone.W[-1]) < 1e-3


def test_nothing_global_is_touched():
    threads, kind = torch.get_num_threads(), torch.get_default_dtype()
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    descent.train(problem(9), iterations=2, seeds=range(3))
    assert torch.equal(before, torch.random.get_rng_state())
    assert (torch.get_num_threads(), torch.get_default_dtype()) == (threads, kind)
