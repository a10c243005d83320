"""How to cite: ``CITATION.cff`` as BibTeX, for this companion and for what it accompanies."""

from __future__ import annotations

import re
import unicodedata
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)
FILE = "CITATION.cff"
KINDS = {"article": "article", "book": "book", "conference-paper": "inproceedings"}
ARXIV = re.compile(r"arXiv:(?P<id>\d{4}\.\d{4,5})", re.IGNORECASE)


def read(folder: Path) -> dict[str, Any] | None:
    """The citation file of a book, or None if it has none."""
    path = folder / FILE
    return yaml.safe_load(path.read_text(encoding="utf8")) if path.is_file() else None


def bibtex(entry: dict[str, Any]) -> str:
    """An entry of a citation file in BibTeX.

    Parameters
    ----------
    entry
        The file itself, or one of its ``references``.

    Raises
    ------
    KeyError
        If it has no title or no authors.
    """
    fields = {"title": f"{{{_protected(entry['title'])}}}"}
    fields["author"] = " and ".join(map(_author, entry["authors"]))
    released = str(entry.get("date-released", ""))
    if year := str(entry.get("year", "") or released[:4]):
        fields["year"] = year
    if "journal" in entry:
        fields["journal"] = _protected(entry["journal"])
    numbers = [ARXIV.search(str(one.get("value", ""))) for one in entry.get("identifiers", ())]
    for number in filter(None, numbers):
        fields.setdefault("journal", f"arXiv preprint arXiv:{number['id']}")
        fields |= {"eprint": number["id"], "archiveprefix": "arXiv"}
    if "doi" in entry:
        fields["doi"] = entry["doi"]
    if "version" in entry:
        fields["note"] = f"Version {entry['version']}"
    if address := entry.get("url") or entry.get("repository-code"):
        fields["url"] = address
    lines = ",\n".join(f"  {name:<13} = {{{value}}}" for name, value in fields.items())
    kind = KINDS.get(entry.get("type", ""), "misc")
    return f"@{kind}{{{_key(entry, fields.get('year', ''))},\n{lines}\n}}\n"


def _author(person: dict[str, str]) -> str:
    if "name" in person:
        return f"{{{_protected(person['name'])}}}"  # braces: a group is not first and last name
    family = " ".join(filter(None, [person.get("name-particle"), person.get("family-names")]))
    return _protected(", ".join(filter(None, [family, person.get("given-names")])))


def _protected(text: str) -> str:
    return re.sub(r"([&%#$_])", r"\\\1", str(text))


def _key(entry: dict[str, Any], year: str) -> str:
    """Name of the first author (not of a group), year, first long word of the title."""
    name = entry["authors"][0].get("family-names", "").split()[-1:]
    long = next((w for w in re.findall(r"\w+", entry["title"]) if len(w) > 3), "")
    plain = unicodedata.normalize("NFKD", f"{''.join(name)}{year}{long}")
    return re.sub(r"[^a-z0-9]", "", plain.lower())


class BibtexDirective(SphinxDirective):
    """``:::{bibtex} software`` or ``:::{bibtex} paper``: an entry to copy."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make the entry; without a citation file there is a warning."""
        which = directives.choice(self.arguments[0], ("software", "paper"))
        content = read(Path(self.env.srcdir))
        if content is None:
            LOGGER.warning("there is no %s to cite from", FILE, location=self.get_location())
            return []
        self.env.note_dependency(FILE)
        entry = content if which == "software" else content["references"][0]
        label = "this companion" if which == "software" else "the paper"
        text = bibtex(entry)
        # The button works once its script is there; until then the text can be selected by hand.
        html = (
            f'<div class="bibtex"><pre tabindex="0" aria-label="BibTeX entry of {label}">'
            f"{escape(text)}</pre>"
            f'<button type="button" class="bibtex-copy" hidden>Copy the entry of {label}</button>'
            '<span class="bibtex-said" role="status"></span></div>'
        )
        return [nodes.raw("", html, format="html")]


def connect(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.add_directive("bibtex", BibtexDirective)
