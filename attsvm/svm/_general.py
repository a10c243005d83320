"""Gen-SVM: several selected tokens for a sequence (Section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from attsvm import _checks
from attsvm.errors import ArgumentError, InfeasibleError
from attsvm.svm._constraints import Rows, check_size, normalised
from attsvm.svm._frobenius import least_distance
from attsvm.svm._nuclear import nuclear_norm
from attsvm.svm._solution import DEFAULT, Status, Tolerance

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(eq=False, slots=True)
class GeneralSolution:
    """W_mm and W_fin of Gen-SVM for the selected sets O_i, with their certificates.

    Inside O_i the logits are equal under W_mm, so one reference token r_i ∈ O_i (the first) carries
    every constraint: with D_it = x_{i,r_i} − x_it they read D_it' W z_i ≥ 1 for t ∉ O_i and
    D_it' W z_i = 0 (W_mm) or log(s_{i,r_i}/s_it) (W_fin) for t ∈ O_i.

    Parameters
    ----------
    W_mm
        (d, d), least norm under the margins and equalities; NaN when infeasible.
    W_fin
        (d, d), least norm with the attention ratios inside O_i; NaN when they contradict each
        other.
    dual
        (n, T), multipliers of W_mm: λ ≥ 0 for t ∉ O_i, free in sign for t ∈ O_i, 0 at r_i.
    objective, bound, gap
        ‖W_mm‖, Σ_{t ∉ O_i} λ_it / ‖Σ λ_it D_it z_i'‖_dual (a lower bound for every feasible W,
        because the right-hand side of each equality is 0), and (objective − bound) / objective.
    min_margin
        min over i, t ∈ O_i, τ ∉ O_i of (x_it − x_iτ)' W_mm z_i.
    equality_violation
        max over i, t, τ ∈ O_i of |(x_it − x_iτ)' W_mm z_i|.
    finite_residual
        max over i, t ∈ O_i of |D_it' W_fin z_i − log(s_{i,r_i}/s_it)|, divided by max(1, |log|).
    finite_dual, finite_gap
        (n, T) multipliers of W_fin and its relative gap to the bound
        Σ λ_it log(s_{i,r_i}/s_it) / ‖Σ λ_it D_it z_i'‖_dual.
    status, finite_status
        Of W_mm and of W_fin.
    certificate, finite_certificate
        (n, T), Farkas multipliers where the status is INFEASIBLE: Σ c_it D_it z_i' = 0 up to
        rounding while Σ c_it b_it > 0 for the right-hand sides b; c ≥ 0 for t ∉ O_i.
    """

    X: Float
    Z: Float
    selected: Bool
    norm: str
    tolerance: Tolerance
    W_mm: Float
    W_fin: Float
    dual: Float
    objective: float
    bound: float
    gap: float
    min_margin: float
    equality_violation: float
    status: Status
    certificate: Float | None
    finite_dual: Float
    finite_gap: float
    finite_residual: float
    finite_status: Status
    finite_certificate: Float | None

    def factor(self, W: Any) -> float:
        """R of `combined`: argmin_R ‖W − W_fin − R W_mm‖_F = <W − W_fin, W_mm> / ‖W_mm‖_F².

        Plain least squares, not clipped: a negative R says that W points away from W_mm.  0 if
        W_mm = 0.
        """
        W = _checks.array("W", W, shape=self.W_mm.shape)
        square = float((self.W_mm**2).sum())
        return float(((W - self.W_fin) * self.W_mm).sum()) / square if square else 0.0

    def combined(self, W: Any) -> Float:
        """W_fin + R W_mm with R fitted to the trained W in least squares (see `factor`).

        Parameters
        ----------
        W
            (d, d), trained weights.
        """
        return self.W_fin + self.factor(W) * self.W_mm

    def __repr__(self) -> str:
        n, T, d = self.X.shape
        return (
            f"GeneralSolution({self.status}, finite part {self.finite_status}, norm={self.norm!r}, "
            f"n={n}, T={T}, d={d}, objective={self.objective:.6g}, gap={self.gap:.1e})"
        )


def solve_general(
    X: Any,
    Z: Any,
    selected: Any,
    attention: Any,
    norm: str = "fro",
    mask: Any = None,
    on_infeasible: str = "raise",
    tolerance: Tolerance | None = None,
) -> GeneralSolution:
    """Solve Gen-SVM for the selected sets O_i.

    W_mm = argmin ‖W‖ s.t. (x_it − x_iτ)' W z_i ≥ 1 for t ∈ O_i, τ ∉ O_i, and = 0 for t, τ ∈ O_i;
    W_fin = argmin ‖W‖ s.t. (x_it − x_iτ)' W z_i = log(s_it / s_iτ) for t, τ ∈ O_i.

    Parameters
    ----------
    X
        (n, T, d) tokens.
    Z
        (n, d) queries.
    selected
        (n, T) bool, True for t ∈ O_i; at least one for each sequence.
    attention
        (n, T), attention weights s of the trained model; used, and positive, on O_i only.
    norm
        "fro" or "nuc", for both programs.
    mask
        (n, T) bool, True where a token exists; None: all exist.
    on_infeasible
        "raise" or "return".
    tolerance
        What counts as solved and as infeasible.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape, dtype or value; it names the argument.
    InfeasibleError
        If W_mm does not exist, or the attention ratios contradict each other (they cannot when they
        are a softmax of X W z), and `on_infeasible` is "raise".
    """
    _checks.choice("on_infeasible", on_infeasible, ("raise", "return"))
    norm = _checks.choice("norm", norm, ("fro", "nuc"))
    tolerance = tolerance or DEFAULT
    X = _checks.array("X", X, ndim=3)
    if 0 in X.shape:
        raise ArgumentError("X", "at least one of everything", f"shape {X.shape}")
    n, T, d = X.shape
    Z = _checks.array("Z", Z, shape=(n, d))
    check_size("X", X)
    check_size("Z", Z)
    selected = _checks.booleans("selected", selected, shape=(n, T))
    if not selected.any(1).all():
        empty = int(np.flatnonzero(~selected.any(1))[0])
        raise ArgumentError("selected", "a selected token in every sequence", f"none in {empty}")
    attention = _checks.array("attention", attention, shape=(n, T))
    if (attention[selected] <= 0).any():
        where = tuple(int(k) for k in np.argwhere(selected & (attention <= 0))[0])
        raise ArgumentError(
            "attention", "weights above 0 on the selected sets", f"{attention[where]} at {where}"
        )
    present = np.ones((n, T), dtype=bool)
    if mask is not None:
        present = _checks.booleans("mask", mask, shape=(n, T))
        if (selected & ~present).any():
            raise ArgumentError("mask", "True at every selected token", "a selected token masked")

    reference = selected.argmax(1)
    D = X[np.arange(n), reference][:, None] - X
    inside = selected.copy()
    inside[np.arange(n), reference] = False
    logs = np.zeros((n, T))
    logs[inside] = (
        np.log(np.take_along_axis(attention, reference[:, None], 1))
        - np.log(np.where(inside, attention, 1.0))
    )[inside]  # fmt: skip

    W_mm, dual, proof = _program(D, Z, present & ~selected, inside, np.zeros((n, T)), norm)
    W_fin, finite_dual, finite_proof = _program(
        D, Z, np.zeros((n, T), dtype=bool), inside, logs, norm
    )
    solution = _judge(
        X, Z, D, selected, present, inside, logs, norm, tolerance,
        W_mm, dual, proof, W_fin, finite_dual, finite_proof,
    )  # fmt: skip
    if on_infeasible == "raise":
        if solution.status is Status.INFEASIBLE:
            raise InfeasibleError("no W separates the selected sets", solution.certificate)
        if solution.finite_status is Status.INFEASIBLE:
            raise InfeasibleError(
                "the attention ratios inside the selected sets contradict each other",
                solution.finite_certificate,
            )
    return solution


def _program(
    D: Float, Z: Float, outside: Bool, inside: Bool, right: Float, norm: str
) -> tuple[Float, Float, Float | None]:
    """W, multipliers (n, T) and Farkas candidate for margins `outside`, equalities `inside`."""
    n, T, d = D.shape
    sequence, token = np.nonzero(outside | inside)
    free = inside[sequence, token]
    rows = normalised(
        D[sequence, token], Z[sequence], np.where(free, right[sequence, token], 1.0), free
    )
    dual, proof = np.zeros((n, T)), None
    kept, contradiction = _independent(rows)
    if contradiction is not None:
        proof = np.zeros((n, T))
        proof[sequence, token] = contradiction / np.where(rows.norms > 0, rows.norms, 1.0)
        return np.zeros((d, d)), dual, proof
    sequence, token, rows = sequence[kept], token[kept], rows.part(kept)
    length = np.where(rows.norms > 0, rows.norms, 1.0)
    if len(rows) == 0 or not rows.b.any():
        return np.zeros((d, d)), dual, None
    W, multipliers, farkas = least_distance(rows)
    if farkas is not None:
        proof = np.zeros((n, T))
        proof[sequence, token] = farkas / length
        return np.zeros((d, d)), dual, proof
    if norm == "nuc":
        W, multipliers = nuclear_norm(rows, W, multipliers)
        dual[sequence, token] = multipliers / length
    else:
        W = rows.scale * W
        dual[sequence, token] = multipliers * rows.scale / length
    return W, dual, proof


def _independent(rows: Rows) -> tuple[NDArray[np.int64], Float | None]:
    """Rows without the equalities that others imply, or the proof that they contradict.

    The proof is the residual r of the least-squares solution: Σ r_j a_j = 0 and r'b = ‖r‖² > 0.
    """
    equal = np.flatnonzero(rows.free) if rows.free is not None else np.zeros(0, dtype=np.int64)
    if len(equal) == 0:
        return np.arange(len(rows)), None
    A, b = rows.matrix()[equal], rows.b[equal]
    _, R, order = qr(A.T, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    rank = int((size > 1e-12).sum())
    if rank == len(equal):
        return np.arange(len(rows)), None
    residual = b - A @ np.linalg.lstsq(A, b, rcond=1e-12)[0]
    if float(np.abs(residual).max()) > 1e-9 * max(float(np.abs(b).max()), 1e-300):
        proof = np.zeros(len(rows))
        proof[equal] = residual
        return np.arange(len(rows)), proof
    dropped = equal[order[rank:]]
    return np.setdiff1d(np.arange(len(rows)), dropped), None


def _norms(W: Float, norm: str) -> tuple[float, float]:
    """The norm of W and its dual norm."""
    if norm == "nuc":
        values = np.linalg.svd(W, compute_uv=False)
        return float(values.sum()), float(values[0])
    size = float(np.linalg.norm(W))
    return size, size


def _combination(D: Float, Z: Float, multipliers: Float) -> Float:
    return np.einsum("nt,ntd->nd", multipliers, D).T @ Z


def _relative_gap(objective: float, value: float, dual_norm: float) -> tuple[float, float]:
    """Lower bound and relative gap."""
    bound = value / dual_norm if dual_norm > 0 else 0.0
    return bound, max((objective - bound) / objective, 0.0) if objective > 0 else 0.0


def _proved(D: Float, Z: Float, right: Float, proof: Float | None, limit: float) -> Float | None:
    """The Farkas multipliers, normalised, if they prove what they should."""
    if proof is None:
        return None
    lengths = np.linalg.norm(D, axis=-1) * np.linalg.norm(Z, axis=-1)[:, None]
    weight = float((np.abs(proof) * lengths).sum())
    value = float((proof * right).sum())
    combination = float(np.linalg.norm(_combination(D, Z, proof)))
    if not value > 0 or combination > limit * weight:
        return None
    return proof / (weight or value)


def _judge(
    X: Float, Z: Float, D: Float, selected: Bool, present: Bool, inside: Bool, logs: Float,
    norm: str, tolerance: Tolerance, W: Float, dual: Float, proof: Float | None,
    W_fin: Float, finite_dual: Float, finite_proof: Float | None,
) -> GeneralSolution:  # fmt: skip
    """Everything in the solution recomputed from the data, W and the multipliers."""
    outside = present & ~selected
    nan = np.full_like(W, np.nan)

    def logits(V: Float) -> Float:
        return np.einsum("ntd,nd->nt", D, Z @ V.T)

    def extremes(V: Float) -> tuple[float, float]:
        """Smallest margin over t ∈ O_i, τ ∉ O_i, largest spread inside O_i."""
        value = logits(V)
        low = np.where(selected, value, np.inf).min(1)
        high = np.where(selected, value, -np.inf).max(1)
        # D is reference minus token, so (x_t − x_τ)'Wz is the value of τ minus that of t.
        margin = np.where(outside, value - high[:, None], np.inf).min()
        return float(margin), float((high - low).max())

    margin, spread = extremes(W)
    if 0 < margin < np.inf:
        W = W / margin
        margin, spread = extremes(W)
    dual = np.where(outside, np.maximum(dual, 0.0), dual)
    objective, _ = _norms(W, norm)
    bound, gap = _relative_gap(
        objective, float(dual[outside].sum()), _norms(_combination(D, Z, dual), norm)[1]
    )
    within = tolerance.violation
    limit = tolerance.gap_for(norm)
    certificate = _proved(D, Z, outside.astype(float), proof, tolerance.farkas)
    if proof is None and margin >= 1 - within and spread <= within and gap <= limit:
        status = Status.SOLVED
    elif certificate is not None:
        status = Status.INFEASIBLE
        W, dual, objective, bound = nan, np.zeros_like(dual), np.inf, np.inf
        gap = margin = spread = np.nan
    else:
        status = Status.INACCURATE

    residual = float(
        (np.abs(logits(W_fin) - logs) / np.maximum(1.0, np.abs(logs)))[inside].max(initial=0.0)
    )
    finite_objective, _ = _norms(W_fin, norm)
    _, finite_gap = _relative_gap(
        finite_objective,
        float((finite_dual * logs).sum()),
        _norms(_combination(D, Z, finite_dual), norm)[1],
    )
    finite_certificate = _proved(D, Z, np.where(inside, logs, 0.0), finite_proof, tolerance.farkas)
    if finite_proof is None and residual <= within and finite_gap <= limit:
        finite_status = Status.SOLVED
    elif finite_certificate is not None:
        finite_status = Status.INFEASIBLE
        W_fin, finite_gap, residual = nan, np.nan, np.nan
        finite_dual = np.zeros_like(finite_dual)
    else:
        finite_status = Status.INACCURATE
    return GeneralSolution(
        X, Z, selected, norm, tolerance, W, W_fin, dual, objective, bound, gap, margin, spread,
        status, certificate if status is Status.INFEASIBLE else None, finite_dual, finite_gap,
        residual, finite_status, finite_certificate if finite_status is Status.INFEASIBLE else None,
    )  # fmt: skip
