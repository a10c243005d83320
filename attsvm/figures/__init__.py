"""The book's one visual style, and what it means to publish a figure.

A published figure is a drawing for light and for dark pages (SVG), for print (PDF) and for slides
(PNG), the numbers it shows (CSV), a passport (how to get the same again), a ledger (what became of
every draw) and a text that states the finding for those who do not see it.
"""

from __future__ import annotations

from attsvm.figures._curves import authors, band, curves, dotted, line, points, shares, summarise
from attsvm.figures._instances import instances
from attsvm.figures._plane import boundary, path, ray, tokens
from attsvm.figures._publish import publish
from attsvm.figures._style import (
    AS_PUBLISHED,
    COLOURS,
    MARKERS,
    arithmetic_legend,
    grid,
    key,
    panel,
    use_style,
)

__all__ = [
    "AS_PUBLISHED", "COLOURS", "MARKERS", "arithmetic_legend", "authors", "band", "boundary",
    "curves", "dotted", "grid", "instances", "key", "line", "panel", "path", "points", "publish",
    "ray", "shares", "summarise", "tokens", "use_style",
]  # fmt: skip
