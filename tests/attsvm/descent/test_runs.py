"""What a run records, how it goes on, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from descenttools import HEADS, cosine, loss, problem

from attsvm import datasets, descent
from attsvm.errors import ArgumentError
from attsvm.heads import LinearHead
from attsvm.problem import AttentionProblem, stack

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
    settings = {
        "parameterization": parameterization,
        "gradient": gradient,
        "iterations": 60,
        "seeds": range(11),
        "record": descent.every(20),
        "keep": ("W", "attention", "logits", "loss"),
    }
    whole = descent.train(p, chunk=100, **settings)
    for chunk in (1, 2, 5, 10):
        same(whole, descent.train(p, chunk=chunk, **settings))
    one = descent.train(p.instance(4), **{**settings, "seeds": 4})
    assert np.array_equal(one.W, whole.W[:, 4])


@BOTH
@GRADIENTS
def test_continuing_is_one_run(parameterization, gradient):
    p = problem(2)
    settings = {
        "parameterization": parameterization,
        "gradient": gradient,
        "record": descent.every(10),
        "step": lambda k: 0.2 / (1 + k / 50),
    }
    whole = descent.train(p, iterations=90, seeds=range(3), **settings)
    first = descent.train(p, iterations=40, seeds=range(3), **settings)
    second = descent.train(p, iterations=50, initial=first.state, **settings)
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
    run = descent.train(
        p,
        "KQ",
        iterations=25,
        seeds=range(3),
        width=2,
        record=descent.at([0, 3]),
        keep=("W", "K", "Q", "attention", "logits", "loss"),
        measure={"norm": lambda snap: np.linalg.norm(snap.W, axis=(1, 2))},
    )
    assert run.iterations.tolist() == [0, 3, 25]
    assert run.K.shape == run.Q.shape == (3, 3, 6, 2)
    np.testing.assert_allclose(run.W, run.K @ np.swapaxes(run.Q, -1, -2), atol=1e-14)
    logits = np.einsum("bitd,rbde,bie->rbit", p.tokens, run.W, p.queries)
    np.testing.assert_allclose(run.logits, logits, atol=1e-12)
    weights = np.exp(logits)
    np.testing.assert_allclose(run.attention, weights / weights.sum(-1, keepdims=True), atol=1e-13)
    np.testing.assert_allclose(run.measures["norm"], np.linalg.norm(run.W, axis=(-2, -1)))
    import torch

    direct = [[float(loss(p.instance(i), torch.tensor(W[i]))) for i in range(3)] for W in run.W]
    np.testing.assert_allclose(run.loss, direct, rtol=1e-12)
    assert (np.diff(run.loss, axis=0) < 0).all()


def test_default_keeps_the_last_only():
    run = descent.train(problem(7), iterations=5)
    assert run.iterations.tolist() == [5] and run.W.shape[0] == 1
    assert run.logits is None and run.K is None
    assert np.array_equal(run.W[-1], run.state.W)


def test_records_do_not_change_the_run():
    p = problem(8)
    quiet = descent.train(p, iterations=30)
    loud = descent.train(p, iterations=30, record=descent.every(1), keep=("W",))
    assert np.array_equal(quiet.W[-1], loud.W[-1])
    watched = descent.train(
        p, iterations=30, record=descent.every(1), keep=("loss", "log_gradient_norm")
    )
    assert np.array_equal(quiet.state.W, watched.state.W)


def test_zero_iterations_give_the_start():
    W = np.random.default_rng(0).normal(size=(6, 6))
    run = descent.train(problem(9), iterations=0, initial=W)
    assert run.iterations.tolist() == [0]
    assert np.array_equal(run.W[-1], np.broadcast_to(W, (3, 6, 6)))


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


def test_decaying_steps():
    p = problem(12)
    run = descent.train(p, rule="decaying", step=0.3, iterations=3, record=descent.every(1))
    lengths = np.linalg.norm(np.diff(run.W, axis=0), axis=(-2, -1))
    np.testing.assert_allclose(lengths, (0.3 / np.sqrt([1, 2, 3]))[:, None] * np.ones(3))


def test_normalized_steps_have_their_length():
    p = problem(13)
    run = descent.train(
        p, "KQ", iterations=4, seeds=range(3), record=descent.every(1), keep=("K", "Q")
    )
    for array in (run.K, run.Q):
        np.testing.assert_allclose(np.linalg.norm(np.diff(array, axis=0), axis=(-2, -1)), 0.1)


@GRADIENTS
def test_polyak_is_the_textbook_step(gradient):
    from descenttools import autograd

    p = problem(14)
    start = 0.5 * np.random.default_rng(14).normal(size=(3, 6, 6))
    run = descent.train(p, rule="polyak", step=1.0, iterations=1, gradient=gradient, initial=start)
    best = np.logaddexp(0, -p.scores().max(-1)).mean(-1)
    import torch

    for i in range(3):
        (g,) = autograd(p.instance(i), [start[i]])
        gap = float(loss(p.instance(i), torch.tensor(start[i]))) - best[i]
        move = gap * g / (g**2).sum()
        if np.linalg.norm(move) > 10:
            move *= 10 / np.linalg.norm(move)
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


NAN = np.full((6, 6), np.nan)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"parameterization": "V"}, "parameterization"),
        ({"gradient": "approximate"}, "gradient"),
        ({"rule": "adam"}, "rule"),
        ({"step": -0.1}, "step"),
        ({"step": 0.0}, "step"),
        ({"step": float("nan")}, "step"),
        ({"step": lambda k: -1.0}, "step"),
        ({"iterations": -1}, "iterations"),
        ({"iterations": 1.5}, "iterations"),
        ({"ridge": -1.0}, "ridge"),
        ({"ridge": 1.0, "log_ridge": 0.0}, "log_ridge"),
        ({"width": 3}, "width"),
        ({"width": 0, "parameterization": "KQ"}, "width"),
        ({"initial": np.zeros((5, 5))}, "initial"),
        ({"initial": np.zeros((2, 6, 6))}, "initial"),
        ({"initial": NAN}, "initial"),
        ({"initial": np.zeros((6, 6)), "seeds": [0, 1, 2]}, "seeds"),
        ({"parameterization": "KQ"}, "initial"),
        ({"parameterization": "KQ", "initial": np.zeros((6, 6))}, "initial"),
        ({"parameterization": "KQ", "initial": (np.zeros((6, 2)), np.zeros((6, 3)))}, "initial"),
        ({"parameterization": "KQ", "initial": descent.State(0, W=np.zeros((6, 6)))}, "initial"),
        ({"seeds": [0, 1]}, "seeds"),
        ({"seeds": [0, 1, -2]}, "seeds"),
        ({"record": [100]}, "record"),
        ({"record": [0.5]}, "record"),
        ({"keep": ("W", "V")}, "keep"),
        ({"keep": ("K",)}, "keep"),
        ({"measure": {"one": lambda snap: 1.0}}, "measure"),
        ({"chunk": 0}, "chunk"),
        ({"device": "abacus"}, "device"),
        ({"target": 0.1}, "target"),
        ({"rule": "polyak", "target": 0.1}, "target"),
        ({"rule": "polyak", "ridge": 0.1}, "ridge"),
    ],
)
def test_wrong_arguments(arguments, name):
    with pytest.raises(ArgumentError) as caught:
        descent.train(problem(19), **{"iterations": 2, **arguments})
    assert name in caught.value.argument
    assert caught.value.expected and caught.value.got


def test_wrong_problem():
    with pytest.raises(ArgumentError, match="problem"):
        descent.train(np.zeros((2, 3, 4)))
    with pytest.raises(ArgumentError, match="problems"):
        stack([])


def test_polyak_needs_a_target_for_other_heads():
    p = problem(20, head="quadratic")
    with pytest.raises(ArgumentError, match="target"):
        descent.train(p, rule="polyak", iterations=1)
    run = descent.train(p, rule="polyak", iterations=5, target=0.0, keep="loss", record=[0, 5])
    assert (run.loss[1] < run.loss[0]).all()


@pytest.mark.parametrize("step", [0, -1, 1.5])
def test_every_is_checked(step):
    with pytest.raises(ArgumentError, match="step"):
        descent.every(step)


def test_at_is_checked():
    with pytest.raises(ArgumentError, match="iterations"):
        descent.at([-1])
    assert not descent.at([])(0)


def test_the_thread_setting_is_the_callers_again():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen = []
        descent.train(
            datasets.random_problem(0, n=2, T=3, d=4),
            iterations=3,
            record=descent.every(1),
            measure={"threads": lambda snapshot: seen.append(torch.get_num_threads()) or [0.0]},
        )
        assert set(seen) == {1}
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
