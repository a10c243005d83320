"""Small pieces of HTML and the wording of numbers, shared by cards, boxes and the scorecard."""

from __future__ import annotations

import math
import re
from html import escape
from typing import Any

from docutils import nodes

VERDICTS = {
    "holds": ("holds", "M3 8.5 6.5 12 13 4.5"),
    "holds with a difference": (
        "differs",
        "M2.5 9.5c2-3.5 4-3.5 5.5-1.5s3.500 2 5.500-1.500",
    ),
    "artefact of the published protocol": (
        "artefact",
        "M8 2.500 14 13.500H2zM8 6.500v3.500M8 11.800v.4",
    ),
    "not testable": ("untestable", "M3 8h10"),
    "fails": ("fails", "M4 4l8 8M12 4l-8 8"),
}
"""Verdict → (class of its badge, path of its mark): told apart by words and shape first."""


def anchor(claim: str) -> str:
    """The id of a claim's box on its page; claim ids have dots, ids of a page should not."""
    return nodes.make_id(f"claim-{claim}")


def words(claim: str) -> str:
    """A claim's id as words."""
    return claim.replace(".", ": ").replace("-", " ")


def badge(verdict: str) -> str:
    """The verdict as a mark and words."""
    name, path = VERDICTS[verdict]
    mark = f'<svg viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d="{path}"/></svg>'
    return f'<span class="verdict verdict-{name}">{mark}<span>{escape(verdict)}</span></span>'


def number(value: float, decimals: int | None = None) -> str:
    """A number for a reader: fixed decimals, or four significant digits, more just below one.

    >>> number(0.5, 3), number(3.0), number(0.99637), number(0.99999712), number(1.2e-7)
    ('0.500', '3', '0.9964', '0.999997', '1.2 × 10⁻⁷')
    >>> number(1 - 2**-30), number(1 - 2**-53)
    ('1 − 9.31 × 10⁻¹⁰', '1')
    """
    if decimals is not None:
        return f"{value:.{decimals}f}".replace("-", "−")
    if 0.99 < value < 1 - 1e-12:
        gap = 1 - value
        return f"1 − {number(gap)}" if gap < 1e-6 else f"{value:.{min(_first_digit(gap) + 1, 6)}f}"
    text = f"{value:.4g}"
    if "e" not in text and (value == 0 or abs(value) >= 1e-4):
        return text.replace("-", "−")
    mantissa, exponent = f"{value:.2e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{float(mantissa):g} × 10{power}".replace("-", "−")


def _first_digit(value: float) -> int:
    """Position after the point of the first digit that is not zero."""
    return max(-math.floor(math.log10(abs(value))), 0)


def measurement(measured: dict[str, Any] | None, unit: str = "") -> str:
    """A mean with the half-width of its interval and the count behind it, or an en dash.

    >>> measurement({"value": 0.99812, "halfwidth": 0.00043, "n": 100})
    '0.9981 ± 0.0004 (100 instances)'
    >>> measurement({"value": 0.5, "halfwidth": 3e-9, "n": 20})
    '0.5, to within 10⁻⁶ (20 instances)'
    """
    if measured is None:
        return "–"
    value, halfwidth, count = measured["value"], measured.get("halfwidth"), measured.get("n")
    if not halfwidth:
        text = number(value)
    elif halfwidth < 1e-6:
        text = f"{number(value)}, to within 10⁻⁶"
    else:
        decimals = _first_digit(halfwidth)
        text = f"{number(value, decimals)} ± {number(halfwidth, decimals)}"
    text += f" {unit}" if unit else ""
    if count and count > 1:
        text += f" ({count} instances)"
    return text


def definition_list(pairs: dict[str, str], name: str) -> str:
    """A list of terms and their values; the values are HTML."""
    rows = "".join(
        f"<div><dt>{escape(term)}</dt><dd>{value}</dd></div>" for term, value in pairs.items()
    )
    return f'<dl class="{name}">{rows}</dl>'


SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹ᵀ", "−0123456789⊤")
# In this order: what one rule writes, the next ones leave alone.
RULES: tuple[tuple[str, Any], ...] = (
    # 2.2e-16, and powers in small characters, which few fonts have
    (r"(?<![\w.])1e([+-]?\d+)\b", lambda m: f"10<sup>{_exponent(m[1])}</sup>"),
    (
        r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)\b",
        lambda m: f"{m[1]}\xa0×\xa010<sup>{_exponent(m[2])}</sup>",
    ),
    (r"[⁻⁰¹²³⁴⁵⁶⁷⁸⁹ᵀ]+", lambda m: f"<sup>{m[0].translate(SUPERSCRIPTS)}</sup>"),
    # K Q' is a product with a transpose; an apostrophe between letters is none
    (r"(?<!\w)([A-Za-z]) ([A-Za-z])['’](?!\w)", r"\1\2<sup>⊤</sup>"),
    # W_mm, ‖W‖_F, x_{i,α_i}, e^c; an apostrophe behind an index or a bracket is a transpose
    (r"((?<!\w)[A-Za-zα-ωΑ-Ω]\*?|[‖∥])_\{([^{}]*)\}", r"\1<sub>\2</sub>"),
    (
        r"((?<!\w)(?:argm(?:in|ax)|max|min|[A-Za-zα-ωΑ-Ω])\*?|[‖∥])_([A-Za-zα-ω]+\b|\*)",
        r"\1<sub>\2</sub>",
    ),
    (r"(?<!\w)([A-Za-z])\^([A-Za-z0-9.]*\w)", r"\1<sup>\2</sup>"),
    (r"(</sub>|\)(?!['’]\w))['’]", r"\1<sup>⊤</sup>"),
    (r"<sub>it</sub>", "<sub><i>it</i></sub>"),
    # -1 and .05
    (r"(?<![\w.-])-(?=[\d.])", "−"),
    (r"(?<![\w.])\.(?=\d)", "0."),
    (r"\((\d{4}\.\d{4,5})\)", "(arXiv\xa0\\1)"),
    (r"\b([A-Za-z])=(?=[\d-])", r"\1 = "),
    # no line ends within a number or beside a sign
    (r"(?<=\d) (?=\d{3}\b|%)", "\xa0"),
    (r" (=|≤|≥|≈|&lt;|&gt;|\+|−|×|±|≠) ", "\xa0\\1\xa0"),
)
# Letters that stand for something in this book; a, e, s and I are words or their ends, and panels
# are called (a) to (h).
SYMBOL = re.compile(
    r"(?<![A-Za-z_'’.])(?!(?<=\()[a-h]\))"
    r"(?:KQ|vu|nT|[DKLOQRTWXYZb-dg-kmnp-rt-vx-zℓα-ω])(?![\w'’-]|\.\w)"
)


def _exponent(digits: str) -> str:
    return str(int(digits)).replace("-", "−")


def formal(text: str) -> str:
    """Plain text with formulas in it, as HTML that looks like formulas.

    The registry of claims, captions and ledgers write formulas in plain characters, so that they
    can be read in a terminal too.

    >>> formal("d=10, at most 2.2e-16; panel (d)").replace("\\xa0", "~")
    '<i>d</i>~=~10, at most 2.2~×~10<sup>−16</sup>; panel (d)'
    >>> formal("K Q' at R = .5 ‖W_mm‖_F, Newton's").replace("\\xa0", "~")
    "<i>KQ</i><sup>⊤</sup> at <i>R</i>~=~0.5 ‖<i>W</i><sub>mm</sub>‖<sub>F</sub>, Newton's"
    """
    html = escape(text, quote=False)
    for pattern, replacement in RULES:
        html = re.sub(pattern, replacement, html)
    parts = re.split(r"(<[^>]*>|&\w+;)", html)
    parts[::2] = [SYMBOL.sub(lambda m: f"<i>{m[0]}</i>", part) for part in parts[::2]]
    return "".join(parts)
