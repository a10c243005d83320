"""The gallery: every figure of the book with its title, section and verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from html import escape
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from attsvm.claims import plain
from companion.site import figures, results
from companion.site.maths import prose
from companion.site.mime import theme_image
from companion.site.text import VERDICTS, badge

NO_CLAIM = "no claim"
"""What stands for the verdict of a figure whose chapter judges no claim."""


class Gallery(nodes.General, nodes.Element):
    """Stands where the gallery goes; it is filled when all pages are known."""


class GalleryDirective(SphinxDirective):
    """``:::{gallery}``: all figures that chapters of the book published."""

    def run(self) -> list[nodes.Node]:
        """Note what the page depends on."""
        for folder in ("figures", "claims"):
            for path in results.paths(self.env, folder):
                self.env.note_dependency(str(path))
        return [Gallery()]


def visit_gallery(translator: HTML5Translator, node: Gallery) -> None:
    """Write the form, which needs the script and is hidden without it, and all figures."""
    env = translator.builder.env
    by_chapter: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for record in results.claims(env).values():
        by_chapter[record["chapter"]][record["verdict"]] += 1
    sections: dict[str, str] = {}
    items = []
    for record in results.figures(env):
        if f"book/{record['chapter']}" not in env.found_docs:
            continue
        folder = record["chapter"].split("/")[0]
        title = env.titles.get(f"book/{folder}/index")
        sections[folder] = title.astext() if title is not None else folder
        items.append((record, folder, by_chapter[record["chapter"]]))
    found = [v for v in VERDICTS if any(v in verdicts for *_, verdicts in items)]
    if any(not verdicts for *_, verdicts in items):
        found.append(NO_CLAIM)
    translator.body.append(_form(sections, found, len(items)))
    translator.body.append('<ul class="gallery">')
    for record, folder, verdicts in items:
        _item(translator, record, folder, sections[folder], verdicts)
    translator.body.append(
        '</ul><p class="gallery-nothing" hidden>No figure fits. '
        '<button type="button">Show all figures</button></p>\n'
    )
    raise nodes.SkipNode


def _form(sections: dict[str, str], verdicts: list[str], count: int) -> str:
    def options(pairs: dict[str, str]) -> str:
        return "".join(
            f'<option value="{escape(value)}">{escape(text)}</option>'
            for value, text in {"": "All", **pairs}.items()
        )

    judged = options(dict(zip(verdicts, verdicts, strict=True)))
    fields = {
        "section": f"<select {{}}>{options(sections)}</select>",
        "verdict": f"<select {{}}>{judged}</select>",
        "words": '<input type="search" autocomplete="off" spellcheck="false" {}>',
    }
    parts = (
        f'<div><label for="gallery-{name}">{name.title()}</label>'
        + field.format(f'id="gallery-{name}" name="{name}"')
        + "</div>"
        for name, field in fields.items()
    )
    return (
        '<form class="gallery-form" role="search" aria-label="Figures" hidden>'
        f'{"".join(parts)}<output role="status">{count} figures</output></form>'
    )


def _item(
    translator: HTML5Translator,
    record: dict[str, Any],
    folder: str,
    section: str,
    verdicts: dict[str, int],
) -> None:
    """One figure: the picture, a heading that links to it in its chapter, and its verdicts."""
    builder = translator.builder
    page = f"book/{record['chapter']}"
    address = builder.get_relative_uri(builder.current_docname, page)
    title = builder.env.titles.get(page)
    chapter = title.astext() if title is not None else record["chapter"]
    words = [plain(record["title"]), plain(record["caption"]), record["alt"], section, chapter]
    names = "|".join(verdicts or [NO_CLAIM])
    translator.body.append(
        f'<li class="figure-card" data-section="{escape(folder)}" data-verdicts="{escape(names)}"'
        f' data-words="{escape(" ".join(words).lower())}">'
    )
    figures.visit_image(translator, theme_image(record))
    marks = "".join(
        f"<li>{badge(verdict)}{f' <span>× {count}</span>' if count > 1 else ''}</li>"
        for verdict in VERDICTS
        if (count := verdicts.get(verdict, 0))
    )
    marks = marks or f'<li class="gallery-no-claim">{NO_CLAIM}</li>'
    translator.body.append(
        f'<p class="gallery-title"><a href="{escape(address)}#fig-{record["name"]}">'
        f"{prose(record['title'], builder.config)}</a></p>"
        f'<p class="gallery-place">{escape(section)} · {escape(chapter)}</p>'
        f'<ul class="gallery-verdicts" aria-label="Verdicts of its chapter">{marks}</ul></li>'
    )
