"""The Sphinx extension on a page made by hand: what it draws, and that it names what is missing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from handmade import Build, claim_record, figure_record, page, registered

from attsvm import claims


def test_figure_card(build: Build) -> None:
    """Both drawings, number, caption, ledger with a column per fate, passport, links."""
    site, warnings = build(figure=figure_record())
    html = page(site)
    assert not warnings
    for theme, name in (("light", "curve.svg"), ("dark", "curve-dark.svg")):
        assert re.search(rf'on-{theme}" src="../../_static/results/figures/{name}"', html)
    assert 'width="360" height="216"' in html
    assert 'id="fig-curve"' in html
    assert "Fig. 1" in html
    heads = re.findall(r'<th scope="col">(\w+)</th>', html)
    assert heads == ["experiment", "drawn", "kept", "infeasible", "inaccurate"]
    assert "<td>10</td><td>9</td><td>0</td><td>1</td>" in html
    assert "solvers" not in html, "an empty entry of the passport is left out"
    assert html.count(" download>") == 4
    assert 'href="#cell-curve"' in html
    assert 'id="cell-curve"' in html
    assert "a fallback that the site must not show" not in html


def test_claim_box_and_role(build: Build) -> None:
    """The box says the verdict in words with its numbers; the role links to it from elsewhere."""
    site, warnings = build(
        claim=claim_record(), other="# Other\n\nSee {claim}`that <local.direction>`.\n"
    )
    assert not warnings
    text = " ".join(re.sub(r"<[^>]*>", " ", page(site)).split())
    assert "The claim holds: measured 0.9981 ± 0.0004 (100 instances), published 0.996" in text
    assert "a fallback that the site must not show" not in text
    link = re.search(r'href="([^"]*)"[^>]*title="Claim: holds"', page(site, "book/other"))
    assert link is not None
    assert link[1] == "05-section/chapter.html#claim-local-direction"
    assert 'id="claim-local-direction"' in page(site)


def test_a_long_ledger_is_folded(build: Build) -> None:
    """Its sums are seen; the lines stand in the fold, all of them."""
    rows = [{"label": f"n={k}", "drawn": 10, "fates": {"kept": 9, "lost": 1}} for k in range(13)]
    site, warnings = build(figure=figure_record(ledger=rows))
    html = page(site)
    assert not warnings
    fold = re.search(r'<details class="ledger-fold">(.*?)</details>', html, re.DOTALL)
    assert fold is not None
    assert "130 drawn, 117 kept, 13 lost" in fold[1]
    assert fold[1].count("<td>10</td><td>9</td><td>1</td>") == 13


def test_figure_on_anotherpage(build: Build) -> None:
    """It is shown there without a number, and leads to its chapter."""
    site, warnings = build(
        figure=figure_record(), other="# Other\n\n:::{published-figure} curve\n:::\n"
    )
    html = page(site, "book/other")
    assert not warnings
    assert "../_static/results/figures/curve.svg" in html
    assert "Fig. 1" not in html
    assert 'href="05-section/chapter.html#cell-curve"' in html


def test_scorecard(build: Build) -> None:
    """Judged claims with numbers, those of other builds, and those that cannot be judged."""
    untestable = registered(
        id="risk.infimum",
        chapter="",
        criterion=None,
        expected=claims.Verdict.NOT_TESTABLE,
        reason="it speaks of all matrices",
    )
    elsewhere = registered(id="rank.bound", chapter="02-other/rank")
    site, warnings = build(
        claim=claim_record(as_published={"value": 0.5, "halfwidth": 0.0, "n": 1}),
        other="# Scores\n\n:::{scorecard}\n:::\n",
        registry=[registered(), elsewhere, untestable],
    )
    html = page(site, "book/other")
    assert not warnings
    assert 'href="05-section/chapter.html#claim-local-direction"' in html
    assert "published protocol: 0.5<" in html
    assert "it speaks of all matrices" in html
    assert "02-other/rank" in html
    counts = re.findall(r'class="count">(\d+)</span>.*?<span>([\w ]+)</span>', html)
    assert counts == [("1", "holds"), ("1", "not testable")]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"figure": figure_record(), "leave_out": "figures/curve.pdf"}, "curve.pdf"),
        ({"figure": figure_record(alt=" ")}, "no alt text"),
        (
            {"figure": figure_record(ledger=[{"label": "W", "drawn": 9, "fates": {"kept": 8}}])},
            "does not account for every draw of 'W'",
        ),
        ({"other": "# O\n\n:::{published-figure} lost\n:::\n"}, "published a figure 'lost'"),
        ({"other": "# O\n\n{claim}`lost.claim`\n"}, "lost.claim"),
        (
            {"other": "# O\n\n:::{scorecard}\n:::\n", "registry": [registered()]},
            "'local.direction' is registered for chapter '05-section/chapter' but was not judged",
        ),
        (
            {"claim": claim_record(), "other": "# O\n\n:::{scorecard}\n:::\n", "registry": []},
            "'local.direction' is not in the registry",
        ),
        ({"claim": claim_record(chapter="01-x/y")}, "says it belongs to chapter '01-x/y'"),
    ],
)
def test_what_is_missing_is_named(build: Build, arguments: dict[str, Any], complaint: str) -> None:
    """Each gap is a warning that says what is missing; a book is built with no warnings."""
    _, warnings = build(**arguments)
    assert complaint in warnings
