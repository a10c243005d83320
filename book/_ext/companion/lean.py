"""What a reader's browser does not need is left out of the site when it is complete.

The theme brings style sheets for everything that a site might show, an icon font of 1600 drawings,
and files that no page asks for.  Here the style sheets lose the rules for classes that occur
nowhere, the few icons in use become masks in a small style sheet of their own, and the files go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import tinycss2
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util import logging

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
OURS = ("css/", "explorer/", "katex/")
"""Style sheets that hold nothing to spare."""
UNUSED = ("*.map", "*.po", "*.mo", "sphinx-thebe.*", "*webpack-macros.html", "vendor/**/*")
NAME = re.compile(r"[A-Za-z_][\w-]*")
MARKUP = re.compile(r"""\b(?:class|id)=(?:"([^"]*)"|'([^']*)')""")
# Bootstrap puts these together from parts when a menu or a hint opens.
COMPOSED = ("bs-",)
NESTED = ("media", "supports", "layer", "container")


def used_names(site: Path) -> set[str]:
    """Every class and id that a page has, and every word of a script, which might set one."""
    names: set[str] = set()
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for match in MARKUP.finditer(text):
            names.update((match[1] or match[2] or "").split())
        for script in re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL):
            names.update(NAME.findall(script))
    for path in (site / "_static").rglob("*.js"):
        if "results" not in path.parts:
            names.update(NAME.findall(path.read_text(encoding="utf-8")))
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


def purge(sheet: str, names: set[str]) -> str:
    """A style sheet without the rules that match nothing.

    Parameters
    ----------
    sheet
        The style sheet.
    names
        Classes and ids that occur.

    >>> purge("a, .x .y { color: red } .x:not(.z) { top: 0 } @media print { #n { top: 0 } }", {"x"})
    'a{color: red}.x:not(.z){top: 0}'
    """
    rules = tinycss2.parse_stylesheet(sheet, skip_comments=False, skip_whitespace=True)
    return "".join(_rule(rule, names) for rule in rules)


def _rule(rule: Any, names: set[str]) -> str:
    if rule.type == "comment":  # the first line of a sheet says whose it is, and its licence
        return f"/*{rule.value}*/" if rule.value.startswith("!") else ""
    if rule.type == "at-rule" and rule.content is not None and rule.lower_at_keyword in NESTED:
        inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
        kept = "".join(_rule(one, names) for one in inner)
        head = tinycss2.serialize(rule.prelude).strip()
        return f"@{rule.lower_at_keyword} {head}{{{kept}}}" if kept else ""
    if rule.type != "qualified-rule":
        return str(rule.serialize())
    kept_selectors = [one for one in _selectors(rule.prelude) if _wanted(one, names)]
    if not kept_selectors:
        return ""
    head = ",".join(tinycss2.serialize(one).strip() for one in kept_selectors)
    body = tinycss2.serialize(rule.content).strip()
    return f"{head}{{{body}}}"


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


def _icons_in_pages(site: Path) -> set[str]:
    """Classes of icons: only what pages and our own scripts show, not every word of a library."""
    names: set[str] = set()
    sources = [*site.rglob("*.html"), *(site / "_static").glob("*.js")]
    for path in sources:
        names.update(re.findall(r"\bfa-[a-z0-9-]+", path.read_text(encoding="utf-8")))
    return names


def _palette(path: Path) -> None:
    """Write a drawing with 256 colours, a third of the bytes: it has few, and blends of them."""
    with Image.open(path) as picture:
        see_through = picture.mode == "RGBA" and picture.getextrema()[3][0] < 255
        method = Image.Quantize.FASTOCTREE if see_through else Image.Quantize.MEDIANCUT
        full = picture if see_through else picture.convert("RGB")
        small = full.quantize(256, method=method, dither=Image.Dither.NONE)
        small.save(path, "PNG", optimize=True, dpi=picture.info.get("dpi", (72, 72)))


def slim(app: Sphinx, exception: Exception | None) -> None:
    """Leave out what no page asks for; an icon without a drawing is a warning."""
    if exception is not None or app.builder.name not in ("html", "singlehtml"):
        return
    site = Path(app.outdir)
    static = site / "_static"
    for pattern in UNUSED:
        for path in sorted(static.rglob(pattern), reverse=True):
            if path.is_file():
                path.unlink()
    for folder in sorted(static.rglob("*"), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    for path in sorted(static.glob("results/figures/*.png")):
        _palette(path)
    names = used_names(site)
    for path in sorted(static.rglob("*.css")):
        if not path.relative_to(static).as_posix().startswith(OURS):
            path.write_text(purge(path.read_text(encoding="utf-8"), names), encoding="utf-8")
    sheet, missing = icon_sheet(_icons_in_pages(site))
    for icon in missing:
        LOGGER.warning("icon %r has no drawing in %s", icon, ICONS.name)
    (static / ICON_SHEET).parent.mkdir(parents=True, exist_ok=True)
    (static / ICON_SHEET).write_text(sheet, encoding="utf-8")


def connect(app: Sphinx) -> None:
    """Hook into the end of the build."""
    app.connect("build-finished", slim)
