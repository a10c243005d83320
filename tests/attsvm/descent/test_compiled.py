"""The compiled engine takes the steps that the torch engine takes."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from descenttools import HEADS, given, problem, with_digits

from attsvm import descent
from attsvm.descent import _compiled_steps, _kernel
from attsvm.errors import ArgumentError
from attsvm.heads import LinearHead
from attsvm.problem import AttentionProblem


def both(p, parameterization, start, **how):
    """Final arrays of the two engines."""
    runs = [
        descent.train(p, parameterization, initial=given(start), engine=engine, **how)
        for engine in ("compiled", "torch")
    ]
    return [[run.state.arrays[name] for name in parameterization] for run in runs]


def start_of(p, parameterization, scale=0.3, width=3):
    g = np.random.default_rng(1)
    columns = p.d if parameterization == "W" else width
    return [scale * g.normal(size=(*p.batch_shape, p.d, columns)) for _ in parameterization]


@pytest.mark.parametrize("parameterization", ["W", "KQ"])
@pytest.mark.parametrize("gradient", ["exact", "published"])
@pytest.mark.parametrize("how", [{}, {"rule": "plain"}, {"rule": "decaying"}, {"ridge": 1e-2}])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("head", HEADS)
def test_same_steps_as_torch(head, masked, how, gradient, parameterization):
    p = problem(3, (11,), head=head, masked=masked)  # one full block of lanes and a part of one
    start = start_of(p, parameterization)
    ours, theirs = both(p, parameterization, start, iterations=30, gradient=gradient, **how)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [3e2, 3e4, 3e6])
def test_gradients_far_below_the_smallest_float(size):
    """One normalised step from large weights, against fifty digits and any exponent."""
    p = problem(5, (), n=2, T=4, d=3)
    (W,) = start_of(p, "W", scale=size)
    run = descent.train(p, initial=W, iterations=1, step=1.0, engine="compiled")
    with mpmath.workdps(50):
        G = mpmath.zeros(p.d)
        for X, z, s, gamma in with_digits(p, W):
            u = (s.T * gamma)[0]
            slope = -1 / (1 + mpmath.exp(u))
            # γ_t − u as a sum of differences, in which nothing cancels.
            ahead = [sum(s[r] * (gamma[t] - gamma[r]) for r in range(p.T)) for t in range(p.T)]
            inner = mpmath.matrix([s[t] * ahead[t] for t in range(p.T)])
            G += slope * (X.T * inner) * z.T
        norm = mpmath.sqrt(sum(g**2 for g in G))
        expected = np.array((G / norm).tolist(), dtype=float)
    # The step is the difference of two large numbers.
    np.testing.assert_allclose(W - run.state.W, expected, atol=1e-14 * size * 10)


def test_same_bytes_in_any_chunks():
    p = problem(2, (21,))
    whole = descent.train(p, iterations=50, engine="compiled", record=descent.every(10))
    parts = descent.train(p, iterations=50, engine="compiled", record=descent.every(10), chunk=5)
    alone = descent.train(p.instance(13), iterations=50, engine="compiled")
    assert np.array_equal(whole.W, parts.W)
    assert np.array_equal(whole.W[-1, 13], alone.W[-1])


@pytest.mark.parametrize("gradient", ["exact", "published"])
@pytest.mark.parametrize(("n", "T"), [(1, 1), (3, 1), (1, 2)])
def test_short_sequences(n, T, gradient):
    p = problem(4, (2,), n=n, T=T)
    (ours,), (theirs,) = both(p, "W", start_of(p, "W"), iterations=5, gradient=gradient)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_equal_scores_and_equal_tokens():
    """Tokens that tie with the top one do not set the scale, and a flat loss moves nothing."""
    g = np.random.default_rng(0)
    X = g.normal(size=(1, 5, 3))
    X[0, 1] = X[0, 0]
    z, v = g.normal(size=(1, 3)), g.normal(size=3)
    p = AttentionProblem(X, z, np.ones(1), LinearHead(v))
    W = 400.0 * np.outer(X[0, 0], z[0])
    (ours,), (theirs,) = both(p, "W", [W], iterations=3)
    np.testing.assert_allclose(ours, theirs, atol=1e-11)
    flat = AttentionProblem(np.repeat(X[:, :1], 4, 1), z, np.ones(1), LinearHead(v))
    run = descent.train(flat, initial=W, iterations=3, engine="compiled")
    assert np.array_equal(run.state.W, W)


def test_a_run_goes_on_where_it_stopped():
    p = problem(6, (4,))
    once = descent.train(p, "KQ", iterations=40, seeds=range(4), rule="decaying", engine="compiled")
    half = descent.train(p, "KQ", iterations=15, seeds=range(4), rule="decaying", engine="compiled")
    rest = descent.train(
        p, "KQ", iterations=25, initial=half.state, rule="decaying", engine="compiled"
    )
    assert np.array_equal(once.state.K, rest.state.K)


def test_the_exponential_is_right_to_the_last_digits():
    x = np.concatenate([-np.logspace(-17, np.log10(708.0), 4001)[:-1], [0.0, -np.inf, -800.0]])
    ours = np.array([_kernel._exp1(value) for value in x])
    np.testing.assert_allclose(ours, np.exp(np.where(x < -708, -np.inf, x)), rtol=5e-16)


@pytest.mark.parametrize(
    ("how", "reason"),
    [({"rule": "polyak"}, "rule Polyak"), ({"device": "meta"}, "not on meta")],
)
def test_what_it_cannot_do_is_refused_or_left_to_torch(how, reason):
    p = problem(1, (2,))
    with pytest.raises(ArgumentError, match=reason):
        descent.train(p, iterations=2, engine="compiled", **how)
    if "rule" in how:
        a, b = (descent.train(p, iterations=2, engine=e, **how) for e in ("fastest", "torch"))
        assert np.array_equal(a.W, b.W)


def test_without_numba_torch_does_the_work(monkeypatch):
    monkeypatch.setattr(_compiled_steps.importlib.util, "find_spec", lambda _: None)
    p = problem(1, (2,))
    with pytest.raises(ArgumentError, match="numba is not installed"):
        descent.train(p, iterations=2, engine="compiled")
    a, b = (descent.train(p, iterations=2, engine=e) for e in ("fastest", "torch"))
    assert np.array_equal(a.W, b.W)


def test_an_unknown_engine_is_named():
    with pytest.raises(ArgumentError, match="engine"):
        descent.train(problem(1, (2,)), engine="jax")
