"""Small repairs of the page tree before it is written."""

from __future__ import annotations

from typing import Any

from attsvm.book.mime import ClaimBox, FigureCard
from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_proof.nodes import proof_node

from companion.scorecard import Row
from companion.text import formal

CLOSING = ".,;:!?)]’”-–"


class KeepPunctuation(SphinxPostTransform):
    """Ties a punctuation mark to the formula before it: a line may break behind any formula."""

    default_priority = 900
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Move the marks that follow a formula into it, as its ``mark``."""
        for formula in list(self.document.findall(nodes.math)):
            follower = formula.next_node(descend=False, siblings=True)
            if not isinstance(follower, nodes.Text) or follower.parent is not formula.parent:
                continue
            text = follower.astext()
            rest = text.lstrip(CLOSING)
            if rest != text:
                formula["mark"] = text[: len(text) - len(rest)]
                follower.parent.replace(follower, nodes.Text(rest))


class Formulas(SphinxPostTransform):
    """Claims and captions write formulas in plain characters: here they get their looks."""

    default_priority = 910  # marks have been tied to drawn formulas
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Replace what is no plain text, except in code, links, and drawn formulas."""
        for holder in list(self.document.findall(self._has_formulas)):
            for text in list(holder.findall(nodes.Text)):
                parent = text.parent
                if isinstance(parent, (nodes.math, nodes.literal, nodes.raw, nodes.reference)):
                    continue
                parent.replace(text, nodes.raw("", formal(text.astext()), format="html"))

    @staticmethod
    def _has_formulas(node: nodes.Node) -> bool:
        if isinstance(node, nodes.caption):
            return isinstance(node.parent.parent, FigureCard)
        return isinstance(node, (ClaimBox, Row))


class UniqueStatementIds(SphinxTransform):
    """Statements wrap their text in a section that always has the same id; ids must be unique."""

    default_priority = 700

    def apply(self, **_: Any) -> None:
        """Name the inner section after its statement, and count the proofs of a page."""
        proofs = [proof[0] for proof in self.document.findall(proof_node)]
        for count, proof in enumerate(proofs, start=1):
            proof["ids"] = [f"proof-{count}"]
        for section in self.document.findall(nodes.section):
            if "proof-content" in section["ids"] and section.parent["ids"]:
                section["ids"] = [f"{section.parent['ids'][0]}-content"]
