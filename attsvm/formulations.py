"""The paper's programs in cvxpy, printed as the paper prints them: the readable truth.

Nothing here is fast. `attsvm.svm` solves the same programs a hundred times faster and proves its
answers; this module is what it is tested and timed against, and what a reader compares with the
paper.

``form="token"`` writes one constraint object for each (i, t), as the paper's formula and the
authors' code do; ``form="matrix"`` writes all of them as one matrix inequality, which cvxpy
compiles faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from attsvm import _checks
from attsvm._typing import ArrayLike, BoolArray, FloatArray
from attsvm.errors import ArgumentError

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = [
    "att_svm",
    "finite_part",
    "general_svm",
    "matrix_rank_as_published",
    "solve_as_published",
    "value_of",
]


def _norm(W: cp.Variable, norm: str | float) -> cp.Expression:
    import cvxpy as cp

    if norm == "fro":
        return cp.norm(W, "fro")
    if norm == "nuc":
        return cp.normNuc(W)
    if isinstance(norm, str):
        raise ArgumentError("norm", "'fro', 'nuc' or a number p > 1", repr(norm))
    return cp.pnorm(cp.vec(W, order="C"), _checks.number("norm", norm, above=1.0))  # type: ignore[arg-type]


def _read(X: ArrayLike, Z: ArrayLike) -> tuple[FloatArray, FloatArray]:
    X = _checks.array("X", X, ndim=3)
    return X, _checks.array("Z", Z, shape=(X.shape[0], X.shape[2]))


def att_svm(
    X: ArrayLike,
    Z: ArrayLike,
    selected: ArrayLike,
    norm: str | float = "fro",
    form: str = "token",
    mask: ArrayLike | None = None,
) -> tuple[cp.Problem, cp.Variable]:
    """Att-SVM (Section 2): min ‖W‖ s.t. (x_{i,α_i} − x_it)' W z_i ≥ 1 for all i and all t ≠ α_i.

    Parameters
    ----------
    X, Z, selected
        (n, T, d), (n, d) and (n,): tokens, queries, selected tokens α.
    norm
        "fro" (Att-SVM), "nuc" (Att-SVM*) or a number p > 1 for the entrywise ℓp norm.
    form
        "token": a constraint object for each (i, t); "matrix": one for all.
    mask
        (n, T) bool, True where a token exists; None: all exist.

    Returns
    -------
    (problem, W)
        A cvxpy problem and its (d, d) variable, not yet solved.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape, dtype or value.
    """
    import cvxpy as cp

    X, Z = _read(X, Z)
    n, T, d = X.shape
    chosen = _checks.integers("selected", selected, shape=(n,), low=0, high=T)
    exists = np.ones((n, T), bool) if mask is None else _checks.booleans("mask", mask, shape=(n, T))
    W = cp.Variable((d, d))
    pairs = [(i, t) for i in range(n) for t in range(T) if t != chosen[i] and exists[i, t]]
    if _checks.choice("form", form, ("token", "matrix")) == "token":
        constraints = [(X[i, chosen[i]] - X[i, t]) @ W @ Z[i] >= 1 for i, t in pairs]
    else:
        D = np.array([X[i, chosen[i]] - X[i, t] for i, t in pairs]).reshape(-1, d)
        queries = Z[[i for i, _ in pairs]]
        constraints = [cp.sum(cp.multiply(D @ W, queries), axis=1) >= 1] if pairs else []
    return cp.Problem(cp.Minimize(_norm(W, norm)), constraints), W


def general_svm(
    X: ArrayLike, Z: ArrayLike, selected: ArrayLike, norm: str | float = "fro"
) -> tuple[cp.Problem, cp.Variable]:
    """Gen-SVM (Section 6) for the selected sets O_i.

    min ‖W‖ s.t. (x_it − x_iτ)' W z_i ≥ 1 for t ∈ O_i, τ ∉ O_i, and = 0 for t, τ ∈ O_i.

    Parameters
    ----------
    X, Z
        (n, T, d) and (n, d).
    selected
        (n, T) bool, True for t ∈ O_i.
    norm
        As in `att_svm`.

    Returns
    -------
    (problem, W)
        As `att_svm`.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape, dtype or value.
    """
    return _with_sets(X, Z, selected, norm, lambda i, t, tau: 0.0, margins=True)


def finite_part(
    X: ArrayLike,
    Z: ArrayLike,
    selected: ArrayLike,
    attention: ArrayLike,
    norm: str | float = "fro",
) -> tuple[cp.Problem, cp.Variable]:
    """W_fin (Section 6): min ‖W‖ s.t. (x_it − x_iτ)' W z_i = log(s_it / s_iτ) for t, τ ∈ O_i.

    Parameters
    ----------
    X, Z, selected, norm
        As in `general_svm`.
    attention
        (n, T), attention weights s, positive on the selected sets.

    Returns
    -------
    (problem, W)
        As `att_svm`.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape, dtype or value.
    """
    s = _checks.array("attention", attention, shape=np.shape(selected))
    return _with_sets(X, Z, selected, norm, lambda i, t, tau: np.log(s[i, t] / s[i, tau]))


def _with_sets(
    X: ArrayLike,
    Z: ArrayLike,
    selected: ArrayLike,
    norm: str | float,
    right: Callable[[int, int, int], float],
    margins: bool = False,
) -> tuple[cp.Problem, cp.Variable]:
    """Equalities for t < τ in O_i with right-hand sides right(i, t, τ), and perhaps margins."""
    import cvxpy as cp

    X, Z = _read(X, Z)
    n, T, d = X.shape
    sets: BoolArray = _checks.booleans("selected", selected, shape=(n, T))
    W = cp.Variable((d, d))
    constraints = []
    for i in range(n):
        inside, outside = np.flatnonzero(sets[i]).tolist(), np.flatnonzero(~sets[i])
        for t in inside:
            if margins:
                constraints += [(X[i, t] - X[i, tau]) @ W @ Z[i] >= 1 for tau in outside]
            constraints += [
                (X[i, t] - X[i, tau]) @ W @ Z[i] == right(i, t, tau) for tau in inside if tau > t
            ]
    return cp.Problem(cp.Minimize(_norm(W, norm)), constraints), W


def value_of(program: tuple[cp.Problem, cp.Variable], **options: Any) -> FloatArray | None:
    """Solve a program of this module.

    Parameters
    ----------
    program
        What `att_svm`, `general_svm` or `finite_part` returned.
    **options
        Passed to ``cvxpy.Problem.solve`` (solver, tolerances).

    Returns
    -------
    ndarray or None
        W (d, d); None if the solver finds the program infeasible.
    """
    problem, W = program
    problem.solve(**options)
    return None if W.value is None else np.asarray(W.value, dtype=np.float64)


def solve_as_published(
    X: ArrayLike, Z: ArrayLike, selected: ArrayLike, norm: str = "fro"
) -> FloatArray | None:
    """The authors' way: a constraint for each token, the default solver.

    Parameters
    ----------
    X, Z, selected, norm
        As in `att_svm`.

    Returns
    -------
    ndarray or None
        W (d, d); None when infeasible.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape, dtype or value.
    """
    return value_of(att_svm(X, Z, selected, norm=norm, form="token"))


def matrix_rank_as_published(W: FloatArray | None, threshold: float = 1e-7) -> int:
    """Rank as the authors' code counts it: singular values above an absolute threshold.

    ``numpy.linalg.matrix_rank(None)`` is 1, so an infeasible instance counts as rank 1.

    Parameters
    ----------
    W
        (d, d), or None where no solution was found.
    threshold
        The published one.
    """
    return int(np.linalg.matrix_rank(W, tol=threshold))  # type: ignore[arg-type]
