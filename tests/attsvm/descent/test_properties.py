"""What must not change when the same instance is written differently."""

from __future__ import annotations

import numpy as np
from descenttools import HEADS, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from attsvm import descent
from attsvm.heads import LinearHead, QuadraticHead, ReLUHead
from attsvm.problem import AttentionProblem

FEW = settings(max_examples=20, deadline=None)
SIZES = {
    "seed": st.integers(0, 10_000),
    "n": st.integers(1, 4),
    "T": st.integers(1, 5),
    "d": st.integers(1, 5),
    "head": st.sampled_from(HEADS),
    "gradient": st.sampled_from(["exact", "published"]),
}
# Steps of a tie-free start; rounding differs between equal formulas, and grows with the iterations.
SHORT = {"iterations": 25}


def start(seed, *shape):
    return 0.3 * np.random.default_rng(seed).normal(size=shape)


@FEW
@given(**SIZES)
def test_permuting_instances(seed, n, T, d, head, gradient):
    p = problem(seed, batch=(4,), n=n, T=T, d=d, head=head)
    order = np.random.default_rng(seed).permutation(4)
    W = start(seed, 4, d, d)
    one = descent.train(p, initial=W, gradient=gradient, **SHORT)
    two = descent.train(p.instance(order), initial=W[order], gradient=gradient, **SHORT)
    assert np.array_equal(one.W[:, order], two.W)


@FEW
@given(**SIZES)
def test_permuting_tokens(seed, n, T, d, head, gradient):
    p = problem(seed, batch=(), n=n, T=T, d=d, head=head)
    order = np.random.default_rng(seed).permutation(T)
    moved = AttentionProblem(p.tokens[:, order], p.queries, p.labels, p.head)
    W = start(seed, d, d)
    one = descent.train(p, initial=W, gradient=gradient, rule="plain", **SHORT)
    two = descent.train(moved, initial=W, gradient=gradient, rule="plain", **SHORT)
    np.testing.assert_allclose(one.W, two.W, atol=1e-11)
    np.testing.assert_allclose(one.attention[..., order], two.attention, atol=1e-11)


@FEW
@given(**SIZES)
def test_orthogonal_change_of_basis(seed, n, T, d, head, gradient):
    p = problem(seed, batch=(), n=n, T=T, d=d, head=head)
    U, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    turned_head = {
        "linear": lambda: LinearHead(U @ p.head.v),
        "relu": lambda: ReLUHead(U @ p.head.V),
        "quadratic": lambda: QuadraticHead(U @ p.head.v, 0.3),
    }[head]()
    turned = AttentionProblem(p.tokens @ U.T, p.queries @ U.T, p.labels, turned_head)
    W = start(seed, d, d)
    one = descent.train(p, initial=W, gradient=gradient, rule="plain", **SHORT)
    two = descent.train(turned, initial=U @ W @ U.T, gradient=gradient, rule="plain", **SHORT)
    np.testing.assert_allclose(U @ one.W @ U.T, two.W, atol=1e-10)


@FEW
@given(**SIZES)
def test_pair_of_full_width_starts_like_W(seed, n, T, d, head, gradient):
    # With K = W and Q = identity the pair has the logits of W, and ∇_K is ∇_W.
    p = problem(seed, batch=(), n=n, T=T, d=d, head=head)
    W = start(seed, d, d)
    one = descent.train(p, initial=W, rule="plain", gradient=gradient, iterations=1)
    two = descent.train(
        p, "KQ", initial=(W, np.eye(d)), rule="plain", ridge=0.0, gradient=gradient, iterations=1
    )
    np.testing.assert_allclose(two.state.K, one.state.W, atol=1e-14)


@FEW
@given(**{**SIZES, "head": st.just("linear"), "T": st.integers(2, 5)})
def test_scaling_tokens_scales_nothing_but_logits(seed, n, T, d, head, gradient):
    # Queries twice as long, W half as large: the same logits: a plain step gains fourfold.
    p = problem(seed, batch=(), n=n, T=T, d=d, head=head)
    longer = AttentionProblem(p.tokens, 2 * p.queries, p.labels, p.head)
    W = start(seed, d, d)
    one = descent.train(p, initial=W, rule="plain", gradient=gradient, step=0.4, **SHORT)
    two = descent.train(longer, initial=W / 2, rule="plain", gradient=gradient, step=0.1, **SHORT)
    np.testing.assert_allclose(one.W, 2 * two.W, atol=1e-12)
