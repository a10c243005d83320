"""One executed chapter as one page that needs nothing else: no network, no folder beside it.

The site is Jupyter Book's.  This is for a run with a reader's own parameters: Sphinx and the site's
own extension read the same cells, figures and claims; only the frame of the page is another.
"""

from __future__ import annotations

import base64
import html
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes

from attsvm.claims import plain
from companion.site.mime import FigureCard, ThemeImage
from companion.site.text import measurement

__all__ = ["CSS", "document", "estimate", "render"]

CSS = """
:root { color-scheme: light; --ink: #1b1f24; --muted: #545b65; --line: #dad6cc; --wash: #f4f2ec;
  --blue: #0067a5; --green: #00734f; --red: #a3350a; }
body { margin: 0 auto; padding: 1rem 1.25rem 4rem; max-width: 56rem; background: #fcfbf8;
  color: var(--ink); font: 1.06rem/1.6 "Source Serif 4", Charter, Georgia, serif; }
h1, h2, h3 { font-family: "Source Sans 3", "Segoe UI", Roboto, sans-serif; line-height: 1.25; }
h2 { margin-top: 2.2em; border-bottom: 1px solid var(--line); }
a { color: var(--blue); }
table { border-collapse: collapse; margin: 1rem 0; font-size: .95rem; display: block;
  overflow-x: auto; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .7rem; text-align: left;
  vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
pre, code { font-family: "JetBrains Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre { background: var(--wash); padding: .7rem; overflow-x: auto; font-size: .82rem;
  line-height: 1.45; }
code { font-size: .9em; } summary { cursor: pointer; color: var(--muted); }
figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; }
figcaption { color: var(--muted); font-size: .92rem; }
.about, .note, .admonition { background: var(--wash); border-left: 4px solid var(--blue);
  padding: .6rem 1rem; margin: 1.2rem 0; } .admonition-title, .caption-number { font-weight: 600; }
.claim-box { border: 1px solid var(--line); border-left: 4px solid var(--blue); padding: .5rem 1rem;
  margin: .8rem 0; } .claim-box p { margin: .3rem 0; } .claim-place { margin: 0 .7em; }
.claim-place, .claim-facts { color: var(--muted); font-size: .92rem; } dd { margin: 0 0 0 1.5rem; }
.eqno { float: right; } math { font-size: 1.05em; }
.verdict { font-weight: 600; } .changed { font-weight: 600; color: var(--red); }
.verdict svg { height: 1em; fill: none; stroke: currentColor; stroke-width: 2; }
summary p { display: inline; } details[open] .collapsed, details:not([open]) .expanded {
  display: none; } .ledger caption { text-align: left; font-weight: 600; }
.muted { color: var(--muted); }
.highlight .k, .highlight .kn, .highlight .kc { color: #6b2c91; }
.highlight .s1, .highlight .s2, .highlight .sa { color: var(--green); }
.highlight .c1 { color: var(--muted); } .highlight .mi, .highlight .mf { color: var(--red); }
"""

SETTINGS: dict[str, Any] = {
    "extensions": ["myst_nb", "sphinx_proof", "companion.run.page"],
    "nb_execution_mode": "off",
    "nb_merge_streams": True,
    "nb_render_markdown_format": "myst",
    "myst_enable_extensions": [
        "amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "smartquotes", "tasklist"
    ],
    "myst_dmath_double_inline": True,
    "companion_formulas": "mathml",  # which browsers draw without a script, fonts or a style sheet
    "html_permalinks": False,
    "language": "en-GB",
    "numfig": True,
}  # fmt: skip


def setup(app: Any) -> None:
    """Register with Sphinx what draws figures, claims and formulas, and nothing of the site."""
    from companion import site

    site.draw(app)
    app.add_node(ThemeImage, override=True, html=(_picture, None))
    app.add_node(FigureCard, override=True, html=(site.figures.visit_card, _under_picture))

    def named(name: str, raw: str, text: str, *_: Any) -> tuple[list[nodes.Node], list[Any]]:
        return [nodes.Text(f"[{text}]")], []

    for role in ("cite", "cite:t", "cite:p", "cite:ts", "cite:ps"):
        app.add_role(role, named)


def _picture(translator: Any, node: Any) -> None:
    """The drawing itself, as an image: drawings of one page share names within, which clash."""
    from companion.site import results

    drawing = (results.folder(translator.builder.env) / node["light"]).read_bytes()
    source = f"data:image/svg+xml;base64,{base64.b64encode(drawing).decode()}"
    alt = html.escape(" ".join(node["alt"].split()))
    translator.body.append(f'<img alt="{alt}" src="{source}">')
    raise nodes.SkipNode


def _under_picture(translator: Any, node: Any) -> None:
    from companion.site.figures import ledger_table

    translator.body.append(f"{ledger_table(node['record']['ledger'], translator.config)}</div>\n")


def document(title: str, body: str) -> str:
    """A whole HTML page.

    Parameters
    ----------
    title
        As the browser's tab shows it.
    body
        HTML.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{CSS}</style>\n"
        f"</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def render(notebook: Path, results: Path, about: str, notes: Sequence[str] = ()) -> str:
    """An executed notebook as a page.

    Parameters
    ----------
    notebook
        Executed and normalised, of format 4.
    results
        Folder of ``figures/`` and ``claims/``, as the chapter left them.
    about
        HTML that says what was run; it comes below the heading.
    notes
        What the chapter had to remark, such as warnings of a cell.
    """
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    with tempfile.TemporaryDirectory() as scratch, docutils_namespace():
        source = Path(scratch) / "source"
        (source / "book" / "_static").mkdir(parents=True)
        (source / "index.ipynb").write_bytes(notebook.read_bytes())
        (source / "book" / "_static" / "results").symlink_to(results)
        out, kept = Path(scratch) / "out", Path(scratch) / "kept"
        settings = SETTINGS | {"exclude_patterns": ["book"]}
        app = Sphinx(source, None, out, kept, "json", settings, status=None, warning=None)
        app.build()
        page = json.loads((out / "index.fjson").read_text(encoding="utf-8"))
    # References to other chapters lead nowhere from here.
    body = re.sub(r'<a\b[^>]*href="(?!#|https?:)[^"]*"[^>]*>(.*?)</a>', r"\1", page["body"])
    extra = about + "".join(f'<p class="note">{html.escape(note)}</p>\n' for note in notes)
    head, end, rest = body.partition("</h1>")
    title = html.unescape(re.sub(r"<[^>]*>", "", page["title"])) or "attsvm"
    return document(title, f"{head}{end}\n{extra}{rest}" if end else extra + body)


def estimate(value: Mapping[str, Any]) -> str:
    """A measured number with its half-width, as text."""
    return plain(measurement(value))
