"""The page of notation: each symbol, what it means, and the array that holds it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import ReferenceRole, SphinxDirective

LOGGER = logging.getLogger(__name__)
FILE = Path("book") / "_data" / "notation.toml"
PAGE = "book/notation"
HEADS = ("Symbol", "Meaning", "In code", "Shape")


def read(folder: Path) -> list[dict[str, Any]]:
    """The symbols in order; each has ``id``, ``symbol``, ``meaning``, ``code`` and ``shape``.

    ``group`` names a part of the table, ``see`` a label of the book, ``check`` an expression.
    """
    content = tomllib.loads((folder / FILE).read_text(encoding="utf8"))
    return list(content["symbol"])


def anchor(name: str) -> str:
    """The id of a symbol's row."""
    return nodes.make_id(f"notation-{name}")


def place(env: BuildEnvironment, name: str) -> tuple[str, str] | None:
    """Page and id of a symbol, or None (a warning) if there is no such symbol."""
    path = Path(env.srcdir) / FILE
    known = path.is_file() and any(row["id"] == name for row in read(Path(env.srcdir)))
    return (PAGE, anchor(name)) if known and PAGE in env.found_docs else None


def _breakable(literal: nodes.literal) -> nodes.literal:
    """Code that may end a line behind an opening bracket or a point, not within a name."""
    pieces = re.split(r"(?<=[(.])(?=\w)", literal.astext())
    broken = nodes.literal("", pieces[0], classes=literal["classes"])
    for piece in pieces[1:]:
        broken += [nodes.raw("", "<wbr>", format="html"), nodes.Text(piece)]
    return broken


class NotationRole(ReferenceRole):
    """``{notation}`words <id>```: a link to a symbol, whose meaning shows on hovering."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Leave a reference that is resolved when all pages are read."""
        reference = addnodes.pending_xref(
            self.rawtext, nodes.inline(self.rawtext, self.title),
            refdomain="companion", reftype="notation", reftarget=self.target,
            refdoc=self.env.docname, refexplicit=self.has_explicit_title, refwarn=True,
        )  # fmt: skip
        self.set_source_info(reference)
        return [reference], []


class NotationDirective(SphinxDirective):
    """``:::{notation-table}``: all symbols, a table for each group."""

    def run(self) -> list[nodes.Node]:
        """Make the tables."""
        self.env.note_dependency(str(FILE))
        groups: dict[str, list[dict[str, Any]]] = {}
        for row in read(Path(self.env.srcdir)):
            groups.setdefault(row["group"], []).append(row)
        found: list[nodes.Node] = []
        for group, rows in groups.items():
            section = nodes.section("", nodes.title(group, group), ids=[nodes.make_id(group)])
            section += self._table(rows)
            found.append(section)
        return found

    def _inline(self, text: str) -> list[nodes.Node]:
        return self.state.inline_text(text, self.lineno)[0]

    def _table(self, rows: list[dict[str, Any]]) -> nodes.table:
        group = nodes.tgroup(cols=len(HEADS))
        group += [nodes.colspec(colwidth=width) for width in (14, 46, 24, 16)]
        head = nodes.row()
        for text in HEADS:
            head += nodes.entry("", nodes.paragraph("", text))
        group += nodes.thead("", head)
        body = nodes.tbody()
        for row in rows:
            line = nodes.row(ids=[anchor(row["id"])])
            see = row.get("see", "")  # an equation's number brings its own brackets
            meaning = f"{row['meaning']} {see if see.startswith('{eq}') or not see else f'({see})'}"
            code = ", ".join(f"`{name}`" for name in row.get("code", ()))
            for text in (row["symbol"], meaning, code, row.get("shape", "")):
                cell = nodes.paragraph("", "", *self._inline(text))
                for literal in list(cell.findall(nodes.literal)):
                    literal.replace_self(_breakable(literal))
                line += nodes.entry("", cell)
            body += line
        group += body
        return nodes.table("", group, classes=["notation"])


def connect(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.add_role("notation", NotationRole())
    app.add_directive("notation-table", NotationDirective)
