"""Directions and ranks of matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attsvm import _checks
from attsvm._typing import ArrayLike, FloatArray
from attsvm.errors import ArgumentError


def _scaled(name: str, value: ArrayLike) -> FloatArray:
    """(…, p, q), each matrix divided by its largest entry; zero stays zero."""
    read = _checks.array(name, value)
    if read.ndim < 2:
        raise ArgumentError(name, "shape (…, p, q)", f"shape {read.shape}")
    largest = np.abs(read).max(axis=(-2, -1), keepdims=True)
    return read / np.where(largest > 0, largest, 1.0)


def broadcast_leading(name: str, have: tuple[int, ...], with_: tuple[int, ...]) -> None:
    """Complain where the leading axes of an argument do not broadcast with those of another."""
    try:
        np.broadcast_shapes(have, with_)
    except ValueError as error:
        expected = f"leading axes that broadcast with {with_}"
        raise ArgumentError(name, expected, f"{have}") from error


def correlation(A: ArrayLike, B: ArrayLike) -> FloatArray:
    """Correlation coefficient ⟨A, B⟩ / (‖A‖_F ‖B‖_F): the cosine between two matrices.

    The paper's measure of convergence in direction (Section 5).

    Parameters
    ----------
    A, B
        (…, p, q), broadcast against each other over the leading axes.

    Returns
    -------
    ndarray
        (…), in [−1, 1]; NaN where a matrix is zero and has no direction.

    Raises
    ------
    ArgumentError
        If an input holds NaN or infinity, has fewer than two axes, or shapes do not broadcast.
    """
    # Scaled, so that entries of 1e±200 neither overflow nor vanish in the products.
    a, b = _scaled("A", A), _scaled("B", B)
    if a.shape[-2:] != b.shape[-2:]:
        raise ArgumentError("B", f"matrices of shape {a.shape[-2:]}", f"shape {b.shape}")
    broadcast_leading("B", b.shape[:-2], a.shape[:-2])
    inner = np.einsum("...pq,...pq->...", a, b)
    norms = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(b, axis=(-2, -1))
    with np.errstate(invalid="ignore"):
        return np.clip(inner / norms, -1.0, 1.0)


@dataclass(frozen=True)
class NumericalRank:
    """How many singular values count, and how clearly the next one does not.

    Attributes
    ----------
    rank, threshold
        Number of singular values above the (absolute) threshold.
    kept, dropped
        The smallest one counted and the largest one not counted; inf and 0 where there is none.
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
    tolerance, relative
        Threshold on the singular values: a multiple of the largest one, or absolute as in the
        published experiment on ranks (Section 2).

    Raises
    ------
    ArgumentError
        If W is not a finite matrix or the tolerance is negative.
    """
    matrix = _checks.array("W", W, ndim=2)
    tolerance = _checks.number("tolerance", tolerance, at_least=0.0)
    values = np.linalg.svd(matrix, compute_uv=False)
    threshold = tolerance * float(values.max(initial=0.0)) if relative else tolerance
    rank = int((values > threshold).sum())
    around = np.concatenate([[np.inf], values, [0.0]])
    return NumericalRank(rank, threshold, kept=float(around[rank]), dropped=float(around[rank + 1]))


def stable_rank(W: ArrayLike) -> FloatArray:
    """(‖W‖_* / ‖W‖_F)², which lies between one and the rank and needs no threshold.

    Parameters
    ----------
    W
        (…, p, q).

    Returns
    -------
    ndarray
        (…); NaN where a matrix is zero.

    Raises
    ------
    ArgumentError
        If W is not finite or has fewer than two axes.
    """
    values = np.linalg.svd(_scaled("W", W), compute_uv=False)
    with np.errstate(invalid="ignore"):
        return values.sum(-1) ** 2 / (values**2).sum(-1)
