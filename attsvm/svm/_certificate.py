"""What an answer is worth: bounds, residuals and proofs, the same for every norm and program.

A certificate needs no trust in any solver: it is recomputed from the constraints, the returned W
and its multipliers λ alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from functools import partial

import numpy as np

from attsvm import _checks
from attsvm._linalg import RANK_TOLERANCE
from attsvm._typing import FloatArray
from attsvm.svm._constraints import Program


class Status(Enum):
    """What the certificate says."""

    SOLVED = "solved"
    INFEASIBLE = "infeasible"
    INACCURATE = "inaccurate"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Tolerance:
    """When a certificate is good enough, and what counts as zero.

    Parameters
    ----------
    gap, nuclear_gap
        Largest relative gap of a solved instance; that of the nuclear norm has its own.
    violation
        Largest violation of a margin or an equality of a solved instance.
    farkas
        An instance is infeasible if ‖Σ λ_j a_j‖_F ≤ farkas · Σ λ_j ‖a_j‖_F for some λ ≥ 0, λ ≠ 0:
        any W with the margins would then have ‖W‖_F ≥ Σλ_j / (farkas · Σλ_j‖a_j‖), beyond float64's
        reach.
    rank
        Singular values above this multiple of the largest count towards the rank.
    support
        Margins up to 1 + support count as 1.
    """

    gap: float = 1e-9
    nuclear_gap: float = 1e-8
    violation: float = 1e-10
    farkas: float = 1e-12
    rank: float = RANK_TOLERANCE
    support: float = 1e-6

    def __post_init__(self) -> None:
        for field in fields(self):
            _checks.positive(field.name, getattr(self, field.name))

    def gap_for(self, norm: str) -> float:
        """The gap that counts for a norm ("fro", "nuc" or "lp")."""
        return self.nuclear_gap if norm == "nuc" else self.gap


DEFAULT = Tolerance()


@dataclass(frozen=True)
class Norm:
    """A norm of W with the norm dual to it, each (B, d, d) → (B,)."""

    name: str
    of: Callable[[FloatArray], FloatArray]
    dual: Callable[[FloatArray], FloatArray]
    power: float | None = None


def _frobenius(W: FloatArray) -> FloatArray:
    return np.sqrt(np.einsum("bij,bij->b", W, W))


def _entrywise(W: FloatArray, p: float) -> FloatArray:
    """(Σ |W_kl|^p)^(1/p), scaled so that no power overflows."""
    top = np.abs(W).max((-2, -1), keepdims=True)
    relative = np.abs(W) / np.where(top > 0, top, 1.0)
    return top[..., 0, 0] * (relative**p).sum((-2, -1)) ** (1.0 / p)


NORMS = {
    "fro": Norm("fro", _frobenius, _frobenius),
    "nuc": Norm(
        "nuc",
        of=lambda W: np.linalg.svd(W, compute_uv=False).sum(-1),
        dual=lambda W: np.linalg.norm(W, 2, axis=(-2, -1)),
    ),
}


def entrywise_norm(p: float) -> Norm:
    """The entrywise ℓp norm, 1 < p < ∞, whose dual has the exponent p/(p − 1)."""
    return Norm("lp", partial(_entrywise, p=p), partial(_entrywise, p=p / (p - 1.0)), p)


@dataclass(eq=False, kw_only=True)
class Certified:
    """W of least norm under margins D_it' W z_i ≥ 1 and equalities D_it' W z_i = b_it, judged.

    Parameters
    ----------
    W
        (d, d), scaled so that the smallest margin is 1.
    dual
        (n, T), multipliers λ: ≥ 0 at margins, free in sign at equalities, 0 elsewhere. Frobenius:
        W = Σ λ_it D_it z_i'; other norms: that sum is a subgradient of the norm at W.
    objective
        ‖W‖ in the norm of the program.
    bound
        Σ λ_it b_it / ‖Σ λ_it D_it z_i'‖_dual with b_it = 1 at margins, at most ‖W'‖ for every
        feasible W': Σ λ_it b_it ≤ <Σ λ_it D_it z_i', W'> ≤ ‖Σ λ_it D_it z_i'‖_dual ‖W'‖. The dual
        norm is Frobenius for Frobenius, spectral for nuclear, ℓq with 1/p + 1/q = 1 for ℓp.
    gap
        (objective − bound) / objective; 0 if the objective is 0.
    min_margin
        min over the margins of D_it' W z_i, less what an equality of the same sequence exceeds; inf
        without margins.
    violation
        max over pairs of equalities of a sequence of their residuals' difference, each residual
        (D_it' W z_i − b_it) / max(1, |b_it|), with 0 among them.
    status
        SOLVED if min_margin ≥ 1, violation = 0 and gap = 0, each up to its tolerance; INFEASIBLE if
        `certificate` proves that there is no W (objective and bound are then inf, the rest NaN);
        else INACCURATE.
    certificate
        (n, T), Farkas multipliers c when infeasible, else None: c ≥ 0 at margins, Σ c_it b_it > 0,
        while Σ c_it D_it z_i' = 0 up to rounding; normalised to Σ |c_it| ‖D_it‖‖z_i‖ = 1 (to
        Σ c_it b_it = 1 if the constraints themselves are 0 ≥ 1).
    """

    W: FloatArray
    dual: FloatArray
    objective: float
    bound: float
    gap: float
    min_margin: float
    violation: float
    status: Status
    certificate: FloatArray | None = None

    @property
    def solved(self) -> bool:
        """Whether the status is SOLVED."""
        return self.status is Status.SOLVED


def combination(D: FloatArray, Z: FloatArray, multipliers: FloatArray) -> FloatArray:
    """(…, d, d), Σ λ_it D_it z_i' for D (…, n, T, d), queries (…, n, d), multipliers (…, n, T)."""
    return np.einsum("...nt,...ntd->...nd", multipliers, D).mT @ Z


def farkas_residual(D: FloatArray, Z: FloatArray, multipliers: FloatArray) -> float:
    """‖Σ c_it D_it z_i'‖_F / Σ |c_it| ‖D_it‖‖z_i‖ of one program.

    0 if c ≠ 0 meets constraints without left-hand side only.  That a difference or a query vanishes
    is read off its entries: lengths may underflow.
    """
    total = _weight(D, Z, multipliers)
    if total > 0:
        return float(np.linalg.norm(combination(D, Z, multipliers))) / total
    vanishes = np.logical_not(D.any(-1) & Z.any(-1, keepdims=True))
    used = multipliers != 0
    return 0.0 if used.any() and (vanishes | ~used).all() else float("inf")


def _weight(D: FloatArray, Z: FloatArray, multipliers: FloatArray) -> float:
    lengths = np.linalg.norm(D, axis=-1) * np.linalg.norm(Z, axis=-1)[:, None]
    return float((np.abs(multipliers) * lengths).sum())


def _residuals(program: Program, W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(B,), smallest margins and largest violations, as `Certified` has them."""
    towards = program.Z @ W.mT
    if program.plain:
        values = (program.D @ towards[..., None])[..., 0]
        return np.where(program.margin, values, np.inf).min((1, 2)), np.zeros(len(values))
    # Not a matrix product, as above: recorded results depend on the rounding.
    values = np.einsum("bntd,bnd->bnt", program.D, towards)
    off = (values - program.right) / np.maximum(1.0, np.abs(program.right))
    off = np.where(program.equal, off, 0.0)
    # The reference token has residual 0, so that 0 is among them and `high` is not negative.
    high, low = off.max(-1, keepdims=True), off.min(-1, keepdims=True)
    margins = np.where(program.margin, values - high, np.inf).min((1, 2))
    return margins, (high - low).max((1, 2))


def judge(
    program: Program,
    W: FloatArray,
    dual: FloatArray,
    farkas: FloatArray,
    norm: Norm,
    tolerance: Tolerance,
) -> list[Certified]:
    """Judge candidates W (B, d, d), λ (B, n, T) and Farkas multipliers (B, n, T; 0 = none).

    W is rescaled so that its smallest margin is 1 where that margin is positive.
    """
    margin, violation = _residuals(program, W)
    off = (margin > 0) & np.isfinite(margin)
    if program.plain:
        # A margin of one up to rounding is left alone: dividing would only round W once more.
        off &= (margin < 1.0 - 1e-14) | (margin > 1.0 + 1e-12)
    if off.any():
        W = W / np.where(off, margin, 1.0)[:, None, None]
        margin, violation = _residuals(program, W)
    dual = np.where(program.margin, np.maximum(dual, 0.0), dual)
    objective = norm.of(W)
    total = (dual * program.right).sum((1, 2))
    dual_norm = norm.dual(combination(program.D, program.Z, dual))
    bound = np.divide(total, dual_norm, out=np.zeros_like(total), where=dual_norm > 0)
    gap = np.divide(objective - bound, objective, out=np.zeros_like(total), where=objective > 0)
    gap = np.maximum(gap, 0.0)
    within = (margin >= 1.0 - tolerance.violation) & (violation <= tolerance.violation)
    solved = within & (gap <= tolerance.gap_for(norm.name)) & ~farkas.any((1, 2))
    answers = []
    for i, c in enumerate(farkas):
        D, Z, value = program.D[i], program.Z[i], float((c * program.right[i]).sum())
        answer = Certified(
            W=W[i], dual=dual[i], objective=float(objective[i]), bound=float(bound[i]),
            gap=float(gap[i]), min_margin=float(margin[i]), violation=float(violation[i]),
            status=Status.SOLVED if solved[i] else Status.INACCURATE,
        )  # fmt: skip
        if value > 0 and farkas_residual(D, Z, c) <= tolerance.farkas:
            answer.W, answer.dual = np.full_like(W[i], np.nan), np.zeros_like(c)
            answer.objective = answer.bound = np.inf
            answer.gap = answer.min_margin = answer.violation = np.nan
            answer.status = Status.INFEASIBLE
            answer.certificate = c / (_weight(D, Z, c) or value)
        answers.append(answer)
    return answers
