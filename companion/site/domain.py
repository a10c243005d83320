"""Remembers which claim and which figure stands on which page, and links to them."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.nodes import Node
from sphinx import addnodes
from sphinx.builders import Builder
from sphinx.domains import Domain
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import ReferenceRole
from sphinx.util.nodes import make_refnode

from companion.site import codeindex, notation
from companion.site.mime import ClaimBox
from companion.site.text import anchor, words

LOGGER = logging.getLogger(__name__)


class ClaimRole(ReferenceRole):
    """``{claim}`id``` or ``{claim}`words <id>```: a link to the box of a judged claim."""

    def run(self) -> tuple[list[Node], list[nodes.system_message]]:
        """Leave a reference that is resolved when all pages are read."""
        text = self.title if self.has_explicit_title else words(self.target)
        reference = addnodes.pending_xref(
            self.rawtext,
            nodes.inline(self.rawtext, text, classes=["xref"]),
            refdomain=CompanionDomain.name,
            reftype="claim",
            reftarget=self.target,
            refdoc=self.env.docname,
            refexplicit=self.has_explicit_title,
            refwarn=True,
        )
        self.set_source_info(reference)
        return [reference], []


class CompanionDomain(Domain):
    """The book's own index: claim id → page and verdict."""

    name = "companion"
    label = "Companion"
    initial_data: dict[str, Any] = {"claims": {}}  # noqa: RUF012 – as the base class has it
    data_version = 1

    @property
    def claims(self) -> dict[str, tuple[str, str]]:
        """Claim id → (page, verdict)."""
        return self.data["claims"]

    def process_doc(self, env: BuildEnvironment, docname: str, document: nodes.document) -> None:
        """Note the claims of a page that was just read."""
        for box in document.findall(ClaimBox):
            claim, chapter = box["record"]["id"], box["record"]["chapter"]
            if claim in self.claims:
                page = self.claims[claim][0]
                LOGGER.warning("claim %r was already judged on page %r", claim, page, location=box)
            if f"book/{chapter}" != docname:
                LOGGER.warning(
                    "claim %r says it belongs to chapter %r", claim, chapter, location=box
                )
            self.claims[claim] = (docname, box["record"]["verdict"])

    def clear_doc(self, docname: str) -> None:
        """Forget a page."""
        self.data["claims"] = {
            key: entry for key, entry in self.claims.items() if entry[0] != docname
        }

    def merge_domaindata(self, docnames: Any, otherdata: dict[str, Any]) -> None:
        """Take over what another reading process noted."""
        self.claims.update({k: v for k, v in otherdata["claims"].items() if v[0] in docnames})

    def resolve_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        typ: str,
        target: str,
        node: addnodes.pending_xref,
        contnode: nodes.Element,
    ) -> nodes.reference | None:
        """Link to the claim's box, or None (a warning) if no page judged it.

        A statement leads to its row in the index, a symbol to its row on the page of notation.
        """
        if typ == "statement":
            return make_refnode(
                builder, fromdocname, codeindex.PAGE, codeindex.anchor(target), contnode
            )
        if typ == "notation":
            if (place := notation.place(env, target)) is None:
                return None
            return make_refnode(builder, fromdocname, *place, contnode)
        if target not in self.claims:
            return None
        page, verdict = self.claims[target]
        return make_refnode(
            builder, fromdocname, page, anchor(target), contnode, f"Claim: {verdict}"
        )

    def resolve_any_xref(self, *arguments: Any) -> list[tuple[str, nodes.reference]]:
        """Claims are only reached by their own role."""
        return []
