"""The Sphinx extension on a page made by hand: what it draws, and that it names what is missing."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from attsvm import claims
from attsvm.book.mime import CLAIM_MIME, FIGURE_MIME

REPOSITORY = Path(__file__).parents[2]
EXTENSIONS = REPOSITORY / "book" / "_ext"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 216"><path d="M0 0h9"/></svg>'
CHAPTER = "05-section/chapter"

Build = Callable[..., tuple[Path, str]]


def figure_record(**changes: Any) -> dict[str, Any]:
    """A figure record as a chapter writes it."""
    kinds = {"svg": "svg", "dark": "svg", "pdf": "pdf", "png": "png", "csv": "csv"}
    record = {
        "name": "curve",
        "title": "A curve",
        "alt": "A curve that rises to one.",
        "caption": "The direction of $W$.",
        "chapter": CHAPTER,
        "files": {k: f"figures/curve{'-dark' * (k == 'dark')}.{v}" for k, v in kinds.items()},
        "ledger": [
            {"label": "W", "drawn": 10, "fates": {"infeasible": 2, "kept": 8}},
            {"label": "KQ", "drawn": 10, "fates": {"kept": 9, "inaccurate": 1}},
        ],
        "passport": {"parameters": {"n": 6}, "seeds": "0..9", "commit": "abc", "solvers": {}},
    }
    return record | changes


def claim_record(**changes: Any) -> dict[str, Any]:
    """A claim record as a chapter writes it."""
    record = {
        "id": "local.direction",
        "chapter": CHAPTER,
        "place": "Section 5",
        "statement": "The direction of $W$ is that of the SVM.",
        "criterion": "correlation: at least 0.99",
        "why": "the published curve ends there",
        "published": 0.996,
        "certified": {"value": 0.99812, "halfwidth": 0.00043, "n": 100},
        "as_published": None,
        "verdict": "holds",
        "expected": "holds",
        "reason": "the criterion is met",
    }
    return record | changes


def registered(**changes: Any) -> claims.Claim:
    """The same claim in the registry."""
    fields = {
        "id": "local.direction",
        "chapter": CHAPTER,
        "place": "Section 5",
        "statement": "The direction of $W$ is that of the SVM.",
        "criterion": claims.Criterion("correlation", 0.99, float("inf"), "because"),
        "published": 0.996,
        "agreement": 0.01,
        "expected": claims.Verdict.HOLDS,
    }
    return claims.Claim(**(fields | changes))


def _shown(mime: str, record: dict[str, Any]) -> nbformat.NotebookNode:
    bundle = {mime: record, "text/plain": "a fallback that the site must not show"}
    output = nbformat.v4.new_output("display_data", data=bundle)
    return nbformat.v4.new_code_cell("show()", outputs=[output], execution_count=1)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Build a book of one chapter and two pages; give its folder and the warnings."""
    monkeypatch.setattr(sys, "path", [str(EXTENSIONS), *sys.path])

    def run(
        figure: dict[str, Any] | None = None,
        claim: dict[str, Any] | None = None,
        other: str = "# Other\n\nNothing.\n",
        registry: list[claims.Claim] | None = None,
        leave_out: str = "",
    ) -> tuple[Path, str]:
        monkeypatch.setattr(claims, "registry", lambda: registry or [])
        source, results = tmp_path / "book source", tmp_path / "book source/book/_static/results"
        chapter = source / f"book/{CHAPTER}.ipynb"
        for folder in (chapter.parent, results / "figures", results / "claims"):
            folder.mkdir(parents=True)
        cells = [nbformat.v4.new_markdown_cell("# Chapter\n\nWhat descent does to $W$, here.")]
        if figure is not None:
            for path in set(figure["files"].values()) - {leave_out}:
                (results / path).write_text(SVG)
            (results / f"figures/{figure['name']}.json").write_text(json.dumps(figure))
            cells.append(_shown(FIGURE_MIME, figure))
        if claim is not None:
            (results / f"claims/{claim['id']}.json").write_text(json.dumps(claim))
            cells.append(_shown(CLAIM_MIME, claim))
        language = {"name": "python", "pygments_lexer": "python"}
        notebook = nbformat.v4.new_notebook(cells=cells, metadata={"language_info": language})
        nbformat.write(notebook, chapter)
        (source / "book/other.md").write_text(other)
        (source / "index.md").write_text(
            f"# Book\n\n```{{toctree}}\nbook/{CHAPTER}\nbook/other\n```\n"
        )
        warnings = io.StringIO()
        with docutils_namespace():
            app = Sphinx(
                srcdir=source,
                confdir=None,
                outdir=tmp_path / "site",
                doctreedir=tmp_path / "trees",
                buildername="html",
                confoverrides={
                    "extensions": ["myst_nb", "companion"],
                    "html_theme": "sphinx_book_theme",
                    "html_static_path": [str(source / "book/_static")],
                    "nb_execution_mode": "off",
                    "myst_enable_extensions": ["colon_fence", "dollarmath"],
                    "numfig": True,
                    "nitpicky": True,
                    "exclude_patterns": ["book/_static/**"],
                },
                status=None,
                warning=warnings,
            )
            app.build()
        return tmp_path / "site", re.sub(r"\x1b\[[0-9;]*m", "", warnings.getvalue())

    return run


def _page(site: Path, name: str = f"book/{CHAPTER}") -> str:
    return (site / f"{name}.html").read_text(encoding="utf-8")


def test_figure_card(build: Build) -> None:
    """Both drawings, number, caption, ledger with a column per fate, passport, links."""
    site, warnings = build(figure=figure_record())
    page = _page(site)
    assert not warnings
    for theme, name in (("light", "curve.svg"), ("dark", "curve-dark.svg")):
        assert re.search(rf'on-{theme}" src="../../_static/results/figures/{name}"', page)
    assert 'width="360" height="216"' in page
    assert 'id="fig-curve"' in page
    assert "Fig. 1" in page
    heads = re.findall(r'<th scope="col">(\w+)</th>', page)
    assert heads == ["experiment", "drawn", "kept", "infeasible", "inaccurate"]
    assert "<td>10</td><td>9</td><td>0</td><td>1</td>" in page
    assert "solvers" not in page, "an empty entry of the passport is left out"
    assert page.count(" download>") == 4
    assert 'href="#cell-curve"' in page
    assert 'id="cell-curve"' in page
    assert "a fallback that the site must not show" not in page


def test_claim_box_and_role(build: Build) -> None:
    """The box says the verdict in words with its numbers; the role links to it from elsewhere."""
    site, warnings = build(
        claim=claim_record(), other="# Other\n\nSee {claim}`that <local.direction>`.\n"
    )
    assert not warnings
    text = " ".join(re.sub(r"<[^>]*>", " ", _page(site)).split())
    assert "The claim holds: measured 0.9981 ± 0.0004 (100 instances), published 0.996" in text
    assert "a fallback that the site must not show" not in text
    link = re.search(r'href="([^"]*)"[^>]*title="Claim: holds"', _page(site, "book/other"))
    assert link is not None
    assert link[1] == "05-section/chapter.html#claim-local-direction"
    assert 'id="claim-local-direction"' in _page(site)


def test_figure_on_another_page(build: Build) -> None:
    """It is shown there without a number, and leads to its chapter."""
    site, warnings = build(
        figure=figure_record(), other="# Other\n\n:::{published-figure} curve\n:::\n"
    )
    page = _page(site, "book/other")
    assert not warnings
    assert "../_static/results/figures/curve.svg" in page
    assert "Fig. 1" not in page
    assert 'href="05-section/chapter.html#cell-curve"' in page


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
    page = _page(site, "book/other")
    assert not warnings
    assert 'href="05-section/chapter.html#claim-local-direction"' in page
    assert "published protocol: 0.5<" in page
    assert "it speaks of all matrices" in page
    assert "02-other/rank" in page
    counts = re.findall(r'class="count">(\d+)</span>.*?<span>([\w ]+)</span>', page)
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
