"""The scorecard: every claim of the registry, what this build measured, and the verdict."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri
from sphinx.writers.html5 import HTML5Translator

from companion.site import results
from companion.site.text import VERDICTS, anchor, badge, formal, measurement, number

LOGGER = logging.getLogger(__name__)
COLUMNS = ("Claim", "Published", "Measured here", "Verdict")


class Scorecard(nodes.General, nodes.Element):
    """A table of claims; ``columns`` are its heads, the children its rows."""


class Row(nodes.General, nodes.Element):
    """A claim: the children are its statement, ``cells`` what stands beside it (label → HTML)."""


class ScorecardDirective(SphinxDirective):
    """``:::{scorecard}``: all claims, made from the registry and the records of this build."""

    def run(self) -> list[nodes.Node]:
        """Collect the rows; a claim without a record is a warning if its chapter is in the book."""
        from attsvm.claims import registry

        records = results.claims(self.env)
        for path in sorted((results.folder(self.env) / "claims").glob("*.json")):
            self.env.note_dependency(str(path))
        judged, absent, untestable = [], [], []
        for claim in registry():
            if claim.id in records:
                judged.append(records[claim.id])
            elif not claim.chapter:
                untestable.append(claim)
            elif f"book/{claim.chapter}" in self.env.found_docs:
                message = "claim %r is registered for chapter %r but was not judged"
                LOGGER.warning(message, claim.id, claim.chapter, location=self.get_location())
            else:
                absent.append(claim)
        for unknown in sorted(records.keys() - {claim.id for claim in registry()}):
            LOGGER.warning("claim %r is not in the registry", unknown, location=self.get_location())
        return self._page(judged, absent, untestable)

    def _page(
        self, judged: list[dict], absent: list[Any], untestable: list[Any]
    ) -> list[nodes.Node]:
        counts = Counter(record["verdict"] for record in judged)
        counts["not testable"] += len(untestable)
        found: list[nodes.Node] = [_summary(counts)]
        table = Scorecard("", *(self._judged(record) for record in judged), columns=COLUMNS)
        found.append(table)
        if untestable:
            rows = (self._plain(claim, "Reason", claim.reason) for claim in untestable)
            found += [nodes.rubric("", "Not testable here")]
            found += [Scorecard("", *rows, columns=("Claim", "Reason"))]
        if absent:
            rows = (self._plain(claim, "Chapter", claim.chapter) for claim in absent)
            found += [nodes.rubric("", "Not in this build")]
            found += [Scorecard("", *rows, columns=("Claim", "Chapter"))]
        return found

    def _judged(self, record: dict[str, Any]) -> Row:
        unit = record.get("unit") or ""
        published = record.get("published")
        measured = formal(measurement(record.get("certified"), unit))
        if record.get("as_published") is not None:
            again = formal(measurement(record["as_published"], unit))
            measured += f'<br><span class="aside">published protocol: {again}</span>'
        cells = {
            "Published": "–"
            if published is None
            else formal(f"{number(published)} {unit}".strip()),
            "Measured here": measured,
            "Verdict": badge(record["verdict"]),
        }
        statement = self.state.inline_text(record["statement"], self.lineno)[0]
        return Row(
            "",
            *statement,
            cells=cells,
            place=record["place"],
            page=f"book/{record['chapter']}",
            claim=record["id"],
        )

    def _plain(self, claim: Any, label: str, text: str) -> Row:
        statement = self.state.inline_text(claim.statement, self.lineno)[0]
        return Row(
            "", *statement, cells={label: formal(text)}, place=claim.place, page="", claim=claim.id
        )


def _summary(counts: Counter[str]) -> nodes.raw:
    """How many claims got which verdict, in words."""
    items = "".join(
        f'<li><span class="count">{counts[verdict]}</span>{badge(verdict)}</li>'
        for verdict in VERDICTS
        if counts[verdict]
    )
    return nodes.raw("", f'<ul class="score-summary">{items}</ul>', format="html")


def visit_scorecard(translator: HTML5Translator, node: Scorecard) -> None:
    """Open the table; the roles survive the style sheet that turns rows into cards on a phone."""
    heads = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in node["columns"])
    translator.body.append(
        '<table class="scorecard" role="table"><thead role="rowgroup">'
        f'<tr role="row">{heads}</tr></thead><tbody role="rowgroup">'
    )


def depart_scorecard(translator: HTML5Translator, node: Scorecard) -> None:
    """Close the table."""
    translator.body.append("</tbody></table>\n")


def visit_row(translator: HTML5Translator, node: Row) -> None:
    """Open a row: the statement is its head."""
    translator.body.append(
        '<tr role="row"><th scope="row" role="rowheader"><span class="statement">'
    )


def depart_row(translator: HTML5Translator, node: Row) -> None:
    """Close a row with its place, the way to its chapter, and the cells."""
    more = f'<span class="place">{formal(node["place"])}'
    if node["page"]:
        builder = translator.builder
        address = relative_uri(
            builder.get_target_uri(builder.current_docname), builder.get_target_uri(node["page"])
        )
        title = builder.env.titles.get(node["page"])
        if title is None or node["claim"] not in builder.env.get_domain("companion").claims:
            LOGGER.warning("claim %r is on no page of the book", node["claim"], location=node)
        name = escape(title.astext() if title is not None else node["page"])
        more += f' · <a href="{address}#{anchor(node["claim"])}">{name}</a>'
    translator.body.append(f"</span>{more}</span></th>")
    for label, cell in node["cells"].items():
        none = ' class="none"' if cell == "–" else ""
        translator.body.append(f'<td role="cell"{none} data-label="{escape(label)}">{cell}</td>')
    translator.body.append("</tr>")
