"""Least-distance problems: min ‖W‖_F subject to <D_j z_j', W> ≥ b_j (= b_j where free).

The dual is min ½ λ'Gλ − b'λ over λ ≥ 0 with the Gram matrix G = (DD') ∘ (ZZ'), and
W = Σ λ_j D_j z_j'.  Two methods, chosen by measurement:

* *Block principal pivoting* on G (:cite:t:`judice1994block`, safeguards of :cite:t:`kim2011fast`):
  exchange every index of wrong sign at once.  It needs 2 to 8 Cholesky factorisations whether there
  are 20 or 3800 constraints, so it wins wherever the rows are (nearly) independent.
* *NNLS* (:cite:t:`lawson1974solving`) on [A'; b'] u ≈ e_last, whose residual gives W.  Here zero
  residual is the same as infeasible, and dependent rows do no harm: it takes over where pivoting
  does not settle, with many more constraints than dimensions, near infeasibility and beyond.

Beyond `_LARGE` rows both work on a growing and shrinking set of them: 3800 constraints in d = 64
then take 0.7 s instead of 2.7 s, in d = 32 0.2 s instead of 11 s, and G is never formed in full.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv, dpotrs

from attsvm._typing import BoolArray, FloatArray, IntArray
from attsvm.svm._constraints import Rows

# Added to the (unit) diagonal of G: makes every principal block factorise; refinement removes its
# effect on the multipliers afterwards.
_SHIFT = 1e-11
_ROUNDS = 60
# Rows from which a working set pays.
_LARGE = 300
_EPS = float(np.finfo(float).eps)


@dataclass(slots=True)
class _Settled:
    """Multipliers, the indices where they are not held at zero, and the Cholesky factor there."""

    multipliers: FloatArray
    index: IntArray
    factor: FloatArray


def _pivot(G: FloatArray, b: FloatArray, free: BoolArray) -> _Settled | None:
    """Multipliers by block principal pivoting, or None if it does not settle."""
    m = len(b)
    F = np.ones(m, dtype=bool)
    fewest, patience = m + 1, 3
    for _ in range(_ROUNDS):
        index = F.nonzero()[0]
        block = G if len(index) == m else G[index[:, None], index]
        # The transpose of a symmetric matrix in the order LAPACK reads without copying it first.
        factor, solution, info = dposv(block.T, b[index], lower=1)
        if info:
            return None
        multipliers = np.zeros(m)
        multipliers[index] = solution
        # λ where it is free to move, the slack Gλ − b elsewhere: both have to be ≥ 0.
        signs = np.where(F, multipliers, G @ multipliers - b)
        signs[free] = 0.0
        noise = 1e-14 * max(1.0, float(np.abs(solution).max(initial=0.0)))
        wrong = (signs < -noise).nonzero()[0]
        if len(wrong) == 0:
            return _Settled(multipliers, index, factor)
        if len(wrong) < fewest:
            fewest, patience = len(wrong), 3
        elif patience:
            patience -= 1
        else:
            # Murty's rule: one exchange at a time cannot cycle.
            wrong = wrong[-1:]
        F[wrong] ^= True
    return None


def _refine(rows: Rows, start: _Settled) -> tuple[FloatArray, FloatArray]:
    """Solve a_j(W) = b_j on the active set to the last digit; W and its multipliers.

    The residual is taken from W, not from G, so that the shift of G and the rounding of its factor
    only cost steps; and W is corrected, not recomputed as Σ λ_j a_j, whose terms may cancel.
    """
    W, multipliers = rows.combine(start.multipliers), start.multipliers
    if len(start.index) == 0:
        return W, multipliers
    W, multipliers = _iterate(rows, start, rows.b, W, multipliers)
    # What is left is the rounding of W, about eps·‖W‖ whatever b_j. Rows with a small b_j (long
    # tokens or queries) cannot bear it, and scaling W up would charge all for it. So ask every row
    # for that much more; it costs eps·Σλ/‖W‖ of the objective.
    rounding = 4.0 * _EPS * math.sqrt(float(np.vdot(W, W)))
    if rows.plain and rounding > 1e-13 * float(rows.b[start.index].min()):
        W, multipliers = _iterate(rows, start, rows.b + rounding, W, multipliers)
    return W, multipliers


def _iterate(
    rows: Rows, start: _Settled, b: FloatArray, W: FloatArray, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Iterative refinement of a_j(W) = b_j on the active set."""
    index = start.index
    best, smallest = (W, multipliers), np.inf
    for _ in range(6):
        residual = (b - rows.values(W))[index]
        worst = float(np.abs(residual).max())
        if not worst < smallest:
            break
        best, smallest = (W, multipliers), worst
        if worst < 1e-16:
            break
        step = np.zeros(len(rows))
        step[index] = dpotrs(start.factor, residual, lower=1)[0]
        W, multipliers = W + rows.combine(step), multipliers + step
    return best


def _lawson_hanson(rows: Rows, b: FloatArray) -> tuple[FloatArray, float]:
    """NNLS on [A'; b'] u ≈ e_last: u (free multipliers by a pair of columns) and 1 − b'u ≥ 0."""
    # Imported here because many instances never need it and scipy.optimize is slow to load.
    from scipy.optimize import nnls

    A, m = rows.matrix().T, len(rows)
    if A.shape[0] > m:
        A = np.asarray(np.linalg.qr(A, mode="r"))
    E = np.vstack([A, b])
    E = np.hstack([E, -E[:, rows.free]])
    target = np.zeros(E.shape[0])
    target[-1] = 1.0
    both, _ = nnls(E, target, maxiter=max(300, 10 * E.shape[1]))
    u = both[:m].copy()
    u[rows.free] -= both[m:]
    return u, 1.0 - float(b @ u)


def least_distance(rows: Rows) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """W of least Frobenius norm, its multipliers, and Farkas multipliers if the rows contradict.

    Returns
    -------
    W
        (d, d), in units of rows.scale.
    multipliers
        (m,), W = rows.combine(multipliers) up to rounding.
    farkas
        (m,) or None. Candidates only: whoever calls holds both against the certificate.
    """
    m, d = rows.D.shape
    if m == 0:
        return np.zeros((d, d)), np.zeros(0), None
    impossible = (rows.norms == 0) & (rows.b > 0)
    if impossible.any():
        # The constraint reads 0 ≥ 1: a zero query or a copy of the selected token.
        return np.zeros((d, d)), np.zeros(m), impossible.astype(np.float64)
    return _by_working_set(rows) if m > _LARGE else _direct(rows)


def _by_working_set(rows: Rows) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """The program for a few rows at a time: drop those without force, add those W violates.

    The objective grows from round to round, so no set comes back; inconsistent rows prove that all
    are.
    """
    m, free = len(rows), rows.free
    W = rows.combine(np.where(free, 0.0, 1.0 / m))
    portion = min(m, max(100, min(m, min(rows.D.shape) ** 2) // 2))
    inside = free.copy()
    inside[np.argsort(rows.values(W) - rows.b)[:portion]] = True
    for _ in range(_ROUNDS):
        index = inside.nonzero()[0]
        multipliers, proof = np.zeros(m), np.zeros(m)
        W, multipliers[index], farkas = _direct(rows.part(index))
        if farkas is not None:
            proof[index] = farkas
            return W, multipliers, proof
        # Relative to b, like the certificate, so that long queries do not drown short ones.
        short = (rows.values(W) - rows.b) / np.where(free, 1.0, rows.b)
        new = ((short < -1e-13) & ~inside).nonzero()[0]
        if len(new) == 0:
            return W, multipliers, None
        inside &= (multipliers > 0) | free
        inside[new[np.argsort(short[new])[:portion]]] = True
    return _direct(rows)


def _direct(rows: Rows) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """The program with all rows at once: pivoting, and NNLS where that does not settle."""
    m = len(rows)
    G = rows.gram()
    G.flat[:: m + 1] += _SHIFT
    settled = _pivot(G, rows.b, rows.free)
    if settled is not None:
        W, multipliers = _refine(rows, settled)
        slack = rows.values(W) - rows.b
        slack[rows.free] = -np.abs(slack[rows.free])
        if float(slack.min()) >= -1e-12 * max(1.0, float(np.abs(W).max())):
            return W, multipliers, None
    return _robust(rows, G)


def _robust(rows: Rows, G: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """The same through NNLS, rescaled until the decision is clear."""
    b = rows.b
    rescale = 1.0
    for _ in range(4):
        u, rest = _lawson_hanson(rows, b * rescale)
        combination = rows.combine(u)
        # 1 − b'u = 1/(1 + ‖W‖²) in the units of b·rescale: shrink b until ‖W‖ is about one, so that
        # the difference keeps its digits.
        if rest > 1e-3 or float(np.linalg.norm(combination)) <= 1e-13 * float(np.abs(u).sum()):
            break
        rescale *= float(np.sqrt(max(rest, 1e-12)))
    if rest > 1e-9:
        multipliers = u / (rest * rescale)
        index = multipliers.nonzero()[0]
        if len(index):
            factor, _, info = dposv(G[index[:, None], index].T, b[index], lower=1)
            if not info:
                return *_refine(rows, _Settled(multipliers, index, factor)), None
        return rows.combine(multipliers), multipliers, None
    return np.zeros_like(combination), np.zeros(len(rows)), _sharpened(rows, u)


def _sharpened(rows: Rows, u: FloatArray) -> FloatArray:
    """Project u on the null space of its rows: a combination that vanishes up to rounding."""
    index = np.flatnonzero(u)
    A = rows.matrix()[index].T
    correction = np.linalg.lstsq(A, A @ u[index], rcond=1e-13)[0]
    better = u.copy()
    better[index] = u[index] - correction
    signed = np.where(rows.free, 0.0, better)
    return better if float(signed.min()) >= 0 and float(better.max()) > 0 else u
