"""The figure card: picture, caption, verdicts, ledger, passport, downloads, and its origin."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from sphinx.config import Config
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri
from sphinx.writers.html5 import HTML5Translator

from companion.site import results
from companion.site.claims import verdict_lines
from companion.site.maths import prose
from companion.site.mime import FigureCard, Illustration, ThemeImage, figure_card
from companion.site.text import definition_list, number

LOGGER = logging.getLogger(__name__)
WIDE = 500
"""Points from which on a figure scrolls on a phone: shrunk to its width nobody could read it."""
LONGEST_LEDGER = 12
"""Lines that a ledger may have and be seen without being asked for."""
DOWNLOADS = ("svg", "pdf", "png", "csv")


class PublishedFigure(SphinxDirective):
    """``:::{published-figure} name``: shows a figure that a chapter made on another page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Read the record; a figure that no chapter published is a warning."""
        name = self.arguments[0]
        record = results.figure(self.env, name)
        if record is None:
            LOGGER.warning("no chapter published a figure %r", name, location=self.get_location())
            return []
        self.env.note_dependency(str(results.folder(self.env) / "figures" / f"{name}.json"))

        def inline(text: str) -> list[nodes.Node]:
            return self.state.inline_text(text, self.lineno)[0]

        return [figure_card(record, inline, bare=True)]


class CellAnchors(SphinxTransform):
    """Gives the cell that made a figure an anchor, and checks that the figure is complete."""

    default_priority = 700

    def apply(self, **_: Any) -> None:
        """Run over the page that was just read."""
        for card in self.document.findall(FigureCard):
            record = card["record"]
            for name in results.missing_files(self.env, record):
                LOGGER.warning("figure %r lacks its file %s", record["name"], name, location=card)
            if not record["alt"].strip():
                LOGGER.warning("figure %r has no alt text", record["name"], location=card)
            for row in record["ledger"]:
                if sum(row["fates"].values()) != row["drawn"]:
                    message = "ledger of figure %r does not account for every draw of %r"
                    LOGGER.warning(message, record["name"], row["label"], location=card)
            cell = card.parent
            while cell is not None and cell.get("nb_element") != "cell_code":
                cell = cell.parent
            if cell is not None:
                cell["ids"].append(f"cell-{record['name']}")


def _address(translator: HTML5Translator, path: str) -> str:
    """Address of a file of the site, relative to the page being written."""
    builder = translator.builder
    return relative_uri(builder.get_target_uri(builder.current_docname), path)


def _size(translator: HTML5Translator, path: str) -> tuple[float, float] | None:
    """Width and height of an SVG, so that the page does not jump while it loads."""
    file = results.folder(translator.builder.env) / path
    head = file.read_text(encoding="utf8")[:2000] if file.is_file() else ""
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    return (float(box[1]), float(box[2])) if box else None


def visit_image(translator: HTML5Translator, node: ThemeImage) -> None:
    """Both drawings; the style sheet shows the one of the current theme."""
    size = _size(translator, node["light"])
    wide = " wide" if size and size[0] > WIDE else ""
    numbers = f' width="{size[0]:.0f}" height="{size[1]:.0f}"' if size else ""
    translator.body.append(f'<div class="figure-frame scrolls{wide}">')
    for theme in ("light", "dark"):
        address = _address(translator, f"{results.STATIC}/{node[theme]}")
        translator.body.append(
            f'<img class="figure-image dark-light on-{theme}" src="{escape(address)}"'
            f' alt="{escape(node["alt"])}"'
            f'{numbers} loading="lazy" decoding="async">'
        )
    translator.body.append("</div>")


def visit_illustration(translator: HTML5Translator, node: Illustration) -> None:
    """Looks like any figure."""
    translator.visit_figure(node)


def depart_illustration(translator: HTML5Translator, node: Illustration) -> None:
    """Looks like any figure."""
    translator.depart_figure(node)


def visit_card(translator: HTML5Translator, node: FigureCard) -> None:
    """Open the card."""
    translator.body.append('<div class="figure-card">')


def depart_card(translator: HTML5Translator, node: FigureCard) -> None:
    """Close the card with what belongs under the figure."""
    record, builder = node["record"], translator.builder
    page = f"book/{record['chapter']}"
    here = page == builder.current_docname
    to_page = "" if here else builder.get_relative_uri(builder.current_docname, page)
    parts = []
    if not node["bare"]:
        judged = results.claims(builder.env)
        in_order = results.places(builder.env)
        chapter = [judged[key] for key in in_order if in_order[key][0] == page and key in judged]
        parts.append(_instances(translator, record))
        parts.append(verdict_lines(chapter, to_page, builder.config))
        parts.append(ledger_table(record["ledger"], builder.config))
        parts.append(passport(record["passport"], builder.config))
    parts.append(_links(translator, record, to_page, here))
    translator.body.append("".join(parts) + "</div>\n")


def _instances(translator: HTML5Translator, record: dict[str, Any]) -> str:
    """A place for single instances; a script fills it, and loads them, when it is opened."""
    if "instances" not in record["files"]:
        return ""
    data = _address(translator, f"{results.STATIC}/{record['files']['instances']}")
    return (
        f'<details class="instances" data-figure="{escape(record["name"])}"'
        f' data-source="{escape(data)}"><summary>Look at single instances</summary>'
        '<p class="instances-still">The instances behind this figure are drawn by a script, which'
        " does not run here.</p></details>"
    )


def ledger_table(ledger: list[dict[str, Any]], config: Config) -> str:
    """What became of every draw: one row per experiment, one column per fate that occurs.

    A long ledger is folded away behind its sums.
    """
    if not ledger:
        return ""
    fates = list(dict.fromkeys(fate for row in ledger for fate in row["fates"]))
    fates.sort(key=lambda fate: fate != "kept")  # stable: what was kept first, the rest as reported
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ["drawn", *fates])
    rows = ""
    for row in ledger:
        counts = [row["drawn"], *(row["fates"].get(fate, 0) for fate in fates)]
        cells = "".join(f"<td>{count}</td>" for count in counts)
        rows += f'<tr><th scope="row">{prose(row["label"], config)}</th>{cells}</tr>'
    title = "What became of every draw"
    table = (
        '<div class="ledger scrolls" tabindex="0" role="region" aria-label="Ledger of draws">'
        f"<table><caption>{title}</caption>"
        f'<thead><tr><th scope="col">experiment</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    if len(ledger) <= LONGEST_LEDGER:
        return table
    sums = [f"{sum(row['drawn'] for row in ledger)} drawn"]
    sums += [f"{sum(row['fates'].get(fate, 0) for row in ledger)} {fate}" for fate in fates]
    summary = f"<summary>{title}: {escape(', '.join(sums))}"
    summary += '<span class="screen-only">; line by line</span></summary>'
    return f'<details class="ledger-fold">{summary}{table}</details>'


def _value(value: Any, config: Config) -> str:
    """A passport entry as HTML."""
    if isinstance(value, dict):
        entries = {str(key): _value(entry, config) for key, entry in value.items()}
        return definition_list(entries, "nested")
    if isinstance(value, (list, tuple)):
        return ", ".join(_value(entry, config) for entry in value)
    return prose(number(value), config) if isinstance(value, float) else escape(str(value))


def passport(entries: dict[str, Any], config: Config) -> str:
    """How the figure came about, folded away."""
    filled = {key: value for key, value in entries.items() if value not in ({}, "", None)}
    listed = definition_list(
        {key: _value(value, config) for key, value in filled.items()}, "passport-entries"
    )
    summary = "<summary>Passport: how this figure was made</summary>"
    return f'<details class="passport">{summary}{listed}</details>'


def _links(translator: HTML5Translator, record: dict[str, Any], to_page: str, here: bool) -> str:
    """Downloads, and the way to the cell that made the figure."""
    items = ""
    for kind in DOWNLOADS:
        address = _address(translator, f"{results.STATIC}/{record['files'][kind]}")
        label = "Data (CSV)" if kind == "csv" else kind.upper()
        items += f'<li><a href="{escape(address)}" download>{label}</a></li>'
    anchor = f"{to_page}#cell-{record['name']}"
    made = "the cell that made it" if here else "the chapter that made it"
    return (
        f'<div class="figure-links"><ul aria-label="Downloads of this figure">{items}</ul>'
        f'<a class="figure-origin" href="{escape(anchor)}">{made}</a></div>'
    )
