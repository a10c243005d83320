"""Hard-margin SVMs of the paper, each with a certificate (Section 2, Section 6).

    sol = svm.solve(X, Z, tokens, norm="fro")      # Att-SVM; norm="nuc": Att-SVM*
    sol.W, sol.objective, sol.gap, sol.status
"""

from __future__ import annotations

from attsvm.svm._attention import solve, solve_many
from attsvm.svm._solution import Solution, Status, Tolerance

__all__ = ["Solution", "Status", "Tolerance", "solve", "solve_many"]
