"""How a judged claim looks on its chapter's page."""

from __future__ import annotations

import re
from typing import Any

from sphinx.writers.html5 import HTML5Translator

from companion.site.mime import ClaimBox
from companion.site.text import anchor, badge, definition_list, formal, measurement, number

SENTENCES = {
    "holds": "The claim holds",
    "holds with a difference": "The claim holds with a difference",
    "artefact of the published protocol": "The published value is an artefact of its protocol",
    "not testable": "The claim is not testable",
    "fails": "The claim fails",
}


def sentence(record: dict[str, Any]) -> str:
    """The verdict with its numbers as one sentence."""
    unit = record.get("unit") or ""
    parts = []
    if record.get("certified") is not None:
        parts.append(f"measured {measurement(record['certified'], unit)}")
    if record.get("as_published") is not None:
        parts.append(f"with the published protocol {measurement(record['as_published'], unit)}")
    if record.get("published") is not None:
        parts.append(f"published {number(record['published'])}{' ' + unit if unit else ''}")
    text = SENTENCES[record["verdict"]] + (f": {', '.join(parts)}" if parts else "")
    holds = record["verdict"] == "holds"  # that the criterion is met is what this means
    return f"{text}." if holds or not record.get("reason") else f"{text}; {record['reason']}."


def verdict_lines(records: list[dict[str, Any]], page: str = "") -> str:
    """One line per claim: badge, and a link to its box on ``page``."""
    if not records:
        return ""
    items = "".join(
        f'<li>{badge(record["verdict"])} <a href="{page}#{anchor(record["id"])}">'
        f"{formal(plain(record['statement']))}</a></li>"
        for record in records
    )
    return f'<ul class="verdict-lines" aria-label="Verdicts of this chapter">{items}</ul>'


def plain(statement: str) -> str:
    """A statement as text: what is written between dollar signs reads well enough as it is."""
    return re.sub(r"\$([^$]*)\$", r"\1", statement).rstrip(".")


def visit_box(translator: HTML5Translator, node: ClaimBox) -> None:
    """Open the box: head with verdict, then the statement (the node's child)."""
    record = node["record"]
    translator.body.append(
        f'<div class="claim-box" id="{anchor(record["id"])}" role="group" aria-label="Claim">'
        f'<div class="claim-head"><span class="claim-kind">Claim</span>'
        f'<span class="claim-place">{formal(record["place"])}</span>'
        f"{badge(record['verdict'])}</div>"
    )


def depart_box(translator: HTML5Translator, node: ClaimBox) -> None:
    """Close the box with numbers, criterion and reason."""
    record = node["record"]
    facts = {"Judged by": formal(record["criterion"])}
    if record.get("why"):
        facts["Threshold"] = formal(record["why"])
    translator.body.append(f'<p class="claim-numbers">{formal(sentence(record))}</p>')
    translator.body.append(definition_list(facts, "claim-facts") + "</div>\n")
