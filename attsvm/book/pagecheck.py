"""Hold rendered pages against what they promise: links lead somewhere, pictures speak."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

__all__ = ["page_problems"]

REFERENCES = {
    "a": "href",
    "link": "href",
    "img": "src",
    "script": "src",
    "source": "srcset",
    "iframe": "src",
}


class _Page(HTMLParser):
    """Anchors of a page, what it refers to, and its pictures without words."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.references: list[str] = []
        self.mute: list[str] = []
        self._in_article = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what matters of an element."""
        values = {name: value or "" for name, value in attrs}
        for name in ("id", "name"):
            if values.get(name) and (name == "id" or tag == "a"):
                self.anchors.add(values[name])
        self._in_article += tag == "article"
        if values.get(REFERENCES.get(tag, "")):
            self.references.append(values[REFERENCES[tag]])
        if tag == "img" and self._in_article and not values.get("alt", "").strip():
            self.mute.append(values.get("src", "without address"))

    def handle_endtag(self, tag: str) -> None:
        """Leave an article."""
        self._in_article -= tag == "article"


def page_problems(site: Path) -> list[str]:
    """What is wrong with the pages of a site; empty if all is well.

    Looked for are links to files that are missing or empty, links to anchors that their page lacks,
    and pictures in the text without alternative text.

    Parameters
    ----------
    site
        Folder of the rendered site.
    """
    pages: dict[str, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if not name.startswith("_static/"):
            pages[name] = _Page()
            pages[name].feed(path.read_text(encoding="utf-8"))
    problems = []
    for name, page in pages.items():
        problems += [f"{name}: the picture {address} has no alt text" for address in page.mute]
        problems += [f"{name}: {text}" for text in _dead(site, name, pages)]
    return list(dict.fromkeys(problems))


def _dead(site: Path, name: str, pages: dict[str, _Page]) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    for address in pages[name].references:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc or address == "#":
            continue
        path = unquote(parts.path)
        target = os.path.normpath(PurePosixPath(name).parent / path) if path else name
        file = site / target
        if not file.is_file() or not file.stat().st_size:
            yield f"the link {address} leads nowhere"
        elif parts.fragment and target in pages:
            anchor = unquote(parts.fragment)
            if anchor not in pages[target].anchors and anchor != "top":
                yield f"the link {address} names an anchor that is not there"
