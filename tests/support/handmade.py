"""A small book made by hand, for tests of the Sphinx extension."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
import smallbook
from PIL import Image

from attsvm import claims
from companion.site.mime import CLAIM_MIME, FIGURE_MIME

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

    def run(
        figure: dict[str, Any] | None = None,
        claim: dict[str, Any] | None = None,
        other: str = "# Other\n\nNothing.\n",
        registry: list[claims.Claim] | None = None,
        leave_out: str = "",
        config: dict[str, Any] | None = None,
    ) -> tuple[Path, str]:
        monkeypatch.setattr(claims, "registry", lambda: registry or [])
        source = tmp_path / "book source"
        results = source / "book/_static/results"
        chapter = source / f"book/{CHAPTER}.ipynb"
        for folder in (chapter.parent, results / "figures", results / "claims"):
            folder.mkdir(parents=True)
        cells = [nbformat.v4.new_markdown_cell("# Chapter\n\nWhat descent does to $W$, here.")]
        if figure is not None:
            for path in set(figure["files"].values()) - {leave_out}:
                if path.endswith(".png"):  # the site writes drawings anew, so it must be one
                    Image.new("RGB", (360, 216), "white").save(results / path)
                else:
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
        site, warnings = smallbook.render(
            source,
            tmp_path,
            **{
                "extensions": ["myst_nb", "companion.site"],
                "myst_enable_extensions": ["amsmath", "colon_fence", "dollarmath"],
                **(config or {}),
            },
        )
        return site, re.sub(r"\x1b\[[0-9;]*m", "", warnings)

    return run


def page(site: Path, name: str = f"book/{CHAPTER}") -> str:
    """The HTML of a page of a book made by hand."""
    return (site / f"{name}.html").read_text(encoding="utf-8")
