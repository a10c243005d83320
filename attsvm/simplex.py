"""Attention weights as points of the simplex: the optimal ones in closed form (Section 6)."""

from __future__ import annotations

import numpy as np

from attsvm import _checks
from attsvm._typing import ArrayLike, FloatArray
from attsvm.errors import ArgumentError
from attsvm.heads import QuadraticHead
from attsvm.problem import AttentionProblem

__all__ = ["optimal_attention", "project"]


def project(points: ArrayLike) -> FloatArray:
    """Euclidean projection onto the simplex {s ≥ 0, Σ s = 1}, along the last axis.

    The projection is max(y − θ, 0) with the one θ that makes the sum 1.  With y sorted in falling
    order and c_r = (y_1 + … + y_r − 1)/r, θ = c_r for the largest r with y_r > c_r
    (:cite:t:`duchi2008efficient`).

    Parameters
    ----------
    points
        (…, T).

    Raises
    ------
    ArgumentError
        If a number is not finite or there is none.
    """
    y = _checks.array("points", points)
    if y.ndim < 1 or 0 in y.shape:
        raise ArgumentError("points", "shape (…, T), not empty", f"shape {y.shape}")
    # A common shift does not change the projection; without it large entries would cost digits.
    y = y - y.max(-1, keepdims=True)
    falling = -np.sort(-y, axis=-1)
    level = (falling.cumsum(-1) - 1.0) / np.arange(1, y.shape[-1] + 1)
    last = (falling > level).sum(-1, keepdims=True) - 1
    return np.maximum(y - np.take_along_axis(level, last, -1), 0.0)


def optimal_attention(problem: AttentionProblem) -> FloatArray:
    """The attention weights of least loss, for the quadratic head and orthonormal tokens.

    With orthonormal tokens and Y = +1 the margin h(X's) is γ's − λ‖s‖² with γ = X v, which the
    projection of γ/(2λ) onto the simplex maximises; λ = 0 leaves the token of largest γ.

    Parameters
    ----------
    problem
        One instance or many.

    Returns
    -------
    ndarray
        (…, n, T).

    Raises
    ------
    ArgumentError
        If the head is not quadratic, a label is −1, a token is masked, or tokens are not
        orthonormal.
    """
    head = problem.head
    if not isinstance(head, QuadraticHead):
        raise ArgumentError("problem", "a quadratic head", type(head).__name__)
    if (problem.labels < 0).any():
        raise ArgumentError("problem", "labels +1: for −1 the loss asks for one token", "a −1")
    if problem.mask is not None and not problem.mask.all():
        raise ArgumentError("problem", "no masked token", "a mask")
    X = problem.tokens
    if np.abs(X @ X.mT - np.eye(problem.T)).max() > 1e-8:
        raise ArgumentError("problem", "orthonormal tokens in each sequence", "others")
    gamma = np.asarray(QuadraticHead(head.v, 0.0).value(X))
    if head.ridge == 0:
        return np.eye(problem.T)[gamma.argmax(-1)]
    return project(gamma / (2 * head.ridge))
