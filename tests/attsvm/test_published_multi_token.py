"""Several selected tokens: our runs under the published rule against runs of the authors' code.

Their data seeds are ours; their starts are random.  So an instance may be accepted there and not
here, and means agree within sampling error only.
"""

from __future__ import annotations

import numpy as np
import pytest

from attsvm import datasets, descent, metrics, published, selection, svm


def rerun(seeds, d):
    """Fates and correlations (Gen-SVM with finite part, W_mm, one token) of some seeds."""
    problems = datasets.relu_problems(seeds, n=3, T=4, d=d)
    run = descent.train(problems, iterations=2001, gradient="published", seeds=seeds)
    W, attention = run.W[-1], run.attention[-1]
    fates = np.array(selection.acceptance(problems, attention))
    found = []
    for i in np.flatnonzero(fates == "kept"):
        X, Z, s = problems.tokens[i], problems.queries[i], attention[i]
        general = svm.solve_general(X, Z, selection.selected_sets(s), s)
        single = svm.solve(X, Z, s.argmax(-1), on_infeasible="return")
        assert single.status is svm.Status.SOLVED
        targets = [general.combined(W[i]), general.W_mm, single.W]
        found.append(metrics.correlation(W[i], targets))
    return fates, np.array(found)


def agree(ours, theirs):
    """Whether two samples of a quantity have the same mean, within four standard errors."""
    error = np.hypot(ours.std(ddof=1) / len(ours) ** 0.5, theirs.std(ddof=1) / len(theirs) ** 0.5)
    return abs(ours.mean() - theirs.mean()) <= 4 * error


@pytest.mark.parametrize("d", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_shares_and_correlations_over_the_same_seeds(d):
    theirs = published.table("multi_token").query("d == @d")
    seeds = list(range(1, theirs["seed"].max() + 1))
    fates, found = rerun(seeds, d)
    share, their_share = (fates == "kept").mean(), len(theirs) / len(seeds)
    error = (2 * their_share * (1 - their_share) / len(seeds)) ** 0.5
    assert abs(share - their_share) <= 3 * error
    accepted = set(np.array(seeds)[fates == "kept"])
    # Far more seeds in common than two independent draws of that share would have.
    assert len(accepted & set(theirs["seed"])) > 2 * share * len(theirs)
    columns = ("corr_svmeq", "corr_mm", "corr_onetoken")
    for column, values in zip(columns, found.T, strict=True):
        assert agree(values, theirs[column].to_numpy()), column


@pytest.mark.slow
@pytest.mark.parametrize("d", [8, 10])
def test_correlations_on_the_accepted_seeds(d):
    theirs = published.table("multi_token").query("d == @d")
    fates, found = rerun(theirs["seed"].tolist(), d)
    assert (fates == "kept").mean() > 0.6
    columns = ("corr_svmeq", "corr_mm", "corr_onetoken")
    for column, values in zip(columns, found.T, strict=True):
        assert agree(values, theirs[column].to_numpy()), column
