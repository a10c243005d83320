"""Linear algebra that several modules share."""

from __future__ import annotations

import numpy as np

from attsvm._typing import Array, Float

__all__ = ["RANK_TOLERANCE", "span", "step_to_zero"]

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
