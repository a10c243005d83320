"""The authors' arithmetic: against a plain autograd loop and against their recorded run."""

from __future__ import annotations

import numpy as np
import pytest
from descenttools import HEADS, autograd, cosine, figure_a, given, problem

from attsvm import descent

EPSILON = 2.22e-16


def authors_loop(p, arrays, iterations, ridge):
    """Autograd, one instance; every array divided by its own norm plus ε."""
    arrays = [a.copy() for a in arrays]
    for _ in range(iterations):
        gradients = autograd(p, arrays, ridge)
        for a, g in zip(arrays, gradients, strict=True):
            a -= 0.1 * g / (np.linalg.norm(g) + EPSILON)
    return arrays


# (K, Q) only until attention saturates, where rounding decides and no two programs agree.
@pytest.mark.parametrize(
    ("head", "widths", "iterations"),
    [*((head, [6], 200) for head in HEADS), ("linear", [3, 3], 60)],
)
def test_the_authors_loop(head, widths, iterations):
    p = problem(1, batch=(), head=head)
    g = np.random.default_rng(1)
    start = [g.normal(size=(p.d, m)) * 0.3 for m in widths]
    weights, ridge = ("W", 0.0) if len(widths) == 1 else ("KQ", EPSILON)
    run = descent.train(
        p, weights, iterations=iterations, gradient="published", initial=given(start)
    )
    theirs = authors_loop(p, start, iterations, ridge)
    assert weights == "W" or run.attention[-1].max() < 1 - 1e-9
    for mine, other, before in zip(run.state.arrays.values(), theirs, start, strict=True):
        assert np.linalg.norm(other - before) > 1
        np.testing.assert_allclose(mine, other, atol=1e-12 * max(10.0, np.abs(other).max()))


@pytest.mark.parametrize("key", ["A1", "A2"])
def test_recorded_run_of_the_authors(key):
    # Record k of the reference is the state after k updates: its record 1 is one step from zero.
    p, record = figure_a(key)
    iterations = sorted(int(k) for k in record["W_run"])
    run = descent.train(p, iterations=1000, gradient="published", record=iterations)
    assert run.iterations.tolist() == iterations
    assert np.linalg.norm(run.W[0]) == pytest.approx(0.1, rel=1e-9)
    # Exact arithmetic agrees until saturation.
    exact = descent.train(p, iterations=1000, record=iterations)
    for k, W, other in zip(iterations, run.W, exact.W, strict=True):
        np.testing.assert_allclose(W, record["W_run"][str(k)], atol=1e-8 if k <= 200 else 1e-2)
        if k <= 200:
            np.testing.assert_allclose(other, record["W_run"][str(k)], atol=1e-8)


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
