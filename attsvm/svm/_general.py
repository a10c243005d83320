"""Gen-SVM: several selected tokens for a sequence (Section 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from attsvm import _checks
from attsvm._typing import ArrayLike, BoolArray, FloatArray, IntArray
from attsvm.errors import ArgumentError, InfeasibleError
from attsvm.svm._attention import Answer, least_norm, solve_program
from attsvm.svm._certificate import DEFAULT, NORMS, Certified, Norm, Status, Tolerance
from attsvm.svm._constraints import Program, Rows, differences, tokens_and_queries


@dataclass(eq=False, kw_only=True)
class GeneralSolution(Certified):
    """W_mm and W_fin of Gen-SVM for the selected sets O_i, with their certificates.

    Inside O_i the logits are equal under W_mm, so one reference token r_i ∈ O_i (the first) carries
    every constraint: with D_it = x_{i,r_i} − x_it they read D_it' W z_i ≥ 1 for t ∉ O_i and
    D_it' W z_i = 0 (W_mm) or log(s_{i,r_i}/s_it) (W_fin) for t ∈ O_i.

    The certificate of W_mm is the solution's own (see `Certified`), that of W_fin is `finite`.

    Parameters
    ----------
    X, Z, selected, norm, tolerance
        As given to the solver: (n, T, d), (n, d), (n, T) bool, a word, and a `Tolerance`.
    finite
        W_fin, judged: NaN and INFEASIBLE when the attention ratios contradict each other.
    """

    X: FloatArray
    Z: FloatArray
    selected: BoolArray
    norm: str
    tolerance: Tolerance
    finite: Certified

    @property
    def W_mm(self) -> FloatArray:
        """(d, d), least norm under the margins and equalities; NaN when infeasible."""
        return self.W

    @property
    def W_fin(self) -> FloatArray:
        """(d, d), least norm with the attention ratios inside O_i; NaN when infeasible."""
        return self.finite.W

    def factor(self, W: ArrayLike) -> float:
        """R of `combined`: argmin_R ‖W − W_fin − R W_mm‖_F = <W − W_fin, W_mm> / ‖W_mm‖_F².

        Plain least squares, not clipped: a negative R says that W points away from W_mm.  0 if
        W_mm = 0.
        """
        W = _checks.array("W", W, shape=self.W_mm.shape)
        square = float((self.W_mm**2).sum())
        return float(((W - self.W_fin) * self.W_mm).sum()) / square if square else 0.0

    def combined(self, W: ArrayLike) -> FloatArray:
        """W_fin + R W_mm with R fitted to the trained W (d, d) in least squares (see `factor`)."""
        return self.W_fin + self.factor(W) * self.W_mm

    def __repr__(self) -> str:
        n, T, d = self.X.shape
        return (
            f"GeneralSolution({self.status}, finite part {self.finite.status}, norm={self.norm!r}, "
            f"n={n}, T={T}, d={d}, objective={self.objective:.6g}, gap={self.gap:.1e})"
        )


def solve_general(
    X: ArrayLike,
    Z: ArrayLike,
    selected: ArrayLike,
    attention: ArrayLike,
    norm: str = "fro",
    mask: ArrayLike | None = None,
    on_infeasible: str = "raise",
    tolerance: Tolerance | None = None,
) -> GeneralSolution:
    """Solve Gen-SVM for the selected sets O_i.

    W_mm = argmin ‖W‖ s.t. (x_it − x_iτ)' W z_i ≥ 1 for t ∈ O_i, τ ∉ O_i, and = 0 for t, τ ∈ O_i;
    W_fin = argmin ‖W‖ s.t. (x_it − x_iτ)' W z_i = log(s_it / s_iτ) for t, τ ∈ O_i.

    Parameters
    ----------
    X, Z
        (n, T, d) tokens and (n, d) queries.
    selected
        (n, T) bool, True for t ∈ O_i; at least one for each sequence.
    attention
        (n, T), attention weights s of the trained model; used, and positive, on O_i only.
    norm
        "fro" or "nuc", for both programs.
    mask, on_infeasible, tolerance
        As in `attsvm.svm.solve`.

    Returns
    -------
    GeneralSolution
        W_mm and W_fin, each certified.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape, dtype or value; it names the argument.
    InfeasibleError
        If W_mm does not exist, or the attention ratios contradict each other (they cannot when they
        are a softmax of X W z), and `on_infeasible` is "raise".
    """
    _checks.choice("on_infeasible", on_infeasible, ("raise", "return"))
    norm = _checks.choice("norm", norm, NORMS)
    tolerance = tolerance or DEFAULT
    X, Z = tokens_and_queries(X, Z)
    sets, attention, present = _sets(X.shape[:2], selected, attention, mask)
    reference = sets.argmax(1)[:, None]
    inside = sets.copy()
    np.put_along_axis(inside, reference, False, 1)
    own = np.log(np.take_along_axis(attention, reference, 1))
    logs = np.where(inside, own - np.log(np.where(inside, attention, 1.0)), 0.0)
    # Both programs as a batch: margins and equal logits, and the ratios alone.
    margin = present & ~sets
    program = Program(
        D=np.stack([differences(X, reference[:, 0])] * 2),
        Z=np.stack([Z] * 2),
        margin=np.stack([margin, np.zeros_like(sets)]),
        equal=np.stack([inside] * 2),
        right=np.stack([margin.astype(np.float64), logs]),
    )
    apart, finite = solve_program(program, NORMS[norm], tolerance, _least_norm)
    if on_infeasible == "raise":
        for part, what in (
            (apart, "no W separates the selected sets"),
            (finite, "the attention ratios inside the selected sets contradict each other"),
        ):
            if part.status is Status.INFEASIBLE:
                raise InfeasibleError(what, part.certificate)
    return GeneralSolution(
        X=X, Z=Z, selected=sets, norm=norm, tolerance=tolerance, finite=finite, **vars(apart)
    )


def _sets(
    shape: tuple[int, ...], selected: ArrayLike, attention: ArrayLike, mask: ArrayLike | None
) -> tuple[BoolArray, FloatArray, BoolArray]:
    """Selected sets, attention and where there is a token, checked against each other."""
    sets = _checks.booleans("selected", selected, shape=shape)
    if not sets.any(1).all():
        empty = int(np.flatnonzero(~sets.any(1))[0])
        raise ArgumentError("selected", "a selected token in every sequence", f"none in {empty}")
    weights = _checks.array("attention", attention, shape=shape)
    if (weights[sets] <= 0).any():
        where = tuple(int(k) for k in np.argwhere(sets & (weights <= 0))[0])
        raise ArgumentError(
            "attention", "weights above 0 on the selected sets", f"{weights[where]} at {where}"
        )
    present = np.ones_like(sets) if mask is None else _checks.booleans("mask", mask, shape=shape)
    if (sets & ~present).any():
        raise ArgumentError("mask", "True at every selected token", "a selected token masked")
    return sets, weights, present


def _least_norm(rows: Rows, norm: Norm) -> Answer:
    """`least_norm` without the equalities that others imply, which get multiplier 0."""
    d, m = rows.D.shape[1], len(rows)
    kept, contradiction = _independent(rows)
    if contradiction is not None:
        return np.zeros((d, d)), np.zeros(m), contradiction / rows.lengths
    multipliers, farkas = np.zeros(m), np.zeros(m)
    W, multipliers[kept], proof = least_norm(rows.part(kept), norm)
    if proof is None:
        return W, multipliers, None
    farkas[kept] = proof
    return W, multipliers, farkas


def _independent(rows: Rows) -> tuple[IntArray, FloatArray | None]:
    """Rows without the equalities that others imply, or the proof that they contradict.

    The proof is the residual r of the least-squares solution: Σ r_j a_j = 0 and r'b = ‖r‖² > 0.
    """
    everything, equal = np.arange(len(rows)), rows.free.nonzero()[0]
    if len(equal) == 0:
        return everything, None
    A, b = rows.matrix()[equal], rows.b[equal]
    _, R, order = qr(A.T, mode="economic", pivoting=True)
    rank = int((np.abs(np.diag(R)) > 1e-12).sum())
    if rank == len(equal):
        return everything, None
    residual = b - A @ np.linalg.lstsq(A, b, rcond=1e-12)[0]
    if float(np.abs(residual).max()) > 1e-9 * max(float(np.abs(b).max()), 1e-300):
        proof = np.zeros(len(rows))
        proof[equal] = residual
        return everything, proof
    return np.setdiff1d(everything, equal[order[rank:]]), None
