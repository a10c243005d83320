"""What a reader's browser does not need is left out of the site when it is complete.

The theme brings style sheets for everything that a site might show, an icon font of 1600 drawings,
and files that no page asks for.  Here the style sheets lose the rules for classes that occur
nowhere and become one, the few icons in use become masks in it, code loses marks that have no
colour, and the files go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import tinycss2
from sphinx.application import Sphinx
from sphinx.util import logging

from companion.site.bundle import SHEET, bundle

LOGGER = logging.getLogger(__name__)
ICONS = Path(__file__).parent / "icons"
ICON_SHEET = "css/icons.css"
# Sizes and families of the icon font, which are no drawings.
ICON_MODIFIERS = {"solid", "brands", "regular", "lg", "sm", "xs", "fw", "stack", "spin"}
ICON_RULES = """/* Drawings: Font Awesome Free, CC BY 4.0 (fontawesome.com/license/free) */
:is(.fa-solid, .fa-brands, .fa-regular, .fas, .fab, .far) { display: inline-block; width: 1.1em;
  height: 1em; vertical-align: -0.125em; background: currentColor;
  mask: var(--icon) center / contain no-repeat; }
.fa-lg { font-size: 1.25em; }
@media (forced-colors: active) {
  :is(.fa-solid, .fa-brands, .fa-regular, .fas, .fab, .far) { background: ButtonText; }
}
"""
UNUSED = ("*.map", "*.po", "*.mo", "sphinx-thebe.*", "*webpack-macros.html", "vendor/**/*")
STYLES = ("css/paper.css", SHEET)
"""Style sheets that stay: of the PDF, and of the pages."""
ICON = re.compile(r"\bfa-[a-z0-9-]+")
INLINE = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)
# Names, signs and spaces in code, which the style sheet leaves in the colour of the text.
UNCOLOURED = re.compile(r'<span class="(?:n|nn|nx|o|p|bp|w)">([^<]*)</span>')
NAME = re.compile(r"[A-Za-z_][\w-]*")
MARKUP = re.compile(r"""\b(?:class|id)=(?:"([^"]*)"|'([^']*)')""")
OURS = ("_static/css/", "_static/explorer/")
"""Style sheets that hold nothing to spare, and rules for classes that our scripts put together."""
LIBRARY = "bootstrap.js"
"""Knows many parts of pages of which this book has two: menus and hints."""
MADE = {"tooltip", "tooltip-arrow", "tooltip-inner", "fade", "show", "active", "disabled"}
"""Classes that it gives to what is on the pages, or to what it puts there."""
# It puts these together when a hint opens.
COMPOSED = ("bs-tooltip",)
NESTED = ("media", "supports", "layer", "container")


def used_names(pages: Iterable[str], scripts: Iterable[str]) -> set[str]:
    """Every class and id that a page has, and every word of a script, which might set one.

    Parameters
    ----------
    pages
        Texts of the pages.
    scripts
        Texts of the scripts.
    """
    names: set[str] = set()
    for text in pages:
        for match in MARKUP.finditer(text):
            names.update((match[1] or match[2] or "").split())
        for script in INLINE.findall(text):
            names.update(NAME.findall(script))
    for text in scripts:
        names.update(NAME.findall(text))
    return names


def _wanted(selector: list[Any], names: set[str]) -> bool:
    """Whether a selector can match: each class and id that it demands occurs.

    What stands in brackets (``:not(.x)``, ``:is(.x, .y)``) demands nothing by itself.
    """
    dot = False
    for token in selector:
        demands = token.type == "hash" or (dot and token.type == "ident")
        wanted = token.value if demands else ""
        if wanted and wanted not in names and not wanted.startswith(COMPOSED):
            return False
        dot = token.type == "literal" and token.value == "."
    return True


def _selectors(prelude: Iterable[Any]) -> list[list[Any]]:
    """Split a rule's head at its commas."""
    parts: list[list[Any]] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def purge(sheet: str, names: set[str] | None) -> str:
    """A style sheet without comments and without the rules that match nothing.

    Parameters
    ----------
    sheet
        The style sheet.
    names
        Classes and ids that occur; None keeps all rules.

    >>> purge("a, .x .y { color: red } .x:not(.z) { top: 0 } @media print { #n { top: 0 } }", {"x"})
    'a{color: red}.x:not(.z){top: 0}'
    """
    rules = tinycss2.parse_stylesheet(sheet, skip_comments=False, skip_whitespace=True)
    return "".join(_rule(rule, names) for rule in rules)


def _rule(rule: Any, names: set[str] | None) -> str:
    if rule.type == "comment":  # the first line of a sheet says whose it is, and its licence
        return f"/*{rule.value}*/" if rule.value.startswith("!") else ""
    if rule.type == "at-rule" and rule.content is not None and rule.lower_at_keyword in NESTED:
        inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
        kept = "".join(_rule(one, names) for one in inner)
        head = tinycss2.serialize(rule.prelude).strip()
        return f"@{rule.lower_at_keyword} {head}{{{kept}}}" if kept else ""
    if rule.type != "qualified-rule":
        return str(rule.serialize())
    selectors = _selectors(rule.prelude)
    kept_selectors = [one for one in selectors if names is None or _wanted(one, names)]
    if not kept_selectors:
        return ""
    head = ",".join(tinycss2.serialize(one).strip() for one in kept_selectors)
    body = "".join(
        " " if token.type == "whitespace" else token.serialize()
        for token in rule.content
        if token.type != "comment"
    )
    return f"{head}{{{body.strip()}}}"


def icon_sheet(names: set[str]) -> tuple[str, list[str]]:
    """The style sheet of the icons in use, and the names of those that have no drawing here."""
    rules, missing = [ICON_RULES], []
    icons = {name.removeprefix("fa-").rstrip("-") for name in names}
    for icon in sorted(icons - ICON_MODIFIERS - {""}):
        path = ICONS / f"{icon}.svg"
        if not path.is_file():
            missing.append(icon)
            continue
        drawing = re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"))
        address = quote(drawing.strip().replace('"', "'"), safe=" ='/:")
        rules.append(f'.fa-{icon} {{ --icon: url("data:image/svg+xml,{address}"); }}\n')
    return "".join(rules), missing


def _sweep(static: Path, texts: Iterable[str]) -> None:
    """Take away files that nothing asks for, and folders with nothing in them.

    Parameters
    ----------
    static
        The folder of files that pages load.
    texts
        Texts of pages and scripts.
    """
    asked = set(re.findall(r"[\w.-]+\.js\b", "\n".join(texts)))
    unused = [path for pattern in UNUSED for path in static.rglob(pattern) if path.is_file()]
    unused += [path for path in static.glob("*.js") if path.name not in asked]
    unused += [
        path for path in static.rglob("*.css") if path.relative_to(static).as_posix() not in STYLES
    ]
    for path in set(unused):
        path.unlink()
    for folder in sorted(static.rglob("*"), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def slim(app: Sphinx, exception: Exception | None) -> None:
    """Leave out what no page asks for; an icon without a drawing is a warning."""
    if exception is not None or app.builder.name not in ("html", "singlehtml"):
        return
    site = Path(app.outdir)
    static = site / "_static"
    found = sorted(path for path in site.rglob("*.html") if static not in path.parents)
    pages = {path.relative_to(site).as_posix(): path.read_text("utf-8") for path in found}
    scripts = {
        path: path.read_text("utf-8")
        for path in sorted(static.rglob("*.js"))
        if "results" not in path.parts and path.name != LIBRARY
    }
    # Icons: only what pages and our own scripts show, not every word of the theme's.
    shown = [*pages.values(), *(text for path, text in scripts.items() if path.parent == static)]
    sheet, missing = icon_sheet({icon for text in shown for icon in ICON.findall(text)})
    for icon in missing:
        LOGGER.warning("icon %r has no drawing in %s", icon, ICONS.name)
    (static / ICON_SHEET).parent.mkdir(parents=True, exist_ok=True)
    (static / ICON_SHEET).write_text(sheet, encoding="utf-8")
    names = used_names(pages.values(), scripts.values()) | MADE

    def keep(name: str, sheet: str) -> str:
        return purge(sheet, None if name.startswith(OURS) else names)

    bundle(site, pages, keep)
    for page, text in pages.items():
        (site / page).write_text(UNCOLOURED.sub(r"\1", text), encoding="utf-8")
    _sweep(static, [*pages.values(), *scripts.values()])


def connect(app: Sphinx) -> None:
    """Hook into the end of the build, behind all others: the theme still writes a style sheet."""
    app.connect("build-finished", slim, priority=999)
