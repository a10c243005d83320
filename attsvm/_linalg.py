"""Linear algebra that several modules share."""

from __future__ import annotations

import numpy as np

from attsvm._typing import Array, Float

__all__ = ["RANK_TOLERANCE", "packed", "span", "step_to_zero", "unpacked"]

RANK_TOLERANCE = 1e-7
"""Singular values above this multiple of the largest count towards a rank."""


def span(rows: Float[Array, "m d"]) -> Float[Array, "d rank"]:
    """An orthonormal basis of the span of rows.

    Singular values up to max(m, d)·eps of the largest count as zero.
    """
    _, values, vectors = np.linalg.svd(rows, full_matrices=False)
    return vectors[values > values[0] * max(rows.shape) * np.finfo(float).eps].T


def step_to_zero(value: Float[Array, " m"], direction: Float[Array, " m"]) -> float:
    """The largest α with value + α·direction ≥ 0 for value ≥ 0; inf if no entry decreases."""
    decreasing = direction < 0
    return float((-value[decreasing] / direction[decreasing]).min(initial=np.inf))


def packed(u: Float[Array, "k r"], v: Float[Array, "k r"]) -> Float[Array, "k pairs"]:
    """The symmetric matrices ½(u_j v_j' + v_j u_j') as rows of length r(r+1)/2, isometrically."""
    row, column = np.triu_indices(u.shape[1])
    weight = np.where(row == column, 0.5, np.sqrt(0.5))
    return weight * (u[:, row] * v[:, column] + u[:, column] * v[:, row])


def unpacked(h: Float[Array, "*k pairs"], r: int) -> Float[Array, "*k {r} {r}"]:
    """The symmetric matrices of size r whose packed rows these are."""
    H = np.zeros((*h.shape[:-1], r, r))
    row, column = np.triu_indices(r)
    H[..., row, column] = h * np.where(row == column, 1.0, np.sqrt(0.5))
    H[..., column, row] = H[..., row, column]
    return H
