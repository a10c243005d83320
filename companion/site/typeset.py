"""Small repairs of the page tree before it is written."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_proof.nodes import proof_node

from companion.site.maths import CLOSING


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


NUMBERED = re.compile(
    r"(Theorem|Definition|Lemma|Proposition|Corollary|Conjecture|Remark|Observation) (\d+)"
)


class NumberedReferences(SphinxPostTransform):
    """A line does not end between the name of a statement and its number."""

    default_priority = 900  # references are resolved
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Put a space there at which no line breaks."""
        for reference in self.document.findall(nodes.reference):
            for text in list(reference.findall(nodes.Text)):
                if NUMBERED.fullmatch(text.astext()):
                    text.parent.replace(text, nodes.Text(text.astext().replace(" ", "\xa0")))


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
