"""Preview pictures for those who share a page, and the page for addresses that lead nowhere."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sphinx.application import Sphinx

from companion.site import results

COVER = "token-trajectories"
"""The figure of the landing page stands for pages that have none of their own."""
TEMPLATE = Path(__file__).parent / "templates" / "standalone" / "404.html"


def connect(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.connect("html-page-context", _picture, priority=950)
    app.connect("build-finished", _not_found)


def site(app: Sphinx) -> str:
    """Address of the published site with a slash at its end, or nothing if none is configured."""
    base = str(app.config.html_baseurl or "")
    return f"{base.rstrip('/')}/" if base else ""


def main_figure(app: Sphinx, page: str) -> dict[str, Any] | None:
    """The record of a page's main figure: its own, its section's first, or the landing page's."""
    records = results.figures(app.env)
    folder = page.rpartition("/")[0]
    for fits in (
        lambda record: f"book/{record['chapter']}" == page,
        lambda record: f"book/{record['chapter']}".rpartition("/")[0] == folder,
        lambda record: record["name"] == COVER,
    ):
        if found := next(filter(fits, records), None):
            return found
    return None


def _picture(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Name a picture by its full address; a preview can use no other."""
    if tree is None or not (base := site(app)):
        return
    tags = [f'<meta property="og:url" content="{escape(base + app.builder.get_target_uri(page))}">']
    if record := main_figure(app, page):
        picture = f"{base}{results.STATIC}/{record['files']['png']}"
        tags += [
            f'<meta property="og:image" content="{escape(picture)}">',
            f'<meta property="og:image:alt" content="{escape(record["alt"])}">',
            '<meta name="twitter:card" content="summary_large_image">',
        ]
    context["metatags"] = context.get("metatags", "") + "\n" + "\n".join(tags)


def _not_found(app: Sphinx, exception: Exception | None) -> None:
    """Write the page; it may be shown at any depth, so it brings all it needs."""
    if exception is not None or app.builder.name != "html":
        return
    text = TEMPLATE.read_text(encoding="utf8")
    base = urlsplit(site(app)).path or "/"
    home = app.builder.get_target_uri(app.config.root_doc)
    landing = "book/intro" if "book/intro" in app.env.found_docs else app.config.root_doc
    values = {"BASE": base, "HOME": app.builder.get_target_uri(landing) or home}
    for name, value in values.items():
        text = text.replace(f"%{name}%", escape(value))
    (Path(app.outdir) / "404.html").write_text(text, encoding="utf8")
