"""The set of all nuclear-norm solutions: is it one point, and how low does its rank go?

Every optimal W satisfies <M, W> = ‖W‖_* for M = Σ λ_it D_it z_i' with ‖M‖_op = 1, hence
W = U1 H V1' with the top singular vectors U1, V1 of M and H ⪰ 0 symmetric.  So the solutions form
the face

    { H ⪰ 0 :  D_it' U1 H V1' z_i = 1 where λ_it > 0,  ≥ 1 elsewhere },

and its extreme points have low rank (:cite:t:`barvinok1995problems`, :cite:t:`pataki1998rank`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attsvm._linalg import RANK_TOLERANCE, packed, unpacked
from attsvm._typing import FloatArray

# What counts as zero among quantities that a certified solution has to about 1e-12.
_ZERO = RANK_TOLERANCE


@dataclass(frozen=True, eq=False)
class Face:
    """The solution set of an instance.

    Parameters
    ----------
    dimension
        Number of independent directions in which W can move and stay optimal; 0: W is unique.
    rank
        Rank of the returned W.
    lowest_rank
        The lowest rank found among the solutions, by walking from W to an extreme point of the
        face. Equal to `rank` if W is unique; otherwise an upper bound on the least possible.
    W
        (d, d), an optimal W of that rank.
    """

    dimension: int
    rank: int
    lowest_rank: int
    W: FloatArray


def face_of(
    W: FloatArray, M: FloatArray, D: FloatArray, Z: FloatArray, multipliers: FloatArray
) -> Face:
    """The face through W for constraints D_j' W z_j ≥ 1 with multipliers λ_j.

    M = Σ λ_j D_j z_j'.
    """
    U, sigma, Vt = np.linalg.svd(M)
    top = sigma > sigma[0] * (1.0 - _ZERO)
    U, V = U[:, top], Vt[top].T
    H = U.T @ W @ V
    H = 0.5 * (H + H.T)
    left, right = D @ U, Z @ V
    dimension = _free_directions(H, left, right, multipliers, on_face=True).shape[0]
    rank = _factor(H).shape[1]
    for _ in range(len(multipliers) + len(H) + 1):
        directions = _free_directions(H, left, right, multipliers)
        if len(directions) == 0:
            break
        H = _walk(H, directions[0], left, right)
    return Face(dimension, rank, _factor(H).shape[1], U @ H @ V.T)


def _factor(H: FloatArray) -> FloatArray:
    """L with H = L L', of as many columns as H has rank."""
    values, vectors = np.linalg.eigh(H)
    keep = values > _ZERO * values[-1]
    return vectors[:, keep] * np.sqrt(values[keep])


def _values(left: FloatArray, right: FloatArray, H: FloatArray) -> FloatArray:
    return ((left @ H) * right).sum(1)


def _free_directions(
    H: FloatArray,
    left: FloatArray,
    right: FloatArray,
    multipliers: FloatArray,
    on_face: bool = False,
) -> FloatArray:
    """(k, r, r), symmetric directions in which H can move to both sides.

    No tight margin changes along them. `on_face` counts in the affine hull of the face: only
    margins with λ > 0 are held.
    """
    tight = multipliers > _ZERO * multipliers.max()
    if not on_face:
        tight |= _values(left, right, H) <= 1.0 + _ZERO
    L = _factor(H) if not on_face else np.eye(len(H))
    J = packed(left[tight] @ L, right[tight] @ L)
    J = J / np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-300)
    _, values, basis = np.linalg.svd(J, full_matrices=True)
    return L @ unpacked(basis[int((values > _ZERO).sum()) :], L.shape[1]) @ L.T


def _walk(H: FloatArray, direction: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Move until H loses rank or another margin becomes tight; the side that loses rank first."""
    L = _factor(H)
    inverse = np.linalg.pinv(L)
    relative = np.linalg.eigvalsh(inverse @ direction @ inverse.T)
    slack = _values(left, right, H) - 1.0
    change = _values(left, right, direction)
    options = []
    for sign in (1.0, -1.0):
        falling = (sign * change < 0) & (slack > _ZERO)
        to_margin = float((slack[falling] / np.abs(change[falling])).min(initial=np.inf))
        least = float((sign * relative).min())
        to_boundary = -1.0 / least if least < 0 else np.inf
        options.append((to_boundary > to_margin, min(to_boundary, to_margin), sign))
    _, length, sign = min(options)
    moved = H + sign * length * direction
    # On the boundary an eigenvalue is zero up to rounding: make it zero.
    factor = _factor(moved)
    return factor @ factor.T
