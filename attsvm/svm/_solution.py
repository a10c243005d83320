"""A solution of the Att-SVM: one selected token for each sequence (Section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attsvm import _checks
from attsvm._typing import BoolArray, FloatArray, IntArray
from attsvm.errors import ArgumentError
from attsvm.svm._certificate import Certified, Status, Tolerance, combination, farkas_residual
from attsvm.svm._constraints import differences

if TYPE_CHECKING:
    from attsvm.svm._face import Face


@dataclass(eq=False, kw_only=True)
class Solution(Certified):
    """Solution of min ‖W‖ subject to a_it(W) = (x_{i,α_i} − x_it)' W z_i ≥ 1 for all i, t ≠ α_i.

    Its certificate is that of `Certified` with D_it = x_{i,α_i} − x_it and no equality.

    Parameters
    ----------
    X, Z, selected, mask, tolerance
        As given to the solver: (n, T, d), (n, d), (n,), (n, T) or None, and a `Tolerance`.
    norm
        "fro", "nuc" or "lp".
    power
        The exponent p of the ℓp program (norm "lp"), else None.
    """

    X: FloatArray
    Z: FloatArray
    selected: IntArray
    mask: BoolArray | None
    norm: str
    tolerance: Tolerance
    power: float | None = None

    def margins(self) -> FloatArray:
        """(n, T), a_it(W) = (x_{i,α_i} − x_it)' W z_i; NaN at selected and masked tokens."""
        D = differences(self.X, self.selected)
        result: FloatArray = np.einsum("ntd,nd->nt", D, self.Z @ self.W.T)
        np.put_along_axis(result, self.selected[:, None], np.nan, -1)
        return result if self.mask is None else np.where(self.mask, result, np.nan)

    def singular_values(self) -> FloatArray:
        """(d,), of W, falling; NaN when infeasible."""
        if self.status is Status.INFEASIBLE:
            return np.full(self.W.shape[0], np.nan)
        return np.asarray(np.linalg.svd(self.W, compute_uv=False), dtype=np.float64)

    def rank(self, tolerance: float | None = None) -> int:
        """Number of singular values above `tolerance` times the largest; 0 if W = 0 or NaN.

        None: the solution's own `tolerance.rank`.
        """
        least = self.tolerance.rank if tolerance is None else tolerance
        least = _checks.number("tolerance", least, at_least=0.0, below=1.0)
        values = self.singular_values()
        return int((values > least * values[0]).sum())

    def support(self, tolerance: float | None = None) -> BoolArray:
        """(n, T) bool, the tokens with margin 1 (up to `tolerance`): the sets T_i of Section 5.

        None: the solution's own `tolerance.support`.
        """
        slack = self.tolerance.support if tolerance is None else tolerance
        # NaN (selected, masked, infeasible) compares False.
        return self.margins() <= 1.0 + _checks.number("tolerance", slack, at_least=0.0)

    def face(self) -> Face:
        """All solutions with this objective: how many directions, and the lowest rank found.

        Frobenius and ℓp norms are strictly convex, their solution is unique. The nuclear norm may
        leave a whole face; the W returned then lies inside it and has more than the lowest rank.

        Raises
        ------
        ArgumentError
            If the status is not SOLVED.
        """
        # Imported here because only the nuclear norm has a face to look at.
        from attsvm.svm._face import Face, face_of

        if not self.solved:
            raise ArgumentError("status", "a solved instance", str(self.status))
        if self.norm != "nuc" or not self.W.any():
            rank = self.rank()
            return Face(0, rank, rank, self.W)
        D = differences(self.X, self.selected)
        used = ~np.isnan(self.margins())
        M = combination(D, self.Z, self.dual)
        return face_of(self.W, M, D[used], self.Z[used.nonzero()[0]], self.dual[used])

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
        return farkas_residual(differences(self.X, self.selected), self.Z, self.certificate)

    def __repr__(self) -> str:
        n, T, d = self.X.shape
        return (
            f"Solution({self.status}, norm={self.norm!r}, n={n}, T={T}, d={d}, "
            f"objective={self.objective:.6g}, gap={self.gap:.1e})"
        )
