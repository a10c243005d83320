"""What concerns whole pages: unwanted scripts, descriptions, and the size of the site."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from attsvm.book.mime import ClaimBox, FigureCard
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from companion import maths

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
STYLES = ("tokens", "type", "page", "boxes", "code", "figures", "claims", "landing", "print")


def connect(app: Sphinx) -> None:
    """Hook into the build."""
    app.connect("config-inited", _configure)
    app.connect("html-page-context", _clean, priority=900)
    app.connect("html-page-context", _describe, priority=900)
    app.connect("build-finished", _slim)


def _configure(app: Sphinx, config: Config) -> None:
    """Own templates before the theme's, own style sheets after them."""
    config.templates_path.insert(0, str(TEMPLATES))
    for name in STYLES:
        app.add_css_file(f"css/{name}.css", priority=900)
    app.add_js_file("companion.js", loading_method="defer", priority=900)


def _clean(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Take out the live-code scripts, and mend what other extensions wrote.

    Every page declares the constants of live code twice, which is a script error, and
    they would load from elsewhere.
    """

    def is_thebe(script: Any) -> bool:
        body = getattr(script, "attributes", {}).get("body") or ""
        return "thebe" in f"{script}{getattr(script, 'filename', '')}{body}".lower()

    context["script_files"] = [item for item in context["script_files"] if not is_thebe(item)]
    for wrong, right in REPAIRS:
        context["body"] = wrong.sub(right, context.get("body", ""))
    context["css_files"] = [item for item in context["css_files"] if not is_thebe(item)]


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


def _slim(app: Sphinx, exception: Exception | None) -> None:
    """Remove what the themes copy along and no page asks for."""
    if exception is not None or app.builder.name != "html":
        return
    static = Path(app.outdir) / "_static"
    unused = [
        *static.rglob("*.map"),
        *static.glob("vendor/fontawesome/*/js/*"),
        *static.glob("vendor/fontawesome/*/webfonts/*.ttf"),
        *static.glob("*webpack-macros.html"),
        *static.glob("locales/**/*.po"),
        *static.glob("locales/**/*.mo"),
        static / "sphinx-thebe.js",
        static / "sphinx-thebe.css",
    ]
    for path in unused:
        path.unlink(missing_ok=True)
