"""What the book measures: correlation of directions, numerical rank, means with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attsvm import _checks
from attsvm.errors import ArgumentError

if TYPE_CHECKING:
    from attsvm.problem import AttentionProblem

__all__ = [
    "Estimate",
    "NumericalRank",
    "correlation",
    "log_gap",
    "mean_estimate",
    "numerical_rank",
    "share_estimate",
    "stable_rank",
    "wilson_interval",
]

# Two-sided 95 % quantile of the normal law: every interval in the book is at this level.
_Z95 = 1.959963984540054


def correlation(A: ArrayLike, B: ArrayLike) -> NDArray[np.float64]:
    """Correlation coefficient ⟨A, B⟩ / (‖A‖_F ‖B‖_F): the cosine between two matrices.

    The paper's measure of convergence in direction (Section 5).

    Parameters
    ----------
    A, B
        (…, p, q), broadcast against each other over the leading axes.

    Returns
    -------
    ndarray
        Shape of the broadcast leading axes, in [−1, 1].  NaN where a matrix is zero: zero has no
        direction.

    Raises
    ------
    ArgumentError
        If an input holds NaN or infinity, has fewer than two axes, or shapes do not broadcast.
    """
    a, b = _checks.array("A", A), _checks.array("B", B)
    for name, value in (("A", a), ("B", b)):
        if value.ndim < 2:
            raise ArgumentError(name, "shape (…, p, q)", f"shape {value.shape}")
    if a.shape[-2:] != b.shape[-2:]:
        raise ArgumentError("B", f"matrices of shape {a.shape[-2:]}", f"shape {b.shape}")
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError as error:
        raise ArgumentError("B", f"a shape that broadcasts with {a.shape}", f"{b.shape}") from error
    # Scale first, so that entries of 1e±200 neither overflow nor vanish in the products.
    a, b = _scaled(a), _scaled(b)
    inner = np.einsum("...pq,...pq->...", a, b)
    norms = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(b, axis=(-2, -1))
    with np.errstate(invalid="ignore"):
        return np.clip(inner / norms, -1.0, 1.0)


def _scaled(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide each matrix by its largest entry; zero matrices stay."""
    largest = np.abs(matrices).max(axis=(-2, -1), keepdims=True)
    return matrices / np.where(largest > 0, largest, 1.0)


@dataclass(frozen=True)
class NumericalRank:
    """How many singular values count, and how clearly the next one does not.

    Attributes
    ----------
    rank
        Number of singular values above the threshold.
    threshold
        The threshold, absolute.
    kept, dropped
        The smallest singular value counted and the largest one not counted (inf and 0 where there
        is none).
    """

    rank: int
    threshold: float
    kept: float
    dropped: float

    @property
    def gap(self) -> float:
        """Ratio of ``kept`` to ``dropped``; if large, no threshold in between changes the rank."""
        return float("inf") if self.dropped == 0 else self.kept / self.dropped


def numerical_rank(W: ArrayLike, tolerance: float = 1e-7, relative: bool = True) -> NumericalRank:
    """Rank of one matrix with the gap that makes it believable.

    Parameters
    ----------
    W
        (p, q).
    tolerance
        Threshold on the singular values.
    relative
        Whether the threshold is a multiple of the largest singular value (the default) or absolute,
        as in the published experiment on ranks.

    Raises
    ------
    ArgumentError
        If W is not a finite matrix or the tolerance is negative.
    """
    matrix = _checks.array("W", W, ndim=2)
    tolerance = _checks.number("tolerance", tolerance, at_least=0.0)
    values = np.linalg.svd(matrix, compute_uv=False)
    top = float(values[0]) if values.size else 0.0
    threshold = tolerance * top if relative else tolerance
    counted = values > threshold
    rank = int(counted.sum())
    return NumericalRank(
        rank=rank,
        threshold=threshold,
        kept=float(values[rank - 1]) if rank else float("inf"),
        dropped=float(values[rank]) if rank < values.size else 0.0,
    )


def stable_rank(W: ArrayLike) -> NDArray[np.float64]:
    """(‖W‖_* / ‖W‖_F)², which lies between one and the rank and needs no threshold.

    Parameters
    ----------
    W
        (…, p, q).

    Raises
    ------
    ArgumentError
        If W is not finite or has fewer than two axes.
    """
    matrices = _checks.array("W", W)
    if matrices.ndim < 2:
        raise ArgumentError("W", "shape (…, p, q)", f"shape {matrices.shape}")
    values = np.linalg.svd(_scaled(matrices), compute_uv=False)
    with np.errstate(invalid="ignore"):
        return values.sum(-1) ** 2 / (values**2).sum(-1)


@dataclass(frozen=True)
class Estimate:
    """A number measured over instances, with its 95 % interval.

    Attributes
    ----------
    value
        The mean, or the share.
    low, high
        Ends of the interval; both equal the value for a single deterministic measurement.
    n
        Number of instances behind it.
    """

    value: float
    low: float
    high: float
    n: int

    @property
    def halfwidth(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.halfwidth:.2g} (n = {self.n})"


def mean_estimate(values: ArrayLike) -> Estimate:
    """Mean over instances with the normal-theory 95 % interval, mean ± 1.96 s/√n.

    Parameters
    ----------
    values
        (instances,), finite: decide what to do with missing ones before, and count them in the
        ledger.

    Raises
    ------
    ArgumentError
        If there is no value, or one is not finite.
    """
    x = _checks.array("values", values, ndim=1)
    if x.size == 0:
        raise ArgumentError("values", "at least one number", "none")
    mean = float(x.mean())
    half = _Z95 * float(x.std(ddof=1)) / x.size**0.5 if x.size > 1 else 0.0
    return Estimate(value=mean, low=mean - half, high=mean + half, n=int(x.size))


def share_estimate(hits: ArrayLike) -> Estimate:
    """Share of instances with a property, with Wilson's 95 % interval (sensible at 0 and 1 too).

    Parameters
    ----------
    hits
        (instances,) of truth values.

    Raises
    ------
    ArgumentError
        If there is no instance or the values are not boolean.
    """
    yes = _checks.booleans("hits", hits)
    if yes.ndim != 1 or yes.size == 0:
        raise ArgumentError("hits", "at least one truth value", f"shape {yes.shape}")
    n, share = int(yes.size), float(yes.mean())
    low, high = wilson_interval(share, n)
    return Estimate(value=share, low=float(low), high=float(high), n=n)


def wilson_interval(
    share: ArrayLike, n: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of Wilson's 95 % interval for shares of n instances; arrays broadcast.

    Parameters
    ----------
    share
        Observed shares, in [0, 1].
    n
        Numbers of instances, at least one.

    Raises
    ------
    ArgumentError
        If a share is outside [0, 1] or a number is below one.
    """
    p, count = _checks.array("share", share), _checks.array("n", n)
    if ((p < 0) | (p > 1)).any():
        raise ArgumentError("share", "shares in [0, 1]", f"{p[(p < 0) | (p > 1)].flat[0]}")
    if (count < 1).any():
        raise ArgumentError("n", "at least one instance", f"{count.min()}")
    shrink = 1 + _Z95**2 / count
    centre = (p + _Z95**2 / (2 * count)) / shrink
    half = _Z95 * np.sqrt(p * (1 - p) / count + _Z95**2 / (4 * count**2)) / shrink
    # At 0 and 1 an end is exact in theory and would be off by rounding.
    low = np.where(p == 0, 0.0, np.maximum(0.0, centre - half))
    high = np.where(p == 1, 1.0, np.minimum(1.0, centre + half))
    return low, high


def log_gap(problem: AttentionProblem, W: ArrayLike) -> NDArray[np.float64]:
    """log(L(W) − L*) for the linear head, where L* is the infimum of the loss (Section 3).

    With γ*_i = max_t γ_it, Δ_it = γ*_i − γ_it and the mean shortfall S_i = Σ_t s_it Δ_it ::

        n (L − L*) = Σ_i log(1 + σ(−γ*_i) (e^{S_i} − 1)),

    a sum of terms ≥ 0, each formed in log space: the result is true to about 1e-12 (absolute, of
    the logarithm) where L − L* itself is far below the smallest float.

    Parameters
    ----------
    problem
        Instances along leading axes …, or one; with a linear head.
    W
        (…, d, d), broadcast against the instances.

    Returns
    -------
    ndarray
        Shape of the broadcast leading axes; −∞ where every token of every sequence is optimal.

    Raises
    ------
    ArgumentError
        If the head is not linear or shapes do not fit.
    """
    from attsvm.heads import LinearHead

    if not isinstance(problem.head, LinearHead):
        raise ArgumentError("problem", "a linear head", type(problem.head).__name__)
    weights = _checks.array("W", W)
    if weights.ndim < 2 or weights.shape[-2:] != (problem.d, problem.d):
        raise ArgumentError("W", f"shape (…, {problem.d}, {problem.d})", f"shape {weights.shape}")
    try:
        np.broadcast_shapes(weights.shape[:-2], problem.batch_shape)
    except ValueError as error:
        raise ArgumentError(
            "W", f"leading axes that broadcast with {problem.batch_shape}", f"{weights.shape[:-2]}"
        ) from error
    gamma = problem.scores()
    best = gamma.argmax(-1)[..., None]
    top = np.take_along_axis(gamma, best, -1)[..., 0]
    exists = np.isfinite(gamma)
    chosen = np.take_along_axis(problem.tokens, best[..., None], -2)
    # Logits relative to the optimal token's: differences first, so that no digit cancels.
    keys = np.einsum("...de,...ne->...nd", weights, problem.queries)
    a = np.einsum("...ntd,...nd->...nt", problem.tokens - chosen, keys)
    a = np.where(exists, a, -np.inf)
    with np.errstate(divide="ignore", over="ignore"):
        log_delta = np.log(np.where(exists, top[..., None] - gamma, 0.0))
        log_S = _log_sum_exp(a + log_delta) - _log_sum_exp(a)
        S = np.exp(log_S)
        # log(e^S − 1), then log log(1 + x): the leading terms where the argument is tiny.
        log_x = np.where(S < 1e-8, log_S + 0.5 * S, S + np.log(-np.expm1(-S)))
        log_x = log_x - np.logaddexp(0.0, top)
        x = np.exp(log_x)
        log_f = np.where(x < 1e-8, log_x - 0.5 * x, np.log(np.log1p(x)))
        log_f = np.where(log_x > 700.0, np.log(np.maximum(log_x, 1.0)), log_f)
        return _log_sum_exp(log_f) - np.log(problem.n)


def _log_sum_exp(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Σ e^x over the last axis, −∞ where all terms are zero."""
    top = values.max(-1)
    shift = np.where(np.isfinite(top), top, 0.0)
    return shift + np.log(np.exp(values - shift[..., None]).sum(-1))
