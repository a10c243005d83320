"""Turns figure and claim records, shown by a chapter's cells, into parts of a page.

``figures.publish`` and ``claims.report`` display one output in several mime types.  Plain Jupyter
shows the SVG or the text of it.  MyST-NB finds :class:`CompanionRenderer` through the entry point
group ``myst_nb.mime_renderers`` and takes the record instead.  This module imports docutils only,
so that it costs nothing where no page is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes

if TYPE_CHECKING:
    from myst_nb.core.render import MimeData, NbElementRenderer

__all__ = [
    "CLAIM_MIME",
    "FIGURE_MIME",
    "ClaimBox",
    "CompanionRenderer",
    "FigureCard",
    "Illustration",
    "ThemeImage",
    "claim_box",
    "figure_card",
    "theme_image",
]

FIGURE_MIME = "application/vnd.attsvm.figure+json"
CLAIM_MIME = "application/vnd.attsvm.claim+json"

Inline = Callable[[str], Sequence[nodes.Node]]
"""Parses a line of MyST text (maths, citations, roles) into inline nodes."""


class FigureCard(nodes.General, nodes.Element):
    """A published figure with all that belongs under it; holds ``record`` and one figure."""


class Illustration(nodes.figure):
    """A figure shown again on another page; Sphinx numbers plain figures only."""


class ThemeImage(nodes.General, nodes.Element):
    """One picture drawn twice: ``light`` and ``dark`` are paths below the results folder."""


class ClaimBox(nodes.General, nodes.Element):
    """A judged claim; holds ``record`` and one paragraph, the statement."""


def theme_image(record: dict[str, Any]) -> ThemeImage:
    """The picture of a figure record."""
    files = record["files"]
    return ThemeImage(light=files["svg"], dark=files["dark"], alt=record["alt"])


def figure_card(record: dict[str, Any], inline: Inline, *, bare: bool = False) -> FigureCard:
    """Build the node of a figure record.

    Parameters
    ----------
    record : dict
        What ``figures.publish`` wrote.
    inline : callable
        Parser of the caption.
    bare : bool
        For a page other than the figure's own: without number, reference name, ledger, passport
        and verdicts.

    Returns
    -------
    FigureCard
        With a docutils figure inside, so that numbering and cross references work as for any
        other figure.
    """
    image = theme_image(record)
    title = nodes.strong("", "", *inline(record["title"].rstrip(".") + "."))
    caption = nodes.caption("", "", title, nodes.Text(" "), *inline(record["caption"]))
    figure: nodes.figure = (
        Illustration("", image, caption) if bare else nodes.figure("", image, caption)
    )
    if not bare:
        figure["names"].append(f"fig-{record['name']}")
    return FigureCard("", figure, record=record, bare=bare)


def claim_box(record: dict[str, Any], inline: Inline) -> ClaimBox:
    """Build the node of a claim record, with the reference name ``claim-<id>``."""
    statement = nodes.paragraph("", "", *inline(record["statement"]), classes=["claim-statement"])
    return ClaimBox("", statement, record=record, names=[f"claim-{record['id']}"])


class CompanionRenderer:
    """MyST-NB plugin for both records; they win over every other mime type of their output."""

    mime_priority_overrides: ClassVar[Sequence[tuple[str, str, int | None]]] = (
        ("*", FIGURE_MIME, 1),
        ("*", CLAIM_MIME, 1),
    )

    @staticmethod
    def handle_mime(
        renderer: NbElementRenderer, data: MimeData, inline: bool
    ) -> list[nodes.Element] | None:
        """Return the node of a record, or None for any other output."""
        if inline or data.mime_type not in (FIGURE_MIME, CLAIM_MIME):
            return None
        markdown = renderer.renderer

        def parse(text: str) -> Sequence[nodes.Node]:
            holder = nodes.paragraph()
            with markdown.current_node_context(holder):
                markdown.nested_render_text(text, data.line or 0, inline=True)
            return list(holder.children)

        make = figure_card if data.mime_type == FIGURE_MIME else claim_box
        node = make(dict(data.content), parse)
        markdown.document.note_explicit_target(node[0] if make is figure_card else node)
        return [node]
