"""The regularisation path: minimisers of the loss over growing balls (Section 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from attsvm import _checks
from attsvm._typing import ArrayLike
from attsvm._typing import FloatArray as Array
from attsvm.descent._ball import minimize_over_ball
from attsvm.descent._path_loss import LogGap
from attsvm.errors import ArgumentError
from attsvm.problem import AttentionProblem, linear_head

Loss: TypeAlias = Callable[[Array], tuple[float, Array, Array]]
Norm: TypeAlias = Literal["fro", "nuc"]


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Minimisers of the loss over balls of growing radius.

    Attributes
    ----------
    radii
        R (radii,).
    W
        (radii, d, d).
    norm
        "fro" or "nuc".
    log_gap
        log(L(W) − L*) (radii,), −∞ where the loss does not depend on W.
    residual
        (radii,): how far from a stationary point of the ball, computed from W and ∇L alone.
        "fro": the angle between −∇L and W, in radians (on the boundary), else ‖∇ log(L − L*)‖ R.
        "nuc": the Frank–Wolfe gap, relative: 1 + <∇L, W>/(R ‖∇L‖_op), between 0 and 2.
    """

    radii: Array
    W: Array
    norm: Norm
    log_gap: Array
    residual: Array


def _angle(x: Array, gradient: Array, radius: float) -> float:
    """Residual of the Euclidean ball."""
    size = float(np.linalg.norm(x))
    slope = float(np.linalg.norm(gradient))
    if slope == 0.0:
        return 0.0
    if size < radius * (1.0 - 1e-9):
        return slope * radius
    along = -float(np.vdot(gradient, x)) / size
    across = float(np.linalg.norm(gradient + (along / size) * x))
    return float(np.arctan2(across, along))


def _frank_wolfe(C: Array, gradient: Array, radius: float) -> float:
    """Residual of the nuclear-norm ball: max over it of <−∇, V − W>, relative to R ‖∇‖_op."""
    slope = float(np.linalg.norm(gradient, 2))
    if slope == 0.0:
        return 0.0
    return max(0.0, 1.0 + float(np.vdot(gradient, C)) / (radius * slope))


class _Factors:
    """φ(K Q') as a function of one vector x = (K, Q); ‖K‖² + ‖Q‖² ≤ 2R is ‖K Q'‖_* ≤ R."""

    def __init__(self, loss: Loss, shape: tuple[int, int]) -> None:
        self._loss = loss
        (self._p, self._q), self._m = shape, min(shape)

    def split(self, x: Array) -> tuple[Array, Array]:
        stacked = x.reshape(-1, self._m)
        return stacked[: self._p], stacked[self._p :]

    def product(self, x: Array) -> Array:
        K, Q = self.split(x)
        return K @ Q.T

    def __call__(self, x: Array) -> tuple[float, Array, Array]:
        p, q, m = self._p, self._q, self._m
        K, Q = self.split(x)
        phi, G, inner = self._loss(K @ Q.T)
        gradient = np.concatenate([(G @ Q).ravel(), (G.T @ K).ravel()])
        # dC = dK Q' + K dQ': the Jacobian (p q, p m + q m).
        by_Q = np.einsum("il,jk->ijkl", K, np.eye(q)).reshape(p * q, q * m)
        jacobian = np.concatenate([np.kron(np.eye(p), Q), by_Q], axis=1)
        hessian = jacobian.T @ inner @ jacobian
        bend = np.kron(G, np.eye(m))
        hessian[: p * m, p * m :] += bend
        hessian[p * m :, : p * m] += bend.T
        # φ is constant along rotations (K A, Q A) of the factors.  Their curvature is zero only at
        # a stationary point; without this term the model runs along them and the steps get lost.
        rotations = self._rotations(K, Q)
        hessian += float(np.linalg.norm(G, 2)) * (rotations @ rotations.T)
        return phi, gradient, hessian

    def _rotations(self, K: Array, Q: Array) -> Array:
        """An orthonormal basis of {(K A, Q A): A skew}, the directions that leave K Q' alone."""
        stacked = np.concatenate([K, Q])
        i, j = np.triu_indices(self._m, 1)
        moves = np.zeros((len(i), *stacked.shape))
        each = np.arange(len(i))
        moves[each, :, i] = -stacked[:, j].T
        moves[each, :, j] = stacked[:, i].T
        flat = moves.reshape(len(i), -1)
        if not flat.any():
            return np.zeros((flat.shape[1], 0))
        _, values, basis = np.linalg.svd(flat, full_matrices=False)
        return basis[values > 1e-8 * values[0]].T

    def balanced(self, C: Array) -> Array:
        """The factors of C with ‖K‖² = ‖Q‖² = ‖C‖_*, as one vector."""
        left, values, right = np.linalg.svd(C, full_matrices=False)
        root = np.sqrt(values)
        return np.concatenate([(left * root).ravel(), (right.T * root).ravel()])


def _solve_one(
    loss: Loss, start: Array, radius: float, norm: Norm, tolerance: float
) -> tuple[Array, float]:
    """Minimise over one ball from one start C; answers C and its residual."""
    shape = start.shape
    factors = _Factors(loss, shape)

    def euclidean(x: Array) -> tuple[float, Array, Array]:
        value, gradient, hessian = loss(x.reshape(shape))
        return value, gradient.ravel(), hessian

    def angle(x: Array, gradient: Array) -> float:
        return _angle(x, gradient, radius)

    def gap(x: Array, _: Array) -> float:
        C = factors.product(x)
        return _frank_wolfe(C, loss(C)[1], radius)

    if norm == "fro":
        x, residual = minimize_over_ball(euclidean, start.ravel(), radius, angle, tolerance)
        return x.reshape(shape), residual
    within = float(np.sqrt(2.0 * radius))
    x, residual = minimize_over_ball(factors, factors.balanced(start), within, gap, tolerance)
    return factors.product(x), residual


def regularization_path(
    problem: AttentionProblem,
    radii: ArrayLike,
    norm: Norm = "fro",
    starts: Sequence[ArrayLike] = (),
    tolerance: float = 1e-9,
) -> RegularizationPath:
    """Minimise the loss over ‖W‖ ≤ R for growing R (regularisation-path theorem, Section 3).

    The Frobenius ball is the path of W, the nuclear ball that of (K, Q) with ‖K‖² + ‖Q‖² ≤ 2R.  The
    theorem says that W/R tends to the direction of the Att-SVM solution of the optimal tokens, in
    the Frobenius and in the nuclear norm.  The arithmetic is exact: radii at which every
    non-selected attention weight is far below the smallest float are as good as small ones.

    The loss is not convex.  Each radius starts from the solution at the one before, scaled up, from
    the minimiser over the same ball of the convex function that log(L − L*) tends to for large
    margins, and from every matrix of `starts`; the lowest loss wins.

    Parameters
    ----------
    problem
        One instance with a linear head.
    radii
        Growing radii R > 0.
    norm
        "fro" or "nuc".
    starts
        Further matrices (d, d) whose directions are tried at each radius.
    tolerance
        Residual to reach; see `RegularizationPath`.

    Raises
    ------
    ArgumentError
        If the problem has instance axes or another head, or radii are not positive and increasing.
    """
    linear_head(problem, axes=0)
    _checks.choice("norm", norm, ("fro", "nuc"))
    tolerance = _checks.positive("tolerance", tolerance)
    R = _checks.array("radii", radii, ndim=1)
    if R.size == 0 or R[0] <= 0 or (np.diff(R) <= 0).any():
        raise ArgumentError("radii", "positive numbers in increasing order", f"{R}")
    d = problem.d
    loss = LogGap(problem)
    if loss.constant:
        nothing = np.zeros(len(R))
        return RegularizationPath(R, np.zeros((len(R), d, d)), norm, nothing - np.inf, nothing)
    given = [loss.coordinates(_checks.array("starts", W, shape=(d, d))) for W in starts]
    directions = [C / np.linalg.norm(C, norm) for C in given if np.any(C)]
    # At W = 0 the steepest direction is where the path begins.
    tiny = np.finfo(float).tiny
    slopes = [function(np.zeros(loss.shape))[1] for function in (loss, loss.limit)]
    warm, convex = (-slope / max(float(np.linalg.norm(slope, norm)), tiny) for slope in slopes)

    points: list[tuple[float, float, Array]] = []
    for radius in map(float, R):
        convex = _solve_one(loss.limit, radius * convex, radius, norm, 1e-6)[0] / radius
        solved = [
            _solve_one(loss, radius * start, radius, norm, tolerance)
            for start in (warm, convex, *directions)
        ]
        found = [(loss(C)[0], residual, C) for C, residual in solved]
        points.append(min(found, key=lambda point: point[0]))
        warm = points[-1][2] / radius
    gaps, residuals, coordinates = zip(*points, strict=True)
    W = np.stack([loss.weights(C) for C in coordinates])
    return RegularizationPath(R, W, norm, np.array(gaps), np.array(residuals))
