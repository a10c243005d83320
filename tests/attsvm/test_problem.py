"""The attention problem: what fits together, and what is refused."""

import numpy as np
import pytest

from attsvm import AttentionProblem, datasets
from attsvm.heads import LinearHead
from attsvm.problem import stack


def parts(**changes):
    rng = np.random.default_rng(0)
    given = dict(
        tokens=rng.normal(size=(3, 4, 5)),
        queries=rng.normal(size=(3, 5)),
        labels=np.array([1.0, -1.0, 1.0]),
        head=LinearHead(rng.normal(size=5)),
    )
    return given | changes


def test_sizes_and_scores():
    given = parts()
    problem = AttentionProblem(**given)
    assert (problem.n, problem.T, problem.d, problem.batch_shape) == (3, 4, 5, ())
    by_hand = [
        [y * float(x @ given["head"].v) for x in X]
        for y, X in zip(given["labels"], given["tokens"], strict=True)
    ]
    np.testing.assert_allclose(problem.scores(), by_hand, rtol=1e-14)


def test_masked_tokens_score_minus_infinity():
    mask = np.ones((3, 4), dtype=bool)
    mask[1, 2] = False
    scores = AttentionProblem(**parts(mask=mask)).scores()
    assert scores[1, 2] == -np.inf
    assert np.isfinite(scores[mask]).all()


def test_stacking_and_taking_apart():
    singles = [datasets.random_problem(seed, n=3, T=4, d=5) for seed in range(4)]
    many = stack(singles)
    assert len(many) == 4
    assert many.batch_shape == (4,)
    for i, single in enumerate(singles):
        again = many.instance(i)
        np.testing.assert_array_equal(again.tokens, single.tokens)
        np.testing.assert_array_equal(again.head.v, single.head.v)
        np.testing.assert_array_equal(many.scores()[i], single.scores())
    assert len(many.instance(slice(1, 3))) == 2


def test_a_single_instance_has_no_instances():
    one = datasets.random_problem(0, n=2, T=3, d=4)
    with pytest.raises(TypeError, match="no length"):
        len(one)
