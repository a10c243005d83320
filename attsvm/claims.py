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
    quantity
        What is measured, in words.
    at_least, at_most
        The bounds; infinite where there is none.
    why
        The reason for this threshold.
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
        words = (f"at least {self.at_least:g}", f"at most {self.at_most:g}")
        bounds = (self.at_least, self.at_most)
        finite = [text for text, bound in zip(words, bounds, strict=True) if math.isfinite(bound)]
        return f"{self.quantity}: {' and '.join(finite)}"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    Attributes
    ----------
    id
        Short name, "section.subject".
    chapter
        The notebook that judges it, e.g. "05-local-convergence/local-convergence"; empty if none
        can.
    place
        Where in the paper, by content (numbering differs between versions).
    statement
        The claim in our words.
    criterion
        When it counts as borne out; None if it is not testable.
    published
        The published number for the criterion's quantity, if there is one.
    agreement
        How far our number may lie from the published one and still count as the same.
    expected
        The verdict the book is built on; another one stops the rebuild.
    reason
        For claims that are not testable: why.
    """

    id: str
    chapter: str
    place: str
    statement: str
    criterion: Criterion | None
    published: float | None
    agreement: float
    expected: Verdict
    reason: str = ""


def _claim(entry: Mapping[str, Any]) -> Claim:
    """Read one entry of the registry, or say which field is missing, unknown or contradictory."""
    name = f"claim {entry.get('id', '?')!r}"
    known = {field.name for field in fields(Claim)}
    if unknown := set(entry) - known:
        raise ArgumentError(name, f"fields among {sorted(known)}", f"{sorted(unknown)}")
    if missing := {"id", "place", "statement", "expected"} - set(entry):
        raise ArgumentError(name, "all of id, place, statement, expected", f"no {sorted(missing)}")
    expected = Verdict(entry["expected"])
    given = entry.get("criterion")
    if given is not None and (
        not {"quantity", "why"} <= set(given) or not {"at_least", "at_most"} & set(given)
    ):
        raise ArgumentError(name, "a criterion with quantity, why and a bound", f"{dict(given)}")
    if (expected is Verdict.NOT_TESTABLE) != (given is None):
        raise ArgumentError(name, "a criterion exactly if it is testable", str(expected))
    if given is None and not entry.get("reason"):
        raise ArgumentError(name, "a reason why it is not testable", "none")
    if given is not None and not entry.get("chapter"):
        raise ArgumentError(name, "the chapter that judges it", "none")
    return Claim(
        id=entry["id"],
        chapter=entry.get("chapter", ""),
        place=entry["place"],
        statement=" ".join(entry["statement"].split()),
        criterion=None
        if given is None
        else Criterion(
            quantity=given["quantity"],
            at_least=float(given.get("at_least", "-inf")),
            at_most=float(given.get("at_most", "inf")),
            why=given["why"],
        ),
        published=entry.get("published"),
        agreement=float(entry.get("agreement", 0.0)),
        expected=expected,
        reason=" ".join(entry.get("reason", "").split()),
    )


def read(path: Path) -> list[Claim]:
    """The claims of a registry file, in its order.

    Parameters
    ----------
    path
        A TOML file with a table ``[[claim]]`` for each claim.

    Returns
    -------
    list of Claim

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
    certified
        Exact arithmetic and certified solutions.
    as_published
        The same quantity under the published protocol, where it was run.

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
        return Verdict.DIFFERS, (
            f"the criterion is met, but the published number is {claim.published:g}"
        )
    if as_published is not None and claim.criterion.met(as_published.value):
        return Verdict.ARTEFACT, (
            "the published protocol meets the criterion, the certified computation does not"
        )
    return Verdict.FAILS, "the criterion is missed"


def report(
    id: str, certified: Estimate | ArrayLike, as_published: Estimate | ArrayLike | None = None
) -> None:
    """Judge a claim with what this chapter measured; write the record and show it.

    Returns nothing, so that a cell that ends with it shows the claim once; `judge` gives the
    verdict.

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

    Returns
    -------
    str
        The same without the marks of LaTeX.

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
    if values.ndim:
        return share_estimate(values) if values.dtype.kind == "b" else mean_estimate(values)
    number = float(values)
    return Estimate(value=number, low=number, high=number, n=1)


def _plain(estimate: Estimate) -> dict[str, float]:
    return {**asdict(estimate), "halfwidth": estimate.halfwidth}


def check(found: Mapping[str, Mapping[str, Any]], chapters: Iterable[str]) -> list[str]:
    """What is wrong with the claims of the chapters built: each problem a sentence.

    Parameters
    ----------
    found
        Records by claim id.
    chapters
        Ids of the chapters that were built.

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
