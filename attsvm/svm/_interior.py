"""The central path of the nuclear-norm program: a primal-dual interior-point method.

With the dilation 𝓜(λ) = [[0, M], [M', 0]] of M(λ) = Σ λ_j D_j z_j' the program and its dual are

    min tr X̄   s.t.  <𝓐_j, X̄> − s_j = b_j,  s ≥ 0,  X̄ = ½[[·, W], [W', ·]] ⪰ 0
    max b'λ    s.t.  S = I − 𝓜(λ) ⪰ 0,  λ ≥ 0        (that is, ‖M(λ)‖_op ≤ 1)

Every 𝓐_j has rank two, so the Schur complement of a primal-dual step is a sum of Hadamard products
of Gram matrices (`schur`): one step costs a few matrix products and one Cholesky factor of size m.
That is why this is a method of its own and not a general solver, which would handle a dense block
of size (p+q)² for each of m constraints.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from attsvm._linalg import step_to_zero
from attsvm._typing import FloatArray
from attsvm.svm._constraints import Rows


def schur(D: FloatArray, Z: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:
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


def _inner(D: FloatArray, Z: FloatArray, A: FloatArray) -> FloatArray:
    """(m,), <𝓐_j, A> = 2 D_j' A_uv z_j for symmetric A."""
    p = D.shape[1]
    return 2.0 * ((D @ A[:p, p:]) * Z).sum(1)


def blocks(A: FloatArray | float, B: FloatArray, C: FloatArray | float) -> FloatArray:
    """(p + q, p + q), [[A, B], [B', C]] for B (p, q)."""
    p, q = B.shape
    result = np.empty((p + q, p + q))
    result[:p, :p], result[:p, p:] = A, B
    result[p:, :p], result[p:, p:] = B.T, C
    return result


def _inverse_factor(A: FloatArray) -> FloatArray | None:
    """L⁻¹ with A = L L', or None if A is not positive definite."""
    L, info = dpotrf(A, lower=1, clean=1)
    if info:
        return None
    inverse, info = dtrtri(L, lower=1)
    return None if info else inverse


def _step(inverse_factor: FloatArray, direction: FloatArray) -> float:
    """Largest α with A + α·direction ⪰ 0 (inf if none ends it)."""
    least = np.linalg.eigvalsh(inverse_factor @ direction @ inverse_factor.T)[0]
    return np.inf if least >= 0 else -1.0 / float(least)


class Path:
    """Predictor-corrector (:cite:t:`mehrotra1992implementation`) from strictly feasible points.

    Its direction is that of :cite:t:`helmberg1996interior`."""

    def __init__(self, rows: Rows, start: FloatArray) -> None:
        self.rows = rows
        self.D, self.Z, self.b = rows.D, rows.Z, rows.b
        self.free, bound = rows.free, ~rows.free
        # Primal: the Frobenius solution, enlarged so that it has slack. Equalities of a homogeneous
        # right-hand side survive the scaling.
        W = (1.5 if bound.any() else 1.0) * rows.combine(start)
        U, sigma, Vt = np.linalg.svd(W, full_matrices=False)
        size = float(sigma.mean())
        self.X = blocks(
            0.5 * ((U * sigma) @ U.T + size * np.eye(len(U))),
            0.5 * W,
            0.5 * ((Vt.T * sigma) @ Vt + size * np.eye(Vt.shape[1])),
        )
        self.s = np.where(bound, np.maximum(rows.values(W) - rows.b, 0.1 * rows.b), 1.0)
        # Dual: the Frobenius multipliers, lifted off zero and shrunk into the spectral ball.
        positive = np.maximum(start, 0.1 * float(np.abs(start).mean()))
        self.multipliers = np.where(bound, positive, start)
        self.multipliers *= 0.7 / float(np.linalg.norm(rows.combine(self.multipliers), 2))
        self.S = self._slack(self.multipliers)

    def _slack(self, multipliers: FloatArray) -> FloatArray:
        """I − 𝓜(λ)."""
        return np.eye(len(self.X)) - blocks(0.0, self.rows.combine(multipliers), 0.0)

    def gap(self) -> float:
        """Relative duality gap of the iterate, before any rounding."""
        value = float(np.trace(self.X))
        return (value - float(self.b @ self.multipliers)) / value

    def W(self) -> FloatArray:
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
        B = schur(D, Z, X, S_inverse)
        # The multiplier of an equality has no slack term; a speck keeps dependent rows
        # factorisable.
        diagonal, divisor = B.flat[:: len(y) + 1], np.where(bound, y, 1.0)
        np.fill_diagonal(B, diagonal + np.where(bound, s / divisor, 1e-13 * diagonal))
        factor, info = dpotrf(B, lower=1, clean=0)
        if info:
            B.flat[:: len(y) + 1] *= 1.0 + 1e-10
            factor, info = dpotrf(B, lower=1, clean=0)
            if info:
                return False
        inner = _inner(D, Z, S_inverse)

        def direction(
            target: float, C: FloatArray | float, c: FloatArray | float
        ) -> tuple[FloatArray, ...]:
            right = self.b - target * inner + np.where(bound, (target - c) / divisor, 0.0)
            if isinstance(C, np.ndarray):
                right = right + _inner(D, Z, C)
            dy = dpotrs(factor, right, lower=1)[0]
            dS = -blocks(0.0, self.rows.combine(dy), 0.0)
            dX = X @ dS @ S_inverse
            dX = target * S_inverse - X - 0.5 * (dX + dX.T) - C
            ds = np.where(bound, (target - c - s * dy) / divisor - s, 0.0)
            return dX, ds, dS, dy

        def steps(
            dX: FloatArray, ds: FloatArray, dS: FloatArray, dy: FloatArray
        ) -> tuple[float, float]:
            primal = min(_step(Xi, dX), step_to_zero(s[bound], ds[bound]))
            dual = min(_step(Si, dS), step_to_zero(y[bound], dy[bound]))
            return primal, dual

        dX, ds, dS, dy = direction(0.0, 0.0, 0.0)
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
        self.S = self._slack(self.multipliers)
        return True
