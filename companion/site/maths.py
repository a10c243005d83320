"""Formulas are drawn while the book is built: a page needs no script to show them.

KaTeX runs in a small JavaScript engine inside this process.  Each formula becomes two things: HTML
and style sheet for the eye, hidden from screen readers, and MathML for them, hidden from the eye.
What KaTeX cannot set is a warning that names page and formula; warnings fail the build.
"""

from __future__ import annotations

import functools
import html
import json
import re
from pathlib import Path
from typing import Any

import dukpy
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
KATEX = Path(__file__).parent / "katex" / "katex.min.js"
RENDERER = "katex"
STYLE = "katex/katex.css"
NUMBERED = re.compile(r"\\(begin|end)\{(equation|align|gather|alignat)\}")
SOURCE = re.compile(r"<annotation.*?</annotation>", re.DOTALL)
ENDING = "</span></span></span>"
"""How KaTeX closes a formula: its last box, what is for the eye, the whole."""
CLOSING = ".,;:!?)]’”-–"
"""Marks that stay with the formula before them."""
UNBROKEN = re.compile(r"(?<=\d) (?=\d{3}\b|%)| (?=± )|(?<=±) ")
"""Spaces within numbers, at which no line ends."""
CALL = "katex.renderToString(dukpy.formula, JSON.parse(dukpy.options))"


class FormulaError(ValueError):
    """A formula that cannot be drawn."""


class Engine:
    """KaTeX with the book's macros; every formula is drawn once.

    Parameters
    ----------
    macros : str
        JSON object: name of a macro, with its backslash, → what it stands for.
    """

    def __init__(self, macros: str) -> None:
        self._macros = json.loads(macros)
        self._engine = dukpy.JSInterpreter()
        self._engine.evaljs(KATEX.read_text(encoding="utf-8") + ";0")
        self._drawn: dict[tuple[str, bool, str], str] = {}

    def draw(self, formula: str, *, display: bool, output: str = "htmlAndMathml") -> str:
        """The HTML of a formula.

        Parameters
        ----------
        formula
            LaTeX, without dollars.
        display
            Whether it stands on a line of its own.
        output
            KaTeX's name of what to write: ``"htmlAndMathml"`` or ``"mathml"``.

        Raises
        ------
        FormulaError
            If KaTeX does not know a command, or finds what LaTeX would not accept.
        """
        key = (formula, display, output)
        if key not in self._drawn:
            options = {"displayMode": display, "output": output, "strict": "error"}
            options["macros"] = self._macros
            try:
                self._drawn[key] = self._engine.evaljs(
                    CALL, formula=formula, options=json.dumps(options)
                )
            except dukpy.JSRuntimeError as error:
                # The first line tells what is wrong, the others where in KaTeX it was noticed.
                raise FormulaError(_reason(str(error))) from error
        return self._drawn[key]


def _reason(message: str) -> str:
    """KaTeX's complaint in one line; the combining marks under the culprit do not print well."""
    line = message.partition("\n    at ")[0].replace("\n", " ").replace("\u0332", "")
    return re.sub(r"^(ParseError|Error): (KaTeX parse error: )?", "", line)


@functools.cache
def _engine(macros: str) -> Engine:
    return Engine(macros)


def engine(config: Config) -> Engine:
    """The engine of this build, started when the first formula comes."""
    return _engine(json.dumps(config.companion_macros, sort_keys=True))


def plain(formula: str, config: Config) -> str:
    """A formula as text, for places that hold no markup: the name of a page, its description.

    Raises
    ------
    FormulaError
        If the formula cannot be drawn.
    """
    markup = engine(config).draw(formula, display=False, output="mathml")
    return html.unescape(re.sub(r"<[^>]*>", "", SOURCE.sub("", markup))).replace("\u2061", " ")


def text(node: nodes.Node, config: Config) -> str:
    """The text of a node, its formulas as plain text.

    Formulas that cannot be drawn stay as they are; the page that shows them warns.
    """
    parts = []
    for leaf in node.findall(nodes.Text):
        if isinstance(leaf.parent, nodes.math | nodes.math_block):
            try:
                parts.append(plain(leaf.astext(), config) + leaf.parent.get("mark", ""))
                continue
            except FormulaError:
                pass
        parts.append(leaf.astext())
    return "".join(parts)


def inline(formula: str, config: Config, mark: str = "", place: Any = None) -> str:
    """HTML of a formula in the text, and of the punctuation that must not be parted from it."""
    drawn = _draw(formula, config, False, place)
    if mark and drawn.endswith(ENDING):
        # Once for the ear, after the MathML, and once for the eye, in the last box: lines break
        # between boxes and behind them.
        seen = f'<span class="punctuation">{mark}</span>{ENDING}'
        drawn = drawn.removesuffix(ENDING) + seen
        drawn = drawn.replace("</math></span>", f"</math>{mark}</span>", 1)
    else:
        drawn += mark
    return f'<span class="math notranslate nohighlight">{drawn}</span>'


def prose(text: str, config: Config) -> str:
    """HTML of a line of text with formulas between dollar signs: claims, numbers, ledgers."""
    pieces = re.split(rf"\$([^$]+)\$([{re.escape(CLOSING)}]*)", text)
    pieces[::3] = [UNBROKEN.sub("\xa0", html.escape(piece, quote=False)) for piece in pieces[::3]]
    for place in range(1, len(pieces), 3):
        mark = html.escape(pieces[place + 1])
        pieces[place : place + 2] = [inline(pieces[place], config, mark), ""]
    return "".join(pieces)


def _draw(formula: str, config: Config, display: bool, place: Any) -> str:
    try:
        return engine(config).draw(formula, display=display, output=config.companion_formulas)
    except FormulaError as error:
        words = " ".join(formula.split())
        LOGGER.warning("formula %r cannot be drawn: %s", words, error, location=place)
        return f"<code>{html.escape(formula)}</code>"


def _place(node: nodes.Node) -> nodes.Node:
    """The nearest node that knows its line: inline nodes rarely do."""
    place: nodes.Node = node
    while place.line is None and place.parent is not None:
        place = place.parent
    return place


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """A formula in the text."""
    mark = html.escape(node.get("mark", ""))
    config = translator.builder.config
    translator.body.append(inline(node.astext(), config, mark, _place(node)))
    raise nodes.SkipNode


def visit_display(translator: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on its own line, with its number if it has a name."""
    number = ""
    opening = translator.starttag(node, "div", CLASS="math notranslate nohighlight")
    if node.get("number"):
        translator.body.append(opening)
        opening = ""
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, "Link to this equation")
        number = "</span>"
    drawn = _draw(_source(node), translator.builder.config, True, _place(node))
    translator.body.append(f'{opening}{number}<div class="formula scrolls">{drawn}</div></div>\n')
    raise nodes.SkipNode


def _source(node: nodes.math_block) -> str:
    """What KaTeX gets: Sphinx numbers formulas, and separates lines as its own renderers do."""
    if node.get("nowrap"):
        return NUMBERED.sub(r"\\\1{\2*}", node.astext())
    parts = [part.strip() for part in node.astext().split("\n\n") if part.strip()]
    rows = [
        rf"\begin{{split}}{part}\end{{split}}" if r"\\" in part and r"\begin" not in part else part
        for part in parts
    ]
    joined = r" \\ ".join(rows)
    return joined if len(rows) == 1 else rf"\begin{{gathered}}{joined}\end{{gathered}}"


def _configure(app: Sphinx, config: Config) -> None:
    """Nothing of MathJax: neither its script nor the classes that tell it where to look."""
    config.html_math_renderer = RENDERER
    config.myst_update_mathjax = False


def connect(app: Sphinx) -> None:
    """Register the renderer."""
    app.add_config_value("companion_formulas", "htmlAndMathml", "html", types=(str,))
    app.add_config_value("companion_macros", {}, "html", types=(dict,))
    app.add_html_math_renderer(RENDERER, (visit_inline, None), (visit_display, None))
    app.connect("config-inited", _configure)
    app.add_css_file(STYLE, priority=850)
