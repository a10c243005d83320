"""What solved the programs of an experiment, and how well: columns that travel with its table.

Experiments run in chunks, some of which come from a cache and bring no `Solution` along.  So the
gaps are written into the table, and a figure's passport is read off it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from attsvm._typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from attsvm.svm._general import GeneralSolution
    from attsvm.svm._solution import Solution

_PROGRAMS = {
    "fro": ("Frobenius", "active set"),
    "nuc": ("nuclear", "interior point, polished"),
    "lp": ("ℓp", "interior point"),
}
_GAP, _TOLERANCE = "gap, ", "tolerance of the gap, "


def evidence(*solutions: Iterable[Solution | GeneralSolution | None]) -> dict[str, FloatArray]:
    """Gaps and tolerances of solutions, by program, as columns of a table.

    Parameters
    ----------
    *solutions
        Lists of equal length, an entry for each instance; None where there was nothing to solve.

    Returns
    -------
    dict
        For each program, e.g. "Frobenius: attsvm.svm, active set", the largest relative gap of
        each instance and the tolerance that it was held against, (instances,) each; NaN where
        there is no solution.
    """
    columns: dict[str, FloatArray] = {}
    for group in map(list, solutions):
        for k, solution in enumerate(group):
            if solution is None:
                continue
            name, method = _PROGRAMS[solution.norm]
            # Gen-SVM has two parts; the larger gap counts.
            finite = getattr(solution, "finite", None)
            name = name if finite is None else f"Gen-SVM, {name}"
            gap = solution.gap if finite is None else max(solution.gap, finite.gap)
            limit = solution.tolerance.gap_for(solution.norm)
            for word, value in ((_GAP, gap), (_TOLERANCE, limit)):
                column = f"{word}{name}: attsvm.svm, {method}"
                if column not in columns:
                    columns[column] = np.full(len(group), np.nan)
                columns[column][k] = np.fmax(columns[column][k], value)
    return columns


def passport(
    *tables: pd.DataFrame, solutions: Iterable[Solution | GeneralSolution] = ()
) -> tuple[dict[str, str], dict[str, float]]:
    """Who solved what, and how well: "solvers" and "tolerances" of a figure's passport.

    Parameters
    ----------
    *tables
        Tables with columns of `evidence`; where there is a column ``fate``, the largest gap is
        that of instances kept.
    solutions
        Solutions that are in no table.

    Returns
    -------
    dict, dict
        Solver by program; tolerance of the relative gap and largest gap found, by program.
    """
    import pandas as pd

    solvers: dict[str, str] = {}
    tolerances: dict[str, float] = {}
    for table in (*tables, pd.DataFrame(evidence(list(solutions)))):
        kept = table[table["fate"] == "kept"] if "fate" in table else table
        for column in (c for c in map(str, table.columns) if c.startswith(_GAP)):
            program, solver = column.removeprefix(_GAP).split(": ", 1)
            tolerance, worst = f"relative gap, {program}", f"largest gap found, {program}"
            solvers[program] = solver
            tolerances[tolerance] = float(table[_TOLERANCE + column.removeprefix(_GAP)].max())
            if kept[column].notna().any():
                # One digit: what follows is rounding and differs from machine to machine.
                found = max(float(kept[column].max()), tolerances.get(worst, 0.0))
                tolerances[worst] = float(f"{found:.0e}")
    return solvers, tolerances
