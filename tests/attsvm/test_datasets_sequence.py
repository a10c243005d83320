"""Sequences as attention problems: every position asks, and in the causal case looks back only."""

from __future__ import annotations

import numpy as np
import pytest

from attsvm import datasets, descent, metrics, selection, svm

SIZES = dict(n=3, T=4, d=8)


@pytest.mark.parametrize("causal", [False, True])
def test_every_position_asks_its_own_sequence(causal):
    problem = datasets.sequence_problem(7, **SIZES, causal=causal)
    assert (problem.n, problem.T, problem.d) == (12, 4, 8)
    for i in range(3):
        for k in range(4):
            row = 4 * i + k
            np.testing.assert_array_equal(problem.tokens[row], problem.tokens[4 * i])
            np.testing.assert_array_equal(problem.queries[row], problem.tokens[row, k])
            if causal:
                assert problem.mask[row].tolist() == [t <= k for t in range(4)]
    plain = datasets.sequence_problem(7, **SIZES)
    assert plain.mask is None
    np.testing.assert_array_equal(plain.tokens, problem.tokens)
    np.testing.assert_array_equal(plain.labels, problem.labels)
    np.testing.assert_allclose(np.linalg.norm(problem.tokens, axis=-1), 1.0, atol=1e-6)
    assert len(np.unique(problem.tokens[::4].round(6).reshape(-1, 8), axis=0)) == 12


def test_labels_by_position_or_by_sequence():
    of_sequence = datasets.sequence_problems(range(8), **SIZES, labels="sequence").labels
    of_position = datasets.sequence_problems(range(8), **SIZES).labels
    of_sequence, of_position = of_sequence.reshape(8, 3, 4), of_position.reshape(8, 3, 4)
    assert (of_sequence == of_sequence[..., :1]).all()
    assert not (of_position == of_position[..., :1]).all()
    assert set(np.unique(of_sequence)) == {-1.0, 1.0}


def test_a_position_that_sees_one_token_constrains_nothing():
    problem = datasets.sequence_problem(2, **SIZES, causal=True)
    tokens = selection.optimal_tokens(problem)
    assert (tokens[::4] == 0).all()
    solution = svm.solve(problem.tokens, problem.queries, tokens, mask=problem.mask)
    assert (solution.dual[::4] == 0).all()
    later = np.arange(12) % 4 > 0
    without = svm.solve(
        problem.tokens[later], problem.queries[later], tokens[later], mask=problem.mask[later]
    )
    np.testing.assert_allclose(solution.W, without.W, atol=1e-9)


def test_attention_never_looks_ahead():
    problems = datasets.sequence_problems(range(3), **SIZES, causal=True)
    run = descent.train(problems, iterations=50, seeds=range(3))
    assert (run.attention[-1][~problems.mask] == 0).all()
    assert (run.attention[-1][:, ::4, 0] == 1).all()


@pytest.mark.parametrize("causal", [False, True])
def test_descent_turns_to_the_position_indexed_svm(causal):
    seeds = range(10)
    problems = datasets.sequence_problems(seeds, **SIZES, causal=causal)
    run = descent.train(problems, iterations=2000, seeds=seeds)
    chosen = selection.selected_tokens(run.attention[-1])
    solutions = svm.solve_many(problems.tokens, problems.queries, chosen, mask=problems.mask)
    assert all(s.status is svm.Status.SOLVED for s in solutions)
    assert metrics.correlation(run.W[-1], [s.W for s in solutions]).mean() > 0.97
