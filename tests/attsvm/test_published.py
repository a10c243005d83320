"""The "as published" side gives the authors' numbers again."""

import numpy as np
import pytest

from attsvm import datasets, descent, metrics, published, selection, svm


def test_tables_can_be_read():
    for name in ("local_convergence", "multi_token", "svm_rank"):
        assert len(published.table(name)) > 30
    assert set(published.trajectories()) == {"A1", "A2"}


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["W", "KQ"])
def test_local_convergence_within_three_standard_errors(weights):
    """All seeds of the published figure, all three curves, from iteration 10 to 2000.

    Starts are random there, so the means differ by sampling: the standard error is that of the
    difference of two means over the same 100 data sets with independent starts.
    """
    seeds = list(range(100))
    problems = datasets.random_problems(seeds, n=6, T=8, d=10)
    run = descent.train(
        problems,
        weights,
        iterations=2000,
        gradient="published",
        seeds=seeds,
        record=lambda k: k % 10 in (0, 9),
    )
    theirs = published.table("local_convergence")
    theirs = theirs[(theirs["run"] == weights) & (theirs["iteration"] >= 10)]
    at = np.searchsorted(run.iterations, theirs["iteration"])
    np.testing.assert_array_equal(run.iterations[at], theirs["iteration"])
    # Their log of iteration k has the weights after k updates, and the attention of the forward
    # pass before the k-th.
    ours = {"max_attention": run.attention.max(-1).mean(-1)[at - 1]}
    chosen = selection.selected_tokens(run.attention[-1])
    for column, norm in (("corr_fro", "fro"), ("corr_nuc", "nuc")):
        solutions = svm.solve_many(problems.tokens, problems.queries, chosen, norm=norm)
        assert all(s.status is svm.Status.SOLVED for s in solutions)
        ours[column] = metrics.correlation(run.W[at], [s.W for s in solutions])
    for column, values in ours.items():
        mean, sd = values.mean(-1), values.std(-1, ddof=1)
        error = np.hypot(sd, theirs[f"{column}_std"]) / np.sqrt(len(seeds))
        # The table has six digits.
        off = np.abs(mean - theirs[f"{column}_mean"]) - 5e-7
        assert (off <= 3 * error).all(), (column, float((off / error).max()))
