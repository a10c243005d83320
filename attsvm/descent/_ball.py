"""Trust-region Newton method over a Euclidean ball, for smooth functions, convex or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from attsvm._typing import FloatArray as Array


def _model_minimizer(values: Array, vectors: Array, linear: Array, radius: float) -> Array:
    """argmin of linear'y + ½ y'Hy over ‖y‖ ≤ radius, H = vectors diag(values) vectors'.

    The minimiser satisfies (H + μ) y = −linear with μ ≥ 0 and H + μ ⪰ 0: either μ = 0 and y is
    inside, or ‖y‖ = radius, which is one equation for μ (:cite:t:`more1983computing`).
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


def _on_sphere(x: Array, gradient: Array, hessian: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of the function along the sphere through x.

    With the multiplier μ = −gradient'x/‖x‖² and the tangent projection P: P gradient and
    P (H + μ) P, made stiff in the radial direction, which a step along the sphere does not take.
    """
    unit = x / np.linalg.norm(x)
    mu = -float(gradient @ unit) / float(np.linalg.norm(x))
    tangent = gradient - (gradient @ unit) * unit
    across = hessian @ unit
    curved = hessian - np.outer(unit, across) - np.outer(across, unit)
    curved += (float(unit @ across) - mu) * np.outer(unit, unit)
    curved[np.diag_indices_from(curved)] += mu
    return tangent, curved + (float(np.abs(curved).max()) + mu) * np.outer(unit, unit)


def minimize_over_ball(
    function: Callable[[Array], tuple[float, Array, Array]],
    start: Array,
    radius: float,
    residual: Callable[[Array, Array], float],
    tolerance: float,
    iterations: int = 300,
) -> tuple[Array, float]:
    """Minimise x ↦ (value, gradient, Hessian) over ‖x‖ ≤ radius; answers x and its residual.

    On the boundary, where the function wants to leave the ball, steps go along the sphere; else
    they are ordinary ones, cut at the boundary.  Either way a step minimises a quadratic model over
    a trust region exactly, by eigenvectors, so that saddle points do not hold it; close to a
    solution it is Newton's step.  It ends where residual(x, gradient) is at most `tolerance`.
    """
    x = np.array(start, dtype=float)
    norm = float(np.linalg.norm(x))
    if norm > radius:
        x *= radius / norm
    value, gradient, hessian = function(x)
    distance = residual(x, gradient)
    trust, stalled = radius, 0
    model: tuple[Array, Array, Array, Array, bool] | None = None
    for _ in range(iterations):
        if distance <= tolerance or stalled >= 8:
            break
        if model is None:
            bound = np.linalg.norm(x) > radius * (1.0 - 1e-12) and gradient @ x < 0
            linear, curved = _on_sphere(x, gradient, hessian) if bound else (gradient, hessian)
            model = (linear, curved, *np.linalg.eigh(curved), bool(bound))
        linear, curved, values, vectors, bound = model
        move = _model_minimizer(values, vectors, linear, trust)
        y = x + move
        reached = float(np.linalg.norm(y))
        if bound or reached > radius:
            y *= radius / reached
        foretold = float(linear @ move + 0.5 * move @ (curved @ move))
        trial, trial_gradient, trial_hessian = function(y)
        now = residual(y, trial_gradient)
        # Below the rounding of the value only the residual can tell whether a step was good.
        rounding = 1e-13 * max(1.0, abs(value))
        blind = abs(trial - value) <= rounding and abs(foretold) <= rounding
        ratio = (trial - value) / foretold if foretold < 0 else -1.0
        length = float(np.linalg.norm(move))
        if (now < distance) if blind else (ratio > 0.05 and trial < value):
            x, value, gradient, hessian, distance = y, trial, trial_gradient, trial_hessian, now
            model, stalled = None, 0
            if ratio > 0.7 and length > 0.5 * trust:
                trust = min(2.0 * trust, radius)
        else:
            stalled += blind
        if ratio < 0.25 and not blind:
            trust = 0.25 * length
    return x, distance
