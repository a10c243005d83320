"""Hold rendered pages against what they promise: links lead somewhere, pictures speak."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import lxml.html
from lxml import etree

__all__ = ["page_problems"]

REFERENCES = {
    "a": "href",
    "link": "href",
    "img": "src",
    "script": "src",
    "source": "srcset",
    "iframe": "src",
}


class _Page:
    """Anchors of a page, what it refers to, and its pictures without words."""

    def __init__(self, content: bytes) -> None:
        self.anchors: set[str] = set()
        self.references: list[str] = []
        self.mute: list[str] = []
        parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)
        for element in lxml.html.document_fromstring(content, parser=parser).iter(etree.Element):
            tag = element.tag
            for name in ("id", "name"):
                if element.get(name) and (name == "id" or tag == "a"):
                    self.anchors.add(element.get(name))
            if tag in REFERENCES and (reference := element.get(REFERENCES[tag])):
                self.references.append(reference)
            in_text = tag == "img" and next(element.iterancestors("article"), None) is not None
            if in_text and not element.get("alt", "").strip():
                self.mute.append(element.get("src", "without address"))


def page_problems(site: Path) -> list[str]:
    """What is wrong with the pages of a site; empty if all is well.

    Looked for are links to files that are missing or empty, links to anchors that their page lacks,
    and pictures in the text without alternative text.
    """
    pages: dict[str, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if not name.startswith("_static/"):
            pages[name] = _Page(path.read_bytes())
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
