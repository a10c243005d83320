"""Hard-margin SVMs of the paper, each with a certificate (Section 2, Section 6).

``solve`` and ``solve_many`` take one selected token for each sequence (Att-SVM, Att-SVM*),
``solve_general`` takes sets of them (Gen-SVM), ``solve_lp`` has other entrywise norms.  Frobenius:
block principal pivoting (:cite:t:`judice1994block`, :cite:t:`kim2011fast`), else non-negative least
squares (:cite:t:`lawson1974solving`).  Nuclear: an interior-point method
(:cite:t:`mehrotra1992implementation`, :cite:t:`helmberg1996interior`), polished by Newton's
(:cite:t:`overton1995second`).  Modules are loaded when they are first needed, so that whoever
solves in one norm depends on that norm's solver.
"""

from __future__ import annotations

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


def __getattr__(name: str) -> Any:
    # As statements: what a result may depend on is read from them (`attsvm.sources`).
    if name == "Face":
        from attsvm.svm._face import Face

        return Face
    if name in ("GeneralSolution", "solve_general"):
        from attsvm.svm._general import GeneralSolution, solve_general

        return solve_general if name == "solve_general" else GeneralSolution
    raise AttributeError(f"module 'attsvm.svm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
