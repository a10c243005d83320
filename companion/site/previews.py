"""What a reference shows when a reader rests on it: the statement, as its own page draws it.

The statements are cut out of the finished pages, so that formulas look as they do there.  Each page
with statements gets one small script, which a reader's browser loads when it is first needed.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from companion.site import codeindex, notation

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
DROPPED = {"id", "name", "tabindex", "href", "title", "loading"}
"""Attributes that mean something only in their own place."""
FOLDER = "_static/previews"


def connect(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.add_css_file("css/previews.css", priority=900)
    app.add_js_file("previews.js", loading_method="defer", priority=900)
    app.connect("doctree-resolved", _mark, priority=900)
    app.connect("build-finished", _write)


def targets(env: BuildEnvironment) -> dict[str, list[str]]:
    """Page → the ids on it that a preview shows."""
    found: dict[str, list[str]] = {}
    proofs = getattr(env, "proof_list", {})
    for label, page in codeindex.labels(env).items():
        name = label if label in proofs else nodes.make_id(f"equation-{label}")
        found.setdefault(page, []).append(name)
    if notation.PAGE in env.found_docs:
        rows = notation.read(Path(env.srcdir))
        found[notation.PAGE] = [notation.anchor(row["id"]) for row in rows]
    return found


def _mark(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Name the references that have a preview."""
    if app.builder.format != "html":
        return
    known = {name for names in targets(app.env).values() for name in names}
    for reference in tree.findall(nodes.reference):
        fragment = reference.get("refid") or reference.get("refuri", "").rpartition("#")[2]
        if fragment in known and "internal" in reference:
            reference["classes"].append("has-preview")


class _Cutter(HTMLParser):
    """Collects the inner HTML of the elements with given ids, without what belongs to its place."""

    def __init__(self, wanted: set[str]) -> None:
        super().__init__(convert_charrefs=False)
        self.found: dict[str, str] = {}
        self._wanted = wanted
        self._open: list[tuple[str, list[str], int]] = []  # id, pieces, depth inside it
        self._skipped = 0  # depth inside a link to the heading itself

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if self._skipped or "headerlink" in (values.get("class") or ""):
            self._skipped += tag not in VOID
            return
        name = "span" if tag == "a" else tag
        kept = "".join(
            f' {key}="{(value or "").replace("&", "&amp;").replace(chr(34), "&quot;")}"'
            for key, value in attributes
            if key not in DROPPED
        )
        self._write(f"<{name}{kept}>")
        if tag not in VOID:
            self._open = [(one, pieces, depth + 1) for one, pieces, depth in self._open]
            if values.get("id") in self._wanted:
                self._open.append((str(values["id"]), [], 0))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            self.handle_starttag(tag, attributes)
        elif not self._skipped:  # in drawings
            kept = "".join(f' {key}="{value or ""}"' for key, value in attributes)
            self._write(f"<{tag}{kept}/>")

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if self._skipped:
            self._skipped -= 1
            return
        for name, pieces, depth in self._open:
            if depth == 0:
                self.found[name] = "".join(pieces).strip()
        self._open = [(one, pieces, d - 1) for one, pieces, d in self._open if d > 0]
        self._write(f"</{'span' if tag == 'a' else tag}>")

    def handle_data(self, data: str) -> None:
        self._write(data)

    def handle_entityref(self, name: str) -> None:
        self._write(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._write(f"&#{name};")

    def _write(self, text: str) -> None:
        if not self._skipped:
            for _, pieces, _ in self._open:
                pieces.append(text)


def cut(page: str, wanted: set[str]) -> dict[str, str]:
    """The inner HTML of some elements of a page, for showing it elsewhere.

    Parameters
    ----------
    page
        A whole page.
    wanted
        Ids.

    Returns
    -------
    dict
        Id → HTML without ids, addresses and links; ids that are not on the page are missing.
    """
    cutter = _Cutter(wanted)
    cutter.feed(page)
    cutter.close()
    return cutter.found


def script(page: str, statements: dict[str, str]) -> str:
    """What a browser loads: one call with the name of the page and its statements, packed.

    Drawn formulas are wordy and repeat themselves: packed they take a tenth.
    """
    text = json.dumps(statements, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return f"attsvmPreviews({json.dumps(page)}, {json.dumps(packed)});\n"


def _write(app: Sphinx, exception: Exception | None) -> None:
    """Write the script of each page; a statement that is not on its page stops the build."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for page, names in targets(app.env).items():
        file = Path(app.builder.get_outfilename(page))  # type: ignore[attr-defined]
        found = cut(file.read_text(encoding="utf8"), set(names))
        if lost := set(names) - set(found):
            raise ValueError(f"page {page} lacks {sorted(lost)}")
        path = folder / f"{page.replace('/', '-')}.js"
        path.write_text(script(page, _content(found)), encoding="utf8")


def _content(found: dict[str, str]) -> dict[str, str]:
    """Ids in order; a row of the table of notation reads as lines."""
    rows = {name for name in found if name.startswith("notation-")}
    return {
        name: re.sub(r"<(/?)t[dh]\b[^>]*>", r"<\1div>", html) if name in rows else html
        for name, html in sorted(found.items())
    }
