"""Att-SVM and Att-SVM*, also in ℓp: one selected token for each sequence (Section 2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attsvm import _checks
from attsvm._typing import ArrayLike, FloatArray
from attsvm.errors import InfeasibleError
from attsvm.svm._certificate import (
    DEFAULT,
    NORMS,
    Certified,
    Norm,
    Status,
    Tolerance,
    entrywise_norm,
    judge,
)
from attsvm.svm._constraints import Instances, Program, Rows, read
from attsvm.svm._frobenius import least_distance
from attsvm.svm._solution import Solution

# Instances whose differences and margins are held at the same time.
_PIECE = 1000


def solve(
    X: ArrayLike,
    Z: ArrayLike,
    selected: ArrayLike,
    norm: str = "fro",
    mask: ArrayLike | None = None,
    on_infeasible: str = "raise",
    tolerance: Tolerance | None = None,
) -> Solution:
    """Solve the Att-SVM: min ‖W‖ subject to (x_{i,α_i} − x_it)' W z_i ≥ 1 for all i and t ≠ α_i.

    Parameters
    ----------
    X, Z, selected
        (n, T, d) tokens, (n, d) queries, and (n,) int, the selected token α_i of each sequence.
    norm
        "fro": Att-SVM, Frobenius norm; "nuc": Att-SVM*, nuclear norm.
    mask
        (n, T) bool, True where a token exists; None: all exist.
    on_infeasible
        "raise" or "return": what to do when no W has the margins.
    tolerance
        What counts as solved and as infeasible.

    Returns
    -------
    Solution
        Certified: its gap and margins are recomputed from X, Z, selected, W and the multipliers.
        Without a constraint (T = 1) W = 0. If float64 reaches neither certificate the status is
        INACCURATE.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape, dtype or range; it names the argument.
    InfeasibleError
        If no W has the margins and `on_infeasible` is "raise"; carries the Farkas multipliers.
    """
    norm = _checks.choice("norm", norm, NORMS)
    return solve_one(X, Z, selected, NORMS[norm], mask, on_infeasible, tolerance)


def solve_many(
    X: ArrayLike,
    Z: ArrayLike,
    selected: ArrayLike,
    norm: str = "fro",
    mask: ArrayLike | None = None,
    on_infeasible: str = "return",
    tolerance: Tolerance | None = None,
    n_jobs: int = 1,
) -> list[Solution]:
    """Solve many instances of one size.

    Parameters
    ----------
    X, Z, selected, mask
        (B, n, T, d), (B, n, d), (B, n) and (B, n, T): as in `solve`, with one leading axis.
    norm, on_infeasible, tolerance
        As in `solve`.
    n_jobs
        Number of processes (joblib); 1 works in this process.

    Returns
    -------
    list of Solution
        One for each instance, in their order.

    Raises
    ------
    ArgumentError
        As in `solve`; also for an empty batch.
    InfeasibleError
        For the first infeasible instance, if `on_infeasible` is "raise".
    """
    _checks.choice("on_infeasible", on_infeasible, ("raise", "return"))
    chosen = NORMS[_checks.choice("norm", norm, NORMS)]
    n_jobs = _checks.integer("n_jobs", n_jobs, low=1)
    tolerance = tolerance or DEFAULT
    instances = read(X, Z, selected, mask, many=True)
    # Pieces bound the memory of differences and margins, and share the work among processes.
    share = -(-len(instances.X) // (4 * n_jobs)) if n_jobs > 1 else _PIECE
    pieces = instances.pieces(min(_PIECE, share))
    if n_jobs == 1 or len(pieces) == 1:
        parts = [_solve_piece(piece, chosen, tolerance) for piece in pieces]
    else:
        from joblib import Parallel, delayed

        parts = Parallel(n_jobs=n_jobs)(
            delayed(_solve_piece)(piece, chosen, tolerance) for piece in pieces
        )
    solutions = [solution for part in parts for solution in part]
    if on_infeasible == "raise":
        for index, solution in enumerate(solutions):
            _raise_if_infeasible(solution, f"instance {index}: ")
    return solutions


def solve_lp(
    X: ArrayLike,
    Z: ArrayLike,
    selected: ArrayLike,
    p: float,
    mask: ArrayLike | None = None,
    on_infeasible: str = "raise",
    tolerance: Tolerance | None = None,
) -> Solution:
    """Solve min ‖W‖_p = (Σ |W_kl|^p)^(1/p) subject to (x_{i,α_i} − x_it)' W z_i ≥ 1, t ≠ α_i.

    The target of ℓp mirror descent.
    Certified by the dual norm, 1/p + 1/q = 1: every λ ≥ 0 gives ‖W‖_p ≥ Σλ / ‖Σ λ_it D_it z_i'‖_q.

    Parameters
    ----------
    X, Z, selected
        (n, T, d), (n, d) and (n,): tokens, queries and selected tokens, as in `attsvm.svm.solve`.
    p
        1 < p < ∞.
    mask, on_infeasible, tolerance
        As in `attsvm.svm.solve`.

    Returns
    -------
    Solution
        Certified, with norm "lp" and power p.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape, dtype or range.
    InfeasibleError
        As in `attsvm.svm.solve`.
    """
    p = _checks.number("p", p, above=1.0)
    return solve_one(X, Z, selected, entrywise_norm(p), mask, on_infeasible, tolerance)


def solve_one(
    X: ArrayLike,
    Z: ArrayLike,
    selected: ArrayLike,
    norm: Norm,
    mask: ArrayLike | None,
    on_infeasible: str,
    tolerance: Tolerance | None,
) -> Solution:
    """`solve` in any norm."""
    _checks.choice("on_infeasible", on_infeasible, ("raise", "return"))
    instances = read(X, Z, selected, mask, many=False)
    solution = _solve_piece(instances, norm, tolerance or DEFAULT)[0]
    if on_infeasible == "raise":
        _raise_if_infeasible(solution)
    return solution


def _raise_if_infeasible(solution: Solution, where: str = "") -> None:
    if solution.status is Status.INFEASIBLE:
        raise InfeasibleError(
            f"{where}no W separates the selected tokens: the constraints combine to zero with the "
            f"multipliers in the certificate (residual {solution.farkas_residual():.1e})",
            solution.certificate,
        )


def _solve_piece(piece: Instances, norm: Norm, tolerance: Tolerance) -> list[Solution]:
    return [
        Solution(
            X=piece.X[i], Z=piece.Z[i], selected=piece.selected[i],
            mask=None if piece.mask is None else piece.mask[i],
            norm=norm.name, power=norm.power, tolerance=tolerance, **vars(answer),
        )
        for i, answer in enumerate(solve_program(piece.program(), norm, tolerance))
    ]  # fmt: skip


Answer = tuple[FloatArray, FloatArray, FloatArray | None]
"""W (d, d), its multipliers (m,), and Farkas multipliers (m,) or None, of the rows as given."""


def least_norm(rows: Rows, norm: Norm) -> Answer:
    """W of least norm, its multipliers, and a candidate for a proof that there is none."""
    if not rows.b.any():
        d = rows.D.shape[1]
        return np.zeros((d, d)), np.zeros(len(rows)), None
    W, multipliers, proof = least_distance(rows)
    if proof is not None:
        return W, multipliers, proof / rows.lengths
    # Imported here so that a program in one norm does not depend on the solvers of the others.
    if norm.name == "nuc":
        from attsvm.svm._nuclear import nuclear_norm

        W, multipliers = nuclear_norm(rows, W, multipliers)
    elif norm.power is not None:
        from attsvm.svm._lp import entrywise

        W, multipliers = entrywise(rows, multipliers, norm.power)
    else:
        return rows.scale * W, multipliers * (rows.scale / rows.lengths), None
    return W, multipliers / rows.lengths, None


def solve_program(
    program: Program,
    norm: Norm,
    tolerance: Tolerance,
    minimise: Callable[[Rows, Norm], Answer] = least_norm,
) -> list[Certified]:
    """Solve B programs, and judge the answers."""
    B, n, T, d = program.D.shape
    W, dual, farkas = np.zeros((B, d, d)), np.zeros((B, n * T)), np.zeros((B, n * T))
    for i, (places, rows) in enumerate(program.rows()):
        W[i], dual[i, places], proof = minimise(rows, norm)
        if proof is not None:
            dual[i], farkas[i, places] = 0.0, proof
    return judge(program, W, dual.reshape(B, n, T), farkas.reshape(B, n, T), norm, tolerance)
