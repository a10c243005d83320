"""The book's one visual style, and what it means to publish a figure.

A published figure is a drawing for light and for dark pages (SVG), for print (PDF) and for slides
(PNG), the numbers it shows (CSV), a passport (how to get the same again), a ledger (what became of
every draw) and a text that states the finding for those who do not see it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from attsvm import records
from attsvm.errors import ArgumentError
from attsvm.selection import Ledger

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "band", "grid", "publish", "style", "summarise"]

# name: (on light pages, on dark pages).  Hues stay apart for the common kinds of colour blindness,
# and both columns have a contrast of at least 4.5 on their page; the site's style sheet uses the
# same values.
_PALETTE = {
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
COLOURS: Mapping[str, str] = {name: light for name, (light, _) in _PALETTE.items()}

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SHORTEST_ALT = 60  # a sentence that states a finding is longer than this


def _settings() -> dict[str, Any]:
    ink, faint = COLOURS["ink"], COLOURS["grid"]
    return {
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "figure.constrained_layout.use": True,
        "font.size": 10,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": 10,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.titlecolor": ink,
        "axes.edgecolor": COLOURS["grey"],
        "xtick.color": COLOURS["grey"],
        "ytick.color": COLOURS["grey"],
        "xtick.labelcolor": ink,
        "ytick.labelcolor": ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": faint,
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "lines.linewidth": 1.8,
        "mathtext.fontset": "dejavusans",
        "svg.fonttype": "path",
        "pdf.fonttype": 42,
    }


@contextmanager
def style() -> Iterator[None]:
    """Draw in the book's style inside this context."""
    import matplotlib as mpl
    import seaborn as sns

    with mpl.rc_context(), sns.axes_style("ticks"):
        mpl.rcParams.update(_settings())
        yield


def grid(
    columns: int = 1, rows: int = 1, panel: tuple[float, float] = (3.6, 3.0), **options: Any
) -> tuple[Figure, Any]:
    """A figure with panels in the book's style, lettered (a), (b), … by their titles.

    Parameters
    ----------
    columns, rows
        Number of panels.
    panel
        Width and height of one, in inches.
    **options
        Passed on to `matplotlib.pyplot.subplots`.

    Returns
    -------
    Figure, Axes or array of Axes
        As `matplotlib.pyplot.subplots` returns them.
    """
    with style():
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(
            rows, columns, figsize=(panel[0] * columns, panel[1] * rows), **options
        )
    # Without this the notebook would show the figure a second time, beside the published one.
    plt.close(figure)
    return figure, axes


def summarise(table: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Mean over instances with its spread, for each group: the numbers a curve with a band shows.

    Parameters
    ----------
    table
        Tidy table.
    by
        Columns that name a point of a curve.
    value
        The column to average.

    Returns
    -------
    DataFrame
        ``by``, then quantity, mean, std (over instances, n − 1), sem (standard error), low, high
        (95 % interval of the mean), n.

    Raises
    ------
    ArgumentError
        If a column is missing or a value is not finite.
    """
    if lost := {*by, value} - set(table.columns):
        raise ArgumentError("table", f"columns {sorted({*by, value})}", f"no {sorted(lost)}")
    if not np.isfinite(table[value].to_numpy(dtype=float)).all():
        raise ArgumentError("table", f"finite values of {value}", "NaN or infinity")
    grouped = table.groupby(list(by), sort=False)[value]
    result = grouped.agg(mean="mean", std="std", n="count").reset_index()
    result["std"] = result["std"].fillna(0.0)
    result["sem"] = result["std"] / np.sqrt(result["n"])
    result["low"] = result["mean"] - 1.96 * result["sem"]
    result["high"] = result["mean"] + 1.96 * result["sem"]
    result.insert(len(by), "quantity", value)
    return result


def band(
    ax: Axes,
    summary: pd.DataFrame,
    x: str,
    *,
    label: str,
    colour: str,
    published: bool = False,
    spread: str = "std",
    marker: str = "",
) -> None:
    """Draw a mean curve with a band; published arithmetic is dashed, certified solid.

    Parameters
    ----------
    ax
        Where to draw.
    summary
        Rows of one curve, from `summarise`.
    x
        Column of the horizontal axis.
    label
        Text of the legend.
    colour
        A name from `COLOURS`.
    published
        Whether this is the published protocol (drawn dashed, without a band's fill).
    spread
        "std": mean ± one standard deviation over instances, as the paper draws; "interval": the 95
        % interval of the mean.
    marker
        A matplotlib marker, so that colour never is the only difference.
    """
    line = COLOURS[colour]
    at, mean = summary[x].to_numpy(), summary["mean"].to_numpy()
    if spread == "std":
        low, high = mean - summary["std"].to_numpy(), mean + summary["std"].to_numpy()
    else:
        low, high = summary["low"].to_numpy(), summary["high"].to_numpy()
    every = max(1, len(at) // 8)
    if published:
        ax.plot(at, mean, color=line, ls=(0, (4, 2)), lw=1.5, marker=marker, mfc="none",
                markevery=every, label=label)  # fmt: skip
    else:
        ax.fill_between(at, low, high, color=line, alpha=0.18, lw=0)
        ax.plot(at, mean, color=line, marker=marker, markevery=every, label=label)


def _svg(figure: Figure, name: str) -> str:
    import matplotlib as mpl

    buffer = io.StringIO()
    # A fixed salt and no date: the same figure gives the same bytes.
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()


def _darkened(svg: str) -> str:
    """The same drawing with each colour of the palette replaced by its partner for dark pages."""
    partner = {light: dark for light, dark in _PALETTE.values()}
    # White and black come from matplotlib's defaults (marker edges); they swap roles.
    partner |= {"#ffffff": "#15181c", "#000000": "#e8e6e3"}
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda m: partner.get(m.group().lower(), m.group()), svg)


def _raster(figure: Figure, format: str) -> bytes:
    buffer = io.BytesIO()
    metadata = {"CreationDate": None} if format == "pdf" else {"Software": None}
    figure.savefig(
        buffer, format=format, dpi=200, facecolor="white", transparent=False, metadata=metadata
    )
    return buffer.getvalue()


def publish(
    figure: Figure,
    name: str,
    data: pd.DataFrame,
    *,
    title: str,
    alt: str,
    caption: str,
    ledger: Ledger,
    parameters: Mapping[str, Any],
    seeds: str,
    solvers: Mapping[str, str] | None = None,
    tolerances: Mapping[str, float] | None = None,
) -> None:
    """Write a figure in all its forms and show it.

    Files go to ``figures/`` in the output folder: ``name.svg``, ``name-dark.svg``, ``name.pdf``,
    ``name.png``, ``name.csv`` and the record ``name.json``.

    Parameters
    ----------
    figure
        Drawn in the book's style (`grid`), with colours from `COLOURS`.
    name
        File name: lower case, words joined by hyphens.
    data
        Exactly the numbers drawn, tidy.
    title
        The finding in a few words.
    alt
        What a reader who cannot see the figure must know: the finding, with its numbers.
    caption
        What is drawn, and how to read it.
    ledger
        What became of every draw.
    parameters
        Sizes, steps, iterations: with the seeds enough to get the same figure again.
    seeds
        The seeds.
    solvers, tolerances
        Which solvers were used, and the tolerances that decide something.

    Raises
    ------
    ArgumentError
        If the name is no file name, the alt text says too little, or there is no data.
    AttsvmError
        If the output folder cannot be written to.
    """
    if not _NAME.fullmatch(name):
        raise ArgumentError("name", "lower-case words joined by hyphens", repr(name))
    if len(alt.strip()) < _SHORTEST_ALT:
        raise ArgumentError("alt", "a sentence that states the finding", repr(alt))
    if data.empty:
        raise ArgumentError("data", "the numbers drawn", "an empty table")
    where = records.context()
    folder = where.output / "figures"
    svg = _svg(figure, name)
    contents = {
        "svg": (f"{name}.svg", svg.encode()),
        "dark": (f"{name}-dark.svg", _darkened(svg).encode()),
        "pdf": (f"{name}.pdf", _raster(figure, "pdf")),
        "png": (f"{name}.png", _raster(figure, "png")),
        "csv": (f"{name}.csv", data.to_csv(index=False, lineterminator="\n").encode()),
    }
    for file, content in contents.values():
        records.write_bytes(folder / file, content)
    record = {
        "name": name,
        "title": title,
        "alt": " ".join(alt.split()),
        "caption": " ".join(caption.split()),
        "chapter": where.chapter,
        "files": {kind: f"figures/{file}" for kind, (file, _) in contents.items()},
        "ledger": ledger.as_record(),
        "passport": {
            "parameters": {key: _plain(value) for key, value in parameters.items()},
            "seeds": seeds,
            "solvers": dict(solvers or {}),
            "tolerances": dict(tolerances or {}),
            "versions": records.versions(),
            "commit": where.commit,
            "profile": where.profile,
        },
    }
    records.write_json(folder / f"{name}.json", record)
    records.display(
        {
            "application/vnd.attsvm.figure+json": record,
            "image/svg+xml": svg,
            "text/plain": f"{title}\n{record['alt']}\n{ledger}",
        }
    )


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | range | tuple):
        return [_plain(item) for item in value]
    return value
