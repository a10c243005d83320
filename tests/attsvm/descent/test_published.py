"""The authors' arithmetic: against a plain autograd loop and against their recorded run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from descenttools import HEADS, autograd, cosine, figure_a, problem

from attsvm import descent

EPSILON = 2.22e-16


def authors_loop(p, arrays, iterations, ridge):
    """Autograd, one instance; every array divided by its own norm plus ε."""
    arrays = [a.copy() for a in arrays]
    for _ in range(iterations):
        gradients = autograd(p, arrays, ridge)
        arrays = [
            a - 0.1 * g / (np.linalg.norm(g) + EPSILON)
            for a, g in zip(arrays, gradients, strict=True)
        ]
    return arrays


@pytest.mark.parametrize("head", HEADS)
def test_loop_W(head):
    p = problem(1, batch=(), head=head)
    start = np.random.default_rng(1).normal(size=(p.d, p.d)) * 0.3
    run = descent.train(p, iterations=200, gradient="published", initial=start)
    (theirs,) = authors_loop(p, [start], 200, 0.0)
    assert np.linalg.norm(theirs - start) > 4
    np.testing.assert_allclose(run.W[-1], theirs, atol=1e-12 * np.abs(theirs).max())


def test_loop_KQ():
    p = problem(2, batch=(), head="linear")
    g = np.random.default_rng(2)
    start = [g.normal(size=(p.d, 3)) * 0.3 for _ in range(2)]
    # Until attention saturates, where rounding decides and no two programs agree.
    run = descent.train(p, "KQ", iterations=60, gradient="published", initial=tuple(start))
    theirs = authors_loop(p, start, 60, EPSILON)
    assert run.attention[-1].max() < 1 - 1e-9
    np.testing.assert_allclose(
        run.K[-1] if run.K is not None else run.state.K, theirs[0], atol=1e-11
    )
    np.testing.assert_allclose(run.state.Q, theirs[1], atol=1e-11)


@pytest.mark.parametrize("key", ["A1", "A2"])
def test_recorded_run_of_the_authors(key):
    # Record k of the reference is the state after k updates: its record 1 is one step from zero.
    p, record = figure_a(key)
    iterations = sorted(int(k) for k in record["W_run"])
    run = descent.train(p, iterations=1000, gradient="published", record=iterations)
    assert run.iterations.tolist() == iterations
    assert np.linalg.norm(run.W[0]) == pytest.approx(0.1, rel=1e-9)
    for k, W in zip(iterations, run.W, strict=True):
        np.testing.assert_allclose(W, record["W_run"][str(k)], atol=1e-8 if k <= 200 else 1e-2)


@pytest.mark.parametrize("key", ["A1", "A2"])
def test_exact_agrees_with_the_authors_until_saturation(key):
    p, record = figure_a(key)
    run = descent.train(p, iterations=200, record=[100, 200])
    for k, W in zip(run.iterations, run.W, strict=True):
        np.testing.assert_allclose(W, record["W_run"][str(k)], atol=1e-8)


def test_softmax_is_torch_softmax():
    from attsvm.descent._arithmetic import softmax

    logits = torch.tensor(np.random.default_rng(0).normal(size=(5, 3, 7)) * 50)
    logits[0, 0, 2] = -torch.inf
    torch.testing.assert_close(softmax(logits), torch.softmax(logits, -1), rtol=1e-14, atol=0)


def test_pair_from_zero_query_weights():
    # Figure A's start: Q = 0.  Both arithmetics reach the direction of the nuclear solution.
    p, record = figure_a("A1")
    K = 0.1 * np.random.default_rng(0).normal(size=(2, 2))
    for gradient in ("exact", "published"):
        run = descent.train(
            p, "KQ", iterations=2000, gradient=gradient, initial=(K, np.zeros((2, 2)))
        )
        assert (run.attention[-1].argmax(-1) == record["optimal"]).all()
        assert cosine(run.W[-1], record["W_nuc"]) > 0.98
