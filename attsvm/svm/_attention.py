"""Att-SVM and Att-SVM*: one selected token for each sequence (Section 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attsvm import _checks
from attsvm.errors import InfeasibleError
from attsvm.svm._constraints import Batch, Instances, read
from attsvm.svm._frobenius import least_distance
from attsvm.svm._nuclear import nuclear_norm
from attsvm.svm._solution import DEFAULT, Solution, Status, Tolerance, certify

Float = NDArray[np.float64]

# Instances whose differences and margins are held at the same time.
_PIECE = 1000


def solve(
    X: Any,
    Z: Any,
    tokens: Any,
    norm: str = "fro",
    mask: Any = None,
    on_infeasible: str = "raise",
    tolerance: Tolerance | None = None,
) -> Solution:
    """Solve the Att-SVM: min ‖W‖ subject to (x_{i,α_i} − x_it)' W z_i ≥ 1 for all i and t ≠ α_i.

    Parameters
    ----------
    X
        (n, T, d) tokens.
    Z
        (n, d) queries.
    tokens
        (n,) int, the selected token α_i of each sequence.
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
        Certified: its gap and margins are recomputed from X, Z, tokens, W and the multipliers.
        Without a constraint (T = 1) W = 0. If float64 reaches neither certificate the status is
        INACCURATE.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape, dtype or range; it names the argument.
    InfeasibleError
        If no W has the margins and `on_infeasible` is "raise"; carries the Farkas multipliers.
    """
    _checks.choice("on_infeasible", on_infeasible, ("raise", "return"))
    norm = _checks.choice("norm", norm, ("fro", "nuc"))
    instances = read(X, Z, tokens, mask, many=False)
    solution = _solve_piece(instances, norm, tolerance or DEFAULT)[0]
    if solution.status is Status.INFEASIBLE and on_infeasible == "raise":
        raise infeasible_error(solution)
    return solution


def solve_many(
    X: Any,
    Z: Any,
    tokens: Any,
    norm: str = "fro",
    mask: Any = None,
    on_infeasible: str = "return",
    tolerance: Tolerance | None = None,
    n_jobs: int = 1,
) -> list[Solution]:
    """Solve many instances of one size; order is kept.

    Parameters
    ----------
    X, Z, tokens, mask
        As in `solve`, with one leading instance axis.
    norm, on_infeasible, tolerance
        As in `solve`.
    n_jobs
        Number of processes (joblib); 1 works in this process.

    Raises
    ------
    ArgumentError
        As in `solve`; also for an empty batch.
    InfeasibleError
        For the first infeasible instance, if `on_infeasible` is "raise".
    """
    _checks.choice("on_infeasible", on_infeasible, ("raise", "return"))
    norm = _checks.choice("norm", norm, ("fro", "nuc"))
    n_jobs = _checks.integer("n_jobs", n_jobs, low=1)
    tolerance = tolerance or DEFAULT
    instances = read(X, Z, tokens, mask, many=True)
    count = len(instances)
    # Pieces bound the memory of differences and margins, and share the work among processes.
    size = min(_PIECE, max(1, -(-count // (4 * n_jobs)))) if n_jobs > 1 else _PIECE
    pieces = [instances.piece(start, start + size) for start in range(0, count, size)]
    if n_jobs == 1 or len(pieces) == 1:
        parts = [_solve_piece(piece, norm, tolerance) for piece in pieces]
    else:
        from joblib import Parallel, delayed

        parts = Parallel(n_jobs=n_jobs)(
            delayed(_solve_piece)(piece, norm, tolerance) for piece in pieces
        )
    solutions = [solution for part in parts for solution in part]
    if on_infeasible == "raise":
        for index, solution in enumerate(solutions):
            if solution.status is Status.INFEASIBLE:
                raise infeasible_error(solution, f"instance {index}: ")
    return solutions


def infeasible_error(solution: Solution, where: str = "") -> InfeasibleError:
    return InfeasibleError(
        f"{where}no W separates the selected tokens: the constraints combine to zero with the "
        f"multipliers in the certificate (residual {solution.farkas_residual():.1e})",
        solution.certificate,
    )


def _solve_piece(instances: Instances, norm: str, tolerance: Tolerance) -> list[Solution]:
    batch = Batch.of(instances)
    B, n, T, d = batch.X.shape
    W = np.zeros((B, d, d))
    dual = np.zeros((B, n * T))
    farkas = np.zeros((B, n * T))
    for i, (places, rows) in enumerate(batch.rows()):
        V, multipliers, proof = least_distance(rows)
        # Multipliers of normalised rows → of the rows as given.
        length = np.where(rows.norms > 0, rows.norms, 1.0)
        if proof is not None:
            farkas[i, places] = proof / length
            continue
        if norm == "nuc":
            W[i], multipliers = nuclear_norm(rows, V, multipliers)
            dual[i, places] = multipliers / length
        else:
            W[i] = rows.scale * V
            dual[i, places] = multipliers * (rows.scale / length)
    return certify(batch, W, dual.reshape(B, n, T), farkas.reshape(B, n, T), norm, tolerance)
