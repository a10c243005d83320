"""Nuclear-norm programs: min ‖W‖_* subject to <D_j z_j', W> ≥ b_j (= b_j where free).

With the dilation 𝓜(λ) = [[0, M], [M', 0]] of M(λ) = Σ λ_j D_j z_j' the program and its dual are

    min tr X̄   s.t.  <𝓐_j, X̄> − s_j = b_j,  s ≥ 0,  X̄ = ½[[·, W], [W', ·]] ⪰ 0
    max b'λ    s.t.  S = I − 𝓜(λ) ⪰ 0,  λ ≥ 0        (that is, ‖M(λ)‖_op ≤ 1)

Every 𝓐_j has rank two, so the Schur complement of a primal-dual step is a sum of Hadamard products
of Gram matrices (`_schur`): one step costs a few matrix products and one Cholesky factor of size m.
That is why this module has an interior-point method of its own (`_Path`) instead of a general
solver, which would handle a dense block of size (p+q)² for each of m constraints.

The path stops at about eight digits.  `_polish` then solves the optimality conditions on the face
it points to by Newton's method with the exact curvature (Overton and Womersley 1995): that gives
the remaining digits and a W of exactly low rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from attsvm.svm._constraints import Rows

Float = NDArray[np.float64]

_ITERATIONS = 60
# Relative gaps at which polishing is tried; the last is as far as the path itself gets.
_POLISH_AT = (1e-5, 1e-7, 1e-9, 1e-11)
_ENOUGH = 1e-13


@dataclass(slots=True)
class Candidate:
    """A pair (W, λ) in reduced, normalised units with what its certificate says.

    `error` is the relative gap, plus the largest violation of an equality.
    """

    W: Float
    multipliers: Float
    error: float


def _basis(vectors: Float) -> Float:
    """Orthonormal basis (d, p) of the span of the rows."""
    _, values, right = np.linalg.svd(vectors, full_matrices=False)
    keep = values > values[0] * max(vectors.shape) * np.finfo(float).eps
    return right[keep].T


def _schur(D: Float, Z: Float, A: Float, B: Float) -> Float:
    """(m, m), <𝓐_j, A 𝓐_k B> for symmetric A, B of size p + q."""
    p = D.shape[1]
    DA, ZA = D @ A[:p], Z @ A[p:]
    DB, ZB = D @ B[:p], Z @ B[p:]
    result = (DA[:, :p] @ D.T) * (ZB[:, p:] @ Z.T)
    result += (ZA[:, p:] @ Z.T) * (DB[:, :p] @ D.T)
    cross = (DA[:, p:] @ Z.T) * (DB[:, p:] @ Z.T).T
    result += cross
    result += cross.T
    return result


def _inner(D: Float, Z: Float, A: Float) -> Float:
    """(m,), <𝓐_j, A> = 2 D_j' A_uv z_j for symmetric A."""
    p = D.shape[1]
    return 2.0 * ((D @ A[:p, p:]) * Z).sum(1)


def _dilation(D: Float, Z: Float, multipliers: Float) -> Float:
    p, q = D.shape[1], Z.shape[1]
    result = np.zeros((p + q, p + q))
    M = D.T @ (multipliers[:, None] * Z)
    result[:p, p:] = M
    result[p:, :p] = M.T
    return result


def _inverse_factor(A: Float) -> Float | None:
    """L⁻¹ with A = L L', or None if A is not positive definite."""
    L, info = dpotrf(A, lower=1, clean=1)
    if info:
        return None
    inverse, info = dtrtri(L, lower=1)
    return None if info else inverse


def _step(inverse_factor: Float, direction: Float) -> float:
    """Largest α with A + α·direction ⪰ 0 (inf if none ends it)."""
    least = np.linalg.eigvalsh(inverse_factor @ direction @ inverse_factor.T)[0]
    return np.inf if least >= 0 else -1.0 / float(least)


def _ratio(value: Float, direction: Float) -> float:
    falling = direction < 0
    return float((-value[falling] / direction[falling]).min(initial=np.inf))


def _error(found: Candidate) -> float:
    return found.error


def candidate(rows: Rows, W: Float, multipliers: Float) -> Candidate:
    """Scale W to its smallest margin and measure the gap to b'λ / ‖M(λ)‖_op."""
    values = rows.values(W)
    off = 0.0
    if rows.free is None:
        factor = float((values / rows.b).min())
        multipliers = np.maximum(multipliers, 0.0)
    else:
        margin = ~rows.free
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


class _Path:
    """Mehrotra's predictor-corrector with the HKM direction, from strictly feasible points."""

    def __init__(self, rows: Rows, start: Float) -> None:
        self.rows = rows
        self.D, self.Z, self.b = rows.D, rows.Z, rows.b
        p, q = rows.D.shape[1], rows.Z.shape[1]
        self.free = np.zeros(len(rows), dtype=bool) if rows.free is None else rows.free
        bound = ~self.free
        # Primal: the Frobenius solution, enlarged so that it has slack. Equalities of a homogeneous
        # right-hand side survive the scaling.
        W = (1.5 if bound.any() else 1.0) * rows.combine(start)
        U, sigma, Vt = np.linalg.svd(W, full_matrices=False)
        size = float(sigma.mean())
        self.X = np.empty((p + q, p + q))
        self.X[:p, :p] = 0.5 * ((U * sigma) @ U.T + size * np.eye(p))
        self.X[p:, p:] = 0.5 * ((Vt.T * sigma) @ Vt + size * np.eye(q))
        self.X[:p, p:] = 0.5 * W
        self.X[p:, :p] = 0.5 * W.T
        self.s = np.where(bound, np.maximum(rows.values(W) - rows.b, 0.1 * rows.b), 1.0)
        # Dual: the Frobenius multipliers, lifted off zero and shrunk into the spectral ball.
        positive = np.maximum(start, 0.1 * float(np.abs(start).mean()))
        self.multipliers = np.where(bound, positive, start)
        top = float(np.linalg.norm(rows.combine(self.multipliers), 2))
        self.multipliers *= 0.7 / top
        self.S = np.eye(p + q) - _dilation(self.D, self.Z, self.multipliers)

    def gap(self) -> float:
        """Relative duality gap of the iterate, before any rounding."""
        value = float(np.trace(self.X))
        return (value - float(self.b @ self.multipliers)) / value

    def W(self) -> Float:
        p = self.D.shape[1]
        return 2.0 * self.X[:p, p:]

    def advance(self) -> bool:
        """One predictor and corrector; False if rounding stops it."""
        D, Z, X, S, s, y = self.D, self.Z, self.X, self.S, self.s, self.multipliers
        bound = ~self.free
        count = X.shape[0] + int(bound.sum())
        Xi, Si = _inverse_factor(X), _inverse_factor(S)
        if Xi is None or Si is None:
            return False
        S_inverse = Si.T @ Si
        mu = (float((X * S).sum()) + float(s[bound] @ y[bound])) / count
        B = _schur(D, Z, X, S_inverse)
        size = len(y) + 1
        # The multiplier of an equality has no slack term; a speck keeps dependent rows
        # factorisable.
        B.flat[::size] += np.where(bound, s / np.where(bound, y, 1.0), 1e-13 * B.flat[::size])
        factor, info = dpotrf(B, lower=1, clean=0)
        if info:
            B.flat[::size] *= 1.0 + 1e-10
            factor, info = dpotrf(B, lower=1, clean=0)
            if info:
                return False
        inner = _inner(D, Z, S_inverse)

        def direction(target: float, C: Float | None, c: Float | float) -> tuple[Float, ...]:
            right = self.b - target * inner
            right = right + np.where(bound, (target - c) / np.where(bound, y, 1.0), 0.0)
            if C is not None:
                right = right + _inner(D, Z, C)
            dy = dpotrs(factor, right, lower=1)[0]
            dS = -_dilation(D, Z, dy)
            dX = X @ dS @ S_inverse
            dX = target * S_inverse - X - 0.5 * (dX + dX.T)
            if C is not None:
                dX = dX - C
            ds = np.where(bound, (target - c - s * dy) / np.where(bound, y, 1.0) - s, 0.0)
            return dX, ds, dS, dy

        def steps(dX: Float, ds: Float, dS: Float, dy: Float) -> tuple[float, float]:
            primal = min(_step(Xi, dX), _ratio(s[bound], ds[bound]))
            dual = min(_step(Si, dS), _ratio(y[bound], dy[bound]))
            return primal, dual

        dX, ds, dS, dy = direction(0.0, None, 0.0)
        primal, dual = (min(1.0, 0.98 * a) for a in steps(dX, ds, dS, dy))
        predicted = float(((X + primal * dX) * (S + dual * dS)).sum())
        predicted += float((s + primal * ds)[bound] @ (y + dual * dy)[bound])
        ratio = max(predicted / count / mu, 1e-8)
        centre = min(1.0, ratio**3 if min(primal, dual) > 0.3 else ratio**2)
        C = dX @ dS @ S_inverse
        dX, ds, dS, dy = direction(centre * mu, 0.5 * (C + C.T), ds * dy)
        damp = 0.9 + 0.08 * min(primal, dual)
        primal, dual = (min(1.0, damp * a) for a in steps(dX, ds, dS, dy))
        if max(primal, dual) < 1e-6:
            return False
        self.X = X + primal * dX
        self.s = s + primal * ds
        self.multipliers = y + dual * dy
        self.S = np.eye(X.shape[0]) - _dilation(D, Z, self.multipliers)
        return True


def _rest_of_top(M: Float, r: int) -> tuple[Float, Float, Float, Float]:
    """Top r singular vectors U1, V1 of M, all its singular values, and R.

    R = Σ_k e_k e_k' / (1 − μ_k) over the k that are not on top, where μ_k, e_k are the eigenvalues
    and eigenvectors of the dilation of M.
    """
    p, q = M.shape
    U, sigma, Vt = np.linalg.svd(M, full_matrices=False)
    V = Vt.T
    below = 0.5 / (1.0 + sigma)
    above = np.zeros_like(sigma)
    # A singular value that has met the top one from below would divide by zero.
    above[r:] = 0.5 / np.maximum(1.0 - sigma[r:], 1e-14)
    R = np.empty((p + q, p + q))
    # Directions outside the singular vectors have eigenvalue 0, weight 1.
    R[:p, :p] = (U * (above + below - 1.0)) @ U.T + np.eye(p)
    R[p:, p:] = (V * (above + below - 1.0)) @ V.T + np.eye(q)
    R[:p, p:] = (U * (above - below)) @ V.T
    R[p:, :p] = R[:p, p:].T
    return U[:, :r], V[:, :r], sigma, R


def _packed(u: Float, v: Float) -> Float:
    """(r(r+1)/2, k), the symmetric matrices ½(u_j v_j' + v_j u_j') as columns, isometrically."""
    r = u.shape[1]
    row, column = np.triu_indices(r)
    weight = np.where(row == column, 0.5, np.sqrt(0.5))
    return (weight * (u[:, row] * v[:, column] + u[:, column] * v[:, row])).T


def _unpacked(h: Float, r: int) -> Float:
    H = np.zeros((r, r))
    row, column = np.triu_indices(r)
    H[row, column] = h * np.where(row == column, 1.0, np.sqrt(0.5))
    return H + H.T - np.diag(np.diag(H))


def _solve_symmetric(K: Float, right: Float, reach: float) -> Float:
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
    rows: Rows, W: Float, multipliers: Float, active: NDArray[np.bool_], r: int
) -> Candidate:
    """Newton's method on the face {λ_j = 0 off `active`, the r top singular values of M equal 1}.

    With the top singular vectors U1, V1 of M(λ), W = U1 H V1' and Q = 2 <𝓐_j, X̄ 𝓐_k R>, a step is

        [Q  J'] [δ]   [b − J'h  ]
        [J  0 ] [η] = [I − Σ_top],     J_j = sym(U1'D_j z_j'V1),  h = H packed, h ← h + η.
    """
    D, Z, b = rows.D[active], rows.Z[active], rows.b[active]
    y = np.where(active, multipliers, 0.0)
    k = int(active.sum())
    best = Candidate(W, multipliers, np.inf)
    for _ in range(6):
        U, V, sigma, R = _rest_of_top(rows.combine(y), r)
        J = _packed(D @ U, Z @ V)
        # The vectors of a cluster of singular values are only fixed up to rotation: H has to
        # follow.
        H = U.T @ W @ V
        H = 0.5 * (H + H.T)
        E = np.vstack([U, V]) * np.sqrt(0.5)
        size = k + J.shape[0]
        K = np.zeros((size, size))
        K[:k, :k] = 2.0 * _schur(D, Z, E @ H @ E.T, R)
        K[k:, :k] = J
        K[:k, k:] = J.T
        row, column = np.triu_indices(r)
        h = H[row, column] * np.where(row == column, 1.0, np.sqrt(2.0))
        right = np.concatenate([b - h @ J, np.where(row == column, 1.0 - sigma[row], 0.0)])
        reach = 0.1 * max(float(np.abs(y).max()), float(np.abs(h).max()))
        solution = _solve_symmetric(K, right, reach)
        H = _unpacked(h + solution[k:], r)
        y = y.copy()
        y[active] += solution[:k]
        W = U @ H @ V.T
        found = candidate(rows, W, y)
        # Vectors of the new λ with the new H: second order better than those H was solved with.
        U, V, *_ = _rest_of_top(rows.combine(y), r)
        H = U.T @ W @ V
        h = (0.5 * (H + H.T))[row, column] * np.where(row == column, 1.0, np.sqrt(2.0))
        J = _packed(D @ U, Z @ V)
        h = h + np.linalg.lstsq(J.T, b - h @ J, rcond=1e-10)[0]
        second = candidate(rows, U @ _unpacked(h, r) @ V.T, y)
        found = min(found, second, key=_error)
        if found.error < best.error:
            best = found
        if best.error < 1e-14 or not found.error < 2.0 * best.error:
            break
    return best


def _face(path: _Path, bias: float = 1.0) -> tuple[NDArray[np.bool_], int]:
    """Active constraints and rank: the larger of each pair (λ_j, s_j), (σ_k(W), 1 − σ_k(M)) counts.

    Where strict complementarity fails both tend to 0 together; `bias` > 1 then takes such pairs in.
    """
    y, s = path.multipliers, path.s
    active = path.free | (bias * y > s)
    sigma = np.linalg.svd(path.rows.combine(y), compute_uv=False)
    weights = np.linalg.svd(path.W(), compute_uv=False)
    return active, max(1, int((bias * weights > 1.0 - sigma).sum()))


def solve_reduced(rows: Rows, start: Float) -> Candidate:
    """The program in coordinates where differences and queries span everything."""
    path = _Path(rows, start)
    best = Candidate(path.W(), path.multipliers, np.inf)
    milestones = list(_POLISH_AT)
    for _ in range(_ITERATIONS):
        moved = path.advance()
        gap = path.gap()
        if not moved or gap < milestones[0]:
            while len(milestones) > 1 and gap < milestones[0]:
                milestones.pop(0)
            own = candidate(rows, path.W(), path.multipliers)
            polished = _polish(rows, path.W(), path.multipliers, *_face(path))
            best = min(best, own, polished, key=_error)
            if best.error > _ENOUGH and (not moved or gap < 1e-8):
                polished = _polish(rows, path.W(), path.multipliers, *_face(path, 1e3))
                best = min(best, polished, key=_error)
            if best.error < _ENOUGH or not moved or gap < milestones[-1]:
                break
    return best


def nuclear_norm(rows: Rows, start: Float) -> tuple[Float, Float]:
    """W (d, d) of least nuclear norm and its multipliers, from Frobenius multipliers as a start.

    Returns
    -------
    W
        (d, d), in the units of the rows as given.
    multipliers
        (m,), of the normalised rows, with ‖M(λ)‖_op = 1.
    """
    d = rows.D.shape[1]
    if len(rows) == 0:
        return np.zeros((d, d)), start
    left, right = _basis(rows.D), _basis(rows.Z)
    reduced = Rows(rows.D @ left, rows.Z @ right, rows.b, rows.free, rows.norms, rows.scale)
    # Right-hand sides in units in which the Frobenius solution has size one.
    size = float(np.linalg.norm(reduced.combine(start)))
    reduced.b = rows.b / size
    found = solve_reduced(reduced, start / size)
    return rows.scale * size * (left @ found.W @ right.T), found.multipliers
