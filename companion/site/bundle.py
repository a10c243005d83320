"""One style sheet instead of twenty, and no script that holds up the first sight of a page.

The theme, the extensions and the book each bring style sheets of their own.  A browser asks for
them one by one and shows nothing before the last is there.  They become one file, in the order in
which pages name them.  Scripts that pages load run after the page is read; they keep their order.
What the theme's scripts would write into the page while it is read stands in it from the start.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterable
from graphlib import TopologicalSorter
from pathlib import Path
from urllib.parse import unquote, urlsplit

SHEET = "site.css"
LINK = re.compile(r"""<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"]+)"[^>]*>""")
SCRIPT = re.compile(r"""<script((?: [\w-]+="[^"]*")*? src="[^"]+"[^>]*)></script>""")
OPTIONS = re.compile(r"""<script src="[^"]*documentation_options\.js[^"]*"></script>""")
SEARCH = "searchtools.js"
WRITTEN = re.compile(r"<script>\s*document\.write\(`\s*<(.*?)`\);?\s*</script>", re.DOTALL)
NEEDS_SCRIPT = "needs-script"
"""Class of what is of no use where scripts do not run; the style sheet hides it there."""
IMPORT = re.compile(r"""@import\s+(?:url\(\s*)?(["'])([^"']+)\1\s*\)?\s*;""")
ADDRESS = re.compile(r"""url\(\s*(["']?)(?!data:|#)([^"')]+)\1\s*\)""")


def ordered(heads: Iterable[list[str]]) -> list[str]:
    """All style sheets in an order that agrees with every page's.

    Parameters
    ----------
    heads
        For each page its style sheets, in their order.

    Raises
    ------
    graphlib.CycleError
        If two pages want the same style sheets in different orders.

    >>> ordered([["a", "c"], ["a", "b", "c"], ["c", "d"]])
    ['a', 'b', 'c', 'd']
    """
    graph: dict[str, set[str]] = {}
    for head in heads:
        for place, name in enumerate(head):
            graph.setdefault(name, set()).update(head[:place])
    return list(TopologicalSorter(graph).static_order())


def moved(sheet: str, folder: str) -> str:
    """A style sheet that is read from elsewhere: its addresses start from the new place.

    Parameters
    ----------
    sheet
        The style sheet.
    folder
        Where it lies, seen from the new place.

    >>> moved("a { src: url(../fonts/x.woff2) }", "css")
    'a { src: url("fonts/x.woff2") }'
    """

    def move(match: re.Match[str]) -> str:
        return f'url("{posixpath.normpath(posixpath.join(folder, match[2]))}")'

    return ADDRESS.sub(move, sheet)


def complete(site: Path, name: str) -> str:
    """A style sheet of the site with those it imports in their place, addresses as seen from where
    the bundle lies.

    Parameters
    ----------
    site
        Folder of the site.
    name
        Address of the style sheet in the site.
    """
    folder = posixpath.relpath(posixpath.dirname(name), "_static")
    whole = (site / name).read_text(encoding="utf-8")
    parts, at = [], 0
    for match in IMPORT.finditer(whole):
        parts += [moved(whole[at : match.start()], folder), complete(site, _local(name, match[2]))]
        at = match.end()
    return "".join([*parts, moved(whole[at:], folder)])


def bundle(site: Path, pages: dict[str, str], lean: Callable[[str, str], str]) -> None:
    """Put all style sheets into one and let scripts wait, in all pages.

    A link to a style sheet that is not there stays; the check of the site's links names it.

    Parameters
    ----------
    site
        Folder of the site.
    pages
        Name of each page → its text; changed in place.
    lean
        From the name and the text of a style sheet, what is worth keeping of it.
    """
    heads = {
        page: [
            name
            for match in LINK.finditer(text)
            if (site / (name := _local(page, match[1]))).is_file()
        ]
        for page, text in pages.items()
    }
    parts = [lean(name, complete(site, name)) for name in ordered(heads.values())]
    whole = "\n".join(part for part in parts if part.strip())
    (site / "_static" / SHEET).write_text(whole, encoding="utf-8")
    mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
    options = (site / "_static/documentation_options.js").read_text(encoding="utf-8")
    for page, names in heads.items():
        if names:
            root = posixpath.relpath("_static", posixpath.dirname(page) or ".")
            sheet = f'<link rel="stylesheet" href="{root}/{SHEET}?v={mark}">'
            pages[page] = _later(_one_sheet(pages[page], page, set(names), sheet), options)


def _local(name: str, address: str) -> str:
    """Name of a file of the site that another one, a page or a style sheet, refers to."""
    path = unquote(urlsplit(address).path)
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _one_sheet(text: str, page: str, names: set[str], sheet: str) -> str:
    """A page with one style sheet in the place of several."""
    left = iter([sheet])

    def replace(match: re.Match[str]) -> str:
        return next(left, "") if _local(page, match[1]) in names else match[0]

    return LINK.sub(replace, text)


def _classed(tag: str) -> str:
    """Markup, less its first bracket, whose first element has the class."""
    return re.sub(r'\bclass="', f'class="{NEEDS_SCRIPT} ', tag, count=1)


def _later(text: str, options: str) -> str:
    """A page whose scripts run, in their order, when it is read.

    The constants that scripts in the page itself need come with the page.  The page of the search
    keeps its scripts: there those that wait prepare what the others begin when the page is read.
    """
    text = WRITTEN.sub(lambda m: f"<{_classed(m[1]).strip()}", text)
    if SEARCH in text:
        return text
    text = OPTIONS.sub(lambda _: f"<script>{' '.join(options.split())}</script>", text)

    def wait(match: re.Match[str]) -> str:
        if re.search(r"\b(?:defer|async)\b", match[1]):
            return match[0]
        return f'<script defer="defer"{match[1]}></script>'

    return SCRIPT.sub(wait, text)
