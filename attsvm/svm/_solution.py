"""A solution of the Att-SVM that judges itself.

What is called a certificate here needs no trust in any solver: it is recomputed from the tokens X,
the queries Z, the selected tokens and the returned W and λ alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attsvm import _checks
from attsvm.errors import ArgumentError
from attsvm.svm._constraints import Batch
from attsvm.svm._face import Face, face_of

Float = NDArray[np.float64]

__all__ = ["Solution", "Status", "Tolerance", "certify"]


class Status(Enum):
    """What the certificate says."""

    SOLVED = "solved"
    INFEASIBLE = "infeasible"
    INACCURATE = "inaccurate"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Tolerance:
    """When a certificate is good enough.

    Parameters
    ----------
    gap
        Largest relative gap (objective − bound) / objective of a solved instance.
    nuclear_gap
        The same for the nuclear norm.
    violation
        Largest 1 − min_j a_j(W) of a solved instance.
    farkas
        An instance is infeasible if ‖Σ λ_j a_j‖_F ≤ farkas · Σ λ_j ‖a_j‖_F for some λ ≥ 0, λ ≠ 0:
        any W with the margins would then have ‖W‖_F ≥ Σλ_j / (farkas · Σλ_j‖a_j‖), beyond float64's
        reach.
    """

    gap: float = 1e-9
    nuclear_gap: float = 1e-8
    violation: float = 1e-10
    farkas: float = 1e-12

    def __post_init__(self) -> None:
        for name in ("gap", "nuclear_gap", "violation", "farkas"):
            _checks.positive(name, getattr(self, name))

    def gap_for(self, norm: str) -> float:
        """The gap that counts for a norm ("fro", "nuc" or "lp")."""
        return self.nuclear_gap if norm == "nuc" else self.gap


DEFAULT = Tolerance()


@dataclass(eq=False, slots=True)
class Solution:
    """Solution of min ‖W‖ subject to a_it(W) = (x_{i,α_i} − x_it)' W z_i ≥ 1 for all i, t ≠ α_i.

    Parameters
    ----------
    W
        (d, d), scaled so that the smallest margin is 1; NaN when infeasible.
    dual
        (n, T), multipliers λ ≥ 0; 0 at selected and masked tokens. Frobenius: W = Σ λ_it D_it z_i';
        nuclear: Σ λ_it D_it z_i' is a subgradient of the nuclear norm at W.
    objective
        ‖W‖ in the norm of the program; inf when infeasible.
    bound
        A lower bound on ‖W'‖ of every feasible W': Σλ / ‖Σ λ_it D_it z_i'‖_dual, where the dual
        norm is Frobenius for Frobenius and the spectral norm for nuclear. Follows from
        Σλ ≤ <Σ λ_it D_it z_i', W'> ≤ ‖Σ λ_it D_it z_i'‖_dual ‖W'‖.
    gap
        (objective − bound) / objective; 0 if the objective is 0; NaN when infeasible.
    min_margin
        min over the constraints of a_it(W); inf without constraints, NaN when infeasible.
    certificate
        (n, T), Farkas multipliers when infeasible, else None: λ ≥ 0 with Σ λ_it D_it z_i' = 0 up to
        rounding, normalised to Σ λ_it ‖D_it‖‖z_i‖ = 1 (to Σλ = 1 if the constraint itself is 0 ≥
        1).
    power
        The exponent p of the ℓp program (norm "lp"), else None.
    """

    X: Float
    Z: Float
    tokens: NDArray[np.int64]
    mask: NDArray[np.bool_] | None
    norm: str
    tolerance: Tolerance
    W: Float
    dual: Float
    objective: float
    bound: float
    gap: float
    min_margin: float
    status: Status
    certificate: Float | None = None
    power: float | None = None

    def margins(self) -> Float:
        """(n, T), a_it(W) = (x_{i,α_i} − x_it)' W z_i; NaN at selected and masked tokens."""
        n = len(self.tokens)
        differences = self.X[np.arange(n), self.tokens][:, None] - self.X
        result: Float = np.einsum("ntd,nd->nt", differences, self.Z @ self.W.T)
        result[np.arange(n), self.tokens] = np.nan
        if self.mask is not None:
            result[~self.mask] = np.nan
        return result

    def singular_values(self) -> Float:
        """(d,), of W, falling; NaN when infeasible."""
        if self.status is Status.INFEASIBLE:
            return np.full(self.W.shape[0], np.nan)
        return np.asarray(np.linalg.svd(self.W, compute_uv=False), dtype=np.float64)

    def rank(self, tolerance: float = 1e-6) -> int:
        """Number of singular values above `tolerance` times the largest; 0 if W = 0 or NaN."""
        tolerance = _checks.number("tolerance", tolerance, at_least=0.0, below=1.0)
        values = self.singular_values()
        return int((values > tolerance * values[0]).sum())

    def support(self, tolerance: float = 1e-6) -> NDArray[np.bool_]:
        """(n, T) bool, the tokens with margin 1 (up to `tolerance`): the sets T_i of Section 5."""
        tolerance = _checks.number("tolerance", tolerance, at_least=0.0)
        # NaN (selected, masked, infeasible) compares False.
        return self.margins() <= 1.0 + tolerance

    def face(self) -> Face:
        """All solutions with this objective: how many directions, and the lowest rank found.

        Frobenius and ℓp norms are strictly convex, their solution is unique. The nuclear norm may
        leave a whole face; the W returned then lies inside it and has more than the lowest rank.

        Raises
        ------
        ArgumentError
            If the status is not SOLVED.
        """
        if self.status is not Status.SOLVED:
            raise ArgumentError("status", "a solved instance", str(self.status))
        if self.norm != "nuc" or not self.W.any():
            rank = self.rank()
            return Face(0, rank, rank, self.W)
        n = len(self.tokens)
        D = self.X[np.arange(n), self.tokens][:, None] - self.X
        sequence, token = np.nonzero(~np.isnan(self.margins()))
        M = np.einsum("nt,ntd->nd", self.dual, D).T @ self.Z
        return face_of(self.W, M, D[sequence, token], self.Z[sequence], self.dual[sequence, token])

    def rank_interval(self) -> tuple[int, int]:
        """(lowest rank found among the solutions, rank of the returned W); equal if W is unique."""
        face = self.face()
        return face.lowest_rank, face.rank

    def rank_constraint_binds(self, m: int) -> bool:
        """Whether rank W ≤ m, as in the paper's Att-SVM*, excludes every solution known without it.

        False: this program's value is also that of the rank-constrained one.
        """
        return self.face().lowest_rank > _checks.integer("m", m, low=0)

    def farkas_residual(self) -> float:
        """‖Σ c_it D_it z_i'‖_F / Σ c_it ‖D_it‖‖z_i‖ of the certificate c; NaN if there is none."""
        if self.certificate is None:
            return float("nan")
        return farkas_residual(self.X, self.Z, self.tokens, self.certificate)

    def __repr__(self) -> str:
        n, T, d = self.X.shape
        return (
            f"Solution({self.status}, norm={self.norm!r}, n={n}, T={T}, d={d}, "
            f"objective={self.objective:.6g}, gap={self.gap:.1e})"
        )


def farkas_residual(X: Float, Z: Float, tokens: Any, multipliers: Float) -> float:
    """‖Σ λ_it D_it z_i'‖_F / Σ λ_it ‖D_it‖‖z_i‖, and 0 if λ > 0 meets constraints 0 ≥ 1 only.

    That a difference or a query vanishes is read off its entries: lengths may underflow.
    """
    D = X[np.arange(len(X)), tokens][:, None] - X
    combination = np.einsum("nt,ntd->nd", multipliers, D).T @ Z
    lengths = np.linalg.norm(D, axis=-1) * np.linalg.norm(Z, axis=-1)[:, None]
    total = float((multipliers * lengths).sum())
    if total > 0:
        return float(np.linalg.norm(combination)) / total
    vanishes = np.logical_not(D.any(-1) & Z.any(-1, keepdims=True))
    used = multipliers > 0
    return 0.0 if used.any() and (vanishes | ~used).all() else float("inf")


def _dual_norms(M: Float, norm: str, power: float | None) -> Float:
    """(B,), the norm dual to the program's."""
    if power is not None:
        return _entrywise_norms(M, power / (power - 1.0))
    if norm == "nuc":
        return np.linalg.norm(M, 2, axis=(-2, -1))
    return np.sqrt(np.einsum("bij,bij->b", M, M))


def _entrywise_norms(W: Float, p: float) -> Float:
    """(B,), (Σ |W_kl|^p)^(1/p), scaled so that no power overflows."""
    top = np.abs(W).max((-2, -1), keepdims=True)
    relative = np.abs(W) / np.where(top > 0, top, 1.0)
    return top[..., 0, 0] * (relative**p).sum((-2, -1)) ** (1.0 / p)


def _norms(W: Float, norm: str, power: float | None) -> Float:
    """(B,), the program's norm."""
    if power is not None:
        return _entrywise_norms(W, power)
    if norm == "nuc":
        return np.linalg.svd(W, compute_uv=False).sum(-1)
    return np.sqrt(np.einsum("bij,bij->b", W, W))


def _smallest_margins(batch: Batch, W: Float) -> Float:
    """(B,), min over the constraints of D_it' W z_i."""
    values = (batch.D @ (batch.Z @ W.mT)[..., None])[..., 0]
    return np.where(batch.valid, values, np.inf).min((1, 2))


def certify(
    batch: Batch,
    W: Float,
    dual: Float,
    farkas: Float,
    norm: str,
    tolerance: Tolerance,
    power: float | None = None,
) -> list[Solution]:
    """Judge candidates W (B, d, d), λ (B, n, T) and Farkas multipliers (B, n, T; 0 = none).

    W is rescaled so that its smallest margin is 1 where that margin is positive.
    """
    B = len(batch)
    margin = _smallest_margins(batch, W)
    # A margin of one up to rounding is left alone: dividing would only round W once more.
    off = (margin > 0) & np.isfinite(margin) & ((margin < 1.0 - 1e-14) | (margin > 1.0 + 1e-12))
    if off.any():
        W = W / np.where(off, margin, 1.0)[:, None, None]
        margin = _smallest_margins(batch, W)
    dual = np.maximum(dual, 0.0)
    M = np.einsum("bnt,bntd->bnd", dual, batch.D).mT @ batch.Z
    objective = _norms(W, norm, power)
    dual_norm = _dual_norms(M, norm, power)
    total = dual.sum((1, 2))
    bound = np.divide(total, dual_norm, out=np.zeros(B), where=dual_norm > 0)
    gap = np.divide(objective - bound, objective, out=np.zeros(B), where=objective > 0)
    empty = ~np.atleast_1d(batch.valid.any((1, 2)))
    solved = empty | ((margin >= 1.0 - tolerance.violation) & (gap <= tolerance.gap_for(norm)))
    proof = np.atleast_1d(farkas.any((1, 2)))
    solutions = []
    for i in range(B):
        X, Z, tokens = batch.X[i], batch.Z[i], batch.tokens[i]
        mask = None if batch.mask is None else batch.mask[i]
        if solved[i]:
            status = Status.SOLVED
        elif proof[i] and farkas_residual(X, Z, tokens, farkas[i]) <= tolerance.farkas:
            solutions.append(_infeasible(X, Z, tokens, mask, norm, tolerance, farkas[i], power))
            continue
        else:
            status = Status.INACCURATE
        solutions.append(
            Solution(
                X, Z, tokens, mask, norm, tolerance, W[i], dual[i], float(objective[i]),
                float(bound[i]), max(float(gap[i]), 0.0), float(margin[i]), status, None, power,
            )
        )  # fmt: skip
    return solutions


def _infeasible(
    X: Float,
    Z: Float,
    tokens: Any,
    mask: Any,
    norm: str,
    tolerance: Tolerance,
    farkas: Float,
    power: float | None,
) -> Solution:
    d = X.shape[-1]
    D = X[np.arange(len(X)), tokens][:, None] - X
    lengths = np.linalg.norm(D, axis=-1) * np.linalg.norm(Z, axis=-1)[:, None]
    total = float((farkas * lengths).sum()) or float(farkas.sum())
    nan = float("nan")
    return Solution(
        X, Z, tokens, mask, norm, tolerance, np.full((d, d), nan), np.zeros(farkas.shape),
        float("inf"), float("inf"), nan, nan, Status.INFEASIBLE, farkas / total, power,
    )  # fmt: skip
