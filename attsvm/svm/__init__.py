"""Hard-margin SVMs of the paper, each with a certificate (Section 2, Section 6).

``solve`` and ``solve_many`` take one selected token for each sequence (Att-SVM, Att-SVM*),
``solve_general`` takes sets of them (Gen-SVM), ``solve_lp`` has other entrywise norms.  Modules are
loaded when they are first needed, so that whoever solves in one norm depends on that norm's solver.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from attsvm.svm._attention import solve, solve_lp, solve_many
from attsvm.svm._certificate import Certified, Status, Tolerance
from attsvm.svm._evidence import evidence, passport
from attsvm.svm._solution import Solution

if TYPE_CHECKING:
    from attsvm.svm._face import Face
    from attsvm.svm._general import GeneralSolution, solve_general

__all__ = [
    "Certified",
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

_LATER = {
    "Face": "_face",
    "GeneralSolution": "_general",
    "solve_general": "_general",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"attsvm.svm.{_LATER[name]}"), name)
    raise AttributeError(f"module 'attsvm.svm' has no attribute {name!r}")
