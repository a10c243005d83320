"""What must not change when the same instance is written differently."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from descenttools import HEADS, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from attsvm import descent

FEW = settings(max_examples=20, deadline=None)


@st.composite
def cases(draw, heads=HEADS, shortest=1, **batch):
    """An instance, starting weights, how to train them, and a generator of the case's own."""
    n, d = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    seed, T = draw(st.integers(0, 10_000)), draw(st.integers(shortest, 5))
    head, gradient = draw(st.sampled_from(heads)), draw(st.sampled_from(["exact", "published"]))
    p = problem(seed, **{"batch": ()} | batch, n=n, T=T, d=d, head=head)
    g = np.random.default_rng(seed)
    # Rounding differs between equal formulas, and grows with the iterations: a short, plain run.
    how = {"gradient": gradient, "iterations": 25, "rule": "plain"}
    return p, 0.3 * g.normal(size=(*p.batch_shape, d, d)), how, g


@FEW
@given(cases(batch=(4,)))
def test_permuting_instances(case):
    p, W, how, g = case
    order, how = g.permutation(4), how | {"rule": "normalized"}
    one = descent.train(p, initial=W, **how)
    two = descent.train(p.instance(order), initial=W[order], **how)
    assert np.array_equal(one.W[:, order], two.W)


@FEW
@given(cases())
def test_permuting_tokens(case):
    p, W, how, g = case
    order = g.permutation(p.T)
    one = descent.train(p, initial=W, **how)
    two = descent.train(replace(p, tokens=p.tokens[:, order]), initial=W, **how)
    np.testing.assert_allclose(one.W, two.W, atol=1e-11)
    np.testing.assert_allclose(one.attention[..., order], two.attention, atol=1e-11)


@FEW
@given(cases())
def test_orthogonal_change_of_basis(case):
    p, W, how, g = case
    U, _ = np.linalg.qr(g.normal(size=(p.d, p.d)))
    turned = replace(
        p, tokens=p.tokens @ U.T, queries=p.queries @ U.T, head=p.head.to(lambda v: U @ v)
    )
    one = descent.train(p, initial=W, **how)
    two = descent.train(turned, initial=U @ W @ U.T, **how)
    np.testing.assert_allclose(U @ one.W @ U.T, two.W, atol=1e-10)


@FEW
@given(cases())
def test_pair_of_full_width_starts_like_W(case):
    # With K = W and Q = identity the pair has the logits of W, and ∇_K is ∇_W.
    p, W, how, _ = case
    how |= {"ridge": 0.0, "iterations": 1}
    one = descent.train(p, initial=W, **how)
    two = descent.train(p, "KQ", initial=(W, np.eye(p.d)), **how)
    np.testing.assert_allclose(two.state.K, one.state.W, atol=1e-14)


@FEW
@given(cases(heads=("linear",), shortest=2))
def test_scaling_tokens_scales_nothing_but_logits(case):
    # Queries twice as long, W half as large: the same logits: a plain step gains fourfold.
    p, W, how, _ = case
    longer = replace(p, queries=2 * p.queries)
    one = descent.train(p, initial=W, step=0.4, **how)
    two = descent.train(longer, initial=W / 2, step=0.1, **how)
    np.testing.assert_allclose(one.W, 2 * two.W, atol=1e-12)
