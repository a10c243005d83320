"""Hard-margin SVMs of the paper, each with a certificate (Section 2, Section 6).

``solve`` and ``solve_many`` take one selected token for each sequence (Att-SVM, Att-SVM*),
``solve_general`` takes sets of them (Gen-SVM), ``solve_lp`` has other entrywise norms.
"""

from __future__ import annotations

from attsvm.svm._attention import solve, solve_many
from attsvm.svm._evidence import evidence, passport
from attsvm.svm._face import Face
from attsvm.svm._general import GeneralSolution, solve_general
from attsvm.svm._lp import solve_lp
from attsvm.svm._solution import Solution, Status, Tolerance

__all__ = [
    "Face",
    "GeneralSolution",
    "Solution",
    "Status",
    "Tolerance",
    "evidence",
    "passport",
    "solve",
    "solve_general",
    "solve_lp",
    "solve_many",
]
