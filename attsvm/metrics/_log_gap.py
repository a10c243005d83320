"""The distance of the loss from its infimum, in logarithms."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit

from attsvm import _checks
from attsvm._typing import ArrayLike, FloatArray
from attsvm.errors import ArgumentError
from attsvm.metrics._directions import broadcast_leading
from attsvm.problem import AttentionProblem, linear_head


def log_gap(problem: AttentionProblem, W: ArrayLike) -> FloatArray:
    """log(L(W) − L*) for the linear head, where L* is the infimum of the loss (Section 3).

    With γ*_i = max_t γ_it, Δ_it = γ*_i − γ_it and the mean shortfall S_i = Σ_t s_it Δ_it ::

        n (L − L*) = Σ_i log(1 + σ(−γ*_i) (e^{S_i} − 1)),

    a sum of terms ≥ 0, each formed in log space: the result is true to about 1e-12 (absolute, of
    the logarithm) where L − L* itself is far below the smallest float.

    Parameters
    ----------
    problem
        One instance or many with a linear head, leading axes ….
    W
        (…, d, d), broadcast against the instances.

    Returns
    -------
    ndarray
        (…); −∞ where every token of every sequence is optimal.

    Raises
    ------
    ArgumentError
        If the head is not linear or shapes do not fit.
    """
    linear_head(problem)
    weights = _checks.array("W", W)
    if weights.ndim < 2 or weights.shape[-2:] != (problem.d, problem.d):
        raise ArgumentError("W", f"shape (…, {problem.d}, {problem.d})", f"shape {weights.shape}")
    broadcast_leading("W", weights.shape[:-2], problem.batch_shape)
    gamma = problem.scores()
    best = gamma.argmax(-1)[..., None]
    top = np.take_along_axis(gamma, best, -1)
    exists = np.isfinite(gamma)
    chosen = np.take_along_axis(problem.tokens, best[..., None], -2)
    # Logits relative to the optimal token's: differences first, so that no digit cancels.
    keys = np.einsum("...de,...ne->...nd", weights, problem.queries)
    a = np.einsum("...ntd,...nd->...nt", problem.tokens - chosen, keys)
    a = np.where(exists, a, -np.inf)
    with np.errstate(divide="ignore"):
        log_delta = np.log(np.where(exists, top - gamma, 0.0))
        log_S = _log_sum_exp(a + log_delta) - _log_sum_exp(a)
        return _log_sum_exp(log_excess(top[..., 0], log_S)) - np.log(problem.n)


def log_excess(best: FloatArray, log_S: FloatArray) -> FloatArray:
    """log(ℓ(γ* − S) − ℓ(γ*)) = log log(1 + σ(−γ*) (e^S − 1)) from γ* and log S, any shape.

    Where e^S − 1 or the whole argument is tiny its leading terms stand in, so that S may be below
    the smallest float; where it is huge, log(1 + x) is log x.
    """
    S = np.exp(log_S)
    with np.errstate(divide="ignore", over="ignore"):
        log_x = np.where(S < 1e-8, log_S + 0.5 * S, S + np.log(-np.expm1(-S))) + log_expit(-best)
        x = np.exp(log_x)
        log_log1p = np.where(x < 1e-8, log_x - 0.5 * x, np.log(np.log1p(x)))
    return np.where(log_x > 700.0, np.log(np.maximum(log_x, 1.0)), log_log1p)


def _log_sum_exp(values: FloatArray) -> FloatArray:
    """log Σ e^x over the last axis, −∞ where all terms are zero."""
    top = values.max(-1)
    shift = np.where(np.isfinite(top), top, 0.0)
    return shift + np.log(np.exp(values - shift[..., None]).sum(-1))
