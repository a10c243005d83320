"""Minimises ‖W‖_p (entrywise) under the margins."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from attsvm._linalg import step_to_zero
from attsvm._typing import FloatArray
from attsvm.svm._constraints import Rows

_STEPS = 80


def entrywise(rows: Rows, start: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
    """W (d, d) and multipliers, following p from 2 to its value in moderate steps."""
    d = rows.D.shape[1]
    # Units in which the Frobenius solution has entries of size about one, where powers are
    # harmless.
    size = float(np.abs(rows.combine(start)).max())
    A, b = rows.matrix(), rows.b / size
    w, y = A.T @ (start / size), start / size
    # Each intermediate exponent starts the next one well inside its Newton region.
    count = max(1, int(np.ceil(abs(np.log(p - 1.0)) / np.log(1.6))))
    for exponent in 1.0 + (p - 1.0) ** (np.arange(1, count + 1) / count):
        w, y = _interior_point(A, b, w, y, float(exponent))
    return rows.scale * size * w.reshape(d, d), y


def _interior_point(
    A: FloatArray, b: FloatArray, w: FloatArray, y: FloatArray, p: float
) -> tuple[FloatArray, FloatArray]:
    """min (1/p) Σ|w|^p s.t. A w ≥ b, from a nearby exponent's solution.

    Primal-dual with predictor and corrector, as in :cite:t:`mehrotra1992implementation`.

    For p ≥ 2 the condition |w|^{p−1} sign w = A'y is linearised in w, for p < 2 its inverse
    w = |A'y|^{q−1} sign A'y in y: of the two the one whose derivative stays finite at 0.
    """
    q = p / (p - 1.0)
    # Multipliers of the last exponent, rescaled so that w and its own gradient agree in size.
    gradient = np.sign(w) * np.abs(w) ** (p - 1.0)
    scale = float(gradient @ w) / max(float(y @ b), 1e-300)
    floor = 0.05 * float(np.abs(y).mean())
    y = np.maximum(y, floor) * scale
    w = 1.2 * w
    s = np.maximum(A @ w - b, 0.1 * b)
    m = len(b)
    for _ in range(_STEPS):
        mu = float(s @ y) / m
        M = A.T @ y
        if p >= 2.0:
            # A speck of curvature keeps zero entries from making the system singular.
            inverse = 1.0 / ((p - 1.0) * np.abs(w) ** (p - 2.0) + 1e-12)
            off = np.sign(w) * np.abs(w) ** (p - 1.0) - M
        else:
            inverse = (q - 1.0) * np.abs(M) ** (q - 2.0) + 1e-14
            off = w - np.sign(M) * np.abs(M) ** (q - 1.0)
        primal = A @ w - s - b
        size = max(1.0, float(np.abs(w).max()))
        if (
            mu * m < 1e-15 * float(y @ b)
            and max(np.abs(off).max(), np.abs(primal).max()) < 1e-14 * size
        ):
            break
        # dw = inverse·(A'dy − off) (p ≥ 2) or inverse·A'dy − off (p < 2).
        shift = inverse * off if p >= 2.0 else off
        K = (A * inverse) @ A.T
        K.flat[:: m + 1] += s / y
        # Predictor without centring decides how much centring the step gets.
        right = b - A @ (w - shift)
        _, guess, info = dposv(K, right, lower=1)
        if info:
            break
        ds = -s - s * guess / y
        length = min(1.0, step_to_zero(s, ds), step_to_zero(y, guess))
        centre = max((1.0 - length) ** 3, 1e-6) * mu
        _, dy, info = dposv(K, right + (centre - ds * guess * length) / y, lower=1)
        if info:
            break
        dw = inverse * (A.T @ dy) - shift
        ds = (centre - ds * guess * length - s * dy) / y - s
        length = 0.99 * min(1.0 / 0.99, step_to_zero(s, ds), step_to_zero(y, dy))
        # Newton's model of a power is trusted for a moderate change only.
        change = float(np.abs(A.T @ dy).max()) / max(float(np.abs(M).max()), 1e-300)
        length = min(length, 1.0 / max(change, 1e-300)) if change > 1.0 else length
        w, s, y = w + length * dw, s + length * ds, y + length * dy
    return w, y
