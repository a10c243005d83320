"""Claims: the registry is sound, and verdicts follow from numbers by rule."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attsvm import claims, metrics
from attsvm.claims import Claim, Criterion, Verdict
from attsvm.errors import ArgumentError
from attsvm.metrics import Estimate


def claim(**changes):
    base = Claim(
        id="test.claim",
        chapter="01-test/chapter",
        place="Section 1",
        statement="Something is large.",
        criterion=Criterion("size", at_least=0.9, at_most=float("inf"), why="large is 0.9"),
        published=0.95,
        agreement=0.02,
        expected=Verdict.HOLDS,
    )
    return replace(base, **changes)


def estimate(value, half=0.0):
    return Estimate(value, value - half, value + half, 100)


@pytest.mark.parametrize(
    ("certified", "as_published", "expected"),
    [
        (0.95, None, Verdict.HOLDS),
        (0.96, 0.95, Verdict.HOLDS),
        (0.99, 0.95, Verdict.DIFFERS),
        (0.5, 0.95, Verdict.ARTEFACT),
        (0.5, 0.5, Verdict.FAILS),
        (0.5, None, Verdict.FAILS),
    ],
)
def test_verdicts_by_rule(certified, as_published, expected):
    theirs = None if as_published is None else estimate(as_published)
    verdict, reason = claims.judge(claim(), estimate(certified), theirs)
    assert verdict is expected
    assert reason


def test_sampling_error_is_no_difference():
    far = estimate(0.99, half=0.05)
    assert claims.judge(claim(), far)[0] is Verdict.HOLDS
    assert claims.judge(claim(published=None), estimate(0.99))[0] is Verdict.HOLDS


@given(st.floats(-1, 2), st.floats(-1, 2))
def test_a_verdict_never_praises_what_misses_the_criterion(ours, theirs):
    verdict, _ = claims.judge(claim(), estimate(ours), estimate(theirs))
    assert (verdict in (Verdict.HOLDS, Verdict.DIFFERS)) == (ours >= 0.9)
    assert (verdict is Verdict.ARTEFACT) == (ours < 0.9 <= theirs)


def test_the_registry_is_sound():
    registry = claims.registry()
    assert len({c.id for c in registry}) == len(registry) >= 20
    for c in registry:
        assert c.place.startswith("Section"), c.id
        assert c.statement.endswith("."), c.id
        if c.criterion is not None:
            assert c.criterion.why, c.id
            assert c.chapter, c.id
            if c.expected is Verdict.ARTEFACT and c.published is not None:
                assert c.criterion.met(c.published), c.id


ENTRY = """
[[claim]]
id = "a.b"
place = "Section 1"
statement = "It is."
"""


OTHER = 'expected = "not testable"\nreason = "x"\n'
HOLDS = 'expected = "holds"\ncriterion = { quantity = "x", why = "y"'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('expected = "holds"', "criterion exactly if"),
        ('expected = "not testable"', "reason"),
        ("", "expected"),
        (OTHER + 'colour = "red"', "colour"),
        (HOLDS + "}", "bound"),
        (HOLDS + ", at_least = 1, below = 2 }", "bound"),
        (HOLDS + ", at_least = 1 }", "chapter"),
        (OTHER + ENTRY + OTHER, "twice"),
    ],
)
def test_malformed_entries_are_refused(tmp_path, lines, message):
    file = tmp_path / "claims.toml"
    file.write_text(ENTRY + lines)
    with pytest.raises(ArgumentError, match=message):
        claims.read(file)


@pytest.fixture
def some(monkeypatch, tmp_path):
    """A registry of one claim, and a chapter that may report it."""
    monkeypatch.setattr(claims, "_registry", lambda: (claim(),))
    monkeypatch.setenv("ATTSVM_OUTPUT", str(tmp_path))
    monkeypatch.setenv("ATTSVM_CHAPTER", "01-test/chapter")
    return tmp_path / "claims" / "test.claim.json"


def test_report_writes_the_record(some, capsys):
    claims.report("test.claim", 0.955, estimate(0.94, 0.01))
    record = json.loads(some.read_text())
    assert record["verdict"] == record["expected"] == "holds"
    assert record["certified"]["value"] == 0.955
    assert record["as_published"]["halfwidth"] == pytest.approx(0.01)
    assert "holds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "estimate"),
    [
        ([0.5, 1.0, 1.5], metrics.mean_estimate([0.5, 1.0, 1.5])),
        ([True, False, True], metrics.share_estimate([True, False, True])),
        (np.float64(0.25), Estimate(0.25, 0.25, 0.25, 1)),
    ],
)
def test_values_of_instances_are_estimated(some, values, estimate):
    for measured in (values, estimate):
        claims.report("test.claim", measured, measured)
        record = json.loads(some.read_text())
        assert record["certified"] == record["as_published"]
        for name in ("value", "halfwidth", "low", "high", "n"):
            assert record["certified"][name] == getattr(estimate, name)


def test_a_chapter_reports_its_own_claims_only(some, monkeypatch):
    monkeypatch.setenv("ATTSVM_CHAPTER", "02-test/other")
    with pytest.raises(ArgumentError, match="02-test/other"):
        claims.report("test.claim", 1.0)


def test_check_names_what_is_missing_or_unexpected(some):
    assert claims.check({}, ["02-test/other"]) == []
    (missing,) = claims.check({}, ["01-test/chapter"])
    assert "test.claim" in missing and "did not report" in missing
    claims.report("test.claim", 0.1)
    record = json.loads(some.read_text())
    (wrong,) = claims.check({"test.claim": record}, ["01-test/chapter"])
    assert "'fails'" in wrong and "0.1" in wrong
