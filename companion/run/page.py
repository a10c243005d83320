"""One executed chapter as one page that needs nothing else: no network, no folder beside it.

The site is Jupyter Book's.  This is for a run with a reader's own parameters: the same cells and
figures, what was changed, and the verdicts.
"""

from __future__ import annotations

import base64
import copy
import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["CSS", "Formulas", "document", "estimate", "render"]

CLAIM = "application/vnd.attsvm.claim+json"
FIGURE = "application/vnd.attsvm.figure+json"
RECORD = "application/papermill.record/"

CSS = """
:root { color-scheme: light; --ink: #1b1f24; --muted: #545b65; --line: #dad6cc; --wash: #f4f2ec;
  --blue: #0067a5; --green: #00734f; --red: #a3350a; }
body { margin: 0 auto; padding: 1rem 1.25rem 4rem; max-width: 56rem; background: #fcfbf8;
  color: var(--ink); font: 1.06rem/1.6 "Source Serif 4", Charter, Georgia, serif; }
h1, h2, h3 { font-family: "Source Sans 3", "Segoe UI", Roboto, sans-serif; line-height: 1.25; }
h2 { margin-top: 2.2em; border-bottom: 1px solid var(--line); }
a { color: var(--blue); } .anchor-link, .prompt { display: none; }
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
.about, .note { background: var(--wash); border-left: 4px solid var(--blue);
  padding: .6rem 1rem; margin: 1.2rem 0; }
.claim { border: 1px solid var(--line); border-left: 4px solid var(--blue); padding: .5rem 1rem;
  margin: .8rem 0; } .claim p { margin: .3rem 0; }
.eqno { float: right; } math { font-size: 1.05em; }
.verdict { font-weight: 600; } .changed { font-weight: 600; color: var(--red); }
.muted { color: var(--muted); }
.highlight .k, .highlight .kn, .highlight .kc { color: #6b2c91; }
.highlight .s1, .highlight .s2, .highlight .sa { color: var(--green); }
.highlight .c1 { color: var(--muted); } .highlight .mi, .highlight .mf { color: var(--red); }
"""

# Cells without prompts; code that the book hides can be opened.
_TEMPLATE = """{%- extends 'basic/index.html.j2' -%}
{% block input_group %}
{%- if 'hide-input' in cell.metadata.get('tags', []) -%}
<details><summary>Show the code</summary>{{ super() }}</details>
{%- else -%}{{ super() }}{%- endif -%}
{% endblock %}"""

_ROLE = re.compile(r"\{(?P<role>[a-z]+(?::[a-z]+)?)\}`(?P<text>[^`]+)`")
# Code first: what looks like a formula in there is none.
_FORMULA = re.compile(
    r"(?P<code>```.*?```|`[^`]*`)"
    r"|\$\$(?P<display>.+?)\$\$(?:[ \t]*\((?P<label>[\w-]+)\))?"
    r"|(?<![\\$])\$(?P<inline>[^$]+?)\$(?!\d)",
    re.DOTALL,
)
_SOURCE = re.compile(r"<annotation.*?</annotation>", re.DOTALL)
_CALL = "katex.renderToString(dukpy.formula, JSON.parse(dukpy.options))"
_FENCE = re.compile(r"^(?P<fence>[:`]{3,})\{(?P<name>[\w:-]+)\}[ \t]*(?P<title>.*)$")
_OPTION = re.compile(r"^:[\w-]+:")


class Formulas:
    """Formulas as MathML, which browsers draw without a script, by the book's own KaTeX.

    Parameters
    ----------
    root
        The book's folder.  Without KaTeX in it formulas stay in LaTeX, which can be read.
    """

    def __init__(self) -> None:
        script = Path(__file__).parents[1] / "site" / "katex" / "katex.min.js"
        self._engine: Any = None
        if script.is_file():
            import dukpy

            self._engine = dukpy.JSInterpreter()
            self._engine.evaljs(script.read_text(encoding="utf-8") + ";0")

    def draw(self, formula: str, *, display: bool) -> str:
        """HTML of one formula."""
        plain = html.escape(formula)
        if self._engine is None:
            return f"<code>{plain}</code>"
        options = {"displayMode": display, "output": "mathml", "throwOnError": False}
        drawn = self._engine.evaljs(_CALL, formula=formula, options=json.dumps(options))
        return _SOURCE.sub("", drawn)


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
        f"</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def render(
    notebook: Mapping[str, Any],
    about: str,
    formulas: Formulas,
    notes: Sequence[str] = (),
) -> str:
    """An executed notebook as a page.

    Parameters
    ----------
    notebook
        Executed and normalised, of format 4.
    about
        HTML that says what was run; it comes below the heading.
    formulas
        What draws the formulas.
    notes
        What the chapter had to remark, such as warnings of a cell.
    """
    import nbformat
    from nbconvert import HTMLExporter

    plain = nbformat.from_dict(copy.deepcopy(dict(notebook)))
    # The book leaves these out too.
    plain.cells = [c for c in plain.cells if "remove-cell" not in c.metadata.get("tags", [])]
    numbers = _equation_numbers(plain)
    drawn: dict[str, str] = {}
    for cell in plain.cells:
        if cell.cell_type == "markdown":
            cell.source = _without_formulas(_plain(cell.source, numbers), formulas, numbers, drawn)
        elif cell.cell_type == "code":
            cell.outputs = [_shown(out, formulas) for out in cell.outputs if not _is_record(out)]
    exporter = HTMLExporter()
    exporter.raw_template = _TEMPLATE
    body, _ = exporter.from_notebook_node(plain)
    for mark, formula in drawn.items():
        body = body.replace(mark, formula)
    extra = about + "".join(f'<p class="note">{html.escape(note)}</p>\n' for note in notes)
    head, end, rest = body.partition("</h1>")
    body = f"{head}{end}\n{extra}{rest}" if end else extra + body
    return document(_title(plain), f"<main>\n{body}\n</main>")


def _title(notebook: Any) -> str:
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("# "):
            return cell.source.splitlines()[0].removeprefix("# ").strip()
    return "attsvm"


def _is_record(output: Mapping[str, Any]) -> bool:
    """Whether an output only carries a number to the prose of the book."""
    return any(kind.startswith(RECORD) for kind in output.get("data", {}))


def _shown(output: Any, formulas: Formulas) -> Any:
    data = output.get("data", {})
    if CLAIM in data:
        output.data = {"text/html": _claim(data[CLAIM])}
    elif FIGURE in data and "image/svg+xml" in data:
        output.data = {"text/html": _figure(data[FIGURE], data["image/svg+xml"], formulas)}
    return output


def _figure(record: Mapping[str, Any], drawing: str, formulas: Formulas) -> str:
    # As an image: drawings of one page share names within, which would clash.
    source = base64.b64encode(drawing.encode()).decode()
    alt = " ".join(record["alt"].split())
    drawn: dict[str, str] = {}
    caption = html.escape(
        _without_formulas(" ".join(record["caption"].split()), formulas, {}, drawn)
    )
    for mark, formula in drawn.items():
        caption = caption.replace(mark, formula)
    return (
        f'<figure><img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{source}">'
        f"<figcaption><p>{caption}</p></figcaption></figure>"
    )


def _claim(record: Mapping[str, Any]) -> str:
    measured = estimate(record["certified"])
    if record["as_published"] is not None:
        measured += f"; as published {estimate(record['as_published'])}"
    if record["published"] is not None:
        measured += f"; published number {record['published']:g}"
    return (
        f'<div class="claim"><p>{html.escape(record["statement"])}</p>'
        f'<p><span class="verdict">{html.escape(record["verdict"])}</span>: '
        f"{html.escape(measured)}.</p>"
        f'<p class="muted">{html.escape(record["criterion"])}.</p></div>'
    )


def estimate(value: Mapping[str, float]) -> str:
    """A measured number with its half-width, as text."""
    if value["halfwidth"]:
        return f"{value['value']:.4g} ± {value['halfwidth']:.2g} (n = {value['n']})"
    return f"{value['value']:.6g}"


def _equation_numbers(notebook: Any) -> dict[str, int]:
    labels = [
        match["label"]
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for match in _FORMULA.finditer(cell.source)
        if match["label"]
    ]
    return {label: number for number, label in enumerate(labels, start=1)}


def _plain(source: str, numbers: Mapping[str, int]) -> str:
    """Markdown without the book's own directives and roles."""
    source = _ROLE.sub(lambda match: _role(match["role"], match["text"], numbers), source)
    lines: list[str] = []
    fence = ""
    for line in source.splitlines():
        opening = _FENCE.match(line)
        if opening and not fence:
            fence = opening["fence"]
            name = opening["name"].rpartition(":")[2]
            title = opening["title"].strip()
            heading = title if name == "admonition" else f"{name.capitalize()} {title}".strip()
            lines += ["", f"> **{heading}**", ">"]
        elif fence and line.strip() == fence:
            fence = ""
            lines.append("")
        elif fence:
            if not _OPTION.match(line):
                lines.append(f"> {line}".rstrip())
        else:
            lines.append(line)
    return "\n".join(lines)


def _without_formulas(
    source: str, formulas: Formulas, numbers: Mapping[str, int], drawn: dict[str, str]
) -> str:
    """Markdown with a mark for each formula; `drawn` gets what the mark stands for."""

    def put(match: re.Match[str]) -> str:
        if match["code"]:
            return match["code"]
        display = match["display"] is not None
        text = match["display"] if display else match["inline"]
        # Quoting signs of an admonition that the formula stands in are no part of it.
        text = re.sub(r"\n> ?", "\n", text).strip()
        mark = f"formula{len(drawn):05d}of{len(numbers):03d}"
        number = f'<span class="eqno">({numbers[match["label"]]})</span>' if match["label"] else ""
        drawn[mark] = number + formulas.draw(text, display=display)
        return f"\n{mark}\n" if display and "\n>" not in match[0] else mark

    return _FORMULA.sub(put, source)


def _role(role: str, text: str, numbers: Mapping[str, int]) -> str:
    label = text.rpartition("<")[2].rstrip(">") if "<" in text else text
    words = text.partition("<")[0].strip() if "<" in text else ""
    if role == "eq":
        known = f"({numbers[label]})" if label in numbers else f"({label}, in the book)"
        return known
    if role.startswith("cite"):
        return f"[{label}]"
    if role == "doc":
        return words or f"*{label.strip('/').removeprefix('book/')}*"
    return words or f"*{label}*"
