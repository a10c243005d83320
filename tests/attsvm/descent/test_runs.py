"""What a run records, how it goes on, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from descenttools import HEADS, autograd, cosine, loss, problem

from attsvm import descent
from attsvm.heads import LinearHead
from attsvm.problem import AttentionProblem

BOTH = pytest.mark.parametrize("parameterization", ["W", "KQ"])
GRADIENTS = pytest.mark.parametrize("gradient", ["exact", "published"])


def same(a, b):
    for name in ("iterations", "W", "K", "Q", "attention", "logits", "loss"):
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert np.array_equal(one, other), name
    for name, value in a.state.arrays.items():
        assert np.array_equal(value, b.state.arrays[name])


@BOTH
@GRADIENTS
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("masked", [False, True])
def test_chunks_change_nothing(parameterization, gradient, head, masked):
    p = problem(1, batch=(11,), n=3, T=4, d=5, head=head, masked=masked)
    keep = ("W", "attention", "logits", "loss")
    how = {"gradient": gradient, "iterations": 60, "record": descent.every(20), "keep": keep}
    whole = descent.train(p, parameterization, chunk=100, seeds=range(11), **how)
    for chunk in (1, 2, 5, 10):
        same(whole, descent.train(p, parameterization, chunk=chunk, seeds=range(11), **how))
    one = descent.train(p.instance(4), parameterization, seeds=4, **how)
    assert np.array_equal(one.W, whole.W[:, 4])


@BOTH
@GRADIENTS
def test_continuing_is_one_run(parameterization, gradient):
    p = problem(2)
    how = {"gradient": gradient, "record": descent.every(10), "step": lambda k: 0.2 / (1 + k / 50)}
    whole = descent.train(p, parameterization, iterations=90, seeds=range(3), **how)
    first = descent.train(p, parameterization, iterations=40, seeds=range(3), **how)
    second = descent.train(p, parameterization, iterations=50, initial=first.state, **how)
    assert (second.state.iteration, whole.state.iteration) == (90, 90)
    joined = np.concatenate([first.iterations, second.iterations])
    assert joined.tolist() == whole.iterations.tolist() == list(range(0, 91, 10))
    assert np.array_equal(np.concatenate([first.W, second.W]), whole.W)


def test_starting_weights_belong_to_the_seed():
    p = problem(3, batch=(4,), d=6)
    whole = descent.train(p, iterations=0, seeds=[7, 8, 9, 7]).W[-1]
    assert np.array_equal(whole[0], whole[3])
    assert np.array_equal(descent.train(p.instance(2), iterations=0, seeds=9).W[-1], whole[2])
    bound = 1 / np.sqrt(6)
    assert np.abs(whole).max() <= bound
    many = descent.random_weights(range(500), [(6, 6)])[0]
    assert abs(many.mean()) < 0.01
    assert many.std() == pytest.approx(bound / np.sqrt(3), rel=0.02)


def test_leading_axes():
    p = problem(4, batch=(2, 3))
    run = descent.train(p, iterations=20, seeds=np.arange(6).reshape(2, 3), record=[0, 20])
    assert run.W.shape == (2, 2, 3, 6, 6)
    assert run.attention.shape == (2, 2, 3, 4, 5)
    inner = descent.train(p.instance(1).instance(2), iterations=20, seeds=5)
    assert np.array_equal(inner.W[-1], run.W[-1, 1, 2])


def test_one_head_for_all_instances():
    p = problem(5)
    shared = AttentionProblem(p.tokens, p.queries, p.labels, LinearHead(p.head.v[0]))
    own = AttentionProblem(p.tokens, p.queries, p.labels, LinearHead(np.tile(p.head.v[0], (3, 1))))
    assert np.array_equal(
        descent.train(shared, iterations=30).W, descent.train(own, iterations=30).W
    )


def test_what_is_recorded():
    p = problem(6)
    how = {"record": descent.at([0, 3]), "keep": ("W", "K", "Q", "attention", "logits", "loss")}
    norm = {"norm": lambda snap: np.linalg.norm(snap.W, axis=(1, 2))}
    run = descent.train(p, "KQ", iterations=25, seeds=range(3), width=2, measure=norm, **how)
    assert run.iterations.tolist() == [0, 3, 25]
    assert run.K.shape == run.Q.shape == (3, 3, 6, 2)
    np.testing.assert_allclose(run.W, run.K @ np.swapaxes(run.Q, -1, -2), atol=1e-14)
    logits = np.einsum("bitd,rbde,bie->rbit", p.tokens, run.W, p.queries)
    np.testing.assert_allclose(run.logits, logits, atol=1e-12)
    weights = np.exp(logits)
    np.testing.assert_allclose(run.attention, weights / weights.sum(-1, keepdims=True), atol=1e-13)
    np.testing.assert_allclose(run.measures["norm"], np.linalg.norm(run.W, axis=(-2, -1)))
    direct = [[float(loss(p.instance(i), torch.tensor(W[i]))) for i in range(3)] for W in run.W]
    np.testing.assert_allclose(run.loss, direct, rtol=1e-12)
    assert (np.diff(run.loss, axis=0) < 0).all()


def test_default_keeps_the_last_only():
    run = descent.train(problem(7), iterations=5)
    assert run.iterations.tolist() == [5] and run.W.shape[0] == 1
    assert run.logits is None and run.K is None
    assert np.array_equal(run.W[-1], run.state.W)
    W = np.random.default_rng(0).normal(size=(6, 6))
    start = descent.train(problem(9), iterations=0, initial=W)
    assert start.iterations.tolist() == [0]
    assert np.array_equal(start.W[-1], np.broadcast_to(W, (3, 6, 6)))


@pytest.mark.parametrize("keep", [("W",), ("loss", "log_gradient_norm")])
def test_records_do_not_change_the_run(keep):
    quiet = descent.train(problem(8), iterations=30)
    loud = descent.train(problem(8), iterations=30, record=descent.every(1), keep=keep)
    assert np.array_equal(quiet.state.W, loud.state.W)


def test_arguments_are_left_alone():
    p = problem(10)
    W = np.ones((3, 6, 6))
    descent.train(p, iterations=3, initial=W)
    assert (W == 1).all()
    state = descent.train(p, iterations=3, initial=W).state
    before = state.W.copy()
    descent.train(p, iterations=3, initial=state)
    assert np.array_equal(state.W, before)


def test_absent_tokens_do_not_matter():
    p = problem(11, masked=True)
    other = p.tokens.copy()
    other[~p.mask] = 1e3
    changed = AttentionProblem(other, p.queries, p.labels, p.head, p.mask)
    one, two = (descent.train(q, iterations=100) for q in (p, changed))
    np.testing.assert_allclose(one.W, two.W, atol=1e-9)
    assert (one.attention[-1][~p.mask] == 0).all()


@pytest.mark.parametrize(("rule", "lengths"), [("normalized", [1, 1, 1]), ("decaying", [1, 2, 3])])
def test_normalized_steps_have_their_length(rule, lengths):
    how = {"step": 0.3, "iterations": 3, "record": descent.every(1), "keep": ("K", "Q")}
    run = descent.train(problem(13), "KQ", rule=rule, seeds=range(3), **how)
    for array in (run.K, run.Q):
        found = np.linalg.norm(np.diff(array, axis=0), axis=(-2, -1))
        np.testing.assert_allclose(found, np.tile(0.3 / np.sqrt(lengths), (3, 1)).T)


@GRADIENTS
def test_polyak_is_the_textbook_step(gradient):
    p = problem(14)
    start = 0.5 * np.random.default_rng(14).normal(size=(3, 6, 6))
    run = descent.train(p, rule="polyak", step=1.0, iterations=1, gradient=gradient, initial=start)
    best = np.logaddexp(0, -p.scores().max(-1)).mean(-1)
    for i in range(3):
        (g,) = autograd(p.instance(i), [start[i]])
        gap = float(loss(p.instance(i), torch.tensor(start[i]))) - best[i]
        move = gap * g / (g**2).sum()
        move *= min(1.0, 10 / np.linalg.norm(move))
        np.testing.assert_allclose(start[i] - run.W[-1, i], move, rtol=1e-9)


def test_polyak_steps_on_beyond_the_smallest_float():
    p = problem(15, batch=(), n=2, T=3, d=6)
    settings = {"rule": "polyak", "step": 1.0, "keep": ("W", "log_gradient_norm")}
    run = descent.train(p, iterations=2000, record=[1000, 2000], **settings)
    steady = descent.train(p, iterations=4000)
    assert np.isfinite(run.W).all()
    assert np.linalg.norm(run.W[1]) > np.linalg.norm(run.W[0]) + 1
    assert run.log_gradient_norm[1] < np.log(1e-308)
    assert cosine(run.W[-1], steady.W[-1]) > 0.99


def test_a_rule_of_ones_own():
    class Sign:
        needs_gap = False

        def apply(self, length, arrays, gradients, c, gap):
            for array, gradient in zip(arrays, gradients, strict=True):
                array.sub_(gradient.sign(), alpha=length)

    run = descent.train(problem(16), rule=Sign(), step=0.5, iterations=1)
    assert (np.abs(run.W[-1]) == 0.5).all()


def test_divergence_is_reported():
    with pytest.raises(descent.DivergedError, match="W of instance 0"):
        descent.train(problem(17), rule="plain", step=1e308, iterations=50, ridge=1.0)


def test_progress(capsys):
    descent.train(problem(18), iterations=3, progress=True)
    assert "descent" in capsys.readouterr().err


def test_polyak_with_a_target_for_other_heads():
    how = {"rule": "polyak", "iterations": 5, "keep": "loss", "record": [0, 5]}
    run = descent.train(problem(20, head="quadratic"), target=0.0, **how)
    assert (run.loss[1] < run.loss[0]).all()
    assert not descent.at([])(0)


def test_the_thread_setting_is_the_callers_again():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        threads = {"threads": lambda snapshot: np.full(3, torch.get_num_threads())}
        run = descent.train(problem(21), iterations=3, record=descent.every(1), measure=threads)
        assert (run.measures["threads"] == 1).all()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("size", [1e-150, 1e-163, 1e-300, 1e-320, 0.0])
def test_a_normalised_step_has_full_length_however_faint_the_gradient(size):
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(3, 4, 4))
    array = torch.zeros(3, 4, 4, dtype=torch.float64)
    gradient = torch.tensor(direction)
    gradient[1] *= size  # beside two gradients of ordinary size
    descent.Normalized().apply(0.1, [array], [gradient.clone()], torch.zeros(3), None)
    lengths = np.linalg.norm(array.numpy(), axis=(-2, -1))
    np.testing.assert_allclose(lengths[[0, 2]], 0.1, rtol=1e-12)
    if size == 0.0:
        assert lengths[1] == 0.0
    else:
        # A subnormal gradient has few digits of direction left, but the step still has its length.
        np.testing.assert_allclose(lengths[1], 0.1, rtol=1e-12 if size > 1e-307 else 1e-2)
