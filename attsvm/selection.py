"""Which tokens attention keeps, which it should keep, and what became of every instance drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attsvm import _checks
from attsvm._typing import ArrayLike, BoolArray, FloatArray, IntArray
from attsvm.errors import ArgumentError
from attsvm.problem import AttentionProblem, require_axes

if TYPE_CHECKING:
    from attsvm.svm import GeneralSolution, Solution

__all__ = [
    "ACCEPTANCE_RULES",
    "Ledger",
    "acceptance",
    "convergence_types",
    "fates",
    "first_fate",
    "locally_optimal",
    "optimal_tokens",
    "selected_sets",
    "selected_tokens",
]


def optimal_tokens(problem: AttentionProblem) -> IntArray:
    """opt_i, the token of highest score in each sequence (Section 2).

    Parameters
    ----------
    problem
        One instance or many, leading axes ….

    Returns
    -------
    ndarray of int
        (…, n).  Of equal scores the first counts; for random data they do not occur.
    """
    return problem.scores().argmax(-1)


def _weights(attention: ArrayLike) -> FloatArray:
    """Attention weights (…, n, T), checked."""
    weights = _checks.array("attention", attention)
    if weights.ndim < 2 or 0 in weights.shape:
        raise ArgumentError("attention", "shape (…, n, T), not empty", f"shape {weights.shape}")
    return weights


def selected_tokens(attention: ArrayLike) -> IntArray:
    """The token with the largest attention weight in each sequence (Section 5).

    Parameters
    ----------
    attention
        (…, n, T) weights.

    Returns
    -------
    ndarray of int
        (…, n).

    Raises
    ------
    ArgumentError
        If there is no token axis or a weight is not finite.
    """
    return _weights(attention).argmax(-1)


def selected_sets(attention: ArrayLike, threshold: float = 1e-3) -> BoolArray:
    """The sets O_i of tokens whose attention weight exceeds a threshold (Section 6).

    Parameters
    ----------
    attention, threshold
        (…, n, T) weights; the published experiment's threshold is 10⁻³.

    Returns
    -------
    ndarray of bool
        (…, n, T).

    Raises
    ------
    ArgumentError
        If a weight is not finite or the threshold is not in (0, 1).
    """
    return _weights(attention) > _checks.number("threshold", threshold, above=0.0, below=1.0)


#: Rules by which the published experiment on several selected tokens drops an instance, in the
#: order in which it applies them.  The name is the fate of the instance that meets the rule first.
ACCEPTANCE_RULES = ("no label −1", "grey zone", "finite solution")


def acceptance(
    problem: AttentionProblem,
    attention: ArrayLike,
    *,
    selected: float = 1e-3,
    dropped: float = 1e-6,
    rules: Sequence[str] = ACCEPTANCE_RULES,
) -> list[str]:
    """Which instances the experiment on several selected tokens accepts, and why not the others.

    The rules, applied to the attention weights s of the last iteration (Section 6):

    - "no label −1": all labels of the instance are +1;
    - "grey zone": some weight lies in (dropped, selected], neither clearly kept nor clearly gone;
    - "finite solution": no weight of the instance is at most `dropped`, so that nothing is left out
      and there is no direction to diverge in.

    Parameters
    ----------
    problem, attention
        Instances along one leading axis, and weights (instances, n, T).
    selected, dropped
        Ends of the grey zone, 0 < dropped ≤ selected < 1.  With equal ends there is none.
    rules
        The rules to apply; by default all, as published.

    Returns
    -------
    list of str
        For each instance "kept", or the first of the rules that drops it.  What the SVMs have to
        say comes on top: see `fates` and `first_fate`.

    Raises
    ------
    ArgumentError
        If shapes do not fit, thresholds are out of order, or a rule is unknown.
    """
    require_axes(problem, 1)
    weights = _checks.array("attention", attention, shape=(len(problem), problem.n, problem.T))
    high = _checks.number("selected", selected, above=0.0, below=1.0)
    low = _checks.number("dropped", dropped, above=0.0, at_most=high)
    names = [_checks.choice("rules", name, ACCEPTANCE_RULES) for name in rules]
    meets = {
        "no label −1": (problem.labels > 0).all(-1),
        "grey zone": ((weights > low) & (weights <= high)).any((-2, -1)),
        "finite solution": ~(weights <= low).any((-2, -1)),
    }
    columns = [np.where(meets[name], name, "kept").tolist() for name in names]
    return first_fate(*columns) if columns else ["kept"] * len(problem)


def first_fate(*columns: Sequence[str]) -> list[str]:
    """Join lists of fates: for each instance the first that is not "kept".

    Parameters
    ----------
    *columns
        One or more lists of equal length, an entry for each instance.

    Returns
    -------
    list of str

    Raises
    ------
    ArgumentError
        If there is no list or they differ in length.
    """
    if len({len(column) for column in columns}) != 1:
        raise ArgumentError("columns", "lists of equal length", str([len(c) for c in columns]))
    return [
        next((word for word in words if word != "kept"), "kept")
        for words in zip(*columns, strict=True)
    ]


def locally_optimal(
    problem: AttentionProblem, selected: ArrayLike, support: ArrayLike
) -> BoolArray:
    """Whether each selected token outscores all its support tokens (Section 5).

    For the SVM of the tokens α, the support tokens T_i of sequence i are those whose margin is
    exactly one; α_i is locally optimal if γ_{i,α_i} > γ_it for all t in T_i.

    Parameters
    ----------
    problem, selected
        One instance or many, leading axes …, and its selected tokens α (…, n).
    support
        (…, n, T), True for support tokens (`Solution.support`).

    Returns
    -------
    ndarray of bool
        (…, n).

    Raises
    ------
    ArgumentError
        If shapes do not fit or a token index is out of range.
    """
    gamma = problem.scores()
    chosen = _checks.integers("selected", selected, shape=gamma.shape[:-1], low=0, high=problem.T)
    rivals = _checks.booleans("support", support, shape=gamma.shape)
    own = np.take_along_axis(gamma, chosen[..., None], -1)
    return np.asarray(np.where(rivals, own > gamma, True).all(-1))


def convergence_types(
    problem: AttentionProblem, selected: ArrayLike, solutions: Sequence[Solution]
) -> NDArray[np.str_]:
    """Sort instances into global, local and not local (Section 5).

    Global: the selected tokens are the optimal ones.  Local: they are not, but each is locally
    optimal. Not local: neither.  "Unsolved" where the SVM of the selected tokens has no certified
    solution.

    Parameters
    ----------
    problem, selected
        Instances along one leading axis, and their selected tokens (instances, n).
    solutions
        The SVM solutions of these, one for each instance.

    Returns
    -------
    ndarray of str
        (instances,).

    Raises
    ------
    ArgumentError
        If the problem is a single instance or the numbers of instances differ.
    """
    require_axes(problem, 1)
    if len(solutions) != len(problem):
        raise ArgumentError("solutions", f"{len(problem)} solutions", str(len(solutions)))
    solved = np.array([s.solved for s in solutions])
    none = np.zeros((problem.n, problem.T), dtype=bool)
    support = np.stack([s.support() if s.solved else none for s in solutions])
    local = locally_optimal(problem, selected, support).all(-1)
    optimal = (np.asarray(selected) == optimal_tokens(problem)).all(-1)
    kinds = np.where(optimal, "global", np.where(local, "local", "not local"))
    return np.where(solved, kinds, "unsolved")


def fates(*solutions: Sequence[Solution | GeneralSolution | None]) -> list[str]:
    """What became of each instance: "kept", or the status of the first SVM that was not solved.

    Parameters
    ----------
    *solutions
        Lists of equal length, an entry for each instance; None where there was nothing to solve.

    Returns
    -------
    list of str

    Raises
    ------
    ArgumentError
        If the lists differ in length.
    """
    if len({len(s) for s in solutions}) > 1:
        raise ArgumentError("solutions", "lists of equal length", str([len(s) for s in solutions]))
    # Gen-SVM has a finite part beside the solution itself, with a status of its own.
    parts = [[(s, getattr(s, "finite", s)) if s else () for s in column] for column in solutions]
    return [
        next((str(part.status) for pair in row for part in pair if not part.solved), "kept")
        for row in zip(*parts, strict=True)
    ]


class Ledger:
    """What became of every seed drawn: one row for each experiment, one fate for each seed.

    A figure is shown with its ledger, so that a mean over the instances that were kept cannot hide
    those that were not.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, str]] = {}

    def add(self, label: str, seeds: Iterable[int], fates: Iterable[str]) -> None:
        """Enter the fates of some seeds under a row.

        Parameters
        ----------
        label
            Name of the row.
        seeds, fates
            Of equal length; a seed that is there already must have the same fate.

        Raises
        ------
        ArgumentError
            If the lists differ in length, a fate is empty, or a seed has another fate already.
        """
        seed_list, fate_list = [int(s) for s in seeds], [str(f) for f in fates]
        if len(seed_list) != len(fate_list):
            raise ArgumentError("fates", f"{len(seed_list)} entries", str(len(fate_list)))
        row = self._rows.setdefault(label, {})
        for seed, fate in zip(seed_list, fate_list, strict=True):
            if not fate:
                raise ArgumentError("fates", "a word for every seed", f"nothing for seed {seed}")
            if row.setdefault(seed, fate) != fate:
                expected = f"one fate for seed {seed} of {label!r}"
                raise ArgumentError("fates", expected, f"{row[seed]} and {fate}")

    def counts(self) -> dict[str, dict[str, int]]:
        """Number of seeds by row and fate, "kept" first."""
        return {
            label: dict(sorted(Counter(row.values()).items(), key=lambda f: (f[0] != "kept", f[0])))
            for label, row in self._rows.items()
        }

    def as_record(self) -> list[dict[str, Any]]:
        """The rows as plain data, for the passport of a figure."""
        return [
            {"label": label, "drawn": len(self._rows[label]), "fates": dict(row)}
            for label, row in self.counts().items()
        ]

    @classmethod
    def combined(cls, ledgers: Mapping[str, Ledger]) -> Ledger:
        """One ledger from several, each row named "key: row" (just "key" where it has one row)."""
        result = cls()
        for key, ledger in ledgers.items():
            for label, row in ledger._rows.items():
                name = key if len(ledger._rows) == 1 else f"{key}: {label}"
                result.add(name, row.keys(), row.values())
        return result

    @classmethod
    def kept(cls, labels: Iterable[str], count: int = 1) -> Ledger:
        """A ledger in which everything counts: given instances, a row for each label."""
        result = cls()
        for label in labels:
            result.add(label, range(count), ["kept"] * count)
        return result

    def __str__(self) -> str:
        return "\n".join(
            f"{row['label']}: {row['drawn']} drawn, "
            + ", ".join(f"{number} {fate}" for fate, number in row["fates"].items())
            for row in self.as_record()
        )
