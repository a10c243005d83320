"""The paper's programs in cvxpy, printed as the paper prints them: the readable truth.

Nothing here is fast.  `attsvm.svm` solves the same programs a hundred times faster and proves its
answers; this module is what it is tested and timed against, and what a reader compares with the
paper.  One constraint object for each (i, t), ``form="token"``, is what the paper's formula and the
authors' code write; one matrix inequality for all, ``form="matrix"``, cvxpy compiles faster.
"""

from __future__ import annotations

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


def _program(
    X: FloatArray,
    Z: FloatArray,
    sets: BoolArray,
    rivals: BoolArray,
    norm: str | float,
    form: str = "token",
    s: FloatArray | None = None,
) -> tuple[cp.Problem, cp.Variable]:
    """min ‖W‖: tokens in `sets` lead `rivals` by 1, and each other by log ratios of s, or 0."""
    import cvxpy as cp

    n, T, d = X.shape
    W = cp.Variable((d, d))
    log_s = np.zeros((n, T)) if s is None else np.log(np.where(sets, s, 1.0))
    above, equal = (
        [(i, t, tau) for i, t, tau in np.ndindex(n, T, T) if sets[i, t] and others[i, tau]]
        for others in (rivals, sets)
    )
    if _checks.choice("form", form, ("token", "matrix")) == "token" or not above:
        constraints = [(X[i, t] - X[i, tau]) @ W @ Z[i] >= 1 for i, t, tau in above]
    else:
        i, t, tau = np.array(above).T
        constraints = [cp.sum(cp.multiply((X[i, t] - X[i, tau]) @ W, Z[i]), axis=1) >= 1]
    constraints += [
        (X[i, t] - X[i, tau]) @ W @ Z[i] == log_s[i, t] - log_s[i, tau]
        for i, t, tau in equal
        if t < tau
    ]
    return cp.Problem(cp.Minimize(_norm(W, norm)), constraints), W


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
    X, Z = _read(X, Z)
    n, T, _ = X.shape
    chosen = _checks.integers("selected", selected, shape=(n,), low=0, high=T)
    exists = np.ones((n, T), bool) if mask is None else _checks.booleans("mask", mask, shape=(n, T))
    one = np.arange(T) == chosen[:, None]
    return _program(X, Z, one, exists & ~one, norm, form)


def general_svm(
    X: ArrayLike, Z: ArrayLike, selected: ArrayLike, norm: str | float = "fro"
) -> tuple[cp.Problem, cp.Variable]:
    """Gen-SVM (Section 6) for the selected sets O_i.

    min ‖W‖ s.t. (x_it − x_iτ)' W z_i ≥ 1 for t ∈ O_i, τ ∉ O_i, and = 0 for t, τ ∈ O_i.

    Parameters
    ----------
    X, Z, norm
        As in `att_svm`.
    selected
        (n, T) bool, True for t ∈ O_i.

    Returns
    -------
    (problem, W)
        As `att_svm`.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape, dtype or value.
    """
    X, Z = _read(X, Z)
    sets = _checks.booleans("selected", selected, shape=X.shape[:2])
    return _program(X, Z, sets, ~sets, norm)


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
    X, Z = _read(X, Z)
    sets = _checks.booleans("selected", selected, shape=X.shape[:2])
    s = _checks.array("attention", attention, shape=sets.shape)
    return _program(X, Z, sets, np.zeros_like(sets), norm, s=s)


def value_of(program: tuple[cp.Problem, cp.Variable], **options: Any) -> FloatArray | None:
    """Solve a program of this module.

    Parameters
    ----------
    program
        A problem and its variable.
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
    """The authors' way: `value_of` an `att_svm` with a constraint for each token, default solver.

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
