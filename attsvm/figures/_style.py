"""Palette and settings: the one visual style of the book."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# name: (on light pages, on dark pages).  Hues stay apart for the common kinds of colour blindness,
# and both columns have a contrast of at least 4.5 on their page; the site's style sheet uses the
# same values.
PALETTE = {
    "ink": ("#1b1f24", "#e8e6e3"),
    "grid": ("#c9ced6", "#3a414b"),
    "blue": ("#0067a5", "#6cb6f5"),
    "vermilion": ("#c8450b", "#ff9a5c"),
    "green": ("#00805a", "#4fd1a5"),
    "purple": ("#8a3f8f", "#d79ae0"),
    "ochre": ("#9a6b00", "#e8bf4f"),
    "grey": ("#5d6570", "#a9b1bc"),
}

#: Colours to draw with, by name; the dark drawing is made from the light one.
COLOURS: Mapping[str, str] = {name: light for name, (light, _) in PALETTE.items()}

#: The marker of each colour, so that colour never is the only difference.
MARKERS: Mapping[str, str] = dict(
    blue="o", vermilion="D", green="s", purple="^", ochre="v", grey="*", ink="x", grid="_"
)

#: How lines of published arithmetic look: dashed, with open markers.
AS_PUBLISHED: Mapping[str, Any] = {"ls": (0, (4, 2)), "lw": 1.5, "mfc": "none"}


_INK, _GREY = COLOURS["ink"], COLOURS["grey"]
_SETTINGS: Mapping[str, Any] = {
    **dict.fromkeys(["figure.facecolor", "axes.facecolor", "savefig.facecolor"], "none"),
    "figure.constrained_layout.use": True,
    **dict.fromkeys(["font.size", "axes.labelsize"], 10),
    **dict.fromkeys(["legend.fontsize", "xtick.labelsize", "ytick.labelsize"], 9),
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    # A line behind a legend fades; the white turns dark with the page.
    "legend.frameon": True,
    "legend.facecolor": "#ffffff",
    "legend.edgecolor": "none",
    "legend.framealpha": 0.75,
    **dict.fromkeys(["text.color", "axes.labelcolor", "axes.titlecolor"], _INK),
    **dict.fromkeys(["xtick.labelcolor", "ytick.labelcolor"], _INK),
    **dict.fromkeys(["axes.edgecolor", "xtick.color", "ytick.color"], _GREY),
    **dict.fromkeys(["axes.linewidth", "xtick.major.width", "ytick.major.width"], 0.8),
    **dict.fromkeys(["xtick.major.size", "ytick.major.size"], 3.5),
    **dict.fromkeys(["axes.spines.top", "axes.spines.right"], False),
    **dict.fromkeys(["axes.grid", "axes.axisbelow"], True),
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.8,
    "mathtext.fontset": "dejavusans",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


def use_style() -> None:
    """Draw in the book's style from here on; `grid` calls it."""
    import seaborn as sns

    sns.set_theme(style="ticks", rc=dict(_SETTINGS))


def grid(
    columns: int = 1, rows: int = 1, panel: tuple[float, float] = (3.6, 3.0), **options: Any
) -> tuple[Figure, Any]:
    """A figure with panels in the book's style, of equal size.

    Parameters
    ----------
    columns, rows, panel
        Numbers of panels; width and height of one, in inches.
    **options
        Passed on to `matplotlib.pyplot.subplots`.

    Returns
    -------
    Figure, Axes or array of Axes
        As `matplotlib.pyplot.subplots` returns them.
    """
    import matplotlib.pyplot as plt

    use_style()
    figure, axes = plt.subplots(
        rows, columns, figsize=(panel[0] * columns, panel[1] * rows), **options
    )
    # Without this the notebook would show the figure a second time, beside the published one.
    plt.close(figure)
    return figure, axes


def panel(
    ax: Axes,
    title: str,
    x: str | None = None,
    y: str | None = None,
    *,
    log: str = "",
    ticks: Iterable[float] | Mapping[float, str] | None = None,
    legend: str | Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Give a panel its letter and title, its axes and its legend, after all is drawn.

    Parameters
    ----------
    ax
        A panel of `grid`; "(a)", "(b)", … counts the panels of a figure that has several.
    title, x, y
        What the panel shows, and words for the axes.
    log
        The logarithmic axes: "", "x", "y" or "xy".
    ticks
        Places of the ticks below, written as they are (or as the mapping says), without others.
    legend
        Place of the legend, or all options of `matplotlib.axes.Axes.legend`.  A line drawn without
        a text, e.g. ``ax.plot([], [], label=…)``, is a key of its own.
    **options
        Passed on to `matplotlib.axes.Axes.set`: limits, aspect, ticks.
    """
    panels = ax.figure.axes
    letter = f"({chr(ord('a') + panels.index(ax))}) " if len(panels) > 1 else ""
    ax.set(title=letter + title, **{f"{axis}scale": "log" for axis in log})
    ax.set(**{f"{axis}label": text for axis, text in (("x", x), ("y", y)) if text is not None})
    ax.set(**options)
    if ticks is not None:
        words = ticks if isinstance(ticks, Mapping) else {tick: f"{tick:g}" for tick in ticks}
        ax.set_xticks(list(words), list(words.values()))
        ax.minorticks_off()
    if legend is not None:
        ax.legend(**(dict(loc=legend) if isinstance(legend, str) else legend))


def arithmetic_legend(ax: Axes, loc: Any = "best") -> None:
    """A legend of two entries: certified is solid, as published is dashed.

    Parameters
    ----------
    ax, loc
        Where the legend stands; entries of its curves are left out.
    """
    from matplotlib.lines import Line2D

    dashes = {name: AS_PUBLISHED[name] for name in ("ls", "lw")}
    handles = [Line2D([], [], color=COLOURS["ink"], **look) for look in ({}, dashes)]
    ax.legend(handles, ["certified", "as published"], loc=loc)


def key(ax: Axes, label: str, colour: str = "ink", **options: Any) -> None:
    """An entry of the legend that stands for no line: what dashes or open circles mean.

    Parameters
    ----------
    ax, label, colour
        Panel, text, a name from `COLOURS`.
    **options
        Passed on to `matplotlib.axes.Axes.plot`, e.g. ``**figures.AS_PUBLISHED``.
    """
    ax.plot([], [], color=COLOURS[colour], label=label, **options)
