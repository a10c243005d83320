"""The registry of the paper's claims and the verdict on each.

``claims.toml`` lists every claim with its criterion, fixed before the numbers were; where one was
changed later, its chapter says so.  A chapter reports what it measured; the verdict follows by
rule, never by hand:

- the certified value meets the criterion, and the published number (if any) agrees: *holds*;
- it meets the criterion, but the published number differs: *holds with a difference*;
- it misses it, but the published protocol meets it: *artefact of the published protocol*;
- otherwise: *fails*.  That too can be what the book expects: a negative verdict is a finding.

Claims that no finite computation can decide are listed as *not testable*, with the reason.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attsvm import records
from attsvm.errors import ArgumentError
from attsvm.metrics import Estimate, mean_estimate, share_estimate

__all__ = ["Claim", "Criterion", "Verdict", "check", "find", "judge", "plain", "registry", "report"]


class Verdict(Enum):
    """What the numbers say of a claim."""

    HOLDS = "holds"
    DIFFERS = "holds with a difference"
    ARTEFACT = "artefact of the published protocol"
    NOT_TESTABLE = "not testable"
    FAILS = "fails"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Criterion:
    """When a measured value bears a claim out: it lies in [at_least, at_most].

    Attributes
    ----------
    quantity, why
        What is measured, and the reason for this threshold, in words.
    at_least, at_most
        The bounds; infinite where there is none.
    """

    quantity: str
    at_least: float
    at_most: float
    why: str

    def met(self, value: float) -> bool:
        """Whether a value satisfies the criterion."""
        return self.at_least <= value <= self.at_most

    def __str__(self) -> str:
        if self.at_least == self.at_most:
            return f"{self.quantity}: equal to {self.at_least:g}"
        bounds = (("at least", self.at_least), ("at most", self.at_most))
        finite = [f"{word} {bound:g}" for word, bound in bounds if math.isfinite(bound)]
        return f"{self.quantity}: {' and '.join(finite)}"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    Attributes
    ----------
    id
        Short name, "section.subject".
    place, statement
        Where in the paper, by content (numbering differs between versions); the claim in our words.
    expected
        The verdict the book is built on; another one stops the rebuild.
    chapter
        The notebook that judges it, e.g. "05-local-convergence/local-convergence"; empty if none
        can.
    criterion, reason
        When it counts as borne out; None if it is not testable, and why it is not.
    published, agreement
        The published number for the criterion's quantity, if there is one, and how far ours may lie
        from it and still count as the same.
    """

    id: str
    place: str
    statement: str
    expected: Verdict
    chapter: str = ""
    criterion: Criterion | None = None
    published: float | None = None
    agreement: float = 0.0
    reason: str = ""


def _claim(entry: Mapping[str, Any]) -> Claim:
    """Read one entry of the registry, or say which field is missing, unknown or contradictory."""
    name = f"claim {entry.get('id', '?')!r}"
    known = {field.name for field in fields(Claim)}
    if unknown := set(entry) - known:
        raise ArgumentError(name, f"fields among {sorted(known)}", f"{sorted(unknown)}")
    if missing := {"id", "place", "statement", "expected"} - set(entry):
        raise ArgumentError(name, "all of id, place, statement, expected", f"no {sorted(missing)}")
    given = entry.get("criterion")
    bounds = {"at_least": -math.inf, "at_most": math.inf}
    if given is not None and not {"quantity", "why"} == set(given) - set(bounds) < set(given):
        raise ArgumentError(name, "a criterion with quantity, why and a bound", f"{dict(given)}")
    expected = Verdict(entry["expected"])
    if (expected is Verdict.NOT_TESTABLE) != (given is None):
        raise ArgumentError(name, "a criterion exactly if it is testable", str(expected))
    needed = "reason" if given is None else "chapter"
    if not entry.get(needed):
        raise ArgumentError(name, f"the {needed} of a claim that is {expected}", "none")
    texts = {k: " ".join(entry[k].split()) for k in ("statement", "reason") if k in entry}
    criterion = None if given is None else Criterion(**(bounds | given))
    return Claim(**{**entry, **texts, "expected": expected, "criterion": criterion})


def read(path: Path) -> list[Claim]:
    """The claims of a registry file: TOML, with a table ``[[claim]]`` for each.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    list of Claim
        In the file's order.

    Raises
    ------
    ArgumentError
        If an entry is malformed or an id occurs twice.
    """
    claims = [_claim(entry) for entry in tomllib.loads(path.read_text("utf-8")).get("claim", [])]
    ids = [claim.id for claim in claims]
    if twice := {i for i in ids if ids.count(i) > 1}:
        raise ArgumentError("claims", "unique ids", f"{sorted(twice)} twice")
    return claims


@functools.cache
def _registry() -> tuple[Claim, ...]:
    with importlib.resources.as_file(importlib.resources.files("attsvm") / "claims.toml") as path:
        return tuple(read(path))


def registry() -> list[Claim]:
    """All claims, in the order of the paper."""
    return list(_registry())


def find(id: str) -> Claim:
    """The claim of that id.

    Raises
    ------
    ArgumentError
        If there is none.
    """
    known = {claim.id: claim for claim in _registry()}
    if id not in known:
        raise ArgumentError("id", f"one of {', '.join(known)}", repr(id))
    return known[id]


def judge(
    claim: Claim, certified: Estimate, as_published: Estimate | None = None
) -> tuple[Verdict, str]:
    """The verdict on a claim from what was measured, and the reason in a sentence.

    Parameters
    ----------
    claim
        The claim.
    certified, as_published
        Its quantity by exact arithmetic and certified solutions, and under the published protocol,
        where it was run.

    Returns
    -------
    verdict : Verdict
    reason : str

    Raises
    ------
    ArgumentError
        If the claim is not testable.
    """
    if claim.criterion is None:
        raise ArgumentError("claim", "a testable claim", f"{claim.id}: {claim.reason}")
    if claim.criterion.met(certified.value):
        # Three standard errors of our mean, beyond the agreed difference: the fewer instances, the
        # larger the tolerance.
        tolerance = claim.agreement + 3 * certified.standard_error
        if claim.published is None or abs(certified.value - claim.published) <= tolerance:
            return Verdict.HOLDS, "the criterion is met"
        reason = f"the criterion is met, but the published number is {claim.published:g}"
        return Verdict.DIFFERS, reason
    if as_published is not None and claim.criterion.met(as_published.value):
        reason = "the published protocol meets the criterion, the certified computation does not"
        return Verdict.ARTEFACT, reason
    return Verdict.FAILS, "the criterion is missed"


def report(
    id: str, certified: Estimate | ArrayLike, as_published: Estimate | ArrayLike | None = None
) -> None:
    """Judge a claim with what this chapter measured; write the record and show it.

    Parameters
    ----------
    id
        The claim's id in the registry.
    certified, as_published
        What was measured: an estimate, or (instances,) of numbers or truth values, whose mean or
        share is judged; a plain number is a single deterministic measurement.

    Raises
    ------
    ArgumentError
        If there is no such claim, it belongs to another chapter, or it is not testable.
    """
    claim = find(id)
    where = records.context()
    if where.chapter and claim.chapter != where.chapter:
        raise ArgumentError("id", f"a claim of {where.chapter}", f"{id}, of {claim.chapter}")
    ours = _estimate(certified)
    theirs = None if as_published is None else _estimate(as_published)
    verdict, reason = judge(claim, ours, theirs)
    assert claim.criterion is not None  # `judge` refuses the others
    record = {
        **{k: getattr(claim, k) for k in ("id", "chapter", "place", "statement", "published")},
        "criterion": str(claim.criterion),
        "quantity": claim.criterion.quantity,
        "why": claim.criterion.why,
        "certified": _plain(ours),
        "as_published": None if theirs is None else _plain(theirs),
        "verdict": str(verdict),
        "expected": str(claim.expected),
        "reason": reason,
    }
    records.write_json(where.output / "claims" / f"{claim.id}.json", record)
    records.display(
        {
            "application/vnd.attsvm.claim+json": record,
            "text/plain": f"{plain(claim.statement)}\n→ {verdict}: measured {ours}"
            + ("" if theirs is None else f", as published {theirs}")
            + ("" if claim.published is None else f", published {claim.published:g}"),
        }
    )


_PLAIN = (
    (r"\\\|", "‖"),
    (r"\^\\top", "ᵀ"),
    (r"\\sqrt\{(.*?)\}", r"√(\1)"),
    (r"\\sqrt ", "√"),
    (r"\\math\w+|[{}\\]", ""),
    ("-", "−"),
)


def plain(text: str) -> str:
    r"""Prose with formulas between dollar signs as it reads in a terminal.

    Parameters
    ----------
    text
        A statement, a criterion, a caption; its formulas hold LaTeX and Unicode signs.

    Examples
    --------
    >>> plain(r"$K Q^\top$ at $10^{-7} \|W_\mathrm{mm}\|_F$, below $\sqrt{n(1 - 1/T)}$")
    'K Qᵀ at 10^−7 ‖W_mm‖_F, below √(n(1 − 1/T))'
    """

    def bare(match: re.Match[str]) -> str:
        formula: str = match[1]
        for pattern, instead in _PLAIN:
            formula = re.sub(pattern, instead, formula)
        return formula

    return re.sub(r"\$([^$]+)\$", bare, text)


def _estimate(value: Estimate | ArrayLike) -> Estimate:
    """Values of instances have an interval; a plain number is one deterministic measurement."""
    if isinstance(value, Estimate):
        return value
    values = np.asarray(value)
    if values.ndim == 0:
        number = float(values)
        return Estimate(number, number, number, n=1)
    return share_estimate(values) if values.dtype.kind == "b" else mean_estimate(values)


def _plain(estimate: Estimate) -> dict[str, float]:
    return {**asdict(estimate), "halfwidth": estimate.halfwidth}


def check(found: Mapping[str, Mapping[str, Any]], chapters: Iterable[str]) -> list[str]:
    """What is wrong with the claims of the chapters built: each problem a sentence.

    Parameters
    ----------
    found, chapters
        Records by claim id, and ids of the chapters that were built.

    Returns
    -------
    list of str
        Empty if every claim of these chapters was reported and has the verdict expected.
    """
    built = set(chapters)
    problems = []
    for claim in registry():
        if claim.criterion is None or claim.chapter not in built:
            continue
        record = found.get(claim.id)
        if record is None:
            problems.append(f"claim {claim.id}: chapter {claim.chapter} did not report it")
        elif record["verdict"] != str(claim.expected):
            value = record["certified"]["value"]
            problems.append(
                f"claim {claim.id}: verdict {record['verdict']!r} where {str(claim.expected)!r}"
                f" was expected (measured {value:g}; {plain(record['criterion'])})"
            )
    return problems
