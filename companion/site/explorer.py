"""The explorer: a place for the scripts of "Play with it", and what stands there without them."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

SCRIPTS = ("solver", "descent", "state", "view", "controls")
"""In this order: each builds on those before it.  Plain scripts, because browsers refuse modules
on a page opened from disk."""


class Explorer(nodes.General, nodes.Element):
    """Holds what is shown until, and unless, the scripts take over."""


class ExplorerDirective(SphinxDirective):
    """``:::{explorer}``: the explorer; the content stands in for it where scripts do not run."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Parse the content."""
        self.assert_has_content()
        node = Explorer()
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def visit_explorer(translator: HTML5Translator, node: Explorer) -> None:
    """Open the place that the scripts fill."""
    translator.body.append('<div class="explorer">')


def depart_explorer(translator: HTML5Translator, node: Explorer) -> None:
    """Close it."""
    translator.body.append("</div>\n")


def load(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Scripts and style sheet, on pages with an explorer only."""
    if tree is None or next(tree.findall(Explorer), None) is None:
        return
    app.add_css_file("explorer/explorer.css", priority=950)
    for name in SCRIPTS:
        app.add_js_file(f"explorer/{name}.js", loading_method="defer", priority=950)
