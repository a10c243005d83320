"""scikit-learn as a third opinion, beside our solvers and cvxpy."""

import numpy as np
import pytest
from sklearn.svm import SVC

from attsvm import datasets, selection, svm


@pytest.mark.parametrize(("n", "T", "d"), [(1, 3, 4), (2, 4, 4), (4, 5, 6)])
@pytest.mark.parametrize("seed", range(3))
def test_the_att_svm_is_a_linear_svm_without_intercept(n, T, d, seed):
    """Rows (x_α − x_t) z' of class +1, their negatives of class −1: no intercept is left."""
    problem = datasets.random_problem(seed, n=n, T=T, d=d)
    tokens = selection.optimal_tokens(problem)
    ours = svm.solve(problem.tokens, problem.queries, tokens)
    rows = np.array(
        [
            np.outer(X[tokens[i]] - X[t], problem.queries[i]).ravel()
            for i, X in enumerate(problem.tokens)
            for t in range(T)
            if t != tokens[i]
        ]
    )
    theirs = SVC(kernel="linear", C=1e10, tol=1e-10)
    theirs.fit(np.vstack([rows, -rows]), np.repeat([1, -1], len(rows)))
    assert abs(theirs.intercept_[0]) < 1e-6
    W = theirs.coef_.reshape(d, d)
    assert np.linalg.norm(ours.W) > 0.5
    np.testing.assert_allclose(W, ours.W, rtol=0, atol=1e-5 * np.linalg.norm(ours.W))
