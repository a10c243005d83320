"""How a judged claim looks: as a box in its chapter, as a line, and as a row of the scorecard."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

from docutils import nodes
from sphinx.config import Config
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from attsvm import claims as registered
from companion.site import results
from companion.site.maths import prose
from companion.site.mime import ClaimBox
from companion.site.text import VERDICTS, anchor, badge, definition_list, measurement, number

LOGGER = logging.getLogger(__name__)
SENTENCES = {
    "holds": "The claim holds",
    "holds with a difference": "The claim holds with a difference",
    "artefact of the published protocol": "The published value is an artefact of its protocol",
    "not testable": "The claim is not testable",
    "fails": "The claim fails",
}
COLUMNS = ("Claim", "Published", "Measured here", "Verdict")


def sentence(record: dict[str, Any]) -> str:
    """The verdict with its numbers as one sentence."""
    parts = []
    if record.get("certified") is not None:
        parts.append(f"measured {measurement(record['certified'])}")
    if record.get("as_published") is not None:
        parts.append(f"with the published protocol {measurement(record['as_published'])}")
    if record.get("published") is not None:
        parts.append(f"published {number(record['published'])}")
    text = SENTENCES[record["verdict"]] + (f": {', '.join(parts)}" if parts else "")
    holds = record["verdict"] == "holds"  # that the criterion is met is what this means
    return f"{text}." if holds or not record.get("reason") else f"{text}; {record['reason']}."


def line(record: dict[str, Any], address: str, config: Config) -> str:
    """A claim in a list: badge, and its statement as a link to its box."""
    statement = prose(record["statement"].rstrip("."), config)
    return f'{badge(record["verdict"])} <a href="{escape(address)}">{statement}</a>'


def verdict_lines(records: list[dict[str, Any]], page: str, config: Config) -> str:
    """One line per claim that ``page`` judges."""
    if not records:
        return ""
    lines = (line(record, f"{page}#{anchor(record['id'])}", config) for record in records)
    items = "".join(f"<li>{one}</li>" for one in lines)
    return f'<ul class="verdict-lines" aria-label="Verdicts of this chapter">{items}</ul>'


def visit_box(translator: HTML5Translator, node: ClaimBox) -> None:
    """Open the box: head with verdict, then the statement (the node's child)."""
    record = node["record"]
    translator.body.append(
        f'<div class="claim-box" id="{anchor(record["id"])}" role="group" aria-label="Claim">'
        f'<div class="claim-head"><span class="claim-kind">Claim</span>'
        f'<span class="claim-place">{prose(record["place"], translator.config)}</span>'
        f"{badge(record['verdict'])}</div>"
    )


def depart_box(translator: HTML5Translator, node: ClaimBox) -> None:
    """Close the box with numbers, criterion and reason."""
    record = node["record"]
    facts = {"Judged by": record["criterion"], "Threshold": record.get("why")}
    shown = {term: prose(fact, translator.config) for term, fact in facts.items() if fact}
    numbers = prose(sentence(record), translator.config)
    translator.body.append(
        f'<p class="claim-numbers">{numbers}</p>{definition_list(shown, "claim-facts")}</div>\n'
    )


class Scorecard(nodes.General, nodes.Element):
    """A table of claims; ``columns`` are its heads, the children its rows."""


class Row(nodes.General, nodes.Element):
    """A claim: the children are its statement, ``cells`` what stands beside it (label → HTML)."""


class ScorecardDirective(SphinxDirective):
    """``:::{scorecard}``: all claims, made from the registry and the records of this build."""

    def run(self) -> list[nodes.Node]:
        """Collect the rows; a claim without a record is a warning if its chapter is in the book."""
        registry = registered.registry()
        records = results.claims(self.env)
        for path in results.paths(self.env, "claims"):
            self.env.note_dependency(str(path))
        judged, absent, untestable = [], [], []
        for claim in registry:
            if claim.id in records:
                judged.append(self._judged(records[claim.id]))
            elif not claim.chapter:
                untestable.append(self._plain(claim, "Reason", claim.reason))
            elif f"book/{claim.chapter}" in self.env.found_docs:
                message = "claim %r is registered for chapter %r but was not judged"
                LOGGER.warning(message, claim.id, claim.chapter, location=self.get_location())
            else:
                absent.append(self._plain(claim, "Chapter", claim.chapter))
        for unknown in sorted(records.keys() - {claim.id for claim in registry}):
            LOGGER.warning("claim %r is not in the registry", unknown, location=self.get_location())
        counts = Counter(row["verdict"] for row in judged)
        counts["not testable"] += len(untestable)
        found: list[nodes.Node] = [_summary(counts), Scorecard("", *judged, columns=COLUMNS)]
        for title, column, rows in (
            ("Not testable here", "Reason", untestable),
            ("Not in this build", "Chapter", absent),
        ):
            if rows:
                found += [nodes.rubric("", title), Scorecard("", *rows, columns=("Claim", column))]
        return found

    def _judged(self, record: dict[str, Any]) -> Row:
        measured = prose(measurement(record.get("certified")), self.config)
        if record.get("as_published") is not None:
            again = prose(measurement(record["as_published"]), self.config)
            measured += f'<br><span class="aside">published protocol: {again}</span>'
        published = record.get("published")
        cells = {
            "Published": "–" if published is None else prose(number(published), self.config),
            "Measured here": measured,
            "Verdict": badge(record["verdict"]),
        }
        return self._row(record, cells, page=f"book/{record['chapter']}", verdict=record["verdict"])

    def _plain(self, claim: registered.Claim, label: str, text: str) -> Row:
        return self._row(vars(claim), {label: prose(text, self.config)}, page="")

    def _row(self, claim: dict[str, Any], cells: dict[str, str], **more: str) -> Row:
        statement = self.state.inline_text(claim["statement"], self.lineno)[0]
        return Row("", *statement, cells=cells, place=claim["place"], claim=claim["id"], **more)


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
    more = f'<span class="place">{prose(node["place"], translator.config)}'
    if page := node["page"]:
        builder = translator.builder
        title = builder.env.titles.get(page)
        if title is None or node["claim"] not in results.places(builder.env):
            LOGGER.warning("claim %r is on no page of the book", node["claim"], location=node)
        name = escape(title.astext() if title is not None else page)
        address = builder.get_relative_uri(builder.current_docname, page)
        more += f' · <a href="{address}#{anchor(node["claim"])}">{name}</a>'
    translator.body.append(f"</span>{more}</span></th>")
    for label, cell in node["cells"].items():
        none = ' class="none"' if cell == "–" else ""
        translator.body.append(f'<td role="cell"{none} data-label="{escape(label)}">{cell}</td>')
    translator.body.append("</tr>")
