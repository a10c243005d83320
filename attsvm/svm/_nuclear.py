"""Nuclear-norm programs: min ‖W‖_* subject to <D_j z_j', W> ≥ b_j (= b_j where free).

Three steps: the Frobenius solution as a start, the central path of `_interior` to a few digits, and
`_polish`, which solves the optimality conditions on the face the path points to by Newton's method
with the exact curvature (:cite:t:`overton1995second`): that gives the remaining digits and a W of
exactly low rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from attsvm._linalg import packed, span, unpacked
from attsvm._typing import BoolArray, FloatArray
from attsvm.svm._constraints import Rows
from attsvm.svm._interior import Path, blocks, schur

_ITERATIONS = 60
# Relative gaps at which polishing is tried; the last is as far as the path itself gets.
_POLISH_AT = (1e-6, 1e-7, 1e-8, 1e-10, 1e-11)
_ENOUGH = 1e-12
# Where another Newton step only stirs rounding.
_ROUNDING = 2e-14
_NEWTON_STEPS = 8
_CORRECTIONS = 4


@dataclass(slots=True)
class Candidate:
    """A pair (W, λ) in reduced, normalised units with what its certificate says.

    `error` is the relative gap, plus the largest violation of an equality.
    """

    W: FloatArray
    multipliers: FloatArray
    error: float

    def __lt__(self, other: Candidate) -> bool:
        return self.error < other.error


def candidate(rows: Rows, W: FloatArray, multipliers: FloatArray) -> Candidate:
    """Scale W to its smallest margin and measure the gap to b'λ / ‖M(λ)‖_op."""
    values, margin = rows.values(W), ~rows.free
    multipliers = np.where(margin, np.maximum(multipliers, 0.0), multipliers)
    # Equalities beside margins are homogeneous, so that scaling does not touch them.
    factor = float((values[margin] / rows.b[margin]).min()) if margin.any() else 1.0
    off = float(np.abs(values - rows.b)[rows.free].max(initial=0.0))
    if not factor > 0:
        return Candidate(W, multipliers, np.inf)
    W = W / factor
    top = float(np.linalg.norm(rows.combine(multipliers), 2))
    objective = float(np.linalg.svd(W, compute_uv=False).sum())
    if not top > 0:
        return Candidate(W, multipliers, np.inf)
    multipliers = multipliers / top
    gap = (objective - float(rows.b @ multipliers)) / objective
    return Candidate(W, multipliers, abs(gap) + off / objective)


def _rest_of_top(M: FloatArray, r: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Top r singular vectors U1, V1 of M, all its singular values, and R.

    R = Σ_k e_k e_k' / (1 − μ_k) over the k that are not on top, where μ_k, e_k are the eigenvalues
    and eigenvectors of the dilation of M.
    """
    U, sigma, Vt = np.linalg.svd(M, full_matrices=False)
    V = Vt.T
    below, above = 0.5 / (1.0 + sigma), np.zeros_like(sigma)
    # A singular value that has met the top one from below would divide by zero.
    above[r:] = 0.5 / np.maximum(1.0 - sigma[r:], 1e-14)
    # Directions outside the singular vectors have eigenvalue 0, weight 1.
    R = blocks(
        (U * (above + below - 1.0)) @ U.T + np.eye(len(U)),
        (U * (above - below)) @ V.T,
        (V * (above + below - 1.0)) @ V.T + np.eye(len(V)),
    )
    return U[:, :r], V[:, :r], sigma, R


def _solve_symmetric(K: FloatArray, right: FloatArray, reach: float) -> FloatArray:
    """K⁻¹ right, or the shortest solution where the face leaves directions (nearly) undetermined.

    A step longer than `reach` is no Newton step: it comes from such a direction.
    """
    try:
        solution = np.asarray(np.linalg.solve(K, right), dtype=np.float64)
        if float(np.abs(solution).max()) <= reach:
            return solution
    except np.linalg.LinAlgError:
        # Exactly singular: the shortest solution below is the one that is meant.
        solution = right
    return np.asarray(np.linalg.lstsq(K, right, rcond=1e-9)[0], dtype=np.float64)


def _polish(
    rows: Rows, W: FloatArray, multipliers: FloatArray, active: BoolArray, r: int
) -> tuple[Candidate, BoolArray]:
    """Newton's method on the face {λ_j = 0 off `active`, the r top singular values of M equal 1}.

    With the top singular vectors U1, V1 of M(λ), W = U1 H V1' and Q = 2 <𝓐_j, X̄ 𝓐_k R>, a step is

        [Q  J'] [δ]   [b − J'h  ]
        [J  0 ] [η] = [I − Σ_top],     J_j = sym(U1'D_j z_j'V1),  h = H packed, h ← h + η.

    Returns the best iterate, and the active set as its signs would have it.
    """
    part = rows.part(active)
    y = np.where(active, multipliers, 0.0)
    k = int(active.sum())
    row, column = np.triu_indices(r)
    weight = np.where(row == column, 1.0, np.sqrt(2.0))
    best, previous = Candidate(W, multipliers, np.inf), np.inf
    for _ in range(_NEWTON_STEPS):
        U, V, sigma, R = _rest_of_top(rows.combine(y), r)
        J = packed(part.D @ U, part.Z @ V).T
        # The vectors of a cluster of singular values are fixed up to rotation only: H follows them.
        H = U.T @ W @ V
        H = 0.5 * (H + H.T)
        E = np.vstack([U, V]) * np.sqrt(0.5)
        K = np.zeros((k + len(J), k + len(J)))
        K[:k, :k] = 2.0 * schur(part.D, part.Z, E @ H @ E.T, R)
        K[k:, :k] = J
        K[:k, k:] = J.T
        h = H[row, column] * weight
        right = np.concatenate([part.b - h @ J, np.where(row == column, 1.0 - sigma[row], 0.0)])
        reach = 0.1 * max(float(np.abs(y).max()), float(np.abs(h).max()))
        solution = _solve_symmetric(K, right, reach)
        H = unpacked(h + solution[k:], r)
        y = y.copy()
        y[active] += solution[:k]
        W = U @ H @ V.T
        best = min(best, candidate(rows, W, y))
        change = float(np.abs(solution).max())
        if best.error < _ROUNDING or not change < 0.5 * previous:
            break
        previous = change
    # Above the upper limit Newton has not converged: the face is wrong, and nothing to lift.
    if 0.1 * _ENOUGH < best.error < 1e-4 and rows.plain:
        inverse: FloatArray = np.linalg.pinv(J.T, rcond=1e-12)
        lifted = _lifted(W, part, inverse, lambda h: U @ unpacked(h, r) @ V.T)
        best = min(best, candidate(rows, lifted, y))
        if best.error > 100 * _ENOUGH:
            inverse = np.asarray(np.linalg.pinv(part.gram(), 1e-14, hermitian=True), float)
            best = min(best, candidate(rows, _lifted(W, part, inverse, part.combine), y))
    pushing = (y < 0.0) & ~rows.free
    missing = ~active & (rows.values(W) < rows.b * (1.0 - 1e-9))
    return best, (active & ~pushing) | missing


def _lifted(
    W: FloatArray, part: Rows, inverse: FloatArray, step: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """W with active margins a few roundings of W above b_j, not just within them.

    Rows with a small b_j (long tokens or queries, or a W that is long because the instance is
    nearly infeasible) would otherwise fall short by much in relation, and scaling all of W up for
    them would cost as much of the gap.  Steps within U1 H V1' keep the rank of W; others have a few
    digits more and leave singular values of rounding size.
    """
    for _ in range(3):
        rounding = 4.0 * np.finfo(float).eps * float(np.linalg.norm(W))
        W = W + step(inverse @ (part.b + rounding - part.values(W)))
    return W


def _settle(path: Path, bias: float) -> Candidate:
    """Polish on the face the path points to, and on its neighbours while signs come out wrong.

    Of each pair (λ_j, s_j), (σ_k(W), 1 − σ_k(M)) the larger counts.  Where strict complementarity
    fails both tend to 0 together; `bias` > 1 then takes such pairs in.
    """
    W, multipliers = path.W(), path.multipliers
    active = path.free | (bias * multipliers > path.s)
    sigma = np.linalg.svd(path.rows.combine(multipliers), compute_uv=False)
    weights = np.linalg.svd(W, compute_uv=False)
    r = max(1, int((bias * weights > 1.0 - sigma).sum()))
    best = Candidate(W, multipliers, np.inf)
    for _ in range(_CORRECTIONS):
        found, corrected = _polish(path.rows, W, multipliers, active, r)
        best = min(best, found)
        if best.error < _ENOUGH or (corrected == active).all():
            break
        active = corrected
    return best


def _solve_reduced(rows: Rows, start: FloatArray) -> Candidate:
    """The program in coordinates where differences and queries span everything."""
    path = Path(rows, start)
    best = Candidate(path.W(), path.multipliers, np.inf)
    milestones = list(_POLISH_AT)
    for _ in range(_ITERATIONS):
        moved = path.advance()
        gap = path.gap()
        if moved and gap >= milestones[0]:
            continue
        while len(milestones) > 1 and gap < milestones[0]:
            milestones.pop(0)
        own = candidate(rows, path.W(), path.multipliers)
        best = min(best, own, _settle(path, 1.0))
        if best.error > _ENOUGH and (not moved or gap < 1e-8):
            best = min(best, _settle(path, 1e3))
        if best.error < _ENOUGH or not moved or gap < milestones[-1]:
            break
    return best


def nuclear_norm(
    rows: Rows, frobenius: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """W of least nuclear norm and its multipliers, from those of least Frobenius norm.

    W (d, d) is in the units of the rows as given, the multipliers (m,) are those of the normalised
    rows, with ‖M(λ)‖_op = 1.
    """
    left, right = span(rows.D), span(rows.Z)
    if min(left.shape[1], right.shape[1]) == 1:
        # Everything has rank one, where all norms agree.
        return rows.scale * frobenius, start / float(np.linalg.norm(frobenius))
    reduced = replace(rows, D=rows.D @ left, Z=rows.Z @ right)
    # Right-hand sides in units in which the Frobenius solution has size one.
    size = float(np.linalg.norm(reduced.combine(start)))
    reduced.b = rows.b / size
    found = _solve_reduced(reduced, start / size)
    return rows.scale * size * (left @ found.W @ right.T), found.multipliers
