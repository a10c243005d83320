"""The explorer: a place for the scripts of "Play with it", and what stands there without them."""

from __future__ import annotations

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class ExplorerDirective(SphinxDirective):
    """``:::{explorer}``: the explorer; the content stands in for it where scripts do not run."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Parse the content."""
        self.assert_has_content()
        inside = self.parse_content_to_nodes()
        tags = ('<div class="explorer">', "</div>\n")
        opening, end = (nodes.raw("", tag, format="html") for tag in tags)
        return [opening, *inside, end]
