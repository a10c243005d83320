"""One long page out of all pages of the site, to be printed.

The parts are the very articles that readers see: anchors get the name of their page in front, links
between pages become links inside the document, and what only makes sense on a screen goes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from companion.errors import BuildError

if TYPE_CHECKING:
    from bs4 import Tag

__all__ = ["Part", "outline", "stitch"]

SCREEN_ONLY = (
    "script, .on-dark, .headerlink, .copybtn, .figure-links, .passport, .screen-only, "
    "details.hide, button, .katex-mathml, .gallery-filter, noscript, .toctree-wrapper"
)
"""What a printed page leaves out: among it folded code and passports, which the site has."""
LEFT_OUT = ("book/gallery", "book/api", "book/404")
"""Pages that repeat the book in another order, or that are made for looking things up."""


@dataclass(frozen=True)
class Part:
    """A page of the book: its name without suffix, its depth in the contents, its title."""

    page: str
    depth: int
    title: str = ""

    @property
    def anchor(self) -> str:
        """Where the part begins in the long page."""
        return f"p-{self.page.replace('/', '-')}"


def outline(toc: dict[str, Any]) -> list[Part]:
    """The pages in the order of a ``_toc.yml``."""
    parts: list[Part] = []

    def walk(entry: dict[str, Any], depth: int) -> None:
        name = str(entry.get("file") or entry.get("root") or "")
        if name and not name.startswith(LEFT_OUT):
            parts.append(Part(name.removesuffix(".md").removesuffix(".ipynb"), depth))
        for key in ("parts", "chapters", "sections", "entries"):
            for child in entry.get(key, ()):
                walk(child, depth if key in ("parts", "chapters") else depth + 1)

    walk(toc, 0)
    return parts


def stitch(site: Path, parts: Sequence[Part], front: str) -> tuple[str, list[Part]]:
    """Put the articles of a site one behind the other, after the HTML of a title page.

    Returns
    -------
    str
        A complete HTML document that refers to files of the site by absolute address.
    list of Part
        The parts with their titles.

    Raises
    ------
    BuildError
        If a page is missing or has no article.
    """
    from bs4 import BeautifulSoup

    bodies: list[str] = []
    titled: list[Part] = []
    sheets: list[str] = []
    anchors = {part.page: part.anchor for part in parts}
    for part in parts:
        path = site / f"{part.page}.html"
        if not path.is_file():
            raise BuildError(f"page {part.page}: is in the table of contents but not in the site")
        soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        article = soup.select_one("article.bd-article")
        heading = article.select_one("h1") if article else None
        if article is None or heading is None:
            raise BuildError(f"page {part.page}: has no article with a heading to print")
        if not bodies:
            sheets = [
                _address(site, part, str(link["href"]))
                for link in soup.select("link[rel=stylesheet]")
            ]
        for name in article.select(SCREEN_ONLY):
            name.decompose()
        titled.append(replace(part, title=heading.get_text().replace("\u200b", "").strip()))
        _demote(article, part.depth)
        _localise(article, part, anchors, site)
        bodies.append(
            f'<section class="part depth-{part.depth}" id="{part.anchor}" '
            f'style="page: {part.anchor}">{article.decode_contents()}</section>'
        )
    sheets.append(_address(site, Part("", 0), "_static/css/paper.css"))
    return _document(sheets, front, titled, bodies), titled


def _demote(article: Tag, depth: int) -> None:
    """Headings of a page below another page's are one level lower, in the outline too."""
    for heading in article.select("h1, h2, h3, h4, h5, h6"):
        level = int(heading.name[1])
        names = [str(name) for name in heading.get_attribute_list("class") if name]
        heading["class"] = " ".join([*names, f"print-h{level}"])
        heading.name = f"h{min(level + depth, 6)}"


def _localise(article: Tag, part: Part, anchors: Mapping[str, str], site: Path) -> None:
    """Make anchors unique, links internal, and files absolute."""
    for tag in article.select("[id]"):
        tag["id"] = f"{part.anchor}-{tag['id']}"
    for name in ("for", "aria-labelledby", "aria-describedby"):
        for tag in article.select(f"[{name}]"):
            del tag[name]
    for image in article.select("img[src]"):
        image["src"] = _address(site, part, str(image["src"]))
        image["loading"] = "eager"
    for link in article.select("a[href]"):
        target = urlsplit(str(link["href"]))
        if target.scheme in ("http", "https", "mailto"):
            continue
        path = _path(part, target.path) if target.path else f"{part.page}.html"
        anchor = anchors.get(path.removesuffix(".html"))
        if anchor is None:
            link.unwrap()  # a file of the site, or a page that is not printed
        else:
            link["href"] = f"#{anchor}" + f"-{unquote(target.fragment)}" * bool(target.fragment)
    for formula in article.select(".katex"):
        formula["role"] = "math"


def _path(part: Part, address: str) -> str:
    """What a part's page refers to by a relative address, seen from the site's root."""
    return os.path.normpath(PurePosixPath(part.page).parent / unquote(urlsplit(address).path))


def _address(site: Path, part: Part, address: str) -> str:
    return (site / _path(part, address)).absolute().as_uri()


def _document(
    sheets: Sequence[str], front: str, parts: Sequence[Part], bodies: Sequence[str]
) -> str:
    """The long page with a title page and a table of contents, page numbers left open."""
    rows = "".join(
        f'<li class="depth-{part.depth}"><a href="#{part.anchor}">{escape(part.title)}</a>'
        f'<span class="page-number" data-part="{part.anchor}"></span></li>'
        for part in parts
    )
    links = "".join(f'<link rel="stylesheet" href="{sheet}">' for sheet in sheets)
    # Each part is a page type of its own, so that its title stands at the head of its pages.
    # A text of JSON is one of CSS too.
    heads = "".join(
        f"@page {part.anchor} {{ @top-left {{ content: {json.dumps(part.title, ensure_ascii=False)}"
        "; } }\n"
        for part in parts
    )
    return (
        '<!DOCTYPE html><html lang="en-GB" data-theme="light" data-mode="light"><head>'
        f'<meta charset="utf-8"><title>{escape(parts[0].title)}</title>{links}'
        f'<style>{heads}</style></head><body class="paper"><div class="bd-content">'
        f'<main class="bd-article">{front}<nav class="paper-contents" aria-label="Contents">'
        f'<h1 class="print-h1">Contents</h1><ol>{rows}</ol></nav>{"".join(bodies)}</main>'
        "</div></body></html>"
    )
