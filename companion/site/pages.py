"""What concerns whole pages: style sheets, unwanted scripts, descriptions."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from companion.site import maths
from companion.site.mime import ClaimBox, FigureCard

TEMPLATES = Path(__file__).parent / "templates"
REPAIRS = (
    # Settings of live code, which this book does not offer.
    (re.compile(r'<script type="text/x-thebe-config">.*?</script>\s*', re.DOTALL), ""),
    (re.compile(r"<script>kernelName = '[^']*'</script>"), ""),
    # A name that differs from what is shown, and a list whose items are none.
    (re.compile(r' aria-label="Toggle hidden content"'), ""),
    (re.compile(r'<div role="list" class="citation-list">'), '<div class="citation-list">'),
)
"""What other extensions write into a text and should not: (what, instead)."""
ON_DEMAND = {
    "design-tabs": "sd-tab-",
    "togglebutton": 'dropdown admonition|admonition dropdown|class="toggle',
    "toggle": 'dropdown admonition|admonition dropdown|class="toggle',
    "clipboard": 'class="highlight',
    "copybutton": 'class="highlight',
}
"""Part of the name of a script or style sheet → what a page contains that has use for it."""
ASSETS = {
    'class="bibtex"': ("css/cite.css", "cite.js"),
    '<details class="instances"': ("css/instances.css", "instances.js"),
    '<ul class="gallery">': ("css/gallery.css", "gallery.js"),
    # Plain scripts, each building on those before it: browsers refuse modules on a page from disk.
    '<div class="explorer">': (
        "explorer/explorer.css",
        *(f"explorer/{name}.js" for name in ("solver", "descent", "state", "view", "controls")),
    ),
}
"""What a page contains → the style sheets and scripts that it then loads."""
STYLES = ("tokens", "type", "page", "boxes", "code", "figures", "claims", "landing", "print")


def connect(app: Sphinx) -> None:
    """Hook into the build."""
    app.connect("config-inited", _configure)
    app.connect("html-page-context", _load)
    app.connect("html-page-context", _clean, priority=900)
    app.connect("html-page-context", _describe, priority=900)


def _configure(app: Sphinx, config: Config) -> None:
    """Own templates before the theme's, own style sheets after them."""
    config.templates_path.insert(0, str(TEMPLATES))
    for name in STYLES:
        app.add_css_file(f"css/{name}.css", priority=900)
    app.add_js_file("companion.js", loading_method="defer", priority=900)


def _load(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Style sheets and scripts of what only some pages have."""
    for mark, files in ASSETS.items():
        for file in files if mark in context.get("body", "") else ():
            if file.endswith(".css"):
                app.add_css_file(file, priority=950)
            else:
                app.add_js_file(file, loading_method="defer", priority=950)


def _clean(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Take out scripts that a page has no use for, and mend what other extensions wrote.

    Every page declares the constants of live code twice, which is a script error, and
    they would load from elsewhere.
    """

    for wrong, right in REPAIRS:
        context["body"] = wrong.sub(right, context.get("body", ""))
    useless = ["thebe", *(k for k, v in ON_DEMAND.items() if not re.search(v, context["body"]))]

    def wanted(file: Any) -> bool:
        body = getattr(file, "attributes", {}).get("body") or ""
        text = f"{getattr(file, 'filename', None) or ''} {body}".lower()
        return not any(name in text for name in useless)

    context["script_files"] = [file for file in context["script_files"] if wanted(file)]
    context["css_files"] = [file for file in context["css_files"] if wanted(file)]


def _describe(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Description and preview card of a page, from its first paragraph unless it brings its own."""
    if tree is None:
        return
    own = re.search(
        r'<meta[^>]*name="description"[^>]*content="([^"]*)"', context.get("metatags", "")
    )
    text = own[1] if own else escape(_first_sentences(tree, app.config))
    if 'class="katex"' in context.get("title", ""):
        context["title"] = escape(maths.text(app.env.titles[page], app.config))
    if len(parents := context.get("parents", [])) > 0:
        context["title"] += f" · {parents[-1]['title']}"  # titles of pages must differ
    title = re.sub(r"<[^>]*>", "", context.get("title", ""))
    tags = [] if own or not text else [f'<meta name="description" content="{text}">']
    tags += [
        '<meta property="og:type" content="article">',
        f'<meta property="og:title" content="{title}">',
        f'<meta property="og:description" content="{text}">',
        f'<meta property="og:site_name" content="{escape(app.config.html_title)}">',
    ]
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def _first_sentences(tree: nodes.document, config: Config, length: int = 200) -> str:
    """The opening of a page as plain text, cut at a word."""
    for paragraph in tree.findall(nodes.paragraph):
        parent: nodes.Element | None = paragraph.parent
        while parent is not None and not isinstance(
            parent, (FigureCard, ClaimBox, nodes.Admonition)
        ):
            parent = parent.parent
        if parent is None and len(text := " ".join(maths.text(paragraph, config).split())) > 40:
            return text if len(text) <= length else text[:length].rsplit(" ", 1)[0] + " …"
    return ""
