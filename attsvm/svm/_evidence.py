"""What solved the programs of an experiment, and how well: columns that travel with its table.

Experiments run in chunks, some of which come from a cache and bring no `Solution` along.  So the
gaps are written into the table, and a figure's passport is read off it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    for group in solutions:
        for program, gaps, tolerances in _by_program(list(group)):
            for name, values in ((_GAP + program, gaps), (_TOLERANCE + program, tolerances)):
                columns[name] = np.fmax(columns.get(name, values), values)
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


def _by_program(
    group: Sequence[Solution | GeneralSolution | None],
) -> Iterable[tuple[str, FloatArray, FloatArray]]:
    programs = [None if s is None else _program(s) for s in group]
    for program in dict.fromkeys(filter(None, programs)):
        mine = [s if own == program else None for s, own in zip(group, programs, strict=True)]
        yield (
            program,
            np.array([np.nan if s is None else _gap(s) for s in mine], dtype=np.float64),
            np.array(
                [np.nan if s is None else s.tolerance.gap_for(s.norm) for s in mine],
                dtype=np.float64,
            ),
        )


def _program(solution: Solution | GeneralSolution) -> str:
    name, method = _PROGRAMS[solution.norm]
    if hasattr(solution, "finite"):
        name = f"Gen-SVM, {name}"
    return f"{name}: attsvm.svm, {method}"


def _gap(solution: Solution | GeneralSolution) -> float:
    """The larger of the two gaps of Gen-SVM."""
    return max(solution.gap, getattr(solution, "finite", solution).gap)
