"""Small pieces of HTML and the wording of numbers, shared by cards, boxes and the scorecard."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from docutils import nodes

VERDICTS = {
    "holds": ("holds", "M3 8.5 6.5 12 13 4.5"),
    "holds with a difference": ("differs", "M2.5 9.5c2-3.5 4-3.5 5.5-1.5s3.500 2 5.500-1.500"),
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
    """A number for a reader: a fixed count of decimals, or four significant digits.

    >>> number(0.99637), number(0.5, 3), number(3.0), number(1.2e-7)
    ('0.9964', '0.500', '3', '1.2 × 10⁻⁷')
    """
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        mantissa, exponent = (
            f"{value:.3g}".split("e") if abs(value) < 1e-4 else f"{value:.2e}".split("e")
        )
        power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{mantissa} × 10{power}".replace("-", "−")
    text = f"{value:.4g}" if decimals is None else f"{value:.{decimals}f}"
    return text.replace("-", "−")


def measurement(measured: dict[str, Any] | None, unit: str = "") -> str:
    """A mean with the half-width of its interval and the count behind it, or an en dash.

    >>> measurement({"value": 0.99812, "halfwidth": 0.00043, "n": 100})
    '0.9981 ± 0.0004 (100 instances)'
    """
    if measured is None:
        return "–"
    value, halfwidth, count = measured["value"], measured.get("halfwidth"), measured.get("n")
    if halfwidth:
        first_digit = -math.floor(math.log10(abs(halfwidth)))
        decimals = min(max(first_digit, 0), 12)
        text = f"{number(value, decimals)} ± {number(halfwidth, decimals)}"
    else:
        text = number(value)
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
