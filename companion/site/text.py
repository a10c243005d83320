"""Small pieces of HTML and the wording of numbers, shared by cards, boxes and the scorecard."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from docutils import nodes

VERDICTS = {
    "holds": ("holds", "M3 8.5 6.5 12 13 4.5"),
    "holds with a difference": ("differs", "M2.5 9.5c2-3.5 4-3.5 5.5-1.5s3.5 2 5.5-1.5"),
    "artefact of the published protocol": ("artefact", "M8 2.5 14 13.5H2zM8 6.5v3.5M8 11.8v.4"),
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

    Powers of ten are formulas, in dollar signs.

    >>> number(0.5, 3), number(3.0), number(0.99637), number(0.99999712), number(1.2e-7)
    ('0.500', '3', '0.9964', '0.999997', '$1.2 × 10^{-7}$')
    >>> number(1 - 2**-30), number(1 - 2**-53)
    ('$1 - 9.31 × 10^{-10}$', '1')
    """
    if decimals is not None:
        return f"{value:.{decimals}f}".replace("-", "−")
    if 0.99 < value < 1 - 1e-12:
        gap = 1 - value
        if gap < 1e-6:
            return f"$1 - {number(gap)[1:]}"
        return f"{value:.{min(_first_digit(gap) + 1, 6)}f}"
    text = f"{value:.4g}"
    if "e" not in text and (value == 0 or abs(value) >= 1e-4):
        return text.replace("-", "−")
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"${float(mantissa):g} × 10^{{{int(exponent)}}}$"


def _first_digit(value: float) -> int:
    """Position after the point of the first digit that is not zero."""
    return max(-math.floor(math.log10(abs(value))), 0)


def measurement(measured: Mapping[str, Any] | None) -> str:
    """A mean with the half-width of its interval and the count behind it, or an en dash.

    >>> measurement({"value": 0.99812, "halfwidth": 0.00043, "n": 100})
    '0.9981 ± 0.0004 (100 instances)'
    >>> measurement({"value": 0.5, "halfwidth": 3e-9, "n": 20})
    '0.5, to within $10^{-6}$ (20 instances)'
    """
    if measured is None:
        return "–"
    value, halfwidth, count = measured["value"], measured.get("halfwidth"), measured.get("n")
    if not halfwidth:
        text = number(value)
    elif halfwidth < 1e-6:
        text = rf"{number(value)}, to within $10^{{-6}}$"
    else:
        decimals = _first_digit(halfwidth)
        text = f"{number(value, decimals)} ± {number(halfwidth, decimals)}"
    if count and count > 1:
        text += f" ({count} instances)"
    return text


def definition_list(pairs: dict[str, str], name: str) -> str:
    """A list of terms and their values; the values are HTML."""
    rows = "".join(
        f"<div><dt>{escape(term)}</dt><dd>{value}</dd></div>" for term, value in pairs.items()
    )
    return f'<dl class="{name}">{rows}</dl>'
