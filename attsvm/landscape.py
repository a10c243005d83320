"""The loss surface over W: which way it falls, and where its gradient vanishes (Section 4).

With attention weights s_i = S(X_i W z_i), scores γ_it and the logits b_it = x_it'V z_i that a
direction V adds, the derivative of the loss along V is a sum of covariances ::

    <−∇L(W), V> = (1/n) Σ_i |ℓ'(u_i)| Σ_{t<τ} s_it s_iτ (γ_it − γ_iτ) (b_it − b_iτ),

with u_i = Σ_t s_it γ_it.  Each pair of tokens contributes a term whose sign is known without
rounding, and whose logarithm is a sum of logarithms.  So the sign of the derivative can be told at
any size of W, also where the derivative itself is far below the smallest float.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax

from attsvm import _checks
from attsvm._linalg import span
from attsvm._typing import ArrayLike, BoolArray
from attsvm._typing import FloatArray as Array
from attsvm.errors import ArgumentError
from attsvm.problem import AttentionProblem, linear_head

if TYPE_CHECKING:
    from attsvm.svm import Solution

__all__ = [
    "DescentRate",
    "Stationary",
    "descent_rate",
    "gradient",
    "logits",
    "solution_logits",
    "stationary_points",
]


def logits(problem: AttentionProblem, W: ArrayLike) -> Array:
    """x_it'W z_i, which attention turns into weights (Section 2).

    Parameters
    ----------
    problem
        One instance or many, leading axes ….
    W
        (samples, …, d, d) or (…, d, d): any number of axes before the problem's own.

    Returns
    -------
    ndarray
        (samples, …, n, T); −∞ at tokens that the mask removes.

    Raises
    ------
    ArgumentError
        If W does not end in the problem's own axes and (d, d), or is not finite.
    """
    matrices = _checks.array("W", W)
    own = (*problem.batch_shape, problem.d, problem.d)
    if matrices.shape[-len(own) :] != own:
        raise ArgumentError("W", f"shape (…, {', '.join(map(str, own))})", f"{matrices.shape}")
    towards = problem.queries @ matrices.mT
    values: Array = np.einsum("...ntd,...nd->...nt", problem.tokens, towards)
    return values if problem.mask is None else np.where(problem.mask, values, -np.inf)


def solution_logits(solutions: Sequence[Solution]) -> Array:
    """Logits of SVM solutions, 0 at the selected token and minus the margin elsewhere.

    The margin of a support token is one up to the tolerance of the certificate; here it is one
    exactly, so that the logits of two support tokens of a sequence do not differ by rounding.

    Parameters
    ----------
    solutions
        Solved instances of one size.

    Returns
    -------
    ndarray
        (instances, n, T); −∞ at tokens that the mask removes.

    Raises
    ------
    ArgumentError
        If there is none, or one is not solved.
    """
    if not solutions:
        raise ArgumentError("solutions", "at least one solution", "none")
    for i, solution in enumerate(solutions):
        if not solution.solved:
            raise ArgumentError("solutions", "solved instances", f"{solution.status} at {i}")
    margins = np.stack([np.where(s.support(), 1.0, s.margins()) for s in solutions])
    selected = np.stack([s.selected for s in solutions])
    np.put_along_axis(margins, selected[..., None], 0.0, -1)
    return -np.where(np.isnan(margins), np.inf, margins)


@dataclass(frozen=True)
class DescentRate:
    """<−∇L(W), V> as the difference of two sums of positive terms, each by its logarithm.

    Attributes
    ----------
    log_down, log_up
        (…): logarithm of the sum over the pairs of tokens that make the loss fall along V, and over
        those that make it rise; −∞ if there is none.
    """

    log_down: Array
    log_up: Array

    @property
    def positive(self) -> BoolArray:
        """Whether the loss falls along V."""
        return self.log_down > self.log_up

    @property
    def log_size(self) -> Array:
        """log |<−∇L(W), V>|."""
        high = np.maximum(self.log_down, self.log_up)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.exp(np.minimum(self.log_down, self.log_up) - high)
            return high + np.log1p(-np.where(np.isnan(ratio), 0.0, ratio))


def descent_rate(problem: AttentionProblem, W: ArrayLike, along: ArrayLike) -> DescentRate:
    """How the loss falls at W along a direction: <−∇L(W), V>, without underflow.

    Parameters
    ----------
    problem
        One instance or many with a linear head, leading axes ….
    W
        (samples, …, d, d) or (…, d, d).
    along
        (…, n, T), the logits x_it'V z_i of the direction: `logits` or `solution_logits`.

    Raises
    ------
    ArgumentError
        If the head is not linear, shapes do not fit, or a number is not finite where a token is.
    """
    linear_head(problem)
    gamma = problem.scores()
    exists = np.isfinite(gamma)
    b = np.asarray(along, dtype=np.float64)
    if b.shape != gamma.shape:
        raise ArgumentError("along", f"shape {gamma.shape}", f"shape {b.shape}")
    b = _checks.array("along", np.where(exists, b, 0.0))
    log_s = log_softmax(logits(problem, W), axis=-1)
    score = np.where(exists, gamma, 0.0)
    u = (np.exp(log_s) * score).sum(-1)
    first, second = np.triu_indices(problem.T, k=1)
    product = (score[..., first] - score[..., second]) * (b[..., first] - b[..., second])
    with np.errstate(divide="ignore"):
        # log |ℓ'(u)| = −log(1 + e^u).
        size = log_s[..., first] + log_s[..., second] + log_expit(-u)[..., None]
        size = size + np.log(np.abs(product)) - np.log(problem.n)
        nothing = np.full(size.shape, -np.inf)
        down, up = (
            # The constant as an array: the layout in memory decides the order of the sum.
            np.asarray(logsumexp(np.where(counts, size, nothing), axis=(-2, -1)))
            for counts in (product > 0, product < 0)
        )
    return DescentRate(log_down=down, log_up=up)


def gradient(problem: AttentionProblem, W: ArrayLike) -> Array:
    """∇L(W) by the chain rule, for W whose attention weights do not underflow.

    Differences of scores are taken pair by pair, so tokens of equal score cancel exactly.

    Parameters
    ----------
    problem
        One instance or many with a linear head, leading axes ….
    W
        (samples, …, d, d) or (…, d, d).

    Returns
    -------
    ndarray
        Of W's shape.
    """
    linear_head(problem)
    gamma = problem.scores()
    score = np.where(np.isfinite(gamma), gamma, 0.0)
    s = softmax(logits(problem, W), axis=-1)
    u = (s * score).sum(-1, keepdims=True)
    ahead = np.einsum("...u,...tu->...t", s, score[..., :, None] - score[..., None, :])
    p = -expit(-u) * s * ahead / problem.n
    output = np.einsum("...nt,...ntd->...nd", p, problem.tokens)
    return output.mT @ problem.queries


@dataclass(frozen=True)
class Stationary:
    """A finite point where ∇L vanishes, and how surely.

    Attributes
    ----------
    W
        (d, d), in the part of the space that the loss depends on.
    residual
        ‖∇L(W)‖_F.
    newton
        Length of the next Newton step: how far off the true point may be.
    curvatures
        Eigenvalues of the Hessian on that part of the space, rising.
    """

    W: Array
    residual: float
    newton: float
    curvatures: Array


def stationary_points(
    problem: AttentionProblem,
    starts: ArrayLike,
    iterations: int = 60,
    tolerance: float = 1e-8,
    farthest: float = 200.0,
) -> list[Stationary | None]:
    """Look for finite W with ∇L(W) = 0, by damped Newton steps from many starts at once.

    A point counts only if a further Newton step is short.  Far out, where attention is nearly hard,
    the gradient is small too, but there the Newton step is not: gradient and Hessian decay alike.

    Parameters
    ----------
    problem
        A single instance with a linear head.
    starts
        (starts, d, d).
    iterations
        Steps at most.
    tolerance
        Longest next Newton step that counts as having arrived.
    farthest
        A search that leaves this ball is given up.

    Returns
    -------
    list of Stationary or None
        One for each start; None where the search did not arrive at a nondegenerate point.

    Raises
    ------
    ArgumentError
        If the problem has an instance axis, its head is not linear, or the starts do not fit.
    """
    linear_head(problem, axes=0)
    d = problem.d
    first = _checks.array("starts", starts, shape=(None, d, d))
    iterations = _checks.integer("iterations", iterations, low=1)
    tolerance = _checks.positive("tolerance", tolerance)
    farthest = _checks.positive("farthest", farthest)
    # The loss depends on W through these two spans alone.
    left = span((problem.tokens - problem.tokens[:, :1]).reshape(-1, d))
    right = span(problem.queries)
    shape = (left.shape[1], right.shape[1])

    def weights(c: Array) -> Array:
        return left @ c.reshape(*c.shape[:-1], *shape) @ right.T

    def slope(c: Array) -> Array:
        g = left.T @ gradient(problem, weights(c)) @ right
        return g.reshape(*c.shape)

    def hessian(c: Array) -> Array:
        """Symmetrised central differences of the gradient, (starts, k, k)."""
        h = 1e-5 * np.maximum(1.0, np.linalg.norm(c, axis=-1))[:, None, None]
        move = h * np.eye(c.shape[-1])
        H = (slope(c[:, None] + move) - slope(c[:, None] - move)) / (2 * h)
        return (H + H.mT) / 2

    c = (left.T @ first @ right).reshape(len(first), -1)
    damping = np.full(len(c), 1e-3)
    F = slope(c)
    for _ in range(iterations):
        values, axes = np.linalg.eigh(hessian(c))
        # Levenberg–Marquardt on ‖∇L‖², in the Hessian's eigenvectors.
        scale = damping[:, None] * (values**2).max(-1, keepdims=True)
        inner = np.einsum("skj,sk->sj", axes, F) * values / np.maximum(values**2 + scale, 1e-300)
        trial = c - np.einsum("skj,sj->sk", axes, inner)
        trial = np.where(np.linalg.norm(trial, axis=-1)[:, None] <= farthest, trial, c)
        G = slope(trial)
        better = np.linalg.norm(G, axis=-1) < np.linalg.norm(F, axis=-1)
        c, F = np.where(better[:, None], trial, c), np.where(better[:, None], G, F)
        damping = np.clip(np.where(better, damping / 5, damping * 4), 1e-15, 1e3)
    curvatures, axes = np.linalg.eigh(hessian(c))
    inner = np.einsum("skj,sk->sj", axes, F)
    found: list[Stationary | None] = []
    for k, values in enumerate(curvatures):
        size = np.abs(values)
        newton = np.inf if size.min() == 0 else float(np.linalg.norm(inner[k] / values))
        # Below 1e-7 of the largest, an eigenvalue of these differences is rounding.
        sure = size.min() > 1e-7 * size.max() and newton <= tolerance
        point = Stationary(weights(c[k]), float(np.linalg.norm(F[k])), newton, values)
        found.append(point if sure else None)
    return found
