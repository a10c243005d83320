"""Newton's method over a Euclidean ball, for smooth functions that need not be convex."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

__all__ = ["minimize_over_ball"]

Array = NDArray[np.float64]


def _model_minimizer(values: Array, vectors: Array, linear: Array, radius: float) -> Array:
    """argmin of linear'y + ½ y'Hy over ‖y‖ ≤ radius, H = vectors diag(values) vectors'.

    The minimiser satisfies (H + μ) y = −linear with μ ≥ 0 and H + μ ⪰ 0 (Moré and Sorensen): either
    μ = 0 and y is inside, or ‖y‖ = radius, which is one equation for μ.
    """
    b = -(vectors.T @ linear)
    size = float(np.linalg.norm(b))
    scale = float(np.abs(values).max()) + size / radius
    if scale == 0.0:
        return np.zeros_like(b)
    shift = max(0.0, -float(values[0]))
    shifted = values + shift  # ≥ 0

    def norm_at(mu: float) -> float:
        return float(np.linalg.norm(b / (shifted + mu)))

    edge = 1e-15 * scale
    if values[0] > edge and norm_at(0.0) <= radius:
        return vectors @ (b / values)
    if norm_at(edge) <= radius:
        # The hard case: b has no part along the lowest eigenvector, which then fills up the norm.
        inner = b / (shifted + edge)
        inner[0] = 0.0
        rest = np.sqrt(max(0.0, radius**2 - float(inner @ inner)))
        inner[0] = rest if b[0] >= 0 else -rest
        return vectors @ inner
    # ‖y(μ)‖ ≤ ‖b‖/μ brackets the root from above; 1/‖y‖ is nearly linear in μ.
    top = 2.0 * size / radius + edge
    mu = brentq(lambda m: 1.0 / radius - 1.0 / norm_at(m), edge, top, xtol=1e-300, rtol=1e-15)
    y = vectors @ (b / (shifted + mu))
    return y * (radius / np.linalg.norm(y))


def minimize_over_ball(
    function: Callable[[Array], tuple[float, Array, Array]],
    start: Array,
    radius: float,
    residual: Callable[[Array, Array], float],
    tolerance: float,
    iterations: int = 200,
) -> tuple[Array, float]:
    """Minimise over ‖x‖ ≤ radius by models that are solved exactly on the ball.

    Each iteration minimises gradient'(y − x) + ½ (y − x)'(H + τ)(y − x) over the whole ball; τ adapts
    to how well the model foretold the decrease.  Near a solution τ shrinks and convergence is
    quadratic.

    Parameters
    ----------
    function
        x -> value, gradient, Hessian.
    start
        Starting point; pulled into the ball if it is outside.
    radius
        Radius of the ball.
    residual
        (x, gradient) -> how far from optimal, for stopping.
    tolerance
        Stop at this residual.
    iterations
        At most so many models; the best point seen is answered in any case.

    Returns
    -------
    x, residual
    """
    x = np.array(start, dtype=float)
    norm = float(np.linalg.norm(x))
    if norm > radius:
        x *= radius / norm
    value, gradient, hessian = function(x)
    distance = residual(x, gradient)
    values, vectors = np.linalg.eigh(hessian)
    damping, stalled = 0.0, 0
    for _ in range(iterations):
        if distance <= tolerance or stalled >= 8:
            break
        linear = gradient - hessian @ x - damping * x
        y = _model_minimizer(values + damping, vectors, linear, radius)
        move = y - x
        foretold = float(gradient @ move + 0.5 * move @ (hessian @ move))
        trial, trial_gradient, trial_hessian = function(y)
        now = residual(y, trial_gradient)
        # Below the rounding of the value only the residual can tell whether a step was good.
        rounding = 1e-13 * max(1.0, abs(value))
        blind = abs(trial - value) <= rounding and abs(foretold) <= rounding
        ratio = (trial - value) / foretold if foretold < 0 else -1.0
        unit = float(np.abs(values).max()) + float(np.linalg.norm(gradient)) / radius
        if (now < distance) if blind else (ratio > 0.05):
            x, value, gradient, hessian, distance = y, trial, trial_gradient, trial_hessian, now
            values, vectors = np.linalg.eigh(hessian)
            if blind or ratio > 0.7:
                damping = 0.0 if damping < 1e-9 * unit else damping / 8.0
            stalled = 0
        else:
            damping = max(4.0 * damping, 1e-6 * unit)
            stalled += blind
    return x, distance
