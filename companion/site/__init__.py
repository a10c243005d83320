"""Sphinx extension of this book: figure cards, claim boxes, the scorecard, the look of a page.

Everything that is missing (a record, a file, an alt text, a claim) is a warning, and the book is
built with warnings as errors: a page that promises what is not there does not get published.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from companion.site import (
    api,
    citation,
    claims,
    codeindex,
    domain,
    drawings,
    explorer,
    figures,
    gallery,
    launch,
    lean,
    maths,
    notation,
    pages,
    previews,
    social,
    typeset,
)
from companion.site.mime import ClaimBox, FigureCard, Illustration, ThemeImage


def _ignore(translator: Any, node: Any) -> None:
    """Other formats than HTML show the children and nothing else."""


def draw(app: Sphinx) -> None:
    """Register what draws the records, formulas and statements of a page."""
    other: dict[str, Any] = dict.fromkeys(("latex", "text", "man", "texinfo"), (_ignore, _ignore))
    for node, visit, depart in (
        (FigureCard, figures.visit_card, figures.depart_card),
        (Illustration, figures.visit_illustration, figures.depart_illustration),
        (ThemeImage, figures.visit_image, _ignore),
        (ClaimBox, claims.visit_box, claims.depart_box),
        (claims.Scorecard, claims.visit_scorecard, claims.depart_scorecard),
        (claims.Row, claims.visit_row, claims.depart_row),
        (gallery.Gallery, gallery.visit_gallery, _ignore),
    ):
        app.add_node(node, html=(visit, depart), **other)
    app.add_domain(domain.CompanionDomain)
    app.add_role("claim", domain.ClaimRole())
    app.add_directive("published-figure", figures.PublishedFigure)
    app.add_directive("explorer", explorer.ExplorerDirective)
    app.add_directive("gallery", gallery.GalleryDirective)
    app.add_directive("scorecard", claims.ScorecardDirective)
    app.add_transform(figures.CellAnchors)
    app.add_transform(typeset.UniqueStatementIds)
    app.add_post_transform(typeset.KeepPunctuation)
    app.add_post_transform(typeset.NumberedReferences)
    maths.connect(app)
    notation.connect(app)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all parts with Sphinx."""
    draw(app)
    pages.connect(app)
    drawings.connect(app)
    lean.connect(app)
    app.add_css_file("css/reading.css", priority=900)
    for part in (api, citation, codeindex, launch, previews, social):
        part.connect(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
