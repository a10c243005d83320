"""The authors' instances, number by number."""

import numpy as np
import pytest
import torch

from attsvm import datasets, published, selection, svm


@pytest.mark.parametrize(("name", "T"), [("A1", 5), ("A2", 3)])
def test_planar_problems_are_the_authors_bit_for_bit(name, T):
    problem, theirs = datasets.planar_problem(T), published.trajectories()[name]
    np.testing.assert_array_equal(problem.tokens, theirs["X"])
    np.testing.assert_array_equal(problem.queries, theirs["Z"])
    np.testing.assert_array_equal(problem.head.v, theirs["v"])
    assert selection.optimal_tokens(problem).tolist() == theirs["optimal"]


def test_random_problem_follows_the_protocol_draw_by_draw():
    n, T, d, seed = 3, 4, 5, 17
    generator = torch.Generator().manual_seed(seed)
    v = torch.randn(d, generator=generator)
    Y = torch.randn(n, generator=generator)
    X = torch.randn(n, T, d, generator=generator)
    Z = torch.randn(n, d, generator=generator)
    problem = datasets.random_problem(seed, n=n, T=T, d=d)
    np.testing.assert_allclose(problem.head.v, v.numpy() / np.linalg.norm(v.numpy()), rtol=1e-6)
    np.testing.assert_array_equal(problem.labels, np.sign(Y.numpy()))
    for drawn, got in ((X, problem.tokens), (Z, problem.queries)):
        rows = drawn.numpy()
        np.testing.assert_allclose(
            got, rows / np.linalg.norm(rows, axis=-1, keepdims=True), rtol=1e-6
        )


def test_numbers_are_single_precision_in_double():
    problem = datasets.random_problem(3, n=2, T=3, d=4)
    assert problem.tokens.dtype == np.float64
    np.testing.assert_array_equal(problem.tokens, problem.tokens.astype(np.float32))


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("random", {}),
        ("relu", {}),
        ("orthonormal", {"ridge": 0.1}),
        ("equal_score", {}),
        ("sequence", {}),
    ],
)
def test_an_instance_does_not_depend_on_its_batch(name, more):
    sizes = {"n": 3, "T": 4, "d": 5, **more}
    many = getattr(datasets, f"{name}_problems")([5, 2, 9], **sizes)
    alone = getattr(datasets, f"{name}_problem")(2, **sizes)
    for part in ("tokens", "queries", "labels"):
        np.testing.assert_array_equal(getattr(many, part)[1], getattr(alone, part))
    np.testing.assert_array_equal(many.scores()[1], alone.scores())
    assert not np.array_equal(many.tokens[0], many.tokens[1])


def test_self_attention_asks_with_the_first_token():
    problem = datasets.random_problem(0, n=3, T=4, d=5, attention="self")
    np.testing.assert_array_equal(problem.queries, problem.tokens[:, 0])


def test_orthonormal_tokens_are_orthonormal():
    problem = datasets.orthonormal_problem(0, n=2, T=4, d=6, ridge=0.1)
    gram = problem.tokens @ problem.tokens.swapaxes(-1, -2)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(4), gram.shape), atol=1e-12)


def test_the_published_ranks_count_infeasible_instances_as_one():
    """Certified ranks with "infeasible counts as 1" give the published Frobenius means."""
    rows = published.table("svm_rank").set_index(["n", "T", "d"])["rank_fro_mean"]
    for n, T, d in ((15, 5, 3), (15, 5, 4), (10, 5, 4), (5, 10, 3)):
        problems = datasets.random_problems(range(100), n=n, T=T, d=d)
        found = svm.solve_many(
            problems.tokens, problems.queries, selection.optimal_tokens(problems)
        )
        counted = [s.rank() if s.status is svm.Status.SOLVED else 1 for s in found]
        # The table is rounded to two digits; 0.02 allows for two borderline singular values.
        assert np.mean(counted) == pytest.approx(rows[n, T, d], abs=0.025), (n, T, d)
